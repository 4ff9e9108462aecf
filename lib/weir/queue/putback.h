/*
 * putback.h - items that a failed batch returned: they leave before anything in the store, in their
 * old order.
 *
 * Algorithm. The items are in a stack of segments. Each segment is an array from which threads take
 * items by advancing an atomic index. A batch collects into a segment that it allocated at its
 * start, and returns items by pushing that segment. So the return cannot fail. The returned items
 * are older than the items that older segments still hold, because the batch took from those
 * segments first. So the order is that of a stack.
 * Source. The stack is Treiber's (IBM RJ 5118, 1986), with segments of several items.
 * Pairs
 *   P1  push -> take: the items
 *   P2  take -> take: a thread that finds items gone sees what the taker did before (its turn, see
 *       contents.c)
 *   P3  push -> statistics (stats.c), through the count: the returned items had been dequeued
 *       before
 * Linearization: push at the CAS of the head, take at the CAS of the index.
 * Progress: lock-free. ABA: a segment is pushed once, and the section of a popping thread pins it.
 */
#ifndef WEIRI_QUEUE_PUTBACK_H
#define WEIRI_QUEUE_PUTBACK_H

#include <weir/alloc.h>

#include "base/compiler.h"
#include "reclaim/scope.h"

/*
 * A plain segment holds items. A keyed one, for priority queues, holds items, their keys, and the
 * same space again for sorting.
 */
enum weiri_segment_kind { WEIRI_SEGMENT_PLAIN = 1, WEIRI_SEGMENT_KEYED = 4 /* words per item */ };

struct weiri_segment {
	struct weiri_retired retired;
	struct weiri_segment *next; /* constant once pushed */
	_Atomic(size_t) taken;
	size_t count; /* constant once pushed */
	size_t room;
	enum weiri_segment_kind kind;
	weir_allocator allocator;
	uint64_t items[];
};

struct weiri_putback {
	_Atomic(void *) top; /* a segment; the ring only checks whether there is one */
	_Atomic(size_t) items;
};

/* Returns NULL if there is no memory, or if `room` is beyond what memory can hold. */
WEIRI_SHARED struct weiri_segment *weiri_segment_create(size_t room, enum weiri_segment_kind kind,
                                                        const weir_allocator *allocator);
/* Frees a segment that was never pushed. Accepts NULL. */
WEIRI_SHARED void weiri_segment_free(struct weiri_segment *segment);

/* The keys of a keyed segment's items. The thread that fills the segment writes them. */
static inline int64_t *weiri_segment_keys(struct weiri_segment *segment)
{
	return (int64_t *)(void *)(segment->items + segment->room);
}

/*
 * Sorts the first `count` items of a keyed segment, and their keys, by key; items with equal keys
 * keep their order.
 */
void weiri_segment_sort(struct weiri_segment *segment, size_t count);

/* Returns items[0 .. count-1] of the segment to the queue. */
WEIRI_SHARED void weiri_putback_push(struct weiri_scope *scope, struct weiri_putback *putback,
                                     struct weiri_segment *segment, size_t count);
/* Takes up to `count` items, the oldest first. Returns how many it took. */
size_t weiri_putback_take(struct weiri_scope *scope, struct weiri_putback *putback, uint64_t items[], size_t count);

/*
 * Returns the segment of the first item, and in *place the item's index in it; NULL: there is no
 * item. Unlinks empty segments. In a section.
 */
struct weiri_segment *weiri_putback_first(struct weiri_scope *scope, struct weiri_putback *putback, size_t *place);
/*
 * Takes the item that weiri_putback_first() found in the same section. Returns false if another
 * thread took it.
 */
bool weiri_putback_take_this(struct weiri_putback *putback, struct weiri_segment *segment, size_t place,
                             uint64_t *item);

static inline bool weiri_putback_occupied(const struct weiri_putback *putback)
{
	/* [P2 acquire] pairs with the CAS that emptied it. */
	return weiri_load_acquire(&putback->top) != NULL;
}

static inline size_t weiri_putback_size(const struct weiri_putback *putback)
{
	return weiri_load_relaxed(&putback->items); /* [relaxed] a count */
}

#endif
