/*
 * select.c - one of several queue operations.
 *
 * Algorithm (ours). First each case is tried as a call of its own, beginning at a place that is drawn. If none can proceed, the select becomes
 * one operation (op.h) that stands on the lists of all its cases at once. Its state is the decision: whoever changes one of the queues
 * comes to the entry there, claims the select, and tries the cases again, on behalf of a thread that sleeps or of none. Who finds it claimed
 * leaves AGAIN, so the claimer tries all cases once more: it cannot be that each of two threads leaves the item of its queue to the other.
 *
 * Invariants: O1 to O6 of op.h. In particular
 *   exactly one case proceeds   cases are tried with the claim only, one after the other, and the first that moves an item, or is refused for
 *                               good, completes the select, after which nobody claims it
 *   none loses an item          a case moves an item in the same step in which its store does; there is nothing to give back
 *   no wake-up is lost          the entries are on all lists and posted there before all cases are tried (sync/waiters.h)
 *   no deadlock                 a claim is held while stores are tried, which are lock-free, and nobody waits for one. The stores have room for
 *                               an item: two selects that cross need not meet
 *   nobody sleeps on for it     a select that completes leaves lists and gates of all its queues, so all are pumped (pump.c)
 * Linearization: of the case that proceeds, as its own call would be.
 * Progress: lock-free but for the waiting. A thread stopped with the claim delays that select, and those in whose completion it was.
 * Memory: one block for the operation and its cases, until the lists have let go of them.
 * Checked: stress/model/check_select.c, tests/test_select.c, stress scenario queue_select.
 */
#include <stdalign.h>
#include <weir/select.h>

#include "base/error.h"
#include "queue/op.h"
#include "sync/cancel.h"

static enum weir_status check_case(const struct weir_select_case *one, size_t i, weir_error *error)
{
	if (one->queue == NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "select: the queue of case %zu is NULL", i);
	if (one->kind != WEIR_SELECT_ENQUEUE && one->kind != WEIR_SELECT_DEQUEUE)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT,
		                  "select: case %zu, of queue \"%s\", is of kind %d, which there is not", i, one->queue->name,
		                  (int)one->kind);
	return WEIR_OK;
}

static enum weir_status check(const struct weir_select_case cases[], size_t count, weir_error *error)
{
	enum weir_status status = WEIR_OK;

	if (cases == NULL || count == 0)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "select: there are no cases");
	for (size_t i = 0; i < count && status == WEIR_OK; i++)
		status = check_case(&cases[i], i, error);
	if (status == WEIR_OK && weiri_record_get() == NULL)
		return weiri_fail(error, WEIR_RESOURCE_EXHAUSTED, "select: no memory for this thread's record");
	return status;
}

/* Another place for each call of a thread, spread evenly: Knuth's MMIX generator, of which the high bits are taken. */
static size_t draw_place(size_t count)
{
	static WEIRI_TLS uint64_t state;

	state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (size_t)(state >> 33) % count;
}

/* WEIR_WOULD_BLOCK: it cannot proceed now. */
static enum weir_status try_case(struct weir_select_case *one)
{
	return one->kind == WEIR_SELECT_ENQUEUE ? weir_queue_try_enqueue(one->queue, one->item)
	                                        : weir_queue_try_dequeue(one->queue, &one->item);
}

static enum weir_status try_all(struct weir_select_case cases[], size_t count, size_t first, size_t *chosen,
                                weir_error *error)
{
	for (size_t i = 0; i < count; i++) {
		size_t at = (first + i) % count;
		enum weir_status status = try_case(&cases[at]);

		if (status == WEIR_WOULD_BLOCK)
			continue;
		cases[at].status = status;
		*chosen = at;
		if (status != WEIR_OK)
			(void)weiri_queue_fail_closed(cases[at].queue, status, 1, 0, error);
		return WEIR_OK;
	}
	return WEIR_WOULD_BLOCK;
}

enum weir_status weir_try_select(struct weir_select_case cases[], size_t count, size_t *chosen, weir_error *error)
{
	enum weir_status status = check(cases, count, error);

	if (status == WEIR_OK && chosen == NULL)
		status = weiri_fail(error, WEIR_INVALID_ARGUMENT, "select: chosen is NULL");
	if (status != WEIR_OK)
		return status;
	status = try_all(cases, count, draw_place(count), chosen, error);
	return status == WEIR_OK ? status : weiri_fail(error, status, "select: none of %zu cases can proceed now", count);
}

static weir_queue_op *make_op(struct weir_select_case cases[], size_t count, size_t first, weir_queue_done_fn *callback,
                              void *context)
{
	weir_queue_op *op = weiri_op_create_select(cases[0].queue, count, callback, context);

	if (op == NULL)
		return NULL;
	op->first_case = first;
	for (size_t i = 0; i < count; i++)
		weiri_op_set_case(op, i, cases[i].queue,
		                  cases[i].kind == WEIR_SELECT_ENQUEUE ? WEIR_QUEUE_OP_ENQUEUE : WEIR_QUEUE_OP_DEQUEUE_MANY,
		                  &cases[i].item);
	return op;
}

static enum weir_status fail_memory(size_t count, weir_error *error)
{
	return weiri_fail(error, WEIR_RESOURCE_EXHAUSTED, "select: no memory to wait for %zu cases", count);
}

/* The outcome of an operation that has ended, for its owner. Of a case that was chosen it goes into the case. */
static enum weir_status settle(const weir_queue_op *op, struct weir_select_case cases[])
{
	if (op->chosen == op->case_count)
		return op->status;
	cases[op->chosen].status = op->status;
	return WEIR_OK;
}

static enum weir_status wait_for_any(struct weir_select_case cases[], size_t count, size_t first, uint64_t deadline_ns,
                                     weir_cancel *cancel, size_t *chosen, weir_error *error)
{
	struct weiri_record *record = weiri_record_get();
	weir_queue_op *op = make_op(cases, count, first, NULL, NULL);
	enum weir_status status;

	if (op == NULL)
		return fail_memory(count, error);
	op->token = cancel;
	weiri_op_start(record, op);
	weiri_op_wait(record, op, deadline_ns, cancel);
	if (op->status != WEIR_OK)
		(void)weiri_fail(error, op->status, "%s", op->error.message);
	status = settle(op, cases);
	if (status == WEIR_OK)
		*chosen = op->chosen;
	weiri_op_release(op);
	return status;
}

/* Of a call that began with a token that had fired. */
static WEIRI_COLD enum weir_status refuse(weir_cancel *cancel, size_t count, weir_error *error)
{
	weir_error cause = {WEIR_CANCELLED, "cancelled"};

	weiri_cancel_help(cancel);
	(void)weir_cancel_cause(cancel, &cause);
	return weiri_fail(error, WEIR_CANCELLED, "select of %zu cases was cancelled; %s: %.120s", count,
	                  weir_status_name(cause.code), cause.message);
}

enum weir_status weir_select(struct weir_select_case cases[], size_t count, uint64_t deadline_ns, weir_cancel *cancel,
                             size_t *chosen, weir_error *error)
{
	enum weir_status status = check(cases, count, error);
	size_t first;

	if (status == WEIR_OK && chosen == NULL)
		status = weiri_fail(error, WEIR_INVALID_ARGUMENT, "select: chosen is NULL");
	if (status != WEIR_OK)
		return status;
	if (WEIRI_UNLIKELY(weir_cancel_fired(cancel)))
		return refuse(cancel, count, error);
	first = draw_place(count);
	if (try_all(cases, count, first, chosen, error) == WEIR_OK)
		return WEIR_OK;
	if (deadline_ns == 0)
		return weiri_fail(error, WEIR_DEADLINE_EXCEEDED, "select: none of %zu cases could proceed at once", count);
	return wait_for_any(cases, count, first, deadline_ns, cancel, chosen, error);
}

/* -- asynchronous ------------------------------------------------------------------------------------------------------------- */

/* The operation's context: who is to be told. */
struct listener {
	weir_queue_op *op;
	struct weir_select_case *cases;
	weir_select_done_fn *done;
	void *context;
	weir_allocator allocator;
};

static void listener_free(struct listener *listener)
{
	weir_allocator allocator = listener->allocator;

	weiri_release(&allocator, listener, sizeof(*listener), alignof(struct listener));
}

static void tell(void *context, enum weir_status status, const weir_error *error, void **items, size_t done)
{
	struct listener *listener = context;
	const weir_queue_op *op = listener->op; /* alive until we return */

	(void)status, (void)items, (void)done;
	listener->done(listener->context, settle(op, listener->cases), error, listener->cases, op->chosen);
	listener_free(listener);
}

static struct listener *make_listener(struct weir_select_case cases[], size_t count, weir_select_done_fn *done,
                                      void *context)
{
	weir_allocator allocator = cases[0].queue->allocator;
	struct listener *listener = weiri_allocate(&allocator, sizeof(*listener), alignof(struct listener));

	if (listener == NULL)
		return NULL;
	*listener =
		(struct listener){make_op(cases, count, draw_place(count), tell, listener), cases, done, context, allocator};
	if (listener->op != NULL)
		return listener;
	listener_free(listener);
	return NULL;
}

enum weir_status weir_select_start(struct weir_select_case cases[], size_t count, weir_select_done_fn *done,
                                   void *context, weir_queue_op **out, weir_error *error)
{
	enum weir_status status = check(cases, count, error);
	struct listener *listener;
	weir_queue_op *op;

	if (status == WEIR_OK && done == NULL)
		status = weiri_fail(error, WEIR_INVALID_ARGUMENT, "select: done is NULL");
	if (status != WEIR_OK)
		return status;
	listener = make_listener(cases, count, done, context);
	if (listener == NULL)
		return fail_memory(count, error);
	op = listener->op;
	if (out != NULL)
		*out = op;
	else
		weiri_op_release(op); /* the completion's reference is left */
	weiri_op_start(weiri_record_get(), op);
	return WEIR_OK;
}
