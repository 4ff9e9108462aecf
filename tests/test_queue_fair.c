/*
 * test_queue_fair.c - in a fair queue a newcomer goes behind the operations that already wait.
 */
#include "queue_kit.h"

static weir_queue *fair(size_t capacity)
{
	return queue_with((struct weir_queue_options){.capacity = capacity, .flags = WEIR_QUEUE_FAIR, .name = "test"});
}

static void ignore(void *context, enum weir_status status, const weir_error *error, void **items, size_t done)
{
	(void)context, (void)status, (void)error, (void)items, (void)done;
}

/*
 * An operation waits although there are items: the test has its claim and does not use it. A
 * newcomer finds this state between an enqueue and the serving of the waiting operations.
 */
static weir_pending *waits_and_is_not_served(weir_queue *queue, enum weir_queue_op_kind kind, void *items[])
{
	weir_pending *op;

	cr_assert_eq(weir_queue_start(queue, kind, items, 1, ignore, NULL, &op, NULL), WEIR_OK);
	cr_assert_eq(weiri_pending_claim(op), 1);
	return op;
}

static void serve_him_now(weir_queue *queue, weir_pending *op)
{
	/* Gives up the claim, like a claimer that found no note. */
	weiri_store_release(&op->state, 0u);
	weiri_queue_pump(weiri_record_get(), queue);
	weir_pending_release(op);
}

Test(queue_fair, a_newcomer_leaves_the_item_to_who_waits)
{
	weir_queue *queue = fair(4);
	void *first[1] = {NULL}, *got = item(4711);
	weir_pending *op = waits_and_is_not_served(queue, WEIR_QUEUE_OP_DEQUEUE_MANY, first);

	put(queue, 1, 1);
	cr_expect_eq(weir_queue_try_dequeue(queue, &got), WEIR_WOULD_BLOCK);
	cr_expect_eq(weir_queue_dequeue(queue, &got, 0, NULL, NULL), WEIR_DEADLINE_EXCEEDED);
	cr_expect_eq(number_of(got), 4711);
	serve_him_now(queue, op);
	cr_expect_eq(number_of(first[0]), 1);
	destroy(queue);
}

Test(queue_fair, a_newcomer_leaves_the_room_to_who_waits)
{
	weir_queue *queue = fair(1);
	void *second[1] = {item(2)}, *got;
	weir_pending *op;
	size_t done = 9;

	put(queue, 1, 1);
	op = waits_and_is_not_served(queue, WEIR_QUEUE_OP_ENQUEUE, second);
	cr_expect_eq(weir_queue_try_dequeue(queue, &got), WEIR_OK);
	cr_expect_eq(weir_queue_try_enqueue(queue, item(3)), WEIR_WOULD_BLOCK);
	cr_expect_eq(weir_queue_enqueue(queue, item(3), 0, NULL, NULL), WEIR_DEADLINE_EXCEEDED);
	cr_expect_eq(weir_queue_enqueue_many(queue, (void *[]){item(3)}, 1, 0, NULL, &done, NULL), WEIR_DEADLINE_EXCEEDED);
	cr_expect_eq(done, 0);
	serve_him_now(queue, op);
	expect_next(queue, 2, 1);
	expect_nothing(queue);
	destroy(queue);
}

Test(queue_fair, in_a_queue_that_is_not_fair_a_newcomer_may_go_first)
{
	weir_queue *queue = fifo(4);
	void *first[1] = {NULL};
	weir_pending *op = waits_and_is_not_served(queue, WEIR_QUEUE_OP_DEQUEUE_MANY, first);

	put(queue, 1, 1);
	expect_next(queue, 1, 1);
	put(queue, 2, 1);
	serve_him_now(queue, op);
	cr_expect_eq(number_of(first[0]), 2);
	destroy(queue);
}

Test(queue_fair, a_newcomer_that_waits_takes_nothing_ahead_of_those_before_him)
{
	weir_queue *queue = fair(4);
	void *items[3][1] = {{NULL}};
	weir_pending *first;

	/*
	 * The first operation waits and could be served, but no thread serves it. The newcomers start,
	 * and one walk then serves all in order.
	 */
	cr_assert_eq(weir_queue_start(queue, WEIR_QUEUE_OP_DEQUEUE_MANY, items[0], 1, ignore, NULL, &first, NULL), WEIR_OK);
	cr_assert_eq(weir_ring_try_enqueue(queue->ring, 1), WEIR_OK);
	cr_assert_eq(weir_queue_start(queue, WEIR_QUEUE_OP_DEQUEUE_MANY, items[1], 1, ignore, NULL, NULL, NULL), WEIR_OK);
	cr_expect_eq(number_of(items[0][0]), 1, "the newcomer took it");
	cr_expect_null(items[1][0]);
	put(queue, 2, 1);
	cr_expect_eq(number_of(items[1][0]), 2);
	weir_pending_release(first);
	destroy(queue);
}

Test(queue_fair, closed_is_said_to_a_newcomer_though_others_wait)
{
	weir_queue *queue = fair(1);
	struct call in = {.kind = ENQUEUE, .queue = queue, .items = {item(2)}};
	struct call late = {.kind = ENQUEUE_MANY, .queue = queue, .count = 2, .items = {item(3), item(4)}, .done = 9};
	size_t done = 9;

	put(queue, 1, 1);
	begin_waiting_call(&in, 1);
	cr_expect_eq(weir_queue_close(queue, WEIR_CLOSE_DRAIN, NULL), WEIR_OK);
	cr_expect_eq(weir_queue_try_enqueue(queue, item(3)), WEIR_CANCELLED);
	cr_expect_eq(weir_queue_enqueue(queue, item(3), 0, NULL, NULL), WEIR_CANCELLED);
	cr_expect_eq(call_now(&late), WEIR_CANCELLED);
	cr_expect_eq(late.done, 0);
	/* An enqueue of no items always completes at once. */
	cr_expect_eq(weir_queue_enqueue_many(queue, NULL, 0, 0, NULL, &done, NULL), WEIR_OK);
	cr_expect_eq(weir_queue_start(queue, WEIR_QUEUE_OP_ENQUEUE, NULL, 0, ignore, NULL, NULL, NULL), WEIR_OK);
	cr_expect_eq(weir_queue_destroy(queue, NULL), WEIR_FAILED_PRECONDITION, "the first still waits");
	expect_next(queue, 1, 1);
	cr_expect_eq(end_call(&in), WEIR_OK);
	expect_next(queue, 2, 1);
	expect_drained(queue);
	destroy(queue);
}

Test(queue_fair, a_batch_that_collects_is_not_passed)
{
	weir_queue *queue = fair(4);
	struct call batch = {.kind = DEQUEUE_MANY, .queue = queue, .count = 3}, single = {.kind = DEQUEUE, .queue = queue};

	put(queue, 1, 1);
	begin_waiting_call(&batch, 1);
	begin_waiting_call(&single, 2);
	put(queue, 2, 1);
	await(idle_in(queue) == 2 && weir_queue_size_approx(queue) == 0);
	cr_expect_not(has_ended(&single));
	put(queue, 3, 2);
	cr_expect_eq(end_call(&batch), WEIR_OK);
	expect_numbers(batch.items, 1, 3);
	cr_expect_eq(end_call(&single), WEIR_OK);
	cr_expect_eq(number_of(single.items[0]), 4);
	destroy(queue);
}

/*
 * Leaves the node as a thread does that is stopped between the two halves of weiri_list_remove().
 */
static void mark_removed(struct weiri_list_node *node)
{
	uintptr_t next = weiri_load_relaxed(&node->next);

	cr_assert(weiri_cas_acq_rel(&node->next, &next, next | 1));
}

static void note(void *context, enum weir_status status, const weir_error *error, void **items, size_t done)
{
	(void)error, (void)items, (void)done;
	*(enum weir_status *)context = status;
}

Test(queue_fair, who_has_ended_and_is_still_linked_holds_up_nobody)
{
	weir_queue *queue = queue_with((struct weir_queue_options){.capacity = 2, .flags = WEIR_QUEUE_FAIR});
	enum weir_status status = WEIR_INTERNAL;
	void *items[1];
	weir_pending *op;

	cr_assert_eq(weir_queue_start(queue, WEIR_QUEUE_OP_DEQUEUE_MANY, items, 1, note, &status, &op, NULL), WEIR_OK);
	cr_assert(weiri_pending_claim(op));
	/* The item is for the operation, or for the next call once the operation has ended. */
	put(queue, 1, 1);
	mark_removed(&op->entries->node);
	expect_next(queue, 1, 1);
	/* The stopped thread goes on. */
	weir_pending_cancel(op, NULL);
	{
		struct weiri_scope scope = weiri_scope_enter(weiri_record_get());
		bool moved = false;

		cr_expect_eq(weiri_pending_drive(&scope, op, &moved), WEIRI_PENDING_COMPLETE);
		weiri_pending_finish(&scope, op);
		weiri_scope_leave(&scope);
	}
	weiri_pending_complete(op);
	cr_expect_eq(status, WEIR_CANCELLED);
	weir_pending_release(op);
	expect_nothing(queue);
	destroy(queue);
}
