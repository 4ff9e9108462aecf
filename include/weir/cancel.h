/*
 * cancel.h - a token that cancels any number of waiting operations.
 *
 * Pass one token to every call of a task. When it is fired, all these calls end with WEIR_CANCELLED
 * (runs of sessions with the status of the cause) and no item is lost. A token cannot stop a thread that does not wait in Weir: such code polls
 * weir_cancel_fired().
 *
 * | call              | threads | progress         | blocks on     | allocates      | signal-safe |
 * |-------------------|---------|------------------|---------------|----------------|-------------|
 * | weir_cancel_create | any    | allocator        | allocator     | yes            | no          |
 * | weir_cancel_retain | any    | wait-free        | nothing       | no             | yes         |
 * | weir_cancel_on    | any     | lock-free        | allocator (1) | a new slot (1) | no          |
 * | weir_cancel_fire  | any     | wait-free + the hooks it runs | nothing (2) | no  | no          |
 * | weir_cancel_off, _release | any | wait-free (3) | nothing      | no             | no          |
 * | weir_cancel_fired, _cause | any | wait-free    | nothing       | no             | yes         |
 *
 * (1) A token has as many slots as hooks were ever registered at one time. It reuses them.
 * (2) A thread that is stalled while it fires delays the one hook that it is running. The next
 *     thread that fires runs the others. If the stalled thread has not reached a waiter in a queue,
 *     that waiter sleeps on until its deadline, until another thread fires, until any queue call
 *     begins with the token, or until a hook is registered on the token.
 * (3) Dropping the last reference of a token frees it through its allocator.
 */
#ifndef WEIR_CANCEL_H
#define WEIR_CANCEL_H

#include <stdbool.h>
#include <weir/alloc.h>
#include <weir/status.h>

WEIR_BEGIN_DECLS

typedef struct weir_cancel weir_cancel;
typedef struct weir_cancel_hook weir_cancel_hook;

/*
 * Creates a token with one reference. allocator may be NULL. Errors: WEIR_INVALID_ARGUMENT,
 * WEIR_RESOURCE_EXHAUSTED.
 * @since 0.1
 */
WEIR_API enum weir_status weir_cancel_create(const weir_allocator *allocator, weir_cancel **out,
                                             weir_error *error);
/* Adds a reference and returns the token. @since 0.1 */
WEIR_API weir_cancel *weir_cancel_retain(weir_cancel *token);

/*
 * Gives a reference back. Accepts NULL. Registered hooks keep the token alive until
 * weir_cancel_off().
 * @since 0.1
 */
WEIR_API void weir_cancel_release(weir_cancel *token);

/*
 * Fires the token. Each hook runs once, in any order: on this thread before the call returns, or on
 * another thread that fires at the same time. (A hook that another thread removes at the same time
 * may run or not.) Returns true for the first call, else false. Only the first call counts, and its
 * cause is kept (NULL: WEIR_CANCELLED, "cancelled"). If more than two calls race, the first may
 * keep only the code of its cause and not the message. A later call runs the hooks that a stalled
 * call left.
 * @since 0.1
 */
WEIR_API bool weir_cancel_fire(weir_cancel *token, const weir_error *cause);
/* Returns true once the token has fired, else false; false for NULL. @since 0.1 */
WEIR_API bool weir_cancel_fired(const weir_cancel *token);

/*
 * Returns WEIR_OK while the token has not fired, or if token is NULL. Afterwards returns the code
 * of the cause, and stores the cause in *error unless that is NULL.
 * @since 0.1
 */
WEIR_API enum weir_status weir_cancel_cause(const weir_cancel *token, weir_error *error);

typedef void weir_cancel_fn(void *context);

/*
 * Registers a hook: fn(context) runs once when the token fires, on a thread that fires it. If the
 * token has fired already, fn runs before this call returns. The caller keeps *hook until
 * weir_cancel_off(). Errors: WEIR_INVALID_ARGUMENT, WEIR_RESOURCE_EXHAUSTED; fn is then not
 * registered and not run.
 * @since 0.1
 */
WEIR_API enum weir_status weir_cancel_on(weir_cancel *token, weir_cancel_fn *fn, void *context,
                                         weir_cancel_hook **hook);

/*
 * Removes the hook. Returns true if fn has not run and never will. Returns false if fn has run or
 * is running on another thread now, so that `context` may still be in use there. Accepts NULL
 * (returns true).
 * @since 0.1
 */
WEIR_API bool weir_cancel_off(weir_cancel_hook *hook);

WEIR_END_DECLS

#endif
