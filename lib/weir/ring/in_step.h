/*
 * in_step.h - the pause of a side of a ring that runs in step with the other.
 *
 * A consumer that polls takes each item as soon as it is there. Then the line of the slot moves from the
 * producer and back for each item, and both sides wait for it. The same holds for a producer that polls a
 * full ring. So a side that is refused at one ticket, and soon afterwards at a later one, pauses once
 * and looks again: meanwhile the other side fills or empties several lines. If the pause was in vain,
 * because the other side did nothing, or is the same thread, then this side makes none for REST_TICKS.
 * A side whose refusals are further apart than SOON_TICKS, because items come slowly, makes none.
 *
 * A word on the line of the side's hint says at which ticket the side was refused last, and when:
 * {low half of the ticket, time, 1 while threads are to pause}. It is advice: a wrong word costs at most
 * one pause, which ends whatever other threads do. The refusal itself is the look after the pause.
 */
#ifndef WEIRI_RING_IN_STEP_H
#define WEIRI_RING_IN_STEP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/compiler.h"
#if defined(WEIRI_UNDER_MODEL)
#include "ring/layout.h"
#endif

/* How far a call of one value that was refused has come. */
enum weiri_step {
	WEIRI_STEP_FIRST,  /* it was refused */
	WEIRI_STEP_PAUSED, /* it has paused, and looks again */
	WEIRI_STEP_OVER    /* it returns the refusal */
};

#if defined(__x86_64__) || defined(WEIRI_UNDER_MODEL)
enum {
	SOON_TICKS = 1 << 13, /* of the time stamp counter: 2 to 4 us */
	REST_TICKS = 1 << 18  /* 60 to 130 us */
};

/* A file that includes this one may define a longer pause before. */
#if !defined(WEIRI_STEP_PAUSES)
#define WEIRI_STEP_PAUSES 64
#endif

#if defined(WEIRI_UNDER_MODEL)
/* stress/model: what the clock says to this thread; 0: it makes no pauses, as most threads of most scopes. */
static inline bool weiri_makes_steps(void)
{
	return weiri_ring_step_time != 0;
}

static inline uint32_t weiri_step_time(void)
{
	return weiri_ring_step_time;
}
#else
static WEIRI_ALWAYS_INLINE bool weiri_makes_steps(void)
{
	return true;
}

static inline uint32_t weiri_step_time(void)
{
	return (uint32_t)__builtin_ia32_rdtsc() & ~UINT32_C(1);
}
#endif

/*
 * Called after a refusal at `number`. May pause, that many times. Returns WEIRI_STEP_PAUSED if the caller is
 * to look again.
 */
static WEIRI_COLD enum weiri_step weiri_step_at(uint64_t number, _Atomic(uint64_t) *refused, enum weiri_step before,
                                                int pauses)
{
	uint64_t ticket = number << 32, last;
	uint32_t now = weiri_step_time(), age;
	bool is_first;

	if (!weiri_makes_steps())
		return WEIRI_STEP_OVER;
	/* [relaxed] all: advice. */
	last = weiri_load_relaxed(refused);
	age = now - ((uint32_t)last & ~UINT32_C(1));
	is_first = (last ^ ticket) >> 32 != 0;
	if (before == WEIRI_STEP_PAUSED) {
		if (!is_first) /* in vain: a time to come */
			weiri_store_relaxed(refused, ticket | (uint32_t)(now + REST_TICKS));
		return WEIRI_STEP_OVER;
	}
	if (age > UINT32_MAX - REST_TICKS) /* the time is to come */
		return WEIRI_STEP_OVER;
	if (is_first)
		weiri_store_relaxed(refused, ticket | now | (age < SOON_TICKS));
	if (age >= SOON_TICKS || (!is_first && (last & 1) == 0))
		return WEIRI_STEP_OVER;
	for (; pauses > 0; pauses--)
		weiri_pause();
	if (is_first)
		weiri_store_relaxed(refused, ticket | weiri_step_time()); /* [relaxed] advice */
	return WEIRI_STEP_PAUSED;
}

/* The same after a refusal near the hint. */
static inline enum weiri_step weiri_step(const _Atomic(uint64_t) *hint, _Atomic(uint64_t) *refused,
                                         enum weiri_step before)
{
	if (!weiri_makes_steps())
		return WEIRI_STEP_OVER;
	return weiri_step_at(weiri_load_relaxed(hint), refused, before, WEIRI_STEP_PAUSES); /* [relaxed] advice */
}
#else
/* There is no clock that costs as little. */
static inline enum weiri_step weiri_step_at(uint64_t number, _Atomic(uint64_t) *refused, enum weiri_step before,
                                            int pauses)
{
	(void)number, (void)refused, (void)before, (void)pauses;
	return WEIRI_STEP_OVER;
}

static inline enum weiri_step weiri_step(const _Atomic(uint64_t) *hint, _Atomic(uint64_t) *refused,
                                         enum weiri_step before)
{
	(void)hint, (void)refused, (void)before;
	return WEIRI_STEP_OVER;
}
#endif

#endif
