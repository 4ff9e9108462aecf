/*
 * cancel.h - what the library's own waits have beyond weir/cancel.h: hooks that any thread may run.
 *
 * | call                    | progress             | blocks on | allocates            |
 * |-------------------------|----------------------|-----------|----------------------|
 * | weiri_cancel_on_wait    | allocator, lock-free | allocator | as weir_cancel_on    |
 * | weiri_cancel_help       | wait-free + the hooks it runs | nothing | no             |
 */
#ifndef WEIRI_SYNC_CANCEL_H
#define WEIRI_SYNC_CANCEL_H

#include <weir/cancel.h>

/* As weir_cancel_on; fn ends a wait of the library's and runs no user code but completions. */
enum weir_status weiri_cancel_on_wait(weir_cancel *token, weir_cancel_fn *fn, void *context, weir_cancel_hook **out);
/*
 * For a caller that has found the token fired: runs such hooks that have not been run yet. The
 * thread that fired may have been stopped before it came to them.
 */
void weiri_cancel_help(weir_cancel *token);

#endif
