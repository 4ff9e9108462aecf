/*
 * select.c - an operation that carries out one of several cases, on different queues.
 *
 * Algorithm. First a select tries each case as a call of its own. It starts with a case that it
 * draws. If none can proceed, the select becomes one operation (sync/pending.h) with an entry on
 * the list of each of its cases. The state of the operation is the decision. A thread that changes
 * one of the queues finds the entry there, claims the select, and tries the cases again, on behalf
 * of a sleeping thread or of an asynchronous select. A thread that finds the select claimed leaves
 * AGAIN, so the claimer tries all cases once more. So it cannot happen that each of two threads
 * leaves the item of its queue to the other thread.
 *
 * Source. One state word that decides between the alternatives of a choice, with claimed as an
 * intermediate state, is known from Parallel Concurrent ML (Reppy, Russo, Xiao, ICFP 2009). There,
 * a thread that finds a choice claimed spins until it is decided. Here it leaves AGAIN and
 * continues, so the select is lock-free; and a case moves its item through the store of a buffered
 * queue, not from thread to thread. We know of no publication of AGAIN.
 *
 * Invariants: O1 to O6 of pending.h, Q1 and Q3 of operation.h. In particular
 *   - exactly one case proceeds. Cases are tried only with the claim, one after the other. The
 *     first case that moves an item, or is refused permanently, completes the select, and
 *     afterwards no thread can claim it
 *   - no case loses an item. A case moves an item in the same step as its store does; there is
 *     nothing to return
 *   - no wake-up is lost. The entries are on all lists, and posted there, before all cases are
 *     tried (sync/waiters.h)
 *   - no deadlock. A claim is held only while stores are tried, which are lock-free, and no thread
 *     waits for a claim. The stores have room for an item, so two selects that cross need not run
 *     at the same time
 *   - no other waiter is left asleep. A select that completes leaves the lists and admission words
 *     of all its queues, so all of them are pumped (weiri_pending_pump)
 * Linearization: that of the case that proceeds, as for a call of its own.
 * Progress: lock-free, except for the waiting. A thread that stalls with the claim delays that
 *   select, and operations whose completion it was running.
 * Memory: one block for the operation and its cases, until the lists have released them.
 * Checked: stress/model/check_select.c, tests/test_select.c, stress scenario queue_select.
 */
#include <stdalign.h>
#include <weir/select.h>

#include "base/error.h"
#include "queue/operation.h"
#include "sync/cancel.h"

static enum weir_status check_case(const struct weir_select_case *one, size_t i, weir_error *error)
{
	if (one->queue == NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "select: the queue of case %zu is NULL", i);
	if (one->kind != WEIR_SELECT_ENQUEUE && one->kind != WEIR_SELECT_DEQUEUE)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "select: case %zu, of queue \"%s\", has the unknown kind %d", i,
		                  one->queue->name, (int)one->kind);
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

/*
 * Draws an index for each call, evenly distributed: the high bits of Knuth's MMIX generator. Each
 * thread has a generator of its own.
 */
static size_t draw_place(size_t count)
{
	uint64_t *state = &weiri_record_mine->own->places; /* check_cases() made sure of a record */

	*state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (size_t)(*state >> 33) % count;
}

/* Returns WEIR_WOULD_BLOCK if the case cannot proceed now. */
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
	return status == WEIR_OK
	           ? status
	           : weiri_fail(error, status, "select: none of %zu case%s can proceed now", count, WEIRI_S(count));
}

/* -- operations -------------------------------------------------------------------------------- */

/* The operation of a select: a part for each case. */
struct select_op {
	weir_pending pending; /* first */
	/* Constant. */
	size_t first;                   /* the case to begin with */
	struct weir_select_case *cases; /* this and the next two are for an asynchronous select */
	weir_select_done_fn *done;
	void *context;
	/* claim */
	size_t chosen; /* the case that proceeded; entry_count: none */
	struct weiri_queue_part parts[];
};

static struct select_op *op_of(weir_pending *pending)
{
	return WEIRI_CONTAINER_OF(pending, struct select_op, pending);
}

static struct select_op *make_op(struct weir_select_case cases[], size_t count, size_t first)
{
	const weir_allocator *allocator = &cases[0].queue->allocator;
	struct select_op *op = NULL;
	size_t size;

	if (weiri_multiply(count, sizeof(struct weiri_queue_part), &size) && size <= SIZE_MAX - sizeof(*op))
		op = weiri_allocate_zeroed(allocator, sizeof(*op) + size, alignof(max_align_t));
	if (op == NULL)
		return NULL;
	weiri_pending_init(&op->pending, &weiri_select_kind, &op->parts[0].entry, count, sizeof(*op) + size, allocator);
	op->first = first;
	op->chosen = count;
	for (size_t i = 0; i < count; i++) {
		enum weir_queue_op_kind kind =
			cases[i].kind == WEIR_SELECT_ENQUEUE ? WEIR_QUEUE_OP_ENQUEUE : WEIR_QUEUE_OP_DEQUEUE_MANY;

		(void)weiri_queue_part_init(&op->pending, &op->parts[i], cases[i].queue, kind, &cases[i].item, 1, 0);
	}
	return op;
}

/* Returns true if the part is an admitted enqueue, and the close has cancelled such enqueues. */
static bool is_cancelled_by_close(const struct weiri_queue_part *part)
{
	/* [acquire] the cause of the close. */
	return part->admitted && (weiri_load_acquire(&part->queue->admission) & WEIRI_ADMISSION_CANCEL) != 0;
}

static enum weiri_pending_outcome attempt_case(struct weiri_scope *scope, struct weiri_queue_part *part)
{
	if (is_cancelled_by_close(part)) {
		weiri_queue_part_end(part, WEIR_CANCELLED);
		return WEIRI_PENDING_COMPLETE;
	}
	/*
	 * Other operations go first. The thread that completes them pumps this queue, and so comes to
	 * this select. Not STUCK: what they wait for may stand behind this select.
	 */
	if (weiri_queue_part_is_fair(part) &&
	    weiri_pending_others_first(scope, &part->entry.place.waiters->list, part->entry.pending))
		return WEIRI_PENDING_WAITS;
	return weiri_queue_part_attempt(scope, part);
}

/*
 * Carries out the first case that can proceed. The case of a closed queue can proceed, too: it
 * reports the close.
 */
static enum weiri_pending_outcome attempt(struct weiri_scope *scope, weir_pending *pending, bool *moved)
{
	struct select_op *op = op_of(pending);
	enum weiri_pending_outcome outcome = WEIRI_PENDING_STUCK;

	for (size_t i = 0; i < pending->entry_count; i++) {
		size_t at = (op->first + i) % pending->entry_count;
		enum weiri_pending_outcome of_one = attempt_case(scope, &op->parts[at]);

		if (of_one == WEIRI_PENDING_COMPLETE) {
			op->chosen = at;
			*moved |= op->parts[at].done != 0;
			return of_one;
		}
		if (of_one == WEIRI_PENDING_WAITS)
			outcome = of_one; /* the walk of the list of this case must go on */
	}
	return outcome;
}

static bool join(struct weiri_scope *scope, weir_pending *pending, struct weiri_pending_entry *entry)
{
	struct select_op *op = op_of(pending);
	struct weiri_queue_part *part = weiri_queue_part_of(entry);

	if (weiri_queue_part_join(scope, part))
		return true;
	op->chosen = (size_t)(part - op->parts);
	return false;
}

static enum weir_status describe(weir_pending *pending, enum weiri_pending_why why, const weir_error *cause)
{
	size_t count = pending->entry_count;

	switch (why) {
	case WEIRI_PENDING_FOR_DEADLINE:
		return weiri_fail(&pending->error, WEIR_DEADLINE_EXCEEDED,
		                  "select: the deadline passed before any of %zu case%s could proceed", count, WEIRI_S(count));
	case WEIRI_PENDING_FOR_MEMORY:
		return weiri_fail(&pending->error, WEIR_RESOURCE_EXHAUSTED, "select: no memory to watch the cancel token");
	default:
		return weiri_fail(&pending->error, WEIR_CANCELLED, "select of %zu case%s was cancelled; %s: %.120s", count,
		                  WEIRI_S(count), weir_status_name(cause->code), cause->message);
	}
}

/*
 * Returns the outcome of an ended operation. If a case was chosen, the status goes into that case,
 * and the outcome is WEIR_OK.
 */
static enum weir_status settle(const struct select_op *op, struct weir_select_case cases[])
{
	if (op->chosen == op->pending.entry_count)
		return op->pending.status;
	cases[op->chosen].status = op->pending.status;
	return WEIR_OK;
}

static void tell(weir_pending *pending)
{
	struct select_op *op = op_of(pending);
	enum weir_status status = settle(op, op->cases);

	op->done(op->context, status, pending->status != WEIR_OK ? &pending->error : NULL, op->cases, op->chosen);
	pending->status = status;
	weiri_pending_told(pending);
}

static void count_wake(weir_pending *pending)
{
	weiri_queue_counter_add(&op_of(pending)->parts[0].queue->counters.wakes, 1);
}

const struct weiri_pending_kind weiri_select_kind = {
	.entry_size = sizeof(struct weiri_queue_part),
	.attempt = attempt,
	.join = join,
	.left = weiri_queue_part_left,
	.wakes = count_wake,
	.describe = describe,
	.tell = tell,
};

/* -- blocking calls ---------------------------------------------------------------------------- */

static enum weir_status fail_memory(size_t count, weir_error *error)
{
	return weiri_fail(error, WEIR_RESOURCE_EXHAUSTED, "select: no memory to wait for %zu case%s", count,
	                  WEIRI_S(count));
}

static enum weir_status wait_for_any(struct weir_select_case cases[], size_t count, size_t first, uint64_t deadline_ns,
                                     weir_cancel *cancel, size_t *chosen, weir_error *error)
{
	struct select_op *op = make_op(cases, count, first);
	enum weir_status status;

	if (op == NULL)
		return fail_memory(count, error);
	(void)weiri_pending_run(weiri_record_get(), &op->pending, deadline_ns, cancel, error);
	status = settle(op, cases);
	if (status == WEIR_OK)
		*chosen = op->chosen;
	weiri_pending_release(&op->pending);
	return status;
}

/* Refuses a call whose token had fired before it began. */
static WEIRI_COLD enum weir_status refuse(weir_cancel *cancel, size_t count, weir_error *error)
{
	weir_error cause = {WEIR_CANCELLED, "cancelled"};

	weiri_cancel_help(cancel);
	(void)weir_cancel_cause(cancel, &cause);
	return weiri_fail(error, WEIR_CANCELLED, "select of %zu case%s was cancelled; %s: %.120s", count, WEIRI_S(count),
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
		return weiri_fail(error, WEIR_DEADLINE_EXCEEDED, "select: none of %zu case%s could proceed at once", count,
		                  WEIRI_S(count));
	return wait_for_any(cases, count, first, deadline_ns, cancel, chosen, error);
}

/* -- asynchronous ------------------------------------------------------------------------------ */

enum weir_status weir_select_start(struct weir_select_case cases[], size_t count, weir_select_done_fn *done,
                                   void *context, weir_pending **out, weir_error *error)
{
	enum weir_status status = check(cases, count, error);
	struct select_op *op;

	if (status == WEIR_OK && done == NULL)
		status = weiri_fail(error, WEIR_INVALID_ARGUMENT, "select: done is NULL");
	if (status != WEIR_OK)
		return status;
	op = make_op(cases, count, draw_place(count));
	if (op == NULL)
		return fail_memory(count, error);
	op->cases = cases;
	op->done = done;
	op->context = context;
	weiri_pending_begin(weiri_record_get(), &op->pending, out);
	return WEIR_OK;
}
