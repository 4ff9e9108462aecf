/*
 * turn.h - one thread at a time, and whoever is refused does something else: nobody waits.
 *
 * Progress: both calls are wait-free. A thread that is stopped while it has the turn keeps it; the others are refused.
 * Pair: give [release] -> take [acquire]: what one did in its turn, the next one sees.
 */
#ifndef WEIRI_TURN_H
#define WEIRI_TURN_H

#include <stdint.h>

#include "base/atomic.h"

struct weiri_turn {
	_Atomic(uint32_t) taken;
};

/* 1: it is ours until weiri_turn_give(). 0: another thread has it. */
static inline int weiri_turn_take(struct weiri_turn *turn)
{
	return weiri_exchange_acquire(&turn->taken, 1u) == 0;
}

static inline void weiri_turn_give(struct weiri_turn *turn)
{
	weiri_store_release(&turn->taken, 0u);
}

#endif
