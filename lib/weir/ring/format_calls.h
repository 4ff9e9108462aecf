/*
 * format_calls.h - the calls of one slot format, made of the walks of algorithm.h.
 *
 * ltq16.c and ltq64.c include it, each once, after they have defined `format`, `hands`
 * and RING_FORMAT(call), the name of a call. A format whose enqueues of several values differ from
 * those of one defines RING_FORMAT_OF_BATCHES, too. The walks are inlined there, with the format's own
 * looks and changes.
 */
#ifndef RING_FORMAT
#error "define `format`, `hands` and RING_FORMAT first"
#endif

#include "ring/in_step.h"

static size_t enqueue(weir_ring *ring, const uint64_t values[], size_t count, bool admitted, enum weir_status *status)
{
	if (is_closed(ring) && !admitted) {
		*status = WEIR_CANCELLED;
		return 0;
	}
#if defined(RING_FORMAT_OF_BATCHES)
	if (count != 1)
		return walk_enqueue(ring, &RING_FORMAT_OF_BATCHES, begin(&ring->tail_hint), values, count, status);
#endif
	return walk_enqueue(ring, &format, begin(&ring->tail_hint), values, count, status);
}

static size_t dequeue(weir_ring *ring, uint64_t values[], size_t count, enum weiri_ring_at_end at_end,
                      weiri_ring_before *before, enum weir_status *status)
{
	uint64_t ticket = begin(&ring->head_hint);

	/* Two copies, so that the one without `before` does not test it for each value. */
	if (before == NULL)
		return walk_dequeue(ring, &format, ticket, values, count, at_end, NULL, status);
	return walk_dequeue(ring, &format, ticket, values, count, at_end, before, status);
}

static struct weiri_ring_counts counts(const weir_ring *ring)
{
	return walk_counts(ring, &format);
}

static bool has_value(const weir_ring *ring)
{
	return walk_has_value(ring, &format);
}

static bool has_room(const weir_ring *ring)
{
	return walk_has_room(ring, &format);
}

const struct weiri_ring_ops RING_FORMAT(ops) = {enqueue, dequeue, counts, has_value, has_room};

static WEIRI_NOINLINE enum weir_status enqueue_from(weir_ring *ring, uint64_t value, uint64_t ticket)
{
	enum weir_status status;
	enum weiri_step step = WEIRI_STEP_FIRST;

	for (;;) {
		(void)walk_enqueue(ring, &format, ticket, &value, 1, &status);
		if (status != WEIR_WOULD_BLOCK)
			return status;
		step = weiri_step(&ring->tail_hint, &ring->full_at, step);
		if (step != WEIRI_STEP_PAUSED)
			return status;
		ticket = begin(&ring->tail_hint);
	}
}

enum weir_status RING_FORMAT(enqueue)(weir_ring *ring, uint64_t value)
{
	uint64_t ticket = begin(&ring->tail_hint);

	if (WEIRI_UNLIKELY(is_closed(ring)))
		return WEIR_CANCELLED;
	return WEIRI_LIKELY(enqueue_at(ring, &format, ticket, value)) ? WEIR_OK : enqueue_from(ring, value, ticket);
}

static WEIRI_NOINLINE enum weir_status dequeue_from(weir_ring *ring, uint64_t *value, uint64_t ticket)
{
	enum weir_status status;
	enum weiri_step step = WEIRI_STEP_FIRST;

	for (;;) {
		(void)walk_dequeue(ring, &format, ticket, value, 1, WEIRI_RING_SEAL, NULL, &status);
		if (status != WEIR_WOULD_BLOCK)
			return status;
		step = weiri_step(&ring->head_hint, &ring->empty_at, step);
		if (step != WEIRI_STEP_PAUSED)
			return status;
		ticket = begin(&ring->head_hint);
	}
}

enum weir_status RING_FORMAT(dequeue)(weir_ring *ring, uint64_t *value)
{
	uint64_t ticket = begin(&ring->head_hint);

	return WEIRI_LIKELY(dequeue_at(ring, &format, ticket, NULL, value)) ? WEIR_OK : dequeue_from(ring, value, ticket);
}

static WEIRI_NOINLINE enum weir_status dequeue_behind_from(weir_ring *ring, uint64_t *value, weiri_ring_before *before,
                                                           uint64_t ticket)
{
	enum weir_status status;

	(void)walk_dequeue(ring, &format, ticket, value, 1, WEIRI_RING_LEAVE, before, &status);
	return status;
}

enum weir_status RING_FORMAT(dequeue_behind)(weir_ring *ring, uint64_t *value, weiri_ring_before *before)
{
	uint64_t ticket = begin(&ring->head_hint);

	return WEIRI_LIKELY(dequeue_at(ring, &format, ticket, before, value))
	           ? WEIR_OK
	           : dequeue_behind_from(ring, value, before, ticket);
}

enum weir_status RING_FORMAT(draw)(weir_ring *ring, const struct weiri_draw *draw, uint64_t *value)
{
	return walk_draw(ring, &format, &hands, draw, value);
}
