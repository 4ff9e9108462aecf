/*
 * pump.c - letting the operations that wait for a queue go on.
 *
 * A thread that has changed a queue serves the lists of both sides (sync/pending.h). A change is an
 * item that went in or out, items that were returned, a turn that was given back, or a close. The
 * thread repeats this until nothing moves, because what one side does may let the other side go on.
 * A walk ends at the first operation that finds the store empty or full: the operations behind it
 * would find the same. An operation that waits for the batch that collects does not end the walk,
 * because that batch may stand behind it.
 * At the end the thread settles the descriptors (readiness.c).
 * The thread completes each operation before the walk goes on, so a thread that stalls here delays
 * one operation. A callback may run user code: the walk leaves the section for it, and starts
 * again, unless the callback has destroyed the queue (sync/delivery.h, visits). Inside a callback
 * the walk goes on at once, and the callbacks of what it completes run later.
 * Progress: lock-free. Each round that is repeated moved an item or completed an operation.
 */
#include "queue/operation.h"

/* Returns true if anything moved. */
static bool serve_both(struct weiri_record *record, weir_queue *queue, struct weiri_served *served)
{
	struct weiri_scope scope = weiri_scope_enter(record);
	bool moved = weiri_pending_serve(&scope, &queue->consumers.list, served);

	if (served->asynchronous == NULL)
		moved |= weiri_pending_serve(&scope, &queue->producers.list, served);
	weiri_scope_leave(&scope);
	if (served->fruitless != 0)
		weiri_queue_counter_add(&queue->counters.retries, served->fruitless);
	served->fruitless = 0;
	if (served->asynchronous != NULL)
		weiri_queue_settle(record, queue); /* before user code, which may run for long */
	weiri_served_tell(served);
	return moved;
}

/*
 * Looks at both words, even if the first look finds waiters. The change may be what the other side
 * waits for, and only the look at the word of that side is ordered with its post (P1, P2 of
 * waiters.h).
 */
static bool any_waits(weir_queue *queue)
{
	bool consumers = weiri_waiters_look(&queue->consumers), producers = weiri_waiters_look(&queue->producers);

	return consumers || producers;
}

void weiri_queue_serve(struct weiri_record *record, void *object, struct weiri_served *served)
{
	weir_queue *queue = object;
	struct weiri_visit visit;

	weiri_visit_begin(&visit, queue, weiri_queue_serve);
	while (!weiri_visit_is_over(&visit) && any_waits(queue)) {
		if (!serve_both(record, queue, served))
			break;
	}
	if (!weiri_visit_is_over(&visit))
		weiri_queue_settle(record, queue);
	weiri_visit_end(&visit);
}

void weiri_queue_pump(struct weiri_record *record, weir_queue *queue)
{
	weiri_pending_pump(record, queue, weiri_queue_serve);
}
