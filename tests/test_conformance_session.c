/*
 * test_conformance_session.c - sessions: the rows SES.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <weir/flow/function.h>

#include "graph_kit.h"
#include "run/countdown.h"

enum { THREADS = 10 };

static const weir_shape scalar = {.rank = 0, .dims = {0}};

/* -- short ways -------------------------------------------------------------------------------- */

/* A graph, a session without workers on it, and a variable. */
struct bench {
	weir_graph *graph;
	weir_session *session;
	weir_var *var;
};

static struct bench open_bench(void)
{
	struct bench b;

	b.graph = kit_graph();
	b.session = kit_session(b.graph, 0);
	b.var = kit_var("v", kit_f32(10));
	return b;
}

static void close_bench(struct bench *b)
{
	kit_end(b->session, b->graph);
	cr_assert_eq(weir_var_destroy(b->var, NULL), WEIR_OK);
}

static weir_output named(weir_graph *graph, const char *name, float value)
{
	weir_tensor *tensor = kit_f32(value);
	weir_output out;

	cr_assert_eq(weir_op_constant(graph, name, tensor, &out, NULL), WEIR_OK);
	weir_tensor_release(tensor);
	return out;
}

static weir_output square_of(weir_graph *graph, const char *name, weir_output x)
{
	weir_output out;

	cr_assert_eq(weir_op_square(graph, name, x, &out, NULL), WEIR_OK);
	return out;
}

static weir_output assign_to(struct bench *b, const char *name, weir_output value)
{
	weir_output out;

	cr_assert_eq(weir_op_assign(b->graph, name, b->var, value, &out, NULL), WEIR_OK);
	return out;
}

static weir_output read_of(struct bench *b, const char *name)
{
	weir_output out;

	cr_assert_eq(weir_op_read(b->graph, name, b->var, &out, NULL), WEIR_OK);
	return out;
}

/* Runs with one feed and one fetch. Takes the value over. */
static enum weir_status run_fed(weir_session *session, weir_output at, weir_tensor *value, weir_output fetch,
                                weir_tensor **result, weir_error *error)
{
	struct weir_feed feed = {at, value};
	enum weir_status status =
		weir_session_run(session, &feed, 1, &fetch, 1, result, NULL, 0, WEIR_NO_DEADLINE, NULL, error);

	weir_tensor_release(value);
	return status;
}

static float fed_f32(weir_session *session, weir_output at, float value, weir_output fetch)
{
	weir_tensor *result = NULL;
	weir_error error;
	float got;

	cr_assert_eq(run_fed(session, at, kit_f32(value), fetch, &result, &error), WEIR_OK, "%s", error.message);
	got = kit_f32_at(result, 0);
	weir_tensor_release(result);
	return got;
}

/* The first element of a fetch by name. */
static float named_f32(weir_session *session, const char *name)
{
	weir_tensor *result = NULL;
	weir_error error;
	float got;

	cr_assert_eq(weir_session_run_named(session, NULL, 0, &name, 1, &result, NULL, 0, WEIR_NO_DEADLINE, NULL, &error),
	             WEIR_OK, "%s", error.message);
	got = kit_f32_at(result, 0);
	weir_tensor_release(result);
	return got;
}

static weir_callable *compiled(weir_session *session, const weir_output *feed, const weir_output *fetch,
                               weir_node *target)
{
	weir_callable *callable = NULL;
	weir_error error;

	cr_assert_eq(weir_session_compile(session, feed, feed != NULL, fetch, fetch != NULL, &target, target != NULL, NULL,
	                                  &callable, &error),
	             WEIR_OK, "%s", error.message);
	return callable;
}

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

/* -- fetches ----------------------------------------------------------------------------------- */

Test(conformance_session, SES_013_a_tensor_gives_its_value_and_an_op_nothing)
{
	struct bench b = open_bench();
	weir_output c = named(b.graph, NULL, 42);
	weir_output assigned = assign_to(&b, NULL, c);
	weir_callable *callable = compiled(b.session, NULL, &c, NULL), *op = compiled(b.session, NULL, NULL, assigned.node);
	weir_tensor *result;

	cr_expect_eq(kit_fetch_f32(b.session, c), 42.0f);
	cr_expect_eq(kit_run_target(b.session, assigned.node, NULL), WEIR_OK);
	cr_assert_eq(weir_callable_run(callable, NULL, &result, WEIR_NO_DEADLINE, NULL, NULL, NULL), WEIR_OK);
	cr_expect_eq(kit_f32_at(result, 0), 42.0f);
	weir_tensor_release(result);
	cr_expect_eq(weir_callable_run(op, NULL, NULL, WEIR_NO_DEADLINE, NULL, NULL, NULL), WEIR_OK);
	cr_expect_eq(kit_var_f32(b.var, 0), 42.0f);
	weir_callable_release(callable);
	weir_callable_release(op);
	close_bench(&b);
}

Test(conformance_session, SES_014_a_fetch_by_name)
{
	struct bench b = open_bench();

	(void)named(b.graph, "a", 42);
	cr_expect_eq(named_f32(b.session, "a"), 42.0f);
	cr_expect_eq(named_f32(b.session, "a:0"), 42.0f);
	close_bench(&b);
}

Test(conformance_session, SES_015_a_list_of_ops_and_names)
{
	struct bench b = open_bench();
	const char *const fetches[] = {"a", "b:0", "assign"}, *const targets[] = {"assign", "nothing"};
	weir_tensor *results[3];
	weir_node *nothing;

	(void)named(b.graph, "a", 42);
	(void)assign_to(&b, "assign", named(b.graph, "b", 7));
	cr_assert_eq(weir_op_no_op(b.graph, "nothing", &nothing, NULL), WEIR_OK);
	cr_assert_eq(
		weir_session_run_named(b.session, NULL, 0, fetches, 3, results, targets, 2, WEIR_NO_DEADLINE, NULL, NULL),
		WEIR_OK);
	cr_expect_eq(kit_f32_at(results[0], 0), 42.0f);
	cr_expect_eq(kit_f32_at(results[1], 0), 7.0f);
	cr_expect_eq(kit_f32_at(results[2], 0), 7.0f);
	cr_expect_eq(kit_var_f32(b.var, 0), 7.0f);
	for (int i = 0; i < 3; i++)
		weir_tensor_release(results[i]);
	close_bench(&b);
}

Test(conformance_session, SES_016_results_are_in_the_order_of_the_fetches)
{
	struct bench b = open_bench();
	weir_output x = named(b.graph, NULL, 1), y = named(b.graph, NULL, 2), z = named(b.graph, NULL, 3);
	weir_output fetches[] = {z, x, y};
	const float expected[] = {3, 1, 2};
	weir_tensor *results[3];

	cr_assert_eq(weir_session_run(b.session, NULL, 0, fetches, 3, results, NULL, 0, WEIR_NO_DEADLINE, NULL, NULL),
	             WEIR_OK);
	for (int i = 0; i < 3; i++) {
		cr_expect_eq(kit_f32_at(results[i], 0), expected[i]);
		weir_tensor_release(results[i]);
	}
	close_bench(&b);
}

Test(conformance_session, SES_018_a_result_belongs_to_the_name_at_its_place)
{
	struct bench b = open_bench();
	const char *const names[] = {"second", "first"};
	weir_tensor *results[2];

	(void)named(b.graph, "first", 1);
	(void)named(b.graph, "second", 2);
	cr_assert_eq(weir_session_run_named(b.session, NULL, 0, names, 2, results, NULL, 0, WEIR_NO_DEADLINE, NULL, NULL),
	             WEIR_OK);
	cr_expect_eq(kit_f32_at(results[0], 0), 2.0f);
	cr_expect_eq(kit_f32_at(results[1], 0), 1.0f);
	weir_tensor_release(results[0]);
	weir_tensor_release(results[1]);
	close_bench(&b);
}

Test(conformance_session, SES_023_one_fetch_or_several)
{
	struct bench b = open_bench();
	weir_output a = named(b.graph, NULL, 1), sum;
	weir_output fetches[3];
	weir_tensor *results[3];

	cr_assert_eq(weir_op_add(b.graph, NULL, a, a, &sum, NULL), WEIR_OK);
	fetches[0] = a, fetches[1] = sum, fetches[2] = square_of(b.graph, NULL, sum);
	cr_expect_eq(kit_fetch_f32(b.session, fetches[2]), 4.0f);
	cr_assert_eq(weir_session_run(b.session, NULL, 0, fetches, 3, results, NULL, 0, WEIR_NO_DEADLINE, NULL, NULL),
	             WEIR_OK);
	cr_expect_eq(kit_f32_at(results[0], 0), 1.0f);
	cr_expect_eq(kit_f32_at(results[1], 0), 2.0f);
	cr_expect_eq(kit_f32_at(results[2], 0), 4.0f);
	for (int i = 0; i < 3; i++)
		weir_tensor_release(results[i]);
	close_bench(&b);
}

Test(conformance_session, SES_024_scalars_keep_their_types)
{
	static const enum weir_dtype dtypes[] = {WEIR_I32, WEIR_I64, WEIR_F32, WEIR_F64, WEIR_F16};
	static const uint64_t bits = 7;
	struct bench b = open_bench();

	for (size_t i = 0; i < sizeof(dtypes) / sizeof(dtypes[0]); i++) {
		weir_tensor *result = kit_fetch(b.session, kit_constant(b.graph, kit_tensor(dtypes[i], scalar, &bits)));

		cr_expect_eq(weir_tensor_dtype(result), dtypes[i]);
		cr_expect_eq(weir_tensor_shape(result)->rank, 0);
		cr_expect_eq(memcmp(weir_tensor_data(result), &bits, weir_dtype_size(dtypes[i])), 0);
		weir_tensor_release(result);
	}
	close_bench(&b);
}

Test(conformance_session, SES_025_an_op_that_initializes_and_the_value_after_it)
{
	struct bench b = open_bench();
	weir_output init = assign_to(&b, NULL, named(b.graph, NULL, 3)), value = read_of(&b, NULL);

	cr_expect_eq(kit_run_target(b.session, init.node, NULL), WEIR_OK);
	cr_expect_eq(kit_fetch_f32(b.session, value), 3.0f);
	close_bench(&b);
}

/* Places and values of the elements that are not zero; the shape of the whole may be left out. */
Test(conformance_session, SES_026_the_parts_of_a_sparse_tensor_are_fetched_together)
{
	static const int64_t places[] = {3, 2, 0, 4, 5, 1}, whole[] = {7, 9, 2};
	static const float values[] = {1, 2};
	struct bench b = open_bench();
	weir_output parts[] = {kit_constant(b.graph, kit_tensor(WEIR_I64, kit_shape(2, 2, 3), places)),
	                       kit_constant(b.graph, kit_tensor(WEIR_F32, kit_shape(1, 2), values)),
	                       kit_constant(b.graph, kit_tensor(WEIR_I64, kit_shape(1, 3), whole))};
	weir_tensor *results[3];

	for (size_t count = 2; count <= 3; count++) {
		cr_assert_eq(weir_session_run(b.session, NULL, 0, parts, count, results, NULL, 0, WEIR_NO_DEADLINE, NULL, NULL),
		             WEIR_OK);
		cr_expect_eq(memcmp(weir_tensor_data(results[0]), places, sizeof(places)), 0);
		cr_expect_eq(memcmp(weir_tensor_data(results[1]), values, sizeof(values)), 0);
		cr_expect_eq(weir_tensor_shape(results[0])->dims[0], weir_tensor_shape(results[1])->dims[0]);
		for (size_t i = 0; i < count; i++)
			weir_tensor_release(results[i]);
	}
	close_bench(&b);
}

Test(conformance_session, SES_047_the_same_fetch_twice_gives_the_same_value_twice)
{
	struct bench b = open_bench();
	weir_output one = named(b.graph, NULL, 1), fetches[2];
	weir_tensor *results[2];

	cr_assert_eq(weir_op_assign_add(b.graph, NULL, b.var, one, &fetches[0], NULL), WEIR_OK);
	fetches[1] = fetches[0];
	cr_assert_eq(weir_session_run(b.session, NULL, 0, fetches, 2, results, NULL, 0, WEIR_NO_DEADLINE, NULL, NULL),
	             WEIR_OK);
	cr_expect_eq(kit_f32_at(results[0], 0), 11.0f);
	cr_expect_eq(kit_f32_at(results[1], 0), 11.0f);
	cr_expect_eq(kit_var_f32(b.var, 0), 11.0f, "computed once");
	weir_tensor_release(results[0]);
	weir_tensor_release(results[1]);
	close_bench(&b);
}

/* -- strings ----------------------------------------------------------------------------------- */

static weir_tensor *strings_of(weir_shape shape, const weir_bytes strings[])
{
	return kit_tensor(WEIR_BYTES, shape, strings);
}

static void expect_strings(const weir_tensor *tensor, const weir_bytes strings[], size_t count)
{
	const weir_bytes *got = weir_tensor_data(tensor);

	cr_assert_eq(weir_tensor_dtype(tensor), WEIR_BYTES);
	cr_assert_eq(weir_tensor_element_count(tensor), (int64_t)count);
	for (size_t i = 0; i < count; i++) {
		cr_assert_eq(got[i].size, strings[i].size);
		cr_expect(got[i].size == 0 || memcmp(got[i].data, strings[i].data, got[i].size) == 0);
	}
}

static const weir_bytes words[] = {{"", 0}, {"a", 1}, {"with\0nul", 8}, {"\xc3\xa9\xe2\x82\xac", 5}};
enum { WORDS = sizeof(words) / sizeof(words[0]) };

Test(conformance_session, SES_056_strings_of_several_shapes_are_fetched)
{
	static const int64_t shapes[][3] = {{1, 4, 1}, {1, 2, 2}, {2, 2, 1}};
	struct bench b = open_bench();

	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
		weir_shape shape = {.rank = 3, .dims = {shapes[i][0], shapes[i][1], shapes[i][2]}};
		weir_tensor *result = kit_fetch(b.session, kit_constant(b.graph, strings_of(shape, words)));

		expect_strings(result, words, WORDS);
		cr_expect(weir_shape_equal(weir_tensor_shape(result), &shape));
		weir_tensor_release(result);
	}
	close_bench(&b);
}

Test(conformance_session, SES_057_strings_with_zeros_and_of_unicode_are_fed)
{
	struct bench b = open_bench();
	weir_output x = kit_placeholder(b.graph, "x", WEIR_BYTES, kit_shape(1, -1)), same;
	weir_tensor *result;

	cr_assert_eq(weir_op_identity(b.graph, NULL, x, &same, NULL), WEIR_OK);
	cr_assert_eq(run_fed(b.session, x, strings_of(kit_shape(1, WORDS), words), same, &result, NULL), WEIR_OK);
	expect_strings(result, words, WORDS);
	weir_tensor_release(result);
	close_bench(&b);
}

/* -- feeds ------------------------------------------------------------------------------------- */

Test(conformance_session, SES_031_one_tensor_with_a_feed)
{
	struct bench b = open_bench();
	weir_output x = kit_placeholder(b.graph, "x", WEIR_F32, scalar);

	cr_expect_eq(fed_f32(b.session, x, 3, square_of(b.graph, NULL, x)), 9.0f);
	close_bench(&b);
}

Test(conformance_session, SES_032_one_op_and_the_source_of_an_assign_fed)
{
	struct bench b = open_bench();
	weir_output source = named(b.graph, NULL, 1), assigned = assign_to(&b, NULL, source);
	struct weir_feed feed = {source, kit_f32(6)};

	cr_expect_eq(kit_run_target(b.session, assigned.node, NULL), WEIR_OK);
	cr_expect_eq(kit_var_f32(b.var, 0), 1.0f);
	cr_expect_eq(weir_session_run(b.session, &feed, 1, NULL, 0, NULL, &assigned.node, 1, WEIR_NO_DEADLINE, NULL, NULL),
	             WEIR_OK);
	cr_expect_eq(kit_var_f32(b.var, 0), 6.0f);
	weir_tensor_release(feed.value);
	close_bench(&b);
}

Test(conformance_session, SES_038_feeds_by_object_and_by_name)
{
	struct bench b = open_bench();
	weir_output x = kit_placeholder(b.graph, "x", WEIR_F32, scalar), y = named(b.graph, "y", 2), sum;
	struct weir_feed by_object[] = {{x, kit_f32(3)}, {y, kit_f32(4)}};
	struct weir_named_feed by_name[] = {{"x:0", by_object[0].value}, {"y", by_object[1].value}};
	const char *fetch = "sum";
	weir_tensor *results[2];

	cr_assert_eq(weir_op_add(b.graph, "sum", x, y, &sum, NULL), WEIR_OK);
	cr_assert_eq(weir_session_run(b.session, by_object, 2, &sum, 1, &results[0], NULL, 0, WEIR_NO_DEADLINE, NULL, NULL),
	             WEIR_OK);
	cr_assert_eq(
		weir_session_run_named(b.session, by_name, 2, &fetch, 1, &results[1], NULL, 0, WEIR_NO_DEADLINE, NULL, NULL),
		WEIR_OK);
	for (int i = 0; i < 2; i++) {
		cr_expect_eq(kit_f32_at(results[i], 0), 7.0f);
		weir_tensor_release(results[i]);
		weir_tensor_release(by_object[i].value);
	}
	close_bench(&b);
}

Test(conformance_session, SES_048_every_dtype_and_shape_is_fed_and_fetched)
{
	static const enum weir_dtype dtypes[] = {WEIR_BOOL, WEIR_U8,  WEIR_U16, WEIR_U32, WEIR_U64, WEIR_I8,
	                                         WEIR_I16,  WEIR_I32, WEIR_I64, WEIR_F16, WEIR_F32, WEIR_F64};
	static const uint64_t zeros[12];
	const weir_shape shapes[] = {kit_shape(0), kit_shape(1, 0), kit_shape(1, 5), kit_shape(2, 0, 3),
	                             kit_shape(3, 2, 3, 2)};
	struct bench b = open_bench();

	for (size_t d = 0; d < sizeof(dtypes) / sizeof(dtypes[0]); d++) {
		weir_output x, same, fetches[2];

		cr_assert_eq(weir_op_placeholder(b.graph, NULL, dtypes[d], NULL, &x, NULL), WEIR_OK);
		cr_assert_eq(weir_op_identity(b.graph, NULL, x, &same, NULL), WEIR_OK);
		fetches[0] = x, fetches[1] = same;
		for (size_t s = 0; s < sizeof(shapes) / sizeof(shapes[0]); s++) {
			struct weir_feed feed = {x, kit_tensor(dtypes[d], shapes[s], zeros)};
			weir_tensor *results[2];

			cr_assert_eq(
				weir_session_run(b.session, &feed, 1, fetches, 2, results, NULL, 0, WEIR_NO_DEADLINE, NULL, NULL),
				WEIR_OK);
			cr_expect_eq(results[0], feed.value);
			for (int i = 0; i < 2; i++) {
				cr_expect_eq(weir_tensor_dtype(results[i]), dtypes[d]);
				cr_expect(weir_shape_equal(weir_tensor_shape(results[i]), &shapes[s]));
				weir_tensor_release(results[i]);
			}
			weir_tensor_release(feed.value);
		}
	}
	close_bench(&b);
}

Test(conformance_session, SES_054_a_feed_needs_a_value)
{
	struct bench b = open_bench();
	weir_output x = kit_placeholder(b.graph, "x", WEIR_F32, scalar);
	weir_tensor *result = NULL;
	weir_error error;

	cr_expect_eq(run_fed(b.session, x, NULL, x, &result, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_not_null(strstr(error.message, "\"x\""), "%s", error.message);
	close_bench(&b);
}

Test(conformance_session, SES_055_a_feed_that_would_lose_precision_is_refused)
{
	struct bench b = open_bench();
	weir_output x = kit_placeholder(b.graph, "x", WEIR_I32, scalar);
	weir_tensor *result = NULL;
	weir_error error;

	cr_expect_eq(run_fed(b.session, x, kit_i64(INT64_MAX), x, &result, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_not_null(strstr(error.message, "i32"), "%s", error.message);
	cr_expect_not_null(strstr(error.message, "i64"), "%s", error.message);
	close_bench(&b);
}

Test(conformance_session, SES_064_shapes_that_do_not_fit_are_refused)
{
	static const float four[] = {1, 2, 3, 4};
	struct bench b = open_bench();
	weir_output x = kit_placeholder(b.graph, "x", WEIR_F32, kit_shape(1, 3));
	weir_output open = kit_placeholder(b.graph, "open", WEIR_F32, kit_shape(1, -1)), sum;
	weir_output three = kit_constant(b.graph, kit_tensor(WEIR_F32, kit_shape(1, 3), four));
	weir_tensor *result = NULL;
	weir_error error;

	cr_expect_eq(run_fed(b.session, x, kit_tensor(WEIR_F32, kit_shape(1, 4), four), x, &result, NULL),
	             WEIR_INVALID_ARGUMENT, "what the graph knows");
	cr_assert_eq(weir_op_add(b.graph, "sum", open, three, &sum, NULL), WEIR_OK);
	cr_expect_eq(run_fed(b.session, open, kit_tensor(WEIR_F32, kit_shape(1, 4), four), sum, &result, &error),
	             WEIR_INVALID_ARGUMENT, "what only the run finds");
	cr_expect_not_null(strstr(error.message, "sum"), "%s", error.message);
	cr_expect_null(result);
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

/* -- threads ----------------------------------------------------------------------------------- */

struct crowd {
	weir_graph *graph;
	weir_session *session;
	weir_output fetch;
	float expected;
	int builds;     /* how many nodes each thread of build_some() adds and runs */
	bool until_end; /* run until the session says that it is closed */
	_Atomic(int) running, ended, wrong;
};

static void *run_some(void *context)
{
	struct crowd *crowd = context;
	enum weir_status status = WEIR_OK;

	for (int i = 0; status == WEIR_OK && (crowd->until_end || i < 4); i++) {
		weir_tensor *result = NULL;

		status =
			weir_session_run(crowd->session, NULL, 0, &crowd->fetch, 1, &result, NULL, 0, WEIR_NO_DEADLINE, NULL, NULL);
		if (status == WEIR_OK && *(const float *)weir_tensor_data(result) != crowd->expected)
			atomic_fetch_add_explicit(&crowd->wrong, 1, memory_order_acq_rel);
		weir_tensor_release(result);
		atomic_fetch_add_explicit(&crowd->running, i == 0, memory_order_acq_rel);
	}
	if (crowd->until_end ? status != WEIR_FAILED_PRECONDITION && status != WEIR_CANCELLED : status != WEIR_OK)
		atomic_fetch_add_explicit(&crowd->wrong, 1, memory_order_acq_rel);
	atomic_fetch_add_explicit(&crowd->ended, 1, memory_order_acq_rel);
	return NULL;
}

/* Adds nodes behind the fetch, and runs each. */
static void *build_some(void *context)
{
	struct crowd *crowd = context;

	for (int i = 0; i < crowd->builds; i++) {
		weir_tensor *result = NULL;
		weir_output square;

		if (weir_op_square(crowd->graph, NULL, crowd->fetch, &square, NULL) != WEIR_OK ||
		    weir_session_run(crowd->session, NULL, 0, &square, 1, &result, NULL, 0, WEIR_NO_DEADLINE, NULL, NULL) !=
		        WEIR_OK ||
		    *(const float *)weir_tensor_data(result) != crowd->expected * crowd->expected)
			atomic_fetch_add_explicit(&crowd->wrong, 1, memory_order_acq_rel);
		weir_tensor_release(result);
	}
	return NULL;
}

static void open_crowd(struct crowd *crowd, size_t workers)
{
	*crowd = (struct crowd){.graph = kit_graph(), .expected = 3};
	crowd->session = kit_session(crowd->graph, workers);
	crowd->fetch = named(crowd->graph, NULL, 3);
	cr_assert_eq(weir_op_identity(crowd->graph, NULL, crowd->fetch, &crowd->fetch, NULL), WEIR_OK);
}

static void run_crowd(struct crowd *crowd, size_t runners, size_t builders)
{
	pthread_t threads[100];

	for (size_t i = 0; i < runners + builders; i++)
		cr_assert_eq(pthread_create(&threads[i], NULL, i < runners ? run_some : build_some, crowd), 0);
	for (size_t i = 0; i < runners + builders; i++)
		cr_assert_eq(pthread_join(threads[i], NULL), 0);
	cr_expect_eq(atomic_load_explicit(&crowd->wrong, memory_order_acquire), 0);
	kit_end(crowd->session, crowd->graph);
}

static void *own_graph(void *context)
{
	struct crowd *crowd = context, own = {.expected = 5};
	weir_tensor *five = NULL;

	if (weir_graph_create(NULL, &own.graph, NULL) == WEIR_OK &&
	    weir_session_create(own.graph, &(struct weir_session_options){WEIR_SESSION_OPTIONS_INIT, .threads = 1},
	                        &own.session, NULL) == WEIR_OK &&
	    weir_tensor_scalar_f32(5, &five) == WEIR_OK &&
	    weir_op_constant(own.graph, NULL, five, &own.fetch, NULL) == WEIR_OK)
		(void)run_some(&own);
	else
		atomic_fetch_add_explicit(&crowd->wrong, 1, memory_order_acq_rel);
	atomic_fetch_add_explicit(&crowd->wrong, atomic_load_explicit(&own.wrong, memory_order_acquire),
	                          memory_order_acq_rel);
	weir_tensor_release(five);
	if (weir_session_destroy(own.session, NULL) != WEIR_OK || weir_graph_destroy(own.graph, NULL) != WEIR_OK)
		atomic_fetch_add_explicit(&crowd->wrong, 1, memory_order_acq_rel);
	return NULL;
}

Test(conformance_session, SES_034_ten_threads_with_graphs_and_sessions_of_their_own)
{
	struct crowd crowd = {.expected = 0};
	pthread_t threads[THREADS];

	for (size_t i = 0; i < THREADS; i++)
		cr_assert_eq(pthread_create(&threads[i], NULL, own_graph, &crowd), 0);
	for (size_t i = 0; i < THREADS; i++)
		cr_assert_eq(pthread_join(threads[i], NULL), 0);
	cr_expect_eq(atomic_load_explicit(&crowd.wrong, memory_order_acquire), 0);
}

Test(conformance_session, SES_035_a_hundred_threads_run_the_same_fetch)
{
	struct crowd crowd;

	open_crowd(&crowd, 2);
	run_crowd(&crowd, 100, 0);
}

Test(conformance_session, SES_036_ten_threads_run_while_one_builds)
{
	struct crowd crowd;

	open_crowd(&crowd, 1);
	crowd.builds = 16;
	run_crowd(&crowd, THREADS, 1);
}

Test(conformance_session, SES_037_ten_threads_run_while_ten_build)
{
	struct crowd crowd;

	open_crowd(&crowd, 1);
	crowd.builds = 4;
	run_crowd(&crowd, THREADS, THREADS);
}

/* -- the end ----------------------------------------------------------------------------------- */

Test(conformance_session, SES_040_a_closed_session_runs_no_more)
{
	struct bench b = open_bench();
	weir_output c = named(b.graph, NULL, 1);
	weir_tensor *result = NULL;
	weir_error error;

	cr_expect_eq(kit_fetch_f32(b.session, c), 1.0f);
	cr_assert_eq(weir_session_close(b.session, NULL), WEIR_OK);
	cr_expect_eq(weir_session_run(b.session, NULL, 0, &c, 1, &result, NULL, 0, WEIR_NO_DEADLINE, NULL, &error),
	             WEIR_FAILED_PRECONDITION);
	cr_expect_not_null(strstr(error.message, "closed"), "%s", error.message);
	close_bench(&b);
}

static int crowd_runs(void *context)
{
	return atomic_load_explicit(&((struct crowd *)context)->running, memory_order_acquire) != 0;
}

Test(conformance_session, SES_041_a_thread_that_runs_in_a_loop_hears_of_the_close)
{
	struct crowd crowd;
	pthread_t thread;

	open_crowd(&crowd, 1);
	crowd.until_end = true;
	cr_assert_eq(pthread_create(&thread, NULL, run_some, &crowd), 0);
	kit_wait_for(crowd_runs, &crowd, "the first run");
	cr_assert_eq(weir_session_close(crowd.session, NULL), WEIR_OK);
	cr_assert_eq(pthread_join(thread, NULL), 0);
	cr_expect_eq(atomic_load_explicit(&crowd.ended, memory_order_acquire), 1);
	cr_expect_eq(atomic_load_explicit(&crowd.wrong, memory_order_acquire), 0);
	kit_end(crowd.session, crowd.graph);
}

static weir_session *session_with_limit(weir_graph *graph, uint64_t timeout_ns)
{
	struct weir_session_options options = {WEIR_SESSION_OPTIONS_INIT, .threads = 1, .operation_timeout_ns = timeout_ns};
	weir_session *session;

	cr_assert_eq(weir_session_create(graph, &options, &session, NULL), WEIR_OK);
	return session;
}

Test(conformance_session, SES_072_a_long_limit_does_not_disturb_short_steps)
{
	enum { ITEMS = 10 };
	weir_tensor_queue *queue = kit_queue("q", ITEMS, WEIR_F32, &scalar);
	weir_graph *graph = kit_graph();
	weir_session *session = session_with_limit(graph, KIT_PATIENCE_NS);
	weir_output one = named(graph, NULL, 1), size;
	weir_node *put;

	cr_assert_eq(weir_op_enqueue(graph, NULL, queue, &one, 1, &put, NULL), WEIR_OK);
	cr_assert_eq(weir_op_queue_size(graph, NULL, queue, &size, NULL), WEIR_OK);
	for (int i = 0; i < ITEMS; i++)
		cr_assert_eq(kit_run_target(session, put, NULL), WEIR_OK);
	cr_expect_eq(kit_fetch_i64(session, size), ITEMS);
	kit_end(session, graph);
	kit_queue_end(queue);
}

Test(conformance_session, SES_074_the_limit_of_a_run_or_of_the_session_ends_a_step)
{
	weir_tensor_queue *queue = kit_queue("q", 1, WEIR_F32, &scalar);
	weir_graph *graph = kit_graph();
	weir_session *unlimited = session_with_limit(graph, 0), *limited = session_with_limit(graph, 1000000);
	weir_output taken;
	weir_tensor *result = NULL;

	cr_assert_eq(weir_op_dequeue(graph, NULL, queue, &taken, 1, NULL, NULL), WEIR_OK);
	cr_expect_eq(
		weir_session_run(unlimited, NULL, 0, &taken, 1, &result, NULL, 0, weir_deadline_in(1000000), NULL, NULL),
		WEIR_DEADLINE_EXCEEDED);
	cr_expect_eq(weir_session_run(limited, NULL, 0, &taken, 1, &result, NULL, 0, WEIR_NO_DEADLINE, NULL, NULL),
	             WEIR_DEADLINE_EXCEEDED);
	cr_expect_null(result);
	cr_assert_eq(weir_session_destroy(unlimited, NULL), WEIR_OK);
	kit_end(limited, graph);
	kit_queue_end(queue);
}
