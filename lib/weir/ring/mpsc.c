/*
 * mpsc.c - many producers, one consumer: a ring whose consumer is alone.
 *
 * Algorithm. LTQ (algorithm.h). In memory it is a weir_ring: producers, closing and sizes are the
 * ring's. The dequeue differs (walk_dequeue_alone() in algorithm.h). Enqueues and closes never
 * change a full slot; only a dequeue does, and only one thread dequeues. So full(lap) -> free(lap +
 * 1) is a plain store, where the ring needs a CAS that may fail. The head is known exactly, where
 * the ring walks from a hint.
 *
 * A queue in the SPAN16 format has the ring's own dequeue: its CAS is of the head, a line that no
 * other thread writes, so a store would gain little. All that follows is about the other formats.
 *
 * Invariants: those of algorithm.h, and
 *   M1  whenever no dequeue is under way, head_hint is the ticket of the next value to come out
 * Pairs: P1 to P3 of algorithm.h; P4 for the producers' hint only; S for everything but take().
 *   F1  consumer: take, fence, the look that says "empty";
 *       producer: fill, the look that says "full", both in S
 * Linearization. Dequeue: the store that frees the slot, in happens-before. It is a plain store, so
 *   in real time a dequeue may return a moment before a producer can see the room. A fence against
 *   that would cost as much as the CAS. All other operations: as in algorithm.h. Takes get their
 *   places in the order S as late as possible: right before the first operation of S that shows
 *   them.
 * Why that is an order. Only a "full" that missed a take can contradict the place of that take,
 *   since this "full" must come before the take. Everything that shows the take comes later in S
 *   than such a "full":
 *   - The fill of that slot in the next lap does, by the order of the slot's states, and so does
 *     every later fill (I2).
 *   - A "full" by a thread that knows of the take is found at a later ticket, so it comes after
 *     that fill.
 *   - "Empty" does, by F1: the "full" that missed the take comes before the fence, and the fence
 *     comes before the look.
 *   "Closed and drained" needs no fence: nothing goes in after it, so its place is last. The fence
 *   runs when the first look of a call finds the head free and the consumer has dequeued since the
 *   last fence. That is once each time the consumer empties the queue, and never while it finds
 *   values.
 * Progress: a dequeue is a bounded number of steps on an open queue: it takes the value at the head
 *   or says "empty". On a closed queue it tries to bury the slot at the head, and retries when an
 *   enqueue that began before the close fills it first. Enqueues are lock-free, as those of the
 *   ring. No index is claimed, so a stalled producer does not stand between a later value and the
 *   consumer.
 * Misuse. Two dequeues at the same time return values twice. A late store of one of them can also
 *   set a slot back to an earlier lap.
 * Checked: stress/model/check_ring.c (every scope with one consumer), tests/test_mpsc.c,
 *   stress/scenario_ring.c (loss, duplicates, order, memory), scenario_history_queue.c,
 *   scenario_stopped_ring.c.
 */
#include <weir/mpsc.h>

#include "base/assert.h"
#include "ring/ring.h"

#include "base/error.h"

/* No struct weir_mpsc exists: the name lets the compiler tell the two kinds of ring apart. */
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

	if (ring->format == WEIR_RING_FORMAT_SPAN16)
		return weiri_ring_dequeue(ring, values, count, WEIRI_RING_SEAL, NULL, status);
	WEIR_ASSERT_LOOK(weiri_ring_assert_at_head(ring));
	return WEIRI_LIKELY(ring->format == WEIR_RING_FORMAT_LTQ16)
	           ? weiri_ltq16_dequeue_alone(ring, values, count, status)
	           : weiri_ltq64_dequeue_alone(ring, values, count, status);
}

enum weir_status weir_mpsc_create(size_t capacity, const struct weir_ring_options *options, weir_mpsc **out,
                                  weir_error *error)
{
	weir_ring *ring;
	enum weir_status status;

	if (out == NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "mpsc queue: out is NULL");
	status = weir_ring_create(capacity, options, &ring, error);
	if (status == WEIR_OK)
		*out = (weir_mpsc *)(void *)ring;
	return status;
}

size_t weir_mpsc_memsize(size_t capacity, const struct weir_ring_options *options)
{
	return weir_ring_memsize(capacity, options);
}

enum weir_status weir_mpsc_init(void *memory, size_t size, size_t capacity, const struct weir_ring_options *options,
                                weir_mpsc **out, weir_error *error)
{
	weir_ring *ring;
	enum weir_status status;

	if (out == NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "mpsc queue: out is NULL");
	status = weir_ring_init(memory, size, capacity, options, &ring, error);
	if (status == WEIR_OK)
		*out = (weir_mpsc *)(void *)ring;
	return status;
}

enum weir_status weir_mpsc_destroy(weir_mpsc *mpsc, weir_error *error)
{
	return weir_ring_destroy(ring_of(mpsc), error);
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
	WEIR_ASSERT_LOOK(weiri_ring_assert_at_head(ring));
	if (WEIRI_LIKELY(ring->format == WEIR_RING_FORMAT_LTQ16))
		return weiri_ltq16_dequeue_one_alone(ring, value);
	return ring->format == WEIR_RING_FORMAT_SPAN16 ? weiri_span16_dequeue(ring, value)
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

bool weir_mpsc_closed(const weir_mpsc *mpsc)
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
