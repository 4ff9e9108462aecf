/*
 * turn.h - mutual exclusion by trying: a thread that is refused does something else, and no thread
 * waits.
 *
 * Progress: both calls are wait-free. A thread that is stalled while it has the turn keeps it;
 * other threads are refused.
 * Pair: give [release] -> take [acquire]: the next holder sees what the last one did.
 */
#ifndef WEIRI_TURN_H
#define WEIRI_TURN_H

#include <stdint.h>

#include "base/atomic.h"

struct weiri_turn {
	_Atomic(uint32_t) taken;
};

/*
 * Returns 1 if the caller has the turn now, until weiri_turn_give(). Returns 0 if another thread
 * has it.
 */
static inline int weiri_turn_take(struct weiri_turn *turn)
{
	return weiri_exchange_acquire(&turn->taken, 1u) == 0;
}

static inline void weiri_turn_give(struct weiri_turn *turn)
{
	weiri_store_release(&turn->taken, 0u);
}

#endif
