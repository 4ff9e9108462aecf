/*
 * spare.h - keeps one block of memory for the next user.
 *
 * A thread that needs a block takes the spare one, if there is one, and a thread that is finished
 * with a block puts it back, if there is none. So threads that come one after the other share one
 * block, and never allocate; threads at the same time have blocks of their own.
 *
 * Invariants
 *   A1  a block is with one thread, or it is the spare
 * Pairs
 *   P1  put -> take: the contents of the block
 * Linearization: take at the exchange (or at the load that found none), put at the CAS.
 * Progress: wait-free.
 * Checked: tests/test_published.c; stress/model/check_published.c.
 */
#ifndef WEIRI_SPARE_H
#define WEIRI_SPARE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/atomic.h"

struct weiri_spare {
	_Atomic(void *) block;
};

static inline void weiri_spare_init(struct weiri_spare *spare)
{
	/* [relaxed] not shared yet. */
	weiri_store_relaxed(&spare->block, NULL);
}

/* Returns the block, which is then the caller's, or NULL. */
static inline void *weiri_spare_take(struct weiri_spare *spare)
{
	/* [relaxed] a look that spares threads at the same time the exchange. */
	if (weiri_load_relaxed(&spare->block) == NULL)
		return NULL;
	/* [P1 acquire] pairs with put. */
	return weiri_exchange_acquire(&spare->block, NULL);
}

/* Returns true if the block is now the spare; false if there is one, and the block is still the caller's. */
static inline bool weiri_spare_put(struct weiri_spare *spare, void *block)
{
	void *none = NULL;

	/* [P1 release] pairs with take. */
	return weiri_cas_release(&spare->block, &none, block);
}

#endif
