/*
 * countdown.h - for parallel work: which party arrived last, and which claimant was first.
 *
 * weiri_countdown: each of n parties arrives once; exactly one of them learns that it was the last,
 * and sees what all other parties wrote before they arrived. It serves as a reference count too:
 * join() adds a party.
 * weiri_latch: of any number of claimants exactly one wins. It writes its data and then sets the
 * latch, so that all threads can read the data.
 *
 * Invariants
 *   C1  no more parties arrive than were announced or have joined
 * Pairs
 *   P1  arrive -> the last arrive: everything a party wrote before it arrived
 *   P2  set -> is_set: what the claimant wrote between claim and set
 * Progress: every call is wait-free (at most two atomic instructions).
 */
#ifndef WEIRI_COUNTDOWN_H
#define WEIRI_COUNTDOWN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/assert.h"
#include "base/atomic.h"

struct weiri_countdown {
	_Atomic(uint32_t) left;
};

static inline void weiri_countdown_init(struct weiri_countdown *countdown, uint32_t parties)
{
	/* [relaxed] not shared yet; the handover to other threads orders it. */
	weiri_store_relaxed(&countdown->left, parties);
}

/* Adds a party. Only a party that has not arrived may call it, so that the count is not zero. */
static inline void weiri_countdown_join(struct weiri_countdown *countdown)
{
	/* [relaxed] publishes nothing: the arrive of the new party orders its writes. */
	(void)weiri_fetch_add_relaxed(&countdown->left, 1);
}

/*
 * Adds a party whose caller may be none. Returns false if the count is zero: all have arrived. Lock-free:
 * its CAS fails only after another join or arrival.
 */
static inline bool weiri_countdown_try_join(struct weiri_countdown *countdown)
{
	/* [relaxed] as in join; a count that is zero stays zero. */
	uint32_t left = weiri_load_relaxed(&countdown->left);

	while (left != 0) {
		if (weiri_cas_relaxed(&countdown->left, &left, left + 1))
			return true;
	}
	return false;
}

/*
 * Arrives for `parties` parties (>= 1). Returns true if this call makes the count zero, else false.
 */
static inline bool weiri_countdown_arrive_many(struct weiri_countdown *countdown, uint32_t parties)
{
	/*
	 * [P1 acq_rel] releases the caller's writes; the last arrival acquires the writes of all
	 * parties, through the chain of subtractions.
	 */
	uint32_t before = weiri_fetch_sub_acq_rel(&countdown->left, parties);

	WEIR_ASSERT1(C1, before >= parties);
	return before == parties;
}

/* Arrives for one party. Returns what weiri_countdown_arrive_many() returns. */
static inline bool weiri_countdown_arrive(struct weiri_countdown *countdown)
{
	return weiri_countdown_arrive_many(countdown, 1);
}

/*
 * As weiri_countdown_arrive_many(), for a countdown that is not used again once it has reached zero:
 * the last call writes nothing. A party that has arrived must not join.
 */
static inline bool weiri_countdown_finish(struct weiri_countdown *countdown, uint32_t parties)
{
	/*
	 * [P1 acquire] If these parties are the only ones left, no other party can arrive or join. The
	 * load acquires the writes of the others, through the chain of subtractions.
	 */
	return weiri_load_acquire(&countdown->left) == parties || weiri_countdown_arrive_many(countdown, parties);
}

/*
 * Returns the number of parties left at some moment: a hint, unless the caller knows that no party
 * arrives or joins.
 */
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
	/* [relaxed] not shared yet. */
	weiri_store_relaxed(&latch->state, WEIRI_LATCH_OPEN);
}

/* Returns true to the first caller, which must then set the latch; false to all other callers. */
static inline bool weiri_latch_claim(struct weiri_latch *latch)
{
	uint32_t open = WEIRI_LATCH_OPEN;

	/* [relaxed] winning carries no data; P2 orders the winner's data. */
	return weiri_cas_relaxed(&latch->state, &open, WEIRI_LATCH_CLAIMED);
}

/* Called by the winner of the claim; or by any thread, if the latch is never claimed. */
static inline void weiri_latch_set(struct weiri_latch *latch)
{
	/* [P2 release] pairs with weiri_latch_is_set(). */
	weiri_store_release(&latch->state, WEIRI_LATCH_SET);
}

static inline bool weiri_latch_is_set(const struct weiri_latch *latch)
{
	/* [P2 acquire] pairs with weiri_latch_set(). */
	return weiri_load_acquire(&latch->state) == WEIRI_LATCH_SET;
}

/* Returns true if a caller has won the claim, or the latch is set. */
static inline bool weiri_latch_is_claimed(const struct weiri_latch *latch)
{
	/* [relaxed] a claim carries no data. */
	return weiri_load_relaxed(&latch->state) != WEIRI_LATCH_OPEN;
}

/*
 * Hands out each number once, from 0. A number is larger than every number that the caller knew, by
 * happens-before, when it took its own.
 */
struct weiri_serial {
	_Atomic(uint64_t) next;
};

static inline void weiri_serial_init(struct weiri_serial *serial)
{
	/* [relaxed] not shared yet. */
	weiri_store_relaxed(&serial->next, 0);
}

static inline uint64_t weiri_serial_take(struct weiri_serial *serial)
{
	/* [relaxed] only uniqueness and coherence are needed. */
	return weiri_fetch_add_relaxed(&serial->next, 1);
}

#endif
