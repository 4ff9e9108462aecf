/*
 * walk.h - LTQ, the lazy-index ticket ring: the algorithm, for both slot formats.
 *
 * Algorithm (ours). Operations are numbered by tickets: the t-th enqueue uses slot t mod n, in lap t / n; the t-th dequeue empties
 * it. A slot's state says where it is:
 *
 *   2 * lap       free for the enqueue of this lap
 *   2 * lap + 1   full: holds the value of this lap
 *   TOMB          free(lap) with a bit on top: free for ever, the ring is closed and this was the first free ticket
 *
 *   free(lap) -> full(lap) -> free(lap + 1)     free(lap) -> TOMB     no other transition
 *
 * There is no index to claim first: an operation walks from a hint to the first ticket whose slot it can use, and its CAS of
 * the slot does everything at once. So a thread that stops anywhere leaves the ring whole. Head and tail are hints, moved by
 * CAS-max every 8 tickets; a stale hint only lengthens the walk. The idea of judging a slot by its lap is Vyukov's (bounded MPMC
 * queue, 2010) and SCQ's (Nikolaev, DISC 2019); leaving the index behind the slots is ours.
 *
 *   enqueue at t:  free(lap): CAS to full    full(lap) or later: t + 1    full(lap - 1): the ring is full    TOMB: closed
 *   dequeue at t:  full(lap): CAS to free    later: t + 1    free(lap): the ring is empty    TOMB: closed and drained
 *
 * Invariants
 *   I1  the state of a slot only grows; TOMB is last
 *   I2  tickets are enqueued without a gap: the enqueue of t succeeds only after each earlier ticket was enqueued
 *   I3  tickets are dequeued without a gap
 *   I4  a hint is at most the number of operations of its kind that have succeeded
 *   I5  a value is written only together with free -> full (LTQ16), or before it into a cell that is nobody else's (LTQ64)
 * Pairs
 *   P1  fill(enqueue) -> look(dequeue): the value, and what it points to
 *   P2  drain(dequeue) -> look(enqueue): the slot is finished with; -> look(dequeue), failed drain(dequeue): what went in before
 *   P3  close -> start(enqueue), end(dequeue); bury -> look: what the closer did before
 *   P4  advance(hint) -> start(walk): the tickets below the hint are done, so their slots show it
 * Linearization. Success: the CAS of the slot. "Full": the load that saw full(lap - 1) at ticket t: by I2 tickets up to t - 1 were
 *   enqueued, by I3 none from t - n on was dequeued, so the ring held n. "Empty": the load that saw free(lap) at ticket t: tickets
 *   below were dequeued (I3), t was not enqueued. Both exact, which takes P2 and P4: a walk has acquired whatever it stepped over, so an
 *   item that went in before another came out is seen by those who see that the other is gone.
 * Closing. close() sets CLOSED in the tail hint: enqueues that start later see it. One that started earlier may still succeed, but
 *   a dequeue that finds the ring empty and CLOSED first buries the free ticket (free -> TOMB by CAS): from then on every enqueue
 *   meets TOMB, and by I2 none passes it. So no accepted value is lost and the answer "closed and drained" is final.
 * Progress: lock-free. A failed CAS, or a slot that is stepped over, means that another operation succeeded since the hint was read.
 * ABA: a state belongs to one lap; it has at least 32 bits of lap, so 2^62 operations pass before one returns in any ring.
 * Checked: stress/model/check_ring.c (small scopes, completely), tests/test_ring.c, stress/scenario_ring.c (loss, duplicates, order, both
 *   formats; threads stopped at random points).
 */
#ifndef WEIRI_RING_WALK_H
#define WEIRI_RING_WALK_H

#include "ring/layout.h"

enum { HINT_STEP = 8 };

/* The bit of TOMB in a look's state; states stay below it in both formats. */
#define STATE_TOMB (UINT64_C(1) << 32 << 30)

/* What a look at a slot found; `raw` and `value` are the format's own. */
struct look {
	uint64_t state;
	uint64_t raw;
	uint64_t value;
};

struct slot_format {
	/* [P1, P2 acquire] */
	struct look (*look)(const weir_ring *ring, size_t index);
	/* From `seen`, which was free, to full. 0: it has changed. [P1 release] */
	int (*fill)(weir_ring *ring, size_t index, const struct look *seen, uint64_t value);
	/* From `seen`, which was full, to free in the next lap; *value is what it held. 0: it has changed. [P2 release; failed: acquire] */
	int (*drain)(weir_ring *ring, size_t index, const struct look *seen, uint64_t *value);
	/* The same by the only thread that dequeues: what it saw full stays so, and a store will do. Returns the value. [P2 release] */
	uint64_t (*take)(weir_ring *ring, size_t index, const struct look *seen);
	/* From `seen`, which was free, to TOMB. 0: it has changed. [P3 release] */
	int (*bury)(weir_ring *ring, size_t index, const struct look *seen);
};

struct position {
	uint64_t ticket;
	uint64_t lap;
	size_t index;
};

static WEIRI_ALWAYS_INLINE struct position position_of(const weir_ring *ring, uint64_t ticket)
{
	if (WEIRI_LIKELY(ring->mask != 0))
		return (struct position){ticket, ticket >> ring->shift, (size_t)ticket & ring->mask};
	return (struct position){ticket, ticket / ring->capacity, (size_t)(ticket % ring->capacity)};
}

static WEIRI_ALWAYS_INLINE void step(const weir_ring *ring, struct position *at)
{
	at->ticket++;
	if (WEIRI_UNLIKELY(++at->index == ring->capacity)) {
		at->index = 0;
		at->lap++;
	}
}

static WEIRI_ALWAYS_INLINE uint64_t free_in(const struct position *at)
{
	return 2 * at->lap;
}

static WEIRI_ALWAYS_INLINE uint64_t full_in(const struct position *at)
{
	return 2 * at->lap + 1;
}

/* The slot was used beyond this lap: the hint, read again, may be far ahead. */
static WEIRI_ALWAYS_INLINE void step_from_stale(const weir_ring *ring, const _Atomic(uint64_t) *hint,
                                                struct position *at)
{
	/* [P4 acquire] pairs with advance(). */
	uint64_t ahead = weiri_load_acquire(hint) & ~WEIRI_RING_CLOSED;

	if (ahead > at->ticket)
		*at = position_of(ring, ahead);
	else
		step(ring, at);
}

/* The hint's tickets below `done` are done; `first` is where this operation began. Keeps CLOSED. */
static WEIRI_ALWAYS_INLINE void advance(_Atomic(uint64_t) *hint, uint64_t first, uint64_t done)
{
	uint64_t seen;

	if (WEIRI_LIKELY((first ^ done) < HINT_STEP)) /* no multiple of HINT_STEP passed */
		return;
	/* [relaxed] only the CAS counts. */
	seen = weiri_load_relaxed(hint);
	/* [P4 release] I4: our slot, and those that we stepped over, are done. No acquire: nothing below depends on the old hint, and
	 * being a read-modify-write this keeps what its predecessors released, P3 among it. */
	while ((seen & ~WEIRI_RING_CLOSED) < done && !weiri_cas_release(hint, &seen, done | (seen & WEIRI_RING_CLOSED)))
		;
}

/* Enqueues up to count values; returns how many. *status says why it stopped short. */
static WEIRI_ALWAYS_INLINE size_t walk_enqueue(weir_ring *ring, const struct slot_format *format,
                                               const uint64_t values[], size_t count, int admitted,
                                               enum weir_status *status)
{
	/* [P3, P4 acquire] pairs with close and advance(). */
	uint64_t hint = weiri_load_acquire(&ring->tail_hint);
	struct position at = position_of(ring, hint & ~WEIRI_RING_CLOSED);
	uint64_t first = at.ticket;
	size_t done = 0;

	*status = WEIR_OK;
	if (WEIRI_UNLIKELY((hint & WEIRI_RING_CLOSED) != 0) && !admitted) {
		*status = WEIR_CANCELLED;
		return 0;
	}
	while (done < count) {
		struct look seen = format->look(ring, at.index);

		if (WEIRI_LIKELY(seen.state == free_in(&at))) {
			if (WEIRI_LIKELY(format->fill(ring, at.index, &seen, values[done]))) {
				done++;
				step(ring, &at);
			}
		} else if (seen.state == full_in(&at)) {
			step(ring, &at);
		} else if (seen.state < free_in(&at)) {
			*status = WEIR_WOULD_BLOCK;
			break;
		} else if (seen.state >= STATE_TOMB) { /* closed: no later ticket can be filled */
			*status = WEIR_CANCELLED;
			break;
		} else {
			step_from_stale(ring, &ring->tail_hint, &at);
		}
	}
	if (done != 0)
		advance(&ring->tail_hint, first, at.ticket);
	return done;
}

/* Found free(lap) at `at`. 1: this is the end, *status says which. 0: look again. */
static WEIRI_ALWAYS_INLINE int end_of_ring(weir_ring *ring, const struct slot_format *format, const struct position *at,
                                           const struct look *seen, enum weiri_ring_at_end at_end,
                                           enum weir_status *status)
{
	*status = WEIR_WOULD_BLOCK;
	/* [P3 acquire] pairs with close. */
	if (WEIRI_LIKELY((weiri_load_acquire(&ring->tail_hint) & WEIRI_RING_CLOSED) == 0) || at_end == WEIRI_RING_LEAVE)
		return 1;
	*status = WEIR_OUT_OF_RANGE;
	return format->bury(ring, at->index, seen);
}

/* Dequeues up to count values; returns how many. *status says why it stopped short. */
static WEIRI_ALWAYS_INLINE size_t walk_dequeue(weir_ring *ring, const struct slot_format *format, uint64_t values[],
                                               size_t count, enum weiri_ring_at_end at_end, enum weir_status *status)
{
	/* [P4 acquire] pairs with advance(). */
	struct position at = position_of(ring, weiri_load_acquire(&ring->head_hint));
	uint64_t first = at.ticket;
	size_t done = 0;

	*status = WEIR_OK;
	while (done < count) {
		struct look seen = format->look(ring, at.index);

		if (WEIRI_LIKELY(seen.state == full_in(&at))) {
			if (WEIRI_LIKELY(format->drain(ring, at.index, &seen, &values[done])))
				done++;
			step(ring, &at); /* drained, by us or by another */
		} else if (seen.state == free_in(&at)) {
			if (end_of_ring(ring, format, &at, &seen, at_end, status))
				break;
			*status = WEIR_OK;
		} else if (seen.state >= STATE_TOMB) { /* closed and drained */
			*status = WEIR_OUT_OF_RANGE;
			break;
		} else {
			step_from_stale(ring, &ring->head_hint, &at);
		}
	}
	if (done != 0)
		advance(&ring->head_hint, first, at.ticket);
	return done;
}

/*
 * As walk_dequeue() for the only thread that dequeues (mpsc.c): head_hint is then no hint but the head itself, and nobody is in its way.
 * Its answers are acquired as there: the slot at the head was seen free after all that stood before it had come out, by this thread.
 */
static WEIRI_ALWAYS_INLINE size_t walk_dequeue_alone(weir_ring *ring, const struct slot_format *format,
                                                     uint64_t values[], size_t count, enum weir_status *status)
{
	/* [relaxed] this thread alone writes it; others read it only to tell a size. */
	struct position at = position_of(ring, weiri_load_relaxed(&ring->head_hint));
	size_t done = 0;

	*status = WEIR_OK;
	while (done < count) {
		struct look seen = format->look(ring, at.index);

		if (WEIRI_LIKELY(seen.state == full_in(&at))) {
			values[done++] = format->take(ring, at.index, &seen);
			step(ring, &at);
		} else if (seen.state >= STATE_TOMB) { /* closed and drained, as was said before */
			*status = WEIR_OUT_OF_RANGE;
			break;
		} else if (end_of_ring(ring, format, &at, &seen, WEIRI_RING_SEAL, status)) {
			break;
		} else { /* an enqueue was faster than the tombstone */
			*status = WEIR_OK;
		}
	}
	if (done != 0)
		weiri_store_relaxed(&ring->head_hint, at.ticket);
	return done;
}

/* Whether walk_dequeue() would find a value. Linearization: as there. */
static inline int walk_has_value(const weir_ring *ring, const struct slot_format *format)
{
	/* [P4 acquire] pairs with advance(). */
	struct position at = position_of(ring, weiri_load_acquire(&ring->head_hint));

	for (;;) {
		uint64_t state = format->look(ring, at.index).state;

		if (state == full_in(&at))
			return 1;
		if (state == free_in(&at) || state >= STATE_TOMB)
			return 0;
		step_from_stale(ring, &ring->head_hint, &at);
	}
}

/* Whether walk_enqueue() would find a free ticket, were it admitted. Linearization: as there. */
static inline int walk_has_room(const weir_ring *ring, const struct slot_format *format)
{
	/* [P4 acquire] pairs with advance(). */
	struct position at = position_of(ring, weiri_load_acquire(&ring->tail_hint) & ~WEIRI_RING_CLOSED);

	for (;;) {
		uint64_t state = format->look(ring, at.index).state;

		if (state == free_in(&at))
			return 1;
		if (state < free_in(&at) || state >= STATE_TOMB)
			return 0;
		if (state == full_in(&at))
			step(ring, &at);
		else
			step_from_stale(ring, &ring->tail_hint, &at);
	}
}

/* The first ticket from `hint` on whose slot is not yet at `state_of`(ticket) or beyond. */
static inline uint64_t walk_to_end(const weir_ring *ring, const struct slot_format *format,
                                   const _Atomic(uint64_t) *hint, uint64_t passed_by)
{
	/* [relaxed] a hint: the tickets below it are done, whether their slots show it to us yet or not. */
	struct position at = position_of(ring, weiri_load_relaxed(hint) & ~WEIRI_RING_CLOSED);
	/* A hint is less than a step behind when nobody works; with others at work the answer is near in any case. */
	uint64_t limit = at.ticket + HINT_STEP + ring->capacity;

	while (at.ticket < limit) {
		/* A tombstone keeps its lap: in a small ring the ticket here may be of an earlier one. */
		uint64_t state = format->look(ring, at.index).state & (STATE_TOMB - 1);

		if (state < free_in(&at) + passed_by)
			break;
		step(ring, &at);
	}
	return at.ticket;
}

static inline size_t walk_size(const weir_ring *ring, const struct slot_format *format)
{
	/* A ticket is enqueued when its slot is full (+ 1) or later, dequeued when it is free for the next lap (+ 2) or later. */
	uint64_t head = walk_to_end(ring, format, &ring->head_hint, 2);
	uint64_t tail = walk_to_end(ring, format, &ring->tail_hint, 1);
	uint64_t size = tail > head ? tail - head : 0;

	return size < ring->capacity ? (size_t)size : ring->capacity;
}

#endif
