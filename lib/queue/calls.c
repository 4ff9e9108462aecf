/*
 * calls.c - the public calls that move items: the fast path, and waiting for an operation.
 */
#include <sched.h>

#include "base/error.h"
#include "base/probe.h"
#include "queue/op.h"
#include "sync/cancel.h"
#include "sync/park.h"

/* After items went in (or came out): the other side may go on. */
static WEIRI_ALWAYS_INLINE void wake(struct weiri_record *record, weir_queue *queue,
                                     const struct weiri_waiters *other_side)
{
	if (WEIRI_UNLIKELY(weiri_waiters_posted(other_side)))
		weiri_queue_pump(record, queue);
}

/* Or else try_ calls would go before nobody for ever. */
static WEIRI_COLD int others_are_there(struct weiri_record *record, struct weiri_waiters *own_side)
{
	struct weiri_scope scope = weiri_scope_enter(record);
	int there = weiri_op_others_first(&scope, &own_side->list, NULL);

	weiri_scope_leave(&scope);
	return there;
}

static int others_first(struct weiri_record *record, const weir_queue *queue, struct weiri_waiters *own_side)
{
	return (queue->flags & WEIR_QUEUE_FAIR) != 0 && weiri_list_occupied(&own_side->list) &&
	       others_are_there(record, own_side);
}

/* Of an enqueue into a fair queue in which others wait. */
static WEIRI_COLD enum weir_status let_others_first(const weir_queue *queue)
{
	return weiri_queue_store_closed(queue) ? WEIR_CANCELLED : WEIR_WOULD_BLOCK;
}

/* Of an enqueue that the store refused. */
static WEIRI_NOINLINE enum weir_status refused(weir_queue *queue, enum weir_status status)
{
	if (status == WEIR_WOULD_BLOCK)
		weiri_queue_note_full(queue);
	return status;
}

static WEIRI_ALWAYS_INLINE enum weir_status put_in_ring(weir_queue *queue, void *item)
{
	enum weir_status status = weiri_ring_enqueue_one(queue->ring, weiri_item_bits(item));

	if (WEIRI_LIKELY(status == WEIR_OK))
		weiri_queue_count_in_ring(queue, 1);
	return status;
}

static WEIRI_NOINLINE enum weir_status put_in_bag(weir_queue *queue, void *item)
{
	enum weir_status status = queue->bag->put(queue, item, weiri_queue_key(queue, item), 0);

	if (status == WEIR_OK)
		weiri_queue_count_in(queue, 1);
	return status;
}

enum weir_status weir_queue_try_enqueue(weir_queue *queue, void *item)
{
	struct weiri_record *record = weiri_record_get();
	enum weir_status status;

	if (queue == NULL)
		return WEIR_INVALID_ARGUMENT;
	if (record == NULL) /* before anything is in: without a record nobody could be woken */
		return WEIR_RESOURCE_EXHAUSTED;
	if (WEIRI_UNLIKELY(others_first(record, queue, &queue->producers)))
		return let_others_first(queue);
	status = WEIRI_LIKELY(queue->bag == NULL) ? put_in_ring(queue, item) : put_in_bag(queue, item);
	if (WEIRI_UNLIKELY(status != WEIR_OK))
		return refused(queue, status);
	wake(record, queue, &queue->consumers);
	return WEIR_OK;
}

enum weir_status weir_queue_try_dequeue(weir_queue *queue, void **item)
{
	struct weiri_record *record = weiri_record_get();
	struct weiri_scope scope = weiri_queue_unentered(record);
	enum weir_status status;
	uint64_t bits;
	size_t done;

	if (queue == NULL || item == NULL)
		return WEIR_INVALID_ARGUMENT;
	if (record == NULL)
		return WEIR_RESOURCE_EXHAUSTED;
	if (others_first(record, queue, &queue->consumers))
		return WEIR_WOULD_BLOCK;
	done = weiri_queue_take(&scope, queue, &bits, 1, 0, &status);
	weiri_queue_retire_gathered(&scope);
	if (done == 0)
		return status;
	*item = weiri_item_pointer(bits);
	wake(record, queue, &queue->producers);
	return WEIR_OK;
}

/* -- waiting ------------------------------------------------------------------------------------------------------------------ */

/* How long the owner of a blind operation sleeps at a time. */
static const uint64_t blind_sleep_ns = 1000000;

static void on_token(void *context)
{
	weir_queue_op *op = context;

	weiri_op_cancel(op, WEIRI_OP_FOR_TOKEN);
	weiri_op_release(op);
}

/* Nobody may have seen that we wait: looks again now and then, until something happens or little is left to the deadline. */
static WEIRI_COLD void look_now_and_then(struct weiri_record *record, weir_queue_op *op, uint64_t deadline_ns)
{
	uint64_t until;

	while ((until = weir_deadline_in(blind_sleep_ns)) < deadline_ns &&
	       weiri_park_wait_marked(&op->finished, WEIRI_OP_WAITS, WEIRI_OP_ASLEEP, until) == WEIRI_PARK_TIMEOUT)
		weiri_op_pump(record, op);
}

/* Until it completes, which the deadline or an alarm makes it do. */
static void sleep_until_finished(struct weiri_record *record, weir_queue_op *op, uint64_t deadline_ns)
{
	uint32_t seen;

	WEIRI_PROBE2(queue_block, op->queue, op->kind);
	weiri_deliver_due(); /* a completion that waits here may wait for what one behind it does */
	if (WEIRI_UNLIKELY(op->blind))
		look_now_and_then(record, op, deadline_ns);
	if (weiri_park_wait_marked(&op->finished, WEIRI_OP_WAITS, WEIRI_OP_ASLEEP, deadline_ns) == WEIRI_PARK_TIMEOUT)
		weiri_op_cancel(op, WEIRI_OP_FOR_DEADLINE);
	/* [acquire] the outcome; pairs with weiri_op_complete(). */
	while ((seen = weiri_load_acquire(&op->finished)) != WEIRI_OP_FINISHED) {
		if (seen == WEIRI_OP_ALARMED) {
			weiri_op_cancel(op, WEIRI_OP_FOR_TOKEN);
			(void)weiri_park_wait(&op->finished, seen, WEIR_NO_DEADLINE);
		} else {
			(void)weiri_park_wait_marked(&op->finished, seen, WEIRI_OP_ASLEEP, WEIR_NO_DEADLINE);
		}
	}
	WEIRI_PROBE2(queue_wake, op->queue, op->kind);
}

void weiri_op_wait(struct weiri_record *record, weir_queue_op *op, uint64_t deadline_ns, weir_cancel *cancel)
{
	weir_cancel_hook *hook = NULL;

	if (cancel != NULL) {
		weiri_op_retain(op); /* the hook's */
		if (weiri_cancel_on_wait(cancel, on_token, op, &hook) != WEIR_OK) {
			weiri_op_cancel(op, WEIRI_OP_FOR_MEMORY); /* it could not be cancelled: it ends at once instead */
			weiri_op_release(op);
		}
	}
	sleep_until_finished(record, op, deadline_ns);
	if (hook != NULL && weir_cancel_off(hook))
		weiri_op_release(op);
}

/* An operation of a blocking call; the first `done` items are in. */
static enum weir_status begin(weir_queue *queue, enum weir_queue_op_kind kind, void *items[], size_t count, size_t done,
                              weir_queue_op **op, weir_error *error)
{
	*op = weiri_op_create(queue, kind, items, count, done, NULL, NULL);
	if (*op == NULL)
		return weiri_fail(error, WEIR_RESOURCE_EXHAUSTED, "queue \"%s\": no memory to wait for %zu items", queue->name,
		                  count);
	return WEIR_OK;
}

/* Runs it to its end; *done (not NULL) says how many items are in, or came out. */
static enum weir_status run(struct weiri_record *record, weir_queue_op *op, uint64_t deadline_ns, weir_cancel *cancel,
                            size_t *done, weir_error *error)
{
	enum weir_status status;

	op->token = cancel;
	weiri_op_start(record, op);
	weiri_op_wait(record, op, deadline_ns, cancel);
	*done = op->done;
	status = op->status;
	if (status != WEIR_OK)
		(void)weiri_fail(error, status, "%s", op->error.message);
	weiri_segment_free(op->partial); /* now: the list may hold the operation for long */
	op->partial = NULL;
	weiri_op_release(op);
	return status;
}

/* Of a call that began with a token that had fired. */
static WEIRI_COLD void refuse(const weir_queue *queue, enum weir_queue_op_kind kind, weir_cancel *cancel,
                              weir_error *error)
{
	weir_error cause;

	weiri_cancel_help(cancel);
	(void)weir_cancel_cause(cancel, &cause);
	(void)weiri_queue_fail_cancelled(queue, weiri_op_verb(kind), &cause, error);
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
	if (*record == NULL)
		return weiri_fail(error, WEIR_RESOURCE_EXHAUSTED, "queue \"%s\": no memory for this thread's record",
		                  queue->name);
	return WEIR_OK;
}

static enum weir_status try_one(weir_queue *queue, enum weir_queue_op_kind kind, void **item)
{
	return kind == WEIR_QUEUE_OP_ENQUEUE ? weir_queue_try_enqueue(queue, *item) : weir_queue_try_dequeue(queue, item);
}

#if defined(WEIRI_UNDER_MODEL) /* stress/model: each look multiplies the executions, and shows nothing new */
enum { YIELDS = 0 };
#else
enum { YIELDS = 3 };
#endif
enum { SKIPPED = 256 };
/* A yield that took longer gave the processor to somebody who had other things to do, or to a partner who is slow. */
static const uint64_t long_yield_ns = 200000;

/* Waits of this thread that are still to come before it yields again. */
static WEIRI_TLS uint32_t skip;

/* 0: it took long. */
static int yield_once(void)
{
	uint64_t before = weir_now_ns();

	(void)sched_yield();
	if (WEIRI_UNLIKELY(weir_now_ns() - before > long_yield_ns))
		skip = SKIPPED;
	return skip == 0;
}

/*
 * Before it waits, which costs both sides a system call or two: lets others run, who may be about to bring what it would wait for. So two
 * threads that share a processor take turns by yielding, and a queue that is now empty, now not does not make one wake the other for each
 * item. Where nobody else wants the processor a yield returns at once, and three of them last as long as a short spin. Beside threads that
 * want it for long, who yields comes back late, where who is woken comes first: a thread that was kept waiting so does without for
 * its next waits. In a fair queue the place on the list counts, so there it is taken at once.
 */
static WEIRI_COLD enum weir_status let_others_run(weir_queue *queue, enum weir_queue_op_kind kind, void **item)
{
	enum weir_status status = WEIR_WOULD_BLOCK;
	int goes_on = 1;

	if ((queue->flags & WEIR_QUEUE_FAIR) != 0)
		return status;
	if (skip != 0) {
		skip--;
		return status;
	}
	for (int i = 0; i < YIELDS && goes_on && status == WEIR_WOULD_BLOCK; i++) {
		goes_on = yield_once();
		status = try_one(queue, kind, item);
	}
	return status;
}

/* One item, first without an operation. */
static enum weir_status move_one(struct weiri_record *record, weir_queue *queue, enum weir_queue_op_kind kind,
                                 void **item, uint64_t deadline_ns, weir_cancel *cancel, weir_error *error)
{
	enum weir_status status = try_one(queue, kind, item);
	weir_queue_op *op;
	size_t done;

	if (WEIRI_LIKELY(status == WEIR_OK))
		return WEIR_OK;
	if (status == WEIR_WOULD_BLOCK && deadline_ns != 0)
		status = let_others_run(queue, kind, item);
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

enum weir_status weir_queue_enqueue(weir_queue *queue, void *item, uint64_t deadline_ns, weir_cancel *cancel,
                                    weir_error *error)
{
	struct weiri_record *record;
	enum weir_status status = check(queue, WEIR_QUEUE_OP_ENQUEUE, &item, 1, cancel, &record, error);

	if (status != WEIR_OK)
		return status;
	return move_one(record, queue, WEIR_QUEUE_OP_ENQUEUE, &item, deadline_ns, cancel, error);
}

enum weir_status weir_queue_dequeue(weir_queue *queue, void **item, uint64_t deadline_ns, weir_cancel *cancel,
                                    weir_error *error)
{
	struct weiri_record *record;
	enum weir_status status = check(queue, WEIR_QUEUE_OP_DEQUEUE_MANY, item, 1, cancel, &record, error);

	if (status != WEIR_OK)
		return status;
	return move_one(record, queue, WEIR_QUEUE_OP_DEQUEUE_MANY, item, deadline_ns, cancel, error);
}

/* Those for which there is room, without an operation, and so without memory. */
static enum weir_status put_many(struct weiri_record *record, weir_queue *queue, void *const items[], size_t count,
                                 size_t *in)
{
	enum weir_status status;

	if (others_first(record, queue, &queue->producers))
		return let_others_first(queue);
	*in = weiri_queue_put(queue, items, NULL, count, 0, &status);
	if (*in != 0)
		weiri_queue_count_in(queue, *in);
	return refused(queue, status);
}

/* What has room; then an operation waits for room for the rest. Others are let go on last of all: their completions may destroy the queue. */
static enum weir_status move_many_in(struct weiri_record *record, weir_queue *queue, void *const items[], size_t count,
                                     uint64_t deadline_ns, weir_cancel *cancel, size_t *in, weir_error *error)
{
	enum weir_status status = put_many(record, queue, items, count, in);
	weir_queue_op *op = NULL;
	size_t before = *in;

	if (status == WEIR_CANCELLED)
		status = weiri_queue_fail_closed(queue, status, count, before, error);
	else if (status != WEIR_OK && deadline_ns == 0)
		status = weiri_fail(error, WEIR_DEADLINE_EXCEEDED, "queue \"%s\": room for %zu of %zu items at once",
		                    queue->name, before, count);
	else if (status != WEIR_OK)
		/* The items are only read: an operation has one kind of array for both directions. */
		status = begin(queue, WEIR_QUEUE_OP_ENQUEUE, (void **)(uintptr_t)items, count, before, &op, error);
	if (op != NULL)
		return run(record, op, deadline_ns, cancel, in, error); /* lets others go on, too */
	if (before != 0)
		wake(record, queue, &queue->consumers);
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
	weir_queue_op *op;
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
	weir_queue_op *op;
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

/* -- asynchronous ------------------------------------------------------------------------------------------------------------- */

enum weir_status weir_queue_start(weir_queue *queue, enum weir_queue_op_kind kind, void *items[], size_t count,
                                  weir_queue_done_fn *done, void *context, weir_queue_op **out, weir_error *error)
{
	struct weiri_record *record;
	enum weir_status status = check(queue, kind, items, count, NULL, &record, error);
	weir_queue_op *op;

	if (status != WEIR_OK)
		return status;
	if (done == NULL || kind < WEIR_QUEUE_OP_ENQUEUE || kind > WEIR_QUEUE_OP_DEQUEUE_UP_TO)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "queue \"%s\": %s", queue->name,
		                  done == NULL ? "done is NULL" : "unknown kind of operation");
	op = weiri_op_create(queue, kind, items, count, 0, done, context);
	if (op == NULL)
		return weiri_fail(error, WEIR_RESOURCE_EXHAUSTED, "queue \"%s\": no memory for an operation", queue->name);
	if (out != NULL)
		*out = op;
	else
		weiri_op_release(op); /* the completion's reference is left */
	weiri_op_start(record, op);
	return WEIR_OK;
}

void weir_queue_op_cancel(weir_queue_op *op, const weir_error *cause)
{
	if (op != NULL)
		weiri_op_cancel_for(op, cause);
}

void weir_queue_op_release(weir_queue_op *op)
{
	if (op != NULL)
		weiri_op_release(op);
}
