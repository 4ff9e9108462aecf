/*
 * callable.h - a part of a graph that is compiled once and run often, from any number of threads.
 *
 * weir_session_run() finds the plan of its feeds, fetches and targets again in each call. A callable
 * is such a plan. Use it where the same part of the graph runs again and again, to start a run
 * without waiting for it, or to feed and fetch one run in several calls. For a few runs
 * weir_session_run() is simpler.
 *
 *     weir_callable *callable;
 *     status = weir_session_compile(session, &x, 1, &y, 1, NULL, 0, NULL, &callable, &error);
 *     status = weir_callable_run(callable, &value, &result, WEIR_NO_DEADLINE, NULL, NULL, &error);
 *
 * | call             | threads   | progress         | blocks on         | allocates | signal-safe |
 * |------------------|-----------|------------------|-------------------|-----------|-------------|
 * | weir_session_compile | any   | lock-free + allocator | allocator    | yes       | no          |
 * | weir_callable_run | any      | lock-free (1)    | its ops (2)       | yes (3)   | no          |
 * | weir_callable_start | any    | lock-free + the ops it runs (1) | allocator | yes (3) | no    |
 * | weir_run_open, weir_run_feed | any | lock-free + the ops it runs (1) | allocator | yes (3) | no |
 * | weir_run_fetch, weir_run_wait | any | wait-free + the wait | the run (2) | no | no          |
 * | weir_run_cancel  | any       | lock-free + hooks | nothing          | no        | no          |
 * | weir_run_close   | any       | lock-free + hooks | nothing          | no        | no          |
 * | weir_run_release | one, last | wait-free + allocator (4) | nothing  | no        | no          |
 * | weir_callable_release | one, last | wait-free + allocator | nothing | no        | no          |
 *
 * (1) As weir_session_run().
 * (2) Up to the deadline.
 * (3) One block for each run of the callable that is under way at the same time as another. The
 *     block of a run that has ended is kept for the next. The ops allocate what they return.
 * (4) Of an open run: as weir_run_close().
 *
 * Ordering. As weir_session_run(). What the ops of a run wrote is visible to its completion.
 */
#ifndef WEIR_CALLABLE_H
#define WEIR_CALLABLE_H

#include <stddef.h>
#include <stdint.h>
#include <weir/cancel.h>
#include <weir/flow/graph.h>
#include <weir/flow/session.h>
#include <weir/flow/trace.h>
#include <weir/pool.h>
#include <weir/status.h>
#include <weir/tensor.h>

WEIR_BEGIN_DECLS

typedef struct weir_callable weir_callable;
typedef struct weir_run weir_run;

/*
 * WEIR_CALLABLE_LATE_FEEDS: weir_run_open() works too. Ops that are fed or fetched are then not
 * joined to chains, and cost somewhat more. There must be a fetch or a target.
 */
enum weir_callable_flags { WEIR_CALLABLE_LATE_FEEDS = 1 };

struct weir_callable_options {
	size_t struct_size; /* WEIR_CALLABLE_OPTIONS_INIT sets it */
	uint32_t flags;
};
#define WEIR_CALLABLE_OPTIONS_INIT WEIR_STRUCT_SIZE(struct weir_callable_options)

/*
 * Compiles what a run with these feeds, fetches and targets executes, in the meaning of
 * weir_session_run(), in time linear in its nodes and edges. The arrays may be NULL if their count
 * is 0. The callable is part of the session, which does not go before it. Errors: those that
 * weir_session_run() has for feeds, fetches and targets. WEIR_INVALID_ARGUMENT also for options.
 * WEIR_FAILED_PRECONDITION if the session was closed or the graph is empty. WEIR_RESOURCE_EXHAUSTED.
 * @since 0.1
 */
WEIR_API enum weir_status weir_session_compile(weir_session *session, const weir_output feeds[],
                                               size_t feed_count, const weir_output fetches[],
                                               size_t fetch_count, weir_node *const targets[],
                                               size_t target_count,
                                               const struct weir_callable_options *options,
                                               weir_callable **out, weir_error *error);

/*
 * WEIR_RUN_ON_CALLER: every op runs on the thread that calls weir_callable_run(), user kernels too.
 * What continues after a wait comes back to this thread. So no other thread runs a part of the run,
 * and the pool is not used; a deadline does not interrupt a kernel.
 */
enum weir_run_flags { WEIR_RUN_ON_CALLER = 1 };

struct weir_run_options {
	size_t struct_size; /* WEIR_RUN_OPTIONS_INIT sets it */
	/*
	 * Where the run's tasks go; borrowed; NULL: the session's pool. A run whose call returned at its
	 * deadline, or that was closed, may go on for a while: its kernels run on, and calls of other
	 * threads, such as an enqueue or weir_promise_fulfill(), complete what it waited for.
	 * weir_pool_destroy() waits until each run in the pool has ended, and for such calls.
	 */
	weir_pool *pool;
	uint32_t flags;
	weir_trace
		*trace; /* the run is recorded in it (weir/flow/trace.h); NULL: the session's, if any */
	/*
	 * A number on which the random numbers of the run depend (weir/flow/op_array.h): a run with the
	 * same one draws the same. 0: the number of the run, from 1 on, among those of the session that
	 * draw random numbers and have no number of their own.
	 */
	uint64_t random_step;
};
#define WEIR_RUN_OPTIONS_INIT WEIR_STRUCT_SIZE(struct weir_run_options)

/*
 * Runs the callable once, as weir_session_run() does. tensors[i], which stays the caller's, is the
 * value of feed i; results[i] becomes a reference to fetch i, which the caller releases; on any
 * failure none is written. The arrays may be NULL if the callable has no feeds or fetches. cancel
 * and options may be NULL.
 *
 * The session's operation_timeout_ns applies to a run with WEIR_NO_DEADLINE. Errors: as for
 * weir_session_run(). WEIR_INVALID_ARGUMENT also for options, and for `pool` together with
 * WEIR_RUN_ON_CALLER.
 * @since 0.1
 */
WEIR_API enum weir_status weir_callable_run(weir_callable *callable, weir_tensor *const tensors[],
                                            weir_tensor *results[], uint64_t deadline_ns,
                                            weir_cancel *cancel,
                                            const struct weir_run_options *options,
                                            weir_error *error);

/*
 * The completion of a run. results[0 .. count-1] are references that it releases; count is 0 unless
 * the status is WEIR_OK. `error` is NULL then. It runs under the rules of weir_queue_done_fn. It may
 * start other runs, and release this one and the callable, but it must not destroy the session.
 */
typedef void weir_run_done_fn(void *context, enum weir_status status, const weir_error *error,
                              weir_tensor *const results[], size_t count);

/*
 * Starts a run and does not wait for it. done(context, ...) is called exactly once, when all ops of
 * the run have ended, user kernels too; possibly before this call returns. If this call fails, it is
 * not called. tensors[] and the array are the caller's again when the call returns. *run (may be
 * NULL) is a handle to cancel the run with, which the caller gives back with weir_run_release().
 *
 * Ops that are cheap and need not wait run inside this call; costly ops and user kernels run in the
 * pool. If the pool has no workers, the program runs them with weir_pool_help(), and
 * weir_pool_readable_fd() tells when. No thread watches the clock for a started run, so it has no
 * deadline, and operation_timeout_ns does not apply: fire `cancel` (may be NULL) from a timer.
 *
 * Errors: WEIR_INVALID_ARGUMENT if an argument is NULL, a tensor does not fit, or for options;
 * WEIR_RUN_ON_CALLER is refused, because no caller waits. WEIR_FAILED_PRECONDITION if the session
 * was closed, or has no workers and options give no pool. WEIR_RESOURCE_EXHAUSTED.
 * @since 0.1
 */
WEIR_API enum weir_status weir_callable_start(weir_callable *callable, weir_tensor *const tensors[],
                                              weir_cancel *cancel,
                                              const struct weir_run_options *options,
                                              weir_run_done_fn *done, void *context, weir_run **run,
                                              weir_error *error);

/*
 * Opens a run whose feeds come in later calls. The ops that need no feed begin at once, where
 * weir_callable_start() runs them; each other op begins once its feeds have come and its inputs and
 * control inputs have ended. The caller gives *run back with weir_run_release().
 *
 * The run has no deadline; fire `cancel` (may be NULL) or call weir_run_cancel(). Errors:
 * WEIR_INVALID_ARGUMENT if callable or run is NULL, or for options; WEIR_RUN_ON_CALLER is refused.
 * WEIR_FAILED_PRECONDITION if the callable was compiled without WEIR_CALLABLE_LATE_FEEDS, or the
 * session was closed. WEIR_RESOURCE_EXHAUSTED.
 * @since 0.1
 */
WEIR_API enum weir_status weir_run_open(weir_callable *callable, weir_cancel *cancel,
                                        const struct weir_run_options *options, weir_run **run,
                                        weir_error *error);

/*
 * Gives feed `feed` (its place in weir_session_compile()) to an open run, once; the run takes its own
 * reference. Ops that become ready may run inside this call. Errors: WEIR_INVALID_ARGUMENT if an
 * argument is NULL, the run was not opened, the value does not fit, there is no such feed, or it has
 * been given. If the run has failed or been stopped, its status.
 * @since 0.1
 */
WEIR_API enum weir_status weir_run_feed(weir_run *run, size_t feed, weir_tensor *value,
                                        weir_error *error);

/*
 * Waits for fetch `fetch` of an open run, which can be taken once. *result is a reference that the
 * caller releases. The call helps the run's pool along if that has no workers, or in a kernel.
 *
 * Errors: WEIR_INVALID_ARGUMENT if an argument is NULL, the run was not opened, there is no such
 * fetch, or it has been taken. WEIR_DEADLINE_EXCEEDED; the message names a feed that has not come, and
 * the run goes on. WEIR_CANCELLED if the thread was interrupted, and the run goes on. If the run has
 * failed or been stopped before the value was there, the status of
 * the run. A value that was there before can still be fetched, unless an op of the run failed while
 * the op that makes it ended.
 * @since 0.1
 */
WEIR_API enum weir_status weir_run_fetch(weir_run *run, size_t fetch, uint64_t deadline_ns,
                                         weir_tensor **result, weir_error *error);

/*
 * Waits until all ops of an open run have ended; or it has failed or been stopped, and then ops may
 * still be under way. Returns the status of the run. Errors of the call itself: WEIR_INVALID_ARGUMENT
 * as weir_run_fetch(); WEIR_DEADLINE_EXCEEDED.
 * @since 0.1
 */
WEIR_API enum weir_status weir_run_wait(weir_run *run, uint64_t deadline_ns, weir_error *error);

/*
 * Says that no feed comes any more, and stops what has not ended as weir_run_cancel() does; a NULL
 * cause is then WEIR_CANCELLED, "the run was closed". A run whose ops have all ended before is not
 * affected. Does not wait. Idempotent. Errors: WEIR_INVALID_ARGUMENT if run is NULL or was not
 * opened.
 * @since 0.1
 */
WEIR_API enum weir_status weir_run_close(weir_run *run, const weir_error *cause);

/*
 * Stops a run: ops that have not begun do not run, ops that wait are cancelled, and kernels see it in
 * their token. The run ends with the code and message of `cause` (NULL: WEIR_CANCELLED), unless it
 * has failed or been stopped before, or all its ops succeed nevertheless. Accepts NULL.
 * @since 0.1
 */
WEIR_API void weir_run_cancel(weir_run *run, const weir_error *cause);

/*
 * Gives the handle back. No other call on it may be under way or start. A started run goes on; an
 * open run is closed. Accepts NULL.
 * @since 0.1
 */
WEIR_API void weir_run_release(weir_run *run);

/*
 * Gives the callable back. No other call on it may be under way or start. Runs that have been
 * started, or left kernels behind, go on. Accepts NULL.
 * @since 0.1
 */
WEIR_API void weir_callable_release(weir_callable *callable);

WEIR_END_DECLS

#endif
