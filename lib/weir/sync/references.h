/*
 * references.h - reference counts that stay 0 once they are 0.
 *
 * For objects that a look-up may meet after their last reference was given back. The look-up begins
 * without a reference, and may take one only while other references exist. The object's memory must
 * outlive the count, so look-ups run in a section (reclaim/section.h).
 *
 * Invariants
 *   R1  a count that is 0 stays 0: it rises only by a compare-and-swap from another value, and each
 *       holder gives its reference back once
 */
#ifndef WEIRI_SYNC_REFERENCES_H
#define WEIRI_SYNC_REFERENCES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/assert.h"
#include "base/atomic.h"

/* Takes one more reference. Returns false if the count is 0. Lock-free. */
static inline bool weiri_references_try_take(_Atomic(size_t) *references)
{
	/* [relaxed] an increment orders nothing: the caller acquired the object by other means. */
	size_t there = weiri_load_relaxed(references);

	while (there != 0) {
		if (weiri_cas_relaxed(references, &there, there + 1))
			return true;
	}
	return false;
}

/*
 * Gives one reference back. Returns true if it was the last one; the caller then sees what every
 * other holder did before it gave its own back.
 */
static inline bool weiri_references_give(_Atomic(size_t) *references)
{
	/* [acq_rel] pairs with itself. */
	size_t before = weiri_fetch_sub_acq_rel(references, (size_t)1);

	WEIR_ASSERT1(R1, before != 0);
	return before == 1;
}

#endif
