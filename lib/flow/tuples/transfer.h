/*
 * transfer.h - one call on a tensor queue: the items that it moves, and their conversion.
 *
 * Blocking and asynchronous calls share it: prepare, move the items through the pointer queue,
 * settle.
 */
#ifndef WEIRI_QUEUE_TRANSFER_H
#define WEIRI_QUEUE_TRANSFER_H

#include <weir/pending.h>

#include "tuples/tuple.h"

struct weiri_transfer {
	weir_tensor_queue *queue;
	enum weir_queue_op_kind kind;
	int batched;                   /* a batch dequeue: stack */
	size_t count;                  /* items; tuples to put, or room for tuples taken */
	struct weiri_segment *segment; /* where a batch is returned that cannot be stacked */
	weir_tensor_queue_done_fn *callback;
	void *context;
	weir_pending *pending; /* of one that was started: alive until its callback has returned */
	void *items[];
};

/* A transfer with room for count items. NULL: no memory. */
struct weiri_transfer *weiri_transfer_create(weir_tensor_queue *queue, enum weir_queue_op_kind kind, size_t count);
/* Frees the transfer, but not its items. Accepts NULL. */
void weiri_transfer_free(struct weiri_transfer *transfer);

/* For enqueue: makes the one tuple, or one for each row. */
enum weir_status weiri_transfer_of_tuple(weir_tensor_queue *queue, weir_tensor *const tuple[], size_t count,
                                         struct weiri_transfer **out, weir_error *error);
enum weir_status weiri_transfer_of_rows(weir_tensor_queue *queue, weir_tensor *const tuple[], size_t count,
                                        struct weiri_transfer **out, weir_error *error);
/* For dequeue: makes room for one tuple, or for a batch of n. */
enum weir_status weiri_transfer_for_one(weir_tensor_queue *queue, struct weiri_transfer **out, weir_error *error);
enum weir_status weiri_transfer_for_batch(weir_tensor_queue *queue, enum weir_queue_op_kind kind, size_t n,
                                          struct weiri_transfer **out, weir_error *error);

/* Frees the tuples that were not enqueued. */
void weiri_transfer_settle_enqueue(struct weiri_transfer *transfer, size_t done);
/*
 * Converts the `done` tuples that were dequeued into tuple[]. On failure they are returned to the
 * queue.
 */
enum weir_status weiri_transfer_settle_dequeue(struct weiri_transfer *transfer, size_t done, weir_tensor *tuple[],
                                               weir_error *error);

#endif
