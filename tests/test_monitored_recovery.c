/*
 * test_monitored_recovery.c - monitored sessions that recover: how long and how often, beside the runs of other
 * threads, and in the threads and kernels of the life that ends.
 */
#include "monitored_kit.h"

#include <pthread.h>

/* A run that a deadline bounds, while make never succeeds. */
Test(monitored_recovery, the_deadline_of_a_run_ends_its_recovery)
{
	struct counting counting;
	struct job job;
	weir_tensor *result = NULL;
	weir_error error;

	counting_init(&counting, "fails", NULL);
	counting.fail_in = AT_BEFORE;
	counting.fail_at = 1;
	job_start_with_hook(&job, &counting.hook);
	cr_expect_eq(weir_monitored_run(job.monitored, NULL, 0, &job.count, 1, &result, NULL, 0, 0, NULL, NULL, &error),
	             WEIR_DEADLINE_EXCEEDED);
	cr_expect_not_null(strstr(error.message, "as it was told"), "%s", error.message);
	cr_expect_eq(job.made, 1);
	cr_expect_eq(job_count(&job), 1);
	job_finish(&job);
}

Test(monitored_recovery, the_number_of_recoveries_of_a_call_can_be_limited)
{
	struct weir_monitored_options options;
	struct counting counting;
	const struct weir_monitored_hook *hooks[1] = {&counting.hook};
	weir_error error;
	int64_t value;
	struct job job;

	job_begin(&job);
	options = job_options(&job);
	options.recover_limit = 2;
	job.fail_at[0] = 1;
	job.fail_at[1] = 2;
	job_create(&job, &options);
	cr_expect_eq(job.made, 3);
	job_end(&job);

	counting_init(&counting, "fails", NULL);
	counting.fail_in = AT_CREATE;
	counting.fail_at = 3;
	job_begin(&job);
	options = job_options(&job);
	options.recover_limit = 1;
	options.hooks = hooks;
	options.hook_count = 1;
	job_create(&job, &options);
	counting.fail_in = AT_BEFORE;
	counting.fail_at = 1;
	job.fail_at[0] = 2;
	cr_expect_eq(job_run(&job, &value, &error), WEIR_UNAVAILABLE);
	cr_expect_str_eq(error.message, "monitored session \"job\": make: no room for a session");
	cr_expect_eq(job_count(&job), 1, "the next call tries again");
	cr_expect_eq(job.made, 3);
	job_finish(&job);
}

/* Many threads count; now and then one of them says that the session is lost. */
enum { COUNTERS = 3, RUNS = 60 };

struct crowd {
	struct job job;
	_Atomic(int) lost;
	int each[COUNTERS];
};

struct counter {
	struct crowd *crowd;
	int number;
	int calls;
};

static enum weir_status count_or_lose(void *context, weir_session *session, weir_error *error)
{
	struct counter *counter = context;
	struct job *job = &counter->crowd->job;

	if (++counter->calls % 20 == 7 + counter->number) {
		(void)weiri_fetch_add_relaxed(&counter->crowd->lost, 1);
		return kit_fail(error, WEIR_UNAVAILABLE, "lost");
	}
	return weir_session_run(session, NULL, 0, NULL, 0, NULL, &job->count.node, 1, WEIR_NO_DEADLINE, NULL, error);
}

static void *count_in_crowd(void *argument)
{
	struct counter *counter = argument;
	weir_monitored *monitored = counter->crowd->job.monitored;

	for (int i = 0; i < RUNS; i++) {
		enum weir_status status =
			i % 2 == 0 ? weir_monitored_step(monitored, count_or_lose, counter, NULL)
					   : weir_monitored_run(monitored, NULL, 0, NULL, 0, NULL, &counter->crowd->job.count.node, 1,
		                                    WEIR_NO_DEADLINE, NULL, NULL, NULL);

		counter->crowd->each[counter->number] += status == WEIR_OK;
		(void)weir_monitored_should_stop(monitored);
	}
	return NULL;
}

Test(monitored_recovery, threads_that_run_while_others_recover_lose_no_run)
{
	struct counter counters[COUNTERS];
	pthread_t threads[COUNTERS];
	struct crowd crowd = {.lost = 0};

	job_start(&crowd.job);
	for (int i = 0; i < COUNTERS; i++) {
		counters[i] = (struct counter){&crowd, i, 0};
		cr_assert_eq(pthread_create(&threads[i], NULL, count_in_crowd, &counters[i]), 0);
	}
	for (int i = 0; i < COUNTERS; i++)
		cr_assert_eq(pthread_join(threads[i], NULL), 0);
	for (int i = 0; i < COUNTERS; i++)
		cr_expect_eq(crowd.each[i], RUNS, "thread %d: %d runs succeeded", i, crowd.each[i]);
	/* Runs that a recovery cancelled after their effect are repeated, so there may be more. */
	cr_expect_geq(job_step(&crowd.job), COUNTERS * RUNS);
	cr_expect_gt(weiri_load_relaxed(&crowd.lost), 0);
	cr_expect_gt(crowd.job.made, 1);
	cr_expect_leq(crowd.job.made, 1 + weiri_load_relaxed(&crowd.lost));
	job_finish(&crowd.job);
}

static enum weir_status count_in_its_thread(weir_coordinator *coordinator, void *context, weir_error *error)
{
	struct counting *counting = context;
	struct job *job = counting->job;
	int64_t value;

	(void)coordinator;
	/* The thread ends with its life, so it cannot make the next one. */
	return weir_monitored_run(job->monitored, NULL, 0, NULL, 0, NULL, &job->count.node, 1, WEIR_NO_DEADLINE, NULL, NULL,
	                          error) == WEIR_OK
	           ? WEIR_OK
	           : (value = error->code, (enum weir_status)value);
}

Test(monitored_recovery, a_thread_of_the_life_reports_what_it_cannot_recover)
{
	struct counting counting;
	uint64_t deadline_ns = weir_deadline_in(KIT_PATIENCE_NS);
	struct job job;

	counting_init(&counting, "fails", &job);
	counting.fail_in = AT_BEFORE;
	counting.fail_at = 1;
	job_start_with_hook(&job, &counting.hook);
	cr_assert_eq(weir_coordinator_start_thread(counting.coordinator, "trainer", count_in_its_thread, &counting, NULL),
	             WEIR_OK);
	while (!weir_coordinator_should_stop(counting.coordinator) && weir_now_ns() < deadline_ns)
		(void)sched_yield();
	cr_expect_eq(job.made, 1);
	cr_expect_eq(job_count(&job), 1);
	cr_expect_eq(job.made, 2);
	job_finish(&job);
}

/* A thread of the life that runs something while the life is replaced, and closes the session. */
struct left_behind {
	struct job job;
	enum weir_status run, closed;
	weir_error run_error, close_error;
};

static enum weir_status run_in_a_recovery(weir_coordinator *coordinator, void *context, weir_error *error)
{
	struct left_behind *behind = context;
	uint64_t deadline_ns = weir_deadline_in(KIT_PATIENCE_NS);
	int64_t value;

	(void)error;
	(void)weir_coordinator_wait_for_stop(coordinator, deadline_ns);
	do { /* The recovery has stopped the coordinator, and is about to close the session and the gate. */
		behind->run_error.message[0] = '\0';
		behind->run = job_run(&behind->job, &value, &behind->run_error);
	} while (strstr(behind->run_error.message, "a recovery is under way") == NULL && weir_now_ns() < deadline_ns);
	behind->closed = weir_monitored_close(behind->job.monitored, WEIR_OK, &behind->close_error);
	return WEIR_OK;
}

static enum weir_status start_once(void *context, weir_session *session, weir_coordinator *coordinator,
                                   weir_error *error)
{
	struct left_behind *behind = context;

	(void)session;
	return behind->job.made > 1
	           ? WEIR_OK
	           : weir_coordinator_start_thread(coordinator, "behind", run_in_a_recovery, behind, error);
}

static enum weir_status lose_once(void *context, weir_session *session, weir_error *error)
{
	struct left_behind *behind = context;

	(void)session;
	return behind->job.made > 1 ? WEIR_OK : kit_fail(error, WEIR_UNAVAILABLE, "the device is gone");
}

/* It would wait for the recovery that joins it. */
Test(monitored_recovery, a_thread_of_the_life_does_not_wait_for_the_recovery_that_joins_it)
{
	struct left_behind behind = {.run = WEIR_OK};
	struct weir_monitored_hook hook = {WEIR_MONITORED_HOOK_INIT, .context = &behind, .after_create = start_once};
	const struct weir_monitored_hook *hooks[1] = {&hook};
	struct weir_monitored_options options;
	weir_error error = {WEIR_OK, ""};

	job_begin(&behind.job);
	options = job_options(&behind.job);
	options.hooks = hooks;
	options.hook_count = 1;
	options.grace_ns = KIT_PATIENCE_NS / 10;
	job_create(&behind.job, &options);
	cr_assert_eq(weir_monitored_step(behind.job.monitored, lose_once, &behind, &error), WEIR_OK, "%s", error.message);
	cr_expect_eq(behind.job.made, 2);
	cr_expect_eq(behind.run, WEIR_CANCELLED);
	cr_expect_not_null(strstr(behind.run_error.message, "a thread of its coordinator"), "%s", behind.run_error.message);
	cr_expect_eq(behind.closed, WEIR_FAILED_PRECONDITION);
	cr_expect_not_null(strstr(behind.close_error.message, "a thread of the coordinator"), "%s",
	                   behind.close_error.message);
	job_finish(&behind.job);
}

/* A kernel that runs something of its monitored session: `nested` is what came of it. */
struct nesting {
	struct job *job;
	enum weir_status nested, closed;
};

static enum weir_status run_inside(void *context, const struct weir_kernel_call *call, weir_error *error)
{
	struct nesting *nesting = context;
	struct job *job = nesting->job;

	nesting->closed = weir_monitored_close(job->monitored, WEIR_OK, NULL);
	nesting->nested = weir_monitored_run(job->monitored, NULL, 0, NULL, 0, NULL, &job->count.node, 1, WEIR_NO_DEADLINE,
	                                     NULL, NULL, error);
	return nesting->nested == WEIR_OK ? weir_tensor_scalar_i64(7, &call->outputs[0]) : nesting->nested;
}

/* On a worker, and on the thread of the run. The session waits for its kernels, so none waits for the next session. */
Test(monitored_recovery, a_kernel_runs_in_its_life_and_does_not_recover)
{
	for (size_t threads = 0; threads < 2; threads++) {
		struct weir_output_type type = {WEIR_I64, &weir_shape_scalar};
		const struct weir_monitored_hook *hooks[1];
		struct weir_monitored_options options;
		weir_error error = {WEIR_OK, ""};
		struct counting counting;
		struct nesting nesting;
		weir_output seven;
		struct job job;

		counting_init(&counting, "fails", &job);
		counting.fail_in = AT_BEFORE;
		counting.fail_at = 2;
		hooks[0] = &counting.hook;
		job_begin(&job);
		job.threads = threads;
		nesting = (struct nesting){&job, WEIR_OK, WEIR_OK};
		cr_assert_eq(weir_op_kernel(job.graph, "nests", KIT_KERNEL(run_inside), &nesting, NULL, 0, &type, 1, NULL, 0,
		                            &seven, NULL, NULL),
		             WEIR_OK);
		options = job_options(&job);
		options.hooks = hooks;
		options.hook_count = 1;
		job_create(&job, &options);
		cr_expect_eq(weir_monitored_run(job.monitored, NULL, 0, NULL, 0, NULL, &seven.node, 1, WEIR_NO_DEADLINE, NULL,
		                                NULL, &error),
		             WEIR_OK, "%s", error.message);
		cr_expect_eq(nesting.closed, WEIR_FAILED_PRECONDITION);
		cr_expect_eq(nesting.nested, WEIR_OK);
		cr_expect_eq(job.made, 2, "the nested run failed once, and the outer one recovered");
		cr_expect_eq(job_step(&job), 1);
		expect_calls(&counting, 1, 2, 4, 2, 0);
		job_finish(&job);
	}
}
