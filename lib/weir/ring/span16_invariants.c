/*
 * span16_invariants.c - asserts that a span ring obeys the invariants of span16.c.
 *
 * As in algorithm_invariants.c the words are read one after the other, so no other thread may change
 * the ring meanwhile.
 */
#include "ring/span16.h"

#include "base/assert.h"

#if WEIR_ASSERT_LEVEL >= 2

/* Returns the state of a slot without the bit of a tombstone, which keeps the last span. */
static WEIRI_UNSEEN uint64_t state_at(const weir_ring *ring, uint64_t ticket)
{
	return weiri_peek(&slot_of(ring, ticket)->state) & (SPAN_TOMB - 1);
}

/* Returns true if a span begins at `ticket`. */
static WEIRI_UNSEEN bool begins_at(const weir_ring *ring, uint64_t ticket)
{
	return state_at(ring, ticket) - base_of(ring, ticket) - 1 < LONGEST;
}

WEIRI_UNSEEN void weiri_span16_assert(const weir_ring *ring)
{
	uint64_t head = weiri_peek(&ring->head), tail = ticket_in(head);
	uint64_t out = ticket_in(head) + offset_in(head);

	WEIR_ASSERT3(N6, offset_in(head) == 0 || begins_at(ring, tail));
	while (begins_at(ring, tail))
		tail = end_of(ring, tail, state_at(ring, tail));
	WEIR_ASSERT3(N3, out <= tail);
	WEIR_ASSERT3(N4, tail - out <= ring->capacity);
	for (uint64_t i = 0; i <= ring->shape.mask; i++)
		WEIR_ASSERT3(N2, end_of(ring, i, state_at(ring, i)) <= tail);
	WEIR_ASSERT3(N5, weiri_peek(&ring->tail_hint) <= tail);
	WEIR_ASSERT3(N5, weiri_peek(&ring->limit) <= out + ring->capacity);
}

WEIRI_UNSEEN void weiri_span16_assert_unused(const weir_ring *ring, uint64_t place, uint64_t length)
{
	uint64_t head = weiri_peek(&ring->head), ticket = ticket_in(head), offset = offset_in(head);

	for (; begins_at(ring, ticket); offset = 0) {
		uint64_t state = state_at(ring, ticket), end = end_of(ring, ticket, state);
		uint64_t cell = weiri_peek(&slot_of(ring, ticket)->payload);

		if (end - ticket > 1)
			WEIR_ASSERT3(N7, cell + offset >= place + length || cell + (end - ticket) <= place);
		ticket = end;
	}
}

#else
typedef int weiri_span16_asserts_nothing;
#endif
