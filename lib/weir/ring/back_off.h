/*
 * back_off.h - the pause of an operation of a ring that another has overtaken.
 *
 * Threads that try again at once overtake each other all the time, and each attempt takes the lines of
 * the slot and of the hint from the thread that is about to use them: on 16 processors an operation
 * then takes several misses, whoever wins. While the others pause, one thread makes hundreds of operations
 * in its own cache. So a pause is longer than an operation by far, and doubles while a call is overtaken
 * again. It ends whatever other threads do: no thread waits for another, and a stopped thread delays
 * nobody. See docs/profiling.md for what was measured.
 *
 * Source. Agarwal and Cherian, "Adaptive Backoff Synchronization Techniques", ISCA 1989; Dice, Hendler,
 * Mirsky, "Lightweight Contention Management for Efficient Compare-and-Swap Operations", Euro-Par 2013.
 */
#ifndef WEIRI_RING_BACK_OFF_H
#define WEIRI_RING_BACK_OFF_H

#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/compiler.h"
#if defined(WEIRI_UNDER_MODEL)
#include "ring/layout.h"
#endif

/* A file that includes this one may define a longer first pause before. */
#if defined(WEIRI_UNDER_MODEL)
#undef WEIRI_FIRST_PAUSES
#define WEIRI_FIRST_PAUSES 0
#elif !defined(WEIRI_FIRST_PAUSES)
#define WEIRI_FIRST_PAUSES 32 /* 0.8 us on an AMD EPYC (Zen 4), 0.65 us on an Intel Xeon (Emerald Rapids) */
#endif

enum { WEIRI_MOST_DOUBLINGS = 4 };

/*
 * What counts of a hint. In shared memory any process may have written it: without its upper bits no
 * ticket has the state of a tombstone (shm/frames.c, X4). A hint that lost them names an earlier ticket,
 * below which all are done as well.
 */
#define WEIRI_HINT_BITS ((UINT64_C(1) << 61) - 1)

/* How an operation fares against others. {0}: it has just begun. */
struct weiri_race {
	unsigned overtaken; /* how often another operation came first */
	bool goes_on;       /* true: at a ticket that is done it goes on at once */
};

#if defined(WEIRI_UNDER_MODEL)
/*
 * stress/model: a thread of a scope that says so reads the hint again. Others walk on, as from an old
 * hint: if all did so in all scopes, several would be too large for the short form.
 */
static inline bool weiri_reads_hint_again(void)
{
	return weiri_ring_hint_again;
}
#else
static WEIRI_ALWAYS_INLINE bool weiri_reads_hint_again(void)
{
	return true;
}
#endif

/* Pauses, because another operation came first. */
static WEIRI_COLD void weiri_back_off(struct weiri_race *race)
{
	unsigned doublings = race->overtaken < WEIRI_MOST_DOUBLINGS ? race->overtaken : WEIRI_MOST_DOUBLINGS;

#if !defined(WEIRI_UNDER_MODEL) /* there it would only keep states apart */
	race->overtaken++;
#endif
	for (unsigned pauses = (unsigned)WEIRI_FIRST_PAUSES << doublings; pauses > 0; pauses--)
		weiri_pause();
}

/*
 * Called by a walk that another operation has overtaken. The tickets below `ticket` are done, and so
 * are those below the hint. Pauses, and returns the later of the two, at which the walk goes on. If
 * that is `ticket`, then nobody was busy there during the pause, and the hint at which the walk began was
 * old: the walk then makes no more pauses at tickets that are done.
 */
static WEIRI_COLD uint64_t weiri_step_aside(const _Atomic(uint64_t) *hint, uint64_t ticket, struct weiri_race *race)
{
	uint64_t hinted;

	weiri_back_off(race);
	/* [P4 acquire] pairs with the store of the hint. */
	hinted = weiri_reads_hint_again() ? weiri_load_acquire(hint) & WEIRI_HINT_BITS : ticket;
	if (hinted > ticket)
		return hinted;
	race->goes_on = true;
	return ticket;
}

#endif
