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

/* weir_ring_try_enqueue() without the check for NULL. */
static WEIRI_ALWAYS_INLINE enum weir_status weiri_ring_enqueue_one(weir_ring *ring, uint64_t value)
{
	return WEIRI_LIKELY(ring->format == WEIR_RING_FORMAT_LTQ16) ? weiri_ltq16_enqueue(ring, value)
	                                                            : weiri_ltq64_enqueue(ring, value);
}

/*
 * weiri_ring_dequeue() of one value: WEIR_OK, or why there is none. A closed ring that is empty is
 * left unsealed.
 */
static WEIRI_ALWAYS_INLINE enum weir_status weiri_ring_dequeue_one(weir_ring *ring, uint64_t *value,
                                                                   weiri_ring_before *before)
{
	return WEIRI_LIKELY(ring->format == WEIR_RING_FORMAT_LTQ16) ? weiri_ltq16_dequeue_behind(ring, value, before)
	                                                            : weiri_ltq64_dequeue_behind(ring, value, before);
}

/*
 * As weir_ring_try_enqueue_many; `admitted`: before the close, so also into a closed ring that is
 * not sealed.
 */
size_t weiri_ring_enqueue(weir_ring *ring, const uint64_t values[], size_t count, int admitted,
                          enum weir_status *status);
/*
 * As weir_ring_try_dequeue_many; `at_end` says what to do with a closed ring that is empty.
 * WEIR_ABORTED: *before was not NULL after a look at a value, which stays inside, or at the end.
 * Each value that is returned, and "empty", held at a moment when *before was NULL.
 */
size_t weiri_ring_dequeue(weir_ring *ring, uint64_t values[], size_t count, enum weiri_ring_at_end at_end,
                          weiri_ring_before *before, enum weir_status *status);
/*
 * 1: among the last `count` values that went in is one whose ticket has none of the bits of `mask`,
 * which is one less than a power of two. For the caller that enqueued them; beside other producers
 * a ticket may be missed, or found twice.
 */
static inline int weiri_ring_passed(const weir_ring *ring, uint64_t mask, size_t count)
{
	return (weiri_load_relaxed(&ring->tail_hint) & mask) < count; /* [relaxed] a hint */
}

/* How many values went in and came out: see layout.h. */
struct weiri_ring_counts weiri_ring_counts(const weir_ring *ring);

#endif
