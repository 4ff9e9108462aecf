/*
 * store_ring.c - the store of FIFO queues: a ring. calls.c moves single items without this
 * interface.
 */
#include "queue/queue.h"
#include "queue/store.h"
#include "ring/ring.h"

enum { CHUNK = 256 }; /* the longest span of a ring for batches */

static enum weir_status ring_create(weir_queue *queue, const struct weir_queue_options *options)
{
	struct weir_ring_options ring = {WEIR_RING_OPTIONS_INIT, .allocator = &queue->allocator};

	if ((options->flags & WEIR_QUEUE_BATCHES) != 0 && weiri_ltq16_available())
		ring.format = WEIR_RING_FORMAT_SPAN16;
	return weir_ring_create(options->capacity, &ring, &queue->ring, NULL);
}

static void ring_destroy(weir_queue *queue)
{
	weir_ring_destroy(queue->ring, NULL);
}

static size_t ring_put(weir_queue *queue, void *const items[], const int64_t keys[], size_t count, bool admitted,
                       enum weir_status *status)
{
	uint64_t chunk[CHUNK];
	size_t done = 0, n;

	(void)keys;
	*status = WEIR_OK;
	while (done < count && *status == WEIR_OK) {
		n = count - done < CHUNK ? count - done : CHUNK;
		for (size_t i = 0; i < n; i++)
			chunk[i] = weiri_item_bits(items[done + i]);
		done += weiri_ring_enqueue(queue->ring, chunk, n, admitted, status);
	}
	return done;
}

static size_t ring_take(weir_queue *queue, uint64_t items[], int64_t keys[], size_t count,
                        enum weiri_ring_at_end at_end, enum weir_status *status)
{
	(void)keys;
	return weiri_ring_dequeue(queue->ring, items, count, at_end, &queue->putback.top, status);
}

/*
 * Returned items leave first. The take looks for them twice.
 * - Before it reads the ring. Otherwise it could report "empty" although an item arrived in the
 *   ring before the last returned item left.
 * - In the ring, between the look at an item and the CAS that takes it. So the item that leaves was
 *   in the ring while there were no returned items. Otherwise a newer item, which arrived after the
 *   first look, could leave before an older one that was returned since.
 */
static size_t ring_take_beside_put_back(struct weiri_scope *scope, weir_queue *queue, uint64_t items[], int64_t keys[],
                                        size_t count, enum weiri_ring_at_end at_end, enum weir_status *status)
{
	size_t done = 0;

	do {
		done += weiri_putback_take(scope, &queue->putback, items + done, count - done);
		done += ring_take(queue, items + done, keys, count - done, at_end, status);
	} while (*status == WEIR_ABORTED); /* another batch returned items */
	return done;
}

static void ring_close(weir_queue *queue)
{
	weir_ring_close(queue->ring);
}

static bool ring_closed(const weir_queue *queue)
{
	return weir_ring_closed(queue->ring);
}

static size_t ring_size(const weir_queue *queue)
{
	return weir_ring_size_approx(queue->ring);
}

/* A ring reports "full" at exactly its capacity. */
static size_t ring_size_when_full(const weir_queue *queue)
{
	return queue->capacity;
}

static struct weiri_ring_counts ring_counts(const weir_queue *queue)
{
	return weiri_ring_counts(queue->ring);
}

static bool ring_has_passed(const weir_queue *queue, size_t count)
{
	return weiri_ring_passed(queue->ring, queue->level_mask, count);
}

static bool ring_can_take(const weir_queue *queue)
{
	return weiri_ring_ops_of(queue->ring)->has_value(queue->ring);
}

static bool ring_can_put(const weir_queue *queue)
{
	return weiri_ring_ops_of(queue->ring)->has_room(queue->ring);
}

/*
 * Always 0, because a put is one CAS. A put that still succeeds in a closed ring makes can_take()
 * true.
 */
static bool ring_is_putting(const weir_queue *queue)
{
	(void)queue;
	return false;
}

const struct weiri_store_kind weiri_ring_store = {
	.name = "FIFO",
	.max_capacity = WEIR_RING_MAX_CAPACITY,
	.create = ring_create,
	.destroy = ring_destroy,
	.put = ring_put,
	.take = ring_take,
	.take_beside_put_back = ring_take_beside_put_back,
	.close = ring_close,
	.closed = ring_closed,
	.size = ring_size,
	.size_when_full = ring_size_when_full,
	.counts = ring_counts,
	.has_passed = ring_has_passed,
	.can_take = ring_can_take,
	.can_put = ring_can_put,
	.is_putting = ring_is_putting,
};
