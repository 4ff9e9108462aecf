/*
 * span16.c - the span ring: a ring in which a batch is published as one.
 *
 * Algorithm. Items are numbered by tickets, as in LTQ (algorithm.h), but a slot describes a *span*:
 * the tickets first .. first + length - 1, which one enqueue published together. A span that begins
 * at ticket t stands in slot t mod N. The next one begins at t + length; the slots in between are
 * not touched in this lap. A slot is
 *
 *   state     {TOMB, lap of the first ticket, length}
 *   payload   the value itself (length 1), or the place of the values among the cells
 *
 * An enqueue of k values writes them into cells that no other thread writes, those of an *arena*,
 * and then publishes the span with one CAS16 of the slot at the tail. A single value needs no cell.
 * The tail is the first ticket that no span covers. It is found from a hint, as in LTQ: each span
 * says where the next one begins.
 *
 * The head is a word {ticket of a span's first value, offset in the span}. A dequeue of m values
 * reads the head, copies values out of as many spans as it needs, and moves the head behind them by
 * one CAS. If the CAS fails, another dequeue has moved the head, and the copies are thrown away.
 * Consumers do not write to slots.
 *
 * How many slots. The last ticket for which there is room is head + offset + capacity - 1, where
 * `head` is the ticket of the head's span. The slot of that span must not be filled again while a
 * part of it is inside. So N is the least power of two that is not below capacity + longest - 1,
 * where longest = min(capacity, LONGEST) is the greatest length.
 *
 * Why a second ring, beside LTQ. In LTQ a dequeue frees its slot by a CAS, so a batch costs a CAS
 * for each value. Here the only proof that a ticket was dequeued is the head, a word that all
 * consumers write and that a producer must read whenever its `limit` (below) is used up. While a
 * ring is nearly full, that is once for each value; LTQ finds the same in the slot that it is about
 * to fill anyway. So single values are slower here when one side runs at full speed beside another
 * (1/1 and 4/1 of `weir-bench --suite ring`, which measures both formats), and each ring is the
 * better one for its own use. A slot cannot serve both: if a dequeue of single values freed slots
 * and one of spans moved the head, then neither the slots nor the head would say alone what is gone.
 *
 * Who writes a cell, and who may still read it. There are ARENAS arenas of capacity + 2 * longest
 * cells. A thread borrows an arena by exchanging its `next` for NO_CELL, writes a span behind the last
 * one (or from the first cell, if it does not fit before the end), publishes it, and gives the arena
 * back with the new `next`. Nobody frees cells: an arena is so long that what is written over is gone.
 * When the arena's last span was published, its enqueue had seen a limit of at least its end, so at
 * most `capacity` values from there back were inside.
 * The arena's older values were dequeued, and the release of the head that says so happens before
 * the limit. Behind the next span of at most `longest` cells, and at most longest - 1 cells that
 * were skipped at the end, lie at least capacity + 1 cells of newer values. So a span is written
 * over cells of older ones. A slow dequeue may still read there, but its CAS fails: the head has
 * moved, and never comes back. That is why cells are read and written with relaxed atomics. For
 * the same reason a payload that does not belong to the state that was read with it is harmless
 * once it is known to be a place among the cells. If all arenas are borrowed, an enqueue publishes
 * its values one by one; so a stalled producer keeps an arena, and nothing else.
 *
 * Source. Ours, from LTQ. rte_ring of DPDK and BBQ (Wang et al., USENIX ATC 2022) move a batch with
 * O(1) read-modify-writes too, but they reserve tickets first and fill them afterwards, so a
 * producer that stalls in between hides what later ones have published. Publishing a private
 * buffer by one CAS is what lock-free stacks of batches do; here the ring's tickets keep it
 * bounded, FIFO and exact.
 *
 * Invariants
 *   N1  the state of a slot only grows; TOMB is last
 *   N2  spans follow each other without a gap: the span at t is published only after every earlier
 *       ticket is covered
 *   N3  the head only grows, and is never beyond the tail
 *   N4  tail - head <= capacity
 *   N5  tail_hint is the end of a span (or the first ticket), and limit <= head + capacity
 *   N6  if the head has an offset, its slot holds the span that it is in
 *   N7  a cell is written only while its arena is borrowed, and only if no span from the head on
 *       names it
 * Pairs
 *   P1  publish (enqueue) -> look (dequeue): the values, the cells, and what they point to
 *   P2  move (dequeue) -> read_limit, refresh_limit (enqueue): the cells have been read
 *       move (dequeue) -> begin (dequeue): what was enqueued before those values
 *   P3  close -> start (enqueue), end (dequeue); bury -> look: what the closer did before
 *   P4  leave (tail_hint) -> begin (enqueue): the tickets below the hint are covered
 *   P5  give_back (arena) -> borrow: the cells up to `next` are written, and P2
 *   S   look, publish, move, refresh_limit: seq_cst
 * Linearization. Enqueue: the CAS of the slot; all values of a span at once. Dequeue: the CAS of the
 *   head; all its values at once. "Full": the load of the head in refresh_limit(). By N2 the tail
 *   was at t when the slot was looked at, and it only grows, so the ring held at least t - head,
 *   that is capacity, values. "Empty": the look that found no span at the head's ticket t. Then the
 *   tail was at most t, and the head, which had been read before, at least t.
 *   A batch that ends early has looked once more after its CAS, so its end is exact, too.
 * Why S. As in algorithm.h: one thread fills and then reads the head, another moves the head and
 *   then looks at a slot. Acquire and release allow "full" and "empty" both. In the order S each
 *   look reads the last publish of its slot, and refresh_limit() the last move. The other reads of
 *   the head and the limit need only happens-before, which S agrees with: the head only grows, so
 *   an old limit proves room, and begin() is confirmed by the CAS.
 * Closing. As in algorithm.h. The tombstone is set by a CAS of the state of the slot at the tail,
 *   and every thread that meets TOMB, in any lap, knows that the ring is closed and drained.
 * Progress: lock-free. If a publish or a move fails, another has succeeded; likewise if the head's
 *   slot turns out to hold a newer span, or the tail turns out to be covered. An enqueue waits for
 *   no arena. If no other thread interferes, an enqueue of k values makes 1 + (k - 1) / longest
 *   spans. Each takes 2 read-modify-writes, the exchange for an arena and the CAS; a span of one
 *   value takes the CAS alone. A dequeue of m values takes 1.
 *   A walk from a hint that is d tickets old looks at about 10 + 2 log2(d) slots while spans have
 *   one length. A probe into the middle of a longer span finds nothing, so in the worst case it
 *   looks at each span of the last lap once.
 *   An operation that was overtaken pauses, as in algorithm.h: an enqueue when the ticket at the hint is
 *   covered, or its CAS fails; a dequeue when the head is not where this operation saw it last. A call of
 *   one value that runs in step with the other side pauses before it is refused (in_step.h).
 * Bound. LAST ticket: 2^56, or 2^54 laps. From there on the ring says "full". 500 million values a
 *   second take four years to that.
 * Mixed sizes: as in ltq16.c. On a machine without a CAS16 the file compiles to refusals.
 * Checked: stress/model/check_ring.c (small scopes, completely), tests/test_ring.c,
 *   stress/scenario_ring.c, scenario_stopped_ring.c, scenario_history_queue.c.
 */
#include "ring/span16.h"

#if defined(__x86_64__) && defined(__GCC_HAVE_SYNC_COMPARE_AND_SWAP_16)
#include "base/assert.h"
#include "ring/back_off.h"
#include "ring/in_step.h"
#include "ring/place.h"

enum { STEPS_BEFORE_LEAP = 8 };
enum { AT_ONCE = 4 }; /* values that one round of a copying loop moves */

/* The slot as one object; may_alias because its halves are accessed with their own types. */
__extension__ typedef unsigned __int128 __attribute__((may_alias)) whole;

/* The tail, its slot, and the state there. */
struct tail {
	uint64_t ticket;
	struct span_slot *slot;
	uint64_t seen;
};

static WEIRI_ALWAYS_INLINE uint64_t look(const struct span_slot *slot)
{
	/* [seq_cst S; P1, P3 acquire] pairs with publish() and bury(). */
	return weiri_load_seq_cst(&slot->state);
}

static WEIRI_ALWAYS_INLINE bool is_closed(const weir_ring *ring)
{
	/* [P3 acquire] pairs with close. */
	return weiri_load_acquire(&ring->closed) != 0;
}

/* Returns the greatest length of a span. */
static size_t longest(size_t capacity)
{
	return capacity < LONGEST ? capacity : (size_t)LONGEST;
}

/* -- the tail ---------------------------------------------------------------------------------- */

/* If a span begins at `ticket` or in a later lap of its slot, moves *boundary behind it. */
static bool probe(const weir_ring *ring, uint64_t ticket, uint64_t *boundary)
{
	/* A tombstone keeps the last span: in a small ring `ticket` may belong to an earlier lap. */
	uint64_t state = look(slot_of(ring, ticket)) & (SPAN_TOMB - 1);

	if (state < base_of(ring, ticket))
		return false;
	*boundary = end_of(ring, ticket, state);
	return true;
}

/*
 * Returns the end of a span that is not before `boundary`, which is one. Doubles the distance while
 * it meets the beginning of a span, then halves it.
 */
static WEIRI_COLD uint64_t leap(const weir_ring *ring, uint64_t boundary)
{
	uint64_t reach = 1;

	while (probe(ring, boundary + reach, &boundary))
		reach *= 2;
	for (; reach > 1; reach /= 2)
		(void)probe(ring, boundary + reach / 2, &boundary);
	return boundary;
}

static WEIRI_ALWAYS_INLINE void look_at_tail(const weir_ring *ring, struct tail *tail)
{
	tail->slot = slot_of(ring, tail->ticket);
	tail->seen = look(tail->slot);
}

/* Walks from tail->ticket to the tail. Returns false if the ring is closed and drained. */
static WEIRI_ALWAYS_INLINE bool find_tail(const weir_ring *ring, struct tail *tail, struct weiri_race *race)
{
	unsigned steps = 0;

	for (;;) {
		look_at_tail(ring, tail);
		if (WEIRI_UNLIKELY(tail->seen >= SPAN_TOMB))
			return false;
		if (WEIRI_LIKELY(tail->seen < base_of(ring, tail->ticket)))
			return true;
		tail->ticket = end_of(ring, tail->ticket, tail->seen);
		if (!race->goes_on) {
			tail->ticket = weiri_step_aside(&ring->tail_hint, tail->ticket, race);
		} else if (++steps > STEPS_BEFORE_LEAP) {
			steps = 0;
			tail->ticket = leap(ring, tail->ticket);
		}
	}
}

/* The first ticket that is never used: the words have no more bits. */
static uint64_t last_ticket(const weir_ring *ring)
{
	unsigned bits = LAP_BITS + ring->shape.shift;

	return (UINT64_C(1) << (bits < TICKET_BITS ? bits : TICKET_BITS)) - LONGEST;
}

/* Returns the limit as of now. Linearization of "full". */
static WEIRI_NOINLINE uint64_t refresh_limit(weir_ring *ring)
{
	/* [seq_cst S; P2 acquire] pairs with move(). */
	uint64_t head = weiri_load_seq_cst(&ring->head);
	uint64_t limit = ticket_in(head) + offset_in(head) + ring->capacity;

	if (WEIRI_UNLIKELY(limit > last_ticket(ring)))
		limit = last_ticket(ring);
	/* [P2 release] pairs with read_limit(). It may overwrite a newer limit, which is no harm. */
	weiri_store_release(&ring->limit, limit);
	return limit;
}

static WEIRI_ALWAYS_INLINE uint64_t read_limit(const weir_ring *ring)
{
	/* [P2 acquire] pairs with refresh_limit(). */
	return weiri_load_acquire(&ring->limit);
}

/* Returns how many of `count` values there is room for at the tail. 0: the ring is full. */
static WEIRI_ALWAYS_INLINE uint64_t room_for(weir_ring *ring, uint64_t ticket, uint64_t count)
{
	uint64_t limit = read_limit(ring);

	if (WEIRI_UNLIKELY(ticket + count > limit)) {
		limit = refresh_limit(ring);
		if (ticket >= limit)
			return 0;
	}
	return limit - ticket < count ? limit - ticket : count;
}

/*
 * Publishes a span of `length` values at the tail, for which there is room. Returns false if the
 * slot has changed.
 */
static WEIRI_ALWAYS_INLINE bool publish(weir_ring *ring, const struct tail *tail, uint64_t length, uint64_t payload)
{
	struct span_slot *slot = tail->slot;
	/* [relaxed] belongs to `seen` if the CAS succeeds: it changes only together with the state. */
	uint64_t old = weiri_load_relaxed(&slot->payload);
	whole seen = (whole)old << 64 | tail->seen;
	whole span = (whole)payload << 64 | base_of(ring, tail->ticket) | length;

	WEIR_ASSERT2(N1, tail->seen < (uint64_t)span);
	/* [S; P1 release] pairs with look(): a full barrier. */
	if (WEIRI_UNLIKELY(!__sync_bool_compare_and_swap((whole *)(void *)slot, seen, span)))
		return false;
	WEIR_ASSERT_INSTANT(weiri_span16_assert(ring));
	/* [P4 release] N5: the tickets below are covered. */
	weiri_store_release(&ring->tail_hint, tail->ticket + length);
	return true;
}

static WEIRI_ALWAYS_INLINE struct tail begin_at_tail(const weir_ring *ring)
{
	/* [P4 acquire] pairs with publish(). */
	return (struct tail){.ticket = weiri_load_acquire(&ring->tail_hint)};
}

/* Finds the tail and the room there, at most *length. Returns WEIR_OK if there is some. */
static WEIRI_ALWAYS_INLINE enum weir_status look_for_room(weir_ring *ring, struct tail *tail, struct weiri_race *race,
                                                          uint64_t *length)
{
	if (!find_tail(ring, tail, race))
		return WEIR_CANCELLED;
	*length = room_for(ring, tail->ticket, *length);
	return *length != 0 ? WEIR_OK : WEIR_WOULD_BLOCK;
}

/* -- enqueue ----------------------------------------------------------------------------------- */

static WEIRI_NOINLINE enum weir_status enqueue_from(weir_ring *ring, struct tail tail, uint64_t value)
{
	struct weiri_race race = {0};
	enum weir_status status;
	uint64_t one = 1;

	do
		status = look_for_room(ring, &tail, &race, &one);
	while (status == WEIR_OK && !publish(ring, &tail, 1, value));
	return status;
}

/* A producer that runs in step with the consumers pauses once before it is refused (in_step.h). */
static WEIRI_NOINLINE enum weir_status enqueue_in_step(weir_ring *ring, struct tail tail, uint64_t value)
{
	enum weiri_step step = WEIRI_STEP_FIRST;
	enum weir_status status;

	for (;;) {
		status = enqueue_from(ring, tail, value);
		if (status != WEIR_WOULD_BLOCK)
			return status;
		step = weiri_step(&ring->tail_hint, &ring->full_at, step);
		if (step != WEIRI_STEP_PAUSED)
			return status;
		tail = begin_at_tail(ring);
	}
}

enum weir_status weiri_span16_enqueue(weir_ring *ring, uint64_t value)
{
	struct tail tail = begin_at_tail(ring);

	if (WEIRI_UNLIKELY(is_closed(ring)))
		return WEIR_CANCELLED;
	look_at_tail(ring, &tail);
	if (WEIRI_LIKELY(tail.seen < base_of(ring, tail.ticket)) && WEIRI_LIKELY(tail.ticket < read_limit(ring)) &&
	    WEIRI_LIKELY(publish(ring, &tail, 1, value)))
		return WEIR_OK;
	return enqueue_in_step(ring, tail, value);
}

static WEIRI_ALWAYS_INLINE struct arena *arena_at(const weir_ring *ring, size_t index)
{
	return (struct arena *)ring->spares + index % ARENAS;
}

/* Returns the arena's `next`, after which the caller may write to it, or NO_CELL. */
static WEIRI_ALWAYS_INLINE int64_t borrow(struct arena *arena)
{
	/* [relaxed] a look first: it does not take the cache line from its owner. */
	if (weiri_load_relaxed(&arena->next) == NO_CELL)
		return NO_CELL;
	/* [P5 acquire] pairs with give_back(). */
	return weiri_exchange_acquire(&arena->next, NO_CELL);
}

/* Returns an arena that the caller may write to, and its `next`; or NULL. */
static struct arena *borrow_any(weir_ring *ring, uint64_t *next)
{
	const size_t first = weiri_first_place();

	for (size_t i = first; i < first + ARENAS; i++) {
		int64_t cell = borrow(arena_at(ring, i));

		if (cell == NO_CELL)
			continue;
		*next = (uint64_t)cell;
		return arena_at(ring, i);
	}
	return NULL;
}

/* Returns the cell at which a span of `length` values begins. */
static WEIRI_ALWAYS_INLINE uint64_t begin_of_span(const weir_ring *ring, const struct arena *arena, uint64_t next,
                                                  uint64_t length)
{
	return WEIRI_LIKELY(next + length <= arena->first + ring->arena_size) ? next : arena->first;
}

static WEIRI_ALWAYS_INLINE void give_back(struct arena *arena, uint64_t next)
{
	/* [P5 release] pairs with borrow(). No other thread writes an arena that is borrowed. */
	weiri_store_release(&arena->next, (int64_t)next);
}

static WEIRI_ALWAYS_INLINE void write_cells(weir_ring *ring, uint64_t place, const uint64_t values[], uint64_t length)
{
	_Atomic(uint64_t) *cells = ring->cells + place;

	WEIR_ASSERT2(N7, length <= longest(ring->capacity));
	WEIR_ASSERT_INSTANT(weiri_span16_assert_unused(ring, place, length));
	for (; length >= AT_ONCE; length -= AT_ONCE, cells += AT_ONCE, values += AT_ONCE) {
		/* [relaxed] N7; publish() makes them visible. Slow dequeues throw away what they read here. */
		weiri_store_relaxed(&cells[0], values[0]);
		weiri_store_relaxed(&cells[1], values[1]);
		weiri_store_relaxed(&cells[2], values[2]);
		weiri_store_relaxed(&cells[3], values[3]);
	}
	for (uint64_t i = 0; i < length; i++)
		weiri_store_relaxed(&cells[i], values[i]); /* [relaxed] likewise */
}

/*
 * Enqueues a span of up to `length` values, for which there was room at the tail. Returns its
 * length, or 0 and *status.
 */
static uint64_t enqueue_span(weir_ring *ring, struct tail *tail, struct weiri_race *race, const uint64_t values[],
                             uint64_t length, enum weir_status *status)
{
	uint64_t next;
	struct arena *arena = length > 1 ? borrow_any(ring, &next) : NULL;
	bool published = false;

	if (arena == NULL) {
		*status = enqueue_from(ring, *tail, values[0]);
		return *status == WEIR_OK;
	}
	next = begin_of_span(ring, arena, next, length);
	write_cells(ring, next, values, length);
	do /* the room may shrink, and then so does the span */
		published = publish(ring, tail, length, length > 1 ? next : values[0]);
	while (!published && (*status = look_for_room(ring, tail, race, &length)) == WEIR_OK);
	give_back(arena, published ? next + length : next);
	return published ? length : 0;
}

/* Enqueues up to `count` values. *status says why fewer went in. */
static WEIRI_NOINLINE size_t enqueue_spans(weir_ring *ring, const uint64_t values[], size_t count,
                                           enum weir_status *status)
{
	struct weiri_race race = {0};
	size_t done = 0;

	while (done < count) {
		struct tail tail = begin_at_tail(ring);
		/*
		 * No more than what an arena is made for: beside a tail that is old by now, the room may seem
		 * larger than the ring, and the cells are written before the publish fails.
		 */
		uint64_t length = count - done < longest(ring->capacity) ? count - done : longest(ring->capacity);

		*status = look_for_room(ring, &tail, &race, &length);
		if (*status == WEIR_OK)
			done += enqueue_span(ring, &tail, &race, values + done, length, status);
		if (*status != WEIR_OK)
			break;
	}
	return done;
}

/*
 * The common case of a batch: the walk ends where it begins, there is room for all values, and the
 * thread's own arena is free. Returns false if nothing was done.
 */
static WEIRI_ALWAYS_INLINE bool enqueue_batch_at(weir_ring *ring, struct tail tail, const uint64_t values[],
                                                 size_t count)
{
	struct arena *arena = arena_at(ring, weiri_first_place());
	int64_t cell;
	uint64_t next;
	bool published;

	if (WEIRI_UNLIKELY(count < 2 || count > longest(ring->capacity)))
		return false;
	look_at_tail(ring, &tail);
	if (WEIRI_UNLIKELY(tail.seen >= base_of(ring, tail.ticket)) ||
	    WEIRI_UNLIKELY(tail.ticket + count > read_limit(ring)) || WEIRI_UNLIKELY((cell = borrow(arena)) == NO_CELL))
		return false;
	next = begin_of_span(ring, arena, (uint64_t)cell, count);
	write_cells(ring, next, values, count);
	published = publish(ring, &tail, count, next);
	give_back(arena, published ? next + count : next);
	return published;
}

static size_t enqueue(weir_ring *ring, const uint64_t values[], size_t count, bool admitted, enum weir_status *status)
{
	struct tail tail = begin_at_tail(ring);

	*status = WEIR_CANCELLED;
	if (WEIRI_UNLIKELY(is_closed(ring)) && !admitted)
		return 0;
	*status = WEIR_OK;
	return WEIRI_LIKELY(enqueue_batch_at(ring, tail, values, count)) ? count
	                                                                 : enqueue_spans(ring, values, count, status);
}

/* -- dequeue ----------------------------------------------------------------------------------- */

/* What a dequeue has copied, and where the head is then to be. */
struct copy {
	uint64_t ticket, offset;
	size_t count;
};

/* Why a copy ended. */
enum copied {
	COPIED_ALL,     /* as many values as were wanted */
	COPIED_TO_END,  /* no span at copy->ticket */
	COPIED_TO_TOMB, /* closed and drained */
	COPY_PRECEDED,  /* other items must leave before the value at copy->ticket */
	COPY_STALE      /* the head has moved meanwhile */
};

static WEIRI_ALWAYS_INLINE uint64_t begin_at_head(const weir_ring *ring)
{
	/* [P2 acquire] pairs with move(). */
	return weiri_load_acquire(&ring->head);
}

/* Moves the head, from which values were copied. Returns false if it has moved meanwhile. */
static WEIRI_ALWAYS_INLINE bool move(weir_ring *ring, uint64_t head, uint64_t ticket, uint64_t offset)
{
	WEIR_ASSERT2(N3, head < (ticket << OFFSET_BITS | offset));
	/* [seq_cst S; P2 release] pairs with refresh_limit(): the cells have been read. */
	if (WEIRI_UNLIKELY(!weiri_cas_seq_cst(&ring->head, &head, ticket << OFFSET_BITS | offset)))
		return false;
	WEIR_ASSERT_INSTANT(weiri_span16_assert(ring));
	return true;
}

static WEIRI_ALWAYS_INLINE bool is_preceded(weiri_ring_before *before)
{
	/* [acquire] after the look: as in algorithm.h. */
	return before != NULL && weiri_load_acquire(before) != NULL;
}

static WEIRI_ALWAYS_INLINE void read_cells(const _Atomic(uint64_t) cells[], uint64_t values[], size_t count)
{
	for (; count >= AT_ONCE; count -= AT_ONCE, cells += AT_ONCE, values += AT_ONCE) {
		/* [relaxed] P1, or the CAS of the head fails. */
		values[0] = weiri_load_relaxed(&cells[0]);
		values[1] = weiri_load_relaxed(&cells[1]);
		values[2] = weiri_load_relaxed(&cells[2]);
		values[3] = weiri_load_relaxed(&cells[3]);
	}
	for (size_t i = 0; i < count; i++)
		values[i] = weiri_load_relaxed(&cells[i]); /* [relaxed] likewise */
}

/* Copies up to `count` values of the span in `slot`. Returns false if the payload is newer. */
static WEIRI_ALWAYS_INLINE bool copy_span(const weir_ring *ring, const struct span_slot *slot, struct copy *copy,
                                          uint64_t length, uint64_t values[], size_t count)
{
	/* [relaxed] belongs to the state, or the CAS of the head fails. */
	uint64_t payload = weiri_load_relaxed(&slot->payload);
	size_t n = length - copy->offset < count ? (size_t)(length - copy->offset) : count;

	if (length == 1) {
		values[0] = payload;
	} else {
		if (WEIRI_UNLIKELY(payload > ARENAS * ring->arena_size - length))
			return false;
		read_cells(ring->cells + payload + copy->offset, values, n);
	}
	copy->count += n;
	copy->offset += n;
	if (copy->offset == length) {
		copy->ticket += length;
		copy->offset = 0;
	}
	return true;
}

/* Copies values from the head on, until there are `count`. */
static enum copied copy_out(const weir_ring *ring, struct copy *copy, uint64_t values[], size_t count,
                            weiri_ring_before *before)
{
	while (copy->count < count) {
		const struct span_slot *slot = slot_of(ring, copy->ticket);
		uint64_t base = base_of(ring, copy->ticket), state = look(slot);

		if (WEIRI_UNLIKELY(is_preceded(before)))
			return COPY_PRECEDED;
		if (state < base)
			return COPIED_TO_END;
		if (WEIRI_UNLIKELY(state >= SPAN_TOMB))
			return COPIED_TO_TOMB;
		if (WEIRI_UNLIKELY(state - base > LONGEST)) /* a span of a later lap */
			return COPY_STALE;
		if (WEIRI_UNLIKELY(!copy_span(ring, slot, copy, state - base, values + copy->count, count - copy->count)))
			return COPY_STALE;
	}
	return COPIED_ALL;
}

/* Called when the ring was empty at `ticket`. Returns true if that is the answer, in *status. */
static bool end_of_ring(weir_ring *ring, uint64_t ticket, enum weiri_ring_at_end at_end, enum weir_status *status)
{
	struct span_slot *slot = slot_of(ring, ticket);
	uint64_t state;

	*status = WEIR_WOULD_BLOCK;
	if (WEIRI_LIKELY(!is_closed(ring)) || at_end == WEIRI_RING_LEAVE)
		return true;
	*status = WEIR_OUT_OF_RANGE;
	state = look(slot);
	/*
	 * [P3 release] pairs with look(): passes on the close. No acquire: look() acquired this state,
	 * and after a failure the caller looks again.
	 */
	return state >= SPAN_TOMB ||
	       (state < base_of(ring, ticket) && weiri_cas_release(&slot->state, &state, state | SPAN_TOMB));
}

/*
 * Dequeues up to `count` values. *status says why fewer came out. `head` is the head as this operation saw
 * it first.
 */
static WEIRI_NOINLINE size_t dequeue_spans(weir_ring *ring, uint64_t head, uint64_t values[], size_t count,
                                           enum weiri_ring_at_end at_end, weiri_ring_before *before,
                                           enum weir_status *status)
{
	struct weiri_race race = {0};
	size_t done = 0;

	*status = WEIR_OK;
	while (done < count) {
		uint64_t seen = head;
		struct copy copy;
		enum copied copied;

		head = begin_at_head(ring);
		if (head != seen) { /* another dequeue came first */
			weiri_back_off(&race);
			head = begin_at_head(ring);
		}
		copy = (struct copy){ticket_in(head), offset_in(head), 0};
		copied = copy_out(ring, &copy, values + done, count - done, before);
		if (copied == COPY_STALE)
			continue;
		if (copy.count != 0) { /* then it looks again, if that is not all */
			if (move(ring, head, copy.ticket, copy.offset)) {
				done += copy.count;
				head = copy.ticket << OFFSET_BITS | copy.offset;
			}
		} else if (copied == COPY_PRECEDED) {
			*status = WEIR_ABORTED;
			break;
		} else if (copied == COPIED_TO_TOMB) {
			*status = WEIR_OUT_OF_RANGE;
			break;
		} else if (end_of_ring(ring, copy.ticket, at_end, status)) {
			break;
		} else { /* an enqueue was faster than the tombstone */
			*status = WEIR_OK;
		}
	}
	return done;
}

/*
 * The common case of a batch: the span at the head has all values that are wanted. Returns false if
 * nothing was done.
 */
static WEIRI_ALWAYS_INLINE bool dequeue_batch_at(weir_ring *ring, uint64_t head, uint64_t values[], size_t count,
                                                 weiri_ring_before *before)
{
	struct copy copy = {ticket_in(head), offset_in(head), 0};
	const struct span_slot *slot = slot_of(ring, copy.ticket);
	uint64_t length = look(slot) - base_of(ring, copy.ticket);

	/* More than LONGEST, too, if no span begins there. */
	return WEIRI_LIKELY(length <= LONGEST) && WEIRI_LIKELY(count <= length - copy.offset) &&
	       WEIRI_LIKELY(!is_preceded(before)) && WEIRI_LIKELY(copy_span(ring, slot, &copy, length, values, count)) &&
	       WEIRI_LIKELY(move(ring, head, copy.ticket, copy.offset));
}

static size_t dequeue(weir_ring *ring, uint64_t values[], size_t count, enum weiri_ring_at_end at_end,
                      weiri_ring_before *before, enum weir_status *status)
{
	uint64_t head = begin_at_head(ring);

	*status = WEIR_OK;
	return count != 0 && WEIRI_LIKELY(dequeue_batch_at(ring, head, values, count, before))
	           ? count
	           : dequeue_spans(ring, head, values, count, at_end, before, status);
}

/* The common case: a span of one value at the head. Returns false if nothing was done. */
static WEIRI_ALWAYS_INLINE bool dequeue_at(weir_ring *ring, uint64_t head, weiri_ring_before *before, uint64_t *value)
{
	uint64_t ticket = ticket_in(head), held;
	const struct span_slot *slot = slot_of(ring, ticket);

	if (WEIRI_UNLIKELY(look(slot) != base_of(ring, ticket) + 1) || WEIRI_UNLIKELY(is_preceded(before)))
		return false;
	held = weiri_load_relaxed(&slot->payload); /* [relaxed] as in copy_span() */
	if (WEIRI_UNLIKELY(!move(ring, head, ticket + 1, 0)))
		return false;
	*value = held;
	return true;
}

static WEIRI_NOINLINE enum weir_status dequeue_one(weir_ring *ring, uint64_t head, uint64_t *value,
                                                   enum weiri_ring_at_end at_end, weiri_ring_before *before)
{
	enum weir_status status;
	uint64_t held;

	if (dequeue_spans(ring, head, &held, 1, at_end, before, &status) != 0)
		*value = held;
	return status;
}

/* The same for a consumer. */
static WEIRI_NOINLINE enum weir_status dequeue_in_step(weir_ring *ring, uint64_t head, uint64_t *value)
{
	enum weiri_step step = WEIRI_STEP_FIRST;
	enum weir_status status;

	for (;;) {
		status = dequeue_one(ring, head, value, WEIRI_RING_SEAL, NULL);
		if (status != WEIR_WOULD_BLOCK)
			return status;
		step = weiri_step(&ring->head, &ring->empty_at, step);
		if (step != WEIRI_STEP_PAUSED)
			return status;
		head = begin_at_head(ring);
	}
}

enum weir_status weiri_span16_dequeue(weir_ring *ring, uint64_t *value)
{
	uint64_t head = begin_at_head(ring);

	return WEIRI_LIKELY(dequeue_at(ring, head, NULL, value)) ? WEIR_OK : dequeue_in_step(ring, head, value);
}

enum weir_status weiri_span16_dequeue_behind(weir_ring *ring, uint64_t *value, weiri_ring_before *before)
{
	uint64_t head = begin_at_head(ring);

	return WEIRI_LIKELY(dequeue_at(ring, head, before, value))
	           ? WEIR_OK
	           : dequeue_one(ring, head, value, WEIRI_RING_LEAVE, before);
}

/* -- answers ----------------------------------------------------------------------------------- */

/*
 * Wait-free: the walk ends at the latest behind the last ticket for which there was room at the
 * first look. The tail was at each boundary that it passes after that look, at some moment.
 */
static struct weiri_ring_counts counts(const weir_ring *ring)
{
	uint64_t head = begin_at_head(ring);
	uint64_t out = ticket_in(head) + offset_in(head), ticket = begin_at_tail(ring).ticket;

	while (ticket < out + ring->capacity && probe(ring, ticket, &ticket))
		ticket = leap(ring, ticket);
	/* The hint that this thread sees may be older than the head. */
	ticket = ticket > out ? ticket : out;
	return (struct weiri_ring_counts){ticket - first_ticket(ring), out - first_ticket(ring)};
}

/* Linearization: as a refusal of dequeue(). */
static bool has_value(const weir_ring *ring)
{
	for (;;) {
		uint64_t ticket = ticket_in(begin_at_head(ring)), base = base_of(ring, ticket);
		uint64_t state = look(slot_of(ring, ticket));

		if (state < base || state >= SPAN_TOMB)
			return false;
		if (state - base <= LONGEST)
			return true;
	}
}

/* Linearization: as a refusal of enqueue(). */
static bool has_room(const weir_ring *ring)
{
	struct weiri_race race = {.goes_on = true};
	struct tail tail = begin_at_tail(ring);
	uint64_t head;

	if (!find_tail(ring, &tail, &race))
		return false;
	/* [seq_cst S; P2 acquire] as in refresh_limit(). */
	head = weiri_load_seq_cst(&ring->head);
	return tail.ticket < ticket_in(head) + offset_in(head) + ring->capacity && tail.ticket < last_ticket(ring);
}

const struct weiri_ring_ops weiri_span16_ops = {enqueue, dequeue, counts, has_value, has_room};

/* -- memory ------------------------------------------------------------------------------------ */

static size_t arena_size(size_t capacity)
{
	return capacity + 2 * longest(capacity);
}

/* Returns the shift of the number of slots. */
static unsigned slots_shift(size_t capacity)
{
	unsigned shift = 0;

	while ((size_t)1 << shift < capacity + longest(capacity) - 1)
		shift++;
	return shift;
}

size_t weiri_span16_slots_size(size_t capacity)
{
	return ARENAS * (sizeof(struct arena) + arena_size(capacity) * sizeof(uint64_t)) +
	       (sizeof(struct span_slot) << slots_shift(capacity));
}

void weiri_span16_init(weir_ring *ring, void *memory)
{
	struct arena *arenas = memory;
	struct span_slot *slots = (struct span_slot *)(void *)(arenas + ARENAS);

	ring->shape.shift = slots_shift(ring->capacity);
	ring->shape.mask = ((size_t)1 << ring->shape.shift) - 1;
	ring->spares = arenas;
	ring->slots = slots;
	ring->cells = (_Atomic(uint64_t) *)(void *)(slots + ring->shape.mask + 1);
	ring->arena_size = arena_size(ring->capacity);
	for (size_t i = 0; i < ARENAS; i++) {
		arenas[i].first = i * ring->arena_size;
		weiri_store_relaxed(&arenas[i].next, (int64_t)arenas[i].first); /* [relaxed] not published yet */
	}
	/* [relaxed] not published yet. */
	weiri_store_relaxed(&ring->tail_hint, first_ticket(ring));
	weiri_store_relaxed(&ring->limit, first_ticket(ring) + ring->capacity);
	weiri_store_relaxed(&ring->head, first_ticket(ring) << OFFSET_BITS);
}

#else

size_t weiri_span16_slots_size(size_t capacity)
{
	(void)capacity;
	return 0;
}

void weiri_span16_init(weir_ring *ring, void *memory)
{
	(void)ring, (void)memory;
}

enum weir_status weiri_span16_enqueue(weir_ring *ring, uint64_t value)
{
	return weiri_ltq16_enqueue(ring, value);
}

enum weir_status weiri_span16_dequeue(weir_ring *ring, uint64_t *value)
{
	return weiri_ltq16_dequeue(ring, value);
}

enum weir_status weiri_span16_dequeue_behind(weir_ring *ring, uint64_t *value, weiri_ring_before *before)
{
	return weiri_ltq16_dequeue_behind(ring, value, before);
}

#endif
