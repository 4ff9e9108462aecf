/*
 * ltq64.c - LTQ with single-width C11 atomics: a slot's word holds the state and the number of a
 * cell, and the cell holds the value.
 *
 * Algorithm. That of algorithm.h; this file says how a slot holds a value of 64 bits without a CAS
 * of two words. There are capacity + SPARES cells. An enqueue borrows a spare cell by exchanging a
 * place of the spares for NO_CELL, and writes its value there. It then changes the slot by CAS from
 * {free, cell x} to {full, its cell}. Cell x becomes the spare cell, which the enqueue gives back.
 * A dequeue reads the slot's cell, then changes the slot by CAS to {free in the next lap, same
 * cell}. A draw (draw.h) borrows a spare cell, too: it leaves that in the slot from which it picks up
 * a cell, and gives back the cell that it has read.
 *
 * Invariants
 *   C1  each cell is named by exactly one slot, one place of the spares, or one running enqueue or
 *       draw
 *   C2  a cell is written only by the enqueue that holds it as its spare
 *   C3  if the CAS of a dequeue succeeds, the value that it read from the cell belongs to the state
 *       that it saw: by C1 a cell leaves its slot only with a change of the slot's word
 *   A draw reads a cell only when it holds it, so a cell that left its slot and came back in an
 *   exchange does not deceive it
 * Pairs: P1, P2 of algorithm.h through the slot's word; P5 give_back (spare) -> borrow (spare): the
 *   enqueue or draw has finished with the cell.
 * Progress: lock-free while fewer than SPARES threads are stalled inside an enqueue or a draw. Beyond
 *   that an enqueue or a draw waits for a spare. LTQ16 has no such limit.
 */
/*
 * An operation moves the line of a cell as well as that of a slot. So a turn of a thread is worth fewer
 * operations than in LTQ16, and the others pause longer: 128 to 2,048 times, and 256 in step.
 */
#define WEIRI_FIRST_PAUSES 128
#define WEIRI_STEP_PAUSES 256

#include "base/fetch.h"
#include "ring/algorithm.h"
#include "ring/draw.h"
#include "ring/place.h"

enum { SPARES = WEIRI_RING_SPARES, NO_CELL = -1 };

/* A place for a spare cell, on a cache line of its own: every enqueue writes a place twice. */
struct spare {
	_Alignas(WEIRI_LINE) _Atomic(int64_t) cell;
};

_Static_assert(SPARES == 1 << WEIRI_PLACE_BITS, "weiri_first_place() must cover the places");

#if defined(WEIRI_UNDER_MODEL)
WEIRI_TLS uint32_t weiri_ring_first_place;
WEIRI_TLS uint32_t weiri_ring_step_time; /* in_step.h */
WEIRI_TLS bool weiri_ring_hint_again;    /* back_off.h */
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
		return (struct look){STATE_TOMB | (word & ~WORD_TOMB) >> ring->cell_bits, word, 0, NULL};
	return (struct look){word >> ring->cell_bits, word, 0, NULL};
}

static WEIRI_ALWAYS_INLINE int64_t borrow(weir_ring *ring, struct spare **place)
{
	struct spare *spares = ring->spares;

	for (size_t i = weiri_first_place();; i++) {
		*place = &spares[i % SPARES];
		/* [relaxed] a look first: it does not take the cache line from its owner. */
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
	/* [P5 release] pairs with borrow(). No other thread writes a place that holds NO_CELL. */
	weiri_store_release(&place->cell, cell);
}

/* Returns false if the slot has changed. *given is the cell that goes to the next borrower of the place. */
static WEIRI_ALWAYS_INLINE bool fill_from_cell(weir_ring *ring, size_t index, const struct look *seen, uint64_t value,
                                               int64_t *given)
{
	struct spare *place;
	int64_t cell = borrow(ring, &place);
	uint64_t word = seen->raw;
	bool filled;

	WEIR_ASSERT_INSTANT(weiri_ring_assert_own_cell(ring, (uint64_t)cell));
	/*
	 * [relaxed] C2; the CAS publishes it. A slow dequeue may still read the cell, but then its CAS
	 * fails (C3).
	 */
	weiri_store_relaxed(&ring->cells[cell], value);
	/*
	 * [seq_cst S; P1 release] pairs with look(). The look that saw `seen` acquired the drain of the
	 * cell that this enqueue gets.
	 */
	filled = weiri_cas_seq_cst(word_at(ring, index), &word, join(ring, seen->state + 1, (uint64_t)cell));
	if (filled)
		cell = (int64_t)cell_of(ring, seen->raw);
	give_back(place, cell);
	*given = cell;
	return filled;
}

static WEIRI_ALWAYS_INLINE bool fill(weir_ring *ring, size_t index, const struct look *seen, uint64_t value)
{
	int64_t given;
	bool filled = fill_from_cell(ring, index, seen, value, &given);

	/* The next enqueue of this thread will probably borrow it. A consumer has its line. */
	weiri_fetch_to_write(&ring->cells[given]);
	return filled;
}

/* Of a batch: it borrows the cell again at once, so a fetch would come too late. */
static WEIRI_ALWAYS_INLINE bool fill_next(weir_ring *ring, size_t index, const struct look *seen, uint64_t value)
{
	int64_t given;

	return fill_from_cell(ring, index, seen, value, &given);
}

static WEIRI_ALWAYS_INLINE bool drain(weir_ring *ring, size_t index, const struct look *seen, uint64_t *value)
{
	uint64_t cell = cell_of(ring, seen->raw), word = seen->raw;
	/* [relaxed] P1 through the word; valid if the CAS succeeds (C3). */
	uint64_t held = weiri_load_relaxed(&ring->cells[cell]);

	WEIR_ASSERT_LOOK(weiri_ring_assert_grown(ring, index, seen->state));
	/*
	 * [seq_cst S; P2 release] pairs with look(): the cell has been read. A failed CAS acquires,
	 * because the walk continues.
	 */
	if (!weiri_cas_seq_cst(word_at(ring, index), &word, join(ring, seen->state + 1, cell)))
		return false;
	*value = held;
	return true;
}

static WEIRI_ALWAYS_INLINE bool bury(weir_ring *ring, size_t index, const struct look *seen)
{
	uint64_t word = seen->raw;

	/*
	 * [P3 release] pairs with look(): passes on the close. No acquire: look() acquired this word,
	 * and after a failure the caller looks again.
	 */
	return weiri_cas_release(word_at(ring, index), &word, word | WORD_TOMB);
}

static const struct slot_format format = {look, fill, drain, bury}, format_of_batches = {look, fill_next, drain, bury};

/* The hand holds a cell, and the place to which a cell goes back. */

static WEIRI_ALWAYS_INLINE bool pick_up(weir_ring *ring, size_t index, const struct look *seen, struct hand *hand)
{
	struct spare *place;
	int64_t spare = borrow(ring, &place);
	uint64_t word = seen->raw;

	WEIR_ASSERT_INSTANT(weiri_ring_assert_own_cell(ring, (uint64_t)spare));
	/* [seq_cst S; P1 acquire, P2 release] pairs with look(). */
	if (!weiri_cas_seq_cst(word_at(ring, index), &word, join(ring, seen->state + 1, (uint64_t)spare))) {
		give_back(place, spare);
		return false;
	}
	*hand = (struct hand){cell_of(ring, seen->raw), place};
	return true;
}

static WEIRI_ALWAYS_INLINE bool exchange(weir_ring *ring, size_t index, const struct look *seen, struct hand *hand)
{
	uint64_t word = seen->raw;

	/* [P1 release, acquire] pairs with itself and pick_up(). */
	if (!weiri_cas_acq_rel(word_at(ring, index), &word, join(ring, seen->state, hand->content)))
		return false;
	hand->content = cell_of(ring, seen->raw);
	return true;
}

static WEIRI_ALWAYS_INLINE uint64_t open_hand(weir_ring *ring, const struct hand *hand)
{
	/* [relaxed] C1: the cell is this draw's alone, and P1 brought its value. */
	uint64_t value = weiri_load_relaxed(&ring->cells[hand->content]);

	give_back(hand->place, (int64_t)hand->content);
	return value;
}

static const struct hand_format hands = {pick_up, exchange, open_hand};

#define RING_FORMAT(call) weiri_ltq64_##call
#define RING_FORMAT_OF_BATCHES format_of_batches
#include "ring/format_calls.h"

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
	/*
	 * [relaxed] not published yet. Slot i begins with cell i, place k of the spares with cell
	 * capacity + k.
	 */
	for (size_t i = 0; i < ring->capacity; i++)
		weiri_store_relaxed(&words[i], i);
	for (size_t k = 0; k < SPARES; k++)
		weiri_store_relaxed(&spares[k].cell, (int64_t)(ring->capacity + k));
}
