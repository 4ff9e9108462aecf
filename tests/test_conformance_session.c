/*
 * test_conformance_session.c - sessions: the rows SES about graphs, errors, callables and traces.
 */
#include <pthread.h>
#include <weir/flow/function.h>

#include "conformance_session_kit.h"

/* -- graphs and sessions ----------------------------------------------------------------------- */

Test(conformance_session, SES_001_a_session_runs_the_graph_that_it_was_given)
{
	struct bench b = open_bench(), other = open_bench();

	cr_expect_eq(kit_fetch_f32(b.session, named(b.graph, "c", 1)), 1.0f);
	cr_expect_eq(kit_fetch_f32(other.session, named(other.graph, "c", 2)), 2.0f);
	cr_expect_eq(named_f32(b.session, "c"), 1.0f);
	close_bench(&other);
	close_bench(&b);
}

Test(conformance_session, SES_003_a_feed_by_name_overrides_a_constant_for_one_run)
{
	struct bench b = open_bench();
	struct weir_named_feed feed = {"c", kit_f32(4)};
	const char *fetch = "square";
	weir_tensor *result;

	(void)square_of(b.graph, "square", named(b.graph, "c", 3));
	cr_assert_eq(weir_session_run_named(b.session, &feed, 1, &fetch, 1, &result, NULL, 0, WEIR_NO_DEADLINE, NULL, NULL),
	             WEIR_OK);
	cr_expect_eq(kit_f32_at(result, 0), 16.0f);
	weir_tensor_release(result);
	weir_tensor_release(feed.value);
	cr_expect_eq(named_f32(b.session, "square"), 9.0f);
	close_bench(&b);
}

Test(conformance_session, SES_005_each_session_may_have_workers_of_its_own)
{
	weir_graph *graph = kit_graph();
	weir_output c = named(graph, NULL, 7);
	weir_session *sessions[] = {kit_session(graph, 1), kit_session(graph, 2), kit_session(graph, 0)};

	for (int i = 0; i < 3; i++)
		cr_expect_eq(kit_fetch_f32(sessions[i], c), 7.0f);
	for (int i = 0; i < 3; i++)
		cr_assert_eq(weir_session_destroy(sessions[i], NULL), WEIR_OK);
	cr_assert_eq(weir_graph_destroy(graph, NULL), WEIR_OK);
}

static enum weir_status note_thread(void *context, const struct weir_kernel_call *call, weir_error *error)
{
	(void)call;
	(void)error;
	*(pthread_t *)context = pthread_self();
	return WEIR_OK;
}

/* The pool without workers runs its tasks where it is helped: here. */
Test(conformance_session, SES_006_a_run_selects_its_pool)
{
	struct weir_pool_options none = {WEIR_POOL_OPTIONS_INIT, .flags = WEIR_POOL_NO_THREADS};
	struct weir_pool_options one = {WEIR_POOL_OPTIONS_INIT, .threads = 1, .name = "one"};
	struct weir_run_options options = {WEIR_RUN_OPTIONS_INIT};
	weir_pool *pools[2];
	weir_graph *graph = kit_graph();
	weir_session *session = kit_session(graph, 1);
	weir_callable *callable;
	weir_node *node;
	pthread_t ran_on;

	cr_assert_eq(weir_pool_create(&none, &pools[0], NULL), WEIR_OK);
	cr_assert_eq(weir_pool_create(&one, &pools[1], NULL), WEIR_OK);
	cr_assert_eq(
		weir_op_kernel(graph, NULL, KIT_KERNEL(note_thread), &ran_on, NULL, 0, NULL, 0, NULL, 0, NULL, &node, NULL),
		WEIR_OK);
	callable = compiled(session, NULL, NULL, node);
	for (int i = 0; i < 2; i++) {
		options.pool = pools[i];
		cr_assert_eq(weir_callable_run(callable, NULL, NULL, WEIR_NO_DEADLINE, NULL, &options, NULL), WEIR_OK);
		cr_expect_eq(pthread_equal(ran_on, pthread_self()) != 0, i == 0);
	}
	weir_callable_release(callable);
	kit_end(session, graph);
	for (int i = 0; i < 2; i++)
		cr_assert_eq(weir_pool_destroy(pools[i], NULL), WEIR_OK);
}

Test(conformance_session, SES_028_nodes_that_are_added_after_a_run_can_be_run)
{
	struct bench b = open_bench();
	weir_output c = named(b.graph, NULL, 3);

	cr_expect_eq(kit_fetch_f32(b.session, c), 3.0f);
	cr_expect_eq(kit_fetch_f32(b.session, square_of(b.graph, NULL, c)), 9.0f);
	close_bench(&b);
}

Test(conformance_session, SES_029_nodes_that_are_added_see_the_state_that_is_there)
{
	struct bench b = open_bench();
	weir_output assigned = assign_to(&b, NULL, named(b.graph, NULL, 5));

	cr_expect_eq(kit_fetch_f32(b.session, assigned), 5.0f);
	cr_expect_eq(kit_fetch_f32(b.session, read_of(&b, NULL)), 5.0f);
	cr_expect_eq(kit_fetch_f32(b.session, square_of(b.graph, NULL, read_of(&b, NULL))), 25.0f);
	cr_expect_eq(kit_fetch_f32(b.session, named(b.graph, NULL, 1)), 1.0f);
	cr_expect_eq(kit_var_f32(b.var, 0), 5.0f, "a run of other nodes does not change it");
	close_bench(&b);
}

Test(conformance_session, SES_030_a_group_of_assigns_that_was_added_later)
{
	struct bench b = open_bench();
	weir_var *second = kit_var("w", kit_f32(0));
	weir_output assigns[2];
	weir_node *group;

	cr_expect_eq(kit_fetch_f32(b.session, read_of(&b, NULL)), 10.0f);
	assigns[0] = assign_to(&b, NULL, named(b.graph, NULL, 1));
	cr_assert_eq(weir_op_assign(b.graph, NULL, second, named(b.graph, NULL, 2), &assigns[1], NULL), WEIR_OK);
	cr_assert_eq(weir_op_no_op(b.graph, "init", &group, NULL), WEIR_OK);
	for (int i = 0; i < 2; i++)
		cr_assert_eq(weir_graph_add_control(b.graph, assigns[i].node, group, NULL), WEIR_OK);
	cr_assert_eq(kit_run_target(b.session, group, NULL), WEIR_OK);
	cr_expect_eq(kit_var_f32(b.var, 0), 1.0f);
	cr_expect_eq(kit_var_f32(second, 0), 2.0f);
	close_bench(&b);
	cr_assert_eq(weir_var_destroy(second, NULL), WEIR_OK);
}

static enum weir_status measure_text(void *context, const char *text, size_t size, weir_error *error)
{
	(void)text;
	(void)error;
	*(size_t *)context += size;
	return WEIR_OK;
}

Test(conformance_session, SES_039_the_text_of_a_graph_grows_with_its_nodes)
{
	weir_graph *graph = kit_graph();
	size_t sizes[3] = {0, 0, 0};

	for (size_t i = 0; i < 3; i++) {
		cr_expect_eq(weir_graph_node_count(graph), i);
		cr_assert_eq(weir_graph_print(graph, WEIR_GRAPH_TEXT, measure_text, &sizes[i], NULL), WEIR_OK);
		(void)named(graph, NULL, 1);
	}
	cr_expect_lt(sizes[0], sizes[1]);
	cr_expect_lt(sizes[1], sizes[2]);
	cr_assert_eq(weir_graph_destroy(graph, NULL), WEIR_OK);
}

Test(conformance_session, SES_042_an_empty_graph_cannot_be_run)
{
	weir_graph *graph = kit_graph();
	weir_session *session = kit_session(graph, 0);
	weir_callable *callable = NULL;
	weir_error error;

	cr_expect_eq(weir_session_run(session, NULL, 0, NULL, 0, NULL, NULL, 0, WEIR_NO_DEADLINE, NULL, &error),
	             WEIR_FAILED_PRECONDITION);
	cr_expect_not_null(strstr(error.message, "empty"), "%s", error.message);
	cr_expect_eq(weir_session_compile(session, NULL, 0, NULL, 0, NULL, 0, NULL, &callable, NULL),
	             WEIR_FAILED_PRECONDITION);
	(void)named(graph, NULL, 1);
	cr_expect_eq(weir_session_run(session, NULL, 0, NULL, 0, NULL, NULL, 0, WEIR_NO_DEADLINE, NULL, NULL), WEIR_OK);
	kit_end(session, graph);
}

static enum weir_status build_square(void *context, weir_graph *body, const struct weir_argument arguments[],
                                     weir_output results[], weir_error *error)
{
	weir_output *inside = context;
	enum weir_status status = weir_op_square(body, NULL, arguments[0].output, &results[0], error);

	*inside = results[0];
	return status;
}

static weir_function *square_function(weir_output *inside)
{
	static const struct weir_parameter x = {"x", WEIR_PARAMETER_TENSOR, WEIR_F32, &scalar};

	return kit_function(NULL, build_square, inside, &x, 1, 1);
}

Test(conformance_session, SES_075_inputs_from_different_frames_are_refused)
{
	struct bench b = open_bench();
	weir_output inside, sum, called;
	weir_function *square = square_function(&inside);
	struct weir_argument argument = {.output = named(b.graph, NULL, 3)};
	weir_error error;

	cr_assert_eq(weir_op_call(b.graph, NULL, square, &argument, 1, &called, NULL, NULL), WEIR_OK);
	cr_expect_eq(weir_op_add(b.graph, "mixed", called, inside, &sum, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_not_null(strstr(error.message, "mixed"), "%s", error.message);
	kit_end(b.session, b.graph);
	cr_assert_eq(weir_var_destroy(b.var, NULL), WEIR_OK);
	cr_assert_eq(weir_function_destroy(square, NULL), WEIR_OK);
}

Test(conformance_session, SES_076_a_function_may_be_added_after_a_run)
{
	struct bench b = open_bench();
	weir_output c = named(b.graph, NULL, 3), inside, called;
	struct weir_argument argument = {.output = c};
	weir_function *square;

	cr_expect_eq(kit_fetch_f32(b.session, c), 3.0f);
	square = square_function(&inside);
	cr_assert_eq(weir_op_call(b.graph, NULL, square, &argument, 1, &called, NULL, NULL), WEIR_OK);
	cr_expect_eq(kit_fetch_f32(b.session, called), 9.0f);
	close_bench(&b);
	cr_assert_eq(weir_function_destroy(square, NULL), WEIR_OK);
}

Test(conformance_session, SES_077_a_session_may_close_without_a_run)
{
	weir_graph *graph = kit_graph();
	weir_session *session = kit_session(graph, 1);

	cr_expect_eq(weir_session_close(session, NULL), WEIR_OK);
	kit_end(session, graph);
}

/* -- errors ------------------------------------------------------------------------------------ */

Test(conformance_session, SES_007_an_unknown_name_of_a_fetch_is_an_error)
{
	struct bench b = open_bench();
	const char *name = "nowhere:0";
	weir_tensor *result = NULL;
	weir_error error;

	(void)named(b.graph, "c", 1);
	cr_expect_eq(weir_session_run_named(b.session, NULL, 0, &name, 1, &result, NULL, 0, WEIR_NO_DEADLINE, NULL, &error),
	             WEIR_NOT_FOUND);
	cr_expect_not_null(strstr(error.message, "nowhere"), "%s", error.message);
	cr_expect_null(result);
	close_bench(&b);
}

Test(conformance_session, SES_008_an_unfed_placeholder_is_named)
{
	struct bench b = open_bench();
	weir_output x = kit_placeholder(b.graph, "the_input", WEIR_F32, scalar);
	weir_tensor *result = NULL;
	weir_error error;

	cr_expect_eq(weir_session_run(b.session, NULL, 0, &x, 1, &result, NULL, 0, WEIR_NO_DEADLINE, NULL, &error),
	             WEIR_INVALID_ARGUMENT);
	cr_expect_not_null(strstr(error.message, "the_input"), "%s", error.message);
	close_bench(&b);
}

static void forget(void *context, enum weir_status status, const weir_error *error, weir_tensor *const results[],
                   size_t count)
{
	(void)context;
	(void)status;
	(void)error;
	for (size_t i = 0; i < count; i++)
		weir_tensor_release(results[i]);
}

Test(conformance_session, SES_009_a_handle_that_is_not_of_an_open_run_is_refused)
{
	weir_graph *graph = kit_graph();
	weir_session *session = kit_session(graph, 1);
	weir_output c = named(graph, "some_node", 1);
	weir_callable *callable = compiled(session, NULL, &c, NULL);
	weir_tensor *one = kit_f32(1);
	weir_run *run;
	weir_error error;

	cr_assert_eq(weir_callable_start(callable, NULL, NULL, NULL, forget, NULL, &run, NULL), WEIR_OK);
	cr_expect_eq(weir_run_feed(run, 0, one, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_null(strstr(error.message, "some_node"), "no node is to blame: %s", error.message);
	cr_expect_eq(weir_run_feed(NULL, 0, one, NULL), WEIR_INVALID_ARGUMENT);
	weir_run_release(run);
	weir_callable_release(callable);
	weir_tensor_release(one);
	kit_end(session, graph);
}

static enum weir_status refuse_to_infer(void *context, const struct weir_kernel_spec inputs[], size_t input_count,
                                        struct weir_kernel_spec outputs[], size_t output_count, weir_error *error)
{
	(void)context;
	(void)inputs;
	(void)input_count;
	(void)outputs;
	(void)output_count;
	(void)strcpy(error->message, "no such kernel");
	return error->code = WEIR_INVALID_ARGUMENT;
}

Test(conformance_session, SES_011_a_kernel_that_cannot_be_made_is_named)
{
	struct weir_kernel kernel = {WEIR_KERNEL_INIT, .name = "never", .run = note_thread, .infer = refuse_to_infer};
	weir_graph *graph = kit_graph();
	weir_output out;
	weir_error error;

	cr_expect_eq(weir_op_kernel(graph, "the_node", &kernel, NULL, NULL, 0, NULL, 1, NULL, 0, &out, NULL, &error),
	             WEIR_INVALID_ARGUMENT);
	cr_expect_not_null(strstr(error.message, "the_node"), "%s", error.message);
	cr_expect_not_null(strstr(error.message, "no such kernel"), "%s", error.message);
	cr_assert_eq(weir_graph_destroy(graph, NULL), WEIR_OK);
}

Test(conformance_session, SES_012_nothing_anywhere_in_the_fetches_is_refused)
{
	struct bench b = open_bench();
	weir_output c = named(b.graph, NULL, 1), none = {NULL, 0};
	weir_output fetches[][2] = {{none, c}, {c, none}};
	weir_tensor *results[2] = {NULL, NULL};

	for (int i = 0; i < 2; i++)
		cr_expect_eq(
			weir_session_run(b.session, NULL, 0, fetches[i], 2, results, NULL, 0, WEIR_NO_DEADLINE, NULL, NULL),
			WEIR_INVALID_ARGUMENT);
	cr_expect_null(results[0]);
	cr_expect_null(results[1]);
	close_bench(&b);
}

Test(conformance_session, SES_058_an_unknown_target_is_not_found)
{
	struct bench b = open_bench();
	const char *target = "nobody";
	weir_error error;

	(void)named(b.graph, NULL, 1);
	cr_expect_eq(weir_session_run_named(b.session, NULL, 0, NULL, 0, NULL, &target, 1, WEIR_NO_DEADLINE, NULL, &error),
	             WEIR_NOT_FOUND);
	cr_expect_not_null(strstr(error.message, "nobody"), "%s", error.message);
	close_bench(&b);
}

Test(conformance_session, SES_060_what_belongs_to_another_graph_is_refused)
{
	struct bench b = open_bench(), other = open_bench();
	weir_output foreign = named(other.graph, NULL, 1), own = named(b.graph, NULL, 1);
	weir_tensor *result = NULL;

	cr_expect_eq(weir_session_run(b.session, NULL, 0, &foreign, 1, &result, NULL, 0, WEIR_NO_DEADLINE, NULL, NULL),
	             WEIR_INVALID_ARGUMENT);
	cr_expect_eq(kit_run_target(b.session, foreign.node, NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(run_fed(b.session, foreign, kit_f32(1), own, &result, NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_null(result);
	close_bench(&other);
	close_bench(&b);
}

/* -- callables and traces ---------------------------------------------------------------------- */

static enum weir_status count_bytes(void *context, const char *text, size_t size, weir_error *error)
{
	return measure_text(context, text, size, error);
}

static size_t trace_size(const weir_trace *trace)
{
	size_t size = 0;

	cr_assert_eq(weir_trace_write(trace, count_bytes, &size, NULL), WEIR_OK);
	return size;
}

Test(conformance_session, SES_049_a_callable_of_a_tensor_is_traced)
{
	struct bench b = open_bench();
	struct weir_run_options options = {WEIR_RUN_OPTIONS_INIT};
	weir_output c = square_of(b.graph, NULL, named(b.graph, NULL, 3));
	weir_callable *callable = compiled(b.session, NULL, &c, NULL);
	size_t empty;
	weir_tensor *result;

	cr_assert_eq(weir_trace_create(NULL, &options.trace, NULL), WEIR_OK);
	empty = trace_size(options.trace);
	cr_assert_eq(weir_callable_run(callable, NULL, &result, WEIR_NO_DEADLINE, NULL, &options, NULL), WEIR_OK);
	cr_expect_eq(kit_f32_at(result, 0), 9.0f);
	cr_expect_gt(trace_size(options.trace), empty);
	weir_tensor_release(result);
	weir_callable_release(callable);
	close_bench(&b);
	cr_assert_eq(weir_trace_destroy(options.trace, NULL), WEIR_OK);
}

Test(conformance_session, SES_050_a_callable_of_an_op_runs_it_once)
{
	struct bench b = open_bench();
	struct weir_run_options options = {WEIR_RUN_OPTIONS_INIT};
	weir_output added;
	weir_callable *callable;

	cr_assert_eq(weir_op_assign_add(b.graph, NULL, b.var, named(b.graph, NULL, 1), &added, NULL), WEIR_OK);
	callable = compiled(b.session, NULL, NULL, added.node);
	cr_assert_eq(weir_callable_run(callable, NULL, NULL, WEIR_NO_DEADLINE, NULL, &options, NULL), WEIR_OK);
	cr_expect_eq(kit_var_f32(b.var, 0), 11.0f);
	weir_callable_release(callable);
	close_bench(&b);
}

Test(conformance_session, SES_051_a_callable_with_feeds_and_options)
{
	struct bench b = open_bench();
	struct weir_run_options options = {WEIR_RUN_OPTIONS_INIT, .flags = WEIR_RUN_ON_CALLER};
	weir_output x = kit_placeholder(b.graph, "x", WEIR_F32, scalar), squared = square_of(b.graph, NULL, x);
	weir_callable *callable = compiled(b.session, &x, &squared, NULL);
	weir_tensor *value = kit_f32(4), *result;

	cr_assert_eq(weir_callable_run(callable, &value, &result, WEIR_NO_DEADLINE, NULL, &options, NULL), WEIR_OK);
	cr_expect_eq(kit_f32_at(result, 0), 16.0f);
	weir_tensor_release(result);
	weir_tensor_release(value);
	weir_callable_release(callable);
	close_bench(&b);
}

Test(conformance_session, SES_053_each_run_of_a_callable_adds_to_its_trace)
{
	struct bench b = open_bench();
	struct weir_run_options options = {WEIR_RUN_OPTIONS_INIT};
	weir_node *node;
	weir_callable *callable;
	size_t before, once;

	cr_assert_eq(weir_op_no_op(b.graph, NULL, &node, NULL), WEIR_OK);
	callable = compiled(b.session, NULL, NULL, node);
	cr_assert_eq(weir_trace_create(NULL, &options.trace, NULL), WEIR_OK);
	cr_assert_eq(weir_callable_run(callable, NULL, NULL, WEIR_NO_DEADLINE, NULL, &options, NULL), WEIR_OK);
	before = trace_size(options.trace);
	cr_assert_eq(weir_callable_run(callable, NULL, NULL, WEIR_NO_DEADLINE, NULL, &options, NULL), WEIR_OK);
	once = trace_size(options.trace) - before;
	cr_expect_gt(once, 0);
	cr_assert_eq(weir_callable_run(callable, NULL, NULL, WEIR_NO_DEADLINE, NULL, &options, NULL), WEIR_OK);
	cr_expect_eq(trace_size(options.trace), before + 2 * once);
	weir_callable_release(callable);
	close_bench(&b);
	cr_assert_eq(weir_trace_destroy(options.trace, NULL), WEIR_OK);
}

Test(conformance_session, SES_062_only_a_run_that_asks_for_it_is_traced)
{
	struct bench b = open_bench();
	struct weir_run_options traced = {WEIR_RUN_OPTIONS_INIT}, plain = {WEIR_RUN_OPTIONS_INIT};
	weir_node *node;
	weir_callable *callable;
	size_t empty;

	cr_assert_eq(weir_op_no_op(b.graph, NULL, &node, NULL), WEIR_OK);
	callable = compiled(b.session, NULL, NULL, node);
	cr_assert_eq(weir_trace_create(NULL, &traced.trace, NULL), WEIR_OK);
	empty = trace_size(traced.trace);
	cr_assert_eq(weir_callable_run(callable, NULL, NULL, WEIR_NO_DEADLINE, NULL, NULL, NULL), WEIR_OK);
	cr_assert_eq(weir_callable_run(callable, NULL, NULL, WEIR_NO_DEADLINE, NULL, &plain, NULL), WEIR_OK);
	cr_expect_eq(trace_size(traced.trace), empty);
	cr_assert_eq(weir_callable_run(callable, NULL, NULL, WEIR_NO_DEADLINE, NULL, &traced, NULL), WEIR_OK);
	cr_expect_gt(trace_size(traced.trace), empty);
	weir_callable_release(callable);
	close_bench(&b);
	cr_assert_eq(weir_trace_destroy(traced.trace, NULL), WEIR_OK);
}

Test(conformance_session, SES_063_options_and_a_trace_go_together_in_every_way)
{
	struct bench b = open_bench();
	weir_output c = named(b.graph, NULL, 1);
	weir_callable *callable = compiled(b.session, NULL, &c, NULL);
	weir_trace *trace;

	cr_assert_eq(weir_trace_create(NULL, &trace, NULL), WEIR_OK);
	for (int i = 0; i < 5; i++) {
		struct weir_run_options options = {WEIR_RUN_OPTIONS_INIT, .flags = (i & 1) != 0 ? WEIR_RUN_ON_CALLER : 0,
		                                   .trace = (i & 2) != 0 ? trace : NULL};
		weir_tensor *result;

		cr_assert_eq(weir_callable_run(callable, NULL, &result, WEIR_NO_DEADLINE, NULL, i == 4 ? NULL : &options, NULL),
		             WEIR_OK);
		cr_expect_eq(kit_f32_at(result, 0), 1.0f);
		weir_tensor_release(result);
	}
	weir_callable_release(callable);
	close_bench(&b);
	cr_assert_eq(weir_trace_destroy(trace, NULL), WEIR_OK);
}
