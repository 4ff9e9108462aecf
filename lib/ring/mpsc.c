/*
 * mpsc.c - many producers, one consumer: a ring whose consumer is alone.
 *
 * Algorithm. LTQ (walk.h), and it is a weir_ring in memory: producers, closing and sizes are the ring's. What being alone changes is the
 * dequeue (walk_dequeue_alone() in walk.h). A slot that is full is left so by every enqueue and by every close; only a dequeue takes it
 * on, and there is but one. So full(lap) -> free(lap + 1) is a store, where the ring needs a CAS that may fail; and the head is known
 * exactly, where the ring walks from a hint.
 *
 * Invariants: those of walk.h, and
 *   M1  head_hint is the ticket of the next value to come out, whenever no dequeue is under way
 * Pairs: P1 to P3 of walk.h; P4 for the producers' hint only; S for all but the take.
 *   F1  take, fence, the look that says "empty"; against fill, the look that says "full", both of S
 * Linearization. Dequeue: the store that frees the slot, in happens-before. It is a plain store, so
 *   on the clock a dequeue may have returned a moment before a producer can see the room; a fence
 *   to close that gap would cost what the CAS does. The rest as in walk.h, where the takes have
 *   places in S as late as may be: right before the first operation of S that can tell of them.
 * Why that is an order. What may contradict the place of a take is only a "full" that missed it,
 *   and so must come before it. All that can tell of a take comes later in S than such a "full".
 *   The fill of that slot in the next lap does, by the order of the slot's states, and so do all
 *   fills behind it (I2). A "full" by a thread that knows of the take is one at a later ticket, so
 *   it comes behind that fill. "Empty" does, by F1: the "full" that missed the take comes before
 *   the fence, and the fence before the look. "Closed and drained" needs no fence: nothing goes in
 *   after it, so it may come last of all. The fence runs where a call finds the head free first of
 *   all and the consumer has taken since the last one: once for each time that it empties the
 *   queue, and never while values are there.
 * Progress: a dequeue takes what is in the slot at the head or says that it is empty, a bounded number of steps; on a closed queue it
 *   tries to bury that slot, and tries again when an enqueue was faster: each time one that began before the close came in. Enqueues are
 *   lock-free as the ring's. There is no index to be claimed, so no producer stands between another's value and the consumer.
 * Misuse. Two dequeues at a time return values twice, and one that is late with its store takes the slot back to a lap that is past.
 * Checked: stress/model/check_ring.c (every scope of rings with one consumer), tests/test_mpsc.c, stress/scenario_ring.c (loss, duplicates,
 *   order, memory), scenario_history_queue.c, scenario_stopped_ring.c.
 */
#include <weir/mpsc.h>

#include "ring/ring.h"

/* There is no struct weir_mpsc: the name only keeps the two kinds of ring apart for the compiler. */
static WEIRI_ALWAYS_INLINE weir_ring *ring_of(weir_mpsc *mpsc)
{
	return (weir_ring *)(void *)mpsc;
}

static WEIRI_ALWAYS_INLINE const weir_ring *ring_in(const weir_mpsc *mpsc)
{
	return (const weir_ring *)(const void *)mpsc;
}

static size_t dequeue(weir_mpsc *mpsc, uint64_t values[], size_t count, enum weir_status *status)
{
	weir_ring *ring = ring_of(mpsc);

	return WEIRI_LIKELY(ring->format == WEIR_RING_FORMAT_LTQ16)
	           ? weiri_ltq16_dequeue_alone(ring, values, count, status)
	           : weiri_ltq64_dequeue_alone(ring, values, count, status);
}

enum weir_status weir_mpsc_create(size_t capacity, const struct weir_ring_options *options, weir_mpsc **out)
{
	weir_ring *ring;
	enum weir_status status = out != NULL ? weir_ring_create(capacity, options, &ring) : WEIR_INVALID_ARGUMENT;

	if (status == WEIR_OK)
		*out = (weir_mpsc *)(void *)ring;
	return status;
}

size_t weir_mpsc_memsize(size_t capacity, const struct weir_ring_options *options)
{
	return weir_ring_memsize(capacity, options);
}

enum weir_status weir_mpsc_init(void *memory, size_t size, size_t capacity, const struct weir_ring_options *options,
                                weir_mpsc **out)
{
	weir_ring *ring;
	enum weir_status status =
		out != NULL ? weir_ring_init(memory, size, capacity, options, &ring) : WEIR_INVALID_ARGUMENT;

	if (status == WEIR_OK)
		*out = (weir_mpsc *)(void *)ring;
	return status;
}

void weir_mpsc_destroy(weir_mpsc *mpsc)
{
	weir_ring_destroy(ring_of(mpsc));
}

enum weir_status weir_mpsc_try_enqueue(weir_mpsc *mpsc, uint64_t value)
{
	return weir_ring_try_enqueue(ring_of(mpsc), value);
}

enum weir_status weir_mpsc_try_dequeue(weir_mpsc *mpsc, uint64_t *value)
{
	weir_ring *ring = ring_of(mpsc);

	if (WEIRI_UNLIKELY(mpsc == NULL || value == NULL))
		return WEIR_INVALID_ARGUMENT;
	return WEIRI_LIKELY(ring->format == WEIR_RING_FORMAT_LTQ16) ? weiri_ltq16_dequeue_one_alone(ring, value)
	                                                            : weiri_ltq64_dequeue_one_alone(ring, value);
}

enum weir_status weir_mpsc_try_enqueue_many(weir_mpsc *mpsc, const uint64_t values[], size_t count, size_t *done)
{
	return weir_ring_try_enqueue_many(ring_of(mpsc), values, count, done);
}

enum weir_status weir_mpsc_try_dequeue_many(weir_mpsc *mpsc, uint64_t values[], size_t count, size_t *done)
{
	enum weir_status status;

	if (mpsc == NULL || done == NULL || (values == NULL && count != 0))
		return WEIR_INVALID_ARGUMENT;
	*done = dequeue(mpsc, values, count, &status);
	return *done != 0 || count == 0 ? WEIR_OK : status;
}

void weir_mpsc_close(weir_mpsc *mpsc)
{
	weir_ring_close(ring_of(mpsc));
}

int weir_mpsc_closed(const weir_mpsc *mpsc)
{
	return weir_ring_closed(ring_in(mpsc));
}

size_t weir_mpsc_capacity(const weir_mpsc *mpsc)
{
	return weir_ring_capacity(ring_in(mpsc));
}

size_t weir_mpsc_size_approx(const weir_mpsc *mpsc)
{
	return weir_ring_size_approx(ring_in(mpsc));
}
