/*
 * queue_runner.h - threads that keep a queue filled, and close it when their input ends.
 *
 * A queue runner calls step functions again and again, each on threads of its own; a step typically takes from one queue,
 * works, and puts into the next. It sees to the ends: the last thread to reach the end of the input closes the queue, so that
 * its consumers end after the last item; a stop of the coordinator cancels it, so that nobody stays blocked. For a loop that
 * feeds no queue use weir_coordinator_start_thread.
 *
 * | call                                         | threads   | progress                  | blocks on               | allocates | signal-safe |
 * |----------------------------------------------|-----------|---------------------------|-------------------------|-----------|-------------|
 * | weir_queue_runner_create                     | any       | allocator                 | allocator               | yes       | no          |
 * | weir_queue_runner_destroy                    | one, last | blocking                  | threads that are ending | no        | no          |
 * | weir_queue_runner_start                      | any       | system                    | thread creation         | yes       | no          |
 * | weir_queue_runner_request_stop               | any       | as weir_coordinator_request_stop | as there         | no        | no          |
 * | weir_queue_runner_join                       | any       | blocking                  | its threads, a deadline | no        | no          |
 * | weir_queue_runner_running, _error, _error_count | any    | wait-free                 | nothing                 | no        | yes         |
 * | weir_queue_runner_bind, _bind_tensors        | any       | wait-free                 | nothing                 | no        | yes         |
 *
 * How a thread ends, and what follows:
 *
 * | a step returns                                       | is called      | what follows                                            |
 * |------------------------------------------------------|----------------|---------------------------------------------------------|
 * | anything, or is about to be called, after the stop   | stopped        | nothing (the stop runs `cancel`)                        |
 * | WEIR_OK                                              | -              | the step is called again                                |
 * | a code of end_codes                                  | end of input   | the last thread of the runner to end runs `close`       |
 * | WEIR_CANCELLED while nobody stopped                  | end of input: whoever takes from the queue has closed it | the same      |
 * | any other code                                       | error          | with a coordinator: weir_coordinator_request_stop; without: kept, see weir_queue_runner_error, and the last thread to end runs `close` with it as cause |
 *
 * Ordering: what was written before weir_queue_runner_start is visible to the steps; what the steps wrote, to whoever joined.
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
#include <weir/tensor_queue.h>

WEIR_BEGIN_DECLS

typedef struct weir_queue_runner weir_queue_runner;

/*
 * One round of work. `cancel` fires at the stop: pass it to whatever waits. When it fails it may leave a message in *error (one
 * is made up if there is none).
 */
typedef enum weir_status weir_queue_runner_fn(void *context, weir_cancel *cancel, weir_error *error);

/*
 * Closes `queue` in one way or another. cause may be NULL. Called at most once in each run of the runner. Must not call the
 * runner.
 */
typedef void weir_queue_runner_close_fn(void *queue, const weir_error *cause);

struct weir_queue_runner_step {
	weir_queue_runner_fn *run;
	void *context;    /* stays the caller's; used by all threads of this step at once */
	const char *name; /* for messages and threads, cut to 23 bytes; NULL: its number */
};

/* flags: WEIR_CANCELLED is an error like any other (but not after the stop) */
enum { WEIR_QUEUE_RUNNER_CANCELLED_IS_ERROR = 1 };

enum { WEIR_QUEUE_RUNNER_MAX_THREADS = 1024 };

struct weir_queue_runner_options {
	size_t struct_size; /* sizeof(struct weir_queue_runner_options) */
	uint32_t flags;
	const struct weir_queue_runner_step *steps; /* copied, names too */
	size_t step_count;                          /* at least 1 */
	size_t threads_per_step;                    /* 0: 1 */
	uint64_t end_codes; /* WEIR_COORDINATOR_CLEAN() of codes that mean the end of input; 0: WEIR_OUT_OF_RANGE */
	weir_queue_runner_close_fn *close;  /* lets consumers drain the queue; NULL: nothing to do */
	weir_queue_runner_close_fn *cancel; /* also ends those who wait to put something in; NULL: nothing to do */
	void *queue;                        /* for close and cancel; must outlive the runner */
	const char *name;                   /* copied, cut to 31 bytes; NULL: "queue runner" */
	const weir_allocator *allocator;
};

/*
 * WEIR_INVALID_ARGUMENT (options, out, steps or a step's run NULL, bad struct_size, unknown flag, no step, more than
 * WEIR_QUEUE_RUNNER_MAX_THREADS threads), WEIR_RESOURCE_EXHAUSTED.
 * @since 0.1
 */
WEIR_API enum weir_status weir_queue_runner_create(const struct weir_queue_runner_options *options,
                                                   weir_queue_runner **out, weir_error *error);
/*
 * WEIR_FAILED_PRECONDITION, and nothing happens, while its threads run. A `cancel` that a stop is running at this moment is
 * waited for; after the call it does not run. Not from a step, close or cancel. NULL: WEIR_OK.
 * @since 0.1
 */
WEIR_API enum weir_status weir_queue_runner_destroy(weir_queue_runner *runner, weir_error *error);

/*
 * Starts the threads, registered with `coordinator`, which must live until they have ended; with NULL they are the runner's own.
 * After a stop was requested the threads end without calling a step, and `cancel` runs. Errors of an earlier run are forgotten.
 * WEIR_FAILED_PRECONDITION: the threads of an earlier start have not all ended; nothing happens. WEIR_RESOURCE_EXHAUSTED:
 * no thread or memory; no step was called. WEIR_INVALID_ARGUMENT: runner NULL.
 * @since 0.1
 */
WEIR_API enum weir_status weir_queue_runner_start(weir_queue_runner *runner, weir_coordinator *coordinator,
                                                  weir_error *error);
/*
 * Asks the coordinator that the runner was started with, or without one the runner alone, to stop. That coordinator
 * must still live; not while another thread starts the runner.
 * WEIR_INVALID_ARGUMENT: NULL. WEIR_FAILED_PRECONDITION: never started.
 * @since 0.1
 */
WEIR_API enum weir_status weir_queue_runner_request_stop(weir_queue_runner *runner);
/*
 * Waits until no thread of the runner is left and close, if it was due, has returned. WEIR_OK, WEIR_DEADLINE_EXCEEDED
 * (deadline_ns is absolute), WEIR_INVALID_ARGUMENT (NULL).
 * @since 0.1
 */
WEIR_API enum weir_status weir_queue_runner_join(weir_queue_runner *runner, uint64_t deadline_ns);

/* How many of its threads have not ended; 0 for NULL. @since 0.1 */
WEIR_API size_t weir_queue_runner_running(const weir_queue_runner *runner);
/*
 * How many threads of the last run ended with an error that went to no coordinator: none was given, or it was joined already.
 * @since 0.1
 */
WEIR_API size_t weir_queue_runner_error_count(const weir_queue_runner *runner);
/*
 * The index-th of them into *error, and its code. WEIR_NOT_FOUND: there is none. WEIR_INVALID_ARGUMENT: runner NULL. @since 0.1
 */
WEIR_API enum weir_status weir_queue_runner_error(const weir_queue_runner *runner, size_t index, weir_error *error);

/*
 * Sets close, cancel and queue so that the end of input closes `queue` with WEIR_CLOSE_DRAIN and a stop with WEIR_CLOSE_CANCEL;
 * and the name, unless it is set, to the queue's. Neither argument may be NULL.
 * @since 0.1
 */
WEIR_API void weir_queue_runner_bind(struct weir_queue_runner_options *options, weir_queue *queue);
/* The same for a queue of tensors. @since 0.1 */
WEIR_API void weir_queue_runner_bind_tensors(struct weir_queue_runner_options *options, weir_tensor_queue *queue);

WEIR_END_DECLS

#endif
