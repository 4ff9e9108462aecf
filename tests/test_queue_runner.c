/*
 * test_queue_runner.c - loops around steps: how they end, which thread closes the queue, and where
 * errors go.
 */
#include <pthread.h>
#include <string.h>
#include <weir/log.h>
#include <weir/reclaim.h>

#include "failing_allocator.h"
#include "queue_runner_kit.h"

static void note_close(void *queue, const weir_error *cause)
{
	struct ends *ends = queue;

	if (cause != NULL)
		ends->closed_for = *cause;
	(void)weiri_fetch_add_release(&ends->closed, 1);
}

static void note_cancel(void *queue, const weir_error *cause)
{
	struct ends *ends = queue;

	if (cause != NULL)
		ends->cancelled_for = *cause;
	weiri_store_release(&ends->held, 1);
	(void)reaches(&ends->hold, 0);
	(void)weiri_fetch_add_release(&ends->cancelled, 1);
}

static weir_queue_runner *create(const struct weir_queue_runner_step *steps, size_t count, size_t threads,
                                 struct ends *ends)
{
	struct weir_queue_runner_options options = {WEIR_QUEUE_RUNNER_OPTIONS_INIT,
	                                            .steps = steps,
	                                            .step_count = count,
	                                            .threads_per_step = threads,
	                                            .close = note_close,
	                                            .cancel = note_cancel,
	                                            .queue = ends,
	                                            .name = "test"};
	weir_queue_runner *runner = NULL;
	weir_error error = {WEIR_OK, ""};

	cr_assert_eq(weir_queue_runner_create(&options, &runner, &error), WEIR_OK, "%s", error.message);
	return runner;
}

/*
 * No thread counts as running any more, yet the last one still has a few instructions to execute.
 */
Test(queue_runner, one_whose_threads_have_just_left_is_destroyed_as_a_whole)
{
	struct failing_allocator memory = {.fail_at = 0};
	weir_allocator allocator = failing_allocator_hooks(&memory);
	struct source source = {.limit = 0, .then = WEIR_OUT_OF_RANGE};
	struct weir_queue_runner_step step = {count_to_limit, &source, NULL};
	struct weir_queue_runner_options options = {WEIR_QUEUE_RUNNER_OPTIONS_INIT, .steps = &step, .step_count = 1,
	                                            .threads_per_step = 2, .allocator = &allocator};

	for (int round = 0; round < 200; round++) {
		weir_queue_runner *runner = NULL;

		cr_assert_eq(weir_queue_runner_create(&options, &runner, NULL), WEIR_OK);
		start(runner, NULL);
		end(runner);
	}
	cr_expect_str_eq(failing_allocator_verdict(&memory), "balanced", "%s", failing_allocator_verdict(&memory));
}

Test(queue_runner, create_refuses_bad_options)
{
	struct source source = {.limit = 0};
	struct weir_queue_runner_step step = {count_to_limit, &source, NULL};
	struct weir_queue_runner_step none = {NULL, NULL, NULL};
	struct weir_queue_runner_options options = {WEIR_QUEUE_RUNNER_OPTIONS_INIT, .steps = &step, .step_count = 1};
	weir_queue_runner *runner = NULL;
	weir_error error;

	cr_expect_eq(weir_queue_runner_create(NULL, &runner, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_str_eq(error.message, "queue runner: options is NULL");
	cr_expect_eq(weir_queue_runner_create(&options, NULL, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_str_eq(error.message, "queue runner: out is NULL");
	options.struct_size = SIZE_MAX;
	cr_expect_eq(weir_queue_runner_create(&options, &runner, NULL), WEIR_INVALID_ARGUMENT);
	options.struct_size = sizeof(options);
	options.flags = 4;
	cr_expect_eq(weir_queue_runner_create(&options, &runner, NULL), WEIR_INVALID_ARGUMENT);
	options.flags = 0;
	options.step_count = 0;
	cr_expect_eq(weir_queue_runner_create(&options, &runner, NULL), WEIR_INVALID_ARGUMENT);
	options.step_count = 1;
	options.threads_per_step = WEIR_QUEUE_RUNNER_MAX_THREADS + 1;
	cr_expect_eq(weir_queue_runner_create(&options, &runner, NULL), WEIR_INVALID_ARGUMENT);
	options.threads_per_step = 1;
	options.steps = &none;
	cr_expect_eq(weir_queue_runner_create(&options, &runner, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_str_eq(error.message, "queue runner: step 0 has no function");
	options.name = "files";
	cr_expect_eq(weir_queue_runner_create(&options, &runner, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_str_eq(error.message, "queue runner \"files\": step 0 has no function");
	cr_expect_null(runner);
}

Test(queue_runner, null_is_refused_or_harmless)
{
	cr_expect_eq(weir_queue_runner_start(NULL, NULL, NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_queue_runner_request_stop(NULL, NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_queue_runner_join(NULL, 0), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_queue_runner_running_count(NULL), 0);
	cr_expect_eq(weir_queue_runner_error_count(NULL), 0);
	cr_expect_eq(weir_queue_runner_error(NULL, 0, NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_queue_runner_destroy(NULL, NULL), WEIR_OK);
}

Test(queue_runner, QR_001_a_step_runs_until_the_end_of_its_input)
{
	struct source source = {.limit = 3, .then = WEIR_OUT_OF_RANGE, .message = "no more numbers"};
	struct weir_queue_runner_step step = {count_to_limit, &source, "count"};
	struct ends ends = {.closed = 0};
	weir_queue_runner *runner = create(&step, 1, 0, &ends);

	start(runner, NULL);
	cr_assert_eq(weir_queue_runner_join(runner, weir_deadline_in(long_ns)), WEIR_OK);
	cr_expect_eq(weiri_load_relaxed(&source.calls), 3);
	cr_expect_eq(weir_queue_runner_error_count(runner), 0);
	cr_expect_eq(weir_queue_runner_error(runner, 0, NULL), WEIR_NOT_FOUND);
	cr_expect_eq(weiri_load_acquire(&ends.closed), 1);
	cr_expect_eq(weiri_load_acquire(&ends.cancelled), 0);
	cr_expect_eq(ends.closed_for.code, WEIR_OUT_OF_RANGE);
	cr_expect_str_eq(ends.closed_for.message, "no more numbers");
	end(runner);
}

Test(queue_runner, QR_002_two_steps_run_to_their_own_ends_and_the_last_closes)
{
	struct source sources[2] = {{.limit = 3, .then = WEIR_OUT_OF_RANGE}, {.limit = 30, .then = WEIR_OUT_OF_RANGE}};
	struct weir_queue_runner_step steps[2] = {{count_to_limit, &sources[0], NULL}, {count_to_limit, &sources[1], NULL}};
	struct ends ends = {.closed = 0};
	weir_queue_runner *runner = create(steps, 2, 1, &ends);

	start(runner, NULL);
	cr_assert_eq(weir_queue_runner_join(runner, weir_deadline_in(long_ns)), WEIR_OK);
	cr_expect_eq(weiri_load_relaxed(&sources[0].calls), 3);
	cr_expect_eq(weiri_load_relaxed(&sources[1].calls), 30);
	cr_expect_eq(weiri_load_acquire(&ends.closed), 1);
	end(runner);
}

Test(queue_runner, QR_003_errors_without_a_coordinator_are_kept_and_close_the_queue)
{
	struct source sources[2] = {{.then = WEIR_DATA_LOSS, .message = "block 7 is gone"}, {.then = WEIR_INTERNAL}};
	struct weir_queue_runner_step steps[2] = {{count_to_limit, &sources[0], "a"}, {count_to_limit, &sources[1], "b"}};
	struct ends ends = {.closed = 0};
	weir_queue_runner *runner = create(steps, 2, 1, &ends);
	weir_error error;

	start(runner, NULL);
	cr_assert_eq(weir_queue_runner_join(runner, weir_deadline_in(long_ns)), WEIR_OK);
	cr_expect_eq(weir_queue_runner_error_count(runner), 2);
	cr_expect_eq(weir_queue_runner_error(runner, 0, &error), WEIR_DATA_LOSS);
	cr_expect_str_eq(error.message, "block 7 is gone");
	cr_expect_eq(weir_queue_runner_error(runner, 1, &error), WEIR_INTERNAL);
	cr_expect_not_null(strstr(error.message, "\"b\""), "%s", error.message);
	cr_expect_eq(weir_queue_runner_error(runner, 2, &error), WEIR_NOT_FOUND);
	cr_expect_eq(weiri_load_acquire(&ends.closed), 1);
	cr_expect_eq(ends.closed_for.code, WEIR_DATA_LOSS);
	end(runner);
}

static weir_queue_runner *logged_runner;
static size_t errors_when_logged;

static void count_errors(void *context, enum weir_log_level level, const char *message)
{
	(void)context;
	if (level == WEIR_LOG_ERROR && strstr(message, "block 7 is gone") != NULL)
		errors_when_logged = weir_queue_runner_error_count(logged_runner);
}

static const weir_log_hook count_errors_hook = {count_errors, NULL};

static void log_nothing(void)
{
	weir_log_set_hook(NULL);
}

Test(queue_runner, an_error_is_there_when_the_log_tells_of_it, .fini = log_nothing)
{
	struct source source = {.then = WEIR_DATA_LOSS, .message = "block 7 is gone"};
	struct weir_queue_runner_step step = {count_to_limit, &source, "a"};
	struct ends ends = {.closed = 0};

	logged_runner = create(&step, 1, 1, &ends);
	errors_when_logged = 0;
	weir_log_set_hook(&count_errors_hook);
	start(logged_runner, NULL);
	cr_assert_eq(weir_queue_runner_join(logged_runner, weir_deadline_in(long_ns)), WEIR_OK);
	cr_expect_eq(errors_when_logged, 1);
	end(logged_runner);
}

Test(queue_runner, a_step_without_a_name_goes_by_its_number)
{
	struct source sources[2] = {{.then = WEIR_OUT_OF_RANGE}, {.then = WEIR_INTERNAL}};
	struct weir_queue_runner_step steps[2] = {{count_to_limit, &sources[0], NULL}, {count_to_limit, &sources[1], NULL}};
	struct ends ends = {.closed = 0};
	weir_queue_runner *runner = create(steps, 2, 1, &ends);
	weir_error error;

	start(runner, NULL);
	cr_assert_eq(weir_queue_runner_join(runner, weir_deadline_in(long_ns)), WEIR_OK);
	cr_expect_eq(weir_queue_runner_error(runner, 0, &error), WEIR_INTERNAL);
	cr_expect_not_null(strstr(error.message, "step \"1\""), "%s", error.message);
	end(runner);
}

Test(queue_runner, QR_010_one_bad_step_spoils_no_other_and_a_new_start_forgets_it)
{
	struct source sources[2] = {{.limit = 5, .then = WEIR_OUT_OF_RANGE}, {.then = WEIR_INTERNAL}};
	struct weir_queue_runner_step steps[2] = {{count_to_limit, &sources[0], NULL}, {count_to_limit, &sources[1], NULL}};
	struct ends ends = {.closed = 0};
	weir_queue_runner *runner = create(steps, 2, 1, &ends);

	start(runner, NULL);
	cr_assert_eq(weir_queue_runner_join(runner, weir_deadline_in(long_ns)), WEIR_OK);
	cr_expect_eq(weiri_load_relaxed(&sources[0].calls), 5);
	cr_expect_eq(weir_queue_runner_error_count(runner), 1);
	sources[1].then = WEIR_OUT_OF_RANGE;
	start(runner, NULL);
	cr_assert_eq(weir_queue_runner_join(runner, weir_deadline_in(long_ns)), WEIR_OK);
	cr_expect_eq(weir_queue_runner_error_count(runner), 0);
	cr_expect_eq(weiri_load_acquire(&ends.closed), 2);
	end(runner);
}

Test(queue_runner, many_threads_on_one_step_close_once)
{
	enum { ROUNDS = 100 };
	struct source source = {.then = WEIR_OUT_OF_RANGE};
	struct weir_queue_runner_step step = {count_to_limit, &source, NULL};
	struct ends ends = {.closed = 0};
	weir_queue_runner *runner = create(&step, 1, 4, &ends);

	for (int round = 1; round <= ROUNDS; round++) {
		source.limit = round * 20;
		start(runner, NULL);
		cr_assert_eq(weir_queue_runner_join(runner, weir_deadline_in(long_ns)), WEIR_OK);
		cr_assert_eq(weiri_load_acquire(&ends.closed), round);
		cr_assert_eq(weiri_load_relaxed(&source.calls), round * 20);
	}
	end(runner);
}

Test(queue_runner, QR_005_nothing_runs_when_the_stop_came_before_the_start)
{
	struct source source = {.limit = 3, .then = WEIR_OUT_OF_RANGE};
	struct weir_queue_runner_step step = {count_to_limit, &source, NULL};
	struct ends ends = {.closed = 0};
	weir_queue_runner *runner = create(&step, 1, 2, &ends);
	weir_coordinator *coordinator = create_coordinator();

	cr_assert_eq(weir_coordinator_request_stop(coordinator, NULL), WEIR_OK);
	start(runner, coordinator);
	cr_expect_eq(weiri_load_acquire(&ends.cancelled), 1);
	cr_expect_eq(join_coordinator(coordinator, NULL), WEIR_OK);
	cr_expect_eq(weiri_load_relaxed(&source.calls), 0);
	cr_expect_eq(weiri_load_acquire(&ends.closed), 0);
	end(runner);
	cr_assert_eq(weir_coordinator_destroy(coordinator, NULL), WEIR_OK);
}

static enum weir_status wait_for_cancel(void *context, weir_cancel *cancel, weir_error *error)
{
	_Atomic(int) *waiting = context;

	(void)weiri_fetch_add_release(waiting, 1);
	while (!weir_cancel_fired(cancel))
		(void)sched_yield();
	return weir_cancel_cause(cancel, error);
}

Test(queue_runner, QR_011_its_threads_have_its_name_and_that_of_their_steps)
{
	_Atomic(int) waiting = 0;
	struct weir_queue_runner_step step = {wait_for_cancel, &waiting, "fill"};
	struct weir_queue_runner_options options = {WEIR_QUEUE_RUNNER_OPTIONS_INIT, .steps = &step, .step_count = 1};
	struct weir_queue_options of_queue = {WEIR_QUEUE_OPTIONS_INIT, .capacity = 1, .name = "input/numbers"};
	weir_coordinator *coordinator = create_coordinator();
	weir_queue_runner *runner = NULL;
	weir_queue *queue = NULL;
	weir_error error;

	cr_assert_eq(weir_queue_create(&of_queue, &queue, NULL), WEIR_OK);
	weir_queue_runner_bind(&options, queue);
	cr_expect_str_eq(options.name, "input/numbers");
	cr_assert_eq(weir_queue_runner_create(&options, &runner, NULL), WEIR_OK);
	start(runner, coordinator);
	cr_expect_eq(weir_coordinator_join(coordinator, 0, 0, 0, &error), WEIR_DEADLINE_EXCEEDED);
	cr_expect_not_null(strstr(error.message, "input/numbers-fill"), "%s", error.message);
	cr_expect_eq(weir_queue_runner_start(runner, coordinator, &error), WEIR_FAILED_PRECONDITION);
	cr_expect_not_null(strstr(error.message, "queue runner \"input/numbers\""), "%s", error.message);
	cr_assert_eq(weir_coordinator_request_stop(coordinator, NULL), WEIR_OK);
	cr_assert_eq(join_coordinator(coordinator, NULL), WEIR_OK);
	end(runner);
	cr_assert_eq(weir_coordinator_destroy(coordinator, NULL), WEIR_OK);
	cr_assert_eq(weir_queue_destroy(queue, NULL), WEIR_OK);
}

Test(queue_runner, QR_006_an_error_goes_to_the_coordinator_and_stops_the_others)
{
	_Atomic(int) waiting = 0;
	struct source source = {.limit = 3, .then = WEIR_DATA_LOSS, .message = "block 7 is gone"};
	struct weir_queue_runner_step steps[2] = {{count_to_limit, &source, NULL}, {wait_for_cancel, &waiting, NULL}};
	struct ends ends = {.closed = 0};
	weir_queue_runner *runner = create(steps, 2, 1, &ends);
	weir_coordinator *coordinator = create_coordinator();
	weir_error error;

	start(runner, coordinator);
	cr_expect_eq(join_coordinator(coordinator, &error), WEIR_DATA_LOSS);
	cr_expect_str_eq(error.message, "block 7 is gone");
	cr_expect_eq(weir_queue_runner_error_count(runner), 0);
	cr_expect_eq(weiri_load_acquire(&ends.cancelled), 1);
	cr_expect_eq(weiri_load_acquire(&ends.closed), 0);
	cr_expect_eq(ends.cancelled_for.code, WEIR_DATA_LOSS);
	end(runner);
	cr_assert_eq(weir_coordinator_destroy(coordinator, NULL), WEIR_OK);
}

Test(queue_runner, join_of_the_coordinator_ends_with_the_input)
{
	struct source source = {.limit = 3, .then = WEIR_OUT_OF_RANGE};
	struct weir_queue_runner_step step = {count_to_limit, &source, NULL};
	struct ends ends = {.closed = 0};
	weir_queue_runner *runner = create(&step, 1, 2, &ends);
	weir_coordinator *coordinator = create_coordinator();

	start(runner, coordinator);
	cr_expect_eq(join_coordinator(coordinator, NULL), WEIR_OK);
	cr_expect_not(weir_coordinator_should_stop(coordinator));
	cr_expect_eq(weiri_load_acquire(&ends.closed), 1);
	/* As the runner still exists, a later stop cancels what no thread drains any more. */
	cr_expect_eq(weir_coordinator_request_stop(coordinator, NULL), WEIR_OK);
	cr_expect_eq(weiri_load_acquire(&ends.cancelled), 1);
	end(runner);
	cr_assert_eq(weir_coordinator_destroy(coordinator, NULL), WEIR_OK);
}

Test(queue_runner, an_error_after_the_coordinator_was_joined_is_kept)
{
	struct source source = {.limit = 0, .then = WEIR_DATA_LOSS};
	struct weir_queue_runner_step step = {count_to_limit, &source, NULL};
	struct ends ends = {.closed = 0};
	weir_queue_runner *runner = create(&step, 1, 1, &ends);
	weir_coordinator *coordinator = create_coordinator();

	cr_expect_eq(join_coordinator(coordinator, NULL), WEIR_OK);
	start(runner, coordinator);
	cr_assert_eq(weir_queue_runner_join(runner, weir_deadline_in(long_ns)), WEIR_OK);
	cr_expect_eq(weir_queue_runner_error_count(runner), 1);
	cr_expect_eq(weiri_load_acquire(&ends.closed), 1);
	end(runner);
	cr_assert_eq(join_coordinator(coordinator, NULL), WEIR_OK);
	cr_assert_eq(weir_coordinator_destroy(coordinator, NULL), WEIR_OK);
}

/* TensorFlow 1.x behaves otherwise: docs/guarantees.md. */
Test(queue_runner, a_start_for_another_coordinator_is_refused_and_changes_nothing)
{
	_Atomic(int) waiting = 0;
	struct weir_queue_runner_step step = {wait_for_cancel, &waiting, NULL};
	struct ends ends = {.closed = 0};
	weir_queue_runner *runner = create(&step, 1, 1, &ends);
	weir_coordinator *first = create_coordinator(), *second = create_coordinator();
	weir_error error;

	start(runner, first);
	cr_assert(reaches(&waiting, 1));
	cr_assert_eq(weir_queue_runner_start(runner, second, &error), WEIR_FAILED_PRECONDITION);
	cr_expect_str_eq(error.message, "queue runner \"test\" has 1 thread running; another "
	                                "coordinator needs a runner of its own");
	cr_assert_eq(weir_coordinator_request_stop(second, NULL), WEIR_OK);
	cr_assert_eq(join_coordinator(second, NULL), WEIR_OK);
	cr_expect_eq(weir_queue_runner_running_count(runner), 1);
	cr_expect_eq(weiri_load_acquire(&ends.cancelled), 0);
	cr_assert_eq(weir_queue_runner_request_stop(runner, NULL), WEIR_OK);
	cr_expect(weir_coordinator_should_stop(first));
	cr_assert_eq(join_coordinator(first, NULL), WEIR_OK);
	cr_expect_eq(weiri_load_acquire(&ends.cancelled), 1);
	end(runner);
	cr_assert_eq(weir_coordinator_destroy(first, NULL), WEIR_OK);
	cr_assert_eq(weir_coordinator_destroy(second, NULL), WEIR_OK);
}

Test(queue_runner, two_runners_of_one_step_run_for_two_coordinators_at_once)
{
	_Atomic(int) waiting = 0;
	struct weir_queue_runner_step step = {wait_for_cancel, &waiting, NULL};
	struct ends ends[2] = {{.closed = 0}, {.closed = 0}};
	weir_queue_runner *runners[2];
	weir_coordinator *coordinators[2];

	for (int i = 0; i < 2; i++) {
		coordinators[i] = create_coordinator();
		runners[i] = create(&step, 1, 2, &ends[i]);
		start(runners[i], coordinators[i]);
	}
	cr_assert(reaches(&waiting, 4));
	for (int i = 0; i < 2; i++) {
		cr_assert_eq(weir_coordinator_request_stop(coordinators[i], NULL), WEIR_OK);
		cr_assert_eq(join_coordinator(coordinators[i], NULL), WEIR_OK);
		cr_expect_eq(weiri_load_acquire(&ends[i].cancelled), 1);
		if (i == 0) {
			cr_expect_eq(weir_queue_runner_running_count(runners[1]), 2);
			cr_expect_eq(weiri_load_acquire(&ends[1].cancelled), 0);
		}
	}
	for (int i = 0; i < 2; i++) {
		end(runners[i]);
		cr_assert_eq(weir_coordinator_destroy(coordinators[i], NULL), WEIR_OK);
	}
}

Test(queue_runner, a_second_start_waits_for_the_end_of_the_first)
{
	_Atomic(int) waiting = 0;
	struct weir_queue_runner_step step = {wait_for_cancel, &waiting, NULL};
	struct ends ends = {.closed = 0};
	weir_queue_runner *runner = create(&step, 1, 2, &ends);
	weir_error error;

	cr_expect_eq(weir_queue_runner_request_stop(runner, NULL), WEIR_FAILED_PRECONDITION);
	for (int round = 1; round <= 50; round++) {
		start(runner, NULL);
		cr_assert(reaches(&waiting, 2 * round));
		cr_assert_eq(weir_queue_runner_start(runner, NULL, &error), WEIR_FAILED_PRECONDITION);
		cr_assert_eq(weir_queue_runner_destroy(runner, &error), WEIR_FAILED_PRECONDITION);
		cr_assert_eq(weir_queue_runner_join(runner, 0), WEIR_DEADLINE_EXCEEDED);
		cr_assert_eq(weir_queue_runner_running_count(runner), 2);
		cr_assert_eq(weir_queue_runner_request_stop(runner, NULL), WEIR_OK);
		cr_assert_eq(weir_queue_runner_join(runner, weir_deadline_in(long_ns)), WEIR_OK);
		cr_assert_eq(weiri_load_acquire(&ends.cancelled), round);
	}
	cr_expect_eq(weiri_load_acquire(&ends.closed), 0);
	cr_expect_eq(weir_queue_runner_error_count(runner), 0);
	end(runner);
}

Test(queue_runner, a_stop_cancels_and_does_not_close_even_after_an_error)
{
	_Atomic(int) waiting = 0;
	struct source source = {.then = WEIR_DATA_LOSS};
	struct weir_queue_runner_step steps[2] = {{count_to_limit, &source, NULL}, {wait_for_cancel, &waiting, NULL}};
	struct ends ends = {.closed = 0};
	weir_queue_runner *runner = create(steps, 2, 1, &ends);
	uint64_t deadline = weir_deadline_in(long_ns);

	start(runner, NULL);
	cr_assert(reaches(&waiting, 1));
	while (weir_queue_runner_running_count(runner) != 1 && weir_now_ns() < deadline)
		(void)sched_yield();
	cr_expect_eq(weir_queue_runner_error_count(runner), 1);
	cr_expect_eq(weir_queue_runner_request_stop(runner, NULL), WEIR_OK);
	cr_assert_eq(weir_queue_runner_join(runner, deadline), WEIR_OK);
	cr_expect_eq(weiri_load_acquire(&ends.cancelled), 1);
	cr_expect_eq(weiri_load_acquire(&ends.closed), 0);
	end(runner);
}

Test(queue_runner, cancelled_without_a_stop_is_a_clean_end)
{
	struct source source = {.limit = 1, .then = WEIR_CANCELLED};
	struct weir_queue_runner_step step = {count_to_limit, &source, NULL};
	struct ends ends = {.closed = 0};
	weir_queue_runner *runner = create(&step, 1, 1, &ends);
	weir_coordinator *coordinator = create_coordinator();

	start(runner, coordinator);
	cr_expect_eq(join_coordinator(coordinator, NULL), WEIR_OK);
	cr_expect_not(weir_coordinator_should_stop(coordinator));
	cr_expect_eq(weiri_load_acquire(&ends.closed), 1);
	end(runner);
	cr_assert_eq(weir_coordinator_destroy(coordinator, NULL), WEIR_OK);
}

Test(queue_runner, cancelled_is_an_error_when_asked_for_and_end_codes_can_be_chosen)
{
	struct source sources[2] = {{.then = WEIR_CANCELLED}, {.then = WEIR_NOT_FOUND}};
	struct weir_queue_runner_step steps[2] = {{count_to_limit, &sources[0], NULL}, {count_to_limit, &sources[1], NULL}};
	struct weir_queue_runner_options options = {WEIR_QUEUE_RUNNER_OPTIONS_INIT,
	                                            .flags = WEIR_QUEUE_RUNNER_CANCELLED_IS_ERROR, .steps = steps,
	                                            .step_count = 2, .end_codes = WEIR_COORDINATOR_CLEAN(WEIR_NOT_FOUND)};
	weir_queue_runner *runner = NULL;

	cr_assert_eq(weir_queue_runner_create(&options, &runner, NULL), WEIR_OK);
	start(runner, NULL);
	cr_assert_eq(weir_queue_runner_join(runner, weir_deadline_in(long_ns)), WEIR_OK);
	cr_expect_eq(weir_queue_runner_error_count(runner), 1);
	cr_expect_eq(weir_queue_runner_error(runner, 0, NULL), WEIR_CANCELLED);
	end(runner);
}

static enum weir_status exit_the_thread(void *context, weir_cancel *cancel, weir_error *error)
{
	(void)context;
	(void)cancel;
	(void)error;
	pthread_exit(NULL);
}

Test(queue_runner, a_step_that_calls_pthread_exit_is_an_error)
{
	struct weir_queue_runner_step step = {exit_the_thread, NULL, NULL};
	struct ends ends = {.closed = 0};
	weir_queue_runner *runner = create(&step, 1, 2, &ends);

	start(runner, NULL);
	cr_assert_eq(weir_queue_runner_join(runner, weir_deadline_in(long_ns)), WEIR_OK);
	cr_expect_eq(weir_queue_runner_error_count(runner), 2);
	cr_expect_eq(weir_queue_runner_error(runner, 0, NULL), WEIR_INTERNAL);
	end(runner);
}

static void *request_stop(void *coordinator)
{
	(void)weir_coordinator_request_stop(coordinator, NULL);
	return NULL;
}

static void *destroy_runner(void *runner)
{
	(void)weir_queue_runner_destroy(runner, NULL);
	return NULL;
}

Test(queue_runner, destroy_waits_for_a_cancel_that_is_under_way)
{
	struct source source = {.limit = 0, .then = WEIR_OUT_OF_RANGE};
	struct weir_queue_runner_step step = {count_to_limit, &source, NULL};
	struct ends ends = {.hold = 1};
	weir_queue_runner *runner = create(&step, 1, 1, &ends);
	weir_coordinator *coordinator = create_coordinator();
	pthread_t stopper;
	pthread_t destroyer;

	start(runner, coordinator);
	cr_assert_eq(weir_queue_runner_join(runner, weir_deadline_in(long_ns)), WEIR_OK);
	cr_assert_eq(pthread_create(&stopper, NULL, request_stop, coordinator), 0);
	cr_assert(reaches(&ends.held, 1));
	cr_assert_eq(pthread_create(&destroyer, NULL, destroy_runner, runner), 0);
	weiri_store_release(&ends.hold, 0);
	cr_assert_eq(pthread_join(destroyer, NULL), 0);
	cr_expect_eq(weiri_load_acquire(&ends.cancelled), 1, "destroy returned before cancel did");
	cr_assert_eq(pthread_join(stopper, NULL), 0);
	cr_expect_eq(join_coordinator(coordinator, NULL), WEIR_OK);
	cr_assert_eq(weir_coordinator_destroy(coordinator, NULL), WEIR_OK);
}

Test(queue_runner, a_stop_beside_the_end_of_input_ends_every_run)
{
	enum { ROUNDS = 200 };
	struct source source = {.then = WEIR_OUT_OF_RANGE};
	struct weir_queue_runner_step step = {count_to_limit, &source, NULL};
	struct ends ends = {.closed = 0};
	weir_queue_runner *runner = create(&step, 1, 2, &ends);
	weir_coordinator *coordinator = create_coordinator();

	for (int round = 1; round <= ROUNDS; round++) {
		int done = weiri_load_relaxed(&source.calls);

		source.limit = done + 10;
		start(runner, coordinator);
		if (round % 2 == 0) {
			while (weiri_load_relaxed(&source.calls) < done + 5)
				(void)sched_yield();
		}
		cr_assert_eq(weir_coordinator_request_stop(coordinator, NULL), WEIR_OK);
		cr_assert_eq(join_coordinator(coordinator, NULL), WEIR_OK);
		cr_assert_eq(weir_queue_runner_running_count(runner), 0);
		cr_assert_eq(weiri_load_acquire(&ends.cancelled), round);
		cr_assert_eq(weir_coordinator_clear_stop(coordinator, NULL), WEIR_OK);
	}
	cr_expect_leq(weiri_load_acquire(&ends.closed), ROUNDS);
	end(runner);
	cr_assert_eq(weir_coordinator_destroy(coordinator, NULL), WEIR_OK);
}

Test(queue_runner, a_start_that_lacks_memory_calls_no_step)
{
	enum { THREADS = 3 };
	struct source source = {.limit = 1000, .then = WEIR_OUT_OF_RANGE};
	struct weir_queue_runner_step step = {count_to_limit, &source, NULL};
	struct ends ends = {.closed = 0};
	/*
	 * WEIR_OK is not an end. If a user names it as one, threads that call no step still end
	 * nothing.
	 */
	struct weir_queue_runner_options of_runner = {WEIR_QUEUE_RUNNER_OPTIONS_INIT,
	                                              .steps = &step,
	                                              .step_count = 1,
	                                              .threads_per_step = THREADS,
	                                              .end_codes = WEIR_COORDINATOR_CLEAN(WEIR_OUT_OF_RANGE) |
	                                                           WEIR_COORDINATOR_CLEAN(WEIR_OK),
	                                              .close = note_close,
	                                              .queue = &ends};
	weir_queue_runner *runner = NULL;
	size_t allocations = 0;

	cr_assert_eq(weir_queue_runner_create(&of_runner, &runner, NULL), WEIR_OK);
	for (size_t at = 1;; at++) {
		struct failing_allocator memory = {.fail_at = 0};
		weir_allocator allocator = failing_allocator_hooks(&memory);
		struct weir_coordinator_options options = {WEIR_COORDINATOR_OPTIONS_INIT, .allocator = &allocator};
		weir_coordinator *coordinator = NULL;
		enum weir_status status;

		cr_assert_eq(weir_coordinator_create(&options, &coordinator, NULL), WEIR_OK);
		memory.fail_at = weiri_load_relaxed(&memory.asked) + at;
		status = weir_queue_runner_start(runner, coordinator, NULL);
		cr_assert_eq(weir_queue_runner_join(runner, weir_deadline_in(long_ns)), WEIR_OK);
		cr_assert_eq(weiri_load_relaxed(&source.calls), status == WEIR_OK ? 1000 : 0);
		cr_assert_eq(weiri_load_acquire(&ends.closed), status == WEIR_OK ? 1 : 0);
		cr_assert_eq(join_coordinator(coordinator, NULL), WEIR_OK);
		if (status == WEIR_OK) {
			/* The hook belongs to the runner until the runner is destroyed. */
			end(runner);
			runner = NULL;
		}
		cr_assert_eq(weir_coordinator_destroy(coordinator, NULL), WEIR_OK);
		/* Registered hooks are freed when no thread can see them any more. */
		cr_assert_eq(weir_reclaim_flush(weir_deadline_in(long_ns)), WEIR_OK);
		cr_assert_str_eq(failing_allocator_verdict(&memory), "balanced");
		if (status == WEIR_OK) {
			allocations = at;
			break;
		}
		cr_assert_eq(status, WEIR_RESOURCE_EXHAUSTED);
		cr_assert_lt(at, 50);
	}
	cr_expect_gt(allocations, THREADS);
}

static enum weir_status make_a_runner(const weir_allocator *allocator, void *context)
{
	struct weir_queue_runner_step step = {count_to_limit, context, NULL};
	struct weir_queue_runner_options options = {WEIR_QUEUE_RUNNER_OPTIONS_INIT, .steps = &step, .step_count = 1,
	                                            .allocator = allocator};
	weir_queue_runner *runner = NULL;
	enum weir_status status = weir_queue_runner_create(&options, &runner, NULL);

	cr_assert_eq(weir_queue_runner_destroy(runner, NULL), WEIR_OK);
	return status;
}

Test(queue_runner, create_survives_every_allocation_failing)
{
	cr_expect_eq(fail_each_allocation(make_a_runner, NULL), 4, "itself, its threads, a coordinator and its token");
}
