/*
 * algorithm.h - LTQ, the lazy-index ticket ring: the algorithm, for both slot formats.
 *
 * Algorithm. Operations are numbered by tickets. On a ring of n slots, the t-th enqueue fills slot
 * t mod n in lap t / n, and the t-th dequeue empties it. A slot's state says how far it has come:
 *
 *   2 * lap       free for the enqueue of this lap
 *   2 * lap + 1   full: holds the value of this lap
 *   TOMB          free(lap) with the top bit set: the ring is closed, and this was its first free
 *                 ticket; never changes again
 *
 *   free(lap) -> full(lap) -> free(lap + 1)     free(lap) -> TOMB     no other transition
 *
 * No index is claimed first. An operation walks from a hint to the first ticket whose slot it can
 * use, and one CAS of that slot is the whole operation. So a thread that stalls anywhere leaves the
 * ring consistent. Head and tail are hints: after its CAS an operation stores, without a CAS, where
 * the next one may begin. Such a store may overwrite a newer hint, so a hint can go back. An old
 * hint only makes the walk longer, by the logarithm of its age: after a few slots the walk leaps,
 * as in a galloping search (Bentley and Yao 1976). The tickets that are done form a prefix, so the
 * search can leap.
 *
 *   enqueue at t:  free(lap): CAS to full    full(lap) or later: go to t + 1
 *                  full(lap - 1): the ring is full    TOMB: closed
 *   dequeue at t:  full(lap): CAS to free    later: go to t + 1
 *                  free(lap): the ring is empty    TOMB: closed and drained
 *
 * Source. A state per slot, compared with the lap of the operation, comes from Vyukov's bounded
 * MPMC queue (2010) and from SCQ (Nikolaev, DISC 2019); both claim an index first. NBLFQ (Denis and
 * Goedefroit, IPDPS 2025) is the published queue that is closest to LTQ. In NBLFQ as in LTQ, one
 * CAS of a slot, which holds the value and a counter together, is the whole operation, and head and
 * tail are stored lazily after it. The differences, as far as public implementations of that paper
 * show:
 *   - NBLFQ compares the counters of two neighbouring slots, and finds the head or tail at a jump
 *     between them. Here one slot and the ticket decide, because a hint is a whole ticket and not
 *     an index. So a ring of capacity 1 works, and a refusal is one load, which is its
 *     linearization point.
 *   - NBLFQ walks slot by slot from an old index; here the walk leaps, and is logarithmic.
 *   - LTQ adds closing with an exact end (TOMB), refusals that hold in C11 (S below), and whole
 *     64-bit values on machines without a CAS of two words (ltq64.c).
 *
 * Invariants
 *   I1  the state of a slot only grows; TOMB is last
 *   I2  tickets are enqueued without a gap: the enqueue of t succeeds only after each earlier
 *       ticket was enqueued
 *   I3  tickets are dequeued without a gap
 *   I4  at most as many tickets lie below a hint as operations of its kind have succeeded
 *   I5  a value is written only together with free -> full (LTQ16), or before it, into a cell that
 *       no other thread uses (LTQ64)
 * Pairs
 *   P1  fill (enqueue) -> look (dequeue): the value, and what it points to
 *   P2  drain (dequeue) -> look (enqueue): the dequeue has finished with the slot;
 *       drain (dequeue) -> look or failed drain (dequeue): what was enqueued before that value
 *   P3  close -> start (enqueue), end (dequeue); bury -> look: what the closer did before
 *   P4  leave (hint) -> begin (walk): the tickets below the hint are done, and their slots show it
 *   S   look, fill, drain: seq_cst
 * Linearization. Success: the CAS of the slot. "Full": the load that read full(lap - 1) at ticket
 *   t. By I2 the tickets up to t - 1 were enqueued, by I3 none from t - n on was dequeued, so the
 *   ring held n values. "Empty": the load that read free(lap) at ticket t. By I3 the tickets below
 *   t were dequeued, and t was not enqueued.
 * Why S. P1, P2 and P4 make each refusal correct alone. A walk has acquired every slot that it
 *   passed, so a thread that sees a value gone also sees the values that were enqueued before it.
 *   (The same holds after a leap: the thread that did ticket t had acquired all tickets below t
 *   before its CAS, and the states of a slot form one release sequence.) They do not make two
 *   refusals correct together. One thread fills slot 1 and then reads that slot 0 is full; another
 *   drains slot 0 and then reads that slot 1 is free. This is store buffering, and no order of the
 *   four operations allows both "full" and "empty". Therefore all looks, fills and drains are
 *   seq_cst. They have one total order, in which each look reads the last fill or drain of its
 *   slot. That order agrees with program order. It agrees with happens-before too, whether that
 *   comes from the hints (P4) or from the callers' own synchronization. Operations take effect in
 *   that order, and I2, I3 and the arguments above hold in it as on one processor. On x86-64 this
 *   costs nothing: a look stays a plain load, and a CAS is locked in any case. AArch64 has LDAR and
 *   CASAL; POWER and RISC-V pay a full fence each time.
 * Not in S: `closed` and the tombstone, because a thread that knows of one gets no more answers
 *   that depend on other slots.
 * Closing. Enqueues that start later see `closed`. An enqueue that started earlier may still
 *   succeed. A dequeue that finds the ring empty and closed therefore buries the free ticket first
 *   (free -> TOMB by CAS). From then on every enqueue meets TOMB, and by I2 none passes it. So no
 *   accepted value is lost, and the answer "closed and drained" is final.
 * Overtaken. All producers want one slot, and all consumers one other. An operation that lost its CAS,
 *   or that finds its ticket done, was overtaken: it pauses, for longer than others need for many
 *   operations, and goes on at the hint (back_off.h). Meanwhile the slots and the hint stay in the
 *   cache of the thread that is ahead. Without the pause each operation waits several times for a
 *   line that another processor has just taken. A ticket may be done only because the hint was old;
 *   then the hint does not move during the pause, and the walk makes no other one.
 * Progress: lock-free. If a CAS fails, or a ticket turns out to be done after the walk reached it,
 *   another operation has succeeded meanwhile. A pause ends whatever other threads do. A walk from a
 *   hint that is d tickets old looks at about 10 + 2 log2(d) slots.
 * ABA: a state belongs to one lap and does not come back. After 2^61 laps (LTQ16), or 2^(62 - b)
 *   laps where cells have numbers of b bits (LTQ64), the state grows into TOMB, and the ring
 *   reports that it is closed. That takes at least 2^60 enqueues. In LTQ64 with fewer than 32
 *   slots, where b is 7, it takes 2^55 enqueues for each slot: years, even if threads do nothing
 *   else.
 * Checked: stress/model/check_ring.c (small scopes, completely), tests/test_ring.c,
 *   stress/scenario_ring.c (loss, duplicates, order, both formats, threads stopped at random
 *   points).
 */
#ifndef WEIRI_RING_ALGORITHM_H
#define WEIRI_RING_ALGORITHM_H

#include "base/assert.h"
#include "ring/back_off.h"
#include "ring/layout.h"

enum { STEPS_BEFORE_LEAP = 8 };

/* The bit of TOMB in a look's state; states stay below it in both formats. */
#define STATE_TOMB (UINT64_C(1) << 32 << 30)

/* What a look at a slot found; `raw`, `value` and `slot` are the format's own. */
struct look {
	uint64_t state;
	uint64_t raw;
	uint64_t value;
	void *slot;
};

struct slot_format {
	/* [S; P1, P2 acquire] */
	struct look (*look)(const weir_ring *ring, size_t index);
	/* Fills the slot, which was free in `seen`. Returns false if it has changed. [S; P1 release] */
	bool (*fill)(weir_ring *ring, size_t index, const struct look *seen, uint64_t value);
	/*
	 * Drains the slot, which was full in `seen`: it is free in the next lap, and *value is what it
	 * held. Returns false if it has changed. [S; P2 release; acquire on failure]
	 */
	bool (*drain)(weir_ring *ring, size_t index, const struct look *seen, uint64_t *value);
	/* Buries the slot, which was free in `seen`. Returns false if it has changed. [P3 release] */
	bool (*bury)(weir_ring *ring, size_t index, const struct look *seen);
};

/*
 * A ticket is lap << shift | index, so that no division is needed and tickets grow in order. If the
 * capacity is not a power of two, the numbers behind the last index of each lap are skipped.
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

/* The number of tickets before this one. */
static inline uint64_t number_of(const weir_ring *ring, uint64_t ticket)
{
	return (ticket >> ring->shape.shift) * ring->capacity + index_of(ring->shape, ticket);
}

static inline uint64_t ticket_of(const weir_ring *ring, uint64_t number)
{
	return number / ring->capacity << ring->shape.shift | number % ring->capacity;
}

/* How far beyond free(lap) the state of a slot is, at least, when its ticket is done. */
enum done_by { BY_ENQUEUE = 1, BY_DEQUEUE = 2 };

static WEIRI_ALWAYS_INLINE bool is_done(const weir_ring *ring, const struct slot_format *format, uint64_t ticket,
                                        enum done_by by)
{
	/* A tombstone keeps its lap: in a small ring the ticket may belong to an earlier lap. */
	return (format->look(ring, index_of(ring->shape, ticket)).state & (STATE_TOMB - 1)) >=
	       free_in(ring->shape, ticket) + by;
}

/*
 * Called with a ticket that is done. Returns the ticket behind the last done one, as of some moment
 * of the call. Doubles the distance until a ticket is not done, then bisects.
 */
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

/* Leaves the hint that the next operation may begin at `ticket`. */
static WEIRI_ALWAYS_INLINE void leave(_Atomic(uint64_t) *hint, uint64_t ticket)
{
	/* [P4 release] I4: the tickets below are done. */
	weiri_store_release(hint, ticket);
}

/* Returns the ticket at which an operation may begin. */
static WEIRI_ALWAYS_INLINE uint64_t begin(const _Atomic(uint64_t) *hint)
{
	/* [P4 acquire] pairs with leave(). */
	return weiri_load_acquire(hint);
}

struct walk {
	unsigned steps; /* single steps since the last leap */
	struct weiri_race race;
};

/* Returns the next ticket of a walk; `ticket` is done. */
static WEIRI_ALWAYS_INLINE uint64_t walk_on(const weir_ring *ring, struct weiri_ring_shape shape,
                                            const struct slot_format *format, uint64_t ticket, struct walk *walk,
                                            enum done_by by)
{
	if (!walk->race.goes_on)
		return weiri_step_aside(by == BY_ENQUEUE ? &ring->tail_hint : &ring->head_hint, next_of(shape, ticket),
		                        &walk->race);
	if (WEIRI_LIKELY(++walk->steps <= STEPS_BEFORE_LEAP))
		return next_of(shape, ticket);
	walk->steps = 0;
	return leap(ring, format, ticket, by);
}

static WEIRI_ALWAYS_INLINE bool is_closed(const weir_ring *ring)
{
	/* [P3 acquire] pairs with close. */
	return weiri_load_acquire(&ring->closed) != 0;
}

/*
 * Enqueues up to count values, from `ticket` on, and returns how many. The ring is not closed, or
 * this enqueue was admitted before the close. *status says why the walk stopped short.
 */
static WEIRI_ALWAYS_INLINE size_t walk_enqueue(weir_ring *ring, const struct slot_format *format, uint64_t ticket,
                                               const uint64_t values[], size_t count, enum weir_status *status)
{
	const struct weiri_ring_shape shape = ring->shape;
	struct walk walk = {0};
	size_t done = 0;

	*status = WEIR_OK;
	while (done < count) {
		size_t index = index_of(shape, ticket);
		struct look seen = format->look(ring, index);

		if (WEIRI_LIKELY(seen.state == free_in(shape, ticket))) {
			if (WEIRI_LIKELY(format->fill(ring, index, &seen, values[done]))) {
				done++;
				ticket = next_of(shape, ticket);
			} else {
				ticket = weiri_step_aside(&ring->tail_hint, ticket, &walk.race);
			}
		} else if (seen.state < free_in(shape, ticket)) {
			*status = WEIR_WOULD_BLOCK;
			break;
		} else if (seen.state >= STATE_TOMB) { /* closed: no later ticket can be filled */
			*status = WEIR_CANCELLED;
			break;
		} else {
			ticket = walk_on(ring, shape, format, ticket, &walk, BY_ENQUEUE);
		}
	}
	WEIR_ASSERT_INSTANT(weiri_ring_assert_laps(ring));
	if (WEIRI_LIKELY(done != 0))
		leave(&ring->tail_hint, ticket);
	return done;
}

/*
 * Called for free(lap) at `ticket`. Returns true if the walk ends; *status says how. 0: look again.
 */
static WEIRI_ALWAYS_INLINE bool end_of_ring(weir_ring *ring, const struct slot_format *format, uint64_t ticket,
                                            const struct look *seen, enum weiri_ring_at_end at_end,
                                            enum weir_status *status)
{
	*status = WEIR_WOULD_BLOCK;
	if (WEIRI_LIKELY(!is_closed(ring)) || at_end == WEIRI_RING_LEAVE)
		return true;
	*status = WEIR_OUT_OF_RANGE;
	return format->bury(ring, index_of(ring->shape, ticket), seen);
}

/*
 * Called after a look at a value. Returns true if other items must leave before it. Where `before`
 * is NULL, the compiler drops the test.
 */
static WEIRI_ALWAYS_INLINE bool is_preceded(weiri_ring_before *before)
{
	/*
	 * [acquire] after the look: a thread that sees a value also sees what was given back before
	 * that value was enqueued. The rest of the proof stands with the owner of `before`
	 * (queue/store_ring.c).
	 */
	return before != NULL && weiri_load_acquire(before) != NULL;
}

/*
 * Dequeues up to count values, from `ticket` on, and returns how many. *status says why the walk
 * stopped short. `before`: see layout.h.
 */
static WEIRI_ALWAYS_INLINE size_t walk_dequeue(weir_ring *ring, const struct slot_format *format, uint64_t ticket,
                                               uint64_t values[], size_t count, enum weiri_ring_at_end at_end,
                                               weiri_ring_before *before, enum weir_status *status)
{
	const struct weiri_ring_shape shape = ring->shape;
	struct walk walk = {0};
	size_t done = 0;

	*status = WEIR_OK;
	while (done < count) {
		size_t index = index_of(shape, ticket);
		struct look seen = format->look(ring, index);

		if (WEIRI_UNLIKELY(is_preceded(before))) {
			*status = WEIR_ABORTED;
			break;
		}
		if (WEIRI_LIKELY(seen.state == full_in(shape, ticket))) {
			ticket = next_of(shape, ticket); /* drained in any case, by this thread or another */
			if (WEIRI_LIKELY(format->drain(ring, index, &seen, &values[done])))
				done++;
			else
				ticket = weiri_step_aside(&ring->head_hint, ticket, &walk.race);
		} else if (seen.state <= free_in(shape, ticket)) {
			/* Less only in damaged memory (shm/frames.c). */
			if (end_of_ring(ring, format, ticket, &seen, at_end, status))
				break;
			*status = WEIR_OK;
		} else if (seen.state >= STATE_TOMB) { /* closed and drained */
			*status = WEIR_OUT_OF_RANGE;
			break;
		} else {
			ticket = walk_on(ring, shape, format, ticket, &walk, BY_DEQUEUE);
		}
	}
	WEIR_ASSERT_INSTANT(weiri_ring_assert_laps(ring));
	if (WEIRI_LIKELY(done != 0))
		leave(&ring->head_hint, ticket);
	return done;
}

/* Returns true if walk_dequeue() would find a value. Linearization: as in walk_dequeue(). */
static inline bool walk_has_value(const weir_ring *ring, const struct slot_format *format)
{
	const struct weiri_ring_shape shape = ring->shape;
	uint64_t ticket = begin(&ring->head_hint);
	struct walk walk = {.race.goes_on = true};

	for (;;) {
		uint64_t state = format->look(ring, index_of(shape, ticket)).state;

		if (state == full_in(shape, ticket))
			return true;
		if (state == free_in(shape, ticket) || state >= STATE_TOMB)
			return false;
		ticket = walk_on(ring, shape, format, ticket, &walk, BY_DEQUEUE);
	}
}

/*
 * Returns true if walk_enqueue(), if admitted, would find a free ticket. Linearization: as in
 * walk_enqueue().
 */
static inline bool walk_has_room(const weir_ring *ring, const struct slot_format *format)
{
	const struct weiri_ring_shape shape = ring->shape;
	uint64_t ticket = begin(&ring->tail_hint);
	struct walk walk = {.race.goes_on = true};

	for (;;) {
		uint64_t state = format->look(ring, index_of(shape, ticket)).state;

		if (state == free_in(shape, ticket))
			return true;
		if (state < free_in(shape, ticket) || state >= STATE_TOMB)
			return false;
		ticket = walk_on(ring, shape, format, ticket, &walk, BY_ENQUEUE);
	}
}

/*
 * The common case of one value: the walk ends where it begins. Returns false if nothing was done.
 */
static WEIRI_ALWAYS_INLINE bool enqueue_at(weir_ring *ring, const struct slot_format *format, uint64_t ticket,
                                           uint64_t value)
{
	const struct weiri_ring_shape shape = ring->shape;
	uint64_t next = next_of(shape, ticket);
	struct look seen = format->look(ring, index_of(shape, ticket));

	if (WEIRI_UNLIKELY(seen.state != free_in(shape, ticket)) ||
	    WEIRI_UNLIKELY(!format->fill(ring, index_of(shape, ticket), &seen, value)))
		return false;
	WEIR_ASSERT_INSTANT(weiri_ring_assert_laps(ring));
	leave(&ring->tail_hint, next);
	return true;
}

static WEIRI_ALWAYS_INLINE bool dequeue_at(weir_ring *ring, const struct slot_format *format, uint64_t ticket,
                                           weiri_ring_before *before, uint64_t *value)
{
	const struct weiri_ring_shape shape = ring->shape;
	uint64_t next = next_of(shape, ticket);
	struct look seen = format->look(ring, index_of(shape, ticket));

	if (WEIRI_UNLIKELY(seen.state != full_in(shape, ticket)) || WEIRI_UNLIKELY(is_preceded(before)) ||
	    WEIRI_UNLIKELY(!format->drain(ring, index_of(shape, ticket), &seen, value)))
		return false;
	WEIR_ASSERT_INSTANT(weiri_ring_assert_laps(ring));
	leave(&ring->head_hint, next);
	return true;
}

/* Returns the first ticket that is not done yet. Wait-free: a leap doubles its reach each time. */
static inline uint64_t walk_to_end(const weir_ring *ring, const struct slot_format *format,
                                   const _Atomic(uint64_t) *hint, enum done_by by)
{
	/*
	 * [relaxed] a hint: the tickets below it are done, whether their slots show it to us yet or
	 * not.
	 */
	uint64_t ticket = weiri_load_relaxed(hint);

	return is_done(ring, format, ticket, by) ? leap(ring, format, ticket, by) : ticket;
}

/*
 * By I2 and I3 the counts are the numbers of tickets that are done. `in` is at least `out`, since a
 * value goes in before it comes out; the head hint may be newer than the slots and the tail hint
 * that this thread sees.
 */
static inline struct weiri_ring_counts walk_counts(const weir_ring *ring, const struct slot_format *format)
{
	uint64_t out = number_of(ring, walk_to_end(ring, format, &ring->head_hint, BY_DEQUEUE));
	uint64_t in = number_of(ring, walk_to_end(ring, format, &ring->tail_hint, BY_ENQUEUE));

	return (struct weiri_ring_counts){in > out ? in : out, out};
}

#endif
