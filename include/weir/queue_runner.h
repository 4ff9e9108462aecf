/*
 * queue_runner.h - threads that keep a queue filled, and close it when their input ends.
 *
 * A queue runner calls step functions repeatedly, each on threads of its own. A step typically
 * dequeues from one queue, works, and enqueues into the next. The runner handles the ends: the last
 * thread that reaches the end of the input closes the queue, so that its consumers end after the
 * last item; and a stop of the coordinator cancels the queue, so that no thread stays blocked. For
 * a loop that feeds no queue, use weir_coordinator_start_thread().
 *
 * | call                   | threads   | progress     | blocks on       | allocates | signal-safe |
 * |------------------------|-----------|--------------|-----------------|-----------|-------------|
 * | weir_queue_runner_create | any     | allocator    | allocator       | yes       | no          |
 * | weir_queue_runner_destroy | one, last | blocking  | exiting threads | no        | no          |
 * | weir_queue_runner_start | any      | system       | thread creation | yes       | no          |
 * | weir_queue_runner_request_stop | any | as weir_coordinator_request_stop | as there | no | no  |
 * | weir_queue_runner_join | any       | blocking     | its threads, a deadline | no | no         |
 * | weir_queue_runner_running_count | any | wait-free | nothing         | no        | yes         |
 * | weir_queue_runner_error, _error_count | any | wait-free | nothing   | no        | yes         |
 * | weir_queue_runner_bind | any       | wait-free    | nothing         | no        | yes         |
 *
 * How a thread ends, and what follows:
 * - Stopped. The coordinator (or weir_queue_runner_request_stop()) has requested a stop before or
 *   during a step, whatever the step returns. The stop itself runs `cancel`; nothing else follows.
 * - End of input. A step returns a code of end_codes. It may also return WEIR_CANCELLED without a
 *   stop: the consumer of the queue has closed it. The last thread of the runner to end runs
 *   `close`.
 * - Error. A step returns any other code except WEIR_OK. With a coordinator, the runner calls
 *   weir_coordinator_request_stop(). Without one, it keeps the error (weir_queue_runner_error()),
 *   and the last thread to end runs `close` with it as cause.
 *
 * After WEIR_OK the step is called again.
 *
 * Ordering. What a thread wrote before weir_queue_runner_start() is visible to the steps. What the
 * steps wrote is visible to the thread that joined.
 */
#ifndef WEIR_QUEUE_RUNNER_H
#define WEIR_QUEUE_RUNNER_H

#include <stddef.h>
#include <stdint.h>
#include <weir/alloc.h>
#include <weir/cancel.h>
#include <weir/coordinator.h>
#include <weir/queue.h>
#include <weir/status.h>

WEIR_BEGIN_DECLS

typedef struct weir_queue_runner weir_queue_runner;

/*
 * One call of a step; weir_session_run_target() of weir/flow/session.h is a step that runs a node
 * of a graph. `cancel` fires at the stop: pass it to every call that waits. If the step fails, it
 * may store a message in *error (there is a default one).
 */
typedef enum weir_status weir_queue_runner_fn(void *context, weir_cancel *cancel,
                                              weir_error *error);

/*
 * Closes `queue`, as the field `close` or `cancel` says. cause may be NULL. Called at most once in
 * each run of the runner. It must not call the runner.
 */
typedef void weir_queue_runner_close_fn(void *queue, const weir_error *cause);

struct weir_queue_runner_step {
	weir_queue_runner_fn *run;
	void *context;    /* the caller's; used by all threads of this step at once */
	const char *name; /* for messages and threads, cut to 23 bytes; NULL: its number */
};

/* flags: WEIR_CANCELLED is an error like any other (but not after the stop) */
enum weir_queue_runner_flags { WEIR_QUEUE_RUNNER_CANCELLED_IS_ERROR = 1 };

enum weir_queue_runner_limits { WEIR_QUEUE_RUNNER_MAX_THREADS = 1024 };

struct weir_queue_runner_options {
	size_t struct_size; /* WEIR_QUEUE_RUNNER_OPTIONS_INIT sets it */
	uint32_t flags;
	const struct weir_queue_runner_step *steps; /* copied, names too */
	size_t step_count;                          /* at least 1 */
	size_t threads_per_step;                    /* 0: 1 */
	/* WEIR_COORDINATOR_CLEAN() of the codes that mean end of input; 0: WEIR_OUT_OF_RANGE */
	uint64_t end_codes;
	weir_queue_runner_close_fn *close;  /* lets consumers drain the queue; NULL: nothing to do */
	weir_queue_runner_close_fn *cancel; /* also ends waiting enqueues; NULL: nothing to do */
	void *queue;                        /* for close and cancel; must outlive the runner */
	const char *name;                   /* copied, cut to 31 bytes; NULL: "queue runner" */
	const weir_allocator *allocator;
};
#define WEIR_QUEUE_RUNNER_OPTIONS_INIT WEIR_STRUCT_SIZE(struct weir_queue_runner_options)

/*
 * Creates a runner. Errors: WEIR_INVALID_ARGUMENT if options, out, steps or the function of a step
 * is NULL, struct_size is wrong, a flag is unknown, there is no step, or there would be more than
 * WEIR_QUEUE_RUNNER_MAX_THREADS threads. WEIR_RESOURCE_EXHAUSTED.
 * @since 0.1
 */
WEIR_API enum weir_status weir_queue_runner_create(const struct weir_queue_runner_options *options,
                                                   weir_queue_runner **out, weir_error *error);

/*
 * Destroys the runner. If a stop is running `cancel` at this moment, the call waits for it;
 * afterwards `cancel` does not run. Do not call it from a step, close or cancel. Accepts NULL.
 * Errors: WEIR_FAILED_PRECONDITION, and nothing happens, while its threads run.
 * @since 0.1
 */
WEIR_API enum weir_status weir_queue_runner_destroy(weir_queue_runner *runner, weir_error *error);

/*
 * Starts the threads and registers them with `coordinator`, which must exist until they have ended.
 * With NULL they are the runner's own. If a stop was already requested, the threads end without
 * calling a step, and `cancel` runs. Errors of an earlier run are forgotten.
 *
 * A runner has one run at a time, because it has one queue: the end of the input of one run would
 * close it under the other. For two coordinators at once, create two runners with the same options,
 * each bound to its own queue.
 *
 * Errors, after which no step was called: WEIR_FAILED_PRECONDITION if threads of an earlier start
 * have not ended. WEIR_RESOURCE_EXHAUSTED if there is no thread or memory. WEIR_INVALID_ARGUMENT if
 * runner is NULL.
 * @since 0.1
 */
WEIR_API enum weir_status weir_queue_runner_start(weir_queue_runner *runner,
                                                  weir_coordinator *coordinator, weir_error *error);

/*
 * Asks the coordinator that the runner was started with to stop, or without one the runner alone.
 * cause (may be NULL) as in weir_coordinator_request_stop(). That coordinator must still exist, and
 * no other thread may be starting the runner. Errors: WEIR_INVALID_ARGUMENT (NULL),
 * WEIR_FAILED_PRECONDITION if the runner was never started.
 * @since 0.1
 */
WEIR_API enum weir_status weir_queue_runner_request_stop(weir_queue_runner *runner,
                                                         const weir_error *cause);

/*
 * Waits until all threads of the runner have ended, and close, if it was due, has returned. Errors:
 * WEIR_DEADLINE_EXCEEDED (deadline_ns is absolute), WEIR_CANCELLED if an interrupt ended the wait
 * (weir/thread.h), WEIR_INVALID_ARGUMENT (NULL).
 * @since 0.1
 */
WEIR_API enum weir_status weir_queue_runner_join(weir_queue_runner *runner, uint64_t deadline_ns);

/* The number of its threads that have not ended; 0 for NULL. @since 0.1 */
WEIR_API size_t weir_queue_runner_running_count(const weir_queue_runner *runner);

/*
 * The number of threads of the last run that ended with an error and had no coordinator to report
 * it to: none was given, or it had been joined already.
 * @since 0.1
 */
WEIR_API size_t weir_queue_runner_error_count(const weir_queue_runner *runner);

/*
 * Stores the index-th of these errors in *error and returns its code. Errors: WEIR_NOT_FOUND if
 * there is none, WEIR_INVALID_ARGUMENT if runner is NULL.
 * @since 0.1
 */
WEIR_API enum weir_status weir_queue_runner_error(const weir_queue_runner *runner, size_t index,
                                                  weir_error *error);

/*
 * Sets close, cancel and queue, so that the end of the input closes `queue` with WEIR_CLOSE_DRAIN
 * and a stop closes it with WEIR_CLOSE_CANCEL. Sets the name to that of the queue unless it is set.
 * Neither argument may be NULL.
 * @since 0.1
 */
WEIR_API void weir_queue_runner_bind(struct weir_queue_runner_options *options, weir_queue *queue);

WEIR_END_DECLS

#endif
