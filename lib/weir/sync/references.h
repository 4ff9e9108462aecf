/*
 * references.h - reference counts that stay 0 once they are 0.
 *
 * For objects that a look-up may meet after their last reference was given back: the look-up has
 * none to begin with, and may take one only while others exist. The object's memory must outlive
 * the count, so look-ups run in a section (reclaim/section.h).
 *
 * Invariants
 *   R1  a count that is 0 stays 0: it rises by a compare-and-swap from another value only, and each
 *       holder gives back once
 */
#ifndef WEIRI_SYNC_REFERENCES_H
#define WEIRI_SYNC_REFERENCES_H

#include <stddef.h>

#include "base/assert.h"
#include "base/atomic.h"

/* Takes one more reference. 0: the count is 0. Lock-free. */
static inline int weiri_references_try_take(_Atomic(size_t) *references)
{
	/* [relaxed] an increment orders nothing: the caller acquired the object by other means. */
	size_t there = weiri_load_relaxed(references);

	while (there != 0) {
		if (weiri_cas_relaxed(references, &there, there + 1))
			return 1;
	}
	return 0;
}

/*
 * Gives one reference back. 1: it was the last, and the caller sees what every other holder did
 * before giving its own back.
 */
static inline int weiri_references_give(_Atomic(size_t) *references)
{
	/* [acq_rel] pairs with itself. */
	size_t before = weiri_fetch_sub_acq_rel(references, (size_t)1);

	WEIR_ASSERT1(R1, before != 0);
	return before == 1;
}

#endif
