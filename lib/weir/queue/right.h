/*
 * right.h - the right to be inside a critical section: a store of one item, which is one word.
 *
 * Algorithm. The word says whether an execution is inside, and which thread runs it, for dumps. To
 * enter is to CAS it from free to taken; to leave is to store free. A thread that does not get the
 * right waits for it as for an item of a queue (store_right.c, operation.c).
 *
 * Pairs
 *   P1  give -> take: what the execution did inside
 *   S   give, the look of take: seq_cst
 * Linearization: the CAS; the store; of a refusal, the load that finds the right taken, or the CAS
 *   that fails.
 * Why S. P1 makes each refusal correct alone. But one thread leaves section a and then tries b,
 *   another leaves b and tries a: with store buffering both could be refused, and no order of the
 *   four calls allows that. The argument is that of ring/algorithm.h. The CAS needs no place in S:
 *   the look before it has one. A give that is later than what the look read follows the look in S,
 *   and a look that reads the CAS follows the look before that CAS.
 * Progress: wait-free. No call waits for the thread that is inside.
 */
#ifndef WEIRI_QUEUE_RIGHT_H
#define WEIRI_QUEUE_RIGHT_H

#include "base/atomic.h"
#include "base/compiler.h"
#include "base/memory.h"

/* Of `holder`; anything else is the number of the thread that runs the execution. */
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

/* 1: the caller has the right. */
static WEIRI_ALWAYS_INLINE int weiri_right_take(struct weiri_right *right)
{
	/* [seq_cst S] pairs with weiri_right_give(); and it leaves the cache line to the holder. */
	uint32_t holder = weiri_load_seq_cst(&right->holder);

	/* [P1 acquire] pairs with weiri_right_give(). */
	if (holder != WEIRI_RIGHT_FREE || !weiri_cas_acquire(&right->holder, &holder, WEIRI_RIGHT_TAKEN))
		return 0;
	weiri_right_count_entry(right);
	return 1;
}

/* By the holder: `thread` runs its execution. */
static inline void weiri_right_held_by(struct weiri_right *right, uint32_t thread)
{
	weiri_store_relaxed(&right->holder, thread); /* [relaxed] only for dumps */
}

/* By the holder. */
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
