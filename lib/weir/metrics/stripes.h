/*
 * stripes.h - words to which many threads add, each thread in a copy of its own.
 *
 * Algorithm. There is an array of stripes. Each stripe has all the words, on cache lines of its
 * own. A thread's record has a number (reclaim/record.h), and no two live threads have the same.
 * The numbers stay below the bound on the number of records (reclaim/record.c), which is mostly the
 * largest number of threads that lived at once. Stripe k belongs to the thread whose record has
 * number k. That thread alone writes there, so it adds by a load and a store, with no locked
 * instruction. Threads with larger numbers, and threads that have no record for lack of memory,
 * share the last stripes and add by fetch_add. A reader adds the stripes up.
 * Source: this is the sloppy counter (Boyd-Wickizer et al., OSDI 2010) and Java's LongAdder. It
 * differs in the owner's plain add, which the number of the record makes possible.
 *
 * Invariants
 *   S1  a word of an own stripe is written only by the thread that has the record of its number at
 *       that time
 *   S2  the sum of a word over all stripes is the sum of what was added to it, except additions
 *       under way
 * Why S1 holds across threads: a record is given up with release and adopted with acquire (P2 of
 * reclaim/record.c). So the next owner's first load sees the last owner's last store, and builds on
 * it. The child of a fork has a copy of the stripes as they were.
 * Pairs: none of its own. All accesses are relaxed: they carry numbers, no data. The guarantees of
 * a read follow from coherence. Of each word it sees the last store that happened before it, or a
 * newer one. Of two reads in order, the second never sees an older value of a word than the first.
 * Progress: adding is wait-free (two accesses, or one fetch_add); reading is wait-free (one load
 * for each stripe).
 * Not signal-safe: an addition by a handler between the owner's load and store would be lost.
 * Memory: stride x (own + WEIRI_SHARED_STRIPES), all of it allocated at creation.
 * Checked: stress/model/check_metrics.c (owners, threads that follow one another, shared stripes,
 * readers beside them, complete), stress/scenario_metrics.c, tests/test_metrics.c.
 */
#ifndef WEIRI_METRICS_STRIPES_H
#define WEIRI_METRICS_STRIPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <weir/metrics.h>

#include "base/assert.h"
#include "base/atomic.h"
#include "base/compiler.h"
#include "reclaim/record.h"

#ifdef WEIRI_UNDER_MODEL
enum { WEIRI_SHARED_STRIPES = 1 }; /* two threads of a small scope contend there */
#else
enum { WEIRI_SHARED_STRIPES = 4 };
#endif

/* Head of one allocation; the stripes follow. */
struct weiri_stripes {
	WEIRI_ALIGNED_APART size_t stride; /* bytes from one stripe to the next */
	size_t size;                       /* of the allocation */
	uint32_t own;                      /* stripes of one thread each; shared stripes follow */
	weir_allocator allocator;
};

/*
 * Makes stripes of `words` words each, all zero. `threads` 0 means the default. Returns NULL and
 * sets *status on errors: WEIR_INVALID_ARGUMENT if there are too many threads;
 * WEIR_RESOURCE_EXHAUSTED.
 */
struct weiri_stripes *weiri_stripes_create(const char *what, size_t threads, size_t words,
                                           const weir_allocator *allocator, enum weir_status *status,
                                           weir_error *error);
/* Accepts NULL. */
void weiri_stripes_destroy(struct weiri_stripes *stripes);

/* The stripe to which a thread adds. */
struct weiri_stripe {
	_Atomic(uint64_t) *words;
	bool shared;
};

static inline _Atomic(uint64_t) *weiri_stripe_at(const struct weiri_stripes *stripes, uint32_t index)
{
	return (_Atomic(uint64_t) *)((uintptr_t)stripes + sizeof(*stripes) + index * stripes->stride);
}

static inline uint32_t weiri_stripes_count(const struct weiri_stripes *stripes)
{
	return stripes->own + WEIRI_SHARED_STRIPES;
}

static inline struct weiri_stripe weiri_stripe_mine(const struct weiri_stripes *stripes)
{
	const struct weiri_record *record = weiri_record_get();
	uint32_t number = record != NULL ? record->number : 0;

	if (WEIRI_LIKELY(record != NULL && number < stripes->own))
		return (struct weiri_stripe){weiri_stripe_at(stripes, number), false};
	return (struct weiri_stripe){weiri_stripe_at(stripes, stripes->own + number % WEIRI_SHARED_STRIPES), true};
}

/* For assertions: this thread has just written the word of its own stripe. */
void weiri_stripe_assert_own(const _Atomic(uint64_t) *word, uint64_t written);

static inline void weiri_stripes_add(const struct weiri_stripes *stripes, size_t word, uint64_t n)
{
	struct weiri_stripe mine = weiri_stripe_mine(stripes);

	if (WEIRI_LIKELY(!mine.shared)) {
		/* [relaxed] A number; it publishes nothing. No other thread writes it, by S1. */
		uint64_t sum = weiri_load_relaxed(&mine.words[word]) + n;

		weiri_store_relaxed(&mine.words[word], sum);
		WEIR_ASSERT_LOOK(weiri_stripe_assert_own(&mine.words[word], sum));
	} else {
		(void)weiri_fetch_add_relaxed(&mine.words[word], n); /* [relaxed] as above */
	}
}

/* Returns the sum of a word over all stripes. */
static inline uint64_t weiri_stripes_sum(const struct weiri_stripes *stripes, size_t word)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < weiri_stripes_count(stripes); i++)
		sum += weiri_load_relaxed(&weiri_stripe_at(stripes, i)[word]); /* [relaxed] as above */
	return sum;
}

#endif
