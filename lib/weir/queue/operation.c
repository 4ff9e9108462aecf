/*
 * operation.c - see operation.h.
 */
#include "queue/operation.h"

#include <stdalign.h>

#include "base/error.h"

/* -- parts ------------------------------------------------------------------------------------- */

static bool is_batch_dequeue(const struct weiri_queue_part *part)
{
	return part->kind != WEIR_QUEUE_OP_ENQUEUE && part->count > 1;
}

/* Q3: computes the keys of the items that are not in yet. Returns false if there is no memory. */
static bool compute_keys(struct weiri_queue_part *part)
{
	int64_t *keys = &part->only_key;
	size_t size = 0;

	if (part->queue->key == NULL || part->kind != WEIR_QUEUE_OP_ENQUEUE || part->count == 0)
		return true;
	if (part->count > 1)
		keys = weiri_multiply(part->count, sizeof(*keys), &size)
		           ? weiri_allocate(&part->queue->allocator, size, alignof(int64_t))
		           : NULL;
	part->keys = keys;
	for (size_t i = part->done; keys != NULL && i < part->count; i++)
		keys[i] = weiri_queue_key(part->queue, part->items[i]);
	return keys != NULL;
}

static void release_keys(const weir_allocator *allocator, struct weiri_queue_part *part)
{
	if (part->count > 1)
		weiri_release(allocator, (void *)(uintptr_t)part->keys, part->count * sizeof(*part->keys), alignof(int64_t));
}

bool weiri_queue_part_init(weir_pending *pending, struct weiri_queue_part *part, weir_queue *queue,
                           enum weir_queue_op_kind kind, void *items[], size_t count, size_t done)
{
	struct weiri_waiters *waiters = kind == WEIR_QUEUE_OP_ENQUEUE ? &queue->producers : &queue->consumers;

	weiri_pending_entry_init(pending, &part->entry,
	                         (struct weiri_wait_place){waiters, &queue->waiting, queue, weiri_queue_serve});
	part->queue = queue;
	part->kind = kind;
	part->items = items;
	part->count = count;
	part->done = done;
	return compute_keys(part);
}

void weiri_queue_part_end(struct weiri_queue_part *part, enum weir_status status)
{
	weir_pending *pending = part->entry.pending;

	pending->status = status;
	if (status != WEIR_OK)
		(void)weiri_queue_fail_closed(part->queue, status, part->count, part->done, &pending->error);
}

static enum weiri_pending_outcome attempt_enqueue(struct weiri_queue_part *part)
{
	enum weir_status status;
	size_t more =
		weiri_queue_put(part->queue, part->items + part->done, part->keys != NULL ? part->keys + part->done : NULL,
	                    part->count - part->done, part->admitted, &status);

	part->done += more;
	if (more != 0)
		weiri_queue_count_in(part->queue, more);
	if (part->done < part->count && status == WEIR_WOULD_BLOCK) {
		weiri_queue_note_full(part->queue);
		return WEIRI_PENDING_STUCK;
	}
	weiri_queue_part_end(part, part->done == part->count ? WEIR_OK : status);
	return WEIRI_PENDING_COMPLETE;
}

/* Takes items until the part has all that it wants, or *status tells why no more came. */
static void take(struct weiri_scope *scope, struct weiri_queue_part *part, enum weir_status *status)
{
	uint64_t single = 0, *into = part->partial != NULL ? part->partial->items + part->done : &single;
	int64_t *keys = NULL;
	size_t more;

	if (part->partial != NULL && part->partial->kind == WEIRI_SEGMENT_KEYED)
		keys = weiri_segment_keys(part->partial) + part->done;
	more =
		weiri_queue_take_with_keys(scope, part->queue, into, keys, part->count - part->done, part->holds_turn, status);
	if (part->partial == NULL && more != 0)
		part->items[0] = weiri_item_pointer(single);
	part->done += more;
}

static enum weiri_pending_outcome attempt_dequeue(struct weiri_scope *scope, struct weiri_queue_part *part)
{
	enum weir_status status;

	/* Q2 */
	if (is_batch_dequeue(part) && !part->holds_turn && !(part->holds_turn = weiri_queue_turn_take(part->queue)))
		return WEIRI_PENDING_WAITS;
	take(scope, part, &status);
	if (part->done == part->count ||
	    (status == WEIR_OUT_OF_RANGE && part->done != 0 && part->kind == WEIR_QUEUE_OP_DEQUEUE_UP_TO))
		status = WEIR_OK;
	else if (status != WEIR_OUT_OF_RANGE)
		/*
		 * The end of a closed queue may depend on the batch that collects, and that batch may stand
		 * behind this operation on the list.
		 */
		return part->holds_turn || !weiri_queue_turn_held(part->queue) ? WEIRI_PENDING_STUCK : WEIRI_PENDING_WAITS;
	weiri_queue_part_end(part, status);
	return WEIRI_PENDING_COMPLETE;
}

enum weiri_pending_outcome weiri_queue_part_attempt(struct weiri_scope *scope, struct weiri_queue_part *part)
{
	if (part->done == part->count) { /* true also of an operation on no items */
		weiri_queue_part_end(part, WEIR_OK);
		return WEIRI_PENDING_COMPLETE;
	}
	return part->kind == WEIR_QUEUE_OP_ENQUEUE ? attempt_enqueue(part) : attempt_dequeue(scope, part);
}

/* Q1: admits the enqueue. Returns false if the queue is closed. */
static bool admit(struct weiri_queue_part *part)
{
	uint64_t admission;

	if (weiri_queue_store_closed(part->queue))
		return false;
	do {
		/* [acquire] the cause of the close, which this call reports if the queue is closed. */
		admission = weiri_load_acquire(&part->queue->admission);
		if ((admission & WEIRI_ADMISSION_CLOSED) != 0)
			return false;
		/*
		 * [relaxed] a count: weiri_queue_part_left() releases the items that this operation puts
		 * in.
		 */
	} while (!weiri_cas_relaxed(&part->queue->admission, &admission, admission + 1));
	part->admitted = true;
	return true;
}

bool weiri_queue_part_join(struct weiri_scope *scope, struct weiri_queue_part *part)
{
	if (part->kind == WEIR_QUEUE_OP_ENQUEUE && !admit(part)) {
		weiri_queue_part_end(part, WEIR_CANCELLED);
		return false;
	}
	weiri_queue_counter_add(&part->queue->counters.waits[weiri_queue_part_side(part)], 1);
	weiri_pending_stand(scope, part->entry.pending, &part->entry);
	return true;
}

void weiri_queue_part_left(weir_pending *pending, struct weiri_pending_entry *entry, uint64_t waited_ns)
{
	struct weiri_queue_part *part = weiri_queue_part_of(entry);

	(void)pending;
	if (entry->listed)
		weiri_queue_counter_add(&part->queue->counters.blocked_ns[weiri_queue_part_side(part)], waited_ns);
	if (part->admitted)
		/*
		 * [release] Q1: the items of this operation, or that it gave up. A read-modify-write keeps
		 * what other enqueues released before.
		 */
		(void)weiri_fetch_sub_release(&part->queue->admission, 1u);
}

/* -- an enqueue or a dequeue ------------------------------------------------------------------- */

static struct weiri_queue_operation *op_of(weir_pending *pending)
{
	return WEIRI_CONTAINER_OF(pending, struct weiri_queue_operation, pending);
}

struct weiri_queue_operation *weiri_queue_operation_create(weir_queue *queue, enum weir_queue_op_kind kind,
                                                           void *items[], size_t count, size_t done,
                                                           weir_queue_done_fn *callback, void *context)
{
	struct weiri_queue_operation *op = weiri_allocate_zeroed(&queue->allocator, sizeof(*op), alignof(max_align_t));
	struct weiri_queue_part *part;

	if (op == NULL)
		return NULL;
	part = &op->part;
	weiri_pending_init(&op->pending, &weiri_queue_kind, &part->entry, 1, sizeof(*op), &queue->allocator);
	op->pending.in_order = (queue->flags & WEIR_QUEUE_FAIR) != 0;
	op->callback = callback;
	op->context = context;
	if (!weiri_queue_part_init(&op->pending, part, queue, kind, items, count, done) ||
	    (is_batch_dequeue(part) && (part->partial = weiri_queue_segment(queue, count)) == NULL)) {
		weiri_release(&queue->allocator, op, sizeof(*op), alignof(max_align_t));
		return NULL;
	}
	return op;
}

static enum weiri_pending_outcome attempt(struct weiri_scope *scope, weir_pending *pending, bool *moved)
{
	struct weiri_queue_part *part = &op_of(pending)->part;
	size_t before = part->done;
	enum weiri_pending_outcome outcome = weiri_queue_part_attempt(scope, part);

	*moved |= part->done != before;
	return outcome;
}

static bool may_barge(struct weiri_scope *scope, weir_pending *pending)
{
	const struct weiri_queue_part *part = &op_of(pending)->part;

	return !weiri_queue_part_is_fair(part) || part->count == 0 ||
	       !weiri_pending_others_first(scope, &part->entry.place.waiters->list, NULL);
}

static bool join(struct weiri_scope *scope, weir_pending *pending, struct weiri_pending_entry *entry)
{
	struct weiri_queue_part *part = weiri_queue_part_of(entry);

	if (!weiri_queue_part_join(scope, part))
		return false;
	/*
	 * [seq_cst] Dekker with close, which sets CANCEL and then walks the list. If this load misses
	 * CANCEL, the close finds this operation and cancels it. In both cases this thread ends the
	 * operation, because it holds the claim.
	 */
	if (part->admitted && (weiri_load_seq_cst(&part->queue->admission) & WEIRI_ADMISSION_CANCEL) != 0)
		weiri_pending_cancel_claimed(pending, WEIRI_PENDING_FOR_CLOSE);
	return true;
}

/* Q2: hands the items of a batch to the caller, or returns them to the queue. */
static void settle(struct weiri_scope *scope, weir_pending *pending)
{
	struct weiri_queue_part *part = &op_of(pending)->part;

	if (part->partial != NULL && part->partial->kind == WEIRI_SEGMENT_KEYED)
		weiri_segment_sort(part->partial, part->done);
	if (part->partial != NULL && pending->status == WEIR_OK) {
		for (size_t i = 0; i < part->done; i++)
			part->items[i] = weiri_item_pointer(part->partial->items[i]);
	} else if (part->partial != NULL && part->done != 0) {
		weiri_putback_push(scope, &part->queue->putback, part->partial, part->done);
		part->partial = NULL;
		part->done = 0;
	}
	if (part->holds_turn)
		weiri_queue_turn_give(part->queue);
	part->holds_turn = false;
}

static enum weir_status describe(weir_pending *pending, enum weiri_pending_why why, const weir_error *cause)
{
	const struct weiri_queue_part *part = &op_of(pending)->part;
	const char *name = part->queue->name, *verb = weiri_queue_verb(part->kind);
	weir_error *error = &pending->error;

	switch (why) {
	case WEIRI_PENDING_FOR_CLOSE:
		return weiri_queue_fail_closed(part->queue, WEIR_CANCELLED, part->count, part->done, error);
	case WEIRI_PENDING_FOR_DEADLINE:
		return weiri_fail(error, WEIR_DEADLINE_EXCEEDED, "queue \"%s\": the deadline passed in %s of %zu item%s", name,
		                  verb, part->count, WEIRI_S(part->count));
	case WEIRI_PENDING_FOR_MEMORY:
		return weiri_fail(error, WEIR_RESOURCE_EXHAUSTED, "queue \"%s\": no memory to watch the cancel token", name);
	case WEIRI_PENDING_FOR_TOKEN: return weiri_queue_fail_cancelled(part->queue, verb, cause, error);
	case WEIRI_PENDING_FOR_A_CAUSE:
	case WEIRI_PENDING_FOR_INTERRUPT:
		return weiri_fail(error, WEIR_CANCELLED, "queue \"%s\": %s was cancelled: %.120s", name, verb, cause->message);
	default: return weiri_fail(error, WEIR_CANCELLED, "queue \"%s\": %s was cancelled", name, verb);
	}
}

static void tell(weir_pending *pending)
{
	struct weiri_queue_operation *op = op_of(pending);

	weiri_segment_free(op->part.partial); /* now: the list may hold the operation for long */
	op->part.partial = NULL;
	op->callback(op->context, pending->status, pending->status != WEIR_OK ? &pending->error : NULL, op->part.items,
	             op->part.done);
	weiri_pending_told(pending);
}

static void count_wake(weir_pending *pending)
{
	weiri_queue_counter_add(&op_of(pending)->part.queue->counters.wakes, 1);
}

static void dispose(weir_pending *pending)
{
	struct weiri_queue_part *part = &op_of(pending)->part;

	weiri_segment_free(part->partial);
	release_keys(&pending->allocator, part);
}

const struct weiri_pending_kind weiri_queue_kind = {
	.entry_size = sizeof(struct weiri_queue_part),
	.attempt = attempt,
	.may_barge = may_barge,
	.join = join,
	.settle = settle,
	.left = weiri_queue_part_left,
	.wakes = count_wake,
	.describe = describe,
	.tell = tell,
	.dispose = dispose,
};
