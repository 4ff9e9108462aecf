/*
 * op.c - see op.h.
 */
#include "queue/op.h"

#include <stdalign.h>
#include <string.h>
#include <unistd.h>
#include <weir/time.h>

#include "base/error.h"
#include "base/futex.h"

static int is_batch_dequeue(const weir_queue_op *op)
{
	return op->kind != WEIR_QUEUE_OP_ENQUEUE && op->count > 1;
}

static void list_let_go(struct weiri_retired *retired)
{
	struct weiri_list_node *node = WEIRI_CONTAINER_OF(retired, struct weiri_list_node, retired);

	weiri_op_release(WEIRI_CONTAINER_OF(node, weir_queue_op, node)->leader);
}

/* Claimed, and in no list. */
static void op_init(weir_queue_op *op, weir_queue *queue, enum weir_queue_op_kind kind, void *items[], size_t count)
{
	weiri_list_node_init(&op->node, sizeof(*op), list_let_go);
	/* [relaxed] not shared yet. */
	weiri_store_relaxed(&op->state, (uint32_t)WEIRI_OP_CLAIMED);
	weiri_store_relaxed(&op->references, 2u);
	op->leader = op;
	op->queue = queue;
	op->kind = kind;
	op->items = items;
	op->count = count;
	op->allocator = queue->allocator;
}

/* The keys of the items that are not in yet: later, in a section, user code does not run. 0: no memory. */
static int ask_for_keys(weir_queue_op *op)
{
	int64_t *keys = &op->only_key;
	size_t size = 0;

	if (op->queue->key == NULL || op->kind != WEIR_QUEUE_OP_ENQUEUE || op->count == 0)
		return 1;
	if (op->count > 1)
		keys = weiri_multiply(op->count, sizeof(*keys), &size) ? weiri_allocate(&op->allocator, size, alignof(int64_t))
		                                                       : NULL;
	op->keys = keys;
	for (size_t i = op->done; keys != NULL && i < op->count; i++)
		keys[i] = weiri_queue_key(op->queue, op->items[i]);
	return keys != NULL;
}

static void release_keys(weir_queue_op *op)
{
	if (op->count > 1)
		weiri_release(&op->allocator, (void *)(uintptr_t)op->keys, op->count * sizeof(*op->keys), alignof(int64_t));
}

/* Of an operation with so many cases. 0: beyond what memory can hold. */
static size_t op_size(size_t cases)
{
	size_t size;

	return weiri_multiply(cases + 1, sizeof(weir_queue_op), &size) ? size : 0;
}

weir_queue_op *weiri_op_create(weir_queue *queue, enum weir_queue_op_kind kind, void *items[], size_t count,
                               size_t done, weir_queue_done_fn *callback, void *context)
{
	weir_queue_op *op = weiri_allocate_zeroed(&queue->allocator, op_size(0), alignof(weir_queue_op));

	if (op == NULL)
		return NULL;
	op_init(op, queue, kind, items, count);
	op->done = done;
	op->callback = callback;
	op->context = context;
	if (!ask_for_keys(op) || (is_batch_dequeue(op) && (op->partial = weiri_queue_segment(queue, count)) == NULL)) {
		weiri_release(&queue->allocator, op, op_size(0), alignof(weir_queue_op));
		return NULL;
	}
	return op;
}

weir_queue_op *weiri_op_create_select(weir_queue *queue, size_t count, weir_queue_done_fn *callback, void *context)
{
	weir_queue_op *op = weiri_allocate_zeroed(&queue->allocator, op_size(count), alignof(weir_queue_op));

	if (op == NULL)
		return NULL;
	op_init(op, queue, (enum weir_queue_op_kind)WEIRI_OP_SELECT, NULL, 1);
	op->callback = callback;
	op->context = context;
	op->cases = op + 1;
	op->case_count = op->chosen = count;
	return op;
}

void weiri_op_set_case(weir_queue_op *op, size_t i, weir_queue *queue, enum weir_queue_op_kind kind, void **item)
{
	op_init(&op->cases[i], queue, kind, item, 1);
	op->cases[i].leader = op;
	(void)ask_for_keys(&op->cases[i]);                                 /* one needs no memory */
	weiri_store_relaxed(&op->cases[i].state, (uint32_t)WEIRI_OP_DONE); /* [relaxed] not shared yet */
}

weir_queue_op *weiri_op_create_bell(weir_queue *queue)
{
	weir_queue_op *bell = weiri_op_create(queue, (enum weir_queue_op_kind)WEIRI_OP_BELL, NULL, 0, 0, NULL, NULL);

	if (bell != NULL)
		weiri_store_relaxed(&bell->state, (uint32_t)WEIRI_OP_DONE); /* [relaxed] not shared yet */
	return bell;
}

void weiri_op_retain(weir_queue_op *op)
{
	weiri_fetch_add_relaxed(&op->references,
	                        1u); /* [relaxed] the caller has one, or is in a scope that keeps the list's */
}

void weiri_op_release(weir_queue_op *op)
{
	/* [acq_rel] the last one sees all that the others did. */
	if (weiri_fetch_sub_acq_rel(&op->references, 1u) == 1) {
		weir_allocator allocator = op->allocator;

		weiri_segment_free(op->partial);
		release_keys(op);
		weiri_release(&allocator, op, op_size(op->case_count), alignof(weir_queue_op));
	}
}

/* -- an attempt --------------------------------------------------------------------------------------------------------------- */

static void set_status(weir_queue_op *op, enum weir_status status)
{
	op->status = status;
	if (status != WEIR_OK)
		(void)weiri_queue_fail_closed(op->queue, status, op->count, op->done, &op->error);
}

static enum weiri_op_outcome attempt_enqueue(weir_queue_op *op)
{
	enum weir_status status;
	size_t more;

	more = weiri_queue_put(op->queue, op->items + op->done, op->keys != NULL ? op->keys + op->done : NULL,
	                       op->count - op->done, op->admitted, &status);
	op->done += more;
	if (more != 0)
		weiri_queue_count_in(op->queue, more);
	if (op->done < op->count && status == WEIR_WOULD_BLOCK) {
		weiri_queue_note_full(op->queue);
		return WEIRI_OP_STUCK;
	}
	set_status(op, op->done == op->count ? WEIR_OK : status);
	return WEIRI_OP_COMPLETE;
}

static enum weiri_op_outcome attempt_dequeue(struct weiri_scope *scope, weir_queue_op *op)
{
	uint64_t single = 0, *into = op->partial != NULL ? op->partial->items + op->done : &single;
	int64_t *keys = NULL;
	enum weir_status status;
	size_t more;

	if (op->partial != NULL && op->partial->kind == WEIRI_SEGMENT_KEYED)
		keys = weiri_segment_keys(op->partial) + op->done;
	if (is_batch_dequeue(op) && !op->holds_turn && !(op->holds_turn = weiri_queue_turn_take(op->queue)))
		return WEIRI_OP_NO_TURN;
	more = weiri_queue_take_with_keys(scope, op->queue, into, keys, op->count - op->done, op->holds_turn, &status);
	if (op->partial == NULL && more != 0)
		op->items[0] = weiri_item_pointer(single);
	op->done += more;
	if (op->done == op->count ||
	    (status == WEIR_OUT_OF_RANGE && op->done != 0 && op->kind == WEIR_QUEUE_OP_DEQUEUE_UP_TO))
		status = WEIR_OK;
	else if (status != WEIR_OUT_OF_RANGE)
		/* The end of a closed queue may depend on the batch that collects, which may stand behind us on the list. */
		return op->holds_turn || !weiri_queue_turn_held(op->queue) ? WEIRI_OP_STUCK : WEIRI_OP_NO_TURN;
	set_status(op, status);
	return WEIRI_OP_COMPLETE;
}

/* Of a select: that case is complete. */
static enum weiri_op_outcome choose(weir_queue_op *op, size_t chosen)
{
	op->chosen = chosen;
	op->done = op->cases[chosen].done;
	op->status = op->cases[chosen].status;
	op->error = op->cases[chosen].error;
	return WEIRI_OP_COMPLETE;
}

static enum weiri_op_outcome attempt_alone(struct weiri_scope *scope, weir_queue_op *op)
{
	if (op->done == op->count) { /* also an operation on no items */
		set_status(op, WEIR_OK);
		return WEIRI_OP_COMPLETE;
	}
	return op->kind == WEIR_QUEUE_OP_ENQUEUE ? attempt_enqueue(op) : attempt_dequeue(scope, op);
}

static int is_fair(const weir_queue_op *op)
{
	return (op->queue->flags & WEIR_QUEUE_FAIR) != 0;
}

/* The close cancelled the enqueues that wait; of a case nobody told the leader. */
static int is_cancelled_by_close(const weir_queue_op *one)
{
	/* [acquire] the cause of the close. */
	return one->admitted && (weiri_load_acquire(&one->queue->gate) & WEIRI_GATE_CANCEL) != 0;
}

static enum weiri_op_outcome attempt_case(struct weiri_scope *scope, weir_queue_op *one)
{
	if (is_cancelled_by_close(one)) {
		set_status(one, WEIR_CANCELLED);
		return WEIRI_OP_COMPLETE;
	}
	/* Whoever carries those on who are ahead pumps that queue, and comes to us then. Not STUCK: what they wait for may stand behind us. */
	if (is_fair(one) && weiri_op_others_first(scope, &weiri_op_waiters(one)->list, one->leader))
		return WEIRI_OP_NO_TURN;
	return attempt_alone(scope, one);
}

/* The first case that can: closed counts. */
static enum weiri_op_outcome attempt_any(struct weiri_scope *scope, weir_queue_op *op)
{
	enum weiri_op_outcome outcome = WEIRI_OP_STUCK;

	for (size_t i = 0; i < op->case_count; i++) {
		size_t at = (op->first_case + i) % op->case_count;
		enum weiri_op_outcome of_one = attempt_case(scope, &op->cases[at]);

		if (of_one == WEIRI_OP_COMPLETE)
			return choose(op, at);
		if (of_one == WEIRI_OP_NO_TURN)
			outcome = of_one; /* the list on which that one stands is to be walked on */
	}
	return outcome;
}

static enum weiri_op_outcome attempt(struct weiri_scope *scope, weir_queue_op *op)
{
	return op->cases == NULL ? attempt_alone(scope, op) : attempt_any(scope, op);
}

/* -- the state machine -------------------------------------------------------------------------------------------------------- */

int weiri_op_claim(weir_queue_op *op)
{
	/* [relaxed] the CAS counts. */
	uint32_t state = weiri_load_relaxed(&op->state);

	for (;;) {
		if ((state & WEIRI_OP_DONE) != 0)
			return 0;
		if ((state & WEIRI_OP_CLAIMED) == 0) {
			/* [relaxed] what the last claimer left (O1) is acquired by weiri_op_drive(), with which every claim begins. */
			if (weiri_cas_relaxed(&op->state, &state, state | WEIRI_OP_CLAIMED))
				return 1;
		} else if (weiri_cas_release(&op->state, &state, state | WEIRI_OP_AGAIN)) {
			/* [release] O2: the claimer that sees AGAIN sees what we changed. Also when AGAIN was there: what we read of it may
			 * be older than the claimer's last look. */
			return 0;
		}
	}
}

/* Of a select, which has a token only when a blocking call made it. */
static enum weir_status describe_cancelled_select(weir_queue_op *op, uint32_t why)
{
	weir_error cause = {WEIR_CANCELLED, "cancelled"};

	if (why == WEIRI_OP_FOR_DEADLINE)
		return weiri_fail(&op->error, WEIR_DEADLINE_EXCEEDED,
		                  "select: the deadline passed before any of %zu cases could proceed", op->case_count);
	if (why == WEIRI_OP_FOR_MEMORY)
		return weiri_fail(&op->error, WEIR_RESOURCE_EXHAUSTED, "select: no memory to watch the cancel token");
	if (why == WEIRI_OP_FOR_TOKEN)
		(void)weir_cancel_cause(op->token, &cause);
	if (why == WEIRI_OP_FOR_A_CAUSE)
		cause = op->caller_cause;
	return weiri_fail(&op->error, WEIR_CANCELLED, "select of %zu cases was cancelled; %s: %.120s", op->case_count,
	                  weir_status_name(cause.code), cause.message);
}

/* With the claim, which saw `why` in the state. */
static enum weir_status describe_cancel(weir_queue_op *op, uint32_t why)
{
	const char *name = op->queue->name, *verb = weiri_op_verb(op->kind);
	weir_error cause = {WEIR_CANCELLED, ""};

	switch (why) {
	case WEIRI_OP_FOR_CLOSE: return weiri_queue_fail_closed(op->queue, WEIR_CANCELLED, op->count, op->done, &op->error);
	case WEIRI_OP_FOR_DEADLINE:
		return weiri_fail(&op->error, WEIR_DEADLINE_EXCEEDED, "queue \"%s\": the deadline passed in %s of %zu items",
		                  name, verb, op->count);
	case WEIRI_OP_FOR_MEMORY:
		return weiri_fail(&op->error, WEIR_RESOURCE_EXHAUSTED, "queue \"%s\": no memory to watch the cancel token",
		                  name);
	case WEIRI_OP_FOR_TOKEN:
		(void)weir_cancel_cause(op->token, &cause);
		return weiri_queue_fail_cancelled(op->queue, verb, &cause, &op->error);
	case WEIRI_OP_FOR_A_CAUSE:
		cause = op->caller_cause;
		return weiri_fail(&op->error, WEIR_CANCELLED, "queue \"%s\": %s was cancelled: %.120s", name, verb,
		                  cause.message);
	default: return weiri_fail(&op->error, WEIR_CANCELLED, "queue \"%s\": %s was cancelled", name, verb);
	}
}

enum weiri_op_outcome weiri_op_drive(struct weiri_scope *scope, weir_queue_op *op, int *moved)
{
	for (;;) {
		/* [acquire] O1, what the last claimer left: our claim was a read-modify-write, which keeps what it released. O2, and the
		 * canceller's cause. No release: the claim, and with it what we did, is given up by the CAS below. */
		uint32_t state = weiri_fetch_and_acquire(&op->state, ~(uint32_t)WEIRI_OP_AGAIN);
		size_t before = op->done;
		enum weiri_op_outcome outcome;

		if ((state & WEIRI_OP_CANCEL) != 0) {
			op->status = op->cases == NULL ? describe_cancel(op, state & WEIRI_OP_WHY)
			                               : describe_cancelled_select(op, state & WEIRI_OP_WHY);
			return WEIRI_OP_COMPLETE;
		}
		outcome = attempt(scope, op);
		*moved |= op->done != before;
		if (outcome == WEIRI_OP_COMPLETE)
			return outcome;
		state = WEIRI_OP_CLAIMED;
		/* [release] O1. A failure: AGAIN or CANCEL came. */
		if (weiri_cas_release(&op->state, &state, 0u))
			return outcome;
	}
}

/* A batch is over: its items go to the caller, or back. */
static void settle_partial(struct weiri_scope *scope, weir_queue_op *op)
{
	if (op->partial != NULL && op->partial->kind == WEIRI_SEGMENT_KEYED)
		weiri_segment_sort(op->partial, op->done);
	if (op->partial != NULL && op->status == WEIR_OK) {
		for (size_t i = 0; i < op->done; i++)
			op->items[i] = weiri_item_pointer(op->partial->items[i]);
	} else if (op->partial != NULL && op->done != 0) {
		weiri_putback_push(scope, &op->queue->putback, op->partial, op->done);
		op->partial = NULL;
		op->done = 0;
	}
	if (op->holds_turn)
		weiri_queue_turn_give(op->queue);
	op->holds_turn = 0;
}

/* Takes it off its list, after so long. */
static void leave_list(struct weiri_scope *scope, weir_queue_op *op, uint64_t waited_ns)
{
	if (op->listed) {
		weiri_tally_add(&op->queue->tally.blocked_ns[weiri_op_side(op)], waited_ns);
		(void)weiri_list_remove(scope, &weiri_op_waiters(op)->list, &op->node);
	}
	if (op->admitted)
		/* [release] our items, or our giving up, before a dequeue concludes that nothing is still to come. A read-modify-write
		 * keeps what the others released before. */
		(void)weiri_fetch_sub_release(&op->queue->gate, 1u);
}

void weiri_op_finish(struct weiri_scope *scope, weir_queue_op *op)
{
	uint64_t waited_ns = op->began_ns != 0 ? weir_now_ns() - op->began_ns : 0;

	settle_partial(scope, op);
	leave_list(scope, op, waited_ns);
	for (size_t i = 0; i < op->case_count; i++)
		leave_list(scope, &op->cases[i], waited_ns);
}

/* From when it waits, or its completion is due, until its owner is told: its queue is not to be destroyed meanwhile. */
static void count_one(weir_queue_op *op)
{
	if (!op->counted)
		(void)weiri_fetch_add_relaxed(&op->queue->waiting, 1u); /* [relaxed] see weir_queue_destroy() */
	op->counted = 1;
}

static void count_all(weir_queue_op *op)
{
	if (op->cases == NULL) {
		count_one(op);
		return;
	}
	for (size_t i = 0; i < op->case_count; i++)
		count_one(&op->cases[i]);
}

static void uncount_one(weir_queue_op *op)
{
	if (op->counted)
		(void)weiri_fetch_sub_relaxed(&op->queue->waiting, 1u); /* [relaxed] see weir_queue_destroy() */
	op->counted = 0;
}

static void uncount_all(weir_queue_op *op)
{
	uncount_one(op);
	for (size_t i = 0; i < op->case_count; i++)
		uncount_one(&op->cases[i]);
}

/* Tells the owner of a blocking call. He may be gone then, and the queue, too: what is counted is counted before. */
static void finish_wait(weir_queue_op *op)
{
	uint32_t waits = WEIRI_OP_WAITS;

	/* [release] the outcome; pairs with the owner's wait. He is on his way to sleep, and will not: no system call. */
	if (weiri_cas_release(&op->finished, &waits, (uint32_t)WEIRI_OP_FINISHED))
		return;
	weiri_tally_add(&op->queue->tally.wakes, 1);
	/* [release] as above. */
	weiri_store_release(&op->finished, (uint32_t)WEIRI_OP_FINISHED);
	weiri_futex_wake(&op->finished, 1);
}

static void tell(struct weiri_delivery *delivery)
{
	weir_queue_op *op = WEIRI_CONTAINER_OF(delivery, weir_queue_op, delivery);

	uncount_all(op);
	op->callback(op->context, op->status, op->status != WEIR_OK ? &op->error : NULL, op->items, op->done);
	weiri_op_release(op);
}

void weiri_op_complete(weir_queue_op *op)
{
	/* [relaxed] O1: whoever sees DONE touches nothing more, so it carries nothing. */
	weiri_store_relaxed(&op->state, (uint32_t)WEIRI_OP_DONE);
	if (op->callback == NULL) {
		uncount_all(op);
		finish_wait(op);
		weiri_op_release(op);
		return;
	}
	/* Now: the list may hold the operation for long. The owner of a blocking call does it himself: we may be in a scope. */
	weiri_segment_free(op->partial);
	op->partial = NULL;
	if (!weiri_deliver(&op->delivery, tell))
		count_all(op);
}

/* -- starting and cancelling -------------------------------------------------------------------------------------------------- */

/* Leaves CANCEL to whoever holds the claim. 1: nobody does, and the caller, who wants it, has it now. */
static int set_cancel(weir_queue_op *op, enum weiri_op_why why, int want_claim)
{
	/* [relaxed] the CAS counts. */
	uint32_t state = weiri_load_relaxed(&op->state);
	uint32_t cancelled = (uint32_t)WEIRI_OP_CANCEL | (uint32_t)why | (want_claim ? (uint32_t)WEIRI_OP_CLAIMED : 0);

	while ((state & WEIRI_OP_DONE) == 0) {
		uint32_t next = (state & WEIRI_OP_CANCEL) == 0 ? state | cancelled : state | (cancelled & WEIRI_OP_CLAIMED);

		/* [release] the cause, to the claimer. If that is the caller: see weiri_op_claim(). */
		if (weiri_cas_release(&op->state, &state, next))
			return want_claim && (state & WEIRI_OP_CLAIMED) == 0;
	}
	return 0;
}

/* An enqueue that is going to wait: admitted, or refused because the queue is closed. */
static int admit(weir_queue_op *op)
{
	uint64_t gate;

	if (weiri_queue_store_closed(op->queue))
		return 0;
	do {
		/* [acquire] the cause of the close, for who is refused. */
		gate = weiri_load_acquire(&op->queue->gate);
		if ((gate & WEIRI_GATE_CLOSED) != 0)
			return 0;
		/* [relaxed] a count: what we put in comes with the release by which we leave. */
	} while (!weiri_cas_relaxed(&op->queue->gate, &gate, gate + 1));
	op->admitted = 1;
	return 1;
}

static void put_on_list(struct weiri_scope *scope, weir_queue_op *op)
{
	weiri_op_retain(op->leader); /* the list's */
	op->listed = 1;
	weiri_tally_add(&op->queue->tally.waits[weiri_op_side(op)], 1);
	count_one(op);
	weiri_list_append(scope, &weiri_op_waiters(op)->list, &op->node); /* [seq_cst] then the gate, below */
	/* [seq_cst] Dekker with close: it sets CANCEL, then walks the list. A case is looked at after its post, by attempt_case(). */
	if (op->admitted && op->leader == op && (weiri_load_seq_cst(&op->queue->gate) & WEIRI_GATE_CANCEL) != 0)
		(void)set_cancel(op, WEIRI_OP_FOR_CLOSE, 0); /* we hold the claim and will see it */
}

/* Those ahead of it come first: the pump after the start begins with them. 0: it has AGAIN or CANCEL. */
static int give_up_claim(weir_queue_op *op)
{
	uint32_t state = WEIRI_OP_CLAIMED;

	/* [release] O1. */
	return weiri_cas_release(&op->state, &state, 0u);
}

/* On its list, unless it is an enqueue that comes after the close: 0. */
static int join_list(struct weiri_scope *scope, weir_queue_op *op)
{
	if (op->kind == WEIR_QUEUE_OP_ENQUEUE && !admit(op)) {
		set_status(op, WEIR_CANCELLED);
		return 0;
	}
	put_on_list(scope, op);
	return 1;
}

/* It is on all its lists, and will look once more. 0: somebody may overlook it. */
static int post(weir_queue_op *op)
{
	int seen = op->cases != NULL || weiri_waiters_post(weiri_op_waiters(op));

	for (size_t i = 0; i < op->case_count; i++)
		seen &= weiri_waiters_post(weiri_op_waiters(&op->cases[i]));
	return seen;
}

static enum weiri_op_outcome wait_on_list(struct weiri_scope *scope, weir_queue_op *op, int *moved)
{
	op->began_ns = weir_now_ns();
	op->thread = (uint32_t)gettid();
	if (op->cases == NULL && !join_list(scope, op))
		return WEIRI_OP_COMPLETE;
	for (size_t i = 0; i < op->case_count; i++) {
		if (!join_list(scope, &op->cases[i]))
			return choose(op, i);
	}
	op->blind = !post(op);
	return op->cases == NULL && is_fair(op) && give_up_claim(op) ? WEIRI_OP_STUCK : weiri_op_drive(scope, op, moved);
}

int weiri_op_others_first(struct weiri_scope *scope, struct weiri_list *list, const weir_queue_op *own)
{
	struct weiri_list_node *node = NULL;
	const weir_queue_op *first = NULL;

	if (!weiri_list_occupied(list))
		return 0;
	weiri_list_sweep(scope, list);
	do {
		node = weiri_list_next(scope, list, node);
		first = node != NULL ? WEIRI_CONTAINER_OF(node, weir_queue_op, node) : NULL;
	} while (first != NULL && first->kind == (enum weir_queue_op_kind)WEIRI_OP_BELL);
	return first != NULL && first->leader != own;
}

/* Of a select each case asks for itself. */
static int may_barge(struct weiri_scope *scope, weir_queue_op *op)
{
	return op->cases != NULL || !is_fair(op) || op->count == 0 ||
	       !weiri_op_others_first(scope, &weiri_op_waiters(op)->list, NULL);
}

/* What is counted: no completion destroys its queues. */
static void pump(struct weiri_record *record, const weir_queue_op *op)
{
	if (op->cases == NULL)
		weiri_queue_pump(record, op->queue);
	for (size_t i = 0; i < op->case_count; i++)
		weiri_queue_pump(record, op->cases[i].queue);
}

/* Tries, and else puts it on its list. 1: complete, and finished. */
static int try_or_wait(struct weiri_record *record, weir_queue_op *op)
{
	struct weiri_scope scope = weiri_scope_enter(record);
	enum weiri_op_outcome outcome = WEIRI_OP_STUCK;
	int moved = 0;

	if (may_barge(&scope, op))
		outcome = attempt(&scope, op);
	if (outcome != WEIRI_OP_COMPLETE)
		outcome = wait_on_list(&scope, op, &moved);
	if (outcome == WEIRI_OP_COMPLETE)
		weiri_op_finish(&scope, op);
	weiri_scope_leave(&scope);
	return outcome == WEIRI_OP_COMPLETE;
}

/* By the thread that started it: a completion that runs in here may destroy queues, when it is told already. */
static void visit_cases(weir_queue_op *op)
{
	for (size_t i = 0; i < op->case_count; i++)
		weiri_visit_begin(&op->cases[i].visit, op->cases[i].queue);
}

/* Ends the visits, too. */
static void pump_visited(struct weiri_record *record, const weir_queue_op *op)
{
	for (size_t i = 0; i < op->case_count; i++) {
		if (!weiri_visit_is_over(&op->cases[i].visit))
			weiri_queue_pump(record, op->cases[i].queue);
	}
	weiri_visit_end(&op->cases[0].visit);
}

static void start_select(struct weiri_record *record, weir_queue_op *op)
{
	weiri_op_retain(op); /* until we have pumped: another may complete it, and its owner release it */
	visit_cases(op);
	if (try_or_wait(record, op))
		weiri_op_complete(op);
	pump_visited(record, op);
	weiri_op_release(op);
}

void weiri_op_start(struct weiri_record *record, weir_queue_op *op)
{
	weir_queue *queue = op->queue;
	struct weiri_visit visit;

	if (op->cases != NULL) {
		start_select(record, op);
		return;
	}
	weiri_visit_begin(&visit, queue);
	if (try_or_wait(record, op))
		weiri_op_complete(op);
	/* Items moved, a turn was given back, or an admitted enqueue gave up: others may go on. */
	if (!weiri_visit_is_over(&visit))
		weiri_queue_pump(record, queue);
	weiri_visit_end(&visit);
}

void weiri_op_pump(struct weiri_record *record, weir_queue_op *op)
{
	if (op->cases == NULL) {
		weiri_queue_pump(record, op->queue);
	} else {
		visit_cases(op);
		pump_visited(record, op);
	}
	weiri_deliver_due();
}

/* The owner of a blocking call cancels it himself, because its token fired. */
static void raise_alarm(weir_queue_op *op)
{
	uint32_t seen = WEIRI_OP_WAITS;

	/* [relaxed] nothing but the alarm itself. The first fails while he sleeps; both: it has completed, or he knows. */
	while (seen == WEIRI_OP_WAITS || seen == WEIRI_OP_ASLEEP) {
		if (weiri_cas_relaxed(&op->finished, &seen, (uint32_t)WEIRI_OP_ALARMED)) {
			weiri_futex_wake(&op->finished, 1);
			return;
		}
	}
}

void weiri_op_cancel(weir_queue_op *op, enum weiri_op_why why)
{
	struct weiri_record *record = weiri_record_get();
	struct weiri_scope scope;
	int moved = 0;

	if (record == NULL && op->callback == NULL) {
		raise_alarm(op);
		return;
	}
	if (!set_cancel(op, why, record != NULL))
		return;
	scope = weiri_scope_enter(record);
	(void)weiri_op_drive(&scope, op, &moved); /* sees CANCEL */
	weiri_op_finish(&scope, op);
	weiri_scope_leave(&scope);
	/* Last of all: whoever is told may destroy the queue, and who fires a token is nobody that he could wait for. */
	pump(record, op);
	weiri_op_complete(op);
}

void weiri_op_cancel_for(weir_queue_op *op, const weir_error *cause)
{
	enum weiri_op_why why = WEIRI_OP_FOR_CALLER;

	/* [relaxed] a place for the first that comes; the state carries what is in it. */
	if (cause != NULL && weiri_exchange_relaxed(&op->cause_taken, 1u) == 0) {
		op->caller_cause = weiri_error_kept(cause);
		why = WEIRI_OP_FOR_A_CAUSE;
	}
	weiri_op_cancel(op, why);
}
