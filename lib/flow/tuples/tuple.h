/*
 * tuple.h - one item of a tensor queue, and the spec that it must meet.
 */
#ifndef WEIRI_QUEUE_TUPLE_H
#define WEIRI_QUEUE_TUPLE_H

#include <weir/flow/tensor_queue.h>

#include "tuples/components.h"
#include "queue/queue.h"

/* The options of a queue that are kept only for calls that look for a shared queue. */
struct weiri_made_with {
	enum weir_queue_order order;
	uint32_t flags;
	size_t min_after_dequeue;
};

struct weir_tensor_queue {
	weir_queue *queue;
	size_t count; /* of components */
	bool batches; /* true: items can be stacked, because their shapes are known or padded */
	struct weiri_made_with made_with;
	weir_allocator allocator;
	struct weiri_component components[];
};

/* An item of the queue: references to its tensors, which the queue owns. */
struct weiri_tuple {
	uint64_t item;  /* its number in a trace; 0: a call put it that was not recorded */
	uint32_t trace; /* the lower half of the id of that trace */
	uint32_t count;
	weir_tensor *tensors[];
};

/*
 * Returns WEIR_INVALID_ARGUMENT unless the tuple meets the spec. If `batched`, each tensor must
 * have one more dim in front: the number of rows, which must be equal for all. It is stored in
 * *rows.
 */
enum weir_status weiri_tuple_check(const weir_tensor_queue *queue, weir_tensor *const tuple[], size_t count,
                                   bool batched, int64_t *rows, weir_error *error);
/* Makes a tuple with references to the tensors. Returns NULL if there is no memory. */
struct weiri_tuple *weiri_tuple_create(const weir_tensor_queue *queue, weir_tensor *const tensors[]);
/* Makes a tuple of row `row` of each tensor. Returns NULL if there is no memory. */
struct weiri_tuple *weiri_tuple_of_row(const weir_tensor_queue *queue, weir_tensor *const tensors[], int64_t row);
void weiri_tuple_free(const weir_tensor_queue *queue, struct weiri_tuple *tuple);
/* Moves the tuple's references to tensors[], and frees the tuple. */
void weiri_tuple_move(const weir_tensor_queue *queue, struct weiri_tuple *tuple, weir_tensor *tensors[]);

/*
 * Stacks `rows` tuples, component by component, into tensors[], and pads them where dims are
 * unknown. The tuples stay as they are. On failure tensors[] does not change. If `rows` is 0, the
 * tensors are empty.
 */
enum weir_status weiri_tuple_stack(const weir_tensor_queue *queue, void *const tuples[], size_t rows,
                                   weir_tensor *tensors[]);

#endif
