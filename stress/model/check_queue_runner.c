/*
 * check_queue_runner.c - a queue runner: the last thread closes the queue, once, after all steps of
 * the other threads; a stop cancels the queue; after the join everything may be freed.
 *
 * The threads of the run are threads of the checker, which the library's pthread_create() borrows
 * (threads.h).
 */
#include <limits.h>
#include <stdio.h>
#include <weir/coordinator.h>
#include <weir/queue_runner.h>
#include <weir/reclaim.h>
#include <weir/time.h>

#include "model/scope.h"
#include "model/threads.h"
#include "reclaim/record.h"
#include "sync/park.h"

enum { MOST = 2 };

static struct scene {
	weir_queue_runner *runner;
	weir_coordinator *coordinator; /* the user's, or NULL for the runner's own */
	size_t threads;
	size_t step_count;
	enum weir_status ends_with[MOST]; /* what the step of that thread returns in its second call */
	int second_waits;                 /* 1: the second thread's step waits for the stop */
	int tells;                        /* 1: each step stores in `began` that the run is under way */
	_Atomic(uint32_t) began;
	_Atomic(uint32_t) started; /* the first start has returned */
	_Atomic(uint32_t) stopped;
	int calls[MOST];
	int closed, cancelled, restarted;
	enum weir_status status;
	size_t errors;
} scene;

static enum weir_status step(void *context, weir_cancel *cancel, weir_error *error)
{
	int *calls = context;

	(void)cancel, (void)error;
	/*
	 * Every step that uses a queue registers its thread, so this step does, too. Otherwise the
	 * thread would register only when it ends, and the next thread that registers would see
	 * everything that this one did.
	 */
	(void)weiri_record_get();
	if (scene.tells) {
		/* [relaxed] publishes nothing else. */
		weiri_store_relaxed(&scene.began, 1);
		weiri_park_wake(&scene.began, INT_MAX);
	}
	if (scene.second_waits && calls == &scene.calls[1]) {
		(void)weiri_park_wait(&scene.stopped, 0, WEIR_NO_DEADLINE);
		return WEIR_INTERNAL;
	}
	return ++*calls == 1 ? WEIR_OK : scene.ends_with[calls - scene.calls];
}

/*
 * The last thread calls this. It sees the last call of each thread, and the error that one of them
 * returned.
 */
static void close_queue(void *queue, const weir_error *cause)
{
	weir_model_assert(queue == &scene && cause->code == scene.ends_with[0]);
	for (size_t i = 0; i < scene.threads; i++)
		weir_model_assert(scene.calls[i] >= 2);
	scene.closed++;
}

static void cancel_queue(void *queue, const weir_error *cause)
{
	(void)cause;
	weir_model_assert(queue == &scene);
	scene.cancelled++;
}

static void setup(void *context)
{
	struct weir_queue_runner_step steps[MOST] = {{.run = step, .context = &scene.calls[0]},
	                                             {.run = step, .context = &scene.calls[1]}};
	const struct weir_queue_runner_options options = {WEIR_QUEUE_RUNNER_OPTIONS_INIT, .steps = steps,
	                                                  .step_count = scene.threads,    .close = close_queue,
	                                                  .cancel = cancel_queue,         .queue = &scene};

	(void)context;
	weir_model_assert(weir_queue_runner_create(&options, &scene.runner, NULL) == WEIR_OK);
	weiri_model_lend_at_most((uint32_t)scene.threads);
}

static void setup_with_coordinator(void *context)
{
	setup(context);
	weir_model_assert(weir_coordinator_create(NULL, &scene.coordinator, NULL) == WEIR_OK);
}

static void start(void)
{
	weir_model_assert(weir_queue_runner_start(scene.runner, scene.coordinator, NULL) == WEIR_OK);
}

static void join_and_destroy(void)
{
	weir_model_assert(weir_queue_runner_join(scene.runner, WEIR_NO_DEADLINE) == WEIR_OK);
	scene.errors = weir_queue_runner_error_count(scene.runner);
	scene.status = scene.errors != 0 ? WEIR_DATA_LOSS : WEIR_OK;
	weir_model_assert(weir_queue_runner_destroy(scene.runner, NULL) == WEIR_OK);
}

/* Thread 0 starts, joins and frees. The other threads carry out the run. */
static void run(void *context, size_t who)
{
	(void)context;
	if (who != 0) {
		weiri_model_lend(who - 1);
		return;
	}
	start();
	join_and_destroy();
	if (scene.coordinator != NULL) {
		weir_model_assert(weir_coordinator_join(scene.coordinator, WEIR_NO_DEADLINE, WEIR_NO_DEADLINE, 0, NULL) ==
		                  WEIR_DATA_LOSS);
		weir_model_assert(weir_coordinator_destroy(scene.coordinator, NULL) == WEIR_OK);
	}
}

static void closed_once(void *context)
{
	(void)context;
	weir_model_assert(scene.closed == 1 && scene.cancelled == 0 && scene.status == WEIR_OK);
}

static void closed_with_error(void *context)
{
	(void)context;
	weir_model_assert(scene.closed == 1 && scene.cancelled == 0 && scene.status == WEIR_DATA_LOSS);
}

/* Thread 0 stops the run that it started; the stop may come too late. */
static void stop_beside_run(void *context, size_t who)
{
	(void)context;
	if (who == 0) {
		start();
		weir_model_assert(weir_queue_runner_request_stop(scene.runner, NULL) == WEIR_OK);
		join_and_destroy();
	} else {
		weiri_model_lend(who - 1);
	}
}

/*
 * A run that was stopped does not close the queue, even if a step fails. A failure after the stop
 * is not reported as an error.
 */
static void fail_and_stop(void *context, size_t who)
{
	if (who != 0) {
		run(context, who);
		return;
	}
	start();
	weir_model_assert(weir_queue_runner_request_stop(scene.runner, NULL) == WEIR_OK);
	weiri_store_release(&scene.stopped, 1);
	weiri_park_wake(&scene.stopped, INT_MAX);
	join_and_destroy();
}

static void setup_second_waits(void *context)
{
	setup(context);
	scene.second_waits = 1;
}

static void cancelled_not_closed(void *context)
{
	(void)context;
	weir_model_assert(scene.cancelled == 1 && scene.closed == 0 && scene.errors <= 1);
}

static void cancelled_once(void *context)
{
	(void)context;
	weir_model_assert(scene.cancelled == 1 && scene.closed <= 1 && scene.status == WEIR_OK);
}

/*
 * A step fails, which stops the user's coordinator. The stop cancels the queue, on the thread whose
 * step failed.
 */
static void cancelled_or_closed(void *context)
{
	(void)context;
	weir_model_assert(scene.cancelled == 1 && scene.closed == 0);
}

/* One thread reads errors while the run continues. */
static void look_beside_run(void *context, size_t who)
{
	weir_error error;

	if (who != scene.threads + 1) {
		if (who == 0) {
			start();
			weir_model_assert(weir_queue_runner_join(scene.runner, WEIR_NO_DEADLINE) == WEIR_OK);
		} else {
			weiri_model_lend(who - 1);
		}
		return;
	}
	(void)context;
	if (weir_queue_runner_error(scene.runner, 0, &error) == WEIR_DATA_LOSS)
		weir_model_assert(error.code == WEIR_DATA_LOSS && error.message[0] != '\0');
}

static void destroy_runner(void *context)
{
	(void)context;
	weir_model_assert(weir_queue_runner_error_count(scene.runner) == 1);
	weir_model_assert(weir_queue_runner_destroy(scene.runner, NULL) == WEIR_OK);
}

/* The second of two threads cannot be created. The first thread, which exists, calls no step. */
static void start_fails(void *context, size_t who)
{
	(void)context;
	if (who != 0) {
		weiri_model_lend(who - 1);
		return;
	}
	weir_model_assert(weir_queue_runner_start(scene.runner, NULL, NULL) == WEIR_RESOURCE_EXHAUSTED);
	weir_model_assert(scene.calls[0] == 0 && scene.calls[1] == 0);
	weir_model_assert(weir_queue_runner_destroy(scene.runner, NULL) == WEIR_OK);
}

static void setup_one_lent(void *context)
{
	setup(context);
	weiri_model_lend_at_most(1);
}

static void start_and_join(void)
{
	start();
	join_and_destroy();
}

/*
 * Thread 2 stops the user's coordinator. The callback that cancels the queue must have ended before
 * the runner is freed.
 */
static void stopped_by_another(void *context, size_t who)
{
	if (who == scene.threads + 1)
		weir_model_assert(weir_coordinator_request_stop(scene.coordinator, NULL) == WEIR_OK);
	else if (who != 0)
		run(context, who);
	else
		start_and_join();
}

static void cancelled_at_most_once(void *context)
{
	(void)context;
	weir_model_assert(scene.cancelled <= 1 && scene.closed <= 1);
	weir_model_assert(weir_coordinator_join(scene.coordinator, WEIR_NO_DEADLINE, WEIR_COORDINATOR_GRACE_NS, 0, NULL) ==
	                  WEIR_OK);
	weir_model_assert(weir_coordinator_destroy(scene.coordinator, NULL) == WEIR_OK);
}

/*
 * A destroy without a join succeeds only if the run is over. Thread 0 then sees everything that the
 * run's threads did.
 */
static void destroy_without_join(void *context, size_t who)
{
	if (who != 0) {
		run(context, who);
		return;
	}
	start();
	if (weir_queue_runner_destroy(scene.runner, NULL) == WEIR_OK)
		weir_model_assert(scene.calls[0] == 2 && scene.closed == 1);
	else
		join_and_destroy();
}

static void end_coordinator(void *context)
{
	(void)context;
	weir_model_assert(scene.calls[0] == 2 && scene.closed == 1);
	weir_model_assert(weir_coordinator_destroy(scene.coordinator, NULL) == WEIR_OK);
}

/* A run has been started. The last thread starts another one if the first is over by then. */
static void setup_running(void *context)
{
	setup_with_coordinator(context);
	weiri_model_lend_at_most(2);
	start();
}

static void start_beside_run(void *context, size_t who)
{
	(void)context;
	if (who < 2)
		weiri_model_lend(who);
	else if (weir_queue_runner_start(scene.runner, scene.coordinator, NULL) != WEIR_OK)
		weiri_model_give_back();
	else
		scene.restarted = 1;
}

/*
 * One thread starts the first run, and another thread starts the second run if the first is over.
 * The second thread knows of the first run only by the run's own step. The first start writes the
 * runner's cancel hook last. So this hook must reach the second start through the run's threads.
 */
static void setup_started_by_two(void *context)
{
	setup_with_coordinator(context);
	weiri_model_lend_at_most(2);
	scene.tells = 1;
}

static void start_first(void)
{
	start();
	weiri_store_release(&scene.started, 1);
	weiri_park_wake(&scene.started, INT_MAX);
}

static void start_second(void)
{
	(void)weiri_park_wait(&scene.began, 0, WEIR_NO_DEADLINE);
	if (weir_queue_runner_start(scene.runner, scene.coordinator, NULL) == WEIR_OK) {
		scene.restarted = 1;
		return;
	}
	(void)weiri_park_wait(&scene.started, 0, WEIR_NO_DEADLINE);
	weiri_model_give_back();
}

static void start_after_run(void *context, size_t who)
{
	(void)context;
	if (who < 2)
		weiri_model_lend(who);
	else if (who == 2)
		start_first();
	else
		start_second();
}

static void closed_per_run(void *context)
{
	weir_model_assert(scene.closed == 1 + scene.restarted);
	join_and_destroy();
	scene.closed = 1;
	scene.calls[0] = 2;
	end_coordinator(context);
}

/* The first run is over when the second starts. */
static void run_twice(void *context, size_t who)
{
	(void)context;
	if (who != 0) {
		weiri_model_lend(who - 1);
		return;
	}
	start();
	weir_model_assert(weir_queue_runner_join(scene.runner, WEIR_NO_DEADLINE) == WEIR_OK);
	scene.calls[0] = 0;
	start();
	join_and_destroy();
}

static void setup_two_lent(void *context)
{
	setup(context);
	weiri_model_lend_at_most(2);
}

static void closed_twice(void *context)
{
	(void)context;
	weir_model_assert(scene.closed == 2 && scene.cancelled == 0);
}

static int check(const char *name, size_t threads, size_t beside, void (*prepare)(void *),
                 void (*thread)(void *, size_t), void (*finish)(void *), enum weir_status first)
{
	struct weir_model_program program = {name, threads + beside, &scene, sizeof(scene), prepare, thread, finish};

	scene = (struct scene){.threads = threads, .ends_with = {first, WEIR_OUT_OF_RANGE}};
	return scope_as_far_as(&program, scope_long() ? 2000000 : 20000);
}

int main(int argc, char **argv)
{
	int bad = 0;

	scope_arguments(argc, argv);
	bad |= check("queue_runner_1_thread", 1, 1, setup, run, closed_once, WEIR_OUT_OF_RANGE);
	bad |= check("queue_runner_2_threads", 2, 1, setup, run, closed_once, WEIR_OUT_OF_RANGE);
	bad |= check("queue_runner_2_threads_1_fails", 2, 1, setup, run, closed_with_error, WEIR_DATA_LOSS);
	bad |= check("queue_runner_1_thread_stopped", 1, 1, setup, stop_beside_run, cancelled_once, WEIR_OUT_OF_RANGE);
	bad |= check("queue_runner_2_threads_1_fails_then_stopped", 2, 1, setup_second_waits, fail_and_stop,
	             cancelled_not_closed, WEIR_DATA_LOSS);
	bad |= check("queue_runner_1_thread_fails_in_a_coordinator", 1, 1, setup_with_coordinator, run, cancelled_or_closed,
	             WEIR_DATA_LOSS);
	bad |=
		check("queue_runner_1_thread_fails_beside_error", 1, 2, setup, look_beside_run, destroy_runner, WEIR_DATA_LOSS);
	bad |= check("queue_runner_1_thread_run_twice", 1, 2, setup_two_lent, run_twice, closed_twice, WEIR_OUT_OF_RANGE);
	bad |= check("queue_runner_1_thread_coordinator_stopped_by_another", 1, 2, setup_with_coordinator,
	             stopped_by_another, cancelled_at_most_once, WEIR_OUT_OF_RANGE);
	bad |= check("queue_runner_1_thread_destroyed_without_join", 1, 1, setup_with_coordinator, destroy_without_join,
	             end_coordinator, WEIR_OUT_OF_RANGE);
	bad |= check("queue_runner_1_thread_beside_start", 1, 2, setup_running, start_beside_run, closed_per_run,
	             WEIR_OUT_OF_RANGE);
	bad |= check("queue_runner_1_thread_started_by_2", 1, 3, setup_started_by_two, start_after_run, closed_per_run,
	             WEIR_OUT_OF_RANGE);
	bad |= check("queue_runner_1_thread_of_2", 2, 0, setup_one_lent, start_fails, NULL, WEIR_OUT_OF_RANGE);
	return bad;
}
