/*
 * yield.h - yields of a thread that is about to wait, which together cost it less than 1 % of its time.
 *
 * A yield lets another thread run that may be about to end the wait. It takes less than a microsecond
 * where no thread wants the processor. Beside a thread that computes it takes a time slice, and under
 * SCHED_DEADLINE the rest of the period, while nobody can wake the thread. So after a long yield the thread
 * waits without a yield for REST times its length.
 */
#ifndef WEIRI_YIELD_H
#define WEIRI_YIELD_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

#include <weir/time.h>

#include "reclaim/own.h"

/* A yield that took longer gave the processor to a thread that has nothing to do with the wait. */
#define WEIRI_LONG_YIELD_NS UINT64_C(200000)
/* What counts of a yield at most: the thread may have been stopped. */
#define WEIRI_LONGEST_YIELD_NS UINT64_C(100000000)
enum { WEIRI_YIELD_REST = 128 };

/* Returns true if the thread may yield now. */
static inline bool weiri_may_yield(const struct weiri_own *own)
{
	return own->yields_from_ns == 0 || weir_now_ns() >= own->yields_from_ns;
}

/* Yields. Returns how many nanoseconds it took. */
static inline uint64_t weiri_yield(struct weiri_own *own)
{
	uint64_t before = weir_now_ns(), took;

	(void)sched_yield();
	took = weir_now_ns() - before;
	if (took > WEIRI_LONG_YIELD_NS)
		own->yields_from_ns =
			before + (took < WEIRI_LONGEST_YIELD_NS ? took : WEIRI_LONGEST_YIELD_NS) * (1 + WEIRI_YIELD_REST);
	return took;
}

#endif
