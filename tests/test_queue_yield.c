/*
 * test_queue_yield.c - a call that would have to wait lets other threads run first, and looks
 * again.
 *
 * This file defines sched_yield(), so that the actions of other threads happen exactly at a yield,
 * and clock_gettime(), so that time passes as a test says. The clock of the thread under test lags
 * behind that of the machine, so its deadlines have passed for Linux, and no call sleeps.
 */
#include "queue_kit.h"

#include <sys/syscall.h>

typedef void meanwhile(weir_queue *queue, int yields);

/* Of the thread under test. */
static _Thread_local weir_queue *watched;
static _Thread_local meanwhile *others;
static _Thread_local int yields;
static _Thread_local int64_t ahead_ns; /* of its clock, before that of the machine */

int sched_yield(void)
{
	weir_queue *queue = watched;

	if (queue == NULL)
		return (int)syscall(SYS_sched_yield);
	/* The actions of the others may yield, too. */
	watched = NULL;
	yields++;
	if (others != NULL)
		others(queue, yields);
	watched = queue;
	return 0;
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
	struct timespec real = {0, 0}; /* MemorySanitizer does not see what a system call writes */
	int result = (int)syscall(SYS_clock_gettime, clock, &real);
	int64_t ns = (int64_t)real.tv_sec * 1000000000 + real.tv_nsec + ahead_ns;

	now->tv_sec = (time_t)(ns / 1000000000);
	now->tv_nsec = (long)(ns % 1000000000);
	return result;
}

enum { MILLISECOND = 1000000 };

/* One call on a new thread, which has no history, and what is expected of the call. */
struct trial {
	struct weir_queue_options options;
	/* 1: an enqueue into a full queue; 0: a dequeue from an empty one. */
	int is_enqueue;
	uint64_t wait_ns;
	meanwhile *others;
	enum weir_status status;
	int yields;
	uint64_t waits;
	/* The number of calls, one after the other; 0 means 1. The expectation is for the last. */
	int calls;
	int64_t between_ns; /* how much time passes between two calls */
	/* The outcome. */
	weir_queue *queue;
	enum weir_status got;
	int yielded;
};

static void *call_once_or_more(void *context)
{
	struct trial *trial = context;

	ahead_ns = -INT64_C(1000) * MILLISECOND;
	for (int i = 0; i < (trial->calls != 0 ? trial->calls : 1); i++) {
		uint64_t deadline_ns = trial->wait_ns != 0 ? weir_deadline_in(trial->wait_ns) : 0;
		void *got;

		watched = trial->queue;
		others = trial->others;
		yields = 0;
		trial->got = trial->is_enqueue ? weir_queue_enqueue(trial->queue, item(2), deadline_ns, NULL, NULL)
		                               : weir_queue_dequeue(trial->queue, &got, deadline_ns, NULL, NULL);
		watched = NULL;
		trial->yielded = yields;
		ahead_ns += trial->between_ns;
	}
	ahead_ns = 0;
	return NULL;
}

static int is_as_expected(struct trial *trial)
{
	struct weir_queue_stats stats = {WEIR_QUEUE_STATS_INIT};
	pthread_t thread;

	trial->queue = queue_with(trial->options);
	if (trial->is_enqueue)
		put(trial->queue, 1, 1);
	cr_assert_eq(pthread_create(&thread, NULL, call_once_or_more, trial), 0);
	cr_assert_eq(pthread_join(thread, NULL), 0);
	cr_assert_eq(weir_queue_get_stats(trial->queue, &stats), WEIR_OK);
	destroy(trial->queue);
	return trial->got == trial->status && trial->yielded == trial->yields && stats.wakes == 0 &&
	       stats.enqueue_waits + stats.dequeue_waits == trial->waits;
}

/*
 * A thread that is preempted while it yields measures a long yield, so the test gets several tries
 * on a busy machine.
 */
static void expect_once(struct trial trial)
{
	uint64_t until = in_good_time();

	trial.options.capacity = 1;
	while (!is_as_expected(&trial))
		cr_assert_lt(weir_now_ns(), until, "status %s, %d yields", weir_status_name(trial.got), trial.yielded);
}

static void put_at_the_third(weir_queue *queue, int at)
{
	if (at == 3)
		(void)weir_queue_try_enqueue(queue, item(7));
}

Test(queue_yield, an_item_that_comes_meanwhile_is_taken_without_a_wait)
{
	expect_once((struct trial){.others = put_at_the_third, .wait_ns = MILLISECOND, .status = WEIR_OK, .yields = 3});
}

static void take_at_once(weir_queue *queue, int at)
{
	void *got;

	if (at == 1)
		(void)weir_queue_try_dequeue(queue, &got);
}

Test(queue_yield, room_that_comes_meanwhile_is_used_without_a_wait)
{
	expect_once((struct trial){
		.is_enqueue = 1, .others = take_at_once, .wait_ns = MILLISECOND, .status = WEIR_OK, .yields = 1});
}

static void close_at_the_second(weir_queue *queue, int at)
{
	if (at == 2)
		(void)weir_queue_close(queue, WEIR_CLOSE_DRAIN, NULL);
}

Test(queue_yield, a_close_that_comes_meanwhile_is_told)
{
	expect_once((struct trial){
		.others = close_at_the_second, .wait_ns = MILLISECOND, .status = WEIR_OUT_OF_RANGE, .yields = 2});
}

Test(queue_yield, where_nothing_comes_the_call_waits)
{
	expect_once((struct trial){.wait_ns = MILLISECOND, .status = WEIR_DEADLINE_EXCEEDED, .yields = 3, .waits = 1});
}

Test(queue_yield, who_may_not_wait_does_not_yield)
{
	expect_once((struct trial){.status = WEIR_DEADLINE_EXCEEDED});
}

/* The order of arrival counts, so the call joins the list at once. */
Test(queue_yield, in_a_fair_queue_nobody_yields)
{
	expect_once((struct trial){
		.options = {.flags = WEIR_QUEUE_FAIR}, .wait_ns = MILLISECOND, .status = WEIR_DEADLINE_EXCEEDED, .waits = 1});
}

static void hold_the_processor(weir_queue *queue, int at)
{
	(void)queue, (void)at;
	ahead_ns += MILLISECOND;
}

Test(queue_yield, one_that_took_long_is_not_followed_by_another)
{
	expect_once((struct trial){.others = hold_the_processor,
	                           .wait_ns = MILLISECOND,
	                           .status = WEIR_DEADLINE_EXCEEDED,
	                           .yields = 1,
	                           .waits = 1});
}

Test(queue_yield, a_thread_that_was_kept_waiting_so_yields_again_only_after_128_times_as_long)
{
	struct trial trial = {.others = hold_the_processor,
	                      .wait_ns = 1,
	                      .status = WEIR_DEADLINE_EXCEEDED,
	                      .waits = 2,
	                      .calls = 2,
	                      .between_ns = INT64_C(120) * MILLISECOND};

	expect_once(trial);
	trial.between_ns = INT64_C(136) * MILLISECOND;
	trial.yields = 1;
	expect_once(trial);
}
