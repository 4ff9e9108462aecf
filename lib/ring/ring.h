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

/* As weir_ring_try_enqueue_many, also into a closed ring that is not sealed: for enqueues admitted before the close. */
size_t weiri_ring_enqueue_admitted(weir_ring *ring, const uint64_t values[], size_t count, enum weir_status *status);
/*
 * As weir_ring_try_dequeue_many with a say in what an empty closed ring means. WEIR_ABORTED: *before was not NULL when it looked at a value,
 * which it left, or at the end. A value that comes out, or "empty", was there while *before was NULL.
 */
size_t weiri_ring_dequeue(weir_ring *ring, uint64_t values[], size_t count, enum weiri_ring_at_end at_end,
                          weiri_ring_before *before, enum weir_status *status);

#endif
