/*
 * ltq64.c - LTQ with single-width C11 atomics: a slot's word holds the state and the number of a cell, the cell holds the value.
 *
 * An enqueue writes its value into a spare cell that is its own, then CASes the slot from {free, cell x} to {full, its cell}, and
 * x becomes the spare. A dequeue reads the cell, then CASes the slot to {free in the next lap, same cell}. There are capacity +
 * SPARES cells; a thread borrows a spare for the length of one enqueue by exchanging its place for NONE.
 *
 * Invariants
 *   C1  each cell is named by exactly one slot, or one place of spares, or one enqueue under way
 *   C2  a cell is written only by the enqueue that holds it as its spare
 *   C3  what a dequeue reads from a cell belongs to the state it saw if its CAS from that succeeds: by C1 the cell left the slot only
 *       with a change of the word
 * Pairs: P1, P2 of walk.h through the slot's word; P5 give back(spare) -> borrow(spare): the cell is finished with.
 * Progress: lock-free as long as fewer than SPARES threads are stopped inside an enqueue at once; beyond that an enqueue waits for
 *   a spare. LTQ16 has no such limit.
 */
#include "ring/walk.h"

enum { SPARES = 64, NO_CELL = -1 };

/* A line each: a place is exchanged twice by every enqueue. */
struct spare {
	_Alignas(WEIRI_LINE) _Atomic(int64_t) cell;
};

#if defined(WEIRI_UNDER_MODEL) /* stress/model: a scope says which threads begin at one place */
WEIRI_TLS uint32_t weiri_ltq64_first_place;

static size_t first_place(void)
{
	return weiri_ltq64_first_place;
}
#else
static WEIRI_TLS char thread_mark; /* its address differs from thread to thread */

static WEIRI_ALWAYS_INLINE size_t first_place(void)
{
	_Static_assert(SPARES == 1 << (64 - 58), "the hash must cover the places");
	return (size_t)(((uintptr_t)&thread_mark >> 6) * UINT64_C(0x9E3779B97F4A7C15) >> 58);
}
#endif

static WEIRI_ALWAYS_INLINE _Atomic(uint64_t) *word_at(const weir_ring *ring, size_t index)
{
	return (_Atomic(uint64_t) *)ring->slots + index;
}

static WEIRI_ALWAYS_INLINE uint64_t join(const weir_ring *ring, uint64_t state, uint64_t cell)
{
	return state << ring->cell_bits | cell;
}

static WEIRI_ALWAYS_INLINE uint64_t cell_of(const weir_ring *ring, uint64_t word)
{
	return word & ((UINT64_C(1) << ring->cell_bits) - 1);
}

/* TOMB in a word: its top bit, which no state reaches. */
#define WORD_TOMB (UINT64_C(1) << 63)

static WEIRI_ALWAYS_INLINE struct look look(const weir_ring *ring, size_t index)
{
	/* [seq_cst S; P1, P2 acquire] pairs with fill() and drain(). */
	uint64_t word = weiri_load_seq_cst(word_at(ring, index));

	if (WEIRI_UNLIKELY((word & WORD_TOMB) != 0))
		return (struct look){STATE_TOMB | (word & ~WORD_TOMB) >> ring->cell_bits, word, 0};
	return (struct look){word >> ring->cell_bits, word, 0};
}

static int64_t borrow(weir_ring *ring, struct spare **place)
{
	struct spare *spares = ring->spares;

	for (size_t i = first_place();; i++) {
		*place = &spares[i % SPARES];
		/* [relaxed] a look that spares the line. */
		if (weiri_load_relaxed(&(*place)->cell) != NO_CELL) {
			/* [P5 acquire] pairs with give_back(). */
			int64_t cell = weiri_exchange_acquire(&(*place)->cell, NO_CELL);

			if (cell != NO_CELL)
				return cell;
		}
		weiri_pause();
	}
}

static void give_back(struct spare *place, int64_t cell)
{
	/* [P5 release] pairs with borrow(). Nobody else writes a place that holds NO_CELL. */
	weiri_store_release(&place->cell, cell);
}

static WEIRI_ALWAYS_INLINE int fill(weir_ring *ring, size_t index, const struct look *seen, uint64_t value)
{
	struct spare *place;
	int64_t cell = borrow(ring, &place);
	uint64_t word = seen->raw;
	int filled;

	/* [relaxed] C2; published by the CAS. A slow dequeue may still read it, and will fail (C3). */
	weiri_store_relaxed(&ring->cells[cell], value);
	/* [seq_cst S; P1 release] pairs with look(), which acquired that the cell that we get was drained. */
	filled = weiri_cas_seq_cst(word_at(ring, index), &word, join(ring, seen->state + 1, (uint64_t)cell));
	give_back(place, filled ? (int64_t)cell_of(ring, seen->raw) : cell);
	return filled;
}

static WEIRI_ALWAYS_INLINE int drain(weir_ring *ring, size_t index, const struct look *seen, uint64_t *value)
{
	uint64_t cell = cell_of(ring, seen->raw), word = seen->raw;
	/* [relaxed] P1 through the word; valid if the CAS succeeds (C3). */
	uint64_t held = weiri_load_relaxed(&ring->cells[cell]);

	/* [seq_cst S; P2 release] pairs with look(): the cell has been read. A failure acquires: the walk goes on. */
	if (!weiri_cas_seq_cst(word_at(ring, index), &word, join(ring, seen->state + 1, cell)))
		return 0;
	*value = held;
	return 1;
}

static WEIRI_ALWAYS_INLINE uint64_t take(weir_ring *ring, size_t index, const struct look *seen)
{
	uint64_t cell = cell_of(ring, seen->raw);
	/* [relaxed] P1 through the word, which stays as it is until the store below. */
	uint64_t held = weiri_load_relaxed(&ring->cells[cell]);

	/* [P2 release] pairs with look(): the cell has been read. */
	weiri_store_release(word_at(ring, index), join(ring, seen->state + 1, cell));
	return held;
}

static WEIRI_ALWAYS_INLINE int bury(weir_ring *ring, size_t index, const struct look *seen)
{
	uint64_t word = seen->raw;

	/* [P3 release] pairs with look(): the close that we saw. No acquire: look() saw this word with one, and a failure looks again. */
	return weiri_cas_release(word_at(ring, index), &word, word | WORD_TOMB);
}

static const struct slot_format format = {look, fill, drain, take, bury};

static size_t enqueue(weir_ring *ring, const uint64_t values[], size_t count, int admitted, enum weir_status *status)
{
	if (is_closed(ring) && !admitted) {
		*status = WEIR_CANCELLED;
		return 0;
	}
	return walk_enqueue(ring, &format, begin(&ring->tail_hint), values, count, status);
}

static size_t dequeue(weir_ring *ring, uint64_t values[], size_t count, enum weiri_ring_at_end at_end,
                      weiri_ring_before *before, enum weir_status *status)
{
	uint64_t ticket = begin(&ring->head_hint);

	/* Twice, as who has nothing before it is not to look there for each value. */
	if (before == NULL)
		return walk_dequeue(ring, &format, ticket, values, count, at_end, NULL, status);
	return walk_dequeue(ring, &format, ticket, values, count, at_end, before, status);
}

static struct weiri_ring_counts counts(const weir_ring *ring)
{
	return walk_counts(ring, &format);
}

static int has_value(const weir_ring *ring)
{
	return walk_has_value(ring, &format);
}

static int has_room(const weir_ring *ring)
{
	return walk_has_room(ring, &format);
}

const struct weiri_ring_ops weiri_ltq64_ops = {enqueue, dequeue, counts, has_value, has_room};

static WEIRI_NOINLINE enum weir_status enqueue_from(weir_ring *ring, uint64_t value, uint64_t ticket)
{
	enum weir_status status;

	(void)walk_enqueue(ring, &format, ticket, &value, 1, &status);
	return status;
}

enum weir_status weiri_ltq64_enqueue(weir_ring *ring, uint64_t value)
{
	uint64_t ticket = begin(&ring->tail_hint);

	if (WEIRI_UNLIKELY(is_closed(ring)))
		return WEIR_CANCELLED;
	return WEIRI_LIKELY(enqueue_at(ring, &format, ticket, value)) ? WEIR_OK : enqueue_from(ring, value, ticket);
}

static WEIRI_NOINLINE enum weir_status dequeue_from(weir_ring *ring, uint64_t *value, uint64_t ticket)
{
	enum weir_status status;

	(void)walk_dequeue(ring, &format, ticket, value, 1, WEIRI_RING_SEAL, NULL, &status);
	return status;
}

enum weir_status weiri_ltq64_dequeue(weir_ring *ring, uint64_t *value)
{
	uint64_t ticket = begin(&ring->head_hint);

	return WEIRI_LIKELY(dequeue_at(ring, &format, ticket, value)) ? WEIR_OK : dequeue_from(ring, value, ticket);
}

size_t weiri_ltq64_dequeue_alone(weir_ring *ring, uint64_t values[], size_t count, enum weir_status *status)
{
	return walk_dequeue_alone(ring, &format, values, count, status);
}

enum weir_status weiri_ltq64_dequeue_one_alone(weir_ring *ring, uint64_t *value)
{
	enum weir_status status = WEIR_OK;

	if (WEIRI_UNLIKELY(!dequeue_alone_at_head(ring, &format, value)))
		(void)weiri_ltq64_dequeue_alone(ring, value, 1, &status);
	return status;
}

size_t weiri_ltq64_slots_size(size_t capacity)
{
	return (SPARES * sizeof(struct spare)) + (2 * capacity + SPARES) * sizeof(uint64_t);
}

void weiri_ltq64_init(weir_ring *ring, void *memory)
{
	struct spare *spares = memory;
	_Atomic(uint64_t) *words = (_Atomic(uint64_t) *)(void *)(spares + SPARES);

	while (UINT64_C(1) << ring->cell_bits < ring->capacity + SPARES)
		ring->cell_bits++;
	ring->spares = spares;
	ring->slots = words;
	ring->cells = words + ring->capacity;
	/* [relaxed] not published. Slot i begins with cell i, place k of spares with cell capacity + k. */
	for (size_t i = 0; i < ring->capacity; i++)
		weiri_store_relaxed(&words[i], i);
	for (size_t k = 0; k < SPARES; k++)
		weiri_store_relaxed(&spares[k].cell, (int64_t)(ring->capacity + k));
}
