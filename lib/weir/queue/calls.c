/*
 * calls.c - the public calls that move items: the fast path, and waiting for an operation.
 */
#include "base/error.h"
#include "base/probe.h"
#include "queue/operation.h"
#include "sync/cancel.h"
#include "sync/yield.h"

#if defined(WEIRI_UNDER_MODEL) /* stress/model: each look multiplies the executions, and shows nothing new */
enum { YIELDS = 0 };
#else
enum { YIELDS = 3 };
#endif
enum { SKIPPED = 256 }; /* descriptors that the thread then settles without a yield: tell_of_room() */

/* Returns false if the yield took long. */
static bool yield_once(struct weiri_own *own)
{
	if (WEIRI_LIKELY(weiri_yield(own) <= WEIRI_LONG_YIELD_NS))
		return true;
	own->skip = SKIPPED;
	return false;
}

/*
 * After items went in: lets operations that wait for items go on, and brings descriptors up to date.
 * `flags` (not 0) are those of the consumers.
 */
static WEIRI_NOINLINE void tell_of_items(struct weiri_record *record, weir_queue *queue, uint64_t flags)
{
	if ((flags & WEIRI_WAITERS_POSTED) != 0)
		weiri_queue_pump(record, queue);
	else
		weiri_queue_settle_after_put(record, queue);
}

/*
 * The same after items came out: for operations that wait for room. `flags` are those of the
 * producers. If the readable descriptor must become unreadable, the thread first yields, as a call
 * does that is about to wait: its program is about to sleep in a poll, and then each item would cost
 * both sides system calls. Often a producer has enqueued more when the yield returns.
 */
static WEIRI_NOINLINE void tell_of_room(struct weiri_record *record, weir_queue *queue, uint64_t flags)
{
	struct weiri_own *own = record->own;

	if ((flags & WEIRI_WAITERS_POSTED) != 0) {
		weiri_queue_pump(record, queue);
		return;
	}
	for (int i = 0; i < YIELDS && own->skip == 0 && weiri_queue_shows_too_much(record, queue); i++)
		(void)yield_once(own);
	if (own->skip != 0)
		own->skip--;
	weiri_queue_settle_after_take(record, queue);
}

static WEIRI_ALWAYS_INLINE void items_went_in(struct weiri_record *record, weir_queue *queue)
{
	uint64_t flags = weiri_waiters_flags(&queue->consumers);

	if (WEIRI_UNLIKELY(flags != 0))
		tell_of_items(record, queue, flags);
}

static WEIRI_ALWAYS_INLINE void items_came_out(struct weiri_record *record, weir_queue *queue)
{
	uint64_t flags = weiri_waiters_flags(&queue->producers);

	if (WEIRI_UNLIKELY(flags != 0))
		tell_of_room(record, queue, flags);
}

/*
 * Whether an operation waits that a newcomer must not bypass. The list may be occupied without one,
 * by an entry whose operation has ended. Without this look, a try_ call would be refused for ever
 * because of such an entry.
 */
static WEIRI_COLD bool others_are_there(struct weiri_record *record, struct weiri_waiters *own_side)
{
	struct weiri_scope scope = weiri_scope_enter(record);
	bool there = weiri_pending_others_first(&scope, &own_side->list, NULL);

	weiri_scope_leave(&scope);
	return there;
}

static bool others_first(struct weiri_record *record, const weir_queue *queue, struct weiri_waiters *own_side)
{
	return (queue->flags & WEIR_QUEUE_FAIR) != 0 && weiri_list_occupied(&own_side->list) &&
	       others_are_there(record, own_side);
}

/* The status of an enqueue into a fair queue in which others wait. */
static WEIRI_COLD enum weir_status let_others_first(struct weiri_record *record, weir_queue *queue)
{
	if (weiri_queue_store_closed(queue))
		return WEIR_CANCELLED;
	weiri_queue_settle_found_full(record, queue);
	return WEIR_WOULD_BLOCK;
}

/* The status of an enqueue that the store refused. */
static WEIRI_NOINLINE enum weir_status refused(struct weiri_record *record, weir_queue *queue, enum weir_status status)
{
	if (status == WEIR_WOULD_BLOCK) {
		weiri_queue_note_full(queue);
		weiri_queue_settle_found_full(record, queue);
	}
	return status;
}

/* The status of a dequeue to which the store gave nothing. */
static WEIRI_NOINLINE enum weir_status got_nothing(struct weiri_record *record, weir_queue *queue,
                                                   enum weir_status status)
{
	if (status == WEIR_WOULD_BLOCK)
		weiri_queue_settle_found_empty(record, queue);
	return status;
}

/* -- one item, without waiting ----------------------------------------------------------------- */

/*
 * Most queues are FIFO, and most calls move one item. So these two calls, and no other code, check
 * whether the store is a ring, and then call its single-item path inline.
 */

static WEIRI_ALWAYS_INLINE enum weir_status put_in_ring(weir_queue *queue, weir_ring *ring, void *item)
{
	enum weir_status status = weiri_ring_enqueue_one(ring, weiri_item_bits(item));

	if (WEIRI_LIKELY(status == WEIR_OK))
		weiri_queue_count_in_ring(queue, 1);
	return status;
}

static WEIRI_NOINLINE enum weir_status put_in_store(weir_queue *queue, void *item)
{
	enum weir_status status;

	if (weiri_queue_put(queue, &item, NULL, 1, false, &status) != 0)
		weiri_queue_count_in(queue, 1);
	return status;
}

static WEIRI_ALWAYS_INLINE enum weir_status put_one(weir_queue *queue, void *item)
{
	struct weiri_record *record = weiri_record_get();
	enum weir_status status;

	if (WEIRI_UNLIKELY(record == NULL)) /* before the item is in: without a record the call could wake no waiter */
		return WEIR_RESOURCE_EXHAUSTED;
	if (WEIRI_UNLIKELY(others_first(record, queue, &queue->producers)))
		return let_others_first(record, queue);
	status = WEIRI_LIKELY(queue->ring != NULL) ? put_in_ring(queue, queue->ring, item) : put_in_store(queue, item);
	if (WEIRI_UNLIKELY(status != WEIR_OK))
		return refused(record, queue, status);
	items_went_in(record, queue);
	return WEIR_OK;
}

enum weir_status weir_queue_try_enqueue(weir_queue *queue, void *item)
{
	return WEIRI_LIKELY(queue != NULL) ? put_one(queue, item) : WEIR_INVALID_ARGUMENT;
}

/* Returned items leave first: see store_ring.c. */
static WEIRI_ALWAYS_INLINE enum weir_status take_from_ring(struct weiri_record *record, weir_queue *queue,
                                                           weir_ring *ring, uint64_t *item)
{
	enum weir_status status = WEIR_ABORTED;

	if (WEIRI_LIKELY(!weiri_putback_occupied(&queue->putback)))
		status = weiri_ring_dequeue_one(ring, item, &queue->putback.top);
	return WEIRI_LIKELY(status == WEIR_OK) ? status : weiri_queue_take_on(record, queue, item, status);
}

static WEIRI_NOINLINE enum weir_status take_from_store(struct weiri_record *record, weir_queue *queue, uint64_t *item)
{
	struct weiri_scope scope = weiri_queue_unentered(record);
	enum weir_status status;

	(void)weiri_queue_take(&scope, queue, item, 1, false, &status);
	weiri_queue_retire_gathered(&scope);
	return status;
}

static WEIRI_ALWAYS_INLINE enum weir_status take_one(weir_queue *queue, void **item)
{
	struct weiri_record *record = weiri_record_get();
	enum weir_status status;
	uint64_t bits;

	if (WEIRI_UNLIKELY(record == NULL))
		return WEIR_RESOURCE_EXHAUSTED;
	if (WEIRI_UNLIKELY(others_first(record, queue, &queue->consumers)))
		return got_nothing(record, queue, WEIR_WOULD_BLOCK);
	status = WEIRI_LIKELY(queue->ring != NULL) ? take_from_ring(record, queue, queue->ring, &bits)
	                                           : take_from_store(record, queue, &bits);
	if (WEIRI_UNLIKELY(status != WEIR_OK))
		return got_nothing(record, queue, status);
	*item = weiri_item_pointer(bits);
	items_came_out(record, queue);
	return WEIR_OK;
}

enum weir_status weir_queue_try_dequeue(weir_queue *queue, void **item)
{
	return WEIRI_LIKELY(queue != NULL && item != NULL) ? take_one(queue, item) : WEIR_INVALID_ARGUMENT;
}

/* -- several items, without waiting ------------------------------------------------------------ */

/* Enqueues the items for which there is room: without an operation, and so without memory. */
static enum weir_status put_many(struct weiri_record *record, weir_queue *queue, void *const items[], size_t count,
                                 size_t *in)
{
	enum weir_status status;

	if (others_first(record, queue, &queue->producers))
		return let_others_first(record, queue);
	*in = weiri_queue_put(queue, items, NULL, count, false, &status);
	if (*in != 0)
		weiri_queue_count_in(queue, *in);
	return refused(record, queue, status);
}

/* Returns what a call that waits for nothing returns after `done` of `count` items. */
static enum weir_status at_once(size_t done, size_t count, enum weir_status status)
{
	return done != 0 || count == 0 ? WEIR_OK : status;
}

enum weir_status weir_queue_try_enqueue_many(weir_queue *queue, void *const items[], size_t count, size_t *done)
{
	struct weiri_record *record = weiri_record_get();
	enum weir_status status = WEIR_OK;
	size_t in = 0;

	if (queue == NULL || done == NULL || (items == NULL && count != 0))
		return WEIR_INVALID_ARGUMENT;
	if (record == NULL)
		return WEIR_RESOURCE_EXHAUSTED;
	if (count != 0)
		status = put_many(record, queue, items, count, &in);
	*done = in; /* now: a completion may destroy the queue, and free what `done` points to */
	if (in != 0)
		items_went_in(record, queue);
	return at_once(in, count, status);
}

enum { AT_ONCE = 64 }; /* items that a dequeue takes from the store with one call: they pass through the stack */

/* Dequeues up to `count` items, which may be fewer than are there. */
static size_t take_many(struct weiri_record *record, weir_queue *queue, void *items[], size_t count,
                        enum weir_status *status)
{
	struct weiri_scope scope = weiri_queue_unentered(record);
	uint64_t bits[AT_ONCE];
	size_t out = 0, more;

	do {
		size_t room = count - out < AT_ONCE ? count - out : AT_ONCE;

		more = weiri_queue_take(&scope, queue, bits, room, false, status);
		for (size_t i = 0; i < more; i++)
			items[out + i] = weiri_item_pointer(bits[i]);
		out += more;
	} while (out < count && more == AT_ONCE);
	weiri_queue_retire_gathered(&scope);
	return out;
}

enum weir_status weir_queue_try_dequeue_many(weir_queue *queue, void *items[], size_t count, size_t *done)
{
	struct weiri_record *record = weiri_record_get();
	enum weir_status status = WEIR_OK;
	size_t out = 0;

	if (queue == NULL || done == NULL || (items == NULL && count != 0))
		return WEIR_INVALID_ARGUMENT;
	if (record == NULL)
		return WEIR_RESOURCE_EXHAUSTED;
	if (others_first(record, queue, &queue->consumers))
		status = WEIR_WOULD_BLOCK;
	else if (count != 0)
		out = take_many(record, queue, items, count, &status);
	*done = out; /* as above */
	if (out != 0)
		items_came_out(record, queue);
	else if (count != 0)
		status = got_nothing(record, queue, status);
	return at_once(out, count, status);
}

/* -- waiting ----------------------------------------------------------------------------------- */

/* Creates the operation of a blocking call; the first `done` items are in. */
static enum weir_status begin(weir_queue *queue, enum weir_queue_op_kind kind, void *items[], size_t count, size_t done,
                              struct weiri_queue_operation **op, weir_error *error)
{
	*op = weiri_queue_operation_create(queue, kind, items, count, done, NULL, NULL);
	if (*op == NULL)
		return weiri_fail(error, WEIR_RESOURCE_EXHAUSTED, "queue \"%s\": no memory to wait for %zu item%s", queue->name,
		                  count, WEIRI_S(count));
	return WEIR_OK;
}

/* Runs the operation to its end. *done (not NULL): how many items are in, or came out. */
static enum weir_status run(struct weiri_record *record, struct weiri_queue_operation *op, uint64_t deadline_ns,
                            weir_cancel *cancel, size_t *done, weir_error *error)
{
	weir_queue *queue = op->part.queue;
	struct weiri_visit visit;
	enum weir_status status;

	weiri_visit_begin(&visit, queue, NULL);
	WEIRI_PROBE2(queue_block, op->part.queue, op->part.kind);
	status = weiri_pending_run(record, &op->pending, deadline_ns, cancel, error);
	WEIRI_PROBE2(queue_wake, op->part.queue, op->part.kind);
	*done = op->part.done;
	weiri_segment_free(op->part.partial); /* now: the list may hold the operation for long */
	op->part.partial = NULL;
	weiri_pending_release(&op->pending);
	/* The thread that completed the operation may stand before its settle. */
	if (!weiri_visit_is_over(&visit))
		weiri_queue_settle(record, queue);
	weiri_visit_end(&visit);
	return status;
}

/* The outcome of a call whose token had fired before it began. */
static WEIRI_COLD void refuse(const weir_queue *queue, enum weir_queue_op_kind kind, weir_cancel *cancel,
                              weir_error *error)
{
	weir_error cause;

	weiri_cancel_help(cancel);
	(void)weir_cancel_cause(cancel, &cause);
	(void)weiri_queue_fail_cancelled(queue, weiri_queue_verb(kind), &cause, error);
}

static WEIRI_COLD enum weir_status fail_without_record(const weir_queue *queue, weir_error *error)
{
	return weiri_fail(error, WEIR_RESOURCE_EXHAUSTED, "queue \"%s\": no memory for this thread's record", queue->name);
}

static enum weir_status check(const weir_queue *queue, enum weir_queue_op_kind kind, void *const *items, size_t count,
                              weir_cancel *cancel, struct weiri_record **record, weir_error *error)
{
	if (queue == NULL || (items == NULL && count != 0))
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "%s is NULL", queue == NULL ? "queue" : "items");
	if (count != 0 && WEIRI_UNLIKELY(weir_cancel_fired(cancel))) {
		refuse(queue, kind, cancel, error);
		return WEIR_CANCELLED;
	}
	*record = weiri_record_get();
	return *record != NULL ? WEIR_OK : fail_without_record(queue, error);
}

static enum weir_status try_one(weir_queue *queue, enum weir_queue_op_kind kind, void **item)
{
	return kind == WEIR_QUEUE_OP_ENQUEUE ? weir_queue_try_enqueue(queue, *item) : weir_queue_try_dequeue(queue, item);
}

/*
 * Yields a few times before the call waits, because a wait costs both sides a system call or two,
 * and another thread may be about to supply what the call needs. So two threads that share a
 * processor take turns by yielding, and need no wake-up for each item of a queue that alternates
 * between empty and not empty. If no other thread wants the processor, a yield returns at once, and
 * three of them last as long as a short spin. Beside threads that compute for long, a thread that
 * yields runs again late, whereas a woken thread runs soon. So a thread whose yield took long does
 * not yield for a while. A fair queue does not yield, because the place on its list counts.
 */
static WEIRI_COLD enum weir_status let_others_run(struct weiri_own *own, weir_queue *queue,
                                                  enum weir_queue_op_kind kind, void **item)
{
	enum weir_status status = WEIR_WOULD_BLOCK;
	bool goes_on = true;

	if ((queue->flags & WEIR_QUEUE_FAIR) != 0)
		return status;
	if (!weiri_may_yield(own))
		return status;
	for (int i = 0; i < YIELDS && goes_on && status == WEIR_WOULD_BLOCK; i++) {
		goes_on = yield_once(own);
		status = try_one(queue, kind, item);
	}
	return status;
}

/* Moves the item that an attempt did not move: it returned `status`. */
static WEIRI_NOINLINE enum weir_status move_one(weir_queue *queue, enum weir_queue_op_kind kind, void **item,
                                                enum weir_status status, uint64_t deadline_ns, weir_cancel *cancel,
                                                weir_error *error)
{
	struct weiri_queue_operation *op;
	struct weiri_record *record;
	enum weir_status refused;
	size_t done;

	if (status == WEIR_RESOURCE_EXHAUSTED)
		return fail_without_record(queue, error);
	refused = check(queue, kind, item, 1, cancel, &record, error);
	if (refused != WEIR_OK)
		return refused;
	if (status == WEIR_WOULD_BLOCK && deadline_ns != 0)
		status = let_others_run(record->own, queue, kind, item);
	if (status == WEIR_OK)
		return WEIR_OK;
	if (status != WEIR_WOULD_BLOCK)
		return weiri_queue_fail_closed(queue, status, 1, 0, error);
	if (deadline_ns == 0)
		return weiri_fail(error, WEIR_DEADLINE_EXCEEDED, "queue \"%s\": %s", queue->name,
		                  kind == WEIR_QUEUE_OP_ENQUEUE ? "no room at once" : "no item at once");
	status = begin(queue, kind, item, 1, 0, &op, error);
	return status == WEIR_OK ? run(record, op, deadline_ns, cancel, &done, error) : status;
}

/* Returns true if a call may try before anything else. If not, check() refuses it. */
static WEIRI_ALWAYS_INLINE bool may_try(const weir_queue *queue, const weir_cancel *cancel)
{
	return WEIRI_LIKELY(queue != NULL) && (WEIRI_LIKELY(cancel == NULL) || !weir_cancel_fired(cancel));
}

enum weir_status weir_queue_enqueue(weir_queue *queue, void *item, uint64_t deadline_ns, weir_cancel *cancel,
                                    weir_error *error)
{
	enum weir_status status = may_try(queue, cancel) ? put_one(queue, item) : WEIR_WOULD_BLOCK;
	void *left = item;

	return WEIRI_LIKELY(status == WEIR_OK)
	           ? WEIR_OK
	           : move_one(queue, WEIR_QUEUE_OP_ENQUEUE, &left, status, deadline_ns, cancel, error);
}

enum weir_status weir_queue_dequeue(weir_queue *queue, void **item, uint64_t deadline_ns, weir_cancel *cancel,
                                    weir_error *error)
{
	enum weir_status status =
		may_try(queue, cancel) && WEIRI_LIKELY(item != NULL) ? take_one(queue, item) : WEIR_WOULD_BLOCK;

	return WEIRI_LIKELY(status == WEIR_OK)
	           ? WEIR_OK
	           : move_one(queue, WEIR_QUEUE_OP_DEQUEUE_MANY, item, status, deadline_ns, cancel, error);
}

/*
 * Enqueues the items for which there is room. Then an operation waits for room for the rest.
 * Waiters of the other side are served last, because their completions may destroy the queue.
 */
static enum weir_status move_many_in(struct weiri_record *record, weir_queue *queue, void *const items[], size_t count,
                                     uint64_t deadline_ns, weir_cancel *cancel, size_t *in, weir_error *error)
{
	enum weir_status status = put_many(record, queue, items, count, in);
	struct weiri_queue_operation *op = NULL;
	size_t before = *in;

	if (status == WEIR_CANCELLED)
		status = weiri_queue_fail_closed(queue, status, count, before, error);
	else if (status != WEIR_OK && deadline_ns == 0)
		status = weiri_fail(error, WEIR_DEADLINE_EXCEEDED, "queue \"%s\": room for %zu of %zu item%s at once",
		                    queue->name, before, count, WEIRI_S(count));
	else if (status != WEIR_OK)
		/* The operation only reads the items; it has one type of array for both directions. */
		status = begin(queue, WEIR_QUEUE_OP_ENQUEUE, (void **)(uintptr_t)items, count, before, &op, error);
	if (op != NULL)
		return run(record, op, deadline_ns, cancel, in, error); /* this also serves the other side */
	if (before != 0)
		items_went_in(record, queue);
	return status;
}

enum weir_status weir_queue_enqueue_many(weir_queue *queue, void *const items[], size_t count, uint64_t deadline_ns,
                                         weir_cancel *cancel, size_t *done, weir_error *error)
{
	struct weiri_record *record;
	enum weir_status status = check(queue, WEIR_QUEUE_OP_ENQUEUE, items, count, cancel, &record, error);
	size_t in = 0;

	if (status == WEIR_OK && count != 0)
		status = move_many_in(record, queue, items, count, deadline_ns, cancel, &in, error);
	if (done != NULL)
		*done = in;
	return status;
}

enum weir_status weir_queue_dequeue_many(weir_queue *queue, void *items[], size_t count, uint64_t deadline_ns,
                                         weir_cancel *cancel, weir_error *error)
{
	struct weiri_record *record;
	enum weir_status status = check(queue, WEIR_QUEUE_OP_DEQUEUE_MANY, items, count, cancel, &record, error);
	struct weiri_queue_operation *op;
	size_t done;

	if (status != WEIR_OK || count == 0)
		return status;
	status = begin(queue, WEIR_QUEUE_OP_DEQUEUE_MANY, items, count, 0, &op, error);
	return status == WEIR_OK ? run(record, op, deadline_ns, cancel, &done, error) : status;
}

enum weir_status weir_queue_dequeue_up_to(weir_queue *queue, void *items[], size_t count, uint64_t deadline_ns,
                                          weir_cancel *cancel, size_t *done, weir_error *error)
{
	struct weiri_record *record;
	enum weir_status status = check(queue, WEIR_QUEUE_OP_DEQUEUE_UP_TO, items, count, cancel, &record, error);
	struct weiri_queue_operation *op;
	size_t out = 0;

	if (status == WEIR_OK && done == NULL)
		status = weiri_fail(error, WEIR_INVALID_ARGUMENT, "queue \"%s\": done is NULL", queue->name);
	if (status == WEIR_OK && count != 0) {
		status = begin(queue, WEIR_QUEUE_OP_DEQUEUE_UP_TO, items, count, 0, &op, error);
		if (status == WEIR_OK)
			status = run(record, op, deadline_ns, cancel, &out, error);
	}
	if (done != NULL)
		*done = status == WEIR_OK ? out : 0;
	return status;
}

/* -- asynchronous ------------------------------------------------------------------------------ */

enum weir_status weiri_queue_prepare(weir_queue *queue, enum weir_queue_op_kind kind, void *items[], size_t count,
                                     weir_queue_done_fn *done, void *context, weir_pending **pending, weir_error *error)
{
	struct weiri_record *record;
	enum weir_status status = check(queue, kind, items, count, NULL, &record, error);
	struct weiri_queue_operation *op;

	if (status != WEIR_OK)
		return status;
	if (done == NULL || kind < WEIR_QUEUE_OP_ENQUEUE || kind > WEIR_QUEUE_OP_DEQUEUE_UP_TO)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "queue \"%s\": %s", queue->name,
		                  done == NULL ? "done is NULL" : "unknown kind of operation");
	op = weiri_queue_operation_create(queue, kind, items, count, 0, done, context);
	if (op == NULL)
		return weiri_fail(error, WEIR_RESOURCE_EXHAUSTED, "queue \"%s\": no memory for an operation", queue->name);
	*pending = &op->pending;
	return WEIR_OK;
}

enum weir_status weir_queue_start(weir_queue *queue, enum weir_queue_op_kind kind, void *items[], size_t count,
                                  weir_queue_done_fn *done, void *context, weir_pending **out, weir_error *error)
{
	weir_pending *pending;
	enum weir_status status = weiri_queue_prepare(queue, kind, items, count, done, context, &pending, error);

	if (status == WEIR_OK)
		weiri_pending_begin(weiri_record_get(), pending, out);
	return status;
}
