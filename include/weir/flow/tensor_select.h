/*
 * tensor_select.h - one of several tensor queue operations, whichever can proceed first.
 *
 * This is weir/select.h for queues of tuples: choice, waiting, closing and ordering are the same.
 * For one queue, use its own calls, which cost less. To choose one of several queues by number, and
 * not by what can proceed, use a weir_tensor_queue_list (weir/flow/tensor_queue.h).
 *
 * | call           | threads | progress           | blocks on           | allocates | signal-safe |
 * |----------------|---------|--------------------|---------------------|-----------|-------------|
 * | weir_tensor_select | any | allocator, then as weir_select | any of the cases (1) | yes | no   |
 *
 * (1) Up to the deadline.
 */
#ifndef WEIR_TENSOR_SELECT_H
#define WEIR_TENSOR_SELECT_H

#include <weir/select.h>
#include <weir/flow/tensor_queue.h>

WEIR_BEGIN_DECLS

struct weir_tensor_select_case {
	weir_tensor_queue *queue; /* the same queue may occur in several cases */
	enum weir_select_kind kind;
	/*
	 * As many tensors as the queue has components. Enqueue: the tuple; the queue takes its own
	 * references if the case is chosen. Dequeue: written if the case is chosen with status WEIR_OK;
	 * the caller then owns these references.
	 */
	weir_tensor **tuple;
	size_t count; /* of tuple */
	/*
	 * The outcome, if this case was chosen: WEIR_OK, WEIR_CANCELLED (closed), WEIR_OUT_OF_RANGE
	 * (drained).
	 */
	enum weir_status status;
};

/*
 * Waits until a case can proceed, until deadline_ns (absolute; 0: tries once), or until `cancel`
 * (may be NULL) fires. WEIR_OK means that case *chosen proceeded. Its own status is in the case; if
 * that is not WEIR_OK, *error explains it.
 *
 * Errors, after which no case proceeded, and *chosen and the cases are untouched:
 * WEIR_DEADLINE_EXCEEDED. WEIR_CANCELLED (the token). WEIR_INVALID_ARGUMENT if there are no cases,
 * an argument is NULL, a kind is unknown, or a tuple does not match the spec of its queue; the
 * message names the case and has the words of weir_tensor_queue_enqueue(). WEIR_RESOURCE_EXHAUSTED.
 * @since 0.1
 */
WEIR_API enum weir_status weir_tensor_select(struct weir_tensor_select_case cases[], size_t count,
                                             uint64_t deadline_ns, weir_cancel *cancel,
                                             size_t *chosen, weir_error *error);

WEIR_END_DECLS

#endif
