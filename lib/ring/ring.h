/*
 * ring.h - what the queues need of a ring beyond its public face.
 */
#ifndef WEIRI_RING_RING_H
#define WEIRI_RING_RING_H

#include "ring/layout.h"

static inline const struct weiri_ring_ops *weiri_ring_ops_of(const weir_ring *ring)
{
	return ring->format == WEIR_RING_FORMAT_LTQ16 ? &weiri_ltq16_ops : &weiri_ltq64_ops;
}

/* As weir_ring_try_enqueue, of a ring that there is. */
static WEIRI_ALWAYS_INLINE enum weir_status weiri_ring_enqueue_one(weir_ring *ring, uint64_t value)
{
	return WEIRI_LIKELY(ring->format == WEIR_RING_FORMAT_LTQ16) ? weiri_ltq16_enqueue(ring, value)
	                                                            : weiri_ltq64_enqueue(ring, value);
}

/* As weir_ring_try_enqueue_many, also into a closed ring that is not sealed: for enqueues admitted before the close. */
size_t weiri_ring_enqueue_admitted(weir_ring *ring, const uint64_t values[], size_t count, enum weir_status *status);
/*
 * As weir_ring_try_dequeue_many with a say in what an empty closed ring means. WEIR_ABORTED: *before was not NULL when it looked at a value,
 * which it left, or at the end. A value that comes out, or "empty", was there while *before was NULL.
 */
size_t weiri_ring_dequeue(weir_ring *ring, uint64_t values[], size_t count, enum weiri_ring_at_end at_end,
                          weiri_ring_before *before, enum weir_status *status);
/*
 * 1: among the last `count` values that went in is one whose ticket has none of the bits of `mask`, which is one less than a power of two. For
 * who put them in; beside other producers a ticket may be overlooked, or found twice.
 */
static inline int weiri_ring_passed(const weir_ring *ring, uint64_t mask, size_t count)
{
	return (weiri_load_relaxed(&ring->tail_hint) & mask) < count; /* [relaxed] a hint */
}

/* How many values went in and came out: see layout.h. */
struct weiri_ring_counts weiri_ring_counts(const weir_ring *ring);

#endif
