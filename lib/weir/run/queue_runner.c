/*
 * queue_runner.c - runs steps repeatedly on threads, and closes the queue at the end of the input.
 *
 * Algorithm. A run has three words. `left` tells a thread whether it is the last to end; the last
 * one calls close. Each thread subtracts itself from `left` once, on whichever path it ends.
 * `running` tells whether the run, including close, is over: joiners sleep on it, and it prevents a
 * second start. Between its two subtractions, from `left` and from `running`, a thread only ends
 * the run. `go` holds the threads back until all have been created. So a start that fails has
 * called no step.
 *
 * Source. The steps, the close and the cancellation at a stop are those of TensorFlow 1.x's queue
 * runner, which holds a lock.
 *
 * Invariants
 *   I1  the start that owns the run changes running from 0 to n; its threads then change it from n
 *       to 0. The settings of the run are changed only while it is 0, or by the owner before `go`
 *   I2  each thread that was created subtracts itself from left once, and from running only after
 *       that
 * Pairs
 *   P1  start (go) -> thread_main: the settings of the run; together with P3 the hook, for the next
 *       start
 *   P2  end_thread (left) -> the last end_thread: errors that other threads kept
 *   P3  end_thread (running) -> await_end, start: everything that the threads did
 *   P4  keep_error (failed) -> weir_queue_runner_error: the message
 *   P5  cancel_on_stop (cancel_state) -> await_cancel: the callback is over
 * Memory: after a thread has subtracted itself from running, it accesses nothing of the runner and
 *   only wakes an address.
 * Progress: threads share only the counts. A stalled thread delays the end of the run, not the
 *   steps of the other threads.
 * Checked: tests/test_queue_runner.c (plain, TSan, ASan); stress/model/check_queue_runner.c.
 */
#include <weir/queue_runner.h>

#include <limits.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/atomic.h"
#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/options.h"
#include "run/runner_queue.h"
#include "sync/park.h"

enum { NAME_SIZE = 32, STEP_NAME_SIZE = 24 };
enum { HOLD = 0, GO = 1, GIVE_UP = 2 };
enum { NO_CANCEL = 0, CANCEL_ARMED = 1, CANCEL_DONE = 2 };

struct runner_thread {
	weir_queue_runner *runner;  /* constant */
	weir_queue_runner_fn *step; /* constant */
	void *context;              /* constant */
	char name[STEP_NAME_SIZE];  /* constant */
	/* written by the thread itself during a run */
	enum weir_status status; /* WEIR_OK: stopped, or the run has not begun */
	weir_error end;
	weir_queue_announcement *announcement; /* of this thread as a producer of the queue; NULL: none */
	_Atomic(uint32_t) failed;              /* 1: `end` is an error that was kept */
};

struct weir_queue_runner {
	/* constant */
	weir_allocator allocator;
	struct runner_thread *threads;
	size_t thread_count;
	uint64_t end_codes;
	weir_queue_runner_close_fn *close;
	weir_queue_runner_close_fn *cancel;
	void *queue;
	weir_coordinator *own;
	void *kept; /* the contexts of the steps, if they are the runner's */
	size_t kept_size;
	char name[NAME_SIZE];
	/* written by the owner of the run, before go */
	weir_coordinator *coordinator; /* of this run */
	weir_cancel_hook *hook;
	_Atomic(uint32_t) running;
	_Atomic(uint32_t) left;
	_Atomic(uint32_t) go;
	_Atomic(uint32_t) cancel_state;
};

/* ---- the thread ---- */

static bool means_end_of_input(const weir_queue_runner *runner, enum weir_status status)
{
	return (unsigned)status < 64 && (runner->end_codes >> (unsigned)status & 1u) != 0;
}

/*
 * Calls the step until it fails or a stop is requested. Returns the failure, or WEIR_OK after a
 * stop.
 */
static enum weir_status run_steps(struct runner_thread *thread)
{
	weir_coordinator *coordinator = thread->runner->coordinator;
	weir_cancel *cancel = weir_coordinator_cancel(coordinator);
	enum weir_status status = WEIR_OK;

	while (status == WEIR_OK && !weir_coordinator_should_stop(coordinator))
		status = thread->step(thread->context, cancel, &thread->end);
	/* A failure after the stop results from the stop. */
	return weir_coordinator_should_stop(coordinator) ? WEIR_OK : status;
}

static void complete_message(struct runner_thread *thread)
{
	thread->end.code = thread->status;
	weiri_error_end(&thread->end);
	if (thread->end.message[0] == '\0')
		(void)weiri_fail(&thread->end, thread->status, "queue runner \"%s\": step \"%s\" ended with %s",
		                 thread->runner->name, thread->name, weir_status_name(thread->status));
}

static void keep_error(struct runner_thread *thread)
{
	/* [P4 release] pairs with nth_error(). */
	weiri_store_release(&thread->failed, 1);
	weiri_log(WEIR_LOG_ERROR, "queue runner \"%s\": %s: %s", thread->runner->name, weir_status_name(thread->end.code),
	          thread->end.message);
}

static void report_error(struct runner_thread *thread)
{
	weir_queue_runner *runner = thread->runner;

	if (runner->coordinator == runner->own ||
	    weir_coordinator_request_stop(runner->coordinator, &thread->end) != WEIR_OK)
		keep_error(thread);
}

static const weir_error *nth_error(const weir_queue_runner *runner, size_t index)
{
	for (size_t i = 0; i < runner->thread_count; i++) {
		/* [P4 acquire] pairs with keep_error(). */
		if (weiri_load_acquire(&runner->threads[i].failed) && index-- == 0)
			return &runner->threads[i].end;
	}
	return NULL;
}

/* Called by the last thread of a run that was not stopped. */
static void close_queue(struct runner_thread *last)
{
	weir_queue_runner *runner = last->runner;
	const weir_error *cause = nth_error(runner, 0);

	if (cause == NULL && !means_end_of_input(runner, last->status))
		return;
	if (runner->close != NULL)
		runner->close(runner->queue, cause != NULL ? cause : &last->end);
}

static void leave_run(weir_queue_runner *runner)
{
	_Atomic(uint32_t) *running = &runner->running;
	/*
	 * [P3 release] pairs with await_end(); the releases of other threads are in the same release
	 * sequence.
	 */
	uint32_t before = weiri_fetch_sub_release(running, 1);

	WEIR_ASSERT1(I1, before != 0);
	/* From here on the runner may be freed; a wake needs only its address. */
	if (before == 1)
		weiri_park_wake(running, INT_MAX);
}

/*
 * Every thread that was created comes here once, even if it exits inside a step or inside the
 * allocator of the queue.
 */
static void end_thread(void *argument)
{
	struct runner_thread *thread = argument;
	weir_queue_runner *runner = thread->runner;
	uint32_t before;

	weir_queue_withdraw(thread->announcement);
	thread->announcement = NULL;
	if (thread->status != WEIR_OK) {
		complete_message(thread);
		if (!means_end_of_input(runner, thread->status))
			report_error(thread);
	}
	/*
	 * [P2 acq_rel] releases an error that was kept; the last thread acquires the errors of all
	 * threads.
	 */
	before = weiri_fetch_sub_acq_rel(&runner->left, 1);
	WEIR_ASSERT1(I2, before != 0);
	/* A thread that ends with WEIR_OK was stopped, or gave up before the run began. */
	if (before == 1 && thread->status != WEIR_OK && !weir_coordinator_should_stop(runner->coordinator))
		close_queue(thread);
	leave_run(runner);
}

static bool may_go(weir_queue_runner *runner)
{
	(void)weiri_park_wait(&runner->go, HOLD, WEIR_NO_DEADLINE);
	/*
	 * [relaxed] this load reads no older value than the one that the park acquired (P1), and `go`
	 * changes only once.
	 */
	return weiri_load_relaxed(&runner->go) == GO;
}

static enum weir_status thread_main(weir_coordinator *coordinator, void *context, weir_error *error)
{
	struct runner_thread *thread = context;

	(void)coordinator;
	(void)error;
	pthread_cleanup_push(end_thread, thread);
	if (may_go(thread->runner)) {
		/* This status remains if the thread exits inside the announcement or a step. */
		thread->status = WEIR_INTERNAL;
		thread->announcement =
			weiri_runner_announce(thread->runner->close, thread->runner->queue, thread->runner->name);
		thread->status = run_steps(thread);
	}
	pthread_cleanup_pop(1);
	return WEIR_OK;
}

/* ---- the stop ---- */

/* Runs on the thread that stops the coordinator, once per run. */
static void cancel_on_stop(void *context)
{
	weir_queue_runner *runner = context;
	_Atomic(uint32_t) *cancel_state = &runner->cancel_state;
	weir_error cause = {WEIR_OK, ""};

	/* Without a recorded error, the token's cause says why the runner stopped. */
	if (weir_coordinator_status(runner->coordinator, &cause) == WEIR_OK)
		(void)weir_cancel_cause(weir_coordinator_cancel(runner->coordinator), &cause);
	if (runner->cancel != NULL)
		runner->cancel(runner->queue, weiri_is_cause(&cause) ? &cause : NULL);
	/*
	 * [P5 release] pairs with await_cancel(). From here on the runner may be freed; a wake needs
	 * only its address.
	 */
	weiri_store_release(cancel_state, CANCEL_DONE);
	weiri_park_wake(cancel_state, INT_MAX);
}

/* Waits until no cancel_on_stop of an earlier run is under way. None will start afterwards. */
static void await_cancel(weir_queue_runner *runner)
{
	if (runner->hook != NULL && !weir_cancel_off(runner->hook)) {
		/* P5: the acquire is in weiri_park_wait(). */
		(void)weiri_park_wait(&runner->cancel_state, CANCEL_ARMED, WEIR_NO_DEADLINE);
	}
	runner->hook = NULL;
}

/* ---- the run ---- */

/*
 * Returns WEIR_OK if no thread is left, WEIR_DEADLINE_EXCEEDED if the deadline passed first,
 * WEIR_CANCELLED if the thread was interrupted.
 */
static enum weir_status await_end(weir_queue_runner *runner, uint64_t deadline_ns)
{
	enum weiri_park_result result = WEIRI_PARK_WOKEN;

	for (;;) {
		/* [P3 acquire] pairs with leave_run(). */
		uint32_t running = weiri_load_acquire(&runner->running);

		if (running == 0)
			return WEIR_OK;
		if (result != WEIRI_PARK_WOKEN)
			return result == WEIRI_PARK_TIMEOUT ? WEIR_DEADLINE_EXCEEDED : WEIR_CANCELLED;
		result = weiri_park_interruptible(&runner->running, running, deadline_ns);
	}
}

static void release_threads(weir_queue_runner *runner, uint32_t go)
{
	/* [P1 release] pairs with may_go(). */
	weiri_store_release(&runner->go, go);
	weiri_park_wake(&runner->go, INT_MAX);
}

/*
 * The threads have left the run, so the join waits only for their exits. An interrupt of this thread
 * cannot end it: the caller is not told.
 */
static void join_own(weir_queue_runner *runner)
{
	enum weir_status status;

	do
		status = weir_coordinator_join(runner->own, WEIR_NO_DEADLINE, WEIR_COORDINATOR_GRACE_NS, 0, NULL);
	while (status == WEIR_CANCELLED && !weir_coordinator_joined(runner->own));
}

/* Resets the runner's own coordinator, after the threads of earlier runs have exited. */
static enum weir_status renew_own(weir_queue_runner *runner, weir_error *error)
{
	join_own(runner);
	return weir_coordinator_clear_stop(runner->own, error);
}

static enum weir_status prepare_run(weir_queue_runner *runner, weir_coordinator *coordinator, weir_error *error)
{
	enum weir_status status;

	await_cancel(runner);
	status = renew_own(runner, error);
	if (status != WEIR_OK)
		return status;
	runner->coordinator = coordinator != NULL ? coordinator : runner->own;
	for (size_t i = 0; i < runner->thread_count; i++) {
		runner->threads[i].status = WEIR_OK;
		runner->threads[i].end.message[0] = '\0';
		/* [relaxed] published by go, as are the next three. */
		weiri_store_relaxed(&runner->threads[i].failed, 0);
	}
	weiri_store_relaxed(&runner->left, (uint32_t)runner->thread_count);
	weiri_store_relaxed(&runner->go, HOLD);
	weiri_store_relaxed(&runner->cancel_state, CANCEL_ARMED);
	return WEIR_OK;
}

/* Creates the threads, which wait for `go`. Returns how many were created. */
static size_t create_threads(weir_queue_runner *runner, weir_error *error)
{
	char name[NAME_SIZE + STEP_NAME_SIZE];
	size_t created = 0;

	while (created < runner->thread_count) {
		struct runner_thread *thread = &runner->threads[created];

		(void)snprintf(name, sizeof(name), "%s-%s", runner->name, thread->name);
		if (weir_coordinator_start_thread(runner->coordinator, name, thread_main, thread, error) != WEIR_OK)
			break;
		created++;
	}
	return created;
}

/* Ends a run of which only the first `created` threads exist; they call no step. */
static void give_up(weir_queue_runner *runner, size_t created)
{
	enum weir_status ended = WEIR_OK;

	release_threads(runner, GIVE_UP);
	for (size_t i = created; i < runner->thread_count; i++)
		leave_run(runner);
	do
		ended = await_end(runner, WEIR_NO_DEADLINE);
	while (ended != WEIR_OK); /* soon: the threads call no step */
}

enum weir_status weir_queue_runner_start(weir_queue_runner *runner, weir_coordinator *coordinator, weir_error *error)
{
	uint32_t idle = 0;
	enum weir_status status;
	size_t created = 0;

	if (runner == NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "queue runner: NULL");
	/* [P3 acquire] pairs with leave_run(): the previous run is over; the caller owns this one. */
	if (!weiri_cas_acquire(&runner->running, &idle, (uint32_t)runner->thread_count))
		return weiri_fail(error, WEIR_FAILED_PRECONDITION,
		                  "queue runner \"%s\" has %u thread%s running; another coordinator "
		                  "needs a runner of its own",
		                  runner->name, (unsigned)idle, WEIRI_S(idle));
	status = prepare_run(runner, coordinator, error);
	if (status == WEIR_OK) {
		created = create_threads(runner, error);
		if (created < runner->thread_count)
			status = WEIR_RESOURCE_EXHAUSTED;
		else
			status = weir_coordinator_on_stop(runner->coordinator, cancel_on_stop, runner, &runner->hook);
	}
	if (status != WEIR_OK) {
		give_up(runner, created);
		return weiri_fail(error, status, "queue runner \"%s\": no memory or thread", runner->name);
	}
	release_threads(runner, GO);
	return WEIR_OK;
}

enum weir_status weir_queue_runner_request_stop(weir_queue_runner *runner, const weir_error *cause)
{
	if (runner == NULL)
		return WEIR_INVALID_ARGUMENT;
	return runner->coordinator != NULL ? weir_coordinator_request_stop(runner->coordinator, cause)
	                                   : WEIR_FAILED_PRECONDITION;
}

enum weir_status weir_queue_runner_join(weir_queue_runner *runner, uint64_t deadline_ns)
{
	if (runner == NULL)
		return WEIR_INVALID_ARGUMENT;
	return await_end(runner, deadline_ns);
}

size_t weir_queue_runner_running_count(const weir_queue_runner *runner)
{
	/* [P3 acquire] pairs with leave_run(), for callers that continue when the count is 0. */
	return runner != NULL ? weiri_load_acquire(&runner->running) : 0;
}

size_t weir_queue_runner_error_count(const weir_queue_runner *runner)
{
	size_t count = 0;

	while (runner != NULL && nth_error(runner, count) != NULL)
		count++;
	return count;
}

enum weir_status weir_queue_runner_error(const weir_queue_runner *runner, size_t index, weir_error *error)
{
	const weir_error *found;

	if (runner == NULL)
		return WEIR_INVALID_ARGUMENT;
	found = nth_error(runner, index);
	if (found == NULL)
		return WEIR_NOT_FOUND;
	if (error != NULL)
		*error = *found;
	return found->code;
}

/* ---- creating ---- */

static enum weir_status check_steps(const struct weir_queue_runner_options *options, weir_error *error)
{
	if (options->steps == NULL || options->step_count == 0)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "queue runner: no steps");
	if (options->threads_per_step > WEIR_QUEUE_RUNNER_MAX_THREADS ||
	    options->step_count > WEIR_QUEUE_RUNNER_MAX_THREADS / options->threads_per_step)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT,
		                  "queue runner: %zu step%s on %zu thread%s each, expected at most %d threads",
		                  options->step_count, WEIRI_S(options->step_count), options->threads_per_step,
		                  WEIRI_S(options->threads_per_step), WEIR_QUEUE_RUNNER_MAX_THREADS);
	for (size_t i = 0; i < options->step_count; i++) {
		if (options->steps[i].run == NULL)
			return weiri_fail(error, WEIR_INVALID_ARGUMENT, "queue runner: step %zu has no function", i);
	}
	return WEIR_OK;
}

static enum weir_status check_options(struct weir_queue_runner_options *options, weir_error *error)
{
	enum weir_status status =
		weiri_options_flags("queue runner", options->flags, WEIR_QUEUE_RUNNER_CANCELLED_IS_ERROR, error);

	if (status != WEIR_OK)
		return status;
	if (options->threads_per_step == 0)
		options->threads_per_step = 1;
	status = check_steps(options, error);
	if (status != WEIR_OK)
		return status;
	if (options->end_codes == 0)
		options->end_codes = WEIR_COORDINATOR_CLEAN(WEIR_OUT_OF_RANGE);
	if ((options->flags & WEIR_QUEUE_RUNNER_CANCELLED_IS_ERROR) == 0)
		options->end_codes |= WEIR_COORDINATOR_CLEAN(WEIR_CANCELLED);
	if (options->name == NULL)
		options->name = "queue runner";
	return WEIR_OK;
}

static void set_thread(weir_queue_runner *runner, size_t index, const struct weir_queue_runner_step *step,
                       unsigned number)
{
	struct runner_thread *thread = &runner->threads[index];

	thread->runner = runner;
	thread->step = step->run;
	thread->context = step->context;
	if (step->name != NULL)
		(void)snprintf(thread->name, sizeof(thread->name), "%s", step->name);
	else
		(void)snprintf(thread->name, sizeof(thread->name), "%u", number);
}

/* Sets threads_per_step adjacent threads for each step. */
static void set_threads(weir_queue_runner *runner, const struct weir_queue_runner_options *options)
{
	size_t index = 0;

	for (size_t step = 0; step < options->step_count; step++) {
		for (size_t i = 0; i < options->threads_per_step; i++)
			set_thread(runner, index++, &options->steps[step], (unsigned)step);
	}
}

static void release(weir_queue_runner *runner)
{
	weir_allocator allocator = runner->allocator;

	/* All threads of the coordinator have left, or there were none. */
	(void)weir_coordinator_destroy(runner->own, NULL);
	weiri_release(&allocator, runner->threads, runner->thread_count * sizeof(*runner->threads),
	              _Alignof(struct runner_thread));
	weiri_release(&allocator, runner->kept, runner->kept_size, _Alignof(max_align_t));
	weiri_release(&allocator, runner, sizeof(*runner), _Alignof(weir_queue_runner));
}

static enum weir_status create(const struct weir_queue_runner_options *options, weir_queue_runner **out)
{
	weir_allocator allocator = weiri_allocator_or_default(options->allocator);
	struct weir_coordinator_options own = {WEIR_COORDINATOR_OPTIONS_INIT, .name = options->name,
	                                       .allocator = &allocator};
	weir_queue_runner *runner = weiri_allocate_zeroed(&allocator, sizeof(*runner), _Alignof(weir_queue_runner));

	if (runner == NULL)
		return WEIR_RESOURCE_EXHAUSTED;
	runner->allocator = allocator;
	runner->thread_count = options->step_count * options->threads_per_step;
	runner->threads = weiri_allocate_zeroed(&allocator, runner->thread_count * sizeof(*runner->threads),
	                                        _Alignof(struct runner_thread));
	if (runner->threads == NULL || weir_coordinator_create(&own, &runner->own, NULL) != WEIR_OK) {
		release(runner);
		return WEIR_RESOURCE_EXHAUSTED;
	}
	set_threads(runner, options);
	runner->end_codes = options->end_codes;
	runner->close = options->close;
	runner->cancel = options->cancel;
	runner->queue = options->queue;
	(void)snprintf(runner->name, sizeof(runner->name), "%s", options->name);
	*out = runner;
	return WEIR_OK;
}

enum weir_status weiri_queue_runner_create_keeping(const struct weir_queue_runner_options *given, void *kept,
                                                   size_t size, weir_queue_runner **out, weir_error *error)
{
	struct weir_queue_runner_options options;
	enum weir_status status;

	if (given == NULL || out == NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "queue runner: %s is NULL", given == NULL ? "options" : "out");
	status = weiri_options_read("queue runner", given, &options, sizeof(options), error);
	if (status == WEIR_OK)
		status = check_options(&options, error);
	if (status != WEIR_OK) {
		weiri_error_name(error, "queue runner", options.name);
		return status;
	}
	status = create(&options, out);
	if (status != WEIR_OK)
		return weiri_fail(error, status, "queue runner \"%s\": no memory", options.name);
	(*out)->kept = kept;
	(*out)->kept_size = size;
	return WEIR_OK;
}

enum weir_status weir_queue_runner_create(const struct weir_queue_runner_options *given, weir_queue_runner **out,
                                          weir_error *error)
{
	return weiri_queue_runner_create_keeping(given, NULL, 0, out, error);
}

enum weir_status weir_queue_runner_destroy(weir_queue_runner *runner, weir_error *error)
{
	size_t running = weir_queue_runner_running_count(runner);

	if (runner == NULL)
		return WEIR_OK;
	if (running != 0)
		return weiri_fail(error, WEIR_FAILED_PRECONDITION, "queue runner \"%s\" has %zu thread%s running", runner->name,
		                  running, WEIRI_S(running));
	await_cancel(runner);
	join_own(runner);
	release(runner);
	return WEIR_OK;
}
