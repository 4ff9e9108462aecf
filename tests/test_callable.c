/*
 * test_callable.c - plans that a program holds: runs that wait, runs that are started, where they
 * run, and who may go before whom.
 */
#include <pthread.h>
#include <stdio.h>

#include "failing_allocator.h"
#include "graph_kit.h"
#include "run/countdown.h"
#include "run/worker.h"

static const weir_shape scalar = {.rank = 0, .dims = {0}};
static const struct weir_output_type f32_scalar = {WEIR_F32, &scalar};

static int is_set(void *context)
{
	return weiri_latch_is_set(context);
}

static weir_callable *compile(weir_session *session, const weir_output feeds[], size_t feed_count,
                              const weir_output fetches[], size_t fetch_count, weir_node *target)
{
	weir_callable *callable = NULL;
	weir_error error;

	cr_assert_eq(weir_session_compile(session, feeds, feed_count, fetches, fetch_count, &target, target != NULL ? 1 : 0,
	                                  NULL, &callable, &error),
	             WEIR_OK, "%s", error.message);
	return callable;
}

/* -- a run that waits -------------------------------------------------------------------------- */

Test(callable, feeds_and_fetches_keep_their_order)
{
	for (size_t threads = 0; threads <= 2; threads++) {
		weir_graph *graph = kit_graph();
		weir_session *session = kit_session(graph, threads);
		weir_output feeds[] = {kit_placeholder(graph, "a", WEIR_F32, scalar),
		                       kit_placeholder(graph, "b", WEIR_F32, scalar)};
		weir_tensor *tensors[] = {kit_f32(7), kit_f32(4)};
		weir_output fetches[3];
		weir_tensor *results[3];
		weir_callable *callable;

		cr_assert_eq(weir_op_sub(graph, NULL, feeds[0], feeds[1], &fetches[0], NULL), WEIR_OK);
		cr_assert_eq(weir_op_square(graph, NULL, fetches[0], &fetches[1], NULL), WEIR_OK);
		fetches[2] = feeds[1];
		callable = compile(session, feeds, 2, fetches, 3, NULL);
		for (int i = 0; i < 10; i++) {
			cr_assert_eq(weir_callable_run(callable, tensors, results, WEIR_NO_DEADLINE, NULL, NULL, NULL), WEIR_OK);
			cr_expect_eq(kit_f32_at(results[0], 0), 3.0f);
			cr_expect_eq(kit_f32_at(results[1], 0), 9.0f);
			cr_expect_eq(results[2], tensors[1], "a fed output may be fetched");
			for (int k = 0; k < 3; k++)
				weir_tensor_release(results[k]);
		}
		weir_tensor_release(tensors[0]);
		weir_tensor_release(tensors[1]);
		weir_callable_release(callable);
		kit_end(session, graph);
	}
}

Test(callable, bad_arguments_are_refused)
{
	struct weir_callable_options options = {WEIR_CALLABLE_OPTIONS_INIT, .flags = 64};
	weir_graph *graph = kit_graph();
	weir_graph *other = kit_graph();
	weir_session *session = kit_session(graph, 1);
	weir_output x = kit_placeholder(graph, "x", WEIR_F32, scalar), y;
	weir_output foreign = kit_placeholder(other, "x", WEIR_F32, scalar);
	weir_callable *callable = NULL;
	weir_node *none = NULL;

	cr_assert_eq(weir_op_square(graph, NULL, x, &y, NULL), WEIR_OK);
	cr_expect_eq(weir_session_compile(NULL, &x, 1, &y, 1, NULL, 0, NULL, &callable, NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_session_compile(session, NULL, 1, &y, 1, NULL, 0, NULL, &callable, NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_session_compile(session, &x, 1, NULL, 1, NULL, 0, NULL, &callable, NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_session_compile(session, &x, 1, &y, 1, NULL, 1, NULL, &callable, NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_session_compile(session, &x, 1, &y, 1, &none, 1, NULL, &callable, NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_session_compile(session, &x, 1, &y, 1, NULL, 0, NULL, NULL, NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_session_compile(session, &foreign, 1, &y, 1, NULL, 0, NULL, &callable, NULL),
	             WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_session_compile(session, NULL, 0, &y, 1, NULL, 0, NULL, &callable, NULL), WEIR_INVALID_ARGUMENT,
	             "the placeholder is not fed");
	cr_expect_eq(weir_session_compile(session, &x, 1, &y, 1, NULL, 0, &options, &callable, NULL),
	             WEIR_INVALID_ARGUMENT);
	options = (struct weir_callable_options){.struct_size = 3};
	cr_expect_eq(weir_session_compile(session, &x, 1, &y, 1, NULL, 0, &options, &callable, NULL),
	             WEIR_INVALID_ARGUMENT);
	cr_expect_null(callable);
	weir_callable_release(NULL);
	kit_end(session, graph);
	cr_assert_eq(weir_graph_destroy(other, NULL), WEIR_OK);
}

/* What a run of y = x * x returns; the result must not have been written. */
static enum weir_status try_to_run(weir_callable *callable, weir_tensor *x, const struct weir_run_options *options,
                                   weir_error *error)
{
	weir_tensor *result = NULL;
	enum weir_status status = weir_callable_run(callable, &x, &result, WEIR_NO_DEADLINE, NULL, options, error);

	cr_expect(status == WEIR_OK ? result != NULL : result == NULL);
	weir_tensor_release(result);
	return status;
}

Test(callable, a_run_that_is_refused_runs_nothing)
{
	weir_graph *graph = kit_graph();
	weir_session *session = kit_session(graph, 1);
	weir_output x = kit_placeholder(graph, "x", WEIR_F32, scalar), y;
	weir_tensor *good = kit_f32(3), *bad = kit_i64(3), *result = NULL;
	struct weir_run_options options = {WEIR_RUN_OPTIONS_INIT, .flags = 64};
	weir_callable *callable;
	weir_error error;

	cr_assert_eq(weir_op_square(graph, NULL, x, &y, NULL), WEIR_OK);
	callable = compile(session, &x, 1, &y, 1, NULL);
	cr_expect_eq(try_to_run(NULL, good, NULL, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(try_to_run(callable, bad, NULL, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_not_null(strstr(error.message, "\"x\" must be f32 [], got i64 []"), "%s", error.message);
	cr_expect_eq(try_to_run(callable, NULL, NULL, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_callable_run(callable, NULL, &result, WEIR_NO_DEADLINE, NULL, NULL, NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_callable_run(callable, &good, NULL, WEIR_NO_DEADLINE, NULL, NULL, NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(try_to_run(callable, good, &options, &error), WEIR_INVALID_ARGUMENT);
	options.flags = WEIR_RUN_ON_CALLER;
	cr_assert_eq(
		weir_pool_create(&(struct weir_pool_options){WEIR_POOL_OPTIONS_INIT, .threads = 1}, &options.pool, NULL),
		WEIR_OK);
	cr_expect_eq(try_to_run(callable, good, &options, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_callable_run(callable, &good, &result, 0, NULL, NULL, &error), WEIR_DEADLINE_EXCEEDED);
	cr_expect_null(result);
	cr_expect_eq(try_to_run(callable, good, NULL, &error), WEIR_OK);
	weir_callable_release(callable);
	weir_tensor_release(good);
	weir_tensor_release(bad);
	kit_end(session, graph);
	cr_assert_eq(weir_pool_destroy(options.pool, NULL), WEIR_OK);
}

Test(callable, a_session_does_not_go_before_its_callables)
{
	const weir_error cause = {WEIR_DATA_LOSS, "lunch"};
	weir_graph *graph = kit_graph();
	weir_session *session = kit_session(graph, 1);
	weir_output x = kit_placeholder(graph, "x", WEIR_F32, scalar), y;
	weir_callable *callable, *late = NULL;
	weir_tensor *three = kit_f32(3);
	weir_error error;

	cr_assert_eq(weir_op_square(graph, NULL, x, &y, NULL), WEIR_OK);
	callable = compile(session, &x, 1, &y, 1, NULL);
	cr_expect_eq(weir_session_destroy(session, &error), WEIR_FAILED_PRECONDITION);
	cr_expect_not_null(strstr(error.message, "1 callable or run of it is not released"), "%s", error.message);
	cr_expect_eq(try_to_run(callable, three, NULL, &error), WEIR_OK, "a destroy that is refused does not close");
	cr_assert_eq(weir_session_close(session, &cause), WEIR_OK);
	cr_expect_eq(try_to_run(callable, three, NULL, &error), WEIR_FAILED_PRECONDITION);
	cr_expect_not_null(strstr(error.message, "lunch"), "%s", error.message);
	cr_expect_eq(weir_session_compile(session, &x, 1, &y, 1, NULL, 0, NULL, &late, &error), WEIR_FAILED_PRECONDITION);
	cr_expect_null(late);
	weir_callable_release(callable);
	weir_tensor_release(three);
	kit_end(session, graph);
}

Test(callable, runs_one_after_the_other_allocate_only_what_they_return)
{
	struct failing_allocator memory = {0};
	weir_allocator allocator = failing_allocator_hooks(&memory);
	struct weir_session_options options = {WEIR_SESSION_OPTIONS_INIT, .flags = WEIR_SESSION_NO_THREADS,
	                                       .allocator = &allocator};
	weir_graph *graph = kit_graph();
	weir_session *session = NULL;
	weir_output x = kit_placeholder(graph, "x", WEIR_F32, scalar), y;
	weir_callable *squares, *nothing;
	weir_tensor *three = kit_f32(3);
	weir_node *node;
	size_t asked;

	cr_assert_eq(weir_session_create(graph, &options, &session, NULL), WEIR_OK);
	cr_assert_eq(weir_op_square(graph, NULL, x, &y, NULL), WEIR_OK);
	cr_assert_eq(weir_op_no_op(graph, NULL, &node, NULL), WEIR_OK);
	squares = compile(session, &x, 1, &y, 1, NULL);
	nothing = compile(session, NULL, 0, NULL, 0, node);
	cr_assert_eq(try_to_run(squares, three, NULL, NULL), WEIR_OK);
	cr_assert_eq(weir_callable_run(nothing, NULL, NULL, WEIR_NO_DEADLINE, NULL, NULL, NULL), WEIR_OK);
	asked = weiri_load_relaxed(&memory.asked);
	cr_assert_eq(try_to_run(squares, three, NULL, NULL), WEIR_OK);
	cr_expect_eq(weiri_load_relaxed(&memory.asked), asked + 1, "the result");
	cr_assert_eq(weir_callable_run(nothing, NULL, NULL, WEIR_NO_DEADLINE, NULL, NULL, NULL), WEIR_OK);
	cr_expect_eq(weiri_load_relaxed(&memory.asked), asked + 1, "nothing");
	weir_callable_release(squares);
	weir_callable_release(nothing);
	weir_tensor_release(three);
	kit_end(session, graph);
	cr_expect_str_eq(failing_allocator_verdict(&memory), "balanced");
}

enum { CALLERS = 4, RUNS = 200 };

struct caller {
	weir_callable *callable;
	float number;
	int wrong;
	enum weir_status last;
};

/* Feeds its own numbers, and must get their squares back. */
static void *call_often(void *context)
{
	struct caller *caller = context;

	for (int i = 0; i < RUNS && caller->last == WEIR_OK; i++) {
		float number = caller->number + (float)i;
		float square = number * number;
		weir_tensor *value = NULL, *result = NULL;

		caller->last = weir_tensor_scalar_f32(number, &value);
		if (caller->last == WEIR_OK)
			caller->last = weir_callable_run(caller->callable, &value, &result, WEIR_NO_DEADLINE, NULL, NULL, NULL);
		if (caller->last == WEIR_OK)
			caller->wrong += *(const float *)weir_tensor_data(result) != square;
		weir_tensor_release(value);
		weir_tensor_release(result);
	}
	return NULL;
}

Test(callable, many_threads_run_one_callable_at_once)
{
	weir_graph *graph = kit_graph();
	weir_session *session = kit_session(graph, 2);
	weir_output x = kit_placeholder(graph, "x", WEIR_F32, scalar), y;
	struct caller callers[CALLERS];
	pthread_t threads[CALLERS];
	weir_callable *callable;

	cr_assert_eq(weir_op_square(graph, NULL, x, &y, NULL), WEIR_OK);
	callable = compile(session, &x, 1, &y, 1, NULL);
	for (int i = 0; i < CALLERS; i++) {
		callers[i] = (struct caller){callable, (float)(1000 * i), 0, WEIR_OK};
		cr_assert_eq(pthread_create(&threads[i], NULL, call_often, &callers[i]), 0);
	}
	for (int i = 0; i < CALLERS; i++) {
		cr_assert_eq(pthread_join(threads[i], NULL), 0);
		cr_expect_eq(callers[i].last, WEIR_OK);
		cr_expect_eq(callers[i].wrong, 0);
	}
	weir_callable_release(callable);
	kit_end(session, graph);
}

Test(callable, the_sessions_limit_bounds_a_run)
{
	struct weir_session_options options = {WEIR_SESSION_OPTIONS_INIT, .threads = 1, .operation_timeout_ns = 1000000};
	weir_tensor_queue *queue = kit_queue("q", 1, WEIR_F32, &scalar);
	weir_error error = {WEIR_OK, ""};

	/* On a busy machine a short limit may pass before the dequeue begins. */
	for (; strstr(error.message, "had waited") == NULL; options.operation_timeout_ns *= 2) {
		weir_graph *graph = kit_graph();
		weir_session *session = NULL;
		weir_callable *callable;
		weir_tensor *result = NULL;
		weir_output taken;

		cr_assert(options.operation_timeout_ns < KIT_PATIENCE_NS, "%s", error.message);
		cr_assert_eq(weir_op_dequeue(graph, "take", queue, &taken, 1, NULL, NULL), WEIR_OK);
		cr_assert_eq(weir_session_create(graph, &options, &session, NULL), WEIR_OK);
		callable = compile(session, NULL, 0, &taken, 1, NULL);
		cr_assert_eq(weir_callable_run(callable, NULL, &result, WEIR_NO_DEADLINE, NULL, NULL, &error),
		             WEIR_DEADLINE_EXCEEDED);
		cr_expect_null(result);
		weir_callable_release(callable);
		kit_end(session, graph);
	}
	cr_expect_not_null(strstr(error.message, "dequeue \"take\" of queue \"q\" had waited"), "%s", error.message);
	kit_queue_end(queue);
}

/* -- where it runs ----------------------------------------------------------------------------- */

struct places {
	pthread_t by[4];
	struct weiri_serial calls;
};

static enum weir_status note_the_thread(void *context, const struct weir_kernel_call *call, weir_error *error)
{
	struct places *places = context;

	(void)error;
	places->by[weiri_serial_take(&places->calls)] = pthread_self();
	return call->output_count == 0 ? WEIR_OK : weir_tensor_scalar_f32(1, &call->outputs[0]);
}

static void *enqueue_one(void *context)
{
	weir_tensor *one = NULL;

	if (weir_tensor_scalar_f32(1, &one) == WEIR_OK)
		(void)weir_tensor_queue_enqueue(context, &one, 1, WEIR_NO_DEADLINE, NULL, NULL);
	weir_tensor_release(one);
	return NULL;
}

/* Kernels before and after a wait, and beside it, although the session has workers. */
Test(callable, a_run_on_its_caller_stays_there)
{
	struct weir_run_options options = {WEIR_RUN_OPTIONS_INIT, .flags = WEIR_RUN_ON_CALLER};
	weir_tensor_queue *queue = kit_queue("q", 1, WEIR_F32, &scalar);
	weir_graph *graph = kit_graph();
	weir_session *session = kit_session(graph, 2);
	struct places places;
	weir_node *nodes[3];
	weir_callable *callable;
	weir_output taken;
	pthread_t thread;
	weir_error error;

	weiri_serial_init(&places.calls);
	cr_assert_eq(weir_op_dequeue(graph, "take", queue, &taken, 1, NULL, NULL), WEIR_OK);
	for (int i = 0; i < 3; i++)
		cr_assert_eq(weir_op_kernel(graph, NULL, KIT_KERNEL(note_the_thread), &places, i == 1 ? &taken : NULL, i == 1,
		                            NULL, 0, NULL, 0, NULL, &nodes[i], NULL),
		             WEIR_OK);
	cr_assert_eq(weir_graph_add_control(graph, nodes[0], taken.node, NULL), WEIR_OK);
	cr_assert_eq(weir_session_compile(session, NULL, 0, NULL, 0, nodes, 3, NULL, &callable, NULL), WEIR_OK);
	cr_assert_eq(pthread_create(&thread, NULL, enqueue_one, queue), 0);
	cr_expect_eq(weir_callable_run(callable, NULL, NULL, weir_deadline_in(KIT_PATIENCE_NS), NULL, &options, &error),
	             WEIR_OK, "%s", error.message);
	cr_expect_eq(weiri_serial_take(&places.calls), 3);
	for (int i = 0; i < 3; i++)
		cr_expect(pthread_equal(places.by[i], pthread_self()), "kernel %d", i);
	cr_assert_eq(pthread_join(thread, NULL), 0);
	weir_callable_release(callable);
	kit_end(session, graph);
	kit_queue_end(queue);
}

Test(callable, a_wait_on_the_caller_ends_at_the_deadline)
{
	struct weir_run_options options = {WEIR_RUN_OPTIONS_INIT, .flags = WEIR_RUN_ON_CALLER};
	weir_tensor_queue *queue = kit_queue("q", 1, WEIR_F32, &scalar);
	weir_graph *graph = kit_graph();
	weir_session *session = kit_session(graph, 1);
	weir_callable *callable;
	weir_tensor *result = NULL;
	weir_output taken;

	cr_assert_eq(weir_op_dequeue(graph, "take", queue, &taken, 1, NULL, NULL), WEIR_OK);
	callable = compile(session, NULL, 0, &taken, 1, NULL);
	cr_expect_eq(weir_callable_run(callable, NULL, &result, weir_deadline_in(1000000), NULL, &options, NULL),
	             WEIR_DEADLINE_EXCEEDED);
	cr_expect_null(result);
	weir_callable_release(callable);
	kit_end(session, graph);
	kit_queue_end(queue);
}

/* The pool has no workers, so its tasks run where it is helped: here, although the session has some. */
Test(callable, tasks_go_to_the_pool_of_the_run)
{
	struct weir_pool_options pool_options = {WEIR_POOL_OPTIONS_INIT, .flags = WEIR_POOL_NO_THREADS};
	struct weir_run_options options = {WEIR_RUN_OPTIONS_INIT};
	weir_graph *graph = kit_graph();
	weir_session *session = kit_session(graph, 2);
	struct places places;
	weir_callable *callable;
	weir_node *node;

	weiri_serial_init(&places.calls);
	cr_assert_eq(weir_pool_create(&pool_options, &options.pool, NULL), WEIR_OK);
	cr_assert_eq(
		weir_op_kernel(graph, NULL, KIT_KERNEL(note_the_thread), &places, NULL, 0, NULL, 0, NULL, 0, NULL, &node, NULL),
		WEIR_OK);
	callable = compile(session, NULL, 0, NULL, 0, node);
	cr_expect_eq(weir_callable_run(callable, NULL, NULL, WEIR_NO_DEADLINE, NULL, &options, NULL), WEIR_OK);
	cr_expect_eq(weiri_serial_take(&places.calls), 1);
	cr_expect(pthread_equal(places.by[0], pthread_self()));
	weir_callable_release(callable);
	kit_end(session, graph);
	cr_assert_eq(weir_pool_destroy(options.pool, NULL), WEIR_OK);
}

/* -- started runs ------------------------------------------------------------------------------ */

struct outcome {
	struct weiri_latch told;
	int times;
	enum weir_status status;
	size_t count;
	float value;
	char message[sizeof(((weir_error *)0)->message)];
};

static void note_the_outcome(void *context, enum weir_status status, const weir_error *error,
                             weir_tensor *const results[], size_t count)
{
	struct outcome *outcome = context;

	outcome->times++;
	outcome->status = status;
	outcome->count = count;
	outcome->value = count != 0 ? *(const float *)weir_tensor_data(results[0]) : 0;
	outcome->message[0] = '\0';
	if (error != NULL)
		(void)strcpy(outcome->message, error->message);
	for (size_t i = 0; i < count; i++)
		weir_tensor_release(results[i]);
	weiri_latch_set(&outcome->told);
}

static struct outcome no_outcome(void)
{
	struct outcome outcome = {.status = WEIR_UNIMPLEMENTED};

	weiri_latch_init(&outcome.told);
	return outcome;
}

Test(callable, a_started_run_that_need_not_wait_ends_inside_the_start)
{
	weir_graph *graph = kit_graph();
	weir_session *session = kit_session(graph, 1);
	weir_output x = kit_placeholder(graph, "x", WEIR_F32, scalar), y;
	struct outcome outcome = no_outcome();
	weir_tensor *three = kit_f32(3), *bad = kit_i64(3);
	weir_callable *callable;
	weir_run *run = NULL;

	cr_assert_eq(weir_op_square(graph, NULL, x, &y, NULL), WEIR_OK);
	callable = compile(session, &x, 1, &y, 1, NULL);
	cr_expect_eq(weir_callable_start(callable, &bad, NULL, NULL, note_the_outcome, &outcome, &run, NULL),
	             WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_callable_start(callable, NULL, NULL, NULL, note_the_outcome, &outcome, &run, NULL),
	             WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_callable_start(callable, &three, NULL, NULL, NULL, NULL, &run, NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_callable_start(NULL, &three, NULL, NULL, note_the_outcome, &outcome, &run, NULL),
	             WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_callable_start(callable, &three, NULL,
	                                 &(struct weir_run_options){WEIR_RUN_OPTIONS_INIT, .flags = WEIR_RUN_ON_CALLER},
	                                 note_the_outcome, &outcome, &run, NULL),
	             WEIR_INVALID_ARGUMENT, "no caller waits");
	cr_expect_null(run);
	cr_expect_eq(outcome.times, 0);
	cr_assert_eq(weir_callable_start(callable, &three, NULL, NULL, note_the_outcome, &outcome, &run, NULL), WEIR_OK);
	cr_expect_eq(outcome.times, 1);
	cr_expect_eq(outcome.status, WEIR_OK);
	cr_expect_eq(outcome.value, 9.0f);
	weir_run_cancel(run, NULL);
	weir_run_release(run);
	weir_run_cancel(NULL, NULL);
	weir_run_release(NULL);
	weir_callable_release(callable);
	weir_tensor_release(three);
	weir_tensor_release(bad);
	kit_end(session, graph);
	cr_expect_eq(outcome.times, 1, "a late cancel changes nothing");
}

/* The callable and the handle go before the run ends. */
Test(callable, a_started_run_waits_without_a_thread)
{
	weir_tensor_queue *queue = kit_queue("q", 1, WEIR_F32, &scalar);
	weir_graph *graph = kit_graph();
	weir_session *session = kit_session(graph, 1);
	struct outcome outcomes[2] = {no_outcome(), no_outcome()};
	weir_callable *callable;
	weir_output taken, square;
	weir_run *run;

	cr_assert_eq(weir_op_dequeue(graph, "take", queue, &taken, 1, NULL, NULL), WEIR_OK);
	cr_assert_eq(weir_op_square(graph, NULL, taken, &square, NULL), WEIR_OK);
	callable = compile(session, NULL, 0, &square, 1, NULL);
	cr_assert_eq(weir_callable_start(callable, NULL, NULL, NULL, note_the_outcome, &outcomes[0], NULL, NULL), WEIR_OK);
	cr_assert_eq(weir_callable_start(callable, NULL, NULL, NULL, note_the_outcome, &outcomes[1], &run, NULL), WEIR_OK);
	cr_expect_eq(outcomes[0].times + outcomes[1].times, 0);
	weir_run_release(run);
	weir_callable_release(callable);
	for (int i = 0; i < 2; i++) {
		(void)enqueue_one(queue);
		kit_wait_for(is_set, &outcomes[i].told, "the run that began to wait first");
		cr_expect_eq(outcomes[i].status, WEIR_OK);
		cr_expect_eq(outcomes[i].value, 1.0f);
		cr_expect_eq(outcomes[i].times, 1);
	}
	kit_end(session, graph);
	kit_queue_end(queue);
}

Test(callable, a_started_run_is_cancelled_by_handle_token_or_close)
{
	const weir_error cause = {WEIR_DATA_LOSS, "the moon set"};

	for (int way = 0; way < 3; way++) {
		weir_tensor_queue *queue = kit_queue("q", 1, WEIR_F32, &scalar);
		weir_graph *graph = kit_graph();
		weir_session *session = kit_session(graph, 1);
		struct outcome outcome = no_outcome();
		weir_callable *callable;
		weir_cancel *token;
		weir_output taken;
		weir_run *run;

		cr_assert_eq(weir_cancel_create(NULL, &token, NULL), WEIR_OK);
		cr_assert_eq(weir_op_dequeue(graph, "take", queue, &taken, 1, NULL, NULL), WEIR_OK);
		callable = compile(session, NULL, 0, &taken, 1, NULL);
		cr_assert_eq(weir_callable_start(callable, NULL, token, NULL, note_the_outcome, &outcome, &run, NULL), WEIR_OK);
		if (way == 0)
			weir_run_cancel(run, &cause);
		else if (way == 1)
			cr_expect(weir_cancel_fire(token, &cause));
		else
			cr_expect_eq(weir_session_close(session, &cause), WEIR_OK);
		kit_wait_for(is_set, &outcome.told, "the end");
		cr_expect_eq(outcome.status, way == 2 ? WEIR_CANCELLED : WEIR_DATA_LOSS, "way %d", way);
		cr_expect_not_null(strstr(outcome.message, "the moon set"), "%s", outcome.message);
		cr_expect_eq(outcome.count, 0);
		weir_run_release(run);
		weir_callable_release(callable);
		weir_cancel_release(token);
		kit_end(session, graph);
		kit_queue_end(queue);
	}
}

struct pool_ending {
	weir_pool *pool;
	struct weiri_latch ended;
};

static void *destroy_the_pool(void *context)
{
	struct pool_ending *ending = context;

	cr_assert_eq(weir_pool_destroy(ending->pool, NULL), WEIR_OK);
	weiri_latch_set(&ending->ended);
	return NULL;
}

/* An enqueue of another thread lets the run go on when the destroy of its pool has begun. */
Test(callable, a_pool_stays_until_the_runs_in_it_have_ended)
{
	weir_tensor_queue *queue = kit_queue("q", 1, WEIR_F32, &scalar);
	weir_graph *graph = kit_graph();
	weir_session *session = kit_session(graph, 1);
	struct weir_pool_options pool_options = {WEIR_POOL_OPTIONS_INIT, .threads = 1};
	struct weir_run_options options = {WEIR_RUN_OPTIONS_INIT};
	struct outcome outcome = no_outcome();
	struct pool_ending ending;
	weir_callable *callable;
	weir_output taken, square;
	pthread_t thread;
	weir_run *run;

	weiri_latch_init(&ending.ended);
	cr_assert_eq(weir_pool_create(&pool_options, &options.pool, NULL), WEIR_OK);
	ending.pool = options.pool;
	cr_assert_eq(weir_op_dequeue(graph, "take", queue, &taken, 1, NULL, NULL), WEIR_OK);
	cr_assert_eq(weir_op_square(graph, NULL, taken, &square, NULL), WEIR_OK);
	callable = compile(session, NULL, 0, &square, 1, NULL);
	cr_assert_eq(weir_callable_start(callable, NULL, NULL, &options, note_the_outcome, &outcome, &run, NULL), WEIR_OK);
	cr_assert_eq(pthread_create(&thread, NULL, destroy_the_pool, &ending), 0);
	while (weiri_load_relaxed(&ending.pool->stopping) == 0) {
		cr_assert_not(weiri_latch_is_set(&ending.ended));
		(void)sched_yield();
	}
	cr_expect_not(weiri_latch_is_set(&ending.ended));
	(void)enqueue_one(queue);
	cr_assert_eq(pthread_join(thread, NULL), 0);
	cr_expect_eq(outcome.times, 1);
	cr_expect_eq(outcome.value, 1.0f);
	weir_run_release(run); /* its memory outlasts the pool */
	weir_callable_release(callable);
	kit_end(session, graph);
	kit_queue_end(queue);
}

/* Without workers the program runs the tasks, in a loop of its own. */
Test(callable, a_pool_without_workers_is_helped_along)
{
	struct weir_pool_options pool_options = {WEIR_POOL_OPTIONS_INIT, .flags = WEIR_POOL_NO_THREADS};
	struct weir_run_options options = {WEIR_RUN_OPTIONS_INIT};
	weir_graph *graph = kit_graph();
	weir_session *session = kit_session(graph, 0);
	struct outcome outcome = no_outcome();
	struct places places;
	weir_callable *callable;
	weir_output out;
	weir_error error;

	weiri_serial_init(&places.calls);
	cr_assert_eq(weir_pool_create(&pool_options, &options.pool, NULL), WEIR_OK);
	cr_assert_eq(weir_op_kernel(graph, NULL, KIT_KERNEL(note_the_thread), &places, NULL, 0, &f32_scalar, 1, NULL, 0,
	                            &out, NULL, NULL),
	             WEIR_OK);
	callable = compile(session, NULL, 0, &out, 1, NULL);
	cr_expect_eq(weir_callable_start(callable, NULL, NULL, NULL, note_the_outcome, &outcome, NULL, &error),
	             WEIR_FAILED_PRECONDITION);
	cr_expect_not_null(strstr(error.message, "no workers"), "%s", error.message);
	cr_assert_eq(weir_callable_start(callable, NULL, NULL, &options, note_the_outcome, &outcome, NULL, NULL), WEIR_OK);
	cr_expect_eq(outcome.times, 0, "a kernel does not run inside the start");
	cr_expect_eq(weir_pool_help(options.pool, SIZE_MAX), 1);
	cr_expect_eq(outcome.times, 1);
	cr_expect_eq(outcome.value, 1.0f);
	weir_callable_release(callable);
	kit_end(session, graph);
	cr_assert_eq(weir_pool_destroy(options.pool, NULL), WEIR_OK);
}

struct loop {
	weir_callable *callable;
	int left;
	int depth, deepest;
	enum weir_status last;
};

static void start_the_next(void *context, enum weir_status status, const weir_error *error,
                           weir_tensor *const results[], size_t count)
{
	struct loop *loop = context;

	(void)error, (void)results, (void)count;
	loop->depth++;
	loop->deepest = loop->depth > loop->deepest ? loop->depth : loop->deepest;
	if (status == WEIR_OK && --loop->left > 0)
		loop->last = weir_callable_start(loop->callable, NULL, NULL, NULL, start_the_next, loop, NULL, NULL);
	loop->depth--;
}

Test(callable, completions_start_runs_without_using_up_the_stack)
{
	weir_graph *graph = kit_graph();
	weir_session *session = kit_session(graph, 1);
	struct loop loop = {.left = 1000, .last = WEIR_OK};
	weir_node *node;

	cr_assert_eq(weir_op_no_op(graph, NULL, &node, NULL), WEIR_OK);
	loop.callable = compile(session, NULL, 0, NULL, 0, node);
	cr_assert_eq(weir_callable_start(loop.callable, NULL, NULL, NULL, start_the_next, &loop, NULL, NULL), WEIR_OK);
	cr_expect_eq(loop.left, 0);
	cr_expect_eq(loop.deepest, 1);
	cr_expect_eq(loop.last, WEIR_OK);
	weir_callable_release(loop.callable);
	kit_end(session, graph);
}

static void end_the_thread(void *context, enum weir_status status, const weir_error *error,
                           weir_tensor *const results[], size_t count)
{
	(void)status, (void)error, (void)results, (void)count;
	weiri_latch_set(context);
	pthread_exit(NULL);
}

struct ending {
	weir_callable *callable;
	struct weiri_latch told;
};

static void *start_and_end(void *context)
{
	struct ending *ending = context;

	(void)weir_callable_start(ending->callable, NULL, NULL, NULL, end_the_thread, &ending->told, NULL, NULL);
	return NULL;
}

Test(callable, a_completion_may_end_its_thread)
{
	weir_graph *graph = kit_graph();
	weir_session *session = kit_session(graph, 1);
	struct ending ending;
	pthread_t thread;
	weir_node *node;

	weiri_latch_init(&ending.told);
	cr_assert_eq(weir_op_no_op(graph, NULL, &node, NULL), WEIR_OK);
	ending.callable = compile(session, NULL, 0, NULL, 0, node);
	cr_assert_eq(pthread_create(&thread, NULL, start_and_end, &ending), 0);
	cr_assert_eq(pthread_join(thread, NULL), 0);
	cr_expect(weiri_latch_is_set(&ending.told));
	weir_callable_release(ending.callable);
	kit_end(session, graph);
}

/* -- a kernel that outlives its run ------------------------------------------------------------ */

struct stubborn {
	struct weiri_latch started, let_go, ended;
};

static enum weir_status be_stubborn(void *context, const struct weir_kernel_call *call, weir_error *error)
{
	struct stubborn *stubborn = context;

	(void)call, (void)error;
	weiri_latch_set(&stubborn->started);
	while (!weiri_latch_is_set(&stubborn->let_go))
		(void)sched_yield();
	weiri_latch_set(&stubborn->ended);
	return WEIR_OK;
}

static struct stubborn stubborn_kernel(void)
{
	struct stubborn stubborn;

	weiri_latch_init(&stubborn.started);
	weiri_latch_init(&stubborn.let_go);
	weiri_latch_init(&stubborn.ended);
	return stubborn;
}

Test(callable, a_callable_stays_for_a_kernel_that_outlives_its_run)
{
	struct stubborn stubborn = stubborn_kernel();
	weir_graph *graph = kit_graph();
	weir_session *session = kit_session(graph, 1);
	weir_callable *callable;
	weir_node *node;
	weir_error error = {.message = ""};

	cr_assert_eq(weir_op_kernel(graph, "stubborn", KIT_KERNEL(be_stubborn), &stubborn, NULL, 0, NULL, 0, NULL, 0, NULL,
	                            &node, NULL),
	             WEIR_OK);
	callable = compile(session, NULL, 0, NULL, 0, node);
	for (uint64_t length_ns = 20000000; !weiri_latch_is_set(&stubborn.started); length_ns *= 2) {
		cr_assert(length_ns < KIT_PATIENCE_NS);
		cr_expect_eq(weir_callable_run(callable, NULL, NULL, weir_deadline_in(length_ns), NULL, NULL, &error),
		             WEIR_DEADLINE_EXCEEDED);
	}
	weir_callable_release(callable);
	cr_expect_not(weiri_latch_is_set(&stubborn.ended));
	weiri_latch_set(&stubborn.let_go);
	kit_end(session, graph);
	cr_expect(weiri_latch_is_set(&stubborn.ended), "destroy waits for the kernel");
}

Test(callable, a_started_run_tells_when_its_kernels_have_ended)
{
	struct stubborn stubborn = stubborn_kernel();
	struct outcome outcome = no_outcome();
	weir_graph *graph = kit_graph();
	weir_session *session = kit_session(graph, 1);
	weir_callable *callable;
	weir_node *nodes[2];
	weir_run *run;

	cr_assert_eq(weir_op_kernel(graph, "stubborn", KIT_KERNEL(be_stubborn), &stubborn, NULL, 0, NULL, 0, NULL, 0, NULL,
	                            &nodes[0], NULL),
	             WEIR_OK);
	cr_assert_eq(weir_op_no_op(graph, NULL, &nodes[1], NULL), WEIR_OK);
	cr_assert_eq(weir_graph_add_control(graph, nodes[0], nodes[1], NULL), WEIR_OK);
	callable = compile(session, NULL, 0, NULL, 0, nodes[1]);
	cr_assert_eq(weir_callable_start(callable, NULL, NULL, NULL, note_the_outcome, &outcome, &run, NULL), WEIR_OK);
	kit_wait_for(is_set, &stubborn.started, "the kernel to begin");
	weir_run_cancel(run, NULL);
	weir_run_release(run);
	weir_callable_release(callable);
	cr_expect_not(weiri_latch_is_set(&outcome.told));
	weiri_latch_set(&stubborn.let_go);
	kit_wait_for(is_set, &outcome.told, "the end");
	cr_expect_eq(outcome.status, WEIR_CANCELLED);
	kit_end(session, graph);
}

/* -- failing allocations ----------------------------------------------------------------------- */

struct survivor {
	weir_graph *graph;
	weir_output x, out;
	weir_node *kernel;
};

static enum weir_status do_nothing(void *context, const struct weir_kernel_call *call, weir_error *error)
{
	(void)context, (void)call, (void)error;
	return WEIR_OK;
}

static enum weir_status use_a_callable(weir_session *session, const struct survivor *survivor)
{
	weir_tensor *value = kit_f32(3), *result = NULL;
	struct outcome outcome = no_outcome();
	weir_callable *callable = NULL;
	weir_node *target = survivor->kernel;
	weir_run *run = NULL;
	enum weir_status status =
		weir_session_compile(session, &survivor->x, 1, &survivor->out, 1, &target, 1, NULL, &callable, NULL);

	if (status == WEIR_OK)
		status = weir_callable_run(callable, &value, &result, WEIR_NO_DEADLINE, NULL, NULL, NULL);
	weir_tensor_release(result);
	if (status == WEIR_OK)
		status = weir_callable_start(callable, &value, NULL, NULL, note_the_outcome, &outcome, &run, NULL);
	if (status == WEIR_OK) {
		kit_wait_for(is_set, &outcome.told, "the end");
		status = outcome.status;
	}
	weir_run_release(run);
	weir_callable_release(callable);
	weir_tensor_release(value);
	return status;
}

static enum weir_status use_a_session(const weir_allocator *allocator, void *context)
{
	struct weir_session_options options = {WEIR_SESSION_OPTIONS_INIT, .threads = 1, .allocator = allocator};
	const struct survivor *survivor = context;
	weir_session *session;
	enum weir_status status = weir_session_create(survivor->graph, &options, &session, NULL);

	if (status != WEIR_OK)
		return status;
	status = use_a_callable(session, survivor);
	cr_assert_eq(weir_session_destroy(session, NULL), WEIR_OK);
	return status;
}

Test(callable, each_allocation_may_fail)
{
	weir_tensor_queue *queue = kit_queue("q", 100000, WEIR_F32, NULL);
	struct survivor survivor = {.graph = kit_graph()};
	weir_output square;
	weir_node *put;

	survivor.x = kit_placeholder(survivor.graph, "x", WEIR_F32, scalar);
	cr_assert_eq(weir_op_square(survivor.graph, NULL, survivor.x, &square, NULL), WEIR_OK);
	cr_assert_eq(weir_op_enqueue(survivor.graph, NULL, queue, &square, 1, &put, NULL), WEIR_OK);
	cr_assert_eq(weir_op_dequeue(survivor.graph, NULL, queue, &survivor.out, 1, NULL, NULL), WEIR_OK);
	cr_assert_eq(weir_graph_add_control(survivor.graph, put, survivor.out.node, NULL), WEIR_OK);
	cr_assert_eq(weir_op_kernel(survivor.graph, NULL, KIT_KERNEL(do_nothing), NULL, NULL, 0, NULL, 0, NULL, 0, NULL,
	                            &survivor.kernel, NULL),
	             WEIR_OK);
	cr_expect_gt(fail_each_allocation_in_time(use_a_session, &survivor), 8);
	cr_assert_eq(weir_graph_destroy(survivor.graph, NULL), WEIR_OK);
	kit_queue_end(queue);
}
