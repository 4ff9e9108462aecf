/*
 * try_token.h - mutual exclusion by trying: a thread that is refused does something else, and no
 * thread waits.
 *
 * Progress: both calls are wait-free. A thread that is stalled while it has the token keeps it;
 * other threads are refused.
 * Pair: give [release] -> take [acquire]: the next holder sees what the last one did.
 */
#ifndef WEIRI_TRY_TOKEN_H
#define WEIRI_TRY_TOKEN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"

struct weiri_try_token {
	_Atomic(uint32_t) taken;
};

/*
 * Returns true if the caller has the token now, until weiri_try_token_give(). Returns false if
 * another thread has it.
 */
static inline bool weiri_try_token_take(struct weiri_try_token *token)
{
	return weiri_exchange_acquire(&token->taken, 1u) == 0;
}

static inline void weiri_try_token_give(struct weiri_try_token *token)
{
	weiri_store_release(&token->taken, 0u);
}

#endif
