/*
 * spsc.c - one producer, one consumer: Concurrency Kit's ck_ring with an exact capacity.
 *
 * ck_ring needs a power of two and holds one value less than that. The ring made here is large
 * enough, and the producer counts the values inside before it enqueues. That count is exact for the
 * producer: it alone adds values, and a value that the consumer takes meanwhile only makes room.
 *
 * Pairs
 *   P1  enqueue -> dequeue. ck_ring stores the value, runs ck_pr_fence_store, and stores its tail.
 *       The consumer loads the tail, runs ck_pr_fence_load, and loads the value. This is release
 *       and acquire in inline assembly, which ThreadSanitizer does not see. So this file is built
 *       without its instrumentation, and annotations state P1.
 *   F1  producer: store of the tail, fence, load of the head;
 *       consumer: store of the head, fence, load of the tail
 * "Full" and "empty". Each side knows its own index and may see the index of the other side late.
 *   That alone is harmless: an operation that is not seen counts as not done yet. But suppose that
 *   both sides have just done something and each misses the operation of the other. Then one says
 *   "full" and the other says "empty", and no order of the calls has both: store buffering. So a
 *   side that is about to refuse first runs a fence and looks again, unless it has moved nothing
 *   since its last fence. While calls succeed there is no fence. (A side compares its index, of 32
 *   bits, with that at its last fence. So it wrongly leaves out a fence if it has moved exactly a
 *   multiple of 2^32 values since.)
 * Progress: wait-free; no loop in a single operation.
 */
#include <weir/spsc.h>

#include <ck_ring.h>

#include "base/annotate.h"
#include "base/atomic.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/options.h"

struct value {
	uint64_t bits;
};

/*
 * Defines ck_ring_enqueue_spsc_value() and its like for 64-bit values; the plain names are for
 * pointers.
 */
CK_RING_PROTOTYPE(value, value)

struct weir_spsc {
	ck_ring_t ring; /* keeps the producer's and the consumer's words on lines of their own */
	size_t capacity;
	size_t memory_size;
	weir_allocator allocator;
	WEIRI_ALIGNED_APART unsigned fenced_tail; /* producer only: the tail at its last fence */
	WEIRI_ALIGNED_APART unsigned fenced_head; /* consumer only: the head at its last fence */
	WEIRI_ALIGNED_APART struct value slots[];
};

static size_t slots_for(size_t capacity)
{
	size_t slots = 2;

	while (slots - 1 < capacity)
		slots *= 2;
	return slots;
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
	size = sizeof(*spsc) + slots * sizeof(struct value);
	spsc = weiri_allocate(&allocator, size, WEIRI_APART);
	if (spsc == NULL)
		return weiri_fail(error, WEIR_RESOURCE_EXHAUSTED, "spsc queue: no memory for %zu values", capacity);
	ck_ring_init(&spsc->ring, (unsigned)slots);
	spsc->fenced_tail = spsc->fenced_head = 0; /* as tail and head are */
	spsc->capacity = capacity;
	spsc->memory_size = size;
	spsc->allocator = allocator;
	*out = spsc;
	return WEIR_OK;
}

enum weir_status weir_spsc_destroy(weir_spsc *spsc, weir_error *error)
{
	(void)error; /* it never fails */
	if (spsc != NULL) {
		weir_allocator allocator = spsc->allocator;

		weiri_release(&allocator, spsc, spsc->memory_size, WEIRI_APART);
	}
	return WEIR_OK;
}

size_t weir_spsc_size_approx(const weir_spsc *spsc)
{
	return spsc != NULL ? ck_ring_size(&spsc->ring) : 0;
}

size_t weir_spsc_capacity(const weir_spsc *spsc)
{
	return spsc != NULL ? spsc->capacity : 0;
}

/* How many values the producer sees room for. */
static WEIRI_ALWAYS_INLINE size_t room_in(const weir_spsc *spsc)
{
	return spsc->capacity - ck_ring_size(&spsc->ring);
}

/*
 * Called when the producer saw no room. Runs the fence that its last put still needs, and returns
 * the room seen then. Returns 0 if that fence has already run.
 */
static WEIRI_NOINLINE size_t room_behind_fence(weir_spsc *spsc)
{
	if (spsc->fenced_tail == spsc->ring.p_tail)
		return 0;
	spsc->fenced_tail = spsc->ring.p_tail;
	/* [seq_cst F1] the tail is stored, the head is loaded: Dekker with empty_behind_fence(). */
	weiri_fence_seq_cst();
	return room_in(spsc);
}

/*
 * Called when the consumer saw no value. Runs the fence that its last take still needs, and looks
 * again. Returns 1 if there is no value.
 */
static WEIRI_NOINLINE int empty_behind_fence(weir_spsc *spsc)
{
	if (spsc->fenced_head == spsc->ring.c_head)
		return 1;
	spsc->fenced_head = spsc->ring.c_head;
	/* [seq_cst F1] the head is stored, the tail is loaded: Dekker with room_behind_fence(). */
	weiri_fence_seq_cst();
	return ck_ring_size(&spsc->ring) == 0;
}

static WEIRI_ALWAYS_INLINE int put(weir_spsc *spsc, uint64_t bits)
{
	struct value value = {bits};

	return ck_ring_enqueue_spsc_value(&spsc->ring, spsc->slots, &value);
}

static WEIRI_ALWAYS_INLINE int take(weir_spsc *spsc, uint64_t *bits)
{
	struct value value;

	while (WEIRI_UNLIKELY(!ck_ring_dequeue_spsc_value(&spsc->ring, spsc->slots, &value))) {
		if (empty_behind_fence(spsc))
			return 0;
	}
	*bits = value.bits;
	return 1;
}

enum weir_status weir_spsc_try_enqueue(weir_spsc *spsc, uint64_t value)
{
	if (WEIRI_UNLIKELY(spsc == NULL))
		return WEIR_INVALID_ARGUMENT;
	if (WEIRI_UNLIKELY(room_in(spsc) == 0) && room_behind_fence(spsc) == 0)
		return WEIR_WOULD_BLOCK;
	weiri_annotate_release(spsc); /* P1 */
	return put(spsc, value) ? WEIR_OK : WEIR_WOULD_BLOCK;
}

enum weir_status weir_spsc_try_dequeue(weir_spsc *spsc, uint64_t *value)
{
	if (WEIRI_UNLIKELY(spsc == NULL || value == NULL))
		return WEIR_INVALID_ARGUMENT;
	if (!take(spsc, value))
		return WEIR_WOULD_BLOCK;
	weiri_annotate_acquire(spsc); /* P1 */
	return WEIR_OK;
}

enum weir_status weir_spsc_try_enqueue_many(weir_spsc *spsc, const uint64_t values[], size_t count, size_t *done)
{
	size_t room, in = 0;

	if (spsc == NULL || done == NULL || (values == NULL && count != 0))
		return WEIR_INVALID_ARGUMENT;
	room = room_in(spsc);
	if (room == 0)
		room = room_behind_fence(spsc);
	weiri_annotate_release(spsc); /* P1 */
	while (in < count && in < room && put(spsc, values[in]))
		in++;
	*done = in;
	return in != 0 || count == 0 ? WEIR_OK : WEIR_WOULD_BLOCK;
}

enum weir_status weir_spsc_try_dequeue_many(weir_spsc *spsc, uint64_t values[], size_t count, size_t *done)
{
	size_t out = 0;

	if (spsc == NULL || done == NULL || (values == NULL && count != 0))
		return WEIR_INVALID_ARGUMENT;
	while (out < count && take(spsc, &values[out]))
		out++;
	weiri_annotate_acquire(spsc); /* P1 */
	*done = out;
	return out != 0 || count == 0 ? WEIR_OK : WEIR_WOULD_BLOCK;
}
