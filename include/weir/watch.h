/*
 * watch.h - waiting for a newer version of a variable: blocking, by callback, or by descriptor.
 *
 * Use it for state that others follow as it changes: configuration, parameters, a position. It
 * delivers the newest version; versions that come and go between two reads are skipped. If every
 * value matters, use a queue (weir/queue.h). Writers pay one load while there are no waiters.
 *
 * | call            | threads    | progress             | blocks on    | allocates  | signal-safe |
 * |-----------------|------------|----------------------|--------------|------------|-------------|
 * | weir_var_wait   | any  | wait-free if there is a newer version | a version (2) | to wait | no |
 * | weir_var_start_wait | any    | lock-free + allocator + callback | nothing | yes | no          |
 * | weir_watch_create | any      | lock-free + allocator | nothing     | yes        | no          |
 * | weir_watch_try_take | one at a time | lock-free     | nothing      | record (1) | no          |
 * | weir_watch_fd   | any        | wait-free            | nothing      | no         | yes         |
 * | weir_watch_destroy | one, last | lock-free + allocator | nothing   | record (1) | no          |
 *
 * (1) A thread's first call of Weir allocates its record.
 * (2) Up to the deadline, or until the token fires.
 *
 * The writer that publishes a version completes the waiting operations on its own thread. Each of
 * them costs the writer an attempt, and perhaps a callback or a system call. A watch whose descriptor
 * is readable costs a fence and a load.
 *
 * Stalled threads. A stalled thread that waits or has a watch delays no writer and no other waiter.
 * If a writer is stalled between publishing and completing the waiters, they sleep until the next
 * write, their deadline or their token. If a writer is stalled while it completes one waiter, it
 * delays that waiter.
 *
 * A variable cannot be destroyed while an operation waits for it or a watch is on it:
 * weir_var_destroy() returns WEIR_FAILED_PRECONDITION.
 *
 * Ordering. A thread that gets a version sees what its writer wrote before it published the
 * version.
 *
 * Sources: lib/weir/sync/pending.h (operations that wait by attempts), lib/weir/sync/ready_fd.h
 * (descriptors). @since 0.1
 */
#ifndef WEIR_WATCH_H
#define WEIR_WATCH_H

#include <stdint.h>
#include <weir/cancel.h>
#include <weir/pending.h>
#include <weir/status.h>
#include <weir/time.h>
#include <weir/var.h>

WEIR_BEGIN_DECLS

typedef struct weir_watch weir_watch;

/*
 * Takes a handle on the newest version as soon as its number exceeds newer_than. 0 waits for the
 * first value; the number of the last version seen waits for the next. The caller releases the
 * handle.
 *
 * Errors: WEIR_DEADLINE_EXCEEDED (with deadline 0: immediately), WEIR_CANCELLED if the token fired
 * (cancel may be NULL), WEIR_INVALID_ARGUMENT (NULL), WEIR_RESOURCE_EXHAUSTED. On an error *read is
 * untouched, and *error (error may be NULL) names the variable.
 * @since 0.1
 */
WEIR_API enum weir_status weir_var_wait(weir_var *var, uint64_t newer_than, uint64_t deadline_ns,
                                        weir_cancel *cancel, weir_read *read, weir_error *error);

/*
 * Runs exactly once, outside of any section, on the thread that publishes or cancels, or inside the
 * start. If a completion is running on that thread, it runs after that one (see weir_queue_done_fn
 * in weir/queue.h), so it may start the next wait any number of times. It may do anything except
 * wait for another completion, which may be due on its own thread. Its duration delays that thread.
 *
 * With WEIR_OK, *read is a handle that the callee owns: release it, or copy the struct and release
 * that later. With WEIR_CANCELLED, error says why and *read is cleared.
 */
typedef void weir_var_newer_fn(void *context, enum weir_status status, const weir_error *error,
                               weir_read *read);

/*
 * Like weir_var_wait(), but holds no thread: done(context, ...) is called exactly once. *handle
 * (may be NULL) is a handle to cancel with; the caller gives it back with weir_pending_release().
 * If this call itself fails (WEIR_INVALID_ARGUMENT if an argument is NULL,
 * WEIR_RESOURCE_EXHAUSTED), done is never called.
 * @since 0.1
 */
WEIR_API enum weir_status weir_var_start_wait(weir_var *var, uint64_t newer_than,
                                              weir_var_newer_fn *done, void *context,
                                              weir_pending **handle, weir_error *error);
/*
 * Creates a watch. Its level-triggered descriptor is readable exactly while the variable has a
 * version newer than newer_than. Once weir_watch_try_take() has taken a version, the number of the
 * version taken last takes the place of newer_than. It may be readable without a newer version
 * while another call is under way; weir_watch_try_take() then returns WEIR_WOULD_BLOCK. A writer
 * that stops while it attends to the watch hides later versions until it goes on, or until a
 * try_take. A watch works only in the process that created it: in the child of a fork create another.
 *
 * Errors: WEIR_INVALID_ARGUMENT (NULL). WEIR_RESOURCE_EXHAUSTED (memory or file descriptors).
 * WEIR_FAILED_PRECONDITION if Linux granted membarrier(2) earlier and refuses it now.
 * @since 0.1
 */
WEIR_API enum weir_status weir_watch_create(weir_var *var, uint64_t newer_than, weir_watch **out,
                                            weir_error *error);

/*
 * The descriptor for poll() and epoll. Do not read, write or close it; exec closes it. -1 for NULL.
 * @since 0.1
 */
WEIR_API int weir_watch_fd(const weir_watch *watch);

/*
 * Takes a handle on the newest version, if it is newer than the one taken last; the caller releases
 * it. Otherwise returns WEIR_WOULD_BLOCK. Other errors as for weir_var_read().
 * @since 0.1
 */
WEIR_API enum weir_status weir_watch_try_take(weir_watch *watch, weir_read *read);
/*
 * Closes the descriptor and frees the watch. Remove the descriptor from epoll first: a writer that is
 * just attending to the watch closes it a little later. Accepts NULL. Never fails. @since 0.1
 */
WEIR_API enum weir_status weir_watch_destroy(weir_watch *watch, weir_error *error);

WEIR_END_DECLS

#endif
