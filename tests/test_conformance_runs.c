/*
 * test_conformance_runs.c - runs that are fed and fetched in several calls, and how runs end: the rows
 * PRN and DIR.
 */
#include <pthread.h>
#include <stdatomic.h>

#include "graph_kit.h"
#include "run/countdown.h"

static const weir_shape scalar = {.rank = 0, .dims = {0}};

/* -- open runs --------------------------------------------------------------------------------- */

/* r1 = a + b, r2 = r1 * c: all three are fed, both results fetched. */
struct stages {
	weir_graph *graph;
	weir_session *session;
	weir_output feeds[3], fetches[2];
	weir_callable *callable;
};

static weir_output sum_of(weir_graph *graph, weir_output a, weir_output b)
{
	weir_output out;

	cr_assert_eq(weir_op_add(graph, NULL, a, b, &out, NULL), WEIR_OK);
	return out;
}

static enum weir_status compile_late(weir_session *session, const weir_output feeds[], size_t feed_count,
                                     const weir_output fetches[], size_t fetch_count, weir_callable **callable,
                                     weir_error *error)
{
	struct weir_callable_options options = {WEIR_CALLABLE_OPTIONS_INIT, .flags = WEIR_CALLABLE_LATE_FEEDS};

	return weir_session_compile(session, feeds, feed_count, fetches, fetch_count, NULL, 0, &options, callable, error);
}

static struct stages open_stages(void)
{
	static const char *const names[] = {"a", "b", "c"};
	struct stages s;
	weir_error error;

	s.graph = kit_graph();
	s.session = kit_session(s.graph, 0);
	for (int i = 0; i < 3; i++)
		s.feeds[i] = kit_placeholder(s.graph, names[i], WEIR_F32, scalar);
	s.fetches[0] = sum_of(s.graph, s.feeds[0], s.feeds[1]);
	cr_assert_eq(weir_op_mul(s.graph, NULL, s.fetches[0], s.feeds[2], &s.fetches[1], NULL), WEIR_OK);
	cr_assert_eq(compile_late(s.session, s.feeds, 3, s.fetches, 2, &s.callable, &error), WEIR_OK, "%s", error.message);
	return s;
}

static void close_stages(struct stages *s)
{
	weir_callable_release(s->callable);
	kit_end(s->session, s->graph);
}

static void give(weir_run *run, size_t i, float value)
{
	weir_error error;

	cr_assert_eq(kit_run_feed_f32(run, i, value, &error), WEIR_OK, "%s", error.message);
}

Test(conformance_runs, PRN_001_feed_two_fetch_one_then_feed_and_fetch_the_rest)
{
	struct stages s = open_stages();

	for (int round = 0; round < 2; round++) {
		weir_run *run = kit_open_run(s.callable);

		give(run, 0, 1);
		give(run, 1, 2);
		cr_expect_eq(kit_run_fetch_f32(run, 0), 3.0f);
		give(run, 2, 4);
		cr_expect_eq(kit_run_fetch_f32(run, 1), 12.0f);
		weir_run_release(run);
	}
	close_stages(&s);
}

Test(conformance_runs, PRN_002_a_run_that_is_given_up_harms_nothing)
{
	struct stages s = open_stages();
	weir_run *run = kit_open_run(s.callable);

	give(run, 0, 1);
	weir_run_release(run);
	run = kit_open_run(s.callable);
	give(run, 0, 1);
	give(run, 1, 2);
	cr_expect_eq(kit_run_fetch_f32(run, 0), 3.0f);
	weir_run_release(run);
	close_stages(&s);
}

Test(conformance_runs, PRN_003_two_runs_at_once_are_independent)
{
	struct stages s = open_stages();
	weir_run *one = kit_open_run(s.callable), *two = kit_open_run(s.callable);

	give(one, 0, 1);
	give(two, 0, 10);
	give(two, 1, 20);
	give(one, 1, 2);
	cr_expect_eq(kit_run_fetch_f32(two, 0), 30.0f);
	cr_expect_eq(kit_run_fetch_f32(one, 0), 3.0f);
	give(one, 2, 5);
	give(two, 2, 2);
	cr_expect_eq(kit_run_fetch_f32(one, 1), 15.0f);
	cr_expect_eq(kit_run_fetch_f32(two, 1), 60.0f);
	weir_run_release(one);
	weir_run_release(two);
	close_stages(&s);
}

Test(conformance_runs, PRN_004_two_hundred_stages)
{
	enum { STAGES = 200 };
	weir_graph *graph = kit_graph();
	weir_session *session = kit_session(graph, 0);
	weir_output feeds[STAGES], fetches[STAGES], last = kit_constant(graph, kit_f32(0));
	weir_callable *callable;
	weir_run *run;

	for (size_t i = 0; i < STAGES; i++) {
		cr_assert_eq(weir_op_placeholder(graph, NULL, WEIR_F32, &scalar, &feeds[i], NULL), WEIR_OK);
		fetches[i] = last = sum_of(graph, last, feeds[i]);
	}
	cr_assert_eq(compile_late(session, feeds, STAGES, fetches, STAGES, &callable, NULL), WEIR_OK);
	run = kit_open_run(callable);
	for (size_t i = 0; i < STAGES; i++) {
		give(run, i, 1);
		cr_assert_eq(kit_run_fetch_f32(run, i), (float)(i + 1));
	}
	cr_expect_eq(weir_run_wait(run, weir_deadline_in(KIT_PATIENCE_NS), NULL), WEIR_OK);
	weir_run_release(run);
	weir_callable_release(callable);
	kit_end(session, graph);
}

Test(conformance_runs, PRN_005_a_run_in_parts_gives_what_one_call_gives)
{
	struct stages s = open_stages();
	weir_tensor *values[] = {kit_f32(1), kit_f32(2), kit_f32(4)}, *results[2];
	weir_run *run = kit_open_run(s.callable);

	cr_assert_eq(weir_callable_run(s.callable, values, results, WEIR_NO_DEADLINE, NULL, NULL, NULL), WEIR_OK);
	for (size_t i = 0; i < 3; i++)
		cr_assert_eq(weir_run_feed(run, i, values[i], NULL), WEIR_OK);
	for (size_t i = 0; i < 2; i++) {
		cr_expect_eq(kit_run_fetch_f32(run, i), kit_f32_at(results[i], 0));
		weir_tensor_release(results[i]);
	}
	for (size_t i = 0; i < 3; i++)
		weir_tensor_release(values[i]);
	weir_run_release(run);
	close_stages(&s);
}

Test(conformance_runs, PRN_006_a_placeholder_that_is_not_among_the_feeds)
{
	struct stages s = open_stages();
	weir_callable *callable = NULL;
	weir_error error;

	cr_expect_eq(compile_late(s.session, s.feeds, 1, s.fetches, 1, &callable, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_not_null(strstr(error.message, "\"b\""), "%s", error.message);
	cr_expect_null(callable);
	close_stages(&s);
}

Test(conformance_runs, PRN_007_a_feed_that_was_not_announced)
{
	struct stages s = open_stages();
	weir_run *run = kit_open_run(s.callable);

	cr_expect_eq(kit_run_feed_f32(run, 3, 1, NULL), WEIR_INVALID_ARGUMENT);
	give(run, 0, 1);
	weir_run_release(run);
	close_stages(&s);
}

Test(conformance_runs, PRN_008_a_fetch_that_was_not_announced)
{
	struct stages s = open_stages();
	weir_run *run = kit_open_run(s.callable);
	weir_tensor *result = NULL;

	cr_expect_eq(weir_run_fetch(run, 2, 0, &result, NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_null(result);
	weir_run_release(run);
	close_stages(&s);
}

Test(conformance_runs, PRN_009_a_feed_is_given_once)
{
	struct stages s = open_stages();
	weir_run *run = kit_open_run(s.callable);
	weir_error error;

	give(run, 0, 1);
	cr_expect_eq(kit_run_feed_f32(run, 0, 5, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_not_null(strstr(error.message, "has been fed"), "%s", error.message);
	give(run, 1, 2);
	cr_expect_eq(kit_run_fetch_f32(run, 0), 3.0f, "the first value counts");
	weir_run_release(run);
	close_stages(&s);
}

Test(conformance_runs, PRN_010_a_fetch_is_taken_once)
{
	struct stages s = open_stages();
	weir_run *run = kit_open_run(s.callable);
	weir_tensor *result = NULL;
	weir_error error;

	give(run, 0, 1);
	cr_expect_eq(weir_run_fetch(run, 0, 0, &result, NULL), WEIR_DEADLINE_EXCEEDED, "this takes nothing");
	give(run, 1, 2);
	cr_expect_eq(kit_run_fetch_f32(run, 0), 3.0f);
	cr_expect_eq(weir_run_fetch(run, 0, 0, &result, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_not_null(strstr(error.message, "has been fetched"), "%s", error.message);
	cr_expect_null(result);
	weir_run_release(run);
	close_stages(&s);
}

Test(conformance_runs, PRN_011_a_call_may_only_feed)
{
	struct stages s = open_stages();
	weir_run *run = kit_open_run(s.callable);

	for (size_t i = 0; i < 3; i++)
		give(run, i, 2);
	cr_expect_eq(kit_run_fetch_f32(run, 1), 8.0f);
	weir_run_release(run);
	close_stages(&s);
}

Test(conformance_runs, PRN_012_a_run_in_parts_needs_something_to_give)
{
	struct stages s = open_stages();
	weir_callable *callable = NULL;

	cr_expect_eq(compile_late(s.session, s.feeds, 1, NULL, 0, &callable, NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_null(callable);
	close_stages(&s);
}

Test(conformance_runs, PRN_013_a_run_in_parts_may_have_no_feeds)
{
	struct stages s = open_stages();
	weir_output seven = kit_constant(s.graph, kit_f32(7)), same;
	weir_callable *callable;
	weir_run *run;

	cr_assert_eq(weir_op_identity(s.graph, NULL, seven, &same, NULL), WEIR_OK);
	cr_assert_eq(compile_late(s.session, NULL, 0, &same, 1, &callable, NULL), WEIR_OK);
	run = kit_open_run(callable);
	cr_expect_eq(kit_run_fetch_f32(run, 0), 7.0f);
	weir_run_release(run);
	weir_callable_release(callable);
	close_stages(&s);
}

/* -- how runs end ------------------------------------------------------------------------------ */

/* A queue without items, and a node that waits for one. */
struct waiting {
	weir_graph *graph;
	weir_session *session;
	weir_tensor_queue *queue;
	weir_output taken;
};

static struct waiting open_waiting(uint64_t limit_ns)
{
	struct weir_session_options options = {WEIR_SESSION_OPTIONS_INIT, .threads = 1, .operation_timeout_ns = limit_ns};
	struct waiting w = {.graph = kit_graph(), .queue = kit_queue("q", 1, WEIR_F32, &scalar)};

	cr_assert_eq(weir_op_dequeue(w.graph, "take", w.queue, &w.taken, 1, NULL, NULL), WEIR_OK);
	cr_assert_eq(weir_session_create(w.graph, &options, &w.session, NULL), WEIR_OK);
	return w;
}

static void close_waiting(struct waiting *w)
{
	kit_end(w->session, w->graph);
	kit_queue_end(w->queue);
}

static enum weir_status run_until(struct waiting *w, uint64_t deadline_ns)
{
	weir_tensor *result = NULL;
	enum weir_status status =
		weir_session_run(w->session, NULL, 0, &w->taken, 1, &result, NULL, 0, deadline_ns, NULL, NULL);

	weir_tensor_release(result);
	return status;
}

Test(conformance_runs, DIR_003_the_session_and_the_run_have_limits)
{
	struct waiting limited = open_waiting(2000000), w = open_waiting(0);
	uint64_t began_ns = weir_now_ns();

	cr_expect_eq(run_until(&limited, WEIR_NO_DEADLINE), WEIR_DEADLINE_EXCEEDED);
	cr_expect_geq(weir_now_ns() - began_ns, UINT64_C(2000000));
	began_ns = weir_now_ns();
	cr_expect_eq(run_until(&w, weir_deadline_in(1000000)), WEIR_DEADLINE_EXCEEDED);
	cr_expect_geq(weir_now_ns() - began_ns, UINT64_C(1000000));
	close_waiting(&limited);
	close_waiting(&w);
}

/* If the operation still waited, it would take the item that comes later. */
Test(conformance_runs, DIR_004_a_run_that_timed_out_has_no_op_left)
{
	struct waiting w = open_waiting(0);
	weir_tensor *one = kit_f32(1);

	cr_expect_eq(run_until(&w, weir_deadline_in(1000000)), WEIR_DEADLINE_EXCEEDED);
	cr_assert_eq(weir_tensor_queue_enqueue(w.queue, &one, 1, 0, NULL, NULL), WEIR_OK);
	cr_expect_eq(weir_tensor_queue_size_approx(w.queue), 1);
	cr_expect_eq(run_until(&w, weir_deadline_in(KIT_PATIENCE_NS)), WEIR_OK);
	weir_tensor_release(one);
	close_waiting(&w);
}

struct gate {
	_Atomic(int) inside, open;
};

static enum weir_status wait_at_gate(void *context, const struct weir_kernel_call *call, weir_error *error)
{
	struct gate *gate = context;

	(void)call;
	(void)error;
	atomic_store_explicit(&gate->inside, 1, memory_order_release);
	while (atomic_load_explicit(&gate->open, memory_order_acquire) == 0)
		(void)sched_yield();
	return WEIR_OK;
}

static enum weir_status pass(void *context, const struct weir_kernel_call *call, weir_error *error)
{
	(void)context;
	(void)call;
	(void)error;
	return WEIR_OK;
}

static int gate_is_occupied(void *context)
{
	return atomic_load_explicit(&((struct gate *)context)->inside, memory_order_acquire);
}

struct blocked {
	weir_callable *callable;
	struct weir_run_options options;
	enum weir_status status;
	_Atomic(int) ended;
};

static void *run_blocked(void *context)
{
	struct blocked *b = context;

	b->status = weir_callable_run(b->callable, NULL, NULL, WEIR_NO_DEADLINE, NULL, &b->options, NULL);
	atomic_store_explicit(&b->ended, 1, memory_order_release);
	return NULL;
}

static weir_callable *compile_kernel(weir_session *session, weir_graph *graph, weir_kernel_fn *fn, void *context)
{
	weir_callable *callable;
	weir_node *node;

	cr_assert_eq(weir_op_kernel(graph, NULL, KIT_KERNEL(fn), context, NULL, 0, NULL, 0, NULL, 0, NULL, &node, NULL),
	             WEIR_OK);
	cr_assert_eq(weir_session_compile(session, NULL, 0, NULL, 0, &node, 1, NULL, &callable, NULL), WEIR_OK);
	return callable;
}

/* The first run blocks the only worker of its pool; a second one in that pool has to wait. */
Test(conformance_runs, DIR_005_a_blocked_op_blocks_its_pool_only)
{
	struct weir_pool_options one = {WEIR_POOL_OPTIONS_INIT, .threads = 1};
	weir_graph *graph = kit_graph();
	weir_session *session = kit_session(graph, 1);
	struct gate gate = {0, 0};
	weir_callable *blocking = compile_kernel(session, graph, wait_at_gate, &gate);
	weir_callable *quick = compile_kernel(session, graph, pass, NULL);
	struct blocked first = {blocking, {WEIR_RUN_OPTIONS_INIT}, WEIR_INTERNAL, 0},
				   second = {quick, {WEIR_RUN_OPTIONS_INIT}, WEIR_INTERNAL, 0};
	struct weir_run_options on_caller = {WEIR_RUN_OPTIONS_INIT, .flags = WEIR_RUN_ON_CALLER};
	pthread_t threads[2];
	weir_pool *pool;

	cr_assert_eq(weir_pool_create(&one, &pool, NULL), WEIR_OK);
	first.options.pool = second.options.pool = pool;
	cr_assert_eq(pthread_create(&threads[0], NULL, run_blocked, &first), 0);
	kit_wait_for(gate_is_occupied, &gate, "the kernel");
	cr_assert_eq(pthread_create(&threads[1], NULL, run_blocked, &second), 0);
	cr_expect_eq(weir_callable_run(quick, NULL, NULL, WEIR_NO_DEADLINE, NULL, NULL, NULL), WEIR_OK, "another pool");
	cr_expect_eq(weir_callable_run(quick, NULL, NULL, WEIR_NO_DEADLINE, NULL, &on_caller, NULL), WEIR_OK, "the caller");
	cr_expect_eq(atomic_load_explicit(&first.ended, memory_order_acquire), 0);
	cr_expect_eq(atomic_load_explicit(&second.ended, memory_order_acquire), 0);
	atomic_store_explicit(&gate.open, 1, memory_order_release);
	for (int i = 0; i < 2; i++)
		cr_assert_eq(pthread_join(threads[i], NULL), 0);
	cr_expect_eq(first.status, WEIR_OK);
	cr_expect_eq(second.status, WEIR_OK);
	weir_callable_release(blocking);
	weir_callable_release(quick);
	kit_end(session, graph);
	cr_assert_eq(weir_pool_destroy(pool, NULL), WEIR_OK);
}

Test(conformance_runs, DIR_006_options_of_pools_that_cannot_be)
{
	struct waiting w = open_waiting(0);
	struct weir_run_options both = {WEIR_RUN_OPTIONS_INIT, .flags = WEIR_RUN_ON_CALLER};
	struct weir_run_options unknown = {WEIR_RUN_OPTIONS_INIT, .flags = 1u << 30};
	struct weir_session_options options = {WEIR_SESSION_OPTIONS_INIT, .threads = 3};
	weir_session *session = NULL;
	weir_callable *callable;
	weir_tensor *result = NULL;

	cr_assert_eq(weir_pool_create(NULL, &both.pool, NULL), WEIR_OK);
	options.pool = both.pool;
	cr_assert_eq(weir_session_compile(w.session, NULL, 0, &w.taken, 1, NULL, 0, NULL, &callable, NULL), WEIR_OK);
	cr_expect_eq(weir_callable_run(callable, NULL, &result, 0, NULL, &both, NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_callable_run(callable, NULL, &result, 0, NULL, &unknown, NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_session_create(w.graph, &options, &session, NULL), WEIR_INVALID_ARGUMENT,
	             "a pool, and another size for it");
	cr_expect_null(session);
	weir_callable_release(callable);
	close_waiting(&w);
	cr_assert_eq(weir_pool_destroy(both.pool, NULL), WEIR_OK);
}

Test(conformance_runs, DIR_007_after_the_close_a_run_fails)
{
	struct waiting w = open_waiting(0);

	cr_assert_eq(weir_session_close(w.session, NULL), WEIR_OK);
	cr_expect_eq(run_until(&w, WEIR_NO_DEADLINE), WEIR_FAILED_PRECONDITION);
	close_waiting(&w);
}
