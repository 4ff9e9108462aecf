/*
 * draw.h - a draw: a dequeue that takes any of the values in a ring, each with the same
 * probability. It is the dequeue of shuffle queues (queue/store_shuffle.c).
 *
 * Algorithm. The ring is that of algorithm.h, and values go in as there. A draw is one step of the
 * shuffle of Fisher and Yates: it takes the value at the head out, exchanges it for one that it
 * chooses by chance, and returns that.
 *
 *   look        find the head and the tail: so many values are inside
 *   pick up     drain the slot of the head, by the CAS of a dequeue. Its value is now in the *hand*
 *               of the draw
 *   exchange    choose among the hand and the slots between head and tail. If it is a slot, exchange
 *               the value in it for that in the hand, by a CAS that does not change the slot's state
 *
 * If the exchange fails, another draw has changed that slot. The draw then chooses again, among the
 * hand and the slots of that range that are still full. The last choice is the hand itself, so a
 * draw that has picked up a value returns one.
 *
 * Values move from slots to hands and from hands to slots, but tickets pass as in algorithm.h: an
 * enqueue fills the slot at the tail, a draw drains the slot at the head. So all of algorithm.h
 * holds for states, and with it the exact "full" and "empty", the tombstone, and the counts. A ring
 * of draws has no other dequeue: that of algorithm.h relies on a full slot keeping its value.
 *
 * Source. The shuffle: Fisher and Yates (1938), in the form of Durstenfeld (CACM 1964). Bags without
 * locks are known (Sundell et al., SPAA 2011), but they take whichever item is nearest. We know of
 * no publication of a lock-free bag with even draws. TensorFlow 1.x's RandomShuffleQueue draws in the
 * same way, under a mutex.
 *
 * Invariants, beside those of algorithm.h
 *   D1  a value that went in and did not come out is in one full slot or in one hand
 *   D2  the slots of the tickets below the tail that a draw has seen hold, from its pick-up on, only
 *       values that were inside at its pick-up
 * D2: a value gets into such a slot only from the hand of another draw. That hand got it from a
 *   slot at the head, whose ticket is lower; or in an exchange, but what a hand gets in an exchange
 *   comes out of the ring. So no value moves to a lower ticket, and a value that goes in after the
 *   pick-up has a higher one.
 * Pairs: those of algorithm.h, and
 *   P1  fill, exchange -> pick up, exchange: the value. In LTQ16 an exchange is in S, too, but no refusal
 *       reads what it changes
 * Linearization. A draw: its pick-up. There the number of values falls by one, and by D2 the value
 *   that the draw will return is inside: in a slot, in its own hand, or in the hand of a draw that
 *   will put it into a slot. Refusals: those of algorithm.h. "No more than min_left are inside": the
 *   look that finds the tail; the head that was found before is not beyond that of this moment. A
 *   draw that picks up leaves at least min_left: at its CAS the head is where it was seen, and the
 *   tail not before.
 * Even. While no other draw is under way, all values are in slots, and the choice is even among
 *   them. A value in the hand of another draw cannot be chosen until it is in a slot again; all
 *   others are equally likely.
 * The choice. Each ticket has random numbers of its own (SplitMix64: Steele, Lea, Flood, OOPSLA
 *   2014), from the seed. So the same seed and the same calls on one thread give the same order.
 * Progress: lock-free. A pick-up fails only if another draw has changed the slot of the head; an
 *   exchange fails only if another draw has changed that slot. A draw that is stopped keeps one
 *   value, as a dequeue that is stopped before it returns does. It keeps no room and delays no
 *   other call. In LTQ64 it also keeps a spare cell (ltq64.c).
 * Checked: stress/model/check_store.c, tests/test_shuffle.c, stress "history_shuffle".
 */
#ifndef WEIRI_RING_DRAW_H
#define WEIRI_RING_DRAW_H

#include "ring/algorithm.h"

/* What a draw has in its hand: the format's own. */
struct hand {
	uint64_t content;
	void *place;
};

struct hand_format {
	/*
	 * Drains the slot, which was full in `seen`, into the hand. Returns false if it has changed. [S;
	 * P1 acquire, P2 release; acquire on failure]
	 */
	bool (*pick_up)(weir_ring *ring, size_t index, const struct look *seen, struct hand *hand);
	/*
	 * Exchanges the value in the slot, which was full in `seen`, for that in the hand. Returns false
	 * if it has changed. [P1 release, acquire]
	 */
	bool (*exchange)(weir_ring *ring, size_t index, const struct look *seen, struct hand *hand);
	/* Empties the hand, and returns the value. */
	uint64_t (*open)(weir_ring *ring, const struct hand *hand);
};

/* The values between two tickets: the range in which a draw may choose. */
struct range {
	uint64_t first, end;
};

static WEIRI_ALWAYS_INLINE uint64_t count_of(const weir_ring *ring, struct range range)
{
	return number_of(ring, range.end) - number_of(ring, range.first);
}

/* The ticket that is `ahead` behind this one; ahead < capacity. */
static WEIRI_ALWAYS_INLINE uint64_t ticket_ahead(const weir_ring *ring, uint64_t ticket, uint64_t ahead)
{
	uint64_t index = index_of(ring->shape, ticket) + ahead;

	return index < ring->capacity ? ticket + ahead : (ticket | ring->shape.mask) + 1 + (index - ring->capacity);
}

/* -- by chance --------------------------------------------------------------------------------- */

#define SPLIT_MIX_STEP UINT64_C(0x9E3779B97F4A7C15)

static inline uint64_t mixed(uint64_t z)
{
	z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
	z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
	return z ^ z >> 31;
}

/* Begins the random numbers of the draw that picks up ticket `number`. */
static inline uint64_t begin_row(uint64_t seed, uint64_t number)
{
	return mixed(seed + (number + 1) * SPLIT_MIX_STEP);
}

enum { CHOICE_BITS = 25 };
_Static_assert(UINT64_C(1) << CHOICE_BITS > WEIRI_DRAW_MAX_CAPACITY, "choices among all values and the hand");

/*
 * Returns a random number 0 .. below - 1, for below <= 2^CHOICE_BITS: the high bits of the product of
 * 39 random bits and `below`. No probability is off by more than 2^-39.
 */
static inline uint64_t random_below(uint64_t *row, uint64_t below)
{
	return (mixed(*row += SPLIT_MIX_STEP) >> CHOICE_BITS) * below >> (64 - CHOICE_BITS);
}

/* -- the draw ---------------------------------------------------------------------------------- */

/* Walks from *ticket to the first value. Returns WEIR_OK, or why there is none. */
static WEIRI_ALWAYS_INLINE enum weir_status find_value(weir_ring *ring, const struct slot_format *format,
                                                       enum weiri_ring_at_end at_end, struct walk *walk,
                                                       uint64_t *ticket, struct look *seen)
{
	const struct weiri_ring_shape shape = ring->shape;
	enum weir_status status;

	for (;;) {
		*seen = format->look(ring, index_of(shape, *ticket));
		if (WEIRI_LIKELY(seen->state == full_in(shape, *ticket)))
			return WEIR_OK;
		if (seen->state <= free_in(shape, *ticket)) {
			if (end_of_ring(ring, format, *ticket, seen, at_end, &status))
				return status;
		} else if (seen->state >= STATE_TOMB) {
			return WEIR_OUT_OF_RANGE;
		} else {
			*ticket = walk_on(ring, shape, format, *ticket, walk, BY_DEQUEUE);
		}
	}
}

/* Returns the tail as of some moment of the call. */
static WEIRI_ALWAYS_INLINE uint64_t find_end(const weir_ring *ring, const struct slot_format *format)
{
	uint64_t ticket = begin(&ring->tail_hint);

	return WEIRI_UNLIKELY(is_done(ring, format, ticket, BY_ENQUEUE)) ? leap(ring, format, ticket, BY_ENQUEUE) : ticket;
}

/* Exchanges what is in the hand for a value by chance, or keeps it by chance. */
static WEIRI_ALWAYS_INLINE void choose(weir_ring *ring, const struct slot_format *format,
                                       const struct hand_format *hands, struct range range, uint64_t row,
                                       struct hand *hand)
{
	uint64_t choice;

	while ((choice = random_below(&row, count_of(ring, range) + 1)) != 0) {
		uint64_t ticket = ticket_ahead(ring, range.first, choice - 1);
		struct look seen = format->look(ring, index_of(ring->shape, ticket));

		if (WEIRI_UNLIKELY(seen.state != full_in(ring->shape, ticket)))
			range.first = next_of(ring->shape, ticket); /* drained, and so are all before it */
		else if (WEIRI_LIKELY(hands->exchange(ring, index_of(ring->shape, ticket), &seen, hand)))
			break;
	}
}

/* Linearization: see above. */
static WEIRI_ALWAYS_INLINE enum weir_status walk_draw(weir_ring *ring, const struct slot_format *format,
                                                      const struct hand_format *hands, const struct weiri_draw *draw,
                                                      uint64_t *value)
{
	uint64_t head = begin(&ring->head_hint);
	struct walk walk = {0};
	struct range inside;
	struct look seen;
	struct hand hand;

	for (;;) {
		enum weir_status status = find_value(ring, format, draw->at_end, &walk, &head, &seen);

		if (WEIRI_UNLIKELY(status != WEIR_OK))
			return status;
		inside = (struct range){head, find_end(ring, format)};
		/* The close lifts the minimum. It is read last: if it is not seen, the minimum held. */
		if (WEIRI_UNLIKELY(count_of(ring, inside) <= draw->min_left) && !is_closed(ring))
			return WEIR_WOULD_BLOCK;
		if (WEIRI_LIKELY(hands->pick_up(ring, index_of(ring->shape, head), &seen, &hand)))
			break;
		/* The head may still be there: an exchange changes a slot, too. */
		head = weiri_step_aside(&ring->head_hint, head, &walk.race);
	}
	WEIR_ASSERT_INSTANT(weiri_ring_assert_laps(ring));
	inside.first = next_of(ring->shape, head);
	leave(&ring->head_hint, inside.first);
	choose(ring, format, hands, inside, begin_row(draw->seed, number_of(ring, head)), &hand);
	*value = hands->open(ring, &hand);
	return WEIR_OK;
}

#endif
