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
 * the slot does everything at once. So a thread that stops anywhere leaves the ring whole. Head and tail are hints: whoever has done
 * something stores where the next may begin, and does not mind whom it overwrites, so that a hint may also go back. An old one only
 * lengthens the walk, and that no further than to the logarithm of its age: after a few slots the walk leaps, as in a
 * galloping search (Bentley and Yao 1976), since what is done is a prefix of the tickets. The idea of judging a slot by its lap is
 * Vyukov's (bounded MPMC queue, 2010) and SCQ's (Nikolaev, DISC 2019); leaving the index behind the slots is ours.
 *
 *   enqueue at t:  free(lap): CAS to full    full(lap) or later: t + 1    full(lap - 1): the ring is full    TOMB: closed
 *   dequeue at t:  full(lap): CAS to free    later: t + 1    free(lap): the ring is empty    TOMB: closed and drained
 *
 * Invariants
 *   I1  the state of a slot only grows; TOMB is last
 *   I2  tickets are enqueued without a gap: the enqueue of t succeeds only after each earlier ticket was enqueued
 *   I3  tickets are dequeued without a gap
 *   I4  a hint's ticket has at most as many before it as operations of its kind have succeeded
 *   I5  a value is written only together with free -> full (LTQ16), or before it into a cell that is nobody else's (LTQ64)
 * Pairs
 *   P1  fill(enqueue) -> look(dequeue): the value, and what it points to
 *   P2  drain(dequeue) -> look(enqueue): the slot is finished with; -> look(dequeue), failed drain(dequeue): what went in before
 *   P3  close -> start(enqueue), end(dequeue); bury -> look: what the closer did before
 *   P4  leave(hint) -> start(walk): the tickets below the hint are done, so their slots show it
 *   S   look, fill, drain: seq_cst
 * Linearization. Success: the CAS of the slot. "Full": the load that saw full(lap - 1) at ticket t: by I2 tickets up to t - 1 were
 *   enqueued, by I3 none from t - n on was dequeued, so the ring held n. "Empty": the load that saw free(lap) at ticket t: tickets
 *   below were dequeued (I3), t was not enqueued.
 * Why S. P1, P2 and P4 make each of these answers right alone: a walk has acquired whatever it
 *   passed, so an item that went in before another came out is seen by those who see that the other
 *   is gone. (By a leap, too: whoever did ticket t had acquired all below t before its CAS, and a
 *   slot's states are one release sequence.) They do not make two answers right together. One
 *   thread fills slot 1 and reads in slot 0 that it is full; another drains slot 0 and reads in
 *   slot 1 that it is free: store buffering, and no order of the four has both "full" and "empty".
 *   So all looks, fills and drains are seq_cst. They have one order, in which each look finds the
 *   last fill or drain of its slot, and which agrees with the order in each thread and with what
 *   happened before what, through the hints (P4) or the callers' own synchronization. The
 *   operations take effect in that order, and I2, I3 and what is said above hold in it as on one
 *   processor. A look costs x86-64 nothing by that (it is a load), nor does a CAS (it is locked
 *   anyway); AArch64 has LDAR and CASAL for them; POWER and RISC-V pay one full fence before each.
 * Not in S: `closed` and a tombstone, since whoever knows of one is given no answer any more that
 *   the slots of others decide; and the take of a consumer that is alone, which has a fence (mpsc.c).
 * Closing. Enqueues that start later see `closed`. One that started earlier may still succeed, but a dequeue that finds the ring empty
 *   and closed first buries the free ticket (free -> TOMB by CAS): from then on every enqueue meets TOMB, and by I2 none passes
 *   it. So no accepted value is lost and the answer "closed and drained" is final.
 * Progress: lock-free. A failed CAS, or a ticket that turns out to be done after the walk came to rest on it, means that another
 *   operation succeeded meanwhile. A walk from a hint that is d tickets old looks at about 10 + 2 log2(d) slots.
 * ABA: a state belongs to one lap, and none returns: after 2^61 laps (LTQ16), or 2^(62 - b) where cells are numbered by b bits (LTQ64),
 *   the state has grown into TOMB, and the ring says that it is closed. That is after 2^60 enqueues or more; in LTQ64 of fewer than 32 slots,
 *   where b is 7, after 2^55 for each slot, which one slot reaches in years of nothing else.
 * Checked: stress/model/check_ring.c (small scopes, completely), tests/test_ring.c, stress/scenario_ring.c (loss, duplicates, order, both
 *   formats; threads stopped at random points).
 */
#ifndef WEIRI_RING_WALK_H
#define WEIRI_RING_WALK_H

#include "ring/layout.h"

enum { STEPS_BEFORE_LEAP = 8 };

/* The bit of TOMB in a look's state; states stay below it in both formats. */
#define STATE_TOMB (UINT64_C(1) << 32 << 30)

/* What a look at a slot found; `raw` and `value` are the format's own. */
struct look {
	uint64_t state;
	uint64_t raw;
	uint64_t value;
};

struct slot_format {
	/* [S; P1, P2 acquire] */
	struct look (*look)(const weir_ring *ring, size_t index);
	/* From `seen`, which was free, to full. 0: it has changed. [S; P1 release] */
	int (*fill)(weir_ring *ring, size_t index, const struct look *seen, uint64_t value);
	/* From `seen`, which was full, to free in the next lap; *value is what it held. 0: it has changed. [S; P2 release; failed: acquire] */
	int (*drain)(weir_ring *ring, size_t index, const struct look *seen, uint64_t *value);
	/* The same by the only thread that dequeues: what it saw full stays so, and a store will do. Returns the value. [P2 release] */
	uint64_t (*take)(weir_ring *ring, size_t index, const struct look *seen);
	/* From `seen`, which was free, to TOMB. 0: it has changed. [P3 release] */
	int (*bury)(weir_ring *ring, size_t index, const struct look *seen);
};

/*
 * Tickets are written lap << shift | index: no division, and they grow as they should. Where the capacity is no power of two, the
 * numbers behind the last index are left out.
 */
static WEIRI_ALWAYS_INLINE size_t index_of(struct weiri_ring_shape shape, uint64_t ticket)
{
	return (size_t)ticket & shape.mask;
}

static WEIRI_ALWAYS_INLINE uint64_t free_in(struct weiri_ring_shape shape, uint64_t ticket)
{
	return ticket >> shape.shift << 1;
}

static WEIRI_ALWAYS_INLINE uint64_t full_in(struct weiri_ring_shape shape, uint64_t ticket)
{
	return free_in(shape, ticket) + 1;
}

static WEIRI_ALWAYS_INLINE uint64_t next_of(struct weiri_ring_shape shape, uint64_t ticket)
{
	return WEIRI_LIKELY(index_of(shape, ticket + 1) != shape.end_index) ? ticket + 1 : (ticket | shape.mask) + 1;
}

/* How many tickets come before this one. */
static inline uint64_t number_of(const weir_ring *ring, uint64_t ticket)
{
	return (ticket >> ring->shape.shift) * ring->capacity + index_of(ring->shape, ticket);
}

static inline uint64_t ticket_of(const weir_ring *ring, uint64_t number)
{
	return number / ring->capacity << ring->shape.shift | number % ring->capacity;
}

/* What a slot's state is, at least, when a ticket is done with. */
enum done_by { BY_ENQUEUE = 1, BY_DEQUEUE = 2 };

static WEIRI_ALWAYS_INLINE int is_done(const weir_ring *ring, const struct slot_format *format, uint64_t ticket,
                                       enum done_by by)
{
	/* A tombstone keeps its lap: in a small ring the ticket may be of an earlier one. */
	return (format->look(ring, index_of(ring->shape, ticket)).state & (STATE_TOMB - 1)) >=
	       free_in(ring->shape, ticket) + by;
}

/* `ticket` is done: one behind the last that is, or was meanwhile. Leaps ever further, then halves what lies between. */
static WEIRI_COLD uint64_t leap(const weir_ring *ring, const struct slot_format *format, uint64_t ticket,
                                enum done_by by)
{
	uint64_t done = number_of(ring, ticket), reach = 1;

	for (; is_done(ring, format, ticket_of(ring, done + reach), by); reach *= 2)
		done += reach;
	for (; reach > 1; reach /= 2) {
		if (is_done(ring, format, ticket_of(ring, done + reach / 2), by))
			done += reach / 2;
	}
	return ticket_of(ring, done + 1);
}

/* On from `ticket`, which is done, after *steps of this walk. */
static WEIRI_ALWAYS_INLINE uint64_t walk_on(const weir_ring *ring, struct weiri_ring_shape shape,
                                            const struct slot_format *format, uint64_t ticket, unsigned *steps,
                                            enum done_by by)
{
	if (WEIRI_LIKELY(++*steps <= STEPS_BEFORE_LEAP))
		return next_of(shape, ticket);
	*steps = 0;
	return leap(ring, format, ticket, by);
}

/* The next operation may begin at `ticket`. */
static WEIRI_ALWAYS_INLINE void leave(_Atomic(uint64_t) *hint, uint64_t ticket)
{
	/* [P4 release] I4: the tickets below are done. */
	weiri_store_release(hint, ticket);
}

/* Where an operation may begin. */
static WEIRI_ALWAYS_INLINE uint64_t begin(const _Atomic(uint64_t) *hint)
{
	/* [P4 acquire] pairs with leave(). */
	return weiri_load_acquire(hint);
}

static WEIRI_ALWAYS_INLINE int is_closed(const weir_ring *ring)
{
	/* [P3 acquire] pairs with close. */
	return weiri_load_acquire(&ring->closed) != 0;
}

/*
 * Enqueues up to count values, from `ticket` on, where the ring is not closed or this enqueue was admitted before; returns how many.
 * *status says why it stopped short.
 */
static WEIRI_ALWAYS_INLINE size_t walk_enqueue(weir_ring *ring, const struct slot_format *format, uint64_t ticket,
                                               const uint64_t values[], size_t count, enum weir_status *status)
{
	const struct weiri_ring_shape shape = ring->shape;
	unsigned steps = 0;
	size_t done = 0;

	*status = WEIR_OK;
	while (done < count) {
		size_t index = index_of(shape, ticket);
		struct look seen = format->look(ring, index);

		if (WEIRI_LIKELY(seen.state == free_in(shape, ticket))) {
			if (WEIRI_LIKELY(format->fill(ring, index, &seen, values[done]))) {
				done++;
				ticket = next_of(shape, ticket);
			}
		} else if (seen.state < free_in(shape, ticket)) {
			*status = WEIR_WOULD_BLOCK;
			break;
		} else if (seen.state >= STATE_TOMB) { /* closed: no later ticket can be filled */
			*status = WEIR_CANCELLED;
			break;
		} else {
			ticket = walk_on(ring, shape, format, ticket, &steps, BY_ENQUEUE);
		}
	}
	if (WEIRI_LIKELY(done != 0))
		leave(&ring->tail_hint, ticket);
	return done;
}

/* Found free(lap) at `ticket`. 1: this is the end, *status says which. 0: look again. */
static WEIRI_ALWAYS_INLINE int end_of_ring(weir_ring *ring, const struct slot_format *format, uint64_t ticket,
                                           const struct look *seen, enum weiri_ring_at_end at_end,
                                           enum weir_status *status)
{
	*status = WEIR_WOULD_BLOCK;
	if (WEIRI_LIKELY(!is_closed(ring)) || at_end == WEIRI_RING_LEAVE)
		return 1;
	*status = WEIR_OUT_OF_RANGE;
	return format->bury(ring, index_of(ring->shape, ticket), seen);
}

/* Dequeues up to count values, from `ticket` on; returns how many. *status says why it stopped short. `before`: see layout.h. */
static WEIRI_ALWAYS_INLINE size_t walk_dequeue(weir_ring *ring, const struct slot_format *format, uint64_t ticket,
                                               uint64_t values[], size_t count, enum weiri_ring_at_end at_end,
                                               weiri_ring_before *before, enum weir_status *status)
{
	const struct weiri_ring_shape shape = ring->shape;
	unsigned steps = 0;
	size_t done = 0;

	*status = WEIR_OK;
	while (done < count) {
		size_t index = index_of(shape, ticket);
		struct look seen = format->look(ring, index);

		/* [acquire] after the look: who sees a value sees what was put before it earlier. The rest is the owner's of `before`. */
		if (before != NULL && WEIRI_UNLIKELY(weiri_load_acquire(before) != NULL)) {
			*status = WEIR_ABORTED;
			break;
		}
		if (WEIRI_LIKELY(seen.state == full_in(shape, ticket))) {
			if (WEIRI_LIKELY(format->drain(ring, index, &seen, &values[done])))
				done++;
			ticket = next_of(shape, ticket); /* drained, by us or by another */
		} else if (seen.state == free_in(shape, ticket)) {
			if (end_of_ring(ring, format, ticket, &seen, at_end, status))
				break;
			*status = WEIR_OK;
		} else if (seen.state >= STATE_TOMB) { /* closed and drained */
			*status = WEIR_OUT_OF_RANGE;
			break;
		} else {
			ticket = walk_on(ring, shape, format, ticket, &steps, BY_DEQUEUE);
		}
	}
	if (WEIRI_LIKELY(done != 0))
		leave(&ring->head_hint, ticket);
	return done;
}

/* The only thread that dequeues found the head free. 1: it has taken since its last fence; here is one, and it looks again. */
static inline int fence_behind_takes(weir_ring *ring, uint64_t ticket)
{
	if (ring->fenced_head == ticket)
		return 0;
	ring->fenced_head = ticket;
	/* [seq_cst F1] take() stored, "empty" looks: Dekker with fill() and the look that says "full" (mpsc.c). */
	weiri_fence_seq_cst();
	return 1;
}

/*
 * As walk_dequeue() for the only thread that dequeues (mpsc.c): head_hint is then no hint but the head itself, and nobody is in its way.
 * Its answers are acquired as there: the slot at the head was seen free after all that stood before it had come out, by this thread.
 */
static WEIRI_ALWAYS_INLINE size_t walk_dequeue_alone(weir_ring *ring, const struct slot_format *format,
                                                     uint64_t values[], size_t count, enum weir_status *status)
{
	const struct weiri_ring_shape shape = ring->shape;
	/* [relaxed] this thread alone writes it; others read it only to tell a size. */
	uint64_t ticket = weiri_load_relaxed(&ring->head_hint);
	size_t done = 0;

	*status = WEIR_OK;
	while (done < count) {
		size_t index = index_of(shape, ticket);
		struct look seen = format->look(ring, index);

		if (WEIRI_LIKELY(seen.state == full_in(shape, ticket))) {
			values[done++] = format->take(ring, index, &seen);
			ticket = next_of(shape, ticket);
		} else if (seen.state >= STATE_TOMB) { /* closed and drained, as was said before */
			*status = WEIR_OUT_OF_RANGE;
			break;
		} else if (done == 0 && fence_behind_takes(ring, ticket)) {
			continue; /* a batch that is cut short does not say "empty" */
		} else if (end_of_ring(ring, format, ticket, &seen, WEIRI_RING_SEAL, status)) {
			break;
		} else { /* an enqueue was faster than the tombstone */
			*status = WEIR_OK;
		}
	}
	if (done != 0)
		weiri_store_relaxed(&ring->head_hint, ticket);
	return done;
}

/* The usual case of one value. 0: nothing was done. */
static WEIRI_ALWAYS_INLINE int dequeue_alone_at_head(weir_ring *ring, const struct slot_format *format, uint64_t *value)
{
	const struct weiri_ring_shape shape = ring->shape;
	uint64_t ticket = weiri_load_relaxed(&ring->head_hint); /* [relaxed] as above */
	struct look seen = format->look(ring, index_of(shape, ticket));

	if (WEIRI_UNLIKELY(seen.state != full_in(shape, ticket)))
		return 0;
	*value = format->take(ring, index_of(shape, ticket), &seen);
	weiri_store_relaxed(&ring->head_hint, next_of(shape, ticket));
	return 1;
}

/* Whether walk_dequeue() would find a value. Linearization: as there. */
static inline int walk_has_value(const weir_ring *ring, const struct slot_format *format)
{
	const struct weiri_ring_shape shape = ring->shape;
	uint64_t ticket = begin(&ring->head_hint);
	unsigned steps = 0;

	for (;;) {
		uint64_t state = format->look(ring, index_of(shape, ticket)).state;

		if (state == full_in(shape, ticket))
			return 1;
		if (state == free_in(shape, ticket) || state >= STATE_TOMB)
			return 0;
		ticket = walk_on(ring, shape, format, ticket, &steps, BY_DEQUEUE);
	}
}

/* Whether walk_enqueue() would find a free ticket, were it admitted. Linearization: as there. */
static inline int walk_has_room(const weir_ring *ring, const struct slot_format *format)
{
	const struct weiri_ring_shape shape = ring->shape;
	uint64_t ticket = begin(&ring->tail_hint);
	unsigned steps = 0;

	for (;;) {
		uint64_t state = format->look(ring, index_of(shape, ticket)).state;

		if (state == free_in(shape, ticket))
			return 1;
		if (state < free_in(shape, ticket) || state >= STATE_TOMB)
			return 0;
		ticket = walk_on(ring, shape, format, ticket, &steps, BY_ENQUEUE);
	}
}

/* The usual case of one value: the walk ends where it begins. 0: nothing was done. */
static WEIRI_ALWAYS_INLINE int enqueue_at(weir_ring *ring, const struct slot_format *format, uint64_t ticket,
                                          uint64_t value)
{
	const struct weiri_ring_shape shape = ring->shape;
	uint64_t next = next_of(shape, ticket);
	struct look seen = format->look(ring, index_of(shape, ticket));

	if (WEIRI_UNLIKELY(seen.state != free_in(shape, ticket)) ||
	    WEIRI_UNLIKELY(!format->fill(ring, index_of(shape, ticket), &seen, value)))
		return 0;
	leave(&ring->tail_hint, next);
	return 1;
}

static WEIRI_ALWAYS_INLINE int dequeue_at(weir_ring *ring, const struct slot_format *format, uint64_t ticket,
                                          uint64_t *value)
{
	const struct weiri_ring_shape shape = ring->shape;
	uint64_t next = next_of(shape, ticket);
	struct look seen = format->look(ring, index_of(shape, ticket));

	if (WEIRI_UNLIKELY(seen.state != full_in(shape, ticket)) ||
	    WEIRI_UNLIKELY(!format->drain(ring, index_of(shape, ticket), &seen, value)))
		return 0;
	leave(&ring->head_hint, next);
	return 1;
}

/* The first ticket that is not done yet. Wait-free: each leap doubles what it reaches. */
static inline uint64_t walk_to_end(const weir_ring *ring, const struct slot_format *format,
                                   const _Atomic(uint64_t) *hint, enum done_by by)
{
	/* [relaxed] a hint: the tickets below it are done, whether their slots show it to us yet or not. */
	uint64_t ticket = weiri_load_relaxed(hint);

	return is_done(ring, format, ticket, by) ? leap(ring, format, ticket, by) : ticket;
}

/*
 * By I2 and I3 as many as there are tickets that are done. What came out went in before: the hint that tells of it may be newer than what its
 * reader sees of the slots, and of the other hint.
 */
static inline struct weiri_ring_counts walk_counts(const weir_ring *ring, const struct slot_format *format)
{
	uint64_t out = number_of(ring, walk_to_end(ring, format, &ring->head_hint, BY_DEQUEUE));
	uint64_t in = number_of(ring, walk_to_end(ring, format, &ring->tail_hint, BY_ENQUEUE));

	return (struct weiri_ring_counts){in > out ? in : out, out};
}

#endif
