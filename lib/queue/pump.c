/*
 * pump.c - letting the operations that wait go on.
 *
 * Whoever changed a queue (put, took, put back, gave the turn, closed) walks the list of those who may profit, in arrival order, claims
 * each one that waits and carries on with it; what that changes may let the other side go on, so it repeats until nothing moves.
 * One that is claimed by another thread gets AGAIN, so that its claimer looks once more (op.h, O2).
 * A walk ends at the first operation that finds the store empty (or full): those behind it would find the same. One that waits for
 * the batch that collects does not end it: that batch may stand behind it.
 * Completions run after the walk, outside of the section, because they may run user code.
 * Progress: lock-free. Each round that is repeated moved an item or completed an operation.
 */
#include "queue/op.h"

struct completed {
	weir_queue_op *first;
	weir_queue_op **last;
};

static void add_completed(struct completed *completed, weir_queue_op *op)
{
	op->next_completed = NULL;
	*completed->last = op;
	completed->last = &op->next_completed;
}

/* 1 when anything moved. */
static int serve(struct weiri_scope *scope, struct weiri_list *list, struct completed *completed)
{
	struct weiri_list_node *node = NULL;
	enum weiri_op_outcome outcome = WEIRI_OP_COMPLETE;
	int moved = 0;

	while (outcome != WEIRI_OP_STUCK && (node = weiri_list_next(scope, list, node)) != NULL) {
		weir_queue_op *op = WEIRI_CONTAINER_OF(node, weir_queue_op, node);

		if (!weiri_op_claim(op))
			continue;
		outcome = weiri_op_drive(scope, op, &moved);
		if (outcome == WEIRI_OP_COMPLETE) {
			weiri_op_finish(scope, op);
			add_completed(completed, op);
			moved = 1;
		}
	}
	return moved;
}

static int serve_both(struct weiri_record *record, weir_queue *queue)
{
	struct completed completed = {NULL, &completed.first};
	struct weiri_scope scope = weiri_scope_enter(record);
	int moved = serve(&scope, &queue->consumers, &completed);

	moved |= serve(&scope, &queue->producers, &completed);
	weiri_scope_leave(&scope);
	while (completed.first != NULL) {
		weir_queue_op *op = completed.first;

		completed.first = op->next_completed;
		weiri_op_complete(op);
	}
	return moved;
}

void weiri_queue_pump(struct weiri_record *record, weir_queue *queue)
{
	while (weiri_queue_somebody_waits(&queue->consumers) || weiri_queue_somebody_waits(&queue->producers)) {
		if (!serve_both(record, queue))
			return;
	}
}
