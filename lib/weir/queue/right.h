/*
 * right.h - the right to be inside a critical section: a store of one item, which is one word.
 *
 * Algorithm. The word says whether an execution is inside, and, for dumps, which thread runs it. An
 * execution enters by a CAS of the word from free to taken, and leaves by a store of free. A thread
 * that does not get the right waits for it as for an item of a queue (store_right.c, operation.c).
 *
 * Pairs
 *   P1  give -> take: what the execution did inside
 *   S   the store of give and the first load of take are seq_cst
 * Linearization: take at its CAS, give at its store, a refusal at the load that finds the right
 *   taken or at the CAS that fails.
 * Why S. P1 makes each single refusal correct. But suppose that one thread leaves section a and
 *   then tries b, while another leaves b and then tries a. With store buffering both tries could be
 *   refused, and no order of the four calls allows that. The argument is that of ring/algorithm.h.
 *   The CAS needs no place in S, because the load before it has one. A give that is later than the
 *   value that this load read follows the load in S. A load that reads the value of a CAS follows
 *   the load before that CAS.
 * Progress: wait-free. No call waits for the thread that is inside.
 */
#ifndef WEIRI_QUEUE_RIGHT_H
#define WEIRI_QUEUE_RIGHT_H

#include "base/atomic.h"
#include "base/compiler.h"
#include "base/memory.h"

/* Values of `holder`. Any other value is the number of the thread that runs the execution. */
#define WEIRI_RIGHT_FREE UINT32_C(0)
#define WEIRI_RIGHT_TAKEN UINT32_MAX /* by an execution that no thread runs now */

struct weiri_right {
	WEIRI_ALIGNED_APART _Atomic(uint32_t) holder;
	_Atomic(uint64_t) entered; /* how often; only the holder writes it */
};

static inline void weiri_right_count_entry(struct weiri_right *right)
{
#if !defined(WEIRI_UNDER_MODEL) /* stress/model: see counters.h */
	/* [relaxed] statistics, which publish no data. */
	weiri_store_relaxed(&right->entered, weiri_load_relaxed(&right->entered) + 1);
#else
	(void)right;
#endif
}

/* Returns true if the caller now has the right; false: it is taken. */
static WEIRI_ALWAYS_INLINE bool weiri_right_take(struct weiri_right *right)
{
	/*
	 * [seq_cst S] pairs with weiri_right_give(). If the right is taken, this load leaves the cache
	 * line to the holder.
	 */
	uint32_t holder = weiri_load_seq_cst(&right->holder);

	/* [P1 acquire] pairs with weiri_right_give(). */
	if (holder != WEIRI_RIGHT_FREE || !weiri_cas_acquire(&right->holder, &holder, WEIRI_RIGHT_TAKEN))
		return false;
	weiri_right_count_entry(right);
	return true;
}

/* Called by the holder: `thread` runs its execution. */
static inline void weiri_right_held_by(struct weiri_right *right, uint32_t thread)
{
	weiri_store_relaxed(&right->holder, thread); /* [relaxed] only for dumps */
}

/* Called by the holder. */
static WEIRI_ALWAYS_INLINE void weiri_right_give(struct weiri_right *right)
{
	/* [seq_cst S; P1 release] pairs with weiri_right_take(). */
	weiri_store_seq_cst(&right->holder, WEIRI_RIGHT_FREE);
}

static inline uint32_t weiri_right_holder(const struct weiri_right *right)
{
	return weiri_load_relaxed(&right->holder); /* [relaxed] a look */
}

#endif
