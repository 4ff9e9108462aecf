/*
 * spsc.c - one producer, one consumer: a ring of two indices.
 *
 * Algorithm. Values are numbered. The tail is the number of the next value to go in; only the
 * producer writes it. The head is the number of the next value to come out; only the consumer
 * writes it. Value i is in slot i mod the number of slots, which is the least power of two that is
 * not below the capacity. The capacity is exact, because the producer compares tail - head with it.
 * Each side keeps a copy of the index of the other side, and reads that index again only if the
 * copy shows too little room, or too few values. So while the ring is neither nearly full nor
 * nearly empty, neither side reads the line that the other side writes. A batch copies all its
 * values and then stores its index once.
 *
 *   enqueue at tail:  room by the copy: write the slot, store tail + 1
 *                     none: read the head; still none: fence, read the head; still none: "full"
 *   dequeue at head:  the same, with tail and head exchanged: "empty"
 *
 * Source. The ring of two indices, each written by one side: Lamport, "Specifying Concurrent
 * Program Modules" (TOPLAS 1983). Private copies of the index of the other side: MCRingBuffer (Lee,
 * Bu, Chandranmenon, IPDPS 2010), and Rigtorp's SPSCQueue; FastForward (Giacomoni, Moseley,
 * Vachharajani, PPoPP 2008) has the same aim, with no shared index at all. Ours adds refusals that
 * hold in C11 (F1) and a capacity that is no power of two.
 *
 * Indices wrap around. All comparisons are of differences, and the number of slots divides the
 * range of a size_t. The first index is FIRST, the last before the wrap, so every test crosses it.
 *
 * Invariants, of differences
 *   I1  head <= tail <= head + capacity
 *   I2  a copy is never ahead of its index: tail - capacity <= copy of the head <= head, and
 *       head <= copy of the tail <= tail
 *   I3  while `fenced` of a side is its index, its copy shows no room (no value)
 * Pairs
 *   P1  enqueue (tail) -> dequeue (tail): the values, and what they point to
 *   P2  dequeue (head) -> enqueue (head): the consumer has finished with the slots
 *   P3  dequeue (head) -> size (head): the tail that the consumer had read
 *   F1  producer: store of the tail, fence, load of the head;
 *       consumer: store of the head, fence, load of the tail
 * Slots are plain memory. By I1 and I2 the producer writes slots of the numbers tail to head +
 *   capacity - 1 only, which the consumer has left (P2), and the consumer reads those of head to
 *   tail - 1 only, which the producer has written (P1).
 * Linearization. Enqueue: the store of the tail. Dequeue: the store of the head. "Full": the last
 *   load of the head. "Empty": the last load of the tail. Each value of a batch is an operation of
 *   its own; they all take effect in one store, one after the other.
 * Why that is an order. Each side knows its own index and may see the other one late. An operation
 *   that is not seen counts as not done yet: "full" at tail t comes before the dequeue of t -
 *   capacity, and "empty" at head h before the enqueue of h. The calls of each side are in order.
 *   So the only cycle is this: "full" at t, before the dequeue of t - capacity, before "empty" at
 *   h, before the enqueue of h, before "full" at t (store buffering). Then h is above t - capacity,
 *   and the consumer has stored it; and t is above h, and the producer has stored it. F1 excludes
 *   that. Of the two fences one is first in S, and the side that runs the other one sees, in each
 *   later load, what the first side stored before its fence. So it does not refuse.
 * Two rings have an order each, and no common one: an enqueue runs no fence. Two threads may each
 *   enqueue in the ring of the other, and then both find their own ring empty.
 * Fences. A side that is about to refuse runs the fence and looks again, unless it has moved
 *   nothing since its last fence. So there is no fence while calls succeed, and one for a series of
 *   refusals. `fenced` is the index at which the fence ran. An index of 64 bits does not come back
 *   to it. One of 32 bits could, so there a look that finds room (a value) sets `fenced` one back: a
 *   side that moves a value after its fence has looked before, because its copy showed none (I3).
 * In step. A side that is refused at one index, and soon afterwards at a later one, pauses and looks once
 *   more before it refuses (in_step.h): otherwise the lines of the slots and of the indices would move for
 *   each value. That look comes after the fence at this index, and the refusal is that look. A batch makes
 *   no such pause: during it, large batches empty (fill) the ring, and then the sides take turns.
 * Handover of a role. The calls of the next thread happen after those of the previous thread, so
 *   they find the private words as they were left. A fence of the previous thread counts: it was
 *   followed by a load on that thread, and by coherence no later load returns an older index. A
 *   store of the previous thread counts for a fence of the next thread as in C++20, where it is
 *   enough that the store happens before the fence.
 * Size. A thread that has no role may read the two indices at two moments. It reads the head first.
 *   The consumer had read a tail that was not below this head, so the tail that is read next is not
 *   below it either (P3), and the size is not negative. It may be above the capacity, if values
 *   passed in between; then it is the capacity.
 * Progress: wait-free. An enqueue or dequeue is at most 5 atomic accesses and fences, a batch too,
 *   and a size is 2. One of a single value that runs in step is also one pause, one more look, and at most
 *   5 accesses to a word that gives advice.
 * Memory: 8 bytes per slot, and three lines that are apart.
 * Misuse. Two producers (consumers) at a time write (return) the same slot, and values are lost or
 *   come twice.
 * Checked: stress/model/check_spsc.c, tests/test_spsc.c, stress/scenario_spsc.c.
 */
#include <weir/spsc.h>

#include <string.h>

#include "base/assert.h"
#include "base/atomic.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/fetch.h"
#include "base/memory.h"
#include "base/options.h"
#include "ring/in_step.h"

#define FIRST SIZE_MAX

/* A loop copies so few values faster than a call of memcpy(). */
enum { FEW = 8 };

/* Of a side in step: longer than in a ring for many threads, because no other thread is to get ahead. */
enum { PAUSES = 128 };

/* So many slots ahead a producer of single values fetches the line that it will write, once for each line. */
enum { LINE_SLOTS = WEIRI_LINE / sizeof(uint64_t), AHEAD = 2 * LINE_SLOTS };

/* What one side writes. All but `index` is private to it. */
struct side {
	_Atomic(size_t) index;     /* the tail (producer) or the head (consumer) */
	size_t seen;               /* the index of the other side, when it was last read */
	size_t fenced;             /* `index`: this side has moved nothing since its last fence (I3) */
	_Atomic(uint64_t) refused; /* when this side was refused last (in_step.h) */
};

struct weir_spsc {
	/* Constant. */
	size_t capacity;
	size_t mask; /* the number of slots - 1 */
	size_t memory_size;
	weir_allocator allocator;

	WEIRI_ALIGNED_APART struct side producer;
	WEIRI_ALIGNED_APART struct side consumer;
	WEIRI_ALIGNED_APART uint64_t slots[];
};

static size_t slots_for(size_t capacity)
{
	size_t slots = 1;

	while (slots < capacity)
		slots *= 2;
	return slots;
}

static void begin_side(struct side *side, size_t fenced)
{
	weiri_store_relaxed(&side->index, FIRST); /* [relaxed] no other thread yet */
	side->seen = FIRST;
	side->fenced = fenced;
	weiri_store_relaxed(&side->refused, 0); /* [relaxed] likewise */
}

enum weir_status weir_spsc_create(size_t capacity, const struct weir_spsc_options *options, weir_spsc **out,
                                  weir_error *error)
{
	struct weir_spsc_options given;
	weir_allocator allocator;
	size_t slots, size;
	weir_spsc *spsc;
	enum weir_status status;

	if (out == NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "spsc queue: out is NULL");
	if (capacity == 0 || capacity > WEIR_SPSC_MAX_CAPACITY)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "spsc queue: capacity is %zu, must be 1 to %d", capacity,
		                  WEIR_SPSC_MAX_CAPACITY);
	status = weiri_options_read("spsc queue", options, &given, sizeof(given), error);
	if (status == WEIR_OK)
		status = weiri_options_flags("spsc queue", given.flags, 0, error);
	if (status != WEIR_OK)
		return status;
	allocator = weiri_allocator_or_default(given.allocator);
	slots = slots_for(capacity);
	size = sizeof(*spsc) + slots * sizeof(spsc->slots[0]);
	spsc = weiri_allocate(&allocator, size, WEIRI_APART);
	if (spsc == NULL)
		return weiri_fail(error, WEIR_RESOURCE_EXHAUSTED, "spsc queue: no memory for %zu values", capacity);
	spsc->capacity = capacity;
	spsc->mask = slots - 1;
	spsc->memory_size = size;
	spsc->allocator = allocator;
	begin_side(&spsc->producer, FIRST - 1); /* there is room (I3) */
	begin_side(&spsc->consumer, FIRST);     /* "empty" needs no fence yet */
	*out = spsc;
	return WEIR_OK;
}

/*
 * For the thread that has the role. It knows its own index and copy exactly; by coherence a peek at
 * the other index is not behind the copy.
 */
static WEIRI_UNSEEN void assert_producer(const weir_spsc *spsc)
{
	const struct side *side = &spsc->producer;
	size_t tail = weiri_peek(&side->index), head = weiri_peek(&spsc->consumer.index);

	WEIR_ASSERT2(I1, tail - head <= spsc->capacity);
	WEIR_ASSERT2(I2, head - side->seen <= tail - side->seen && tail - side->seen <= spsc->capacity);
	WEIR_ASSERT2(I3, side->fenced != tail || tail - side->seen == spsc->capacity);
}

static WEIRI_UNSEEN void assert_consumer(const weir_spsc *spsc)
{
	const struct side *side = &spsc->consumer;
	size_t head = weiri_peek(&side->index), tail = weiri_peek(&spsc->producer.index);

	WEIR_ASSERT2(I1, tail - head <= spsc->capacity);
	WEIR_ASSERT2(I2, side->seen - head <= tail - head);
	WEIR_ASSERT2(I3, side->fenced != head || side->seen == head);
}

enum weir_status weir_spsc_destroy(weir_spsc *spsc, weir_error *error)
{
	(void)error; /* it never fails */
	if (spsc != NULL) {
		weir_allocator allocator = spsc->allocator;

		WEIR_ASSERT_LOOK(assert_producer(spsc));
		WEIR_ASSERT_LOOK(assert_consumer(spsc));
		weiri_release(&allocator, spsc, spsc->memory_size, WEIRI_APART);
	}
	return WEIR_OK;
}

size_t weir_spsc_size_approx(const weir_spsc *spsc)
{
	size_t head, size;

	if (spsc == NULL)
		return 0;
	/* [P3 acquire] pairs with left(). The order of the two loads: see "Size". */
	head = weiri_load_acquire(&spsc->consumer.index);
	/* [relaxed] a count; P3 says which values of the tail it may have */
	size = weiri_load_relaxed(&spsc->producer.index) - head;
	return size < spsc->capacity ? size : spsc->capacity;
}

size_t weir_spsc_capacity(const weir_spsc *spsc)
{
	return spsc != NULL ? spsc->capacity : 0;
}

/* Returns how many of the slots from `index` on, but at most `count`, follow in memory. */
static WEIRI_ALWAYS_INLINE size_t run_from(const weir_spsc *spsc, size_t index, size_t count)
{
	size_t left = spsc->mask + 1 - (index & spsc->mask);

	return count < left ? count : left;
}

/* A look of this side, at its index, found room (a value). */
static WEIRI_ALWAYS_INLINE void found(struct side *side, size_t index, size_t seen)
{
	side->seen = seen;
	if (SIZE_MAX == UINT32_MAX && side->fenced != index)
		side->fenced = index - 1; /* the index may come round to it: see "Fences" */
}

/* -- producer ---------------------------------------------------------------------------------- */

/* Returns how many values fit. If any does, keeps the head that shows it. */
static WEIRI_ALWAYS_INLINE size_t look_at_head(weir_spsc *spsc, size_t tail)
{
	/* [P2 acquire] pairs with left(): the consumer has finished with the slots below. */
	size_t head = weiri_load_acquire(&spsc->consumer.index);
	size_t room = spsc->capacity - (tail - head);

	/* If there is none, writes nothing: the consumer may be looking for values on this line. */
	if (WEIRI_LIKELY(room != 0))
		found(&spsc->producer, tail, head);
	return room;
}

/*
 * Called when the producer saw no room. Runs the fence that its last enqueue still needs, and
 * returns the room seen then. Returns 0 if that fence has already run.
 */
static WEIRI_NOINLINE size_t room_behind_fence(weir_spsc *spsc, size_t tail)
{
	if (spsc->producer.fenced == tail)
		return 0;
	spsc->producer.fenced = tail;
	/* [seq_cst F1] the tail is stored, the head is loaded: Dekker with values_behind_fence(). */
	weiri_fence_seq_cst();
	return look_at_head(spsc, tail);
}

/*
 * Called when the producer saw no room behind its fence. If it runs in step with the consumer, pauses and
 * looks once more. Returns the room seen last.
 */
static WEIRI_COLD size_t room_behind_pause(weir_spsc *spsc, size_t tail)
{
	struct side *side = &spsc->producer;
	size_t room = 0;

	if (weiri_step_at(tail, &side->refused, WEIRI_STEP_FIRST, PAUSES) == WEIRI_STEP_PAUSED) {
		room = look_at_head(spsc, tail);
		if (room == 0)
			(void)weiri_step_at(tail, &side->refused, WEIRI_STEP_PAUSED, PAUSES);
	}
	return room;
}

/* Returns how many values fit: `wanted` at least, or as many as the head shows. */
static WEIRI_ALWAYS_INLINE size_t room_for(weir_spsc *spsc, size_t tail, size_t wanted)
{
	size_t room = spsc->capacity - (tail - spsc->producer.seen);

	if (WEIRI_LIKELY(room >= wanted))
		return room;
	room = look_at_head(spsc, tail);
	return WEIRI_LIKELY(room != 0) ? room : room_behind_fence(spsc, tail);
}

/* The slots below `tail` are written. */
static WEIRI_ALWAYS_INLINE void entered(weir_spsc *spsc, size_t tail)
{
	/* [P1 release] pairs with look_at_tail(). */
	weiri_store_release(&spsc->producer.index, tail);
}

enum weir_status weir_spsc_try_enqueue(weir_spsc *spsc, uint64_t value)
{
	size_t tail;

	if (WEIRI_UNLIKELY(spsc == NULL))
		return WEIR_INVALID_ARGUMENT;
	WEIR_ASSERT_LOOK(assert_producer(spsc));
	tail = weiri_load_relaxed(&spsc->producer.index); /* [relaxed] the producer's own */
	if (WEIRI_UNLIKELY(room_for(spsc, tail, 1) == 0) && room_behind_pause(spsc, tail) == 0)
		return WEIR_WOULD_BLOCK;
	if (tail % LINE_SLOTS == 0)
		weiri_fetch_to_write(&spsc->slots[(tail + AHEAD) & spsc->mask]);
	spsc->slots[tail & spsc->mask] = value;
	entered(spsc, tail + 1);
	return WEIR_OK;
}

static WEIRI_ALWAYS_INLINE void copy_in(weir_spsc *spsc, size_t tail, const uint64_t values[], size_t count)
{
	size_t mask = spsc->mask, run;

	if (count <= FEW) {
		for (size_t i = 0; i < count; i++)
			spsc->slots[(tail + i) & mask] = values[i];
		return;
	}
	run = run_from(spsc, tail, count);
	memcpy(&spsc->slots[tail & mask], values, run * sizeof(values[0]));
	if (count > run)
		memcpy(spsc->slots, &values[run], (count - run) * sizeof(values[0]));
}

enum weir_status weir_spsc_try_enqueue_many(weir_spsc *spsc, const uint64_t values[], size_t count, size_t *done)
{
	size_t tail, room, in;

	if (WEIRI_UNLIKELY(spsc == NULL || done == NULL || (values == NULL && count != 0)))
		return WEIR_INVALID_ARGUMENT;
	WEIR_ASSERT_LOOK(assert_producer(spsc));
	tail = weiri_load_relaxed(&spsc->producer.index); /* [relaxed] the producer's own */
	room = room_for(spsc, tail, count);
	*done = in = count < room ? count : room;
	if (WEIRI_UNLIKELY(in == 0))
		return count == 0 ? WEIR_OK : WEIR_WOULD_BLOCK;
	copy_in(spsc, tail, values, in);
	entered(spsc, tail + in);
	return WEIR_OK;
}

/* -- consumer ---------------------------------------------------------------------------------- */

/* Returns how many values are inside. If any is, keeps the tail that shows it. */
static WEIRI_ALWAYS_INLINE size_t look_at_tail(weir_spsc *spsc, size_t head)
{
	/* [P1 acquire] pairs with entered(): the slots below are written. */
	size_t tail = weiri_load_acquire(&spsc->producer.index);

	if (WEIRI_LIKELY(tail != head)) /* not otherwise: see look_at_head() */
		found(&spsc->consumer, head, tail);
	return tail - head;
}

/*
 * Called when the consumer saw no value. Runs the fence that its last dequeue still needs, and
 * returns the number of values seen then. Returns 0 if that fence has already run.
 */
static WEIRI_NOINLINE size_t values_behind_fence(weir_spsc *spsc, size_t head)
{
	if (spsc->consumer.fenced == head)
		return 0;
	spsc->consumer.fenced = head;
	/* [seq_cst F1] the head is stored, the tail is loaded: Dekker with room_behind_fence(). */
	weiri_fence_seq_cst();
	return look_at_tail(spsc, head);
}

/* As room_behind_pause(). Returns the number of values seen last. */
static WEIRI_COLD size_t values_behind_pause(weir_spsc *spsc, size_t head)
{
	struct side *side = &spsc->consumer;
	size_t inside = 0;

	if (weiri_step_at(head, &side->refused, WEIRI_STEP_FIRST, PAUSES) == WEIRI_STEP_PAUSED) {
		inside = look_at_tail(spsc, head);
		if (inside == 0)
			(void)weiri_step_at(head, &side->refused, WEIRI_STEP_PAUSED, PAUSES);
	}
	return inside;
}

/* Returns how many values are inside: `wanted` at least, or as many as the tail shows. */
static WEIRI_ALWAYS_INLINE size_t values_for(weir_spsc *spsc, size_t head, size_t wanted)
{
	size_t inside = spsc->consumer.seen - head;

	/* A consumer that keeps up looks each time, so the look is the straight way. */
	if (WEIRI_UNLIKELY(inside >= wanted))
		return inside;
	inside = look_at_tail(spsc, head);
	return WEIRI_LIKELY(inside != 0) ? inside : values_behind_fence(spsc, head);
}

/* The slots below `head` are read. */
static WEIRI_ALWAYS_INLINE void left(weir_spsc *spsc, size_t head)
{
	/* [P2, P3 release] pairs with look_at_head() and weir_spsc_size_approx(). */
	weiri_store_release(&spsc->consumer.index, head);
}

enum weir_status weir_spsc_try_dequeue(weir_spsc *spsc, uint64_t *value)
{
	size_t head;

	if (WEIRI_UNLIKELY(spsc == NULL || value == NULL))
		return WEIR_INVALID_ARGUMENT;
	WEIR_ASSERT_LOOK(assert_consumer(spsc));
	head = weiri_load_relaxed(&spsc->consumer.index); /* [relaxed] the consumer's own */
	if (WEIRI_UNLIKELY(values_for(spsc, head, 1) == 0) && values_behind_pause(spsc, head) == 0)
		return WEIR_WOULD_BLOCK;
	*value = spsc->slots[head & spsc->mask];
	left(spsc, head + 1);
	return WEIR_OK;
}

static WEIRI_ALWAYS_INLINE void copy_out(const weir_spsc *spsc, size_t head, uint64_t values[], size_t count)
{
	size_t mask = spsc->mask, run;

	if (count <= FEW) {
		for (size_t i = 0; i < count; i++)
			values[i] = spsc->slots[(head + i) & mask];
		return;
	}
	run = run_from(spsc, head, count);
	memcpy(values, &spsc->slots[head & mask], run * sizeof(values[0]));
	if (count > run)
		memcpy(&values[run], spsc->slots, (count - run) * sizeof(values[0]));
}

enum weir_status weir_spsc_try_dequeue_many(weir_spsc *spsc, uint64_t values[], size_t count, size_t *done)
{
	size_t head, inside, out;

	if (WEIRI_UNLIKELY(spsc == NULL || done == NULL || (values == NULL && count != 0)))
		return WEIR_INVALID_ARGUMENT;
	WEIR_ASSERT_LOOK(assert_consumer(spsc));
	head = weiri_load_relaxed(&spsc->consumer.index); /* [relaxed] the consumer's own */
	inside = values_for(spsc, head, count);
	*done = out = count < inside ? count : inside;
	if (WEIRI_UNLIKELY(out == 0))
		return count == 0 ? WEIR_OK : WEIR_WOULD_BLOCK;
	copy_out(spsc, head, values, out);
	left(spsc, head + out);
	return WEIR_OK;
}
