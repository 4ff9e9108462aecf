/*
 * coordinator.h - stops a set of threads together and says why they stopped.
 *
 * The threads of one job register with a coordinator, or are started by it. They work until
 * weir_coordinator_should_stop() is true, and any of them can ask all to stop. The first error is
 * kept, and weir_coordinator_join() returns it. A cancel token ends operations that wait. For
 * threads that feed a queue, see weir/queue_runner.h. For short tasks, use weir/pool.h.
 *
 * | call                   | threads  | progress    | blocks on       | allocates   | signal-safe |
 * |------------------------|----------|-------------|-----------------|-------------|-------------|
 * | weir_coordinator_create | any     | allocator   | allocator       | yes         | no          |
 * | weir_coordinator_destroy | one, last | blocking | exiting threads | no          | no          |
 * | weir_coordinator_should_stop, _joined | any | wait-free | nothing | no          | yes         |
 * | weir_coordinator_request_stop | any | lock-free (1) | allocator   | for an error | no         |
 * | weir_coordinator_wait_for_stop | any | blocking | a stop, a deadline | no       | no          |
 * | weir_coordinator_status | any     | wait-free   | nothing         | no          | no          |
 * | weir_coordinator_cancel | any     | wait-free   | nothing         | no          | no          |
 * | weir_coordinator_on_stop | any    | lock-free + allocator | allocator | yes     | no          |
 * | weir_coordinator_start_thread, _start_loop | any | system | thread creation | yes | no        |
 * | weir_coordinator_enter | any      | lock-free + allocator | allocator | to grow (2) | no      |
 * | weir_coordinator_leave | any      | wait-free   | nothing         | no          | no          |
 * | weir_coordinator_join  | any      | blocking    | threads, a stop, deadlines | no | no        |
 * | weir_coordinator_clear_stop | one, alone | blocking | exiting threads | yes     | no          |
 *
 * (1) Plus the allocator and the callbacks that it runs.
 * (2) When more threads are registered than ever before.
 *
 * There is no lock: a stalled thread keeps no other thread from stopping.
 *
 * Ordering. What a thread wrote before weir_coordinator_request_stop() is visible to each thread
 * that sees the stop. What a registered thread wrote before it ended is visible to the thread that
 * joined.
 */
#ifndef WEIR_COORDINATOR_H
#define WEIR_COORDINATOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <weir/alloc.h>
#include <weir/cancel.h>
#include <weir/status.h>
#include <weir/time.h>

WEIR_BEGIN_DECLS

typedef struct weir_coordinator weir_coordinator;
typedef struct weir_coordinator_member weir_coordinator_member;

/* flags: no error counts as clean, not even WEIR_OUT_OF_RANGE */
enum weir_coordinator_flags { WEIR_COORDINATOR_NOTHING_CLEAN = 1 };

/* The bit of a status in clean_codes. */
#define WEIR_COORDINATOR_CLEAN(status) (UINT64_C(1) << (status))

/* The usual grace time of weir_coordinator_join(): 120 s. */
#define WEIR_COORDINATOR_GRACE_NS 120000000000u

struct weir_coordinator_options {
	size_t struct_size; /* WEIR_COORDINATOR_OPTIONS_INIT sets it */
	uint32_t flags;
	/* causes that are no error; 0: WEIR_COORDINATOR_CLEAN(WEIR_OUT_OF_RANGE) */
	uint64_t clean_codes;
	const char *name; /* copied, for messages, cut to 63 bytes; NULL: "coordinator" */
	/*
	 * NULL: the default allocator. The memory of callbacks is freed some time after they end: call
	 * weir_reclaim_flush() before the allocator ends.
	 */
	const weir_allocator *allocator;
};
#define WEIR_COORDINATOR_OPTIONS_INIT WEIR_STRUCT_SIZE(struct weir_coordinator_options)

/*
 * Creates a coordinator. options may be NULL. Errors: WEIR_INVALID_ARGUMENT if out is NULL,
 * struct_size is wrong, a flag is unknown, or clean_codes is given together with
 * WEIR_COORDINATOR_NOTHING_CLEAN. WEIR_RESOURCE_EXHAUSTED.
 * @since 0.1
 */
WEIR_API enum weir_status weir_coordinator_create(const struct weir_coordinator_options *options,
                                                  weir_coordinator **out, weir_error *error);

/*
 * Destroys the coordinator. A recorded error that was not read is lost. No other thread may use it.
 * Accepts NULL. Errors: WEIR_FAILED_PRECONDITION, and nothing happens, while registered threads
 * have not ended (*error names them).
 * @since 0.1
 */
WEIR_API enum weir_status weir_coordinator_destroy(weir_coordinator *coordinator,
                                                   weir_error *error);

/* Returns true once a stop was requested, else false; false for NULL. @since 0.1 */
WEIR_API bool weir_coordinator_should_stop(const weir_coordinator *coordinator);

/*
 * Waits until a stop is requested. Errors: WEIR_DEADLINE_EXCEEDED if that did not happen before
 * deadline_ns (absolute), WEIR_CANCELLED if an interrupt ended the wait (weir/thread.h),
 * WEIR_INVALID_ARGUMENT (NULL).
 * @since 0.1
 */
WEIR_API enum weir_status weir_coordinator_wait_for_stop(weir_coordinator *coordinator,
                                                         uint64_t deadline_ns);

/*
 * Asks all threads to stop. Before the call returns, all threads that wait for the stop are woken,
 * the cancel token is fired, and the on_stop callbacks have run, unless another call is doing this
 * at the same time. cause (may be NULL) says why; a cause whose code is WEIR_OK or clean counts as
 * none. Of several causes the first is kept. A cause that comes after a stop is dropped, because
 * errors that the stop brings about would hide its reason. The call linearizes at the one CAS that
 * both requests the stop and records the cause.
 *
 * After weir_coordinator_join() has ended, no thread would see a cause. A call with a cause then
 * does nothing and returns cause->code, so that its caller can report it. Errors:
 * WEIR_INVALID_ARGUMENT if coordinator is NULL.
 * @since 0.1
 */
WEIR_API enum weir_status weir_coordinator_request_stop(weir_coordinator *coordinator,
                                                        const weir_error *cause);

/*
 * Returns the code of the recorded error, and stores the error in *error; WEIR_OK while there is
 * none.
 * @since 0.1
 */
WEIR_API enum weir_status weir_coordinator_status(const weir_coordinator *coordinator,
                                                  weir_error *error);

/*
 * Returns true after weir_coordinator_join() ended, until weir_coordinator_clear_stop(), else
 * false; false for NULL.
 * @since 0.1
 */
WEIR_API bool weir_coordinator_joined(const weir_coordinator *coordinator);

/*
 * The token that fires at the stop, with WEIR_CANCELLED and the reason in its message. Pass it to
 * operations that may wait. The coordinator owns it: retain it to keep it beyond
 * weir_coordinator_clear_stop() or _destroy(). NULL for NULL.
 * @since 0.1
 */
WEIR_API weir_cancel *weir_coordinator_cancel(const weir_coordinator *coordinator);

/*
 * Registers a callback: fn(context) runs once when a stop is requested, on the thread that requests
 * it. If a stop was requested before, fn runs before this call returns. The caller keeps *hook
 * until weir_cancel_off(). Errors as for weir_cancel_on().
 * @since 0.1
 */
WEIR_API enum weir_status weir_coordinator_on_stop(weir_coordinator *coordinator,
                                                   weir_cancel_fn *fn, void *context,
                                                   weir_cancel_hook **hook);

/*
 * What a thread of the coordinator runs. A status other than WEIR_OK becomes a cause for
 * weir_coordinator_request_stop(), with the message in *error (or a default one if there is none).
 */
typedef enum weir_status weir_coordinator_fn(weir_coordinator *coordinator, void *context,
                                             weir_error *error);

/*
 * Starts a registered thread that runs fn once. name (NULL: "thread") is copied and cut to 47 bytes
 * (15 in the system's list of threads). context must be valid until the thread has ended. A thread
 * that is started after a stop runs fn too, so fn should check for the stop. Errors:
 * WEIR_INVALID_ARGUMENT (coordinator or fn NULL), WEIR_RESOURCE_EXHAUSTED (memory, or the system
 * gave no thread).
 * @since 0.1
 */
WEIR_API enum weir_status weir_coordinator_start_thread(weir_coordinator *coordinator,
                                                        const char *name, weir_coordinator_fn *fn,
                                                        void *context, weir_error *error);

/*
 * Like weir_coordinator_start_thread(), but calls fn repeatedly until a stop is requested or fn
 * fails: immediately, and then at each whole multiple of interval_ns from the start. Late calls are
 * not skipped: they follow one another. If interval_ns is 0, there is no pause between calls.
 * @since 0.1
 */
WEIR_API enum weir_status weir_coordinator_start_loop(weir_coordinator *coordinator,
                                                      const char *name, uint64_t interval_ns,
                                                      weir_coordinator_fn *fn, void *context,
                                                      weir_error *error);

/*
 * Registers a thread, or any other piece of work, that the coordinator did not start.
 * weir_coordinator_join() waits until *member is given to weir_coordinator_leave(), by any thread.
 * name as in weir_coordinator_start_thread(). Errors: WEIR_INVALID_ARGUMENT (coordinator or member
 * NULL), WEIR_RESOURCE_EXHAUSTED.
 * @since 0.1
 */
WEIR_API enum weir_status weir_coordinator_enter(weir_coordinator *coordinator, const char *name,
                                                 weir_coordinator_member **member,
                                                 weir_error *error);

/*
 * Ends a registration. The joining thread may destroy the coordinator before this call returns.
 * Accepts NULL.
 * @since 0.1
 */
WEIR_API void weir_coordinator_leave(weir_coordinator_member *member);

/* flags: threads that outlast the grace time are no error; the log hook gets their names */
enum weir_coordinator_join_flags { WEIR_COORDINATOR_IGNORE_STRAGGLERS = 1 };

/*
 * Waits until every registered thread has ended, or a stop was requested and the grace time is
 * over. The grace time is grace_ns from the moment at which the call has seen the stop (0: threads
 * must have ended by then; WEIR_NO_DEADLINE: no limit). deadline_ns (absolute) bounds the whole
 * call. The call ends the registration of threads that ended. Threads that did not end stay
 * registered; they are never killed. If the function of a thread returned in time, the call waits
 * until the system has ended that thread, whatever the deadline.
 *
 * Returns WEIR_OK if all threads have ended and no error was recorded. Errors:
 * - The code of the recorded error, with the error in *error. It takes precedence over the others.
 * - WEIR_DEADLINE_EXCEEDED if threads (*error names them) were still running after the grace time,
 *   or, without a stop, at the deadline. In the latter case the join has not happened and can be
 *   tried again.
 * - WEIR_CANCELLED if an interrupt ended the wait (weir/thread.h). The join has not happened.
 * - WEIR_FAILED_PRECONDITION if called by a thread that this coordinator started.
 * - WEIR_INVALID_ARGUMENT if coordinator is NULL or a flag is unknown.
 * @since 0.1
 */
WEIR_API enum weir_status weir_coordinator_join(weir_coordinator *coordinator, uint64_t deadline_ns,
                                                uint64_t grace_ns, uint32_t flags,
                                                weir_error *error);

/*
 * Resets the coordinator: no stop, no error, not joined, and, if there was a stop, another cancel
 * token. on_stop callbacks that have not run stay registered.
 *
 * Errors, after which nothing has happened: WEIR_FAILED_PRECONDITION while registered threads have
 * not ended (*error names them), WEIR_INVALID_ARGUMENT (NULL), WEIR_RESOURCE_EXHAUSTED.
 * @since 0.1
 */
WEIR_API enum weir_status weir_coordinator_clear_stop(weir_coordinator *coordinator,
                                                      weir_error *error);

WEIR_END_DECLS

#endif
