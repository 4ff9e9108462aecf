/*
 * test_coordinator.c - stopping together, the first error, joins, stragglers and callbacks.
 */
#include <criterion/criterion.h>

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <weir/coordinator.h>
#include <weir/log.h>
#include <weir/time.h>

#include "base/atomic.h"
#include "failing_allocator.h"

static const uint64_t ms = 1000000;
static const uint64_t long_ns = 100000000000u;

static weir_coordinator *create(uint32_t flags, uint64_t clean_codes)
{
	struct weir_coordinator_options options = {WEIR_COORDINATOR_OPTIONS_INIT, .flags = flags,
	                                           .clean_codes = clean_codes, .name = "test"};
	weir_coordinator *coordinator = NULL;

	cr_assert_eq(weir_coordinator_create(&options, &coordinator, NULL), WEIR_OK);
	return coordinator;
}

static void destroy(weir_coordinator *coordinator)
{
	weir_error error = {WEIR_OK, ""};

	cr_assert_eq(weir_coordinator_destroy(coordinator, &error), WEIR_OK, "%s", error.message);
}

static weir_error error_with(enum weir_status code, const char *message)
{
	weir_error error = {code, ""};

	(void)snprintf(error.message, sizeof(error.message), "%s", message);
	return error;
}

/* A join that must not need its deadline. */
static enum weir_status join(weir_coordinator *coordinator, weir_error *error)
{
	return weir_coordinator_join(coordinator, weir_deadline_in(long_ns), WEIR_COORDINATOR_GRACE_NS, 0, error);
}

static int reaches(_Atomic(int) *counter, int value)
{
	uint64_t deadline = weir_deadline_in(long_ns);

	for (int spin = 0; spin < 2000 && weiri_load_acquire(counter) != value; spin++)
		weiri_pause();
	while (weiri_load_acquire(counter) != value) {
		if (weir_now_ns() > deadline)
			return 0;
		(void)sched_yield();
	}
	return 1;
}

/* What the threads of these tests share. */
struct job {
	_Atomic(int) started;
	_Atomic(int) ended;
	_Atomic(int) calls;
	_Atomic(int) may_end; /* for threads that do not listen to the coordinator */
	/* A thread writes it before it ends or stops, and the thread that joined reads it. */
	int plain;
	int last_call;
};

static enum weir_status until_stop(weir_coordinator *coordinator, void *context, weir_error *error)
{
	struct job *job = context;

	(void)error;
	(void)weiri_fetch_add_release(&job->started, 1);
	while (!weir_coordinator_should_stop(coordinator))
		(void)sched_yield();
	(void)weiri_fetch_add_release(&job->ended, 1);
	return WEIR_OK;
}

static enum weir_status until_allowed(weir_coordinator *coordinator, void *context, weir_error *error)
{
	struct job *job = context;

	(void)coordinator;
	(void)error;
	(void)weiri_fetch_add_release(&job->started, 1);
	while (!weiri_load_acquire(&job->may_end))
		(void)sched_yield();
	(void)weiri_fetch_add_release(&job->ended, 1);
	return WEIR_OK;
}

static enum weir_status end_at_once(weir_coordinator *coordinator, void *context, weir_error *error)
{
	struct job *job = context;

	(void)coordinator;
	(void)error;
	job->plain++;
	return WEIR_OK;
}

static enum weir_status fail_with_message(weir_coordinator *coordinator, void *context, weir_error *error)
{
	(void)coordinator;
	(void)context;
	*error = error_with(WEIR_DATA_LOSS, "block 7 is gone");
	return WEIR_DATA_LOSS;
}

static enum weir_status fail_silently(weir_coordinator *coordinator, void *context, weir_error *error)
{
	(void)coordinator;
	(void)context;
	(void)error;
	return WEIR_INTERNAL;
}

static enum weir_status reach_end_of_input(weir_coordinator *coordinator, void *context, weir_error *error)
{
	(void)coordinator;
	(void)context;
	(void)error;
	return WEIR_OUT_OF_RANGE;
}

static void start(weir_coordinator *coordinator, const char *name, weir_coordinator_fn *fn, void *context)
{
	cr_assert_eq(weir_coordinator_start_thread(coordinator, name, fn, context, NULL), WEIR_OK);
}

Test(coordinator, create_refuses_bad_options)
{
	struct weir_coordinator_options options = {.struct_size = 3};
	weir_coordinator *coordinator = NULL;
	weir_error error;

	cr_expect_eq(weir_coordinator_create(&options, &coordinator, &error), WEIR_INVALID_ARGUMENT);
	options.struct_size = sizeof(options);
	options.flags = 8;
	cr_expect_eq(weir_coordinator_create(&options, &coordinator, &error), WEIR_INVALID_ARGUMENT);
	options.flags = WEIR_COORDINATOR_NOTHING_CLEAN;
	options.clean_codes = 1;
	options.name = "loaders";
	cr_expect_eq(weir_coordinator_create(&options, &coordinator, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_str_eq(error.message, "coordinator \"loaders\": clean_codes 0x1 with WEIR_COORDINATOR_NOTHING_CLEAN");
	cr_expect_eq(weir_coordinator_create(NULL, NULL, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_null(coordinator);
}

Test(coordinator, null_is_refused_or_harmless)
{
	weir_coordinator_member *member;
	weir_cancel_hook *hook;

	cr_expect_eq(weir_coordinator_should_stop(NULL), 0);
	cr_expect_eq(weir_coordinator_joined(NULL), 0);
	cr_expect_eq(weir_coordinator_wait_for_stop(NULL, 0), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_coordinator_request_stop(NULL, NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_coordinator_status(NULL, NULL), WEIR_OK);
	cr_expect_null(weir_coordinator_cancel(NULL));
	cr_expect_eq(weir_coordinator_on_stop(NULL, NULL, NULL, &hook), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_coordinator_start_thread(NULL, NULL, until_stop, NULL, NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_coordinator_enter(NULL, NULL, &member, NULL), WEIR_INVALID_ARGUMENT);
	weir_coordinator_leave(NULL);
	cr_expect_eq(weir_coordinator_join(NULL, WEIR_NO_DEADLINE, WEIR_COORDINATOR_GRACE_NS, 0, NULL),
	             WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_coordinator_clear_stop(NULL, NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_coordinator_destroy(NULL, NULL), WEIR_OK);
}

Test(coordinator, COO_001_stop_is_seen_after_the_request_and_not_before)
{
	weir_coordinator *coordinator = create(0, 0);

	cr_expect_eq(weir_coordinator_should_stop(coordinator), 0);
	cr_expect_eq(weir_coordinator_wait_for_stop(coordinator, weir_deadline_in(2 * ms)), WEIR_DEADLINE_EXCEEDED);
	cr_expect_eq(weir_coordinator_request_stop(coordinator, NULL), WEIR_OK);
	cr_expect_eq(weir_coordinator_should_stop(coordinator), 1);
	cr_expect_eq(weir_coordinator_wait_for_stop(coordinator, 0), WEIR_OK);
	/* A second stop changes nothing. */
	cr_expect_eq(weir_coordinator_request_stop(coordinator, NULL), WEIR_OK);
	cr_expect_eq(join(coordinator, NULL), WEIR_OK);
	destroy(coordinator);
}

static enum weir_status write_and_request(weir_coordinator *coordinator, void *context, weir_error *error)
{
	struct job *job = context;

	(void)error;
	if (!reaches(&job->started, 1))
		return WEIR_DEADLINE_EXCEEDED;
	job->plain = 7;
	return weir_coordinator_request_stop(coordinator, NULL);
}

Test(coordinator, COO_002_a_stop_by_another_thread_wakes_those_who_wait)
{
	for (int i = 0; i < 50; i++) {
		weir_coordinator *coordinator = create(0, 0);
		struct job job = {.plain = 0};

		start(coordinator, "stopper", write_and_request, &job);
		weiri_store_release(&job.started, 1);
		cr_assert_eq(weir_coordinator_wait_for_stop(coordinator, weir_deadline_in(long_ns)), WEIR_OK);
		cr_expect(weir_coordinator_should_stop(coordinator));
		cr_expect_eq(job.plain, 7);
		cr_expect_eq(join(coordinator, NULL), WEIR_OK);
		destroy(coordinator);
	}
}

Test(coordinator, COO_003_join_waits_for_all_threads)
{
	weir_coordinator *coordinator = create(0, 0);
	struct job job = {.plain = 0};

	for (int i = 0; i < 8; i++)
		start(coordinator, NULL, until_stop, &job);
	cr_assert(reaches(&job.started, 8));
	cr_expect_eq(weir_coordinator_request_stop(coordinator, NULL), WEIR_OK);
	cr_expect_eq(join(coordinator, NULL), WEIR_OK);
	cr_expect_eq(weiri_load_acquire(&job.ended), 8);
	cr_expect(weir_coordinator_joined(coordinator));
	destroy(coordinator);
}

Test(coordinator, join_ends_without_a_stop_when_all_threads_have_ended)
{
	weir_coordinator *coordinator = create(0, 0);
	struct job job = {.plain = 0};

	start(coordinator, NULL, end_at_once, &job);
	cr_expect_eq(join(coordinator, NULL), WEIR_OK);
	cr_expect_eq(job.plain, 1);
	cr_expect_eq(weir_coordinator_should_stop(coordinator), 0);
	cr_expect_eq(join(coordinator, NULL), WEIR_OK);
	destroy(coordinator);
}

Test(coordinator, join_without_threads_returns_at_once)
{
	weir_coordinator *coordinator = create(0, 0);

	cr_expect_eq(weir_coordinator_join(coordinator, WEIR_NO_DEADLINE, WEIR_COORDINATOR_GRACE_NS, 0, NULL), WEIR_OK);
	cr_expect(weir_coordinator_joined(coordinator));
	destroy(coordinator);
}

/* Leaves as soon as it is given a member, again and again. */
struct leaver {
	_Atomic(weir_coordinator_member *) member;
	_Atomic(int) stop;
};

static void *leave_at_once(void *argument)
{
	struct leaver *self = argument;

	while (!weiri_load_acquire(&self->stop))
		weir_coordinator_leave(weiri_exchange_acquire(&self->member, NULL));
	return NULL;
}

Test(coordinator, COO_004_join_waits_for_threads_that_registered_themselves)
{
	struct leaver leaver = {NULL, 0};
	pthread_t thread;

	cr_assert_eq(pthread_create(&thread, NULL, leave_at_once, &leaver), 0);
	for (int i = 0; i < 5000; i++) {
		weir_coordinator *coordinator = create(0, 0);
		weir_coordinator_member *member = NULL;

		cr_assert_eq(weir_coordinator_enter(coordinator, "guest", &member, NULL), WEIR_OK);
		weiri_store_release(&leaver.member, member);
		cr_assert_eq(join(coordinator, NULL), WEIR_OK);
		/* This happens at once, though leave may not have returned on the other thread. */
		destroy(coordinator);
	}
	weiri_store_release(&leaver.stop, 1);
	cr_assert_eq(pthread_join(thread, NULL), 0);
}

/* A thread that outlives the call, and a member that another thread ends. */
Test(coordinator, COO_005_join_waits_for_started_and_for_registered_threads)
{
	weir_coordinator *coordinator = create(0, 0);
	weir_coordinator_member *member = NULL;
	struct job job = {.plain = 0};
	weir_error error;

	start(coordinator, "given", until_allowed, &job);
	cr_assert_eq(weir_coordinator_enter(coordinator, "registered", &member, NULL), WEIR_OK);
	cr_expect_eq(weir_coordinator_join(coordinator, 0, 0, 0, &error), WEIR_DEADLINE_EXCEEDED);
	cr_expect_not_null(strstr(error.message, "given"), "%s", error.message);
	cr_expect_not_null(strstr(error.message, "registered"), "%s", error.message);
	weir_coordinator_leave(member);
	cr_expect_eq(weir_coordinator_join(coordinator, 0, 0, 0, &error), WEIR_DEADLINE_EXCEEDED);
	cr_expect_not_null(strstr(error.message, "given"), "%s", error.message);
	cr_expect_null(strstr(error.message, "registered"), "%s", error.message);
	weiri_store_release(&job.may_end, 1);
	cr_expect_eq(join(coordinator, NULL), WEIR_OK);
	cr_expect_eq(weiri_load_acquire(&job.ended), 1);
	destroy(coordinator);
}

Test(coordinator, COO_006_grace_expires_and_the_stragglers_are_named)
{
	static const uint64_t graces_ns[] = {0, 1, 2000000, 20000000};
	weir_coordinator *coordinator = create(0, 0);
	struct job job = {.plain = 0};
	weir_error error;

	start(coordinator, "well-behaved", until_stop, &job);
	start(coordinator, "stubborn", until_allowed, &job);
	cr_assert(reaches(&job.started, 2));
	cr_expect_eq(weir_coordinator_request_stop(coordinator, NULL), WEIR_OK);
	cr_assert(reaches(&job.ended, 1));
	for (size_t i = 0; i < sizeof(graces_ns) / sizeof(graces_ns[0]); i++) {
		uint64_t before = weir_now_ns();

		cr_expect_eq(weir_coordinator_join(coordinator, WEIR_NO_DEADLINE, graces_ns[i], 0, &error),
		             WEIR_DEADLINE_EXCEEDED);
		cr_expect_geq(weir_now_ns() - before, graces_ns[i]);
		cr_expect_not_null(strstr(error.message, "still running"));
		cr_expect_not_null(strstr(error.message, "stubborn"));
	}
	cr_expect_eq(weir_coordinator_destroy(coordinator, &error), WEIR_FAILED_PRECONDITION);
	cr_expect_not_null(strstr(error.message, "stubborn"));
	cr_expect_eq(weir_coordinator_clear_stop(coordinator, &error), WEIR_FAILED_PRECONDITION);
	weiri_store_release(&job.may_end, 1);
	cr_expect_eq(join(coordinator, NULL), WEIR_OK);
	destroy(coordinator);
}

static _Atomic(int) warnings;

static void count_warning(void *context, enum weir_log_level level, const char *message)
{
	(void)context;
	if (level == WEIR_LOG_WARNING && strstr(message, "stubborn") != NULL)
		(void)weiri_fetch_add_relaxed(&warnings, 1);
}

static const weir_log_hook count_warning_hook = {count_warning, NULL};

Test(coordinator, stragglers_can_be_ignored_and_go_to_the_log)
{
	weir_coordinator *coordinator = create(0, 0);
	struct job job = {.plain = 0};

	start(coordinator, "stubborn", until_allowed, &job);
	cr_expect_eq(weir_coordinator_request_stop(coordinator, NULL), WEIR_OK);
	weir_log_set_hook(&count_warning_hook);
	cr_expect_eq(weir_coordinator_join(coordinator, WEIR_NO_DEADLINE, 0, WEIR_COORDINATOR_IGNORE_STRAGGLERS, NULL),
	             WEIR_OK);
	weir_log_set_hook(NULL);
	cr_expect_eq(weiri_load_relaxed(&warnings), 1);
	weiri_store_release(&job.may_end, 1);
	cr_expect_eq(join(coordinator, NULL), WEIR_OK);
	destroy(coordinator);
}

Test(coordinator, join_deadline_without_a_stop_leaves_everything_as_it_was)
{
	weir_coordinator *coordinator = create(0, 0);
	weir_coordinator_member *member = NULL;
	weir_error error;

	cr_assert_eq(weir_coordinator_enter(coordinator, "guest", &member, NULL), WEIR_OK);
	cr_expect_eq(weir_coordinator_join(coordinator, 0, WEIR_COORDINATOR_GRACE_NS, 0, &error), WEIR_DEADLINE_EXCEEDED);
	cr_expect_not_null(strstr(error.message, "guest"));
	cr_expect_not(weir_coordinator_joined(coordinator));
	weir_coordinator_leave(member);
	cr_expect_eq(weir_coordinator_join(coordinator, 0, WEIR_COORDINATOR_GRACE_NS, 0, &error), WEIR_OK);
	destroy(coordinator);
}

Test(coordinator, join_refuses_unknown_flags)
{
	weir_coordinator *coordinator = create(0, 0);
	weir_error error;

	cr_expect_eq(weir_coordinator_join(coordinator, WEIR_NO_DEADLINE, 0, 6, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_str_eq(error.message, "coordinator: unknown flags 0x6");
	cr_expect_not(weir_coordinator_joined(coordinator));
	destroy(coordinator);
}

/* If the deadline or the grace time is 0, join waits for no thread. */
Test(coordinator, a_grace_time_of_0_waits_for_no_thread)
{
	weir_coordinator *coordinator = create(0, 0);
	weir_coordinator_member *member = NULL;
	weir_error error;

	cr_assert_eq(weir_coordinator_enter(coordinator, "guest", &member, NULL), WEIR_OK);
	cr_expect_eq(weir_coordinator_request_stop(coordinator, NULL), WEIR_OK);
	cr_expect_eq(weir_coordinator_join(coordinator, WEIR_NO_DEADLINE, 0, 0, &error), WEIR_DEADLINE_EXCEEDED);
	cr_expect_not_null(strstr(error.message, "guest"));
	weir_coordinator_leave(member);
	cr_expect_eq(weir_coordinator_join(coordinator, 0, WEIR_NO_DEADLINE, 0, &error), WEIR_OK);
	destroy(coordinator);
}

static enum weir_status join_from_inside(weir_coordinator *coordinator, void *context, weir_error *error)
{
	struct job *job = context;

	job->plain = (int)weir_coordinator_join(coordinator, WEIR_NO_DEADLINE, WEIR_COORDINATOR_GRACE_NS, 0, error);
	error->message[0] = '\0';
	return WEIR_OK;
}

Test(coordinator, a_started_thread_cannot_join_its_own_coordinator)
{
	weir_coordinator *coordinator = create(0, 0);
	struct job job = {.plain = 0};

	start(coordinator, NULL, join_from_inside, &job);
	cr_expect_eq(join(coordinator, NULL), WEIR_OK);
	cr_expect_eq(job.plain, WEIR_FAILED_PRECONDITION);
	destroy(coordinator);
}

Test(coordinator, COO_009_the_first_error_wins)
{
	weir_coordinator *coordinator = create(0, 0);
	weir_error first = error_with(WEIR_ABORTED, "first");
	weir_error second = error_with(WEIR_INTERNAL, "second");
	weir_error error = error_with(WEIR_OK, "untouched");

	cr_expect_eq(weir_coordinator_status(coordinator, &error), WEIR_OK);
	cr_expect_str_eq(error.message, "untouched");
	cr_expect_eq(weir_coordinator_request_stop(coordinator, &first), WEIR_OK);
	cr_expect_eq(weir_coordinator_request_stop(coordinator, &second), WEIR_OK);
	cr_expect_eq(weir_coordinator_status(coordinator, &error), WEIR_ABORTED);
	cr_expect_eq(join(coordinator, &error), WEIR_ABORTED);
	cr_expect_eq(error.code, WEIR_ABORTED);
	cr_expect_str_eq(error.message, "first");
	destroy(coordinator);
}

Test(coordinator, an_error_after_a_clean_stop_is_dropped)
{
	weir_coordinator *coordinator = create(0, 0);
	weir_error late = error_with(WEIR_CANCELLED, "because of the stop");

	cr_expect_eq(weir_coordinator_request_stop(coordinator, NULL), WEIR_OK);
	cr_expect_eq(weir_coordinator_request_stop(coordinator, &late), WEIR_OK);
	cr_expect_eq(join(coordinator, NULL), WEIR_OK);
	destroy(coordinator);
}

Test(coordinator, COO_010_end_of_input_is_a_clean_stop)
{
	weir_coordinator *coordinator = create(0, 0);

	start(coordinator, NULL, reach_end_of_input, NULL);
	cr_expect_eq(join(coordinator, NULL), WEIR_OK);
	cr_expect(weir_coordinator_should_stop(coordinator));
	destroy(coordinator);
}

Test(coordinator, nothing_clean_makes_end_of_input_an_error)
{
	weir_coordinator *coordinator = create(WEIR_COORDINATOR_NOTHING_CLEAN, 0);

	start(coordinator, NULL, reach_end_of_input, NULL);
	cr_expect_eq(join(coordinator, NULL), WEIR_OUT_OF_RANGE);
	destroy(coordinator);
}

Test(coordinator, COO_011_clean_codes_can_be_chosen)
{
	weir_coordinator *coordinator = create(0, WEIR_COORDINATOR_CLEAN(WEIR_DATA_LOSS));
	weir_error end = error_with(WEIR_OUT_OF_RANGE, "end");

	start(coordinator, NULL, fail_with_message, NULL);
	cr_expect_eq(join(coordinator, NULL), WEIR_OK);
	cr_assert_eq(weir_coordinator_clear_stop(coordinator, NULL), WEIR_OK);
	cr_expect_eq(weir_coordinator_request_stop(coordinator, &end), WEIR_OK);
	cr_expect_eq(join(coordinator, NULL), WEIR_OUT_OF_RANGE);
	destroy(coordinator);
}

Test(coordinator, the_error_of_a_thread_comes_out_of_join)
{
	weir_coordinator *coordinator = create(0, 0);
	struct job job = {.plain = 0};
	weir_error error;

	start(coordinator, "other", until_stop, &job);
	start(coordinator, "reader", fail_with_message, NULL);
	cr_expect_eq(join(coordinator, &error), WEIR_DATA_LOSS);
	cr_expect_str_eq(error.message, "block 7 is gone");
	destroy(coordinator);
}

static enum weir_status fail_after_the_stop(weir_coordinator *coordinator, void *context, weir_error *error)
{
	enum weir_status status = until_stop(coordinator, context, error);

	*error = error_with(WEIR_NOT_FOUND, "the second to fail");
	return status == WEIR_OK ? WEIR_NOT_FOUND : status;
}

/* A thread's function is the scope whose error stops the others. */
Test(coordinator, COO_012_of_two_threads_that_fail_the_first_is_reported)
{
	weir_coordinator *coordinator = create(0, 0);
	struct job job = {.plain = 0};
	weir_error error;

	start(coordinator, "second", fail_after_the_stop, &job);
	cr_assert(reaches(&job.started, 1));
	start(coordinator, "first", fail_with_message, NULL);
	cr_expect_eq(join(coordinator, &error), WEIR_DATA_LOSS);
	cr_expect_str_eq(error.message, "block 7 is gone");
	cr_expect(weir_coordinator_should_stop(coordinator));
	cr_expect_eq(weiri_load_acquire(&job.ended), 1);
	destroy(coordinator);
}

Test(coordinator, a_thread_that_fails_without_a_message_is_named)
{
	weir_coordinator *coordinator = create(0, 0);
	weir_error error;

	start(coordinator, "quiet", fail_silently, NULL);
	cr_expect_eq(join(coordinator, &error), WEIR_INTERNAL);
	cr_expect_not_null(strstr(error.message, "quiet"));
	cr_expect_not_null(strstr(error.message, "WEIR_INTERNAL"));
	destroy(coordinator);
}

Test(coordinator, an_error_takes_precedence_over_stragglers)
{
	weir_coordinator *coordinator = create(0, 0);
	struct job job = {.plain = 0};

	start(coordinator, "stubborn", until_allowed, &job);
	start(coordinator, "reader", fail_with_message, NULL);
	cr_expect_eq(weir_coordinator_join(coordinator, WEIR_NO_DEADLINE, 0, 0, NULL), WEIR_DATA_LOSS);
	weiri_store_release(&job.may_end, 1);
	cr_expect_eq(join(coordinator, NULL), WEIR_DATA_LOSS);
	destroy(coordinator);
}

Test(coordinator, COO_014_an_error_after_the_join_goes_back_to_its_reporter)
{
	weir_coordinator *coordinator = create(0, 0);
	weir_error late = error_with(WEIR_ABORTED, "late");
	weir_error error;

	cr_expect_eq(join(coordinator, NULL), WEIR_OK);
	cr_expect_eq(weir_coordinator_request_stop(coordinator, &late), WEIR_ABORTED);
	cr_expect_not(weir_coordinator_should_stop(coordinator));
	cr_expect_eq(weir_coordinator_request_stop(coordinator, NULL), WEIR_OK);
	cr_expect(weir_coordinator_should_stop(coordinator));
	cr_expect_eq(weir_coordinator_request_stop(coordinator, &late), WEIR_ABORTED);
	cr_assert_eq(weir_coordinator_clear_stop(coordinator, NULL), WEIR_OK);
	cr_expect_eq(weir_coordinator_request_stop(coordinator, &late), WEIR_OK);
	cr_expect_eq(join(coordinator, &error), WEIR_ABORTED);
	cr_expect_str_eq(error.message, "late");
	destroy(coordinator);
}

Test(coordinator, COO_013_clear_stop_forgets_the_error_too)
{
	weir_coordinator *coordinator = create(0, 0);
	weir_error first = error_with(WEIR_ABORTED, "first cycle");
	weir_error second = error_with(WEIR_INTERNAL, "second cycle");
	weir_error error;

	cr_expect_eq(weir_coordinator_request_stop(coordinator, &first), WEIR_OK);
	cr_expect_eq(join(coordinator, NULL), WEIR_ABORTED);
	cr_assert_eq(weir_coordinator_clear_stop(coordinator, NULL), WEIR_OK);
	cr_expect_not(weir_coordinator_should_stop(coordinator));
	cr_expect_not(weir_coordinator_joined(coordinator));
	cr_expect_not(weir_cancel_fired(weir_coordinator_cancel(coordinator)));
	cr_expect_eq(weir_coordinator_status(coordinator, NULL), WEIR_OK);
	cr_expect_eq(weir_coordinator_request_stop(coordinator, &second), WEIR_OK);
	cr_expect_eq(join(coordinator, &error), WEIR_INTERNAL);
	cr_expect_str_eq(error.message, "second cycle");
	destroy(coordinator);
}

Test(coordinator, the_token_fires_with_the_reason)
{
	weir_coordinator *coordinator = create(0, 0);
	weir_cancel *token = weir_cancel_retain(weir_coordinator_cancel(coordinator));
	weir_error cause = error_with(WEIR_DATA_LOSS, "block 7 is gone");
	weir_error error;

	cr_expect_not(weir_cancel_fired(token));
	cr_expect_eq(weir_coordinator_request_stop(coordinator, &cause), WEIR_OK);
	cr_expect(weir_cancel_fired(token));
	cr_expect_eq(weir_cancel_cause(token, &error), WEIR_CANCELLED);
	cr_expect_not_null(strstr(error.message, "block 7 is gone"));
	cr_expect_not_null(strstr(error.message, "WEIR_DATA_LOSS"));
	destroy(coordinator);
	cr_expect(weir_cancel_fired(token));
	weir_cancel_release(token);
}

static void count_call(void *context)
{
	struct job *job = context;

	(void)weiri_fetch_add_release(&job->calls, 1);
}

Test(coordinator, on_stop_runs_once_and_at_once_when_it_is_late)
{
	weir_coordinator *coordinator = create(0, 0);
	struct job job = {.plain = 0};
	weir_cancel_hook *early;
	weir_cancel_hook *withdrawn;
	weir_cancel_hook *late;

	cr_assert_eq(weir_coordinator_on_stop(coordinator, count_call, &job, &early), WEIR_OK);
	cr_assert_eq(weir_coordinator_on_stop(coordinator, count_call, &job, &withdrawn), WEIR_OK);
	cr_expect_eq(weir_cancel_off(withdrawn), 1);
	cr_expect_eq(weiri_load_acquire(&job.calls), 0);
	cr_expect_eq(weir_coordinator_request_stop(coordinator, NULL), WEIR_OK);
	cr_expect_eq(weiri_load_acquire(&job.calls), 1);
	cr_expect_eq(weir_coordinator_request_stop(coordinator, NULL), WEIR_OK);
	cr_assert_eq(weir_coordinator_on_stop(coordinator, count_call, &job, &late), WEIR_OK);
	cr_expect_eq(weiri_load_acquire(&job.calls), 2);
	cr_expect_eq(weir_cancel_off(early), 0);
	cr_expect_eq(weir_cancel_off(late), 0);
	destroy(coordinator);
}

struct rival {
	weir_coordinator *coordinator;
	pthread_barrier_t *gate;
	weir_error error;
	enum weir_status status;
};

static void *stop_with_error(void *argument)
{
	struct rival *self = argument;

	(void)pthread_barrier_wait(self->gate);
	self->status = weir_coordinator_request_stop(self->coordinator, &self->error);
	return NULL;
}

Test(coordinator, of_many_errors_at_once_exactly_one_is_kept)
{
	enum { RIVALS = 4, ROUNDS = 200 };
	weir_coordinator *coordinator = create(0, 0);
	pthread_barrier_t gate;

	cr_assert_eq(pthread_barrier_init(&gate, NULL, RIVALS), 0);
	for (int round = 0; round < ROUNDS; round++) {
		struct rival rivals[RIVALS];
		pthread_t threads[RIVALS];
		struct job job = {.plain = 0};
		weir_cancel_hook *hook;
		weir_error error;
		int number = -1;

		cr_assert_eq(weir_coordinator_on_stop(coordinator, count_call, &job, &hook), WEIR_OK);
		for (int i = 0; i < RIVALS; i++) {
			rivals[i] = (struct rival){coordinator, &gate, {WEIR_ABORTED, ""}, WEIR_OK};
			(void)snprintf(rivals[i].error.message, sizeof(rivals[i].error.message), "%d", i);
			cr_assert_eq(pthread_create(&threads[i], NULL, stop_with_error, &rivals[i]), 0);
		}
		cr_assert_eq(weir_coordinator_wait_for_stop(coordinator, weir_deadline_in(long_ns)), WEIR_OK);
		for (int i = 0; i < RIVALS; i++) {
			cr_assert_eq(pthread_join(threads[i], NULL), 0);
			cr_expect_eq(rivals[i].status, WEIR_OK);
		}
		cr_expect_eq(join(coordinator, &error), WEIR_ABORTED);
		cr_expect_eq(sscanf(error.message, "%d", &number), 1);
		cr_expect(number >= 0 && number < RIVALS);
		cr_expect_eq(weiri_load_acquire(&job.calls), 1);
		(void)weir_cancel_off(hook);
		cr_assert_eq(weir_coordinator_clear_stop(coordinator, NULL), WEIR_OK);
	}
	cr_assert_eq(pthread_barrier_destroy(&gate), 0);
	destroy(coordinator);
}

/* Two threads that begin each round within a few instructions of one another. */
struct duel {
	weir_coordinator *coordinator;
	_Atomic(int) begun;
	_Atomic(int) ended;
	int rounds;
	enum weir_status status;
};

static void *stop_in_each_round(void *argument)
{
	struct duel *duel = argument;
	weir_error beside = {WEIR_ABORTED, "beside"};

	for (int round = 1; round <= duel->rounds; round++) {
		if (!reaches(&duel->begun, round))
			break;
		duel->status = weir_coordinator_request_stop(duel->coordinator, &beside);
		weiri_store_release(&duel->ended, round);
	}
	return NULL;
}

/* Either join returns an error, or its reporter gets it back. It is never lost. */
Test(coordinator, an_error_beside_the_join_is_not_lost)
{
	struct duel duel = {.coordinator = create(0, 0), .rounds = 10000};
	pthread_t thread;
	int pauses = 0;

	cr_assert_eq(pthread_create(&thread, NULL, stop_in_each_round, &duel), 0);
	for (int round = 1; round <= duel.rounds; round++) {
		enum weir_status joined;

		weiri_store_release(&duel.begun, round);
		for (int i = 0; i < pauses; i++)
			weiri_pause();
		joined = join(duel.coordinator, NULL);
		cr_assert(reaches(&duel.ended, round));
		cr_assert((joined == WEIR_ABORTED) != (duel.status == WEIR_ABORTED), "round %d: join %s, reporter %s", round,
		          weir_status_name(joined), weir_status_name(duel.status));
		/*
		 * If the join came first, it begins later the next time, else earlier, so that the two
		 * meet.
		 */
		pauses += joined == WEIR_OK ? pauses < 500 : -(pauses > 0);
		cr_assert_eq(weir_coordinator_clear_stop(duel.coordinator, NULL), WEIR_OK);
	}
	cr_assert_eq(pthread_join(thread, NULL), 0);
	destroy(duel.coordinator);
}

static enum weir_status stop_at_third_call(weir_coordinator *coordinator, void *context, weir_error *error)
{
	struct job *job = context;

	(void)error;
	if (++job->plain == 3)
		(void)weir_coordinator_request_stop(coordinator, NULL);
	return WEIR_OK;
}

Test(coordinator, COO_016_a_loop_runs_until_it_requests_the_stop)
{
	weir_coordinator *coordinator = create(0, 0);
	struct job job = {.plain = 0};

	cr_assert_eq(weir_coordinator_start_loop(coordinator, "loop", 0, stop_at_third_call, &job, NULL), WEIR_OK);
	cr_expect_eq(join(coordinator, NULL), WEIR_OK);
	cr_expect_eq(job.plain, 3);
	destroy(coordinator);
}

Test(coordinator, a_loop_with_an_interval_keeps_to_it)
{
	weir_coordinator *coordinator = create(0, 0);
	struct job job = {.plain = 0};
	uint64_t before = weir_now_ns();

	/* The calls come at 0, 2 and 4 ms. */
	cr_assert_eq(weir_coordinator_start_loop(coordinator, "loop", 2 * ms, stop_at_third_call, &job, NULL), WEIR_OK);
	cr_expect_eq(join(coordinator, NULL), WEIR_OK);
	cr_expect_geq(weir_now_ns() - before, 4 * ms);
	cr_expect_eq(job.plain, 3);
	destroy(coordinator);
}

static enum weir_status call_and_count(weir_coordinator *coordinator, void *context, weir_error *error)
{
	(void)coordinator;
	(void)error;
	count_call(context);
	return WEIR_OK;
}

Test(coordinator, a_stop_does_not_wait_for_the_interval_of_a_loop)
{
	weir_coordinator *coordinator = create(0, 0);
	struct job job = {.plain = 0};

	cr_assert_eq(weir_coordinator_start_loop(coordinator, "loop", 1000 * long_ns, call_and_count, &job, NULL), WEIR_OK);
	cr_assert(reaches(&job.calls, 1));
	cr_expect_eq(weir_coordinator_request_stop(coordinator, NULL), WEIR_OK);
	cr_expect_eq(join(coordinator, NULL), WEIR_OK);
	cr_expect_eq(weiri_load_acquire(&job.calls), 1);
	destroy(coordinator);
}

Test(coordinator, a_loop_that_fails_stops_all)
{
	weir_coordinator *coordinator = create(0, 0);
	struct job job = {.plain = 0};

	start(coordinator, "other", until_stop, &job);
	cr_assert_eq(weir_coordinator_start_loop(coordinator, "loop", 0, fail_with_message, NULL, NULL), WEIR_OK);
	cr_expect_eq(join(coordinator, NULL), WEIR_DATA_LOSS);
	destroy(coordinator);
}

static enum weir_status exit_the_thread(weir_coordinator *coordinator, void *context, weir_error *error)
{
	(void)coordinator;
	(void)context;
	(void)error;
	pthread_exit(NULL);
}

Test(coordinator, a_thread_that_calls_pthread_exit_has_ended)
{
	weir_coordinator *coordinator = create(0, 0);

	start(coordinator, NULL, exit_the_thread, NULL);
	cr_expect_eq(join(coordinator, NULL), WEIR_OK);
	destroy(coordinator);
}

static pthread_key_t last_words;

/* Takes a while, so that a join which does not wait for it is seen. */
static void say_last_words(void *context)
{
	uint64_t end_ns = weir_deadline_in(20 * ms);
	struct job *job = context;

	while (weir_now_ns() < end_ns)
		(void)sched_yield();
	(void)weiri_fetch_add_release(&job->ended, 1);
}

/* Ends some time after the stop. */
static enum weir_status leave_last_words(weir_coordinator *coordinator, void *context, weir_error *error)
{
	enum weir_status status = until_stop(coordinator, context, error);
	uint64_t end_ns = weir_deadline_in(10 * ms);

	while (weir_now_ns() < end_ns)
		(void)sched_yield();
	return pthread_setspecific(last_words, context) == 0 ? status : WEIR_INTERNAL;
}

/* After the join, the program may free what the destructors of the threads use. */
Test(coordinator, join_waits_until_the_system_has_ended_the_threads)
{
	weir_coordinator *coordinator = create(0, 0);
	struct job job = {.plain = 0};

	cr_assert_eq(pthread_key_create(&last_words, say_last_words), 0);
	for (int i = 0; i < 3; i++)
		start(coordinator, NULL, leave_last_words, &job);
	cr_assert(reaches(&job.started, 3));
	weir_coordinator_request_stop(coordinator, NULL);
	cr_expect_eq(join(coordinator, NULL), WEIR_OK);
	cr_expect_eq(weiri_load_acquire(&job.ended), 3 + 3, "its function, and its last words");
	cr_assert_eq(pthread_key_delete(last_words), 0);
	destroy(coordinator);
}

Test(coordinator, many_short_threads_do_not_add_up)
{
	struct failing_allocator memory = {.fail_at = 0};
	weir_allocator allocator = failing_allocator_hooks(&memory);
	struct weir_coordinator_options options = {WEIR_COORDINATOR_OPTIONS_INIT, .allocator = &allocator};
	weir_coordinator *coordinator = NULL;
	struct job jobs[100] = {{.plain = 0}};
	int sum = 0;

	cr_assert_eq(weir_coordinator_create(&options, &coordinator, NULL), WEIR_OK);
	for (int i = 0; i < 100; i++) {
		weir_coordinator_member *member = NULL;

		start(coordinator, NULL, end_at_once, &jobs[i]);
		cr_assert_eq(weir_coordinator_enter(coordinator, NULL, &member, NULL), WEIR_OK);
		weir_coordinator_leave(member);
		if (i % 10 == 9)
			cr_expect_eq(join(coordinator, NULL), WEIR_OK);
	}
	for (int i = 0; i < 100; i++)
		sum += jobs[i].plain;
	cr_expect_eq(sum, 100);
	cr_expect_lt(weiri_load_relaxed(&memory.outstanding), 30);
	destroy(coordinator);
	cr_expect_str_eq(failing_allocator_verdict(&memory), "balanced");
}

/* Makes all calls that allocate and can report a failure. */
static enum weir_status use_a_coordinator(const weir_allocator *allocator, void *context)
{
	struct weir_coordinator_options options = {WEIR_COORDINATOR_OPTIONS_INIT, .allocator = allocator};
	weir_coordinator *coordinator = NULL;
	weir_coordinator_member *member = NULL;
	enum weir_status status = weir_coordinator_create(&options, &coordinator, NULL);

	if (status == WEIR_OK)
		status = weir_coordinator_enter(coordinator, NULL, &member, NULL);
	if (status == WEIR_OK)
		status = weir_coordinator_start_thread(coordinator, NULL, end_at_once, context, NULL);
	weir_coordinator_leave(member);
	if (coordinator != NULL)
		cr_expect_eq(join(coordinator, NULL), WEIR_OK);
	if (status == WEIR_OK && weir_coordinator_request_stop(coordinator, NULL) == WEIR_OK)
		status = weir_coordinator_clear_stop(coordinator, NULL);
	destroy(coordinator);
	return status;
}

Test(coordinator, calls_survive_every_allocation_failing)
{
	struct job job = {.plain = 0};

	cr_expect_eq(fail_each_allocation(use_a_coordinator, &job), 5, "the coordinator, two tokens, two members");
}

Test(coordinator, an_error_without_memory_keeps_its_code)
{
	struct failing_allocator memory = {.fail_count = SIZE_MAX};
	weir_allocator allocator = failing_allocator_hooks(&memory);
	struct weir_coordinator_options options = {WEIR_COORDINATOR_OPTIONS_INIT, .allocator = &allocator};
	weir_coordinator *coordinator = NULL;
	weir_error cause = error_with(WEIR_DATA_LOSS, "block 7 is gone");
	weir_error error;

	cr_assert_eq(weir_coordinator_create(&options, &coordinator, NULL), WEIR_OK);
	memory.fail_at = 1;
	cr_expect_eq(weir_coordinator_request_stop(coordinator, &cause), WEIR_OK);
	cr_expect_eq(join(coordinator, &error), WEIR_DATA_LOSS);
	cr_expect_eq(error.code, WEIR_DATA_LOSS);
	cr_expect_not_null(strstr(error.message, "WEIR_DATA_LOSS"));
	destroy(coordinator);
	cr_expect_str_eq(failing_allocator_verdict(&memory), "balanced");
}

/* Enters and leaves until the stop, while the test lists the names of the members. */
static void *come_and_go(void *argument)
{
	weir_coordinator *coordinator = argument;
	char name[16];

	for (int i = 0; !weir_coordinator_should_stop(coordinator); i++) {
		weir_coordinator_member *member;

		(void)snprintf(name, sizeof(name), "guest %d", i % 1000);
		if (weir_coordinator_enter(coordinator, name, &member, NULL) == WEIR_OK)
			weir_coordinator_leave(member);
	}
	return NULL;
}

Test(coordinator, stragglers_are_listed_while_members_come_and_go)
{
	enum { GUESTS = 3 };
	weir_coordinator *coordinator = create(0, 0);
	weir_coordinator_member *constant = NULL;
	pthread_t threads[GUESTS];
	weir_error error;

	cr_assert_eq(weir_coordinator_enter(coordinator, "constant", &constant, NULL), WEIR_OK);
	for (int i = 0; i < GUESTS; i++)
		cr_assert_eq(pthread_create(&threads[i], NULL, come_and_go, coordinator), 0);
	for (int i = 0; i < 2000; i++) {
		cr_assert_eq(weir_coordinator_join(coordinator, 0, 0, 0, &error), WEIR_DEADLINE_EXCEEDED);
		cr_assert_not_null(strstr(error.message, "constant"), "%s", error.message);
	}
	cr_expect_eq(weir_coordinator_request_stop(coordinator, NULL), WEIR_OK);
	for (int i = 0; i < GUESTS; i++)
		cr_assert_eq(pthread_join(threads[i], NULL), 0);
	weir_coordinator_leave(constant);
	cr_expect_eq(join(coordinator, NULL), WEIR_OK);
	destroy(coordinator);
}
