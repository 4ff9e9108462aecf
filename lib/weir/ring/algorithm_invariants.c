/*
 * algorithm_invariants.c - asserts that the slots of a ring obey the invariants of algorithm.h and
 * ltq64.c.
 *
 * The slots are read one after the other. That shows one instant only if no thread changes the ring
 * meanwhile. So the functions run before the ring is destroyed, and under the model checker after
 * each change.
 */
#include "ring/algorithm.h"

#include "base/assert.h"
#include "ring/span16.h"

#if WEIR_ASSERT_LEVEL >= 2

/* Returns the state of a slot without the bit of a tombstone, which keeps its lap. */
static WEIRI_UNSEEN uint64_t state_at(const weir_ring *ring, size_t index)
{
	const _Atomic(uint64_t) *words = ring->slots;

	if (ring->format == WEIR_RING_FORMAT_LTQ16)
		return weiri_peek(&words[2 * index]) & (STATE_TOMB - 1);
	return (weiri_peek(&words[index]) & (UINT64_MAX >> 1)) >> ring->cell_bits;
}

/* Returns how many tickets of a slot in this state are done. */
static uint64_t done_in(uint64_t state, enum done_by by)
{
	return (state + 2 - (uint64_t)by) / 2;
}

/* Returns true if `done` is this slot's share of the first `all` tickets of the ring. */
static bool is_prefix(const weir_ring *ring, size_t index, uint64_t done, uint64_t all)
{
	return done == all / ring->capacity + (index < all % ring->capacity);
}

WEIRI_UNSEEN void weiri_ring_assert_laps(const weir_ring *ring)
{
	uint64_t in = 0, out = 0;

	for (size_t i = 0; i < ring->capacity; i++) {
		in += done_in(state_at(ring, i), BY_ENQUEUE);
		out += done_in(state_at(ring, i), BY_DEQUEUE);
	}
	for (size_t i = 0; i < ring->capacity; i++) {
		WEIR_ASSERT3(I2, is_prefix(ring, i, done_in(state_at(ring, i), BY_ENQUEUE), in));
		WEIR_ASSERT3(I3, is_prefix(ring, i, done_in(state_at(ring, i), BY_DEQUEUE), out));
	}
	WEIR_ASSERT3(I4, number_of(ring, weiri_peek(&ring->tail_hint)) <= in);
	WEIR_ASSERT3(I4, number_of(ring, weiri_peek(&ring->head_hint)) <= out);
}

WEIRI_UNSEEN void weiri_ring_assert_whole(const weir_ring *ring)
{
	if (ring->format == WEIR_RING_FORMAT_SPAN16) {
		weiri_span16_assert(ring);
	} else {
		weiri_ring_assert_laps(ring);
	}
}

WEIRI_UNSEEN bool weiri_ring_is_sealed(const weir_ring *ring)
{
	const _Atomic(uint64_t) *words = ring->slots;
	const size_t step = ring->format == WEIR_RING_FORMAT_LTQ64 ? 1 : 2;
	const size_t slots = ring->format == WEIR_RING_FORMAT_SPAN16 ? ring->shape.mask + 1 : ring->capacity;
	const uint64_t tomb = ring->format == WEIR_RING_FORMAT_LTQ16 ? STATE_TOMB : ~(UINT64_MAX >> 1);
	bool sealed = false;

	for (size_t i = 0; i < slots; i++)
		sealed |= (weiri_peek(&words[step * i]) & tomb) != 0;
	return sealed;
}

WEIRI_UNSEEN void weiri_ring_assert_grown(const weir_ring *ring, size_t index, uint64_t seen)
{
	WEIR_ASSERT2(I1, state_at(ring, index) >= (seen & (STATE_TOMB - 1)));
}

WEIRI_UNSEEN void weiri_ring_assert_own_cell(const weir_ring *ring, uint64_t cell)
{
	const _Atomic(uint64_t) *words = ring->slots;
	const uint64_t mask = (UINT64_C(1) << ring->cell_bits) - 1;

	WEIR_ASSERT3(C1, cell < ring->capacity + WEIRI_RING_SPARES);
	for (size_t i = 0; i < WEIRI_RING_SPARES; i++) {
		const void *place = (const char *)ring->spares + i * WEIRI_LINE;

		WEIR_ASSERT3(C2, weiri_peek((const _Atomic(uint64_t) *)place) != cell);
	}
	for (size_t i = 0; i < ring->capacity; i++)
		WEIR_ASSERT3(I5, (weiri_peek(&words[i]) & mask) != cell);
}

#else
typedef int weiri_ring_asserts_nothing;
#endif
