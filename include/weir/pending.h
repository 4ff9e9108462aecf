/*
 * pending.h - the handle of an operation that was started and has not ended.
 *
 * Calls named weir_..._start... start an operation and return at once. The operation holds no
 * thread while it waits. It ends exactly once, with a status, and then its completion runs on the
 * thread that ended it. A program that wants to cancel the operation, to wait for it, or to ask for
 * its status, asks the starting call for a handle. Other programs pass NULL.
 *
 * | call               | threads | progress              | blocks on | allocates | signal-safe | in callbacks |
 * |--------------------|---------|-----------------------|-----------|-----------|-------------|--------------|
 * | weir_pending_cancel | any    | lock-free + the completion | nothing | record (1) | no        | no           |
 * | weir_pending_wait  | any     | blocking              | the operation | yes (2) | no        | no (3)       |
 * | weir_pending_try_wait | any  | wait-free             | nothing   | no        | no          | yes          |
 * | weir_pending_release | any   | wait-free + allocator | nothing   | no        | no          | yes          |
 *
 * (1) A thread's first call of Weir allocates its record.
 * (2) A hook, if the call has a token.
 * (3) The call first delivers what is due on its thread. A completion that waits for its own
 *     operation waits for ever.
 *
 * An operation has *ended* when its completion has returned. So what the completion used may be freed
 * once weir_pending_wait() or weir_pending_try_wait() has said so.
 *
 * Ownership. A handle is one reference. The owner may give it back with weir_pending_release() at
 * any time. This does not end the operation. The handle may outlive what the operation waits for.
 */
#ifndef WEIR_PENDING_H
#define WEIR_PENDING_H

#include <stdint.h>

#include <weir/api.h>
#include <weir/cancel.h>
#include <weir/status.h>

WEIR_BEGIN_DECLS

typedef struct weir_pending weir_pending;

/*
 * Ends the operation with WEIR_CANCELLED, unless the operation ends first. Of several cancels and
 * closes, the first determines the status and the message. `cause` (may be NULL) is quoted in the
 * operation's message. The completion may run inside this call, or later on the thread that is
 * completing the operation. Never blocks. Idempotent. Accepts NULL. If there is no memory for this
 * thread's record, the operation moves nothing more, and ends when another call reaches it.
 * @since 0.1
 */
WEIR_API void weir_pending_cancel(weir_pending *pending, const weir_error *cause);

/*
 * Waits until the operation has ended. Returns its status, with its message in *error (may be
 * NULL), or the status of the wait:
 *   WEIR_DEADLINE_EXCEEDED   deadline_ns (weir/time.h; 0: only looks) passed before it ended
 *   WEIR_CANCELLED           `cancel` (may be NULL) fired first; *error says so
 *   WEIR_RESOURCE_EXHAUSTED  there is no memory to watch the token
 *   WEIR_INVALID_ARGUMENT    pending is NULL
 * A wait that ends early does not change the operation. weir_pending_try_wait() tells whether the
 * status is that of the operation or that of the wait. Ordering: what the thread that ended the
 * operation did before its end, the completion included, happens before the return.
 * @since 0.1
 */
WEIR_API enum weir_status weir_pending_wait(weir_pending *pending, uint64_t deadline_ns,
                                            weir_cancel *cancel, weir_error *error);

/*
 * The status of an operation that has ended, with its message in *error (may be NULL).
 * WEIR_WOULD_BLOCK while it has not ended. WEIR_INVALID_ARGUMENT: pending is NULL. Ordering as
 * weir_pending_wait().
 * @since 0.1
 */
WEIR_API enum weir_status weir_pending_try_wait(const weir_pending *pending, weir_error *error);

/* Gives the handle back; the operation continues. Accepts NULL. @since 0.1 */
WEIR_API void weir_pending_release(weir_pending *pending);

WEIR_END_DECLS

#endif
