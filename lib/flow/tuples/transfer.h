/*
 * transfer.h - one call on a tensor queue: the items that it moves, and their conversion.
 *
 * Blocking and asynchronous calls both use a transfer, in three steps. They prepare it, move its
 * items through the pointer queue, and settle it.
 */
#ifndef WEIRI_QUEUE_TRANSFER_H
#define WEIRI_QUEUE_TRANSFER_H

#include <weir/pending.h>

#include "run/trace_buffer.h"
#include "tuples/tuple.h"

struct weiri_transfer {
	weir_tensor_queue *queue;
	enum weir_queue_op_kind kind;
	bool batched;                   /* true: a batch dequeue, whose tuples are stacked */
	size_t count;                   /* of items: tuples to enqueue, or room for tuples that are dequeued */
	struct weiri_segment *segment;  /* for the putback of a batch that cannot be stacked */
	struct weiri_trace_point point; /* the event that moves the items */
	weir_tensor_queue_done_fn *callback;
	void *context;
	weir_pending *pending; /* of an asynchronous call: alive until its callback has returned */
	void *items[];
};

/* Creates a transfer with room for `count` items. Returns NULL if there is no memory. */
struct weiri_transfer *weiri_transfer_create(weir_tensor_queue *queue, enum weir_queue_op_kind kind, size_t count);
/* Frees the transfer, but not its items. Accepts NULL. */
void weiri_transfer_free(struct weiri_transfer *transfer);

/*
 * Makes the transfer one that is recorded as the work of an event. For an enqueue this numbers the
 * items, and records them. point may be NULL.
 */
void weiri_transfer_trace(struct weiri_transfer *transfer, const struct weiri_trace_point *point);

/* Creates a transfer for an enqueue: with one tuple, or with one for each row of a batch. */
enum weir_status weiri_transfer_of_tuple(weir_tensor_queue *queue, weir_tensor *const tuple[], size_t count,
                                         struct weiri_transfer **out, weir_error *error);
enum weir_status weiri_transfer_of_rows(weir_tensor_queue *queue, weir_tensor *const tuple[], size_t count,
                                        struct weiri_transfer **out, weir_error *error);
/* Creates a transfer for a dequeue: with room for one tuple, or for a batch of n. */
enum weir_status weiri_transfer_for_one(weir_tensor_queue *queue, struct weiri_transfer **out, weir_error *error);
enum weir_status weiri_transfer_for_batch(weir_tensor_queue *queue, enum weir_queue_op_kind kind, size_t n,
                                          struct weiri_transfer **out, weir_error *error);

/*
 * As weir_tensor_queue_start_enqueue() or, with `rows`, _enqueue_many(), _dequeue() and
 * _dequeue_many(); `point` is the event in a trace that does it, or NULL.
 */
enum weir_status weiri_tensor_queue_start_enqueue(weir_tensor_queue *queue, weir_tensor *const tuple[], size_t count,
                                                  bool rows, const struct weiri_trace_point *point,
                                                  weir_tensor_queue_done_fn *done, void *context, weir_pending **handle,
                                                  weir_error *error);
enum weir_status weiri_tensor_queue_start_dequeue(weir_tensor_queue *queue, const struct weiri_trace_point *point,
                                                  weir_tensor_queue_done_fn *done, void *context, weir_pending **handle,
                                                  weir_error *error);
enum weir_status weiri_tensor_queue_start_batch(weir_tensor_queue *queue, enum weir_queue_op_kind kind, size_t n,
                                                const struct weiri_trace_point *point, weir_tensor_queue_done_fn *done,
                                                void *context, weir_pending **handle, weir_error *error);

/*
 * Moves a tuple in or out at once, without a transfer. tuple[] has the components of the queue. Returns
 * false, and nothing has happened, if that would have to wait or fails for any reason.
 */
bool weiri_tensor_queue_attempt_enqueue(weir_tensor_queue *queue, weir_tensor *const tuple[],
                                        const struct weiri_trace_point *point);
bool weiri_tensor_queue_attempt_dequeue(weir_tensor_queue *queue, weir_tensor *tuple[],
                                        const struct weiri_trace_point *point);

/* Frees the tuples that were not enqueued. */
void weiri_transfer_settle_enqueue(struct weiri_transfer *transfer, size_t done);
/*
 * Converts the `done` tuples that were dequeued, and stores the result in tuple[]. On failure the
 * tuples go back to the queue.
 */
enum weir_status weiri_transfer_settle_dequeue(struct weiri_transfer *transfer, size_t done, weir_tensor *tuple[],
                                               weir_error *error);

#endif
