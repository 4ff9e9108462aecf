/*
 * queue_runner_kit.h - shared by the tests of queue runners: sources that end, what became of the queue,
 * and starts, joins and ends that must succeed.
 */
#ifndef QUEUE_RUNNER_KIT_H
#define QUEUE_RUNNER_KIT_H

#include <criterion/criterion.h>

#include <sched.h>
#include <stdio.h>
#include <weir/queue_runner.h>
#include <weir/time.h>

#include "base/atomic.h"

static const uint64_t long_ns = 100000000000u;

static inline int reaches(_Atomic(int) *counter, int value)
{
	uint64_t deadline = weir_deadline_in(long_ns);

	while (weiri_load_acquire(counter) != value) {
		if (weir_now_ns() > deadline)
			return 0;
		(void)sched_yield();
	}
	return 1;
}

static inline weir_error error_with(enum weir_status code, const char *message)
{
	weir_error error = {code, ""};

	(void)snprintf(error.message, sizeof(error.message), "%s", message);
	return error;
}

/* A source of numbers: it returns WEIR_OK `limit` times, and then `then`. */
struct source {
	_Atomic(int) calls;
	int limit;
	enum weir_status then;
	const char *message;
};

static inline enum weir_status count_to_limit(void *context, weir_cancel *cancel, weir_error *error)
{
	struct source *source = context;

	(void)cancel;
	if (weiri_fetch_add_relaxed(&source->calls, 1) < source->limit)
		return WEIR_OK;
	(void)weiri_fetch_sub_relaxed(&source->calls, 1);
	if (source->message != NULL)
		*error = error_with(source->then, source->message);
	return source->then;
}

/* What became of the queue. */
struct ends {
	_Atomic(int) closed;
	_Atomic(int) cancelled;
	/* A close and a cancel may run at the same time. */
	weir_error closed_for, cancelled_for;
	/* 1: the cancel waits until it is 0. */
	_Atomic(int) hold;
	_Atomic(int) held;
};

static inline void start(weir_queue_runner *runner, weir_coordinator *coordinator)
{
	weir_error error = {WEIR_OK, ""};

	cr_assert_eq(weir_queue_runner_start(runner, coordinator, &error), WEIR_OK, "%s", error.message);
}

static inline void end(weir_queue_runner *runner)
{
	cr_assert_eq(weir_queue_runner_join(runner, weir_deadline_in(long_ns)), WEIR_OK);
	cr_expect_eq(weir_queue_runner_running_count(runner), 0);
	cr_assert_eq(weir_queue_runner_destroy(runner, NULL), WEIR_OK);
}

static inline weir_coordinator *create_coordinator(void)
{
	weir_coordinator *coordinator = NULL;

	cr_assert_eq(weir_coordinator_create(NULL, &coordinator, NULL), WEIR_OK);
	return coordinator;
}

static inline enum weir_status join_coordinator(weir_coordinator *coordinator, weir_error *error)
{
	return weir_coordinator_join(coordinator, weir_deadline_in(long_ns), WEIR_COORDINATOR_GRACE_NS, 0, error);
}

#endif
