/*
 * references.h - counts of references that, once 0, stay so.
 *
 * For objects that a look-up may meet after their last reference went: it has none to begin with, and may take one only while there are
 * others. Whose memory must outlive the count: who looks does so in a section (reclaim/section.h).
 */
#ifndef WEIRI_SYNC_REFERENCES_H
#define WEIRI_SYNC_REFERENCES_H

#include <stddef.h>

#include "base/atomic.h"

/* Takes one more; 0: there is none any more. Lock-free. */
static inline int weiri_references_try_take(_Atomic(size_t) *references)
{
	/* [relaxed] a count that rises orders nothing: the object came by other ways. */
	size_t there = weiri_load_relaxed(references);

	while (there != 0) {
		if (weiri_cas_relaxed(references, &there, there + 1))
			return 1;
	}
	return 0;
}

/* Gives one back. 1: it was the last, and the caller sees what all who gave theirs did before. */
static inline int weiri_references_give(_Atomic(size_t) *references)
{
	/* [acq_rel] pairs with itself. */
	return weiri_fetch_sub_acq_rel(references, (size_t)1) == 1;
}

#endif
