/*
 * operation.h - the operations of a queue that may wait.
 *
 * A *part* is what an operation does in one queue: it moves items in or out. An enqueue or a
 * dequeue has one part. A select (select.c) has one for each case, and moves one item in one of
 * them. Everything else, waiting included, is in sync/pending.h.
 *
 * Invariants, in addition to those of pending.h
 *   Q1  an enqueue that waits was admitted: the admission word counts it before it goes on the
 *       list, and until its items are in or it has given up. So if a dequeue finds the admission
 *       word closed and its count 0, no item is still to come
 *   Q2  a batch dequeue takes items only with the turn of the queue, and collects them in
 *       `partial`. If it does not succeed, it returns these items to the queue, and only then gives
 *       up the turn
 *   Q3  the keys of items are computed when the operation is created. No user code runs in a
 *       section
 * Progress: as pending.h, where a stalled thread delays the operation that it has claimed. If that
 *   operation is the batch that has the turn, the thread also delays the batches that wait for the
 *   turn, and the answer that a closed queue is drained.
 */
#ifndef WEIRI_QUEUE_OP_H
#define WEIRI_QUEUE_OP_H

#include "queue/queue.h"
#include "sync/pending.h"

struct weiri_queue_part {
	struct weiri_pending_entry entry; /* first */
	/* Constant. */
	weir_queue *queue;
	enum weir_queue_op_kind kind;
	void **items;
	size_t count;
	const int64_t *keys; /* of an enqueue into a priority queue; otherwise NULL */
	int64_t only_key;    /* the place of the key of a single item */
	/* claim */
	bool admitted;
	bool holds_turn;
	size_t done;
	struct weiri_segment *partial; /* a batch dequeue collects here */
};

/* An enqueue or a dequeue. */
struct weiri_queue_operation {
	weir_pending pending; /* first */
	struct weiri_queue_part part;
	weir_queue_done_fn *callback; /* NULL: a blocking call */
	void *context;
};

extern const struct weiri_pending_kind weiri_queue_kind, weiri_select_kind;

/*
 * Creates an operation that the caller has claimed, with a reference for the completion and one for
 * the caller. The first `done` items of an enqueue are in the queue already. NULL: no memory. Not
 * to be called in a section, because it computes keys (Q3).
 */
struct weiri_queue_operation *weiri_queue_operation_create(weir_queue *queue, enum weir_queue_op_kind kind,
                                                           void *items[], size_t count, size_t done,
                                                           weir_queue_done_fn *callback, void *context);

/* -- parts, for both kinds --------------------------------------------------------------------- */

/*
 * Fills a zeroed part on `count` items. Returns false if there is no memory for keys; one item
 * needs none. Not in a section.
 */
bool weiri_queue_part_init(weir_pending *pending, struct weiri_queue_part *part, weir_queue *queue,
                           enum weir_queue_op_kind kind, void *items[], size_t count, size_t done);
/* Attempts the part. Returns COMPLETE after it has set the status and error of the operation. */
enum weiri_pending_outcome weiri_queue_part_attempt(struct weiri_scope *scope, struct weiri_queue_part *part);
/* Ends the operation with WEIR_OK, or with a status that the close of the queue has caused. */
void weiri_queue_part_end(struct weiri_queue_part *part, enum weir_status status);
/*
 * Puts the part on its list. 0: the part is an enqueue, and the queue is closed; the status is set.
 */
bool weiri_queue_part_join(struct weiri_scope *scope, struct weiri_queue_part *part);
/* `left` of both kinds (struct weiri_pending_kind). */
void weiri_queue_part_left(weir_pending *pending, struct weiri_pending_entry *entry, uint64_t waited_ns);

/* Every entry on a queue's lists is a part. */
static inline struct weiri_queue_part *weiri_queue_part_of(struct weiri_pending_entry *entry)
{
	return WEIRI_CONTAINER_OF(entry, struct weiri_queue_part, entry);
}

static inline const char *weiri_queue_verb(enum weir_queue_op_kind kind)
{
	return kind == WEIR_QUEUE_OP_ENQUEUE ? "enqueue" : "dequeue";
}

static inline enum weiri_side weiri_queue_part_side(const struct weiri_queue_part *part)
{
	return part->kind == WEIR_QUEUE_OP_ENQUEUE ? WEIRI_SIDE_ENQUEUE : WEIRI_SIDE_DEQUEUE;
}

static inline bool weiri_queue_part_is_fair(const struct weiri_queue_part *part)
{
	return (part->queue->flags & WEIR_QUEUE_FAIR) != 0;
}

#endif
