/*
 * pump.c - letting the operations that wait go on.
 *
 * Whoever changed a queue (put, took, put back, gave the turn, closed) walks the list of those who may profit, in arrival order, claims
 * each one that waits and carries on with it; what that changes may let the other side go on, so it repeats until nothing moves.
 * One that is claimed by another thread gets AGAIN, so that its claimer looks once more (op.h, O2).
 * A walk ends at the first operation that finds the store empty (or full): those behind it would find the same. One that waits for
 * the batch that collects does not end it: that batch may stand behind it.
 * At the end it settles the descriptors (readiness.c), whose bells on both lists brought the walker here if no operation did.
 * A select that completes takes its entries off several queues, and may have moved an item of another than the one whose list was walked. So
 * all its queues are pumped before its owner is told (who may then destroy them); one after the other, not inside of each other.
 * Each other operation is completed before the walk goes on, so a thread that is stopped here holds up one. A callback may run user code: the
 * walk leaves the section for it, and begins again, unless the callback has destroyed the queue (sync/delivery.h, visits). Inside of a
 * callback the walk goes on at once: what it completes is told later.
 * Progress: lock-free. Each round that is repeated moved an item or completed an operation.
 */
#include "queue/op.h"

/* What a pump has finished and not completed yet. */
struct finished {
	weir_queue_op *asynchronous; /* to be completed outside of the section; NULL: none */
	weir_queue_op *selects;      /* linked by `next` */
};

/* 1: the walk ends for it. */
static int hand_over(struct finished *finished, weir_queue_op *op)
{
	if (op->cases != NULL) {
		op->next = finished->selects;
		finished->selects = op;
	} else if (op->callback != NULL) {
		finished->asynchronous = op;
	} else {
		weiri_op_complete(op); /* the list's reference is left, as long as we are in the section */
	}
	return finished->asynchronous != NULL;
}

/* 1 when anything moved. */
static int serve(struct weiri_scope *scope, weir_queue *queue, struct weiri_list *list, struct finished *finished)
{
	struct weiri_list_node *node = NULL;
	enum weiri_op_outcome outcome = WEIRI_OP_COMPLETE;
	int moved = 0;

	while (outcome != WEIRI_OP_STUCK && (node = weiri_list_next(scope, list, node)) != NULL) {
		weir_queue_op *op = WEIRI_CONTAINER_OF(node, weir_queue_op, node)->leader;

		if (!weiri_op_claim(op))
			continue;
		outcome = weiri_op_drive(scope, op, &moved);
		if (outcome != WEIRI_OP_COMPLETE) {
			weiri_tally_add(&queue->tally.retries, 1);
			continue;
		}
		weiri_op_finish(scope, op);
		moved = 1;
		if (hand_over(finished, op))
			return 1;
	}
	return moved;
}

static int serve_both(struct weiri_record *record, weir_queue *queue, struct finished *finished)
{
	struct weiri_scope scope = weiri_scope_enter(record);
	int moved = serve(&scope, queue, &queue->consumers.list, finished);

	if (finished->asynchronous == NULL)
		moved |= serve(&scope, queue, &queue->producers.list, finished);
	weiri_scope_leave(&scope);
	if (finished->asynchronous != NULL)
		weiri_op_complete(finished->asynchronous);
	finished->asynchronous = NULL;
	return moved;
}

/* Through both words, whatever the first says: what changed may be what the other side waits for, and only its own word meets it (P1, P2 of waiters.h). */
static int anybody_waits(weir_queue *queue)
{
	int consumers = weiri_waiters_look(&queue->consumers), producers = weiri_waiters_look(&queue->producers);

	return consumers || producers;
}

static void pump_one(struct weiri_record *record, weir_queue *queue, struct finished *finished)
{
	struct weiri_visit visit;

	weiri_visit_begin(&visit, queue);
	while (!weiri_visit_is_over(&visit) && anybody_waits(queue)) {
		if (!serve_both(record, queue, finished))
			break;
	}
	if (!weiri_visit_is_over(&visit))
		weiri_queue_settle(record, queue);
	weiri_visit_end(&visit);
}

void weiri_queue_pump(struct weiri_record *record, weir_queue *queue)
{
	struct finished finished = {NULL, NULL};

	pump_one(record, queue, &finished);
	while (finished.selects != NULL) {
		weir_queue_op *op = finished.selects;

		finished.selects = op->next;
		for (size_t i = 0; i < op->case_count; i++)
			pump_one(record, op->cases[i].queue, &finished);
		weiri_op_complete(op);
	}
}
