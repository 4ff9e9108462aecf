/*
 * watch.h - waiting for a newer version of a variable: a thread that sleeps, a callback, or a descriptor for poll and epoll.
 *
 * Use it for state that others follow as it changes: configuration, parameters, a position. What counts is the newest version:
 * versions that come and go while nobody looks are passed over. When each value matters, use a queue (weir/queue.h). Writers
 * pay one load while nobody waits.
 *
 * | call                           | threads       | progress                      | blocks on                          | allocates     | signal-safe |
 * |--------------------------------|---------------|-------------------------------|------------------------------------|---------------|-------------|
 * | weir_var_wait                  | any           | wait-free while there is a newer version | one, up to deadline or token | when it waits | no          |
 * | weir_var_start_wait            | any           | lock-free + allocator + the callback | nothing                     | yes           | no          |
 * | weir_var_op_cancel             | any           | lock-free + the callback      | nothing                            | at a thread's first use of Weir | no |
 * | weir_var_op_release            | any           | wait-free + allocator         | nothing                            | no            | no          |
 * | weir_watch_create              | any           | lock-free + allocator         | nothing                            | yes           | no          |
 * | weir_watch_take                | one at a time | lock-free                     | nothing                            | at a thread's first use of Weir | no |
 * | weir_watch_fd                  | any           | wait-free                     | nothing                            | no            | yes         |
 * | weir_watch_destroy             | one, last     | lock-free + allocator         | nothing                            | at a thread's first use of Weir | no |
 *
 * Whoever publishes lets those who wait go on, on his own thread: an attempt, and perhaps a callback or a system call, for each
 * that waits. A thread that waits, or has a watch, and is stopped anywhere holds up no writer and no other that waits. A writer
 * that is stopped after it has published and before it has let the others go on leaves them asleep until the next write, their
 * deadline or their token; stopped while it lets one go on, it holds up that one.
 *
 * A variable is not destroyed while somebody waits, or a watch is on it: weir_var_destroy says WEIR_FAILED_PRECONDITION.
 * Ordering: who gets a version sees what its writer wrote before it published it. Source: operations that wait by attempts,
 * lib/sync/await.h; descriptors by lib/sync/beacon.h. @since 0.1
 */
#ifndef WEIR_WATCH_H
#define WEIR_WATCH_H

#include <stdint.h>
#include <weir/cancel.h>
#include <weir/status.h>
#include <weir/time.h>
#include <weir/var.h>

WEIR_BEGIN_DECLS

typedef struct weir_var_op weir_var_op;
typedef struct weir_watch weir_watch;

/*
 * The newest version, as soon as its number is above newer_than: 0 waits for the first value, the number of the last one seen
 * for the next.
 * *read is a handle, the caller's to release. WEIR_DEADLINE_EXCEEDED (0: at once), WEIR_CANCELLED (the token fired; cancel may
 * be NULL), WEIR_INVALID_ARGUMENT (NULL), WEIR_RESOURCE_EXHAUSTED; *read is untouched then, and error, which may be NULL, names
 * the variable. @since 0.1
 */
WEIR_API enum weir_status weir_var_wait(weir_var *var, uint64_t newer_than, uint64_t deadline_ns, weir_cancel *cancel,
                                        weir_read *read, weir_error *error);

/*
 * Runs once, outside of any section: on the thread that published or that cancels, or inside the start; if a completion runs on
 * that thread, then after it (weir_queue_done_fn in weir/queue.h), so it may start the next wait any number of times. It may do
 * what any code may, except wait for another completion, which may be due on its own thread. What it does delays that thread.
 * WEIR_OK: *read is a handle that is now yours: release it, or copy the struct and release that later. WEIR_CANCELLED: error
 * says why, and *read is cleared.
 */
typedef void weir_var_newer_fn(void *context, enum weir_status status, const weir_error *error, weir_read *read);
/*
 * The same, holding no thread: done(context, ...) is called exactly once. *op (out may be NULL) is the caller's until
 * weir_var_op_release, and serves to cancel. WEIR_INVALID_ARGUMENT (NULL), WEIR_RESOURCE_EXHAUSTED: done is never called.
 * @since 0.1
 */
WEIR_API enum weir_status weir_var_start_wait(weir_var *var, uint64_t newer_than, weir_var_newer_fn *done,
                                              void *context, weir_var_op **op, weir_error *error);
/* Ends it with WEIR_CANCELLED unless it completes first. Accepts NULL. @since 0.1 */
WEIR_API void weir_var_op_cancel(weir_var_op *op);
/* Accepts NULL. @since 0.1 */
WEIR_API void weir_var_op_release(weir_var_op *op);

/*
 * A watch has a descriptor that is readable exactly while there is a version that is newer than newer_than, and later newer
 * than what weir_watch_take gave last; level-triggered. It may be readable for nothing for as long as a call is under way: then
 * weir_watch_take says so. Of the process that made it: in the child of a fork make another. WEIR_INVALID_ARGUMENT (NULL),
 * WEIR_RESOURCE_EXHAUSTED (memory, or no descriptor left), WEIR_FAILED_PRECONDITION (membarrier(2) was granted and is refused
 * now). @since 0.1
 */
WEIR_API enum weir_status weir_watch_create(weir_var *var, uint64_t newer_than, weir_watch **out, weir_error *error);
/* For poll and epoll; do not read, write or close it; exec closes it. -1 for NULL. @since 0.1 */
WEIR_API int weir_watch_fd(const weir_watch *watch);
/*
 * The newest version, if it is newer than the one taken last: the handle is the caller's. Else WEIR_WOULD_BLOCK. As
 * weir_var_read. @since 0.1
 */
WEIR_API enum weir_status weir_watch_take(weir_watch *watch, weir_read *read);
/* Closes the descriptor. Accepts NULL. @since 0.1 */
WEIR_API void weir_watch_destroy(weir_watch *watch);

WEIR_END_DECLS

#endif
