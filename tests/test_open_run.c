/*
 * test_open_run.c - runs that are fed and fetched in several calls, from several threads, and closed
 * before they are complete.
 */
#include <pthread.h>

#include "asleep.h"
#include "failing_allocator.h"
#include "graph_kit.h"
#include "run/countdown.h"
#include "session/step.h"
#include "stepped.h"

static const weir_shape scalar = {.rank = 0, .dims = {0}};

static weir_callable *compile_late(weir_session *session, const weir_output feeds[], size_t feed_count,
                                   const weir_output fetches[], size_t fetch_count, weir_node *target)
{
	struct weir_callable_options options = {WEIR_CALLABLE_OPTIONS_INIT, .flags = WEIR_CALLABLE_LATE_FEEDS};
	weir_callable *callable = NULL;
	weir_error error;

	cr_assert_eq(weir_session_compile(session, feeds, feed_count, fetches, fetch_count, &target, target != NULL ? 1 : 0,
	                                  &options, &callable, &error),
	             WEIR_OK, "%s", error.message);
	return callable;
}

static enum weir_status try_fetch(weir_run *run, size_t fetch, uint64_t deadline_ns, weir_error *error)
{
	weir_tensor *result = NULL;
	enum weir_status status = weir_run_fetch(run, fetch, deadline_ns, &result, error);

	cr_expect(status == WEIR_OK ? result != NULL : result == NULL);
	weir_tensor_release(result);
	return status;
}

/* squares = a * a, sum = squares + b, both fetched; a is fetched too, and a constant. */
struct sums {
	weir_graph *graph;
	weir_session *session;
	weir_output feeds[2];
	weir_output fetches[4];
	weir_callable *callable;
};

static void open_sums(struct sums *sums, weir_session *session, weir_graph *graph)
{
	weir_output beyond;

	sums->graph = graph;
	sums->session = session;
	sums->feeds[0] = kit_placeholder(graph, "a", WEIR_F32, scalar);
	sums->feeds[1] = kit_placeholder(graph, "b", WEIR_F32, scalar);
	cr_assert_eq(weir_op_mul(graph, "squares", sums->feeds[0], sums->feeds[0], &sums->fetches[0], NULL), WEIR_OK);
	cr_assert_eq(weir_op_add(graph, "sum", sums->fetches[0], sums->feeds[1], &sums->fetches[1], NULL), WEIR_OK);
	cr_assert_eq(weir_op_square(graph, NULL, sums->fetches[1], &beyond, NULL), WEIR_OK);
	sums->fetches[2] = sums->feeds[0];
	sums->fetches[3] = kit_constant(graph, kit_f32(5));
	sums->callable = compile_late(session, sums->feeds, 2, sums->fetches, 4, beyond.node);
}

static void close_sums(struct sums *sums)
{
	weir_callable_release(sums->callable);
	kit_end(sums->session, sums->graph);
}

static void open_own_sums(struct sums *sums, size_t threads)
{
	weir_graph *graph = kit_graph();

	open_sums(sums, kit_session(graph, threads), graph);
}

Test(open_run, a_fetch_comes_before_the_feeds_that_it_does_not_need)
{
	for (size_t threads = 0; threads <= 2; threads++) {
		struct sums sums;
		weir_error error;
		weir_run *run;

		open_own_sums(&sums, threads);
		for (int i = 0; i < 3; i++) {
			run = kit_open_run(sums.callable);
			cr_expect_eq(kit_run_fetch_f32(run, 3), 5);
			cr_expect_eq(try_fetch(run, 0, 0, &error), WEIR_DEADLINE_EXCEEDED);
			cr_expect_str_eq(error.message, "weir_run_fetch: not in time; \"a\" has not been fed");
			cr_assert_eq(kit_run_feed_f32(run, 0, 3, &error), WEIR_OK, "%s", error.message);
			cr_expect_eq(kit_run_fetch_f32(run, 0), 9);
			cr_expect_eq(kit_run_fetch_f32(run, 2), 3);
			cr_expect_eq(try_fetch(run, 1, 0, &error), WEIR_DEADLINE_EXCEEDED);
			cr_expect_str_eq(error.message, "weir_run_fetch: not in time; \"b\" has not been fed");
			cr_expect_eq(weir_run_wait(run, 0, &error), WEIR_DEADLINE_EXCEEDED);
			cr_assert_eq(kit_run_feed_f32(run, 1, 1, &error), WEIR_OK, "%s", error.message);
			cr_expect_eq(kit_run_fetch_f32(run, 1), 10);
			cr_expect_eq(try_fetch(run, 0, 0, &error), WEIR_INVALID_ARGUMENT, "once more");
			cr_expect_eq(weir_run_wait(run, weir_deadline_in(KIT_PATIENCE_NS), &error), WEIR_OK, "%s", error.message);
			weir_run_release(run);
		}
		close_sums(&sums);
	}
}

/* What run and start do with a callable is the same, whether its feeds may come late or not. */
Test(open_run, a_callable_with_late_feeds_can_be_run_at_once)
{
	struct sums sums;
	weir_tensor *values[] = {kit_f32(3), kit_f32(1)}, *results[4];
	weir_error error;

	open_own_sums(&sums, 1);
	for (int i = 0; i < 2; i++) {
		cr_assert_eq(weir_callable_run(sums.callable, values, results, WEIR_NO_DEADLINE, NULL, NULL, &error), WEIR_OK,
		             "%s", error.message);
		cr_expect_eq(kit_f32_at(results[0], 0), 9.0f);
		cr_expect_eq(kit_f32_at(results[1], 0), 10.0f);
		cr_expect_eq(results[2], values[0]);
		for (int k = 0; k < 4; k++)
			weir_tensor_release(results[k]);
	}
	weir_tensor_release(values[0]);
	weir_tensor_release(values[1]);
	close_sums(&sums);
}

static void ignore(void *context, enum weir_status status, const weir_error *error, weir_tensor *const results[],
                   size_t count)
{
	(void)context, (void)status, (void)error;
	for (size_t i = 0; i < count; i++)
		weir_tensor_release(results[i]);
}

Test(open_run, bad_arguments_are_refused)
{
	struct weir_run_options options = {WEIR_RUN_OPTIONS_INIT, .flags = WEIR_RUN_ON_CALLER};
	struct sums sums;
	weir_tensor *values[] = {kit_f32(3), kit_f32(1)}, *integer = kit_i64(3), *result = NULL;
	weir_callable *plain;
	weir_run *run = NULL, *started;
	weir_error error;

	open_own_sums(&sums, 1);
	cr_assert_eq(weir_session_compile(sums.session, sums.feeds, 2, sums.fetches, 4, NULL, 0, NULL, &plain, NULL),
	             WEIR_OK);
	cr_expect_eq(weir_run_open(plain, NULL, NULL, &run, &error), WEIR_FAILED_PRECONDITION);
	cr_expect_eq(weir_run_open(NULL, NULL, NULL, &run, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_run_open(sums.callable, NULL, NULL, NULL, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_run_open(sums.callable, NULL, &options, &run, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_null(run);
	cr_assert_eq(weir_callable_start(plain, values, NULL, NULL, ignore, NULL, &started, NULL), WEIR_OK);
	cr_expect_eq(weir_run_feed(started, 0, values[0], &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_run_fetch(started, 0, 0, &result, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_run_wait(started, 0, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_run_close(started, NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_run_feed(NULL, 0, values[0], &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_run_close(NULL, NULL), WEIR_INVALID_ARGUMENT);
	weir_run_release(started);
	run = kit_open_run(sums.callable);
	cr_expect_eq(weir_run_feed(run, 2, values[0], &error), WEIR_INVALID_ARGUMENT);
	cr_expect_str_eq(error.message, "weir_run_feed: feed 2 of 2");
	cr_expect_eq(weir_run_feed(run, 0, NULL, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_run_feed(run, 0, integer, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_run_fetch(run, 4, 0, &result, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_run_fetch(run, 0, 0, NULL, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_run_feed(run, 0, values[0], &error), WEIR_OK, "a value that is refused does not count");
	cr_expect_eq(weir_run_feed(run, 0, values[0], &error), WEIR_INVALID_ARGUMENT);
	cr_expect_not_null(strstr(error.message, "\"a\" has been fed"), "%s", error.message);
	cr_expect_eq(weir_session_destroy(sums.session, &error), WEIR_FAILED_PRECONDITION);
	weir_run_release(run);
	weir_callable_release(plain);
	weir_tensor_release(values[0]);
	weir_tensor_release(values[1]);
	weir_tensor_release(integer);
	close_sums(&sums);
}

Test(open_run, a_run_that_is_closed_keeps_what_it_has)
{
	const weir_error cause = {WEIR_DATA_LOSS, "the train left"};
	struct sums sums;
	weir_error error;
	weir_run *run;

	open_own_sums(&sums, 1);
	run = kit_open_run(sums.callable);
	cr_assert_eq(kit_run_feed_f32(run, 0, 3, &error), WEIR_OK);
	cr_expect_eq(weir_run_close(run, &cause), WEIR_OK);
	cr_expect_eq(weir_run_close(run, NULL), WEIR_OK);
	cr_expect_eq(kit_run_fetch_f32(run, 0), 9);
	cr_expect_eq(try_fetch(run, 1, WEIR_NO_DEADLINE, &error), WEIR_DATA_LOSS);
	cr_expect_not_null(strstr(error.message, "the train left"), "%s", error.message);
	cr_expect_eq(kit_run_feed_f32(run, 1, 1, &error), WEIR_DATA_LOSS);
	cr_expect_eq(weir_run_wait(run, weir_deadline_in(KIT_PATIENCE_NS), &error), WEIR_DATA_LOSS);
	weir_run_release(run);
	/* Once everything has ended, a close changes nothing. */
	run = kit_open_run(sums.callable);
	cr_assert_eq(kit_run_feed_f32(run, 0, 3, &error), WEIR_OK);
	cr_assert_eq(kit_run_feed_f32(run, 1, 1, &error), WEIR_OK);
	cr_expect_eq(weir_run_wait(run, weir_deadline_in(KIT_PATIENCE_NS), &error), WEIR_OK);
	cr_expect_eq(weir_run_close(run, &cause), WEIR_OK);
	cr_expect_eq(weir_run_wait(run, 0, &error), WEIR_OK);
	weir_run_release(run);
	close_sums(&sums);
}

Test(open_run, a_release_without_feeds_leaves_nothing_behind)
{
	struct sums sums;

	open_own_sums(&sums, 2);
	weir_run_release(kit_open_run(sums.callable));
	close_sums(&sums);
}

static enum weir_status fail(void *context, const struct weir_kernel_call *call, weir_error *error)
{
	(void)context, (void)call, (void)error;
	return WEIR_NOT_FOUND;
}

/* While a thread waits for a fetch that never comes, because an op fails. */
Test(open_run, an_op_that_fails_ends_the_waits)
{
	for (size_t threads = 0; threads <= 1; threads++) {
		weir_graph *graph = kit_graph();
		weir_session *session = kit_session(graph, threads);
		weir_output x = kit_placeholder(graph, "x", WEIR_F32, scalar), out;
		struct weir_output_type type = {WEIR_F32, &scalar};
		weir_callable *callable;
		weir_error error;
		weir_run *run;

		cr_assert_eq(
			weir_op_kernel(graph, "broken", KIT_KERNEL(fail), NULL, &x, 1, &type, 1, NULL, 0, &out, NULL, NULL),
			WEIR_OK);
		callable = compile_late(session, &x, 1, &out, 1, NULL);
		run = kit_open_run(callable);
		cr_assert_eq(kit_run_feed_f32(run, 0, 1, &error), WEIR_OK);
		cr_expect_eq(try_fetch(run, 0, weir_deadline_in(KIT_PATIENCE_NS), &error), WEIR_NOT_FOUND);
		cr_expect_not_null(strstr(error.message, "broken"), "%s", error.message);
		cr_expect_eq(weir_run_wait(run, WEIR_NO_DEADLINE, &error), WEIR_NOT_FOUND);
		weir_run_release(run);
		weir_callable_release(callable);
		kit_end(session, graph);
	}
}

Test(open_run, a_token_or_a_close_of_the_session_ends_the_waits)
{
	for (int way = 0; way < 2; way++) {
		weir_tensor_queue *queue = kit_queue("q", 1, WEIR_F32, &scalar);
		weir_graph *graph = kit_graph();
		weir_session *session = kit_session(graph, 1);
		weir_callable *callable;
		weir_cancel *token;
		weir_output taken;
		weir_error error;
		weir_run *run;

		cr_assert_eq(weir_cancel_create(NULL, &token, NULL), WEIR_OK);
		cr_assert_eq(weir_op_dequeue(graph, "take", queue, &taken, 1, NULL, NULL), WEIR_OK);
		callable = compile_late(session, NULL, 0, &taken, 1, NULL);
		cr_assert_eq(weir_run_open(callable, token, NULL, &run, NULL), WEIR_OK);
		cr_expect_eq(try_fetch(run, 0, 0, &error), WEIR_DEADLINE_EXCEEDED);
		if (way == 0)
			(void)weir_cancel_fire(token, NULL);
		else
			(void)weir_session_close(session, NULL);
		cr_expect_eq(try_fetch(run, 0, WEIR_NO_DEADLINE, &error), WEIR_CANCELLED);
		weir_run_release(run);
		weir_callable_release(callable);
		weir_cancel_release(token);
		kit_end(session, graph);
		kit_queue_end(queue);
	}
}

/* -- several threads --------------------------------------------------------------------------- */

enum { ROUNDS = 100 };

struct feeder {
	weir_run *run;
	size_t feed;
	enum weir_status status;
};

static void *feed_one(void *context)
{
	struct feeder *feeder = context;
	weir_tensor *value = NULL;

	feeder->status = weir_tensor_scalar_f32((float)feeder->feed + 2, &value);
	if (feeder->status == WEIR_OK)
		feeder->status = weir_run_feed(feeder->run, feeder->feed, value, NULL);
	weir_tensor_release(value);
	return NULL;
}

Test(open_run, threads_feed_while_one_fetches)
{
	struct sums sums;

	open_own_sums(&sums, 1);
	for (int round = 0; round < ROUNDS; round++) {
		weir_run *run = kit_open_run(sums.callable);
		struct feeder feeders[2] = {{run, 0, WEIR_OK}, {run, 1, WEIR_OK}};
		pthread_t threads[2];

		for (int i = 0; i < 2; i++)
			cr_assert_eq(pthread_create(&threads[i], NULL, feed_one, &feeders[i]), 0);
		cr_expect_eq(kit_run_fetch_f32(run, 1), 7);
		for (int i = 0; i < 2; i++) {
			cr_assert_eq(pthread_join(threads[i], NULL), 0);
			cr_expect_eq(feeders[i].status, WEIR_OK);
		}
		weir_run_release(run);
	}
	close_sums(&sums);
}

/* One kernel fails when told to. Another one runs on, so that the end of the run wakes nobody. */
struct stalled {
	weir_run *run;
	_Atomic(uint32_t) begun, ended, may_fail, may_end;
	_Atomic(int) fetcher; /* its number, while it fetches; -1: it has returned */
	enum weir_status status;
};

static void await_word(_Atomic(uint32_t) *word)
{
	/* [acquire] pairs with set_word(). */
	while (weiri_load_acquire(word) == 0)
		(void)weiri_futex_wait(word, 0, WEIR_NO_DEADLINE);
}

static void set_word(_Atomic(uint32_t) *word)
{
	/* [release] pairs with await_word(). */
	weiri_store_release(word, 1u);
	weiri_futex_wake(word, INT_MAX);
}

static enum weir_status fail_when_told(void *context, const struct weir_kernel_call *call, weir_error *error)
{
	struct stalled *stalled = context;

	(void)call, (void)error;
	/* [relaxed] a count, here and below. [release] of `ended`: pairs with both_have_ended(). */
	(void)weiri_fetch_add_relaxed(&stalled->begun, 1u);
	await_word(&stalled->may_fail);
	(void)weiri_fetch_add_release(&stalled->ended, 1u);
	return WEIR_DATA_LOSS;
}

static enum weir_status run_on(void *context, const struct weir_kernel_call *call, weir_error *error)
{
	struct stalled *stalled = context;

	(void)call, (void)error;
	(void)weiri_fetch_add_relaxed(&stalled->begun, 1u);
	await_word(&stalled->may_end);
	(void)weiri_fetch_add_release(&stalled->ended, 1u);
	return WEIR_OK;
}

static int both_have_begun(void *context)
{
	return weiri_load_relaxed(&((struct stalled *)context)->begun) == 2;
}

static int both_have_ended(void *context)
{
	return weiri_load_acquire(&((struct stalled *)context)->ended) == 2;
}

static void *fetch_what_never_comes(void *context)
{
	struct stalled *stalled = context;

	/* [release] pairs with the looks of the test; so does the next. */
	weiri_store_release(&stalled->fetcher, gettid());
	stalled->status = try_fetch(stalled->run, 0, WEIR_NO_DEADLINE, NULL);
	weiri_store_release(&stalled->fetcher, -1);
	return NULL;
}

static int fetcher_sleeps(void *context)
{
	int number = weiri_load_acquire(&((struct stalled *)context)->fetcher);

	return number > 0 && thread_is_asleep(number);
}

static int fetcher_has_returned(void *context)
{
	return weiri_load_acquire(&((struct stalled *)context)->fetcher) == -1;
}

static void close_it(void *context)
{
	const weir_error cause = {WEIR_ABORTED, "the train left"};

	(void)weir_run_close(((struct stalled *)context)->run, &cause);
}

/* Changes with each raise of the signal on which the fetch sleeps. */
static uint32_t signal_of(const struct stalled *stalled)
{
	return weiri_load_relaxed(&WEIRI_CONTAINER_OF(stalled->run, struct weiri_step, run)->signal.word);
}

/*
 * Wherever the thread that closes the run stands still, the op that fails then ends the wait. That is shown
 * up to the raise of the closing thread, which wakes the sleeper itself.
 */
Test(open_run, an_op_that_fails_ends_the_waits_beside_a_close_that_stalls)
{
	weir_graph *graph = kit_graph();
	weir_session *session = kit_session(graph, 2);
	weir_output x = kit_placeholder(graph, "x", WEIR_F32, scalar);
	struct stalled stalled;
	struct stepped call = {.call = close_it, .context = &stalled};
	weir_node *kernels[2], *both;
	weir_callable *callable;

	stepped_or_skip();
	cr_assert_eq(weir_op_no_op(graph, "both", &both, NULL), WEIR_OK);
	for (int i = 0; i < 2; i++) {
		cr_assert_eq(weir_op_kernel(graph, NULL, KIT_KERNEL(i == 0 ? fail_when_told : run_on), &stalled, NULL, 0, NULL,
		                            0, NULL, 0, NULL, &kernels[i], NULL),
		             WEIR_OK);
		cr_assert_eq(weir_graph_add_control(graph, kernels[i], both, NULL), WEIR_OK);
	}
	callable = compile_late(session, &x, 1, &x, 1, both);
	for (size_t at = 0, stands = 1; stands != 0; at += stepped_stride(7)) {
		pthread_t fetcher;
		uint32_t asleep;

		(void)memset(&stalled, 0, sizeof(stalled));
		stalled.run = kit_open_run(callable);
		kit_wait_for(both_have_begun, &stalled, "the kernels");
		cr_assert_eq(pthread_create(&fetcher, NULL, fetch_what_never_comes, &stalled), 0);
		kit_wait_for(fetcher_sleeps, &stalled, "the thread that fetches");
		asleep = signal_of(&stalled);
		stands = stepped_start(&call, at) != 0 && signal_of(&stalled) == asleep;
		set_word(&stalled.may_fail);
		if (stands != 0)
			kit_wait_for(fetcher_has_returned, &stalled, "the end of the fetch");
		stepped_finish(&call);
		set_word(&stalled.may_end);
		cr_assert_eq(pthread_join(fetcher, NULL), 0);
		cr_expect(stalled.status == WEIR_DATA_LOSS || stalled.status == WEIR_ABORTED, "%d", (int)stalled.status);
		kit_wait_for(both_have_ended, &stalled, "the ends of the kernels");
		weir_run_release(stalled.run);
	}
	weir_callable_release(callable);
	kit_end(session, graph);
}

Test(open_run, a_close_beside_a_feed_gives_the_value_or_the_cause)
{
	struct sums sums;
	int fetched = 0, closed = 0;

	open_own_sums(&sums, 1);
	for (int round = 0; round < ROUNDS; round++) {
		weir_run *run = kit_open_run(sums.callable);
		struct feeder feeder = {run, 0, WEIR_OK};
		enum weir_status status;
		pthread_t thread;
		weir_error error;

		cr_assert_eq(pthread_create(&thread, NULL, feed_one, &feeder), 0);
		if (round % 2 == 0)
			(void)sched_yield();
		cr_expect_eq(weir_run_close(run, NULL), WEIR_OK);
		cr_assert_eq(pthread_join(thread, NULL), 0);
		status = try_fetch(run, 0, WEIR_NO_DEADLINE, &error);
		fetched += status == WEIR_OK;
		closed += status == WEIR_CANCELLED;
		cr_expect(feeder.status == WEIR_OK || feeder.status == WEIR_CANCELLED ||
		          feeder.status == WEIR_INVALID_ARGUMENT);
		cr_expect(status != WEIR_OK || feeder.status == WEIR_OK);
		weir_run_release(run);
	}
	cr_expect_eq(fetched + closed, ROUNDS);
	close_sums(&sums);
}

/* -- failing allocations ----------------------------------------------------------------------- */

static enum weir_status run_in_parts(const weir_allocator *allocator, void *context)
{
	struct weir_session_options options = {WEIR_SESSION_OPTIONS_INIT, .threads = 1, .allocator = allocator};
	struct weir_callable_options late = {WEIR_CALLABLE_OPTIONS_INIT, .flags = WEIR_CALLABLE_LATE_FEEDS};
	struct sums *sums = context;
	weir_callable *callable = NULL;
	weir_session *session = NULL;
	weir_tensor *result = NULL;
	weir_run *run = NULL;
	enum weir_status status = weir_session_create(sums->graph, &options, &session, NULL);

	if (status == WEIR_OK)
		status = weir_session_compile(session, sums->feeds, 2, sums->fetches, 4, NULL, 0, &late, &callable, NULL);
	if (status == WEIR_OK)
		status = weir_run_open(callable, NULL, NULL, &run, NULL);
	if (status == WEIR_OK)
		status = kit_run_feed_f32(run, 1, 2, NULL);
	if (status == WEIR_OK)
		status = kit_run_feed_f32(run, 0, 1, NULL);
	if (status == WEIR_OK)
		status = weir_run_fetch(run, 1, WEIR_NO_DEADLINE, &result, NULL);
	weir_tensor_release(result);
	weir_run_release(run);
	weir_callable_release(callable);
	cr_assert_eq(weir_session_destroy(session, NULL), WEIR_OK);
	return status;
}

Test(open_run, each_allocation_may_fail)
{
	struct sums sums;

	open_own_sums(&sums, 0);
	cr_expect_gt(fail_each_allocation_in_time(run_in_parts, &sums), 8);
	close_sums(&sums);
}

static enum weir_status give_five(void *context, const struct weir_kernel_call *call, weir_error *error)
{
	(void)context;
	(void)error;
	call->outputs[0] = kit_f32(5);
	return WEIR_OK;
}

/* One kernel runs in the call that opens the run, the other is left to a pool that has no workers. */
Test(open_run, a_session_without_threads_runs_what_a_released_run_left)
{
	const struct weir_output_type type = {WEIR_F32, &scalar};
	weir_graph *graph = kit_graph();
	weir_session *session = kit_session(graph, 0);
	weir_output five[2], sum;
	weir_callable *callable;

	for (size_t i = 0; i < 2; i++)
		cr_assert_eq(
			weir_op_kernel(graph, NULL, KIT_KERNEL(give_five), NULL, NULL, 0, &type, 1, NULL, 0, &five[i], NULL, NULL),
			WEIR_OK);
	cr_assert_eq(weir_op_add(graph, NULL, five[0], five[1], &sum, NULL), WEIR_OK);
	callable = compile_late(session, NULL, 0, &sum, 1, NULL);
	weir_run_release(kit_open_run(callable));
	weir_callable_release(callable);
	kit_end(session, graph);
}
