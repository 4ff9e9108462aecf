/*
 * cancel.h - a token that tells any number of waiting operations to give up.
 *
 * Pass one to every call of a task; fire it once and all of them end with WEIR_CANCELLED, having lost nothing. Not a way to
 * stop a thread that does not wait in Weir: such code polls weir_cancel_fired().
 *
 * | call                    | threads | progress           | blocks on | allocates | signal-safe |
 * |-------------------------|---------|--------------------|-----------|-----------|-------------|
 * | weir_cancel_create, _on | any     | allocator, lock-free | allocator | yes     | no          |
 * | weir_cancel_fire        | any     | lock-free + the hooks it runs | nothing | no | no         |
 * | weir_cancel_off         | any     | lock-free          | nothing   | no        | no          |
 * | weir_cancel_fired, _cause | any   | wait-free          | nothing   | no        | yes         |
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
 * Fires: every hook runs once, on this thread, before the call returns (a hook that another thread is taking off at the same
 * time runs or does not). Only the first call counts; its cause (may be NULL: WEIR_CANCELLED, "cancelled") is kept.
 * Returns 1 for the first call, else 0.
 * @since 0.1
 */
WEIR_API int weir_cancel_fire(weir_cancel *token, const weir_error *cause);
/* 1 once fired, else 0; 0 for NULL. @since 0.1 */
WEIR_API int weir_cancel_fired(const weir_cancel *token);
/* WEIR_OK while not fired (or token NULL); afterwards the cause's code, and the cause in *error when error is not NULL. */
WEIR_API enum weir_status weir_cancel_cause(const weir_cancel *token, weir_error *error);

typedef void weir_cancel_fn(void *context);
/*
 * Runs fn(context) once when the token fires; at once, before returning, if it has fired already. *hook is the caller's
 * until weir_cancel_off. WEIR_INVALID_ARGUMENT, WEIR_RESOURCE_EXHAUSTED (fn is not registered and not run).
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
