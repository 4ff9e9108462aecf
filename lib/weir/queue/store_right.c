/*
 * store_right.c - the store of a critical section: the right to be inside.
 *
 * The right is taken through the store, and given back without it: an execution that leaves the
 * section writes the right's word (right.h). Batches, descriptors and selects do not reach this
 * store either. So it has only the functions that a wait for the right, a dump and a destroy call.
 */
#include "base/memory.h"
#include "queue/queue.h"
#include "queue/right.h"
#include "queue/store.h"

static enum weir_status right_create(weir_queue *queue, const struct weir_queue_options *options)
{
	(void)options;
	queue->right = weiri_allocate_zeroed(&queue->allocator, sizeof(*queue->right), WEIRI_APART);
	return queue->right != NULL ? WEIR_OK : WEIR_RESOURCE_EXHAUSTED;
}

static void right_destroy(weir_queue *queue)
{
	weiri_release(&queue->allocator, queue->right, sizeof(*queue->right), WEIRI_APART);
}

static size_t right_take(weir_queue *queue, uint64_t items[], int64_t keys[], size_t count,
                         enum weiri_ring_at_end at_end, enum weir_status *status)
{
	bool taken = weiri_right_take(queue->right);

	(void)keys, (void)count, (void)at_end;
	*status = taken ? WEIR_OK : WEIR_WOULD_BLOCK;
	if (taken)
		items[0] = weiri_item_bits(queue->right);
	return (size_t)taken;
}

/* A section is closed only by its destroy, when no call is left to refuse. */
static void right_close(weir_queue *queue)
{
	(void)queue;
}

static bool right_closed(const weir_queue *queue)
{
	(void)queue;
	return false;
}

static size_t right_size(const weir_queue *queue)
{
	return weiri_right_holder(queue->right) == WEIRI_RIGHT_FREE;
}

static struct weiri_ring_counts right_counts(const weir_queue *queue)
{
	uint64_t entered = weiri_load_relaxed(&queue->right->entered); /* [relaxed] statistics */

	return (struct weiri_ring_counts){entered + right_size(queue), entered};
}

const struct weiri_store_kind weiri_right_store = {
	.name = "right",
	.max_capacity = 1,
	.create = right_create,
	.destroy = right_destroy,
	.take = right_take,
	.close = right_close,
	.closed = right_closed,
	.size = right_size,
	.counts = right_counts,
};
