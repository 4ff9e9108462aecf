/*
 * ring.h - what the queues need of a ring beyond <weir/ring.h>.
 */
#ifndef WEIRI_RING_RING_H
#define WEIRI_RING_RING_H

#include "ring/layout.h"

static inline const struct weiri_ring_ops *weiri_ring_ops_of(const weir_ring *ring)
{
	if (ring->format == WEIR_RING_FORMAT_LTQ16)
		return &weiri_ltq16_ops;
	return ring->format == WEIR_RING_FORMAT_SPAN16 ? &weiri_span16_ops : &weiri_ltq64_ops;
}

/* weir_ring_try_enqueue() without the check for NULL. */
static WEIRI_ALWAYS_INLINE enum weir_status weiri_ring_enqueue_one(weir_ring *ring, uint64_t value)
{
	if (WEIRI_LIKELY(ring->format == WEIR_RING_FORMAT_LTQ16))
		return weiri_ltq16_enqueue(ring, value);
	return ring->format == WEIR_RING_FORMAT_SPAN16 ? weiri_span16_enqueue(ring, value)
	                                               : weiri_ltq64_enqueue(ring, value);
}

/*
 * weiri_ring_dequeue() for one value. Returns WEIR_OK, or why there is no value. Does not seal a
 * closed ring that is empty.
 */
static WEIRI_ALWAYS_INLINE enum weir_status weiri_ring_dequeue_one(weir_ring *ring, uint64_t *value,
                                                                   weiri_ring_before *before)
{
	if (WEIRI_LIKELY(ring->format == WEIR_RING_FORMAT_LTQ16))
		return weiri_ltq16_dequeue_behind(ring, value, before);
	return ring->format == WEIR_RING_FORMAT_SPAN16 ? weiri_span16_dequeue_behind(ring, value, before)
	                                               : weiri_ltq64_dequeue_behind(ring, value, before);
}

/*
 * As weir_ring_try_enqueue_many. `admitted`: the enqueue was admitted before the close, so it may
 * enqueue into a closed ring that is not sealed.
 */
size_t weiri_ring_enqueue(weir_ring *ring, const uint64_t values[], size_t count, bool admitted,
                          enum weir_status *status);
/*
 * As weir_ring_try_dequeue_many. `at_end` says what to do with a closed ring that is empty. *status
 * is WEIR_ABORTED if *before was not NULL after a look at a value, which stays inside, or at the
 * end. Every answer, a value or "empty", was true at a moment when *before was NULL.
 */
size_t weiri_ring_dequeue(weir_ring *ring, uint64_t values[], size_t count, enum weiri_ring_at_end at_end,
                          weiri_ring_before *before, enum weir_status *status);
/*
 * Takes a value that is drawn evenly from those inside, if more than draw->min_left are inside or the
 * ring is closed. Returns WEIR_OK, or the status of a dequeue that gets nothing. Not for SPAN16. A
 * ring from which values are drawn must not be dequeued from in any other way. (draw.h)
 */
static inline enum weir_status weiri_ring_draw(weir_ring *ring, const struct weiri_draw *draw, uint64_t *value)
{
	return WEIRI_LIKELY(ring->format == WEIR_RING_FORMAT_LTQ16) ? weiri_ltq16_draw(ring, draw, value)
	                                                            : weiri_ltq64_draw(ring, draw, value);
}

/* Returns true if at some moment of the call such a draw would have found a value. */
bool weiri_ring_can_draw(const weir_ring *ring, size_t min_left);

/*
 * Returns true if one of the last `count` values that went in has a ticket with none of the bits of
 * `mask`, which is one less than a power of two. The caller has enqueued these values. If other
 * producers enqueue too, a ticket may be missed or found twice.
 */
static inline bool weiri_ring_passed(const weir_ring *ring, uint64_t mask, size_t count)
{
	return (weiri_load_relaxed(&ring->tail_hint) & mask) < count; /* [relaxed] a hint */
}

/* How many values went in and came out: see layout.h. */
struct weiri_ring_counts weiri_ring_counts(const weir_ring *ring);

#endif
