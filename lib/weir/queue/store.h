/*
 * store.h - the interface of the stores behind queues: a ring (FIFO), a shuffle store, a priority
 * queue; and the right to be inside, behind a critical section (store_right.c).
 *
 * A store holds items, is bounded, refuses puts once it is closed, and never waits. The other files
 * add what all queues have in common: contents.c the items that batches returned and the end of the
 * queue, operation.c the waiting.
 */
#ifndef WEIRI_QUEUE_STORE_H
#define WEIRI_QUEUE_STORE_H

#include <weir/queue.h>

#include "reclaim/scope.h"
#include "ring/layout.h"

struct weiri_store_kind {
	const char *name; /* the name of the order, for messages and dumps */
	size_t max_capacity;
	bool has_keys;  /* items leave by key */
	bool has_draws; /* items leave by chance: the queue has a seed, and may have a min_after_dequeue */

	/*
	 * Returns WEIR_OK or WEIR_RESOURCE_EXHAUSTED. The options are checked, and the queue's fields
	 * are set from them.
	 */
	enum weir_status (*create)(weir_queue *queue, const struct weir_queue_options *options);
	/* Also called if create() failed or was not called. */
	void (*destroy)(weir_queue *queue);

	/*
	 * Puts up to `count` items, and returns how many went in. *status is WEIR_OK, or tells why it
	 * stopped: WEIR_WOULD_BLOCK (full), WEIR_CANCELLED (closed and not admitted). keys: as for
	 * weiri_queue_put().
	 */
	size_t (*put)(weir_queue *queue, void *const items[], const int64_t keys[], size_t count, bool admitted,
	              enum weir_status *status);
	/*
	 * Takes up to `count` items, and returns how many it took. *status is WEIR_OK, or tells why it
	 * stopped: WEIR_WOULD_BLOCK (no item may leave now), WEIR_OUT_OF_RANGE (closed, empty, no put
	 * under way), WEIR_ABORTED (a batch returned items meanwhile). keys: as for
	 * weiri_queue_take_with_keys(). at_end is WEIRI_RING_SEAL if no admitted put is still to come.
	 */
	size_t (*take)(weir_queue *queue, uint64_t items[], int64_t keys[], size_t count, enum weiri_ring_at_end at_end,
	               enum weir_status *status);
	/*
	 * As take, but takes from the returned items, too; the caller has seen that there are some.
	 * *status never is WEIR_ABORTED. In a section.
	 */
	size_t (*take_beside_put_back)(struct weiri_scope *scope, weir_queue *queue, uint64_t items[], int64_t keys[],
	                               size_t count, enum weiri_ring_at_end at_end, enum weir_status *status);
	void (*close)(weir_queue *queue);
	bool (*closed)(const weir_queue *queue);

	size_t (*size)(const weir_queue *queue);
	/* Returns the size for the high-water mark, after a put found no room. */
	size_t (*size_when_full)(const weir_queue *queue);
	struct weiri_ring_counts (*counts)(const weir_queue *queue);
	/*
	 * Returns true if the level must be sampled at one of the last `count` items that were
	 * enqueued.
	 */
	bool (*has_passed)(const weir_queue *queue, size_t count);

	/*
	 * These only read. is_putting is for a closed store, and returns true while a put may be under
	 * way.
	 */
	bool (*can_take)(const weir_queue *queue);
	bool (*can_put)(const weir_queue *queue);
	bool (*is_putting)(const weir_queue *queue);
};

extern const struct weiri_store_kind weiri_ring_store, weiri_shuffle_store, weiri_priority_store, weiri_right_store;

/* Returns the store for an order; NULL: `order` is not an order. */
static inline const struct weiri_store_kind *weiri_store_for(enum weir_queue_order order)
{
	switch (order) {
	case WEIR_QUEUE_FIFO: return &weiri_ring_store;
	case WEIR_QUEUE_SHUFFLE: return &weiri_shuffle_store;
	case WEIR_QUEUE_PRIORITY: return &weiri_priority_store;
	default: return NULL;
	}
}

#endif
