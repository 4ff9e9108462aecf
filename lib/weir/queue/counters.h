/*
 * counters.h - what a queue counts, for weir_queue_get_stats().
 *
 * Calls that neither wait nor wake a thread count nothing. The stores themselves know the numbers
 * of items that were enqueued and dequeued (from a ring's tickets, a shuffle queue's draws, a
 * priority queue's nodes). Everything else is counted where a call is slow in any case: it waits,
 * completes another operation, or wakes a thread.
 * The high-water mark is sampled: at each `level_step`th item that is enqueued, and whenever an
 * enqueue finds no room. If every enqueue took a sample, it would read the cache line that the
 * dequeues write. That costs more than the enqueue itself.
 */
#ifndef WEIRI_QUEUE_COUNTERS_H
#define WEIRI_QUEUE_COUNTERS_H

#include <stddef.h>
#include <stdint.h>

#include "base/atomic.h"

enum weiri_side { WEIRI_SIDE_ENQUEUE = 0, WEIRI_SIDE_DEQUEUE = 1, WEIRI_SIDES = 2 };

struct weiri_queue_counters {
	_Atomic(uint64_t) high_water;
	_Atomic(uint64_t) waits[WEIRI_SIDES];
	_Atomic(uint64_t) blocked_ns[WEIRI_SIDES];
	_Atomic(uint64_t) wakes;
	_Atomic(uint64_t) retries;
};

static inline void weiri_queue_counter_add(_Atomic(uint64_t) *counter, uint64_t more)
{
#if defined(WEIRI_UNDER_MODEL) /* stress/model: counts decide nothing, and each multiplies the executions */
	(void)counter, (void)more;
#else
	(void)weiri_fetch_add_relaxed(counter, more); /* [relaxed] statistics, which publish no data. */
#endif
}

static inline void weiri_queue_counter_raise(_Atomic(uint64_t) *mark, uint64_t level)
{
	/* [relaxed] as above. */
	uint64_t seen = weiri_load_relaxed(mark);

	while (seen < level && !weiri_cas_relaxed(mark, &seen, level))
		;
}

/*
 * Returns the distance between samples of the level: a power of two. A small queue is sampled four
 * times a lap.
 */
static inline size_t weiri_level_step(size_t capacity)
{
	size_t step = 1;

	while (step < 64 && step * 8 <= capacity)
		step *= 2;
	return step;
}

#endif
