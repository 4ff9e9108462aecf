/*
 * bag.h - stores of queues that are no ring: shuffled, and by priority.
 */
#ifndef WEIRI_QUEUE_BAG_H
#define WEIRI_QUEUE_BAG_H

#include <weir/queue.h>

#include "queue/putback.h"
#include "ring/ring.h"

struct weiri_bag {
	enum weir_status (*create)(weir_queue *queue, const struct weir_queue_options *options);
	void (*destroy)(weir_queue *queue);
	/* WEIR_OK, WEIR_WOULD_BLOCK (full), WEIR_CANCELLED (closed and not admitted). The key is that of the item: weiri_queue_key(). */
	enum weir_status (*put)(weir_queue *queue, void *item, int64_t key, int admitted);
	/* WEIR_OK, WEIR_WOULD_BLOCK (nothing may leave now), WEIR_OUT_OF_RANGE (closed, empty, no put under way), WEIR_ABORTED (put back was). *key is the
	 * one it went in with, of queues that have keys. */
	enum weir_status (*take)(weir_queue *queue, uint64_t *item, int64_t *key);
	/* Up to `count` items of the store and of what batches put back, which there is; keys and *status as weiri_queue_take_with_keys(). In a section. */
	size_t (*take_beside_put_back)(struct weiri_scope *scope, weir_queue *queue, uint64_t items[], int64_t keys[],
	                               size_t count, enum weir_status *status);
	void (*close)(weir_queue *queue);
	int (*closed)(const weir_queue *queue);
	size_t (*size)(const weir_queue *queue);
	struct weiri_ring_counts (*counts)(const weir_queue *queue);
	/* 1: among the last `count` items that went in is one at which the level is to be looked at. */
	int (*has_passed)(const weir_queue *queue, size_t count);
	/* Looks. is_putting: of a closed one; 1 while a put may be under way. */
	int (*can_take)(const weir_queue *queue);
	int (*can_put)(const weir_queue *queue);
	int (*is_putting)(const weir_queue *queue);
};

extern const struct weiri_bag weiri_shuffle_bag, weiri_priority_bag;

/* The bag of an order; NULL: a ring. */
static inline const struct weiri_bag *weiri_bag_of(enum weir_queue_order order)
{
	if (order == WEIR_QUEUE_PRIORITY)
		return &weiri_priority_bag;
	return order == WEIR_QUEUE_SHUFFLE ? &weiri_shuffle_bag : NULL;
}

#endif
