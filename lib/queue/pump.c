/*
 * pump.c - letting the operations that wait go on.
 *
 * Whoever changed a queue (put, took, put back, gave the turn, closed) walks the list of those who may profit, in arrival order, claims
 * each one that waits and carries on with it; what that changes may let the other side go on, so it repeats until nothing moves.
 * One that is claimed by another thread gets AGAIN, so that its claimer looks once more (op.h, O2).
 * A walk ends at the first operation that finds the store empty (or full): those behind it would find the same. One that waits for
 * the batch that collects does not end it: that batch may stand behind it.
 * At the end it settles the descriptors (readiness.c), whose bells on both lists brought the walker here if no operation did.
 * Each operation is completed before the walk goes on, so a thread that is stopped here holds up one. A callback may run user code: the
 * walk leaves the section for it, and begins again.
 * Progress: lock-free. Each round that is repeated moved an item or completed an operation.
 */
#include "queue/op.h"

/* 1 when anything moved. *asynchronous: an operation that is finished and must be completed outside of the section, or NULL. */
static int serve(struct weiri_scope *scope, struct weiri_list *list, weir_queue_op **asynchronous)
{
	struct weiri_list_node *node = NULL;
	enum weiri_op_outcome outcome = WEIRI_OP_COMPLETE;
	int moved = 0;

	while (outcome != WEIRI_OP_STUCK && (node = weiri_list_next(scope, list, node)) != NULL) {
		weir_queue_op *op = WEIRI_CONTAINER_OF(node, weir_queue_op, node);

		if (!weiri_op_claim(op))
			continue;
		outcome = weiri_op_drive(scope, op, &moved);
		if (outcome != WEIRI_OP_COMPLETE)
			continue;
		weiri_op_finish(scope, op);
		moved = 1;
		if (op->callback != NULL) {
			*asynchronous = op;
			return 1;
		}
		weiri_op_complete(op); /* the list's reference is left, as long as we are in the section */
	}
	return moved;
}

static int serve_both(struct weiri_record *record, weir_queue *queue)
{
	struct weiri_scope scope = weiri_scope_enter(record);
	weir_queue_op *asynchronous = NULL;
	int moved = serve(&scope, &queue->consumers, &asynchronous);

	if (asynchronous == NULL)
		moved |= serve(&scope, &queue->producers, &asynchronous);
	weiri_scope_leave(&scope);
	if (asynchronous != NULL)
		weiri_op_complete(asynchronous);
	return moved;
}

void weiri_queue_pump(struct weiri_record *record, weir_queue *queue)
{
	while (weiri_queue_somebody_waits(&queue->consumers) || weiri_queue_somebody_waits(&queue->producers)) {
		if (!serve_both(record, queue))
			break;
	}
	weiri_queue_settle(record, queue);
}
