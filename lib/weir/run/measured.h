/*
 * measured.h - about how long something takes, learned from its runs.
 *
 * Any threads report how long a run took. A longer run counts at once, a shorter one by an eighth, so
 * that something which is long now and then is taken for long. Two reports at the same time may lose
 * one, which only slows the learning down.
 *
 * Progress: every call is wait-free.
 * Checked: tests/test_countdown.c.
 */
#ifndef WEIRI_MEASURED_H
#define WEIRI_MEASURED_H

#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"

enum { WEIRI_MEASURED_ENOUGH = 8 }; /* runs before the answer counts */

struct weiri_measured {
	_Atomic(uint64_t) state; /* bits 0-31: ns; bits 32-63: runs so far, at most ENOUGH */
};

static inline void weiri_measured_add(struct weiri_measured *measured, uint64_t ns)
{
	/* [relaxed] an estimate: it publishes nothing, and a lost report does no harm. */
	uint64_t state = weiri_load_relaxed(&measured->state);
	uint64_t runs = state >> 32, known = state & UINT32_MAX;

	if (ns > UINT32_MAX)
		ns = UINT32_MAX;
	known = ns >= known ? ns : known - (known - ns + 7) / 8;
	runs += runs < WEIRI_MEASURED_ENOUGH;
	/* [relaxed] as above. */
	weiri_store_relaxed(&measured->state, runs << 32 | known);
}

/* Returns about how many ns a run takes; UINT64_MAX if too few runs were reported. */
static inline uint64_t weiri_measured_ns(const struct weiri_measured *measured)
{
	/* [relaxed] an estimate. */
	uint64_t state = weiri_load_relaxed(&measured->state);

	return state >> 32 >= WEIRI_MEASURED_ENOUGH ? state & UINT32_MAX : UINT64_MAX;
}

#endif
