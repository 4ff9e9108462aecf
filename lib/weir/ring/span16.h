/*
 * span16.h - the words of the span ring, for span16.c and for the assertions.
 */
#ifndef WEIRI_RING_SPAN16_H
#define WEIRI_RING_SPAN16_H

#include "ring/layout.h"

/*
 * A slot is {state, payload}. The state is TOMB, lap and length; the lap is that of the span's first
 * ticket. The head is {ticket, offset}. 2^54 laps and 2^56 tickets: see `last_ticket`.
 */
enum { LENGTH_BITS = 9, OFFSET_BITS = 8, LONGEST = 1 << OFFSET_BITS, LAP_BITS = 54, TICKET_BITS = 56 };
#define SPAN_TOMB (UINT64_C(1) << (LAP_BITS + LENGTH_BITS))
_Static_assert(LAP_BITS + LENGTH_BITS == 63 && TICKET_BITS + OFFSET_BITS == 64 && LONGEST < 1 << LENGTH_BITS, "words");

struct span_slot {
	_Alignas(16) _Atomic(uint64_t) state;
	_Atomic(uint64_t) payload;
};

/* The cells of an arena belong to whoever exchanged its `next` for NO_CELL. */
enum { ARENAS = WEIRI_RING_ARENAS, NO_CELL = -1 };
struct arena {
	WEIRI_ALIGNED_APART _Atomic(int64_t) next; /* the cell behind the last span, or NO_CELL */
	uint64_t first;                            /* its first cell; constant */
};

static WEIRI_ALWAYS_INLINE struct span_slot *slot_of(const weir_ring *ring, uint64_t ticket)
{
	return (struct span_slot *)ring->slots + (ticket & ring->shape.mask);
}

/* The state of a span of length 0 at `ticket`: every earlier state of the slot is less. */
static WEIRI_ALWAYS_INLINE uint64_t base_of(const weir_ring *ring, uint64_t ticket)
{
	return ticket >> ring->shape.shift << LENGTH_BITS;
}

/* The ticket behind the span that `state` describes, in the slot of `ticket`. */
static WEIRI_ALWAYS_INLINE uint64_t end_of(const weir_ring *ring, uint64_t ticket, uint64_t state)
{
	uint64_t first = state >> LENGTH_BITS << ring->shape.shift | (ticket & ring->shape.mask);

	return first + (state & ((1 << LENGTH_BITS) - 1));
}

static WEIRI_ALWAYS_INLINE uint64_t ticket_in(uint64_t head)
{
	return head >> OFFSET_BITS;
}

static WEIRI_ALWAYS_INLINE uint64_t offset_in(uint64_t head)
{
	return head & (LONGEST - 1);
}

/* The tickets begin at lap 1, so that a cleared slot is older than all of them. */
static WEIRI_ALWAYS_INLINE uint64_t first_ticket(const weir_ring *ring)
{
	return (uint64_t)ring->shape.mask + 1;
}

/* span16_invariants.c */
void weiri_span16_assert(const weir_ring *ring);
void weiri_span16_assert_unused(const weir_ring *ring, uint64_t place, uint64_t length);

#endif
