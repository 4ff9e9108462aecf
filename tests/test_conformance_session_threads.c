/*
 * test_conformance_session_threads.c - sessions: the rows SES about many threads, closes and limits of
 * time.
 */
#include <pthread.h>
#include <stdatomic.h>

#include "conformance_session_kit.h"

enum { THREADS = 10 };

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

Test(conformance_session_threads, SES_034_ten_threads_with_graphs_and_sessions_of_their_own)
{
	struct crowd crowd = {.expected = 0};
	pthread_t threads[THREADS];

	for (size_t i = 0; i < THREADS; i++)
		cr_assert_eq(pthread_create(&threads[i], NULL, own_graph, &crowd), 0);
	for (size_t i = 0; i < THREADS; i++)
		cr_assert_eq(pthread_join(threads[i], NULL), 0);
	cr_expect_eq(atomic_load_explicit(&crowd.wrong, memory_order_acquire), 0);
}

Test(conformance_session_threads, SES_035_a_hundred_threads_run_the_same_fetch)
{
	struct crowd crowd;

	open_crowd(&crowd, 2);
	run_crowd(&crowd, 100, 0);
}

Test(conformance_session_threads, SES_036_ten_threads_run_while_one_builds)
{
	struct crowd crowd;

	open_crowd(&crowd, 1);
	crowd.builds = 16;
	run_crowd(&crowd, THREADS, 1);
}

Test(conformance_session_threads, SES_037_ten_threads_run_while_ten_build)
{
	struct crowd crowd;

	open_crowd(&crowd, 1);
	crowd.builds = 4;
	run_crowd(&crowd, THREADS, THREADS);
}

/* -- the end ----------------------------------------------------------------------------------- */

Test(conformance_session_threads, SES_040_a_closed_session_runs_no_more)
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

Test(conformance_session_threads, SES_041_a_thread_that_runs_in_a_loop_hears_of_the_close)
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

Test(conformance_session_threads, SES_072_a_long_limit_does_not_disturb_short_steps)
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

Test(conformance_session_threads, SES_074_the_limit_of_a_run_or_of_the_session_ends_a_step)
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
