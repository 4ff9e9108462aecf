/*
 * store_shuffle.c - the store of shuffle queues: a ring from which values are drawn (ring/draw.h).
 */
#include "queue/queue.h"
#include "queue/store.h"
#include "ring/ring.h"

static enum weir_status shuffle_create(weir_queue *queue, const struct weir_queue_options *options)
{
	struct weir_ring_options ring = {WEIR_RING_OPTIONS_INIT, .allocator = &queue->allocator};

	queue->min_left = options->min_after_dequeue;
	return weir_ring_create(options->capacity, &ring, &queue->drawn, NULL);
}

static void shuffle_destroy(weir_queue *queue)
{
	weir_ring_destroy(queue->drawn, NULL);
}

static size_t shuffle_put(weir_queue *queue, void *const items[], const int64_t keys[], size_t count, bool admitted,
                          enum weir_status *status)
{
	size_t done = 0;

	(void)keys;
	*status = WEIR_OK;
	while (done < count && *status == WEIR_OK) {
		uint64_t item = weiri_item_bits(items[done]);

		done += weiri_ring_enqueue(queue->drawn, &item, 1, admitted, status);
	}
	return done;
}

static size_t shuffle_take(weir_queue *queue, uint64_t items[], int64_t keys[], size_t count,
                           enum weiri_ring_at_end at_end, enum weir_status *status)
{
	const struct weiri_draw draw = {queue->seed, queue->min_left, at_end};
	size_t done = 0;

	(void)keys;
	*status = WEIR_OK;
	while (done < count && (*status = weiri_ring_draw(queue->drawn, &draw, &items[done])) == WEIR_OK)
		done++;
	return done;
}

/* Items that a batch returned leave first. */
static size_t shuffle_take_beside_put_back(struct weiri_scope *scope, weir_queue *queue, uint64_t items[],
                                           int64_t keys[], size_t count, enum weiri_ring_at_end at_end,
                                           enum weir_status *status)
{
	size_t done = weiri_putback_take(scope, &queue->putback, items, count);

	return done + shuffle_take(queue, items + done, keys, count - done, at_end, status);
}

static void shuffle_close(weir_queue *queue)
{
	weir_ring_close(queue->drawn);
}

static bool shuffle_closed(const weir_queue *queue)
{
	return weir_ring_closed(queue->drawn);
}

static size_t shuffle_size(const weir_queue *queue)
{
	return weir_ring_size_approx(queue->drawn);
}

/* A ring reports "full" at exactly its capacity. */
static size_t shuffle_size_when_full(const weir_queue *queue)
{
	return queue->capacity;
}

static struct weiri_ring_counts shuffle_counts(const weir_queue *queue)
{
	return weiri_ring_counts(queue->drawn);
}

static bool shuffle_has_passed(const weir_queue *queue, size_t count)
{
	return weiri_ring_passed(queue->drawn, queue->level_mask, count);
}

static bool shuffle_can_take(const weir_queue *queue)
{
	return weiri_ring_can_draw(queue->drawn, queue->min_left);
}

static bool shuffle_can_put(const weir_queue *queue)
{
	return weiri_ring_ops_of(queue->drawn)->has_room(queue->drawn);
}

/* Always false, because a put is one CAS: see store_ring.c. */
static bool shuffle_is_putting(const weir_queue *queue)
{
	(void)queue;
	return false;
}

const struct weiri_store_kind weiri_shuffle_store = {
	.name = "shuffle",
	.max_capacity = WEIRI_DRAW_MAX_CAPACITY,
	.has_draws = true,
	.create = shuffle_create,
	.destroy = shuffle_destroy,
	.put = shuffle_put,
	.take = shuffle_take,
	.take_beside_put_back = shuffle_take_beside_put_back,
	.close = shuffle_close,
	.closed = shuffle_closed,
	.size = shuffle_size,
	.size_when_full = shuffle_size_when_full,
	.counts = shuffle_counts,
	.has_passed = shuffle_has_passed,
	.can_take = shuffle_can_take,
	.can_put = shuffle_can_put,
	.is_putting = shuffle_is_putting,
};
