/*
 * store_shuffle.c - the store of shuffle queues.
 */
#include "queue/queue.h"
#include "queue/shuffle.h"
#include "queue/store.h"

static enum weir_status shuffle_create(weir_queue *queue, const struct weir_queue_options *options)
{
	queue->shuffle =
		weiri_shuffle_create(options->capacity, options->min_after_dequeue, queue->seed, &queue->allocator);
	return queue->shuffle != NULL ? WEIR_OK : WEIR_RESOURCE_EXHAUSTED;
}

static void shuffle_destroy(weir_queue *queue)
{
	weiri_shuffle_destroy(queue->shuffle);
}

static size_t shuffle_put(weir_queue *queue, void *const items[], const int64_t keys[], size_t count, bool admitted,
                          enum weir_status *status)
{
	size_t done = 0;

	(void)keys;
	*status = WEIR_OK;
	while (done < count) {
		*status = weiri_shuffle_put(queue->shuffle, weiri_item_bits(items[done]), admitted);
		if (*status != WEIR_OK)
			break;
		done++;
	}
	return done;
}

static size_t shuffle_take(weir_queue *queue, uint64_t items[], int64_t keys[], size_t count,
                           enum weiri_ring_at_end at_end, enum weir_status *status)
{
	size_t done = 0;

	(void)keys, (void)at_end;
	*status = WEIR_OK;
	while (done < count && (*status = weiri_shuffle_take(queue->shuffle, &items[done])) == WEIR_OK)
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
	weiri_shuffle_close(queue->shuffle);
}

static bool shuffle_closed(const weir_queue *queue)
{
	return weiri_shuffle_closed(queue->shuffle);
}

static size_t shuffle_size(const weir_queue *queue)
{
	return weiri_shuffle_size(queue->shuffle);
}

static struct weiri_ring_counts shuffle_counts(const weir_queue *queue)
{
	return weiri_shuffle_counts(queue->shuffle);
}

/* Always 1: here a look at the level costs almost nothing. */
static bool shuffle_has_passed(const weir_queue *queue, size_t count)
{
	(void)queue, (void)count;
	return true;
}

static bool shuffle_can_take(const weir_queue *queue)
{
	return weiri_shuffle_can_take(queue->shuffle);
}

static bool shuffle_can_put(const weir_queue *queue)
{
	return weiri_shuffle_can_put(queue->shuffle);
}

static bool shuffle_is_putting(const weir_queue *queue)
{
	return weiri_shuffle_putting(queue->shuffle);
}

const struct weiri_store_kind weiri_shuffle_store = {
	.name = "shuffle",
	.max_capacity = WEIRI_SHUFFLE_MAX_CAPACITY,
	.has_draws = true,
	.create = shuffle_create,
	.destroy = shuffle_destroy,
	.put = shuffle_put,
	.take = shuffle_take,
	.take_beside_put_back = shuffle_take_beside_put_back,
	.close = shuffle_close,
	.closed = shuffle_closed,
	.size = shuffle_size,
	.size_when_full = shuffle_size,
	.counts = shuffle_counts,
	.has_passed = shuffle_has_passed,
	.can_take = shuffle_can_take,
	.can_put = shuffle_can_put,
	.is_putting = shuffle_is_putting,
};
