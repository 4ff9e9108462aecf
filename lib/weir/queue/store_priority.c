/*
 * store_priority.c - the store of queues by priority.
 */
#include "queue/queue.h"
#include "queue/store.h"
#include "ring/priority_queue.h"

static enum weir_status priority_create(weir_queue *queue, const struct weir_queue_options *options)
{
	struct weir_priority_queue_options inner = {WEIR_PRIORITY_QUEUE_OPTIONS_INIT, .allocator = &queue->allocator};

	return weir_priority_queue_create(options->capacity, &inner, &queue->priority, NULL);
}

static void priority_destroy(weir_queue *queue)
{
	(void)weir_priority_queue_destroy(queue->priority, NULL);
}

static size_t priority_put(weir_queue *queue, void *const items[], const int64_t keys[], size_t count, bool admitted,
                           enum weir_status *status)
{
	size_t done = 0;

	*status = WEIR_OK;
	while (done < count) {
		int64_t key = keys != NULL ? keys[done] : weiri_queue_key(queue, items[done]);

		*status = weiri_priority_queue_put(queue->priority, key, weiri_item_bits(items[done]), admitted);
		if (*status != WEIR_OK)
			break;
		done++;
	}
	return done;
}

static size_t priority_take(weir_queue *queue, uint64_t items[], int64_t keys[], size_t count,
                            enum weiri_ring_at_end at_end, enum weir_status *status)
{
	const struct weiri_priority_beside nothing = {&queue->putback.top, NULL, NULL};
	size_t done = 0;

	(void)at_end;
	*status = WEIR_OK;
	while (done < count) {
		int64_t key;

		*status = weiri_priority_queue_take(queue->priority, &nothing, &key, &items[done]);
		if (*status != WEIR_OK)
			break;
		if (keys != NULL)
			keys[done] = key;
		done++;
	}
	return done;
}

/*
 * Takes the smaller of two items: the first item of the store and the first returned one. If their
 * keys are equal, it takes the returned item, which is older. Each batch took the smallest items.
 * So the topmost segment holds nothing larger than what is left in the segments below it, and only
 * the topmost segment counts.
 * Linearization of an item, including a returned one: the load that finds the segment still on top.
 *   The first item of the store was the same before and after that load. The returned item was
 *   still there as well, since the CAS that takes it succeeds.
 */
static size_t priority_take_beside_put_back(struct weiri_scope *scope, weir_queue *queue, uint64_t items[],
                                            int64_t keys[], size_t count, enum weiri_ring_at_end at_end,
                                            enum weir_status *status)
{
	size_t done = 0;

	(void)at_end;
	*status = WEIR_OK;
	while (done < count) {
		size_t place;
		struct weiri_segment *first = weiri_putback_first(scope, &queue->putback, &place);
		const struct weiri_priority_beside beside = {&queue->putback.top, first,
		                                             first != NULL ? &weiri_segment_keys(first)[place] : NULL};
		int64_t key;

		*status = weiri_priority_queue_take(queue->priority, &beside, &key, &items[done]);
		if (*status == WEIR_ABORTED) /* another item is the first now: a batch returned items, or items were taken */
			continue;
		if (*status != WEIR_OK && first == NULL)
			break;
		if (*status != WEIR_OK) {
			if (!weiri_putback_take_this(&queue->putback, first, place, &items[done]))
				continue;
			key = *beside.below;
		}
		if (keys != NULL)
			keys[done] = key;
		done++;
	}
	if (done == count)
		*status = WEIR_OK;
	return done;
}

static void priority_close(weir_queue *queue)
{
	weir_priority_queue_close(queue->priority);
}

static bool priority_closed(const weir_queue *queue)
{
	return weir_priority_queue_closed(queue->priority);
}

static size_t priority_size(const weir_queue *queue)
{
	return weir_priority_queue_size_approx(queue->priority);
}

static struct weiri_ring_counts priority_counts(const weir_queue *queue)
{
	struct weiri_ring_counts counts;

	weiri_priority_queue_counts(queue->priority, &counts.in, &counts.out);
	return counts;
}

static bool priority_has_passed(const weir_queue *queue, size_t count)
{
	return weiri_priority_queue_passed(queue->priority, queue->level_mask, count);
}

static bool priority_can_take(const weir_queue *queue)
{
	int64_t key;

	return weiri_priority_queue_peek(queue->priority, &key);
}

static bool priority_can_put(const weir_queue *queue)
{
	return weiri_priority_queue_has_room(queue->priority);
}

static bool priority_is_putting(const weir_queue *queue)
{
	return !weiri_priority_queue_is_ended(queue->priority);
}

const struct weiri_store_kind weiri_priority_store = {
	.name = "priority",
	.max_capacity = WEIR_PRIORITY_QUEUE_MAX_CAPACITY,
	.has_keys = true,
	.create = priority_create,
	.destroy = priority_destroy,
	.put = priority_put,
	.take = priority_take,
	.take_beside_put_back = priority_take_beside_put_back,
	.close = priority_close,
	.closed = priority_closed,
	.size = priority_size,
	.size_when_full = priority_size,
	.counts = priority_counts,
	.has_passed = priority_has_passed,
	.can_take = priority_can_take,
	.can_put = priority_can_put,
	.is_putting = priority_is_putting,
};
