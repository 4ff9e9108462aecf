/*
 * cancel.h - what only the library's own waits use of cancel tokens: hooks that any thread may run.
 *
 * | call                    | progress             | blocks on | allocates            |
 * |-------------------------|----------------------|-----------|----------------------|
 * | weiri_cancel_on_wait    | allocator, lock-free | allocator | as weir_cancel_on    |
 * | weiri_cancel_help       | wait-free + the hooks it runs | nothing | no             |
 * | weiri_cancel_is_unused  | wait-free            | nothing   | no                   |
 */
#ifndef WEIRI_SYNC_CANCEL_H
#define WEIRI_SYNC_CANCEL_H

#include <weir/cancel.h>

#include "base/compiler.h"

/*
 * As weir_cancel_on. fn ends one of the library's own waits. The only user code it runs is
 * completions.
 */
enum weir_status weiri_cancel_on_wait(weir_cancel *token, weir_cancel_fn *fn, void *context, weir_cancel_hook **out);
/*
 * Runs the hooks of weiri_cancel_on_wait() that have not run yet. The caller has found that the
 * token fired. The thread that fired it may have stalled before it reached them.
 */
void weiri_cancel_help(weir_cancel *token);
/*
 * Returns true if the caller's reference is the only one and the token has not fired: it is as good
 * as a new one. Nobody else can use it then, so this stays so.
 */
WEIRI_SHARED bool weiri_cancel_is_unused(const weir_cancel *token);

#endif
