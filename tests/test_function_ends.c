/*
 * test_function_ends.c - functions that wait, that a deadline or a token stops, or for which memory is missing.
 */
#include "function_kit.h"

#include <pthread.h>
#include <weir/flow/callable.h>
#include <weir/reclaim.h>

#include "failing_allocator.h"

Test(function, a_deadline_reaches_a_wait_in_a_body_and_names_the_way)
{
	for (size_t threads = 0; threads <= 1; threads++) {
		weir_tensor_queue *queue = kit_queue("empty", 1, WEIR_F32, &scalar);
		weir_function *take = kit_function("taker", build_take, NULL, one_queue, 1, 1);
		weir_graph *graph = kit_graph();
		weir_session *session = kit_session(graph, threads);
		struct weir_argument q = {.queue = queue};
		weir_tensor *result = NULL;
		weir_output out;
		weir_error error = {WEIR_OK, ""};

		cr_assert_eq(weir_op_call(graph, "pull", take, &q, 1, &out, NULL, NULL), WEIR_OK);
		/* On a busy machine a short deadline may pass before the dequeue begins. */
		for (uint64_t length_ns = 10000000; strstr(error.message, "had waited") == NULL; length_ns *= 2) {
			cr_assert(length_ns < KIT_PATIENCE_NS, "%s", error.message);
			cr_assert_eq(weir_session_run(session, NULL, 0, &out, 1, &result, NULL, 0, weir_deadline_in(length_ns),
			                              NULL, &error),
			             WEIR_DEADLINE_EXCEEDED);
		}
		cr_expect(strstr(error.message, "; pull/dequeue \"take\" of queue \"empty\" had waited") != NULL, "%s",
		          error.message);
		kit_end(session, graph);
		end_function(take);
		kit_queue_end(queue);
	}
}

/* Fires the token in the third call. */
struct third {
	weir_cancel *token;
	pthread_t thread;
	int calls;
};

static enum weir_status fire_third(void *context, const struct weir_kernel_call *call, weir_error *error)
{
	static const weir_error cause = {WEIR_ABORTED, "enough"};
	struct third *third = context;

	(void)error;
	third->thread = pthread_self();
	if (++third->calls == 3)
		(void)weir_cancel_fire(third->token, &cause);
	call->outputs[0] = weir_tensor_retain(call->inputs[0]);
	return WEIR_OK;
}

/* Not short, so it goes to the pool. */
static enum weir_status build_third(void *context, weir_graph *body, const struct weir_argument arguments[],
                                    weir_output results[], weir_error *error)
{
	static const struct weir_kernel kernel = {WEIR_KERNEL_INIT, .name = "fire", .run = fire_third, .cost_ns = 1000000};
	struct weir_output_type type = {WEIR_F32, &scalar};

	return weir_op_kernel(body, "fire", &kernel, context, &arguments[0].output, 1, &type, 1, NULL, 0, results, NULL,
	                      error);
}

/* The loop has no end of its own. The session has a worker, but the run has a pool that this thread helps. */
Test(function, a_token_and_the_pool_of_a_run_reach_a_body)
{
	struct weir_pool_options none = {WEIR_POOL_OPTIONS_INIT, .flags = WEIR_POOL_NO_THREADS};
	struct weir_run_options options = {WEIR_RUN_OPTIONS_INIT};
	struct third third = {.calls = 0};
	weir_function *always = kit_function("always", build_always, NULL, one_tensor, 1, 1);
	weir_function *body = kit_function("body", build_third, &third, one_tensor, 1, 1);
	weir_graph *graph = kit_graph();
	weir_session *session = kit_session(graph, 1);
	struct weir_argument x = of_output(kit_constant(graph, kit_f32(1)));
	weir_callable *callable;
	weir_tensor *result = NULL;
	weir_output out;
	weir_error error;

	cr_assert_eq(weir_pool_create(&none, &options.pool, NULL), WEIR_OK);
	cr_assert_eq(weir_cancel_create(NULL, &third.token, NULL), WEIR_OK);
	cr_assert_eq(weir_op_while(graph, "loop", always, body, &x, 1, NULL, &out, NULL, NULL), WEIR_OK);
	cr_assert_eq(weir_session_compile(session, NULL, 0, &out, 1, NULL, 0, NULL, &callable, NULL), WEIR_OK);
	cr_expect_eq(
		weir_callable_run(callable, NULL, &result, weir_deadline_in(KIT_PATIENCE_NS), third.token, &options, &error),
		WEIR_ABORTED, "%s", error.message);
	cr_expect_null(result);
	cr_expect_eq(third.calls, 3);
	cr_expect(pthread_equal(third.thread, pthread_self()));
	weir_callable_release(callable);
	kit_end(session, graph);
	end_function(body);
	end_function(always);
	weir_cancel_release(third.token);
	cr_assert_eq(weir_pool_destroy(options.pool, NULL), WEIR_OK);
}

static enum weir_status pass_on(void *context, const struct weir_kernel_call *call, weir_error *error)
{
	(void)context, (void)error;
	call->outputs[0] = weir_tensor_retain(call->inputs[0]);
	return WEIR_OK;
}

static enum weir_status build_user_code(void *context, weir_graph *body, const struct weir_argument arguments[],
                                        weir_output results[], weir_error *error)
{
	const struct weir_output_type type = {WEIR_F32, NULL};

	(void)context;
	return weir_op_kernel(body, "user", KIT_KERNEL(pass_on), NULL, &arguments[0].output, 1, &type, 1, NULL, 0, results,
	                      NULL, error);
}

/* The function keeps the memory of a step, with its token, for the next session. */
Test(function, nothing_of_a_session_outlasts_it_in_a_function)
{
	struct failing_allocator memory = {0};
	weir_allocator hooks = failing_allocator_hooks(&memory);
	struct weir_session_options options = {WEIR_SESSION_OPTIONS_INIT, .threads = 1, .allocator = &hooks};
	weir_function *function = kit_function("user", build_user_code, NULL, one_tensor, 1, 1);
	struct weir_argument x = {.tensor = kit_f32(3)};
	weir_graph *graph = kit_graph();
	weir_session *session;
	weir_node *node;

	cr_assert_eq(weir_op_no_op(graph, NULL, &node, NULL), WEIR_OK);
	for (int i = 0; i < 2; i++) {
		cr_assert_eq(weir_session_create(graph, &options, &session, NULL), WEIR_OK);
		cr_expect_eq(run_f32(function, session, &x), 3.0f);
		cr_assert_eq(weir_session_destroy(session, NULL), WEIR_OK);
		cr_assert_eq(weir_reclaim_flush(0), WEIR_OK);
		cr_expect_str_eq(failing_allocator_verdict(&memory), "balanced");
	}
	weir_tensor_release(x.tensor);
	end_function(function);
	cr_assert_eq(weir_graph_destroy(graph, NULL), WEIR_OK);
}

static enum weir_status build_everything(void *context, weir_graph *body, const struct weir_argument arguments[],
                                         weir_output results[], weir_error *error)
{
	weir_function **functions = context;
	weir_tensor *rows;
	weir_output pair[2], constant, mapped, total;
	struct weir_argument row;
	weir_shape shape = {.rank = 1, .dims = {3}};
	enum weir_status status = weir_tensor_copy_of(WEIR_F32, &shape, (const float[]){1, 2, 3}, NULL, &rows);

	if (status != WEIR_OK)
		return status;
	status = weir_op_constant(body, NULL, rows, &constant, error);
	weir_tensor_release(rows);
	if (status == WEIR_OK)
		status = weir_op_while(body, "loop", functions[0], functions[1], arguments, 2, NULL, pair, NULL, error);
	row = of_output(constant);
	if (status == WEIR_OK)
		status = weir_op_map(body, "map", functions[2], &row, 1, NULL, &mapped, NULL, error);
	if (status == WEIR_OK)
		status = weir_op_reduce_sum(body, "total", mapped, &total, error);
	return status == WEIR_OK ? weir_op_add(body, "sum", pair[0], total, &results[0], error) : status;
}

/* Builds functions with a loop, a map and a call, and runs them. */
static enum weir_status build_and_run(const weir_allocator *allocator, void *context)
{
	struct weir_function_options options[] = {
		{WEIR_FUNCTION_OPTIONS_INIT, .build = build_less, .parameters = two_scalars, .parameter_count = 2,
	     .result_count = 1, .allocator = allocator},
		{WEIR_FUNCTION_OPTIONS_INIT, .build = build_step, .parameters = two_scalars, .parameter_count = 2,
	     .result_count = 2, .allocator = allocator},
		{WEIR_FUNCTION_OPTIONS_INIT, .build = build_double, .parameters = one_tensor, .parameter_count = 1,
	     .result_count = 1, .allocator = allocator},
		{WEIR_FUNCTION_OPTIONS_INIT, .build = build_everything, .parameters = two_scalars, .parameter_count = 2,
	     .result_count = 1, .allocator = allocator}};
	struct weir_session_options session_options = {WEIR_SESSION_OPTIONS_INIT, .flags = WEIR_SESSION_NO_THREADS,
	                                               .allocator = allocator};
	struct weir_graph_options graph_options = {WEIR_GRAPH_OPTIONS_INIT, .allocator = allocator};
	weir_function *functions[4] = {NULL};
	weir_session *session = NULL;
	weir_graph *graph = NULL;
	weir_tensor *const *values = context;
	struct weir_argument arguments[2] = {{.tensor = values[0]}, {.tensor = values[1]}};
	weir_tensor *result = NULL;
	enum weir_status status = weir_graph_create(&graph_options, &graph, NULL);

	options[3].context = functions;
	if (status == WEIR_OK)
		status = weir_session_create(graph, &session_options, &session, NULL);
	for (int i = 0; status == WEIR_OK && i < 4; i++)
		status = weir_function_create(&options[i], &functions[i], NULL);
	if (status == WEIR_OK)
		status = weir_function_run(functions[3], session, arguments, &result, WEIR_NO_DEADLINE, NULL, NULL, NULL);
	if (status == WEIR_OK)
		cr_assert_eq(kit_f32_at(result, 0), 4.0f + 12.0f);
	weir_tensor_release(result);
	cr_assert_eq(weir_session_destroy(session, NULL), WEIR_OK);
	cr_assert_eq(weir_graph_destroy(graph, NULL), WEIR_OK);
	for (int i = 3; i >= 0; i--)
		cr_assert_eq(weir_function_destroy(functions[i], NULL), WEIR_OK);
	return status;
}

Test(function, every_allocation_may_fail)
{
	weir_tensor *values[2] = {kit_f32(0), kit_f32(4)};

	cr_expect_gt(fail_each_allocation(build_and_run, values), 40);
	weir_tensor_release(values[0]);
	weir_tensor_release(values[1]);
}
