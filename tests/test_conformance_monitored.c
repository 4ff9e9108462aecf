/*
 * test_conformance_monitored.c - the rows of monitored sessions (MON) about checkpoints, runs, ends and
 * recovery, and those of queue runners that a monitored session starts. WEIR_UNAVAILABLE stands for
 * the two statuses that recover in the rows, unless a test says otherwise in its options.
 */
#include "monitored_kit.h"

/* -- checkpoints ------------------------------------------------------------------------------- */

static struct weir_monitored_options options_with_checkpoint(struct job *job, struct weir_checkpoint_part *part)
{
	struct weir_monitored_options options = job_options(job);

	*part = (struct weir_checkpoint_part){"step", job->step};
	options.variables = part;
	options.variable_count = 1;
	options.path = job->path;
	return options;
}

static void set_step(struct job *job, int64_t value)
{
	weir_tensor *tensor = kit_i64(value);

	cr_assert_eq(weir_var_assign(job->step, tensor, WEIR_NO_DEADLINE, NULL, NULL), WEIR_OK);
	weir_tensor_release(tensor);
}

/* Also, a part without a name: that of its variable. */
Test(conformance_monitored, MON_008_a_checkpoint_is_saved_at_the_end_and_restored_at_the_start)
{
	struct weir_monitored_options options;
	struct weir_checkpoint_part part;
	struct job job;

	job_begin(&job);
	job_folder(&job);
	options = options_with_checkpoint(&job, &part);
	part.name = NULL;
	job_create(&job, &options);
	cr_expect_eq(job_count(&job), 1);
	cr_expect_eq(job_count(&job), 2);
	cr_assert_eq(job_close(&job, WEIR_OK, NULL), WEIR_OK);
	cr_assert_eq(weir_monitored_destroy(job.monitored, NULL), WEIR_OK);
	set_step(&job, 70);
	job_create(&job, &options);
	cr_expect_eq(job_step(&job), 2);
	cr_expect_eq(job_count(&job), 3);
	job_finish(&job);
}

/* A crash after two runs: nothing is saved at the end, but after each run. */
Test(conformance_monitored, MON_046_a_restart_continues_at_the_last_saved_step)
{
	struct weir_monitored_options options;
	struct weir_checkpoint_part part;
	struct job job;

	job_begin(&job);
	job_folder(&job);
	options = options_with_checkpoint(&job, &part);
	options.save_every_runs = 1;
	job_create(&job, &options);
	cr_expect_eq(job_count(&job), 1);
	cr_expect_eq(job_count(&job), 2);
	cr_assert_eq(job_close(&job, WEIR_INTERNAL, NULL), WEIR_INTERNAL);
	cr_assert_eq(weir_monitored_destroy(job.monitored, NULL), WEIR_OK);
	set_step(&job, 70);
	job_create(&job, &options);
	cr_expect_eq(job_step(&job), 2);
	job_finish(&job);
}

Test(conformance_monitored, MON_049_without_a_checkpoint_a_recovery_begins_at_the_values_of_make)
{
	struct weir_monitored_options options;
	const struct weir_monitored_hook *hooks[1];
	struct counting counting;
	struct job job;

	job_begin(&job);
	job.resets = true;
	counting_init(&counting, "fails", &job);
	counting.fail_in = AT_AFTER;
	counting.fail_at = 3;
	hooks[0] = &counting.hook;
	options = job_options(&job);
	options.hooks = hooks;
	options.hook_count = 1;
	job_create(&job, &options);
	cr_expect_eq(job_count(&job), 1);
	cr_expect_eq(job_count(&job), 2);
	cr_expect_eq(job_count(&job), 1, "from the start");
	cr_expect_eq(job.made, 2);
	cr_expect_eq(job.unmade, 1);
	expect_calls(&counting, 1, 2, 4, 4, 0);
	job_finish(&job);
}

Test(conformance_monitored, MON_050_with_a_checkpoint_a_recovery_continues_there)
{
	const struct weir_monitored_hook *hooks[1];
	struct weir_monitored_options options;
	struct weir_checkpoint_part part;
	struct counting counting;
	struct job job;

	job_begin(&job);
	job_folder(&job);
	counting_init(&counting, "fails", &job);
	counting.fail_in = AT_BEFORE;
	counting.fail_at = 3;
	counting.failure = WEIR_ABORTED;
	hooks[0] = &counting.hook;
	options = options_with_checkpoint(&job, &part);
	options.hooks = hooks;
	options.hook_count = 1;
	options.save_every_runs = 1;
	options.recover_codes = WEIR_COORDINATOR_CLEAN(WEIR_ABORTED);
	job.resets = true;
	job_create(&job, &options);
	cr_expect_eq(job_count(&job), 1);
	cr_expect_eq(job_count(&job), 2);
	cr_expect_eq(job_count(&job), 3);
	cr_expect_eq(job.made, 2);
	job_finish(&job);
}

/* -- runs -------------------------------------------------------------------------------------- */

struct seen_session {
	struct job *job;
	weir_session *session;
};

static enum weir_status see_session(void *context, weir_session *session, weir_error *error)
{
	(void)error;
	((struct seen_session *)context)->session = session;
	return WEIR_OK;
}

Test(conformance_monitored, MON_010_a_step_has_the_session_that_was_made)
{
	struct seen_session seen = {.session = NULL};
	struct job job;

	job_start(&job);
	cr_assert_eq(weir_monitored_step(job.monitored, see_session, &seen, NULL), WEIR_OK);
	cr_expect_eq(seen.session, job.session);
	job_finish(&job);
}

Test(conformance_monitored, MON_015_a_run_reaches_the_session)
{
	weir_tensor *three = kit_i64(3), *result = NULL;
	weir_error error = {WEIR_OK, ""};
	struct weir_feed feed;
	struct job job;

	job_start(&job);
	feed = (struct weir_feed){job.x, three};
	cr_assert_eq(weir_monitored_run(job.monitored, &feed, 1, &job.doubled, 1, &result, NULL, 0, WEIR_NO_DEADLINE, NULL,
	                                NULL, &error),
	             WEIR_OK, "%s", error.message);
	cr_expect_eq(kit_i64_at(result, 0), 6);
	weir_tensor_release(result);
	weir_tensor_release(three);
	job_finish(&job);
}

/* Feeds, fetches, targets, deadline, token and options; with hooks, which change nothing. */
Test(conformance_monitored, MON_035_a_run_passes_all_arguments_on)
{
	struct weir_run_options options = {WEIR_RUN_OPTIONS_INIT, .flags = WEIR_RUN_ON_CALLER};
	weir_tensor *three = kit_i64(3), *result = NULL;
	weir_error error = {WEIR_OK, ""};
	weir_cancel *cancel = NULL;
	struct counting counting;
	struct weir_feed feed;
	struct job job;

	counting_init(&counting, "idle", NULL);
	job_start_with_hook(&job, &counting.hook);
	cr_assert_eq(weir_cancel_create(NULL, &cancel, NULL), WEIR_OK);
	feed = (struct weir_feed){job.x, three};
	cr_assert_eq(weir_monitored_run(job.monitored, &feed, 1, &job.doubled, 1, &result, &job.count.node, 1,
	                                weir_deadline_in(KIT_PATIENCE_NS), cancel, &options, &error),
	             WEIR_OK, "%s", error.message);
	cr_expect_eq(kit_i64_at(result, 0), 6);
	cr_expect_eq(job_step(&job), 1, "the target ran");
	weir_tensor_release(result);
	result = NULL;
	cr_expect_eq(weir_monitored_run(job.monitored, &feed, 1, &job.doubled, 1, &result, NULL, 0, 0, NULL, NULL, NULL),
	             WEIR_DEADLINE_EXCEEDED);
	(void)weir_cancel_fire(cancel, &(weir_error){WEIR_ABORTED, "enough"});
	cr_expect_eq(weir_monitored_run(job.monitored, &feed, 1, &job.doubled, 1, &result, NULL, 0, WEIR_NO_DEADLINE,
	                                cancel, NULL, &error),
	             WEIR_ABORTED);
	cr_expect_not_null(strstr(error.message, "enough"));
	options.flags = 64;
	cr_expect_eq(weir_monitored_run(job.monitored, &feed, 1, &job.doubled, 1, &result, NULL, 0, WEIR_NO_DEADLINE, NULL,
	                                &options, NULL),
	             WEIR_INVALID_ARGUMENT);
	cr_expect_null(result);
	weir_cancel_release(cancel);
	weir_tensor_release(three);
	job_finish(&job);
}

Test(conformance_monitored, MON_043_variables_have_their_values_at_once)
{
	struct job job;

	job_start(&job);
	cr_expect_eq(job_step(&job), 0);
	cr_expect_eq(job_count(&job), 1);
	job_finish(&job);
}

/* -- stopping and closing ---------------------------------------------------------------------- */

Test(conformance_monitored, MON_014_a_second_close_returns_the_same)
{
	weir_error error = {WEIR_OK, "untouched"};
	struct job job;

	job_start(&job);
	cr_expect_eq(job_close(&job, WEIR_OK, &error), WEIR_OK);
	cr_expect_eq(job_close(&job, WEIR_INTERNAL, &error), WEIR_OK);
	cr_expect_str_eq(error.message, "untouched");
	cr_expect_eq(job.unmade, 1);
	job_end(&job);
}

Test(conformance_monitored, MON_018_a_close_stops_and_later_runs_are_refused)
{
	weir_error error;
	int64_t value;
	struct job job;

	job_start(&job);
	cr_expect_not(weir_monitored_should_stop(job.monitored));
	cr_assert_eq(job_close(&job, WEIR_OK, NULL), WEIR_OK);
	cr_expect(weir_monitored_should_stop(job.monitored));
	cr_expect_eq(job_run(&job, &value, &error), WEIR_FAILED_PRECONDITION);
	cr_expect_str_eq(error.message, "monitored session \"job\": is closed");
	job_end(&job);
}

Test(conformance_monitored, MON_019_a_stop_of_the_coordinator_is_seen)
{
	struct counting counting;
	struct job job;

	counting_init(&counting, "gets the coordinator", NULL);
	job_start_with_hook(&job, &counting.hook);
	cr_expect_not(weir_monitored_should_stop(job.monitored));
	cr_assert_eq(weir_coordinator_request_stop(counting.coordinator, NULL), WEIR_OK);
	cr_expect(weir_monitored_should_stop(job.monitored));
	job_finish(&job);
}

Test(conformance_monitored, MON_020_a_run_that_fails_stops_nothing)
{
	weir_tensor *result = NULL;
	struct job job;

	job_start(&job);
	cr_expect_eq(weir_monitored_run(job.monitored, NULL, 0, &job.doubled, 1, &result, NULL, 0, WEIR_NO_DEADLINE, NULL,
	                                NULL, NULL),
	             WEIR_INVALID_ARGUMENT, "x is not fed");
	cr_expect_not(weir_monitored_should_stop(job.monitored));
	cr_expect_eq(job_count(&job), 1);
	cr_expect_eq(job.made, 1);
	job_finish(&job);
}

static enum weir_status until_stop(weir_coordinator *coordinator, void *context, weir_error *error)
{
	_Atomic(int) *ended = context;

	(void)error;
	(void)weir_coordinator_wait_for_stop(coordinator, weir_deadline_in(KIT_PATIENCE_NS));
	weiri_store_release(ended, 1);
	return WEIR_OK;
}

Test(conformance_monitored, MON_022_a_close_stops_and_joins_the_threads)
{
	struct counting counting;
	_Atomic(int) ended = 0;
	struct job job;

	counting_init(&counting, "gets the coordinator", NULL);
	job_start_with_hook(&job, &counting.hook);
	cr_assert_eq(weir_coordinator_start_thread(counting.coordinator, NULL, until_stop, &ended, NULL), WEIR_OK);
	cr_assert_eq(job_close(&job, WEIR_OK, NULL), WEIR_OK);
	cr_expect_eq(weiri_load_acquire(&ended), 1);
	job_end(&job);
}

static enum weir_status run_out(void *context, weir_session *session, weir_error *error)
{
	(void)session;
	++*(int *)context;
	return kit_fail(error, WEIR_OUT_OF_RANGE, "no more numbers");
}

Test(conformance_monitored, MON_051_the_end_of_the_input_is_a_clean_end)
{
	struct counting counting;
	enum weir_status status = WEIR_OK;
	weir_error error = {WEIR_OK, ""};
	int calls = 0;
	struct job job;

	counting_init(&counting, "ends", NULL);
	job_start_with_hook(&job, &counting.hook);
	while (status == WEIR_OK && !weir_monitored_should_stop(job.monitored))
		status = weir_monitored_step(job.monitored, run_out, &calls, &error);
	cr_expect_eq(status, WEIR_OUT_OF_RANGE);
	cr_expect_eq(job_close(&job, status, &error), WEIR_OK, "%s", error.message);
	cr_expect(weir_monitored_should_stop(job.monitored));
	cr_expect_eq(calls, 1);
	expect_calls(&counting, 1, 1, 0, 0, 1);
	job_end(&job);
}

Test(conformance_monitored, MON_054_an_error_of_a_thread_disturbs_no_run_and_comes_out_of_the_close)
{
	weir_error cause = kit_error(WEIR_DATA_LOSS, "block 7 is gone"), error = {WEIR_OK, ""};
	struct counting counting;
	struct job job;

	counting_init(&counting, "gets the coordinator", NULL);
	job_start_with_hook(&job, &counting.hook);
	cr_assert_eq(weir_coordinator_request_stop(counting.coordinator, &cause), WEIR_OK);
	cr_expect_eq(job_count(&job), 1);
	cr_expect(weir_monitored_should_stop(job.monitored));
	cr_expect_eq(job_close(&job, WEIR_OK, &error), WEIR_DATA_LOSS);
	cr_expect_str_eq(error.message, "block 7 is gone");
	cr_expect_eq(job_close(&job, WEIR_OK, &error), WEIR_DATA_LOSS, "a later close, too");
	expect_calls(&counting, 1, 1, 1, 1, 1);
	job_end(&job);
}

Test(conformance_monitored, MON_056_the_session_has_ended_after_a_loop_without_an_error)
{
	struct job job;

	job_start(&job);
	cr_expect_eq(job_count(&job), 1);
	cr_assert_eq(job_close(&job, WEIR_OK, NULL), WEIR_OK);
	cr_expect_eq(job.made, 1);
	cr_expect_eq(job.unmade, 1);
	/* The session has left its graph. */
	cr_assert_eq(weir_graph_destroy(job.graph, NULL), WEIR_OK);
	cr_assert_eq(weir_monitored_destroy(job.monitored, NULL), WEIR_OK);
	weir_var_destroy(job.step, NULL);
}

/* -- recovery ---------------------------------------------------------------------------------- */

Test(conformance_monitored, MON_025_a_run_that_recovers_uses_the_next_session)
{
	struct counting counting;
	weir_error error = {WEIR_OK, ""};
	int64_t value;
	struct job job;

	counting_init(&counting, "fails", NULL);
	counting.fail_in = AT_BEFORE;
	counting.fail_at = 2;
	job_start_with_hook(&job, &counting.hook);
	cr_expect_eq(job_count(&job), 1);
	cr_expect_eq(job_count(&job), 2);
	cr_expect_eq(job.made, 2);
	/* When make fails otherwise, its failure is the run's. The next run tries again. */
	counting.fail_at = 4;
	job.fail_at[0] = 3;
	job.failure = WEIR_NOT_FOUND;
	cr_expect_eq(job_run(&job, &value, &error), WEIR_NOT_FOUND);
	cr_expect_str_eq(error.message, "monitored session \"job\": make: no room for a session");
	cr_expect_not(weir_monitored_should_stop(job.monitored));
	cr_expect_eq(job_count(&job), 3);
	cr_expect_eq(job.made, 4);
	cr_expect_eq(job.unmade, 2);
	job_finish(&job);
}

/* One more through all layers, or only through some. */
enum way { BY_RUN, BY_STEP_WITH_HOOKS, BY_RAW_STEP, WAYS };

static enum weir_status count_raw(void *context, weir_session *session, weir_error *error)
{
	struct job *job = context;

	return kit_run_target(session, job->count.node, error);
}

static enum weir_status count_by(struct job *job, enum way way, weir_error *error)
{
	int64_t value;

	switch (way) {
	case BY_STEP_WITH_HOOKS: return weir_monitored_step(job->monitored, count_with_hooks, job, error);
	case BY_RAW_STEP: return weir_monitored_step(job->monitored, count_raw, job, error);
	default: return job_run(job, &value, error);
	}
}

Test(conformance_monitored, MON_026_a_thread_that_reports_what_recovers_has_the_session_made_anew)
{
	for (enum way way = BY_RUN; way < WAYS; way++) {
		weir_error gone = kit_error(WEIR_UNAVAILABLE, "the device is gone"), error = {WEIR_OK, ""};
		struct counting counting;
		struct job job;

		counting_init(&counting, "gets the coordinator", NULL);
		job_start_with_hook(&job, &counting.hook);
		cr_assert_eq(count_by(&job, way, &error), WEIR_OK, "%s", error.message);
		cr_assert_eq(weir_coordinator_request_stop(counting.coordinator, &gone), WEIR_OK);
		cr_expect_not(weir_monitored_should_stop(job.monitored));
		cr_assert_eq(count_by(&job, way, &error), WEIR_OK, "%s", error.message);
		cr_expect_eq(job.made, 2);
		cr_expect_eq(job_step(&job), 2);
		cr_expect_not(weir_monitored_should_stop(job.monitored));
		job_finish(&job);
	}
}

Test(conformance_monitored, MON_027_a_thread_that_reports_another_error_stops_the_loop)
{
	for (enum way way = BY_RUN; way < WAYS; way++) {
		weir_error lost = kit_error(WEIR_DATA_LOSS, "block 7 is gone"), error = {WEIR_OK, ""};
		struct counting counting;
		struct job job;

		counting_init(&counting, "gets the coordinator", NULL);
		job_start_with_hook(&job, &counting.hook);
		cr_assert_eq(count_by(&job, way, &error), WEIR_OK, "%s", error.message);
		cr_assert_eq(weir_coordinator_request_stop(counting.coordinator, &lost), WEIR_OK);
		cr_expect(weir_monitored_should_stop(job.monitored));
		cr_expect_eq(job.made, 1);
		cr_expect_eq(job_close(&job, WEIR_OK, &error), WEIR_DATA_LOSS);
		cr_expect_str_eq(error.message, "block 7 is gone");
		job_end(&job);
	}
}

/* A job that takes numbers from a queue, which is empty in the first life. */
struct stuck {
	struct job job;
	weir_tensor_queue *queue;
	weir_output taken;
	struct counting counting;
};

static size_t waiting_in(weir_tensor_queue *queue)
{
	struct weir_queue_stats stats = {WEIR_QUEUE_STATS_INIT};

	(void)weir_tensor_queue_get_stats(queue, &stats);
	return (size_t)stats.waiting;
}

/*
 * Waits until the run waits for the queue, and then reports that the session's device is gone. The item
 * comes when that run has left: one that is there earlier could still be taken in the first session.
 */
static enum weir_status lose_the_device(weir_coordinator *coordinator, void *context, weir_error *error)
{
	struct stuck *stuck = context;
	weir_tensor *seven = kit_i64(7);
	uint64_t deadline_ns = weir_deadline_in(KIT_PATIENCE_NS);
	enum weir_status status;

	while (waiting_in(stuck->queue) == 0 && weir_now_ns() < deadline_ns)
		(void)sched_yield();
	(void)weir_coordinator_request_stop(coordinator, &(weir_error){WEIR_UNAVAILABLE, "the device is gone"});
	while (waiting_in(stuck->queue) != 0 && weir_now_ns() < deadline_ns)
		(void)sched_yield();
	status = weir_tensor_queue_enqueue(stuck->queue, &seven, 1, deadline_ns, NULL, error);
	weir_tensor_release(seven);
	return status;
}

static enum weir_status start_losing(void *context, weir_session *session, weir_coordinator *coordinator,
                                     weir_error *error)
{
	struct stuck *stuck = context;

	(void)session;
	if (stuck->job.made > 1)
		return WEIR_OK;
	return weir_coordinator_start_thread(coordinator, "loser", lose_the_device, stuck, error);
}

static enum weir_status take_with_hooks(void *context, weir_session *session, weir_error *error)
{
	struct stuck *stuck = context;
	weir_tensor *result = NULL;
	enum weir_status status = weir_monitored_run(stuck->job.monitored, NULL, 0, &stuck->taken, 1, &result, NULL, 0,
	                                             weir_deadline_in(KIT_PATIENCE_NS), NULL, NULL, error);

	(void)session;
	if (status == WEIR_OK)
		cr_expect_eq(kit_i64_at(result, 0), 7);
	weir_tensor_release(result);
	return status;
}

/* The queue and its items outlive the session. */
Test(conformance_monitored, MON_028_a_run_that_is_stuck_is_repeated_in_the_next_session)
{
	for (enum way way = BY_RUN; way <= BY_STEP_WITH_HOOKS; way++) {
		const struct weir_monitored_hook *hooks[1];
		struct weir_monitored_options options;
		weir_error error = {WEIR_OK, ""};
		struct stuck stuck;

		job_begin(&stuck.job);
		stuck.queue = kit_queue("input", 4, WEIR_I64, &weir_shape_scalar);
		cr_assert_eq(weir_op_dequeue(stuck.job.graph, "take", stuck.queue, &stuck.taken, 1, NULL, NULL), WEIR_OK);
		hooks[0] = &(const struct weir_monitored_hook){WEIR_MONITORED_HOOK_INIT, .context = &stuck,
		                                               .after_create = start_losing};
		options = job_options(&stuck.job);
		options.hooks = hooks;
		options.hook_count = 1;
		job_create(&stuck.job, &options);
		if (way == BY_RUN)
			cr_expect_eq(take_with_hooks(&stuck, NULL, &error), WEIR_OK, "%s", error.message);
		else
			cr_expect_eq(weir_monitored_step(stuck.job.monitored, take_with_hooks, &stuck, &error), WEIR_OK, "%s",
			             error.message);
		cr_expect_eq(stuck.job.made, 2);
		cr_expect_not(weir_monitored_should_stop(stuck.job.monitored));
		job_finish(&stuck.job);
		kit_queue_end(stuck.queue);
	}
}

Test(conformance_monitored, MON_047_what_recovers_while_a_session_is_made_is_tried_again)
{
	struct weir_monitored_options options;
	struct job job;

	job_begin(&job);
	job.fail_at[0] = 1;
	job.fail_at[1] = 2;
	job.failure = WEIR_ABORTED;
	options = job_options(&job);
	options.recover_codes = WEIR_COORDINATOR_CLEAN(WEIR_ABORTED);
	job_create(&job, &options);
	cr_expect_eq(job.made, 3);
	cr_expect_eq(job_count(&job), 1);
	job_finish(&job);
}

Test(conformance_monitored, MON_048_unavailable_recovers_by_itself)
{
	struct weir_monitored_options options;
	struct job job;

	job_begin(&job);
	job.fail_at[0] = 1;
	options = job_options(&job);
	job_create(&job, &options);
	cr_expect_eq(job.made, 2);
	job_finish(&job);
}

/* -- runners ----------------------------------------------------------------------------------- */

static enum weir_status next_number(void *context, const struct weir_kernel_call *call, weir_error *error)
{
	int64_t number = weiri_fetch_add_relaxed((_Atomic(int) *)context, 1);

	if (number >= 3)
		return kit_fail(error, WEIR_OUT_OF_RANGE, "only 3 numbers");
	return weir_tensor_scalar_i64(number, &call->outputs[0]);
}

/* Two runners, each with its queue of three numbers. */
Test(conformance_monitored, QR_012_a_monitored_session_starts_and_joins_its_runners)
{
	enum { RUNNERS = 2 };
	struct weir_output_type type = {WEIR_I64, &weir_shape_scalar};
	struct weir_monitored_runner runners[RUNNERS];
	struct weir_monitored_options options;
	weir_tensor_queue *queues[RUNNERS];
	weir_node *puts[RUNNERS];
	weir_output takes[RUNNERS];
	_Atomic(int) next[RUNNERS];
	struct job job;

	job_begin(&job);
	for (int i = 0; i < RUNNERS; i++) {
		weir_output number;

		weiri_store_relaxed(&next[i], 0);
		queues[i] = kit_queue(i == 0 ? "left" : "right", 10, WEIR_I64, &weir_shape_scalar);
		cr_assert_eq(weir_op_kernel(job.graph, NULL, KIT_KERNEL(next_number), &next[i], NULL, 0, &type, 1, NULL, 0,
		                            &number, NULL, NULL),
		             WEIR_OK);
		cr_assert_eq(weir_op_enqueue(job.graph, NULL, queues[i], &number, 1, &puts[i], NULL), WEIR_OK);
		cr_assert_eq(weir_op_dequeue(job.graph, NULL, queues[i], &takes[i], 1, NULL, NULL), WEIR_OK);
		runners[i] = (struct weir_monitored_runner){&puts[i], 1, 2, queues[i]};
	}
	options = job_options(&job);
	options.runners = runners;
	options.runner_count = RUNNERS;
	job_create(&job, &options);
	for (int i = 0; i < RUNNERS; i++) {
		enum weir_status status = WEIR_OK;
		int taken = 0;

		while (status == WEIR_OK) {
			weir_tensor *result = NULL;

			status = weir_monitored_run(job.monitored, NULL, 0, &takes[i], 1, &result, NULL, 0,
			                            weir_deadline_in(KIT_PATIENCE_NS), NULL, NULL, NULL);
			taken += status == WEIR_OK;
			weir_tensor_release(result);
		}
		cr_expect_eq(status, WEIR_OUT_OF_RANGE);
		cr_expect_eq(taken, 3);
	}
	cr_expect_not(weir_monitored_should_stop(job.monitored), "the end of an input is no stop");
	cr_expect_eq(job_close(&job, WEIR_OUT_OF_RANGE, NULL), WEIR_OK);
	job_end(&job);
	for (int i = 0; i < RUNNERS; i++)
		kit_queue_end(queues[i]);
}
