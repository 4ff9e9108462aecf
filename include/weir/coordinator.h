/*
 * coordinator.h - stops a set of threads together and says why they stopped.
 *
 * Threads of one job register with a coordinator (or are started by it), work until weir_coordinator_should_stop, and any of
 * them can ask all to stop. The first error wins and comes out of weir_coordinator_join. Operations that wait are ended by its
 * cancel token. For threads that feed a queue see weir/queue_runner.h; for short tasks use weir/pool.h.
 *
 * | call                                        | threads    | progress                 | blocks on | allocates | signal-safe |
 * |---------------------------------------------|------------|--------------------------|-----------|-----------|-------------|
 * | weir_coordinator_create                     | any        | allocator                | allocator | yes       | no          |
 * | weir_coordinator_destroy                    | one, last  | blocking                 | ended threads' exit | no | no       |
 * | weir_coordinator_should_stop, _joined       | any        | wait-free                | nothing   | no        | yes         |
 * | weir_coordinator_request_stop               | any        | lock-free + allocator + the callbacks it runs | allocator | for an error | no |
 * | weir_coordinator_wait_for_stop              | any        | blocking                 | a stop, a deadline | no | no        |
 * | weir_coordinator_status                     | any        | wait-free                | nothing   | no        | no          |
 * | weir_coordinator_cancel                     | any        | wait-free                | nothing   | no        | no          |
 * | weir_coordinator_on_stop                    | any        | lock-free + allocator    | allocator | yes       | no          |
 * | weir_coordinator_start_thread, _start_loop  | any        | system                   | thread creation | yes | no          |
 * | weir_coordinator_enter                      | any        | lock-free + allocator    | allocator | at a new peak of threads | no |
 * | weir_coordinator_leave                      | any        | wait-free                | nothing   | no        | no          |
 * | weir_coordinator_join                       | any        | blocking                 | registered threads, a stop, deadlines | no | no |
 * | weir_coordinator_clear_stop                 | one, alone | blocking                 | ended threads' exit | yes | no       |
 *
 * There is no lock: a thread that is stopped anywhere keeps none of the others from stopping.
 * Ordering: what was written before weir_coordinator_request_stop is visible to whoever then sees the stop; what a registered
 * thread wrote before it ended, to whoever joined.
 */
#ifndef WEIR_COORDINATOR_H
#define WEIR_COORDINATOR_H

#include <stddef.h>
#include <stdint.h>
#include <weir/alloc.h>
#include <weir/cancel.h>
#include <weir/status.h>
#include <weir/time.h>

WEIR_BEGIN_DECLS

typedef struct weir_coordinator weir_coordinator;
typedef struct weir_coordinator_member weir_coordinator_member;

/* flags: no error is a clean stop, not even WEIR_OUT_OF_RANGE */
enum { WEIR_COORDINATOR_NOTHING_CLEAN = 1 };

/* The bit of a status in clean_codes. */
#define WEIR_COORDINATOR_CLEAN(status) (UINT64_C(1) << (unsigned)(status))

/* How long weir_coordinator_join waits for threads after a stop, unless told otherwise: 120 s. */
#define WEIR_COORDINATOR_GRACE_NS UINT64_C(120000000000)

struct weir_coordinator_options {
	size_t struct_size; /* sizeof(struct weir_coordinator_options) */
	uint32_t flags;
	uint64_t clean_codes; /* causes that count as a stop without error; 0: WEIR_COORDINATOR_CLEAN(WEIR_OUT_OF_RANGE) */
	const char *name;     /* copied, for messages, cut to 63 bytes; NULL: "coordinator" */
	/*
	 * NULL: the default one. The memory of callbacks comes back some time after they end: flush (weir/reclaim.h) before it goes.
	 */
	const weir_allocator *allocator;
};

/*
 * options may be NULL. WEIR_INVALID_ARGUMENT (out NULL, bad struct_size, unknown flag, clean_codes together with
 * WEIR_COORDINATOR_NOTHING_CLEAN), WEIR_RESOURCE_EXHAUSTED.
 * @since 0.1
 */
WEIR_API enum weir_status weir_coordinator_create(const struct weir_coordinator_options *options,
                                                  weir_coordinator **out, weir_error *error);
/*
 * WEIR_FAILED_PRECONDITION, and nothing happens, while registered threads have not ended (*error names them). No other
 * thread may be using the coordinator. A recorded error goes with it unread. NULL: WEIR_OK.
 * @since 0.1
 */
WEIR_API enum weir_status weir_coordinator_destroy(weir_coordinator *coordinator, weir_error *error);

/* 1 once a stop was requested, else 0; 0 for NULL. @since 0.1 */
WEIR_API int weir_coordinator_should_stop(const weir_coordinator *coordinator);
/*
 * WEIR_OK: a stop was requested. WEIR_DEADLINE_EXCEEDED: not before deadline_ns (absolute). WEIR_INVALID_ARGUMENT: NULL.
 * @since 0.1
 */
WEIR_API enum weir_status weir_coordinator_wait_for_stop(weir_coordinator *coordinator, uint64_t deadline_ns);

/*
 * Asks all to stop. Before it returns, unless another call is doing so at this moment, all who wait for the stop are woken, the
 * cancel token is fired and the on_stop callbacks have run. cause (may be NULL) says why; one whose code is WEIR_OK or clean
 * counts as none. Of several causes the first is kept, the others are dropped, as is any that comes after a stop: errors that
 * the stop itself brings about would hide its reason.
 *
 * Returns WEIR_OK. Once weir_coordinator_join has ended, nobody would look at a cause: a call with one then does nothing and
 * returns cause->code, so that its caller can report it. WEIR_INVALID_ARGUMENT: coordinator NULL.
 * Linearizes at the one CAS that both stops and records.
 * @since 0.1
 */
WEIR_API enum weir_status weir_coordinator_request_stop(weir_coordinator *coordinator, const weir_error *cause);
/* The recorded error's code, and the error in *error; WEIR_OK while there is none. @since 0.1 */
WEIR_API enum weir_status weir_coordinator_status(const weir_coordinator *coordinator, weir_error *error);
/* 1 after weir_coordinator_join ended, until weir_coordinator_clear_stop; 0 for NULL. @since 0.1 */
WEIR_API int weir_coordinator_joined(const weir_coordinator *coordinator);

/*
 * The token that fires at the stop, with WEIR_CANCELLED and the reason in its message. Pass it to operations that may wait. It is
 * the coordinator's: retain it to keep it beyond weir_coordinator_clear_stop or _destroy. NULL for NULL. @since 0.1
 */
WEIR_API weir_cancel *weir_coordinator_cancel(const weir_coordinator *coordinator);
/*
 * Runs fn(context) once when a stop is requested, on the thread that requests it; at once if it was before. *hook is the caller's
 * until weir_cancel_off, see there. Errors as weir_cancel_on.
 * @since 0.1
 */
WEIR_API enum weir_status weir_coordinator_on_stop(weir_coordinator *coordinator, weir_cancel_fn *fn, void *context,
                                                   weir_cancel_hook **hook);

/*
 * What a thread of the coordinator runs. A status other than WEIR_OK is a cause for weir_coordinator_request_stop, with the
 * message that was left in *error (one is made up if there is none).
 */
typedef enum weir_status weir_coordinator_fn(weir_coordinator *coordinator, void *context, weir_error *error);

/*
 * Starts a registered thread that runs fn once. name (NULL: "thread") is copied, cut to 47 bytes (15 in the system's list of
 * threads). context must live until the thread has ended. A thread that is started after a stop runs, too: fn looks.
 * WEIR_INVALID_ARGUMENT (coordinator or fn NULL), WEIR_RESOURCE_EXHAUSTED (memory, or the system gave no thread).
 * @since 0.1
 */
WEIR_API enum weir_status weir_coordinator_start_thread(weir_coordinator *coordinator, const char *name,
                                                        weir_coordinator_fn *fn, void *context, weir_error *error);
/*
 * The same, but fn runs again and again until a stop is requested or it fails: at once, and then at each whole multiple of
 * interval_ns from the start. Late calls are not skipped but follow one another. 0: without a pause.
 * @since 0.1
 */
WEIR_API enum weir_status weir_coordinator_start_loop(weir_coordinator *coordinator, const char *name,
                                                      uint64_t interval_ns, weir_coordinator_fn *fn, void *context,
                                                      weir_error *error);

/*
 * Registers a thread that the coordinator did not start (or any other piece of work): weir_coordinator_join waits until *member
 * was given to weir_coordinator_leave, on whatever thread. name as above. WEIR_INVALID_ARGUMENT (coordinator or member NULL),
 * WEIR_RESOURCE_EXHAUSTED.
 * @since 0.1
 */
WEIR_API enum weir_status weir_coordinator_enter(weir_coordinator *coordinator, const char *name,
                                                 weir_coordinator_member **member, weir_error *error);
/* Ends a registration. The coordinator may be destroyed by its joiner before the call returns. Accepts NULL. @since 0.1 */
WEIR_API void weir_coordinator_leave(weir_coordinator_member *member);

/* flags: threads that outlive the grace period are no error; they are named to the log hook */
enum { WEIR_COORDINATOR_IGNORE_STRAGGLERS = 1 };

struct weir_coordinator_join_options {
	size_t struct_size; /* sizeof(struct weir_coordinator_join_options) */
	uint32_t flags;
	uint64_t deadline_ns; /* absolute; bounds the whole call; 0: no deadline */
	uint64_t grace_ns;    /* how long to wait for the threads once a stop is seen; 0: WEIR_COORDINATOR_GRACE_NS */
};

/*
 * Waits until every registered thread has ended, or a stop was requested and the grace period is over. options may be NULL.
 * Ends the registration of threads that ended; those that did not stay registered and are never killed.
 *
 * WEIR_OK: all have ended, and no error was recorded. The recorded error's code, with the error in *error: takes precedence over
 * what follows. WEIR_DEADLINE_EXCEEDED: threads were still running (*error names them) after the grace period, or,
 * without any stop, at the deadline; in this last case the join has not happened and can be tried again.
 * WEIR_FAILED_PRECONDITION: called by a thread that this coordinator started. WEIR_INVALID_ARGUMENT (coordinator NULL, bad
 * struct_size, unknown flag).
 * A thread whose function returned in time is waited for until the system has ended it, whatever the deadline.
 * @since 0.1
 */
WEIR_API enum weir_status weir_coordinator_join(weir_coordinator *coordinator,
                                                const struct weir_coordinator_join_options *options, weir_error *error);

/*
 * Makes the coordinator new: no stop, no error, not joined, and, if there was a stop, another cancel token. on_stop callbacks
 * that have not run stay. WEIR_FAILED_PRECONDITION, and nothing happens, while registered threads have not ended (*error names
 * them). WEIR_INVALID_ARGUMENT (NULL), WEIR_RESOURCE_EXHAUSTED (nothing happens).
 * @since 0.1
 */
WEIR_API enum weir_status weir_coordinator_clear_stop(weir_coordinator *coordinator, weir_error *error);

WEIR_END_DECLS

#endif
