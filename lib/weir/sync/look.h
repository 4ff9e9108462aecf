/*
 * look.h - looks of a thread for something that is taken, before it waits for it.
 *
 * What is given to a thread that waits is nobody's until that thread runs: some 10 us, in which a short
 * holder could have come and gone a hundred times; and meanwhile others go to sleep, too. So a thread
 * first looks for a while. The pauses between the looks grow (Anderson, "The Performance of Spin Lock
 * Alternatives for Shared-Memory Multiprocessors", IEEE TPDS 1990), and leave the cache line to the
 * holder. The looks end if another thread wants the processor, which may be the holder.
 *
 *     weiri_looks_begin(&looks, own, longest_ns, deadline_ns, before_yield);
 *     while (weiri_looks_go_on(&looks))
 *         if (try to take it) ...
 */
#ifndef WEIRI_LOOK_H
#define WEIRI_LOOK_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/time.h>

#include "base/atomic.h"
#include "base/compiler.h"
#include "sync/yield.h"

enum { WEIRI_LOOK_FIRST_PAUSES = 64, WEIRI_LOOK_MOST_PAUSES = 256 };
/* A yield that took longer ran another thread. */
#define WEIRI_SHORT_YIELD_NS UINT64_C(2000)

struct weiri_looks {
	struct weiri_own *own;
	uint64_t end_ns;
	unsigned pauses, before_yield, count;
};

#if defined(WEIRI_UNDER_MODEL)
/*
 * stress/model: time does not pass there. A thread of a scope that says so looks once, others not at all: each
 * look multiplies the executions.
 */
extern WEIRI_TLS bool weiri_looks_once;

static inline bool weiri_may_look(void)
{
	return weiri_looks_once;
}

static inline void weiri_looks_begin(struct weiri_looks *looks, struct weiri_own *own, uint64_t longest_ns,
                                     uint64_t deadline_ns, unsigned before_yield)
{
	(void)longest_ns, (void)deadline_ns, (void)before_yield;
	*looks = (struct weiri_looks){.own = own};
}

static inline bool weiri_looks_go_on(struct weiri_looks *looks)
{
	return weiri_may_look() && looks->count++ == 0;
}

static inline bool weiri_looks_in_vain(const struct weiri_looks *looks)
{
	(void)looks;
	return true;
}
#else
static WEIRI_ALWAYS_INLINE bool weiri_may_look(void)
{
	return true;
}

/*
 * They end after longest_ns, or at deadline_ns. After `before_yield` looks the thread asks once, by a
 * yield, whether another one wants the processor.
 */
static inline void weiri_looks_begin(struct weiri_looks *looks, struct weiri_own *own, uint64_t longest_ns,
                                     uint64_t deadline_ns, unsigned before_yield)
{
	uint64_t end = weir_now_ns() + longest_ns;

	*looks = (struct weiri_looks){own, end < deadline_ns ? end : deadline_ns, WEIRI_LOOK_FIRST_PAUSES, before_yield, 0};
}

/* Pauses, and returns true, or returns false at once if there is to be no further look. */
static inline bool weiri_looks_go_on(struct weiri_looks *looks)
{
	if (weir_now_ns() >= looks->end_ns)
		return false;
	/* Where a yield took long not long ago, the thread does not ask again (yield.h). */
	if (looks->count++ == looks->before_yield && weiri_may_yield(looks->own) &&
	    weiri_yield(looks->own) > WEIRI_SHORT_YIELD_NS)
		return false;
	for (unsigned i = 0; i < looks->pauses; i++)
		weiri_pause();
	if (looks->pauses < WEIRI_LOOK_MOST_PAUSES)
		looks->pauses *= 2;
	return true;
}

/* Returns true if the looks ended because their time was over. */
static inline bool weiri_looks_in_vain(const struct weiri_looks *looks)
{
	return weir_now_ns() >= looks->end_ns;
}
#endif

#endif
