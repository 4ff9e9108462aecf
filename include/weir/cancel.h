/*
 * cancel.h - a token that tells any number of waiting operations to give up.
 *
 * Pass one to every call of a task; fire it once and all of them end with WEIR_CANCELLED, having lost nothing. Not a way to
 * stop a thread that does not wait in Weir: such code polls weir_cancel_fired().
 *
 * | call                    | threads | progress           | blocks on | allocates | signal-safe |
 * |-------------------------|---------|--------------------|-----------|-----------|-------------|
 * | weir_cancel_create      | any     | allocator          | allocator | yes       | no          |
 * | weir_cancel_retain      | any     | wait-free          | nothing   | no        | yes         |
 * | weir_cancel_on          | any     | lock-free          | allocator, for a new slot | for a new slot (1) | no |
 * | weir_cancel_fire        | any     | wait-free + the hooks it runs | nothing (2) | no | no        |
 * | weir_cancel_off, _release | any   | wait-free (3)      | nothing   | no        | no          |
 * | weir_cancel_fired, _cause | any   | wait-free          | nothing   | no        | yes         |
 *
 * (1) A token keeps a slot for each hook that was ever registered at once with others, and uses it again.
 * (2) A thread that is stopped in a fire holds up the one hook that it runs. The others are run by the next thread that fires;
 *     waits in queues also end when any queue call begins with the token, or a hook is put on it. Until one of these, or its
 *     deadline, comes, a waiter that the stopped thread had not come to sleeps on: nothing runs on its behalf.
 * (3) The last reference of a token frees it, through its allocator; so may off and release.
 */
#ifndef WEIR_CANCEL_H
#define WEIR_CANCEL_H

#include <weir/alloc.h>
#include <weir/status.h>

WEIR_BEGIN_DECLS

typedef struct weir_cancel weir_cancel;
typedef struct weir_cancel_hook weir_cancel_hook;

/* A token with one reference. allocator may be NULL. WEIR_INVALID_ARGUMENT, WEIR_RESOURCE_EXHAUSTED. @since 0.1 */
WEIR_API enum weir_status weir_cancel_create(const weir_allocator *allocator, weir_cancel **out);
/* One more reference; returns the token. @since 0.1 */
WEIR_API weir_cancel *weir_cancel_retain(weir_cancel *token);
/* One reference less. Accepts NULL. Hooks still registered keep the token alive until they are off. @since 0.1 */
WEIR_API void weir_cancel_release(weir_cancel *token);

/*
 * Fires: every hook runs once, in any order, on this thread before the call returns, or on another that fires at the same time
 * (a hook that another thread is taking off at the same time runs or does not). Only the first call counts; its cause (may be
 * NULL: WEIR_CANCELLED, "cancelled") is kept. When more than two fires race, the one that wins may keep its code only, not its
 * message. Later calls run what a stopped one has left. Returns 1 for the first call, else 0.
 * @since 0.1
 */
WEIR_API int weir_cancel_fire(weir_cancel *token, const weir_error *cause);
/* 1 once fired, else 0; 0 for NULL. @since 0.1 */
WEIR_API int weir_cancel_fired(const weir_cancel *token);
/*
 * WEIR_OK while not fired (or token NULL); afterwards the cause's code, and the cause in *error unless that is NULL. @since 0.1
 */
WEIR_API enum weir_status weir_cancel_cause(const weir_cancel *token, weir_error *error);

typedef void weir_cancel_fn(void *context);
/*
 * Runs fn(context) once when the token fires, on a thread that fires; at once, before returning, if it has fired already. *hook
 * is the caller's until weir_cancel_off. WEIR_INVALID_ARGUMENT, WEIR_RESOURCE_EXHAUSTED (fn is not registered and not run).
 * @since 0.1
 */
WEIR_API enum weir_status weir_cancel_on(weir_cancel *token, weir_cancel_fn *fn, void *context,
                                         weir_cancel_hook **hook);
/*
 * Ends the hook. Returns 1 when fn has not run and never will; 0 when it has run or is running on another thread at this
 * moment, so that `context` may still be in use there. Accepts NULL (returns 1).
 * @since 0.1
 */
WEIR_API int weir_cancel_off(weir_cancel_hook *hook);

WEIR_END_DECLS

#endif
