/*
 * countdown.h - joining parallel work: the last to arrive, the first to speak.
 *
 * weiri_countdown: each of n parties arrives once; exactly one of them learns that it was the last, and sees what all the
 * others wrote before they arrived. Also a reference count: join() adds a party.
 * weiri_latch: of any number of claimants exactly one wins; it writes its data and then sets the latch for all to read.
 *
 * Pairs
 *   P1  arrive -> the last arrive: everything a party wrote before it arrived
 *   P2  set -> is_set: what the claimant wrote between claim and set
 * Progress: every call is wait-free (one atomic instruction).
 */
#ifndef WEIRI_COUNTDOWN_H
#define WEIRI_COUNTDOWN_H

#include <stdint.h>

#include "base/atomic.h"

struct weiri_countdown {
	_Atomic(uint32_t) left;
};

static inline void weiri_countdown_init(struct weiri_countdown *countdown, uint32_t parties)
{
	/* [relaxed] nobody else has it yet; whoever hands it over orders it. */
	weiri_store_relaxed(&countdown->left, parties);
}

/* Adds a party. Only by a party that has not arrived, so that the count cannot be zero. */
static inline void weiri_countdown_join(struct weiri_countdown *countdown)
{
	/* [relaxed] publishes nothing: the newcomer's writes are ordered by its own arrive. */
	(void)weiri_fetch_add_relaxed(&countdown->left, 1);
}

/* Arrives for `parties` of them (>= 1). Returns 1 for the call that brings the count to zero, else 0. */
static inline int weiri_countdown_arrive_many(struct weiri_countdown *countdown, uint32_t parties)
{
	/* [P1 acq_rel] release what we wrote; the last one acquires what all wrote, through the chain of subtractions. */
	return weiri_fetch_sub_acq_rel(&countdown->left, parties) == parties;
}

static inline int weiri_countdown_arrive(struct weiri_countdown *countdown)
{
	return weiri_countdown_arrive_many(countdown, 1);
}

/* The parties left, at some moment: a hint, unless the caller knows that nobody arrives or joins. */
static inline uint32_t weiri_countdown_left(struct weiri_countdown *countdown)
{
	/* [relaxed] a hint. */
	return weiri_load_relaxed(&countdown->left);
}

enum weiri_latch_state { WEIRI_LATCH_OPEN = 0, WEIRI_LATCH_CLAIMED = 1, WEIRI_LATCH_SET = 2 };

struct weiri_latch {
	_Atomic(uint32_t) state; /* open -> claimed -> set, or open -> set; never back */
};

static inline void weiri_latch_init(struct weiri_latch *latch)
{
	/* [relaxed] nobody else has it yet. */
	weiri_store_relaxed(&latch->state, WEIRI_LATCH_OPEN);
}

/* 1 for the first caller, who must go on to set the latch; 0 for all others. */
static inline int weiri_latch_claim(struct weiri_latch *latch)
{
	uint32_t open = WEIRI_LATCH_OPEN;

	/* [relaxed] winning carries no data; P2 orders the winner's. */
	return weiri_cas_relaxed(&latch->state, &open, WEIRI_LATCH_CLAIMED);
}

/* By the winner of claim; or by anybody, if the latch is one that nobody claims. */
static inline void weiri_latch_set(struct weiri_latch *latch)
{
	/* [P2 release] pairs with weiri_latch_is_set(). */
	weiri_store_release(&latch->state, WEIRI_LATCH_SET);
}

static inline int weiri_latch_is_set(const struct weiri_latch *latch)
{
	/* [P2 acquire] pairs with weiri_latch_set(). */
	return weiri_load_acquire(&latch->state) == WEIRI_LATCH_SET;
}

/*
 * Numbers that are handed out once each, from 0. They grow along happens-before: a number taken after another thread's
 * number became known is larger.
 */
struct weiri_serial {
	_Atomic(uint64_t) next;
};

static inline void weiri_serial_init(struct weiri_serial *serial)
{
	/* [relaxed] nobody else has it yet. */
	weiri_store_relaxed(&serial->next, 0);
}

static inline uint64_t weiri_serial_take(struct weiri_serial *serial)
{
	/* [relaxed] uniqueness and coherence are all that is asked. */
	return weiri_fetch_add_relaxed(&serial->next, 1);
}

#endif
