/*
 * numbers.h - a set of numbers below 64, from which threads take the lowest free one, and give it back.
 *
 * Invariants
 *   N1  a number is with one thread, or it is free
 * Pairs
 *   P1  give -> take: what the number stands for is finished with
 * Linearization: the CAS; take also at the load that found none free.
 * Progress: lock-free, since a CAS fails only after another take or give.
 * Checked: tests/test_ranks.c.
 */
#ifndef WEIRI_NUMBERS_H
#define WEIRI_NUMBERS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/assert.h"
#include "base/atomic.h"

enum { WEIRI_NUMBERS_MAX = 64 };

struct weiri_numbers {
	_Atomic(uint64_t) taken;
};

static inline void weiri_numbers_init(struct weiri_numbers *numbers)
{
	/* [relaxed] not shared yet. */
	weiri_store_relaxed(&numbers->taken, 0);
}

/* Sets *number to the lowest free number below `limit`. Returns false if there is none. */
static inline bool weiri_number_take(struct weiri_numbers *numbers, uint32_t limit, uint32_t *number)
{
	/* [relaxed] the CAS decides. */
	uint64_t taken = weiri_load_relaxed(&numbers->taken);

	do {
		*number = taken == UINT64_MAX ? WEIRI_NUMBERS_MAX : (uint32_t)__builtin_ctzll(~taken);
		if (*number >= limit || *number >= WEIRI_NUMBERS_MAX)
			return false;
		/* [P1 acquire] pairs with give. */
	} while (!weiri_cas_acquire(&numbers->taken, &taken, taken | UINT64_C(1) << *number));
	return true;
}

static inline void weiri_number_give(struct weiri_numbers *numbers, uint32_t number)
{
	/* [relaxed] the CAS decides. */
	uint64_t taken = weiri_load_relaxed(&numbers->taken);

	do {
		WEIR_ASSERT1(N1, (taken >> number & 1) != 0);
		/* [P1 release] pairs with take. */
	} while (!weiri_cas_release(&numbers->taken, &taken, taken & ~(UINT64_C(1) << number)));
}

/* Called by a thread that may use the number, or to refuse one that may not. */
static inline bool weiri_number_is_taken(const struct weiri_numbers *numbers, uint32_t number)
{
	/* [relaxed] the caller knows by itself that the number was taken before. */
	return (weiri_load_relaxed(&numbers->taken) >> number & 1) != 0;
}

#endif
