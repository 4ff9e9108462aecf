/*
 * test_conformance_monitored_hooks.c - the rows of monitored sessions (MON) about hooks and step
 * functions. WEIR_UNAVAILABLE stands for the two statuses that recover in the rows.
 */
#include "monitored_kit.h"

/* -- hooks ------------------------------------------------------------------------------------- */

Test(conformance_monitored_hooks, MON_036_each_hook_is_called_before_and_after_each_run)
{
	const struct weir_monitored_hook *hooks[2];
	struct counting first, second;
	struct job job;

	counting_init(&first, "first", &job);
	counting_init(&second, "second", &job);
	hooks[0] = &first.hook;
	hooks[1] = &second.hook;
	job_start_with(&job, hooks, 2);
	expect_calls(&first, 1, 1, 0, 0, 0);
	cr_expect_eq(job_count(&job), 1);
	expect_calls(&first, 1, 1, 1, 1, 0);
	cr_expect_eq(job_count(&job), 2);
	cr_assert_eq(job_close(&job, WEIR_OK, NULL), WEIR_OK);
	expect_calls(&first, 1, 1, 2, 2, 1);
	expect_calls(&second, 1, 1, 2, 2, 1);
	job_end(&job);
}

static enum weir_status stop_after(void *context, weir_monitored_call *call, weir_error *error)
{
	(void)context;
	(void)error;
	return weir_monitored_request_stop(weir_monitored_call_owner(call));
}

Test(conformance_monitored_hooks, MON_037_a_hook_stops_the_loop_after_its_run)
{
	const struct weir_monitored_hook stopping = {WEIR_MONITORED_HOOK_INIT, .name = "stops", .after_run = stop_after};
	weir_error error;
	int64_t value;
	struct job job;

	job_start_with_hook(&job, &stopping);
	cr_expect_not(weir_monitored_should_stop(job.monitored));
	cr_expect_eq(job_count(&job), 1);
	cr_expect(weir_monitored_should_stop(job.monitored));
	cr_expect_eq(job_run(&job, &value, &error), WEIR_FAILED_PRECONDITION);
	cr_expect_str_eq(error.message, "monitored session \"job\": a stop was requested");
	job_finish(&job);
}

/* Feeds x, fetches what it is told, and notes what came. */
struct adding {
	struct weir_monitored_hook hook;
	struct job *job;
	bool feeds, fetches;
	int64_t x;
	size_t index[2];
	int64_t seen[2];
};

static enum weir_status add_before(void *context, weir_monitored_call *call, weir_error *error)
{
	struct adding *adding = context;
	enum weir_status status = WEIR_OK;

	if (adding->feeds) {
		weir_tensor *value = kit_i64(adding->x);

		status = weir_monitored_call_feed(call, adding->job->x, value, error);
		weir_tensor_release(value);
	}
	cr_expect_null(weir_monitored_call_result(call, 0));
	if (status == WEIR_OK && adding->fetches)
		status = weir_monitored_call_fetch(call, adding->job->doubled, &adding->index[0], error);
	if (status == WEIR_OK && adding->fetches)
		status = weir_monitored_call_fetch(call, adding->job->count, &adding->index[1], error);
	return status;
}

static enum weir_status add_after(void *context, weir_monitored_call *call, weir_error *error)
{
	struct adding *adding = context;

	(void)error;
	for (size_t i = 0; adding->fetches && i < 2; i++)
		adding->seen[i] = kit_i64_at(weir_monitored_call_result(call, adding->index[i]), 0);
	return WEIR_OK;
}

static void adding_init(struct adding *adding, const char *name, struct job *job, bool feeds, bool fetches)
{
	*adding = (struct adding){.hook = {WEIR_MONITORED_HOOK_INIT, .name = name, .context = adding,
	                                   .before_run = add_before, .after_run = add_after},
	                          .job = job,
	                          .feeds = feeds,
	                          .fetches = fetches,
	                          .x = 4};
}

Test(conformance_monitored_hooks, MON_038_hooks_have_fetches_of_their_own)
{
	weir_tensor *five = kit_i64(5), *result = NULL;
	const struct weir_monitored_hook *hooks[2];
	struct adding first, second;
	struct weir_feed feed;
	struct job job;

	adding_init(&first, "first", &job, false, true);
	adding_init(&second, "second", &job, false, true);
	hooks[0] = &first.hook;
	hooks[1] = &second.hook;
	job_start_with(&job, hooks, 2);
	feed = (struct weir_feed){job.x, five};
	cr_assert_eq(
		weir_monitored_run(job.monitored, &feed, 1, &job.x, 1, &result, NULL, 0, WEIR_NO_DEADLINE, NULL, NULL, NULL),
		WEIR_OK);
	cr_expect_eq(kit_i64_at(result, 0), 5, "the caller gets what it fetches");
	cr_expect_eq(first.index[1], 1);
	cr_expect_eq(second.index[0], 2);
	for (int i = 0; i < 2; i++) {
		const struct adding *adding = i == 0 ? &first : &second;

		cr_expect_eq(adding->seen[0], 10);
		cr_expect_eq(adding->seen[1], 1);
	}
	weir_tensor_release(result);
	weir_tensor_release(five);
	job_finish(&job);
}

Test(conformance_monitored_hooks, MON_039_a_hook_feeds_alone)
{
	weir_tensor *result = NULL;
	struct adding adding;
	struct job job;

	adding_init(&adding, "feeds", &job, true, false);
	job_start_with_hook(&job, &adding.hook);
	cr_assert_eq(weir_monitored_run(job.monitored, NULL, 0, &job.doubled, 1, &result, NULL, 0, WEIR_NO_DEADLINE, NULL,
	                                NULL, NULL),
	             WEIR_OK);
	cr_expect_eq(kit_i64_at(result, 0), 8);
	weir_tensor_release(result);
	job_finish(&job);
}

Test(conformance_monitored_hooks, MON_040_the_feeds_of_hook_and_caller_are_merged)
{
	weir_tensor *nine = kit_i64(9), *results[2] = {NULL, NULL};
	weir_output y, fetches[2];
	struct adding adding;
	struct weir_feed feed, before;
	struct job job;

	adding_init(&adding, "feeds", &job, true, true);
	job_start_with_hook(&job, &adding.hook);
	y = kit_placeholder(job.graph, "y", WEIR_I64, kit_shape(0));
	feed = (struct weir_feed){y, nine};
	before = feed;
	fetches[0] = y;
	fetches[1] = job.doubled;
	cr_assert_eq(
		weir_monitored_run(job.monitored, &feed, 1, fetches, 2, results, NULL, 0, WEIR_NO_DEADLINE, NULL, NULL, NULL),
		WEIR_OK);
	cr_expect_eq(kit_i64_at(results[0], 0), 9);
	cr_expect_eq(kit_i64_at(results[1], 0), 8);
	cr_expect(feed.value == before.value && feed.output.node == before.output.node &&
	              feed.output.index == before.output.index,
	          "the caller's feeds are not changed");
	for (int i = 0; i < 2; i++)
		weir_tensor_release(results[i]);
	weir_tensor_release(nine);
	job_finish(&job);
}

Test(conformance_monitored_hooks, MON_041_two_hooks_that_feed_one_output_are_refused_by_name)
{
	const struct weir_monitored_hook *hooks[2];
	struct adding first, second;
	weir_error error;
	int64_t value;
	struct job job;

	adding_init(&first, "numbers", &job, true, false);
	adding_init(&second, "noise", &job, true, false);
	hooks[0] = &first.hook;
	hooks[1] = &second.hook;
	job_start_with(&job, hooks, 2);
	cr_expect_eq(job_run(&job, &value, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_str_eq(error.message,
	                 "hook \"noise\": before_run: output 0 of \"x\" is fed by hook \"noise\" and by hook "
	                 "\"numbers\"");
	cr_expect_eq(job_step(&job), 0, "nothing ran");
	job_finish(&job);
}

Test(conformance_monitored_hooks, MON_042_a_hook_that_feeds_what_the_caller_feeds_is_refused)
{
	weir_tensor *nine = kit_i64(9), *result = NULL;
	struct adding adding;
	weir_error error;
	struct weir_feed feed;
	struct job job;

	adding_init(&adding, "numbers", &job, true, false);
	job_start_with_hook(&job, &adding.hook);
	feed = (struct weir_feed){job.x, nine};
	cr_expect_eq(weir_monitored_run(job.monitored, &feed, 1, &job.doubled, 1, &result, NULL, 0, WEIR_NO_DEADLINE, NULL,
	                                NULL, &error),
	             WEIR_INVALID_ARGUMENT);
	cr_expect_str_eq(error.message,
	                 "hook \"numbers\": before_run: output 0 of \"x\" is fed by hook \"numbers\" and by the caller");
	cr_expect_null(result);
	weir_tensor_release(nine);
	job_finish(&job);
}

static enum weir_status limit_before(void *context, weir_monitored_call *call, weir_error *error)
{
	return weir_monitored_call_limit(call, *(const uint64_t *)context, error);
}

/* The earliest deadline counts, whoever gives it; where TensorFlow takes the longest timeout. */
Test(conformance_monitored_hooks, MON_061_the_limits_of_hooks_and_caller_are_merged)
{
	uint64_t limits[2] = {WEIR_NO_DEADLINE, WEIR_NO_DEADLINE};
	struct weir_monitored_hook limiting[2];
	const struct weir_monitored_hook *hooks[2];
	struct job job;

	for (int i = 0; i < 2; i++) {
		limiting[i] =
			(struct weir_monitored_hook){WEIR_MONITORED_HOOK_INIT, .context = &limits[i], .before_run = limit_before};
		hooks[i] = &limiting[i];
	}
	job_start_with(&job, hooks, 2);
	for (int i = 0; i < 8; i++) {
		weir_tensor *result = NULL;
		enum weir_status status;

		limits[0] = (i & 1) != 0 ? 0 : WEIR_NO_DEADLINE;
		limits[1] = (i & 2) != 0 ? 0 : WEIR_NO_DEADLINE;
		status = weir_monitored_run(job.monitored, NULL, 0, &job.count, 1, &result, NULL, 0,
		                            (i & 4) != 0 ? 0 : WEIR_NO_DEADLINE, NULL, NULL, NULL);
		cr_expect_eq(status, i == 0 ? WEIR_OK : WEIR_DEADLINE_EXCEEDED);
		weir_tensor_release(result);
	}
	cr_expect_eq(job_step(&job), 1);
	job_finish(&job);
}

/* Stops the loop when the step has reached a number. */
struct last_step {
	struct job *job;
	int64_t number;
	size_t index;
};

static enum weir_status fetch_step(void *context, weir_monitored_call *call, weir_error *error)
{
	struct last_step *last = context;

	return weir_monitored_call_fetch(call, last->job->count, &last->index, error);
}

static enum weir_status stop_at_step(void *context, weir_monitored_call *call, weir_error *error)
{
	const struct last_step *last = context;

	(void)error;
	if (kit_i64_at(weir_monitored_call_result(call, last->index), 0) >= last->number)
		return weir_monitored_request_stop(weir_monitored_call_owner(call));
	return WEIR_OK;
}

Test(conformance_monitored_hooks, MON_044_a_loop_stops_after_its_last_step_and_goes_on_later)
{
	struct job job;
	struct last_step last = {&job, 3, 0};
	const struct weir_monitored_hook stopping = {WEIR_MONITORED_HOOK_INIT, .context = &last, .before_run = fetch_step,
	                                             .after_run = stop_at_step};
	const struct weir_monitored_hook *hooks[1] = {&stopping};
	struct weir_monitored_options options;

	job_begin(&job);
	options = job_options(&job);
	options.hooks = hooks;
	options.hook_count = 1;
	for (int part = 0; part < 2; part++) {
		last.number = part == 0 ? 3 : 5;
		job_create(&job, &options);
		while (!weir_monitored_should_stop(job.monitored))
			cr_assert_leq(job_count(&job), last.number);
		cr_expect_eq(job_step(&job), last.number);
		cr_assert_eq(job_close(&job, WEIR_OK, NULL), WEIR_OK);
		if (part == 0)
			cr_assert_eq(weir_monitored_destroy(job.monitored, NULL), WEIR_OK);
	}
	job_end(&job);
}

/* -- step functions ---------------------------------------------------------------------------- */

/* What a step function is told, and what it did. */
struct told {
	struct job *job;
	bool stops;     /* request a stop first */
	bool runs;      /* then run with hooks */
	int fail_until; /* the first calls fail with WEIR_UNAVAILABLE, at the end */
	enum weir_status failure;
	int calls;
	enum weir_status inner;
	int64_t value;
};

static enum weir_status do_as_told(void *context, weir_session *session, weir_error *error)
{
	struct told *told = context;

	told->calls++;
	cr_expect_eq(session, told->job->session);
	if (told->stops)
		cr_expect_eq(weir_monitored_request_stop(told->job->monitored), WEIR_OK);
	if (told->runs)
		told->inner = job_run(told->job, &told->value, error);
	return told->calls <= told->fail_until ? kit_fail(error, told->failure, "lost on the way") : WEIR_OK;
}

Test(conformance_monitored_hooks, MON_064_a_step_returns_what_its_function_does)
{
	struct told told = {.fail_until = 1, .failure = WEIR_DATA_LOSS};
	weir_error error;
	struct job job;

	job_start(&job);
	told.job = &job;
	cr_expect_eq(weir_monitored_step(job.monitored, do_as_told, &told, &error), WEIR_DATA_LOSS);
	cr_expect_str_eq(error.message, "lost on the way");
	cr_expect_eq(weir_monitored_step(job.monitored, do_as_told, &told, &error), WEIR_OK);
	cr_expect_eq(told.calls, 2);
	job_finish(&job);
}

Test(conformance_monitored_hooks, MON_065_a_step_function_stops_the_loop)
{
	struct told told = {.stops = true};
	struct job job;

	job_start(&job);
	told.job = &job;
	cr_expect_eq(weir_monitored_step(job.monitored, do_as_told, &told, NULL), WEIR_OK);
	cr_expect(weir_monitored_should_stop(job.monitored));
	cr_expect_eq(weir_monitored_step(job.monitored, do_as_told, &told, NULL), WEIR_FAILED_PRECONDITION);
	cr_expect_eq(told.calls, 1);
	job_finish(&job);
}

Test(conformance_monitored_hooks, MON_067_a_stop_in_a_loop_ends_it_cleanly)
{
	struct counting counting;
	struct told told = {.runs = true};
	enum weir_status status = WEIR_OK;
	struct job job;

	counting_init(&counting, "ends", NULL);
	job_start_with_hook(&job, &counting.hook);
	told.job = &job;
	while (status == WEIR_OK && !weir_monitored_should_stop(job.monitored)) {
		told.stops = told.calls == 3;
		status = weir_monitored_step(job.monitored, do_as_told, &told, NULL);
	}
	cr_expect_eq(told.calls, 4);
	cr_expect_eq(job_step(&job), 3);
	cr_expect_eq(job_close(&job, status, NULL), WEIR_OK);
	expect_calls(&counting, 1, 1, 3, 3, 1);
	job_end(&job);
}

/* A raw run, then one with hooks, whose after_run runs further ops. */
struct sums {
	struct job *job;
	int64_t before, fetched, after;
	size_t index;
};

static enum weir_status sum_before(void *context, weir_monitored_call *call, weir_error *error)
{
	struct sums *sums = context;

	sums->before = job_step(sums->job);
	return weir_monitored_call_fetch(call, sums->job->count, &sums->index, error);
}

static enum weir_status sum_after(void *context, weir_monitored_call *call, weir_error *error)
{
	struct sums *sums = context;

	sums->fetched = kit_i64_at(weir_monitored_call_result(call, sums->index), 0);
	return kit_run_target(weir_monitored_call_session(call), sums->job->count.node, error);
}

static enum weir_status run_raw_then_with_hooks(void *context, weir_session *session, weir_error *error)
{
	struct sums *sums = context;
	enum weir_status status = kit_run_target(session, sums->job->count.node, error);
	int64_t value = 0;

	if (status == WEIR_OK)
		status = job_run(sums->job, &value, error);
	cr_expect_eq(value, sums->fetched, "caller and hook fetch of one run");
	sums->after = job_step(sums->job);
	return status;
}

Test(conformance_monitored_hooks, MON_072_a_step_runs_raw_and_with_hooks_in_its_order)
{
	for (int recovers = 0; recovers < 2; recovers++) {
		struct job job;
		struct sums sums = {.job = &job};
		const struct weir_monitored_hook summing = {WEIR_MONITORED_HOOK_INIT, .context = &sums,
		                                            .before_run = sum_before, .after_run = sum_after};
		const struct weir_monitored_hook *hooks[1] = {&summing};
		struct weir_monitored_options options;

		job_begin(&job);
		options = job_options(&job);
		options.flags = recovers ? 0 : WEIR_MONITORED_NO_RECOVERY;
		options.hooks = hooks;
		options.hook_count = 1;
		job_create(&job, &options);
		cr_expect_eq(weir_monitored_step(job.monitored, run_raw_then_with_hooks, &sums, NULL), WEIR_OK);
		cr_expect_eq(sums.before, 1, "the raw run came first");
		cr_expect_eq(sums.fetched, 2);
		cr_expect_eq(sums.after, 3, "after_run ran one more");
		job_finish(&job);
	}
}

Test(conformance_monitored_hooks, MON_074_after_a_stop_in_a_step_no_hook_is_called)
{
	struct counting counting;
	struct told told = {.stops = true, .runs = true};
	struct job job;

	counting_init(&counting, "is not called", NULL);
	job_start_with_hook(&job, &counting.hook);
	told.job = &job;
	cr_expect_eq(weir_monitored_step(job.monitored, do_as_told, &told, NULL), WEIR_OK);
	cr_expect_eq(told.inner, WEIR_FAILED_PRECONDITION);
	expect_calls(&counting, 1, 1, 0, 0, 0);
	job_finish(&job);
}

Test(conformance_monitored_hooks, MON_075_a_step_that_recovers_is_called_again)
{
	struct told told = {.fail_until = 1, .failure = WEIR_UNAVAILABLE};
	struct job job;

	job_start(&job);
	told.job = &job;
	cr_expect_eq(weir_monitored_step(job.monitored, do_as_told, &told, NULL), WEIR_OK);
	cr_expect_eq(told.calls, 2);
	cr_expect_eq(job.made, 2);
	job_finish(&job);
}

Test(conformance_monitored_hooks, MON_076_a_step_that_fails_after_its_run_repeats_the_run_too)
{
	struct told told = {.runs = true, .fail_until = 2, .failure = WEIR_UNAVAILABLE};
	struct job job;

	job_start(&job);
	told.job = &job;
	cr_expect_eq(weir_monitored_step(job.monitored, do_as_told, &told, NULL), WEIR_OK);
	cr_expect_eq(told.calls, 3);
	cr_expect_eq(job_step(&job), 3, "its effects are repeated");
	cr_expect_eq(job.made, 3);
	job_finish(&job);
}

Test(conformance_monitored_hooks, MON_077_a_step_does_not_recover_when_that_was_not_asked_for)
{
	struct told told = {.fail_until = 1, .failure = WEIR_UNAVAILABLE};
	struct weir_monitored_options options;
	weir_error error;
	struct job job;

	job_begin(&job);
	options = job_options(&job);
	options.flags = WEIR_MONITORED_NO_RECOVERY;
	job_create(&job, &options);
	told.job = &job;
	cr_expect_eq(weir_monitored_step(job.monitored, do_as_told, &told, &error), WEIR_UNAVAILABLE);
	cr_expect_str_eq(error.message, "lost on the way");
	cr_expect_eq(job.made, 1);
	cr_expect_not(weir_monitored_should_stop(job.monitored));
	job_finish(&job);
}

Test(conformance_monitored_hooks, MON_078_a_step_whose_hook_fails_before_the_run_is_called_again)
{
	struct counting counting;
	int64_t value = 0;
	struct job job;

	counting_init(&counting, "fails", NULL);
	counting.fail_in = AT_BEFORE;
	counting.fail_at = 1;
	job_start_with_hook(&job, &counting.hook);
	cr_expect_eq(weir_monitored_step(job.monitored, count_with_hooks, &job, NULL), WEIR_OK);
	value = job_step(&job);
	cr_expect_eq(value, 1);
	expect_calls(&counting, 1, 2, 2, 1, 0);
	cr_expect_eq(job.made, 2);
	job_finish(&job);
}
