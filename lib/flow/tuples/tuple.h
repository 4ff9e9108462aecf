/*
 * tuple.h - one item of a tensor queue, and the spec that it must meet.
 */
#ifndef WEIRI_QUEUE_TUPLE_H
#define WEIRI_QUEUE_TUPLE_H

#include <weir/flow/tensor_queue.h>

#include "tuples/components.h"
#include "queue/queue.h"

/* The options that only calls for a shared queue compare. */
struct weiri_made_with {
	enum weir_queue_order order;
	uint32_t flags;
	size_t min_after_dequeue;
};

struct weir_tensor_queue {
	weir_queue *queue;
	size_t count; /* components */
	int batches;  /* items can be stacked: their shapes are known, or padded */
	struct weiri_made_with made_with;
	weir_allocator allocator;
	struct weiri_component components[];
};

/* References that the queue owns. */
struct weiri_tuple {
	size_t count;
	weir_tensor *tensors[];
};

/*
 * WEIR_INVALID_ARGUMENT unless the tuple meets the spec. batched: the tensors have one more
 * dimension in front, equal for all, which is stored in *rows.
 */
enum weir_status weiri_tuple_check(const weir_tensor_queue *queue, weir_tensor *const tuple[], size_t count,
                                   int batched, int64_t *rows, weir_error *error);
/* NULL: no memory. */
struct weiri_tuple *weiri_tuple_create(const weir_tensor_queue *queue, weir_tensor *const tensors[]);
/* Makes a tuple of row `row` of each tensor. NULL: no memory. */
struct weiri_tuple *weiri_tuple_of_row(const weir_tensor_queue *queue, weir_tensor *const tensors[], int64_t row);
void weiri_tuple_free(const weir_tensor_queue *queue, struct weiri_tuple *tuple);
/* Frees the tuple but moves its references to tensors[]. */
void weiri_tuple_move(const weir_tensor_queue *queue, struct weiri_tuple *tuple, weir_tensor *tensors[]);

/*
 * Stacks `rows` tuples component by component into tensors[], padded where dims are unknown. The
 * tuples stay. On failure tensors[] does not change. If rows is 0, the tensors are empty.
 */
enum weir_status weiri_tuple_stack(const weir_tensor_queue *queue, void *const tuples[], size_t rows,
                                   weir_tensor *tensors[]);

#endif
