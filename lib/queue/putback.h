/*
 * putback.h - items that a batch gave back: they leave before anything in the store, in their old order.
 *
 * Algorithm. A stack of segments, each an array taken from by advancing an atomic index. A batch collects into a segment that it
 * allocated at its start, so giving back cannot fail: the segment itself is pushed. What it gives back is older than what
 * older segments still hold, because it took from those first: hence a stack.
 * Pairs: P1 push -> take: the items. P2 take -> take: whoever finds items gone sees what the taker did before (its turn, see store.c).
 *   P3 push -> statistics (stats.c), by the count: what was given back had come out before.
 * Linearization: the CAS of the head (push), of the index (take).
 * Progress: lock-free. ABA: a segment is pushed once, and pinned by the section of whoever pops it.
 */
#ifndef WEIRI_QUEUE_PUTBACK_H
#define WEIRI_QUEUE_PUTBACK_H

#include <weir/alloc.h>

#include "reclaim/scope.h"

/*
 * Plain: items. Keyed, for priority queues: items, their keys, and as much again to sort them with.
 */
enum weiri_segment_kind { WEIRI_SEGMENT_PLAIN = 1, WEIRI_SEGMENT_KEYED = 4 /* words an item */ };

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
	_Atomic(void *) top; /* a segment; the ring looks only whether there is one */
	_Atomic(size_t) items;
};

/* NULL: no memory, or `room` is beyond what memory can hold. */
struct weiri_segment *weiri_segment_create(size_t room, enum weiri_segment_kind kind, const weir_allocator *allocator);
/* Never pushed. Accepts NULL. */
void weiri_segment_free(struct weiri_segment *segment);

/* Of a keyed segment: the keys of its items, which who fills it writes. */
static inline int64_t *weiri_segment_keys(struct weiri_segment *segment)
{
	return (int64_t *)(void *)(segment->items + segment->room);
}

/* Puts the first `count` items of a keyed segment, and their keys, in the order of the keys; equal ones keep theirs. */
void weiri_segment_sort(struct weiri_segment *segment, size_t count);

/* items[0 .. count-1] of the segment go back. */
void weiri_putback_push(struct weiri_scope *scope, struct weiri_putback *putback, struct weiri_segment *segment,
                        size_t count);
/* Up to `count` items, the oldest first. */
size_t weiri_putback_take(struct weiri_scope *scope, struct weiri_putback *putback, uint64_t items[], size_t count);

/* The segment and the place in it of the first item, or NULL. Unlinks segments that have none left. In a section. */
struct weiri_segment *weiri_putback_first(struct weiri_scope *scope, struct weiri_putback *putback, size_t *place);
/* Takes that one; 0: another thread did. In the same section. */
int weiri_putback_take_this(struct weiri_putback *putback, struct weiri_segment *segment, size_t place, uint64_t *item);

static inline int weiri_putback_occupied(const struct weiri_putback *putback)
{
	/* [P2 acquire] pairs with the CAS that emptied it. */
	return weiri_load_acquire(&putback->top) != NULL;
}

static inline size_t weiri_putback_size(const struct weiri_putback *putback)
{
	return weiri_load_relaxed(&putback->items); /* [relaxed] a count */
}

#endif
