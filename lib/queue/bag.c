/*
 * bag.c - see bag.h.
 */
#include "queue/bag.h"

#include "queue/queue.h"

/* -- shuffled ----------------------------------------------------------------------------------------------------------------- */

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

static enum weir_status shuffle_put(weir_queue *queue, void *item, int64_t key, int admitted)
{
	(void)key;
	return weiri_shuffle_put(queue->shuffle, weiri_item_bits(item), admitted);
}

static enum weir_status shuffle_take(weir_queue *queue, uint64_t *item, int64_t *key)
{
	(void)key;
	return weiri_shuffle_take(queue->shuffle, item);
}

/* What was put back leaves first. */
static size_t shuffle_take_beside_put_back(struct weiri_scope *scope, weir_queue *queue, uint64_t items[],
                                           int64_t keys[], size_t count, enum weir_status *status)
{
	size_t done = weiri_putback_take(scope, &queue->putback, items, count);

	(void)keys;
	*status = WEIR_OK;
	while (done < count && (*status = weiri_shuffle_take(queue->shuffle, &items[done])) == WEIR_OK)
		done++;
	return done;
}

static void shuffle_close(weir_queue *queue)
{
	weiri_shuffle_close(queue->shuffle);
}

static int shuffle_closed(const weir_queue *queue)
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

/* Always: a look costs next to nothing here. */
static int shuffle_has_passed(const weir_queue *queue, size_t count)
{
	(void)queue, (void)count;
	return 1;
}

static int shuffle_can_take(const weir_queue *queue)
{
	return weiri_shuffle_can_take(queue->shuffle);
}

static int shuffle_can_put(const weir_queue *queue)
{
	return weiri_shuffle_can_put(queue->shuffle);
}

static int shuffle_is_putting(const weir_queue *queue)
{
	return weiri_shuffle_putting(queue->shuffle);
}

const struct weiri_bag weiri_shuffle_bag = {
	.create = shuffle_create,
	.destroy = shuffle_destroy,
	.put = shuffle_put,
	.take = shuffle_take,
	.take_beside_put_back = shuffle_take_beside_put_back,
	.close = shuffle_close,
	.closed = shuffle_closed,
	.size = shuffle_size,
	.counts = shuffle_counts,
	.has_passed = shuffle_has_passed,
	.can_take = shuffle_can_take,
	.can_put = shuffle_can_put,
	.is_putting = shuffle_is_putting,
};

/* -- by priority -------------------------------------------------------------------------------------------------------------- */

static enum weir_status priority_create(weir_queue *queue, const struct weir_queue_options *options)
{
	struct weir_priority_queue_options inner = {.struct_size = sizeof(inner), .allocator = &queue->allocator};

	return weir_priority_queue_create(options->capacity, &inner, &queue->priority);
}

static void priority_destroy(weir_queue *queue)
{
	weir_priority_queue_destroy(queue->priority);
}

static enum weir_status priority_put(weir_queue *queue, void *item, int64_t key, int admitted)
{
	return weiri_priority_queue_put(queue->priority, key, weiri_item_bits(item), admitted);
}

static enum weir_status priority_take(weir_queue *queue, uint64_t *item, int64_t *key)
{
	const struct weiri_priority_beside nothing = {&queue->putback.top, NULL, NULL};

	return weiri_priority_queue_take(queue->priority, &nothing, key, item);
}

/*
 * The smallest of the store's first and of what was put back first, which leaves before its equals: it is older. A segment that lies on
 * others has nothing larger than they have left, since its batch took the smallest each time; so only the first one counts.
 * Linearization of an item, also of one that was put back: the load that finds the segment still on top. The store's first was the same
 * before and after; and the item that was put back was still there, since the CAS that takes it succeeds.
 */
static size_t priority_take_beside_put_back(struct weiri_scope *scope, weir_queue *queue, uint64_t items[],
                                            int64_t keys[], size_t count, enum weir_status *status)
{
	size_t done = 0;

	*status = WEIR_OK;
	while (done < count) {
		size_t place;
		struct weiri_segment *first = weiri_putback_first(scope, &queue->putback, &place);
		const struct weiri_priority_beside beside = {&queue->putback.top, first,
		                                             first != NULL ? &weiri_segment_keys(first)[place] : NULL};
		int64_t key;

		*status = weiri_priority_queue_take(queue->priority, &beside, &key, &items[done]);
		if (*status == WEIR_ABORTED) /* a batch has given back, or what it gave is gone: another is the first */
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

static int priority_closed(const weir_queue *queue)
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

static int priority_has_passed(const weir_queue *queue, size_t count)
{
	return weiri_priority_queue_passed(queue->priority, queue->level_mask, count);
}

static int priority_can_take(const weir_queue *queue)
{
	int64_t key;

	return weiri_priority_queue_peek(queue->priority, &key);
}

static int priority_can_put(const weir_queue *queue)
{
	return weiri_priority_queue_has_room(queue->priority);
}

static int priority_is_putting(const weir_queue *queue)
{
	return !weiri_priority_queue_is_ended(queue->priority);
}

const struct weiri_bag weiri_priority_bag = {
	.create = priority_create,
	.destroy = priority_destroy,
	.put = priority_put,
	.take = priority_take,
	.take_beside_put_back = priority_take_beside_put_back,
	.close = priority_close,
	.closed = priority_closed,
	.size = priority_size,
	.counts = priority_counts,
	.has_passed = priority_has_passed,
	.can_take = priority_can_take,
	.can_put = priority_can_put,
	.is_putting = priority_is_putting,
};
