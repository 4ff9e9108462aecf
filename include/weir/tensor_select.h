/*
 * tensor_select.h - one of several tensor queue operations, whichever can proceed first.
 *
 * weir/select.h for queues of tuples: the same choice, waiting, closing and ordering. For one queue its own calls cost less;
 * for tuples from one of several queues that is chosen by number, and not by what can proceed, use a weir_tensor_queue_list
 * (weir/tensor_queue.h).
 *
 * | call               | threads | progress                                | blocks on                           | allocates | signal-safe |
 * |--------------------|---------|-----------------------------------------|-------------------------------------|-----------|-------------|
 * | weir_tensor_select | any     | allocator, then as weir_select          | any of the cases, up to the deadline | yes      | no          |
 */
#ifndef WEIR_TENSOR_SELECT_H
#define WEIR_TENSOR_SELECT_H

#include <weir/select.h>
#include <weir/tensor_queue.h>

WEIR_BEGIN_DECLS

struct weir_tensor_select_case {
	weir_tensor_queue *queue; /* the same queue may stand in several cases */
	enum weir_select_kind kind;
	/*
	 * As many as the queue has components. Enqueue: the tuple; the queue takes references of its own if it goes in. Dequeue:
	 * written if this case was chosen and its status is WEIR_OK, and then these references are the caller's.
	 */
	weir_tensor **tuple;
	size_t count; /* of tuple */
	/* The outcome, if this case was chosen: WEIR_OK, WEIR_CANCELLED (closed), WEIR_OUT_OF_RANGE (drained). */
	enum weir_status status;
};

/*
 * Waits until a case can proceed, until deadline_ns (absolute; 0 looks once) or until `cancel` (may be NULL) fires. WEIR_OK:
 * case *chosen proceeded, see its status; when that is not WEIR_OK, *error says why. Otherwise no case did, *chosen and the
 * cases are untouched: WEIR_DEADLINE_EXCEEDED, WEIR_CANCELLED (the token), WEIR_INVALID_ARGUMENT (no cases, NULL, an unknown
 * kind, or a tuple that differs from the queue's spec: the message names the case and what weir_tensor_queue_enqueue says),
 * WEIR_RESOURCE_EXHAUSTED. @since 0.1
 */
WEIR_API enum weir_status weir_tensor_select(struct weir_tensor_select_case cases[], size_t count, uint64_t deadline_ns,
                                             weir_cancel *cancel, size_t *chosen, weir_error *error);

WEIR_END_DECLS

#endif
