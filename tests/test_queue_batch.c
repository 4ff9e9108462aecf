/*
 * test_queue_batch.c - many items in one call: order, turns, and the items that a failed batch puts
 * back.
 */
#include "queue_kit.h"

#include <stdlib.h>
#include <weir/queue_u64.h>

#include "stepped.h"

/* -- dequeue_many ------------------------------------------------------------------------------ */

Test(queue_batch, dequeue_many_takes_that_many_in_order)
{
	weir_queue *queue = fifo(10);
	void *items[4];

	put(queue, 0, 10);
	for (size_t i = 0; i < 2; i++) {
		cr_expect_eq(weir_queue_dequeue_many(queue, items, 4, 0, NULL, NULL), WEIR_OK);
		expect_numbers(items, 4 * i, 4);
	}
	expect_next(queue, 8, 2);
	destroy(queue);
}

Test(queue_batch, dequeue_many_takes_items_as_they_arrive_beyond_the_capacity)
{
	weir_queue *queue = fifo(2);
	struct call call = {.kind = DEQUEUE_MANY, .queue = queue, .count = 5};

	put(queue, 1, 2);
	begin_waiting_call(&call, 1);
	cr_expect_eq(weir_queue_size_approx(queue), 0, "a batch that collects frees the room");
	put(queue, 3, 1);
	await(idle_in(queue) == 1);
	cr_expect_eq(weir_queue_size_approx(queue), 0);
	cr_expect_not(has_ended(&call));
	put(queue, 4, 2);
	cr_expect_eq(end_call(&call), WEIR_OK);
	expect_numbers(call.items, 1, 5);
	expect_nothing(queue);
	destroy(queue);
}

Test(queue_batch, a_batch_of_none_succeeds_at_once_whatever_the_state)
{
	weir_queue *queue = fifo(2);
	weir_cancel *token;
	size_t done = 9;

	cr_assert_eq(weir_cancel_create(NULL, &token, NULL), WEIR_OK);
	(void)weir_cancel_fire(token, NULL);
	for (int round = 0; round < 2; round++) {
		cr_expect_eq(weir_queue_dequeue_many(queue, NULL, 0, 0, NULL, NULL), WEIR_OK);
		cr_expect_eq(weir_queue_dequeue_many(queue, NULL, 0, 0, token, NULL), WEIR_OK);
		done = 9;
		cr_expect_eq(weir_queue_dequeue_up_to(queue, NULL, 0, 0, token, &done, NULL), WEIR_OK);
		cr_expect_eq(done, 0);
		done = 9;
		cr_expect_eq(weir_queue_enqueue_many(queue, NULL, 0, 0, token, &done, NULL), WEIR_OK);
		cr_expect_eq(done, 0);
		cr_expect_eq(weir_queue_enqueue_many(queue, NULL, 0, 0, NULL, NULL, NULL), WEIR_OK);
		/* In the second round the queue is closed. */
		cr_expect_eq(weir_queue_close(queue, WEIR_CLOSE_DRAIN, NULL), WEIR_OK);
	}
	weir_cancel_release(token);
	destroy(queue);
}

Test(queue_batch, a_batch_beyond_all_memory_is_refused)
{
	weir_queue *queue = fifo(2);
	void *items[1];
	size_t done = 9;
	weir_error error = {0};

	put(queue, 1, 1);
	cr_expect_eq(weir_queue_dequeue_many(queue, items, SIZE_MAX, 0, NULL, &error), WEIR_RESOURCE_EXHAUSTED);
	cr_expect_not_null(strstr(error.message, "\"test\""), "%s", error.message);
	cr_expect_eq(weir_queue_dequeue_many(queue, items, SIZE_MAX / 8, 0, NULL, &error), WEIR_RESOURCE_EXHAUSTED);
	cr_expect_eq(weir_queue_dequeue_up_to(queue, items, SIZE_MAX / 8, 0, NULL, &done, &error), WEIR_RESOURCE_EXHAUSTED);
	cr_expect_eq(done, 0);
	expect_next(queue, 1, 1);
	destroy(queue);
}

/* -- what a failed batch puts back ------------------------------------------------------------- */

static void expect_untouched(const struct call *call)
{
	for (size_t i = 0; i < call->count; i++)
		cr_expect_eq(number_of(call->items[i]), 4711, "items[%zu] was written", i);
}

static struct call batch_of(weir_queue *queue, size_t count)
{
	struct call call = {.kind = DEQUEUE_MANY, .queue = queue, .count = count};

	for (size_t i = 0; i < count; i++)
		call.items[i] = item(4711);
	return call;
}

Test(queue_batch, at_its_deadline_a_partial_batch_goes_back_in_order)
{
	weir_queue *queue = fifo(4);
	struct call call = batch_of(queue, 5);

	put(queue, 1, 3);
	call.deadline_ns = weir_deadline_in(2000000);
	cr_expect_eq(call_now(&call), WEIR_DEADLINE_EXCEEDED);
	cr_expect_not_null(strstr(call.error.message, "\"test\""), "%s", call.error.message);
	cr_expect_not_null(strstr(call.error.message, "5 items"), "%s", call.error.message);
	expect_untouched(&call);
	cr_expect_eq(weir_queue_size_approx(queue), 3);
	put(queue, 4, 1);
	expect_next(queue, 1, 4);
	destroy(queue);
}

Test(queue_batch, with_a_deadline_of_zero_a_batch_gets_all_or_leaves_all)
{
	weir_queue *queue = fifo(4);
	struct call call = batch_of(queue, 3);

	put(queue, 1, 2);
	cr_expect_eq(weir_queue_dequeue_many(queue, call.items, 3, 0, NULL, NULL), WEIR_DEADLINE_EXCEEDED);
	expect_untouched(&call);
	put(queue, 3, 1);
	cr_expect_eq(weir_queue_dequeue_many(queue, call.items, 3, 0, NULL, NULL), WEIR_OK);
	expect_numbers(call.items, 1, 3);
	destroy(queue);
}

Test(queue_batch, when_its_token_fires_a_partial_batch_goes_back_in_order)
{
	weir_queue *queue = fifo(2);
	struct call call = batch_of(queue, 6);
	weir_cancel *token;

	cr_assert_eq(weir_cancel_create(NULL, &token, NULL), WEIR_OK);
	call.token = token;
	put(queue, 1, 2);
	begin_waiting_call(&call, 1);
	put(queue, 3, 2);
	await(weir_queue_size_approx(queue) == 0);
	(void)weir_cancel_fire(token, NULL);
	cr_expect_eq(end_call(&call), WEIR_CANCELLED);
	expect_untouched(&call);
	cr_expect_eq(weir_queue_size_approx(queue), 4, "more than the capacity: the batch had freed the room");
	put(queue, 5, 2);
	expect_next(queue, 1, 6);
	weir_cancel_release(token);
	destroy(queue);
}

Test(queue_batch, at_the_end_of_the_queue_a_partial_batch_goes_back_in_order)
{
	weir_queue *queue = fifo(4);
	struct call call = batch_of(queue, 5);

	put(queue, 1, 3);
	begin_waiting_call(&call, 1);
	cr_expect_eq(weir_queue_close(queue, WEIR_CLOSE_DRAIN, NULL), WEIR_OK);
	cr_expect_eq(end_call(&call), WEIR_OUT_OF_RANGE);
	cr_expect_not_null(strstr(call.error.message, "5 items asked for, 3 left"), "%s", call.error.message);
	expect_untouched(&call);
	expect_next(queue, 1, 3);
	expect_drained(queue);
	destroy(queue);
}

Test(queue_batch, what_goes_back_goes_to_those_who_wait)
{
	weir_queue *queue = fifo(4);
	struct call batch = batch_of(queue, 5),
				singles[2] = {{.kind = DEQUEUE, .queue = queue}, {.kind = DEQUEUE, .queue = queue}};
	weir_cancel *token;

	cr_assert_eq(weir_cancel_create(NULL, &token, NULL), WEIR_OK);
	batch.token = token;
	put(queue, 1, 3);
	begin_waiting_call(&batch, 1);
	begin_waiting_call(&singles[0], 2);
	begin_waiting_call(&singles[1], 3);
	(void)weir_cancel_fire(token, NULL);
	cr_expect_eq(end_call(&batch), WEIR_CANCELLED);
	for (size_t i = 0; i < 2; i++) {
		cr_expect_eq(end_call(&singles[i]), WEIR_OK);
		cr_expect_eq(number_of(singles[i].items[0]), 1 + i);
	}
	expect_next(queue, 3, 1);
	expect_nothing(queue);
	weir_cancel_release(token);
	destroy(queue);
}

Test(queue_batch, what_went_back_twice_is_still_in_order)
{
	weir_queue *queue = fifo(8);
	void *items[8];

	put(queue, 1, 4);
	cr_expect_eq(weir_queue_dequeue_many(queue, items, 6, 0, NULL, NULL), WEIR_DEADLINE_EXCEEDED);
	expect_next(queue, 1, 1);
	/* The batch takes all of the first putback and some items of the store. */
	put(queue, 5, 2);
	cr_expect_eq(weir_queue_dequeue_many(queue, items, 8, 0, NULL, NULL), WEIR_DEADLINE_EXCEEDED);
	/* The batch takes a part of the second putback. */
	cr_expect_eq(weir_queue_dequeue_many(queue, items, 2, 0, NULL, NULL), WEIR_OK);
	expect_numbers(items, 2, 2);
	put(queue, 7, 1);
	cr_expect_eq(weir_queue_size_approx(queue), 4);
	cr_expect_eq(weir_queue_dequeue_many(queue, items, 5, 0, NULL, NULL), WEIR_DEADLINE_EXCEEDED);
	cr_expect_eq(weir_queue_dequeue_many(queue, items, 4, 0, NULL, NULL), WEIR_OK);
	expect_numbers(items, 4, 4);
	expect_nothing(queue);
	destroy(queue);
}

Test(queue_batch, room_that_a_batch_freed_stays_free_when_it_gives_back)
{
	weir_queue *queue = fifo(2);
	struct call call = {.kind = ENQUEUE_MANY, .queue = queue, .count = 2, .items = {item(3), item(4)}};
	void *items[8];

	put(queue, 1, 2);
	begin_waiting_call(&call, 1);
	cr_expect_eq(weir_queue_dequeue_many(queue, items, 8, 0, NULL, NULL), WEIR_DEADLINE_EXCEEDED);
	/* The enqueue completed when the batch took the first two items. */
	cr_expect_eq(end_call(&call), WEIR_OK);
	expect_next(queue, 1, 4);
	expect_nothing(queue);
	destroy(queue);
}

/* -- turns ------------------------------------------------------------------------------------- */

Test(queue_batch, batches_take_turns_and_each_is_of_one_piece)
{
	weir_queue *queue = fifo(4);
	struct call first = batch_of(queue, 3), second = batch_of(queue, 3);

	begin_waiting_call(&first, 1);
	begin_waiting_call(&second, 2);
	for (size_t i = 1; i <= 6; i++)
		put(queue, i, 1);
	cr_expect_eq(end_call(&first), WEIR_OK);
	cr_expect_eq(end_call(&second), WEIR_OK);
	expect_numbers(first.items, 1, 3);
	expect_numbers(second.items, 4, 3);
	destroy(queue);
}

Test(queue_batch, two_batches_that_want_more_than_half_each_do_not_starve_each_other)
{
	weir_queue *queue = fifo(4);
	struct call first = batch_of(queue, 4), second = batch_of(queue, 4);

	put(queue, 1, 1);
	begin_waiting_call(&first, 1);
	begin_waiting_call(&second, 2);
	put(queue, 2, 3);
	cr_expect_eq(end_call(&first), WEIR_OK);
	expect_numbers(first.items, 1, 4);
	cr_expect_not(has_ended(&second));
	put(queue, 5, 4);
	cr_expect_eq(end_call(&second), WEIR_OK);
	expect_numbers(second.items, 5, 4);
	destroy(queue);
}

Test(queue_batch, the_turn_of_a_batch_that_gives_up_goes_to_the_next)
{
	weir_queue *queue = fifo(4);
	struct call first = batch_of(queue, 4), second = batch_of(queue, 3);
	weir_cancel *token;

	cr_assert_eq(weir_cancel_create(NULL, &token, NULL), WEIR_OK);
	first.token = token;
	put(queue, 1, 3);
	begin_waiting_call(&first, 1);
	begin_waiting_call(&second, 2);
	(void)weir_cancel_fire(token, NULL);
	cr_expect_eq(end_call(&first), WEIR_CANCELLED);
	cr_expect_eq(end_call(&second), WEIR_OK);
	expect_numbers(second.items, 1, 3);
	weir_cancel_release(token);
	destroy(queue);
}

Test(queue_batch, single_dequeues_pass_a_batch_that_waits_for_its_turn)
{
	weir_queue *queue = fifo(4);
	struct call collecting = batch_of(queue, 2), next = batch_of(queue, 2), single = {.kind = DEQUEUE, .queue = queue};

	begin_waiting_call(&collecting, 1);
	begin_waiting_call(&next, 2);
	begin_waiting_call(&single, 3);
	put(queue, 1, 2);
	cr_expect_eq(end_call(&collecting), WEIR_OK);
	expect_numbers(collecting.items, 1, 2);
	put(queue, 3, 1);
	await(idle_in(queue) == 2 && weir_queue_size_approx(queue) == 0);
	cr_expect_not(has_ended(&single), "the batch came earlier, and it is its turn");
	put(queue, 4, 2);
	cr_expect_eq(end_call(&next), WEIR_OK);
	expect_numbers(next.items, 3, 2);
	cr_expect_eq(end_call(&single), WEIR_OK);
	cr_expect_eq(number_of(single.items[0]), 5);
	destroy(queue);
}

/* -- dequeue_up_to ----------------------------------------------------------------------------- */

Test(queue_batch, up_to_waits_for_all_while_the_queue_is_open)
{
	weir_queue *queue = fifo(4);
	struct call call = {.kind = DEQUEUE_UP_TO, .queue = queue, .count = 4};

	put(queue, 1, 3);
	begin_waiting_call(&call, 1);
	cr_expect_not(has_ended(&call));
	put(queue, 4, 1);
	cr_expect_eq(end_call(&call), WEIR_OK);
	cr_expect_eq(call.done, 4);
	expect_numbers(call.items, 1, 4);
	destroy(queue);
}

Test(queue_batch, up_to_gives_the_rest_once_the_queue_is_closed)
{
	weir_queue *queue = fifo(8);
	struct call call = {.kind = DEQUEUE_UP_TO, .queue = queue, .count = 3, .done = 9};
	void *items[3] = {item(4711), item(4711), item(4711)};
	weir_error error = {0};
	size_t done = 9;

	put(queue, 1, 4);
	cr_expect_eq(weir_queue_dequeue_up_to(queue, items, 3, 0, NULL, &done, NULL), WEIR_OK);
	cr_expect_eq(done, 3);
	expect_numbers(items, 1, 3);
	begin_waiting_call(&call, 1);
	cr_expect_eq(weir_queue_close(queue, WEIR_CLOSE_DRAIN, NULL), WEIR_OK);
	cr_expect_eq(end_call(&call), WEIR_OK);
	cr_expect_eq(call.done, 1);
	cr_expect_eq(number_of(call.items[0]), 4);
	/* It never returns an empty batch. */
	cr_expect_eq(weir_queue_dequeue_up_to(queue, items, 3, 0, NULL, &done, &error), WEIR_OUT_OF_RANGE);
	cr_expect_eq(done, 0);
	cr_expect_not_null(strstr(error.message, "\"test\""), "%s", error.message);
	destroy(queue);
}

Test(queue_batch, up_to_on_a_closed_queue_needs_no_more_than_there_is)
{
	weir_queue *queue = fifo(8);
	void *items[8];
	size_t done = 0;

	put(queue, 1, 5);
	cr_expect_eq(weir_queue_close(queue, WEIR_CLOSE_DRAIN, NULL), WEIR_OK);
	cr_expect_eq(weir_queue_dequeue_up_to(queue, items, 1, 0, NULL, &done, NULL), WEIR_OK);
	cr_expect_eq(done, 1);
	cr_expect_eq(number_of(items[0]), 1);
	cr_expect_eq(weir_queue_dequeue_up_to(queue, items, 8, 0, NULL, &done, NULL), WEIR_OK);
	cr_expect_eq(done, 4);
	expect_numbers(items, 2, 4);
	expect_drained(queue);
	destroy(queue);
}

Test(queue_batch, up_to_gives_back_what_it_has_when_it_gives_up)
{
	weir_queue *queue = fifo(8);
	struct call call = {.kind = DEQUEUE_UP_TO, .queue = queue, .count = 3, .done = 9};

	put(queue, 1, 2);
	call.deadline_ns = weir_deadline_in(2000000);
	cr_expect_eq(call_now(&call), WEIR_DEADLINE_EXCEEDED);
	cr_expect_eq(call.done, 0);
	expect_next(queue, 1, 2);
	destroy(queue);
}

/* -- enqueue_many ------------------------------------------------------------------------------ */

static struct call run_of(weir_queue *queue, size_t first, size_t count)
{
	struct call call = {.kind = ENQUEUE_MANY, .queue = queue, .count = count, .done = 4711};

	for (size_t i = 0; i < count; i++)
		call.items[i] = item(first + i);
	return call;
}

Test(queue_batch, enqueue_many_goes_in_in_order)
{
	weir_queue *queue = fifo(16);
	struct call call = run_of(queue, 1, 9);

	cr_expect_eq(call_now(&call), WEIR_OK);
	cr_expect_eq(call.done, 9);
	cr_expect_eq(weir_queue_enqueue_many(queue, call.items, 2, 0, NULL, NULL, NULL), WEIR_OK);
	expect_next(queue, 1, 9);
	expect_next(queue, 1, 2);
	expect_nothing(queue);
	destroy(queue);
}

Test(queue_batch, enqueue_many_beyond_the_capacity_ends_with_the_last_item_in)
{
	weir_queue *queue = fifo(5);
	struct call call = run_of(queue, 1, 10);

	begin_waiting_call(&call, 1);
	for (size_t i = 1; i <= 5; i++) {
		cr_expect_not(has_ended(&call), "after %zu", i - 1);
		cr_expect_eq(weir_queue_size_approx(queue), 5);
		expect_next(queue, i, 1);
	}
	cr_expect_eq(end_call(&call), WEIR_OK);
	cr_expect_eq(call.done, 10);
	for (size_t i = 6; i <= 10; i++) {
		cr_expect_eq(weir_queue_size_approx(queue), 11 - i);
		expect_next(queue, i, 1);
	}
	expect_nothing(queue);
	destroy(queue);
}

Test(queue_batch, enqueue_many_that_gives_up_says_how_many_are_in)
{
	weir_queue *queue = fifo(3);
	struct call call = run_of(queue, 1, 5);
	weir_cancel *token;

	cr_expect_eq(weir_queue_enqueue_many(queue, call.items, 5, 0, NULL, &call.done, &call.error),
	             WEIR_DEADLINE_EXCEEDED);
	cr_expect_eq(call.done, 3);
	cr_expect_not_null(strstr(call.error.message, "\"test\""), "%s", call.error.message);
	expect_next(queue, 1, 3);
	call.deadline_ns = weir_deadline_in(2000000);
	cr_expect_eq(call_now(&call), WEIR_DEADLINE_EXCEEDED);
	cr_expect_eq(call.done, 3);
	cr_assert_eq(weir_cancel_create(NULL, &token, NULL), WEIR_OK);
	expect_next(queue, 1, 3);
	call.deadline_ns = 0;
	call.token = token;
	begin_waiting_call(&call, 1);
	expect_next(queue, 1, 1);
	await(weir_queue_size_approx(queue) == 3);
	(void)weir_cancel_fire(token, NULL);
	cr_expect_eq(end_call(&call), WEIR_CANCELLED);
	cr_expect_eq(call.done, 4);
	call.done = 4711;
	cr_expect_eq(call_now(&call), WEIR_CANCELLED);
	cr_expect_eq(call.done, 0, "fired before the call");
	expect_next(queue, 2, 3);
	expect_nothing(queue);
	weir_cancel_release(token);
	destroy(queue);
}

Test(queue_batch, enqueue_many_meets_a_batch_that_wants_as_many)
{
	weir_queue *queue = fifo(2);
	struct call in = run_of(queue, 1, 12), out = batch_of(queue, 12);

	begin_waiting_call(&out, 1);
	cr_expect_eq(call_now(&in), WEIR_OK);
	cr_expect_eq(in.done, 12);
	cr_expect_eq(end_call(&out), WEIR_OK);
	expect_numbers(out.items, 1, 12);
	expect_nothing(queue);
	destroy(queue);
}

/* -- what goes at once ------------------------------------------------------------------------- */

Test(queue_batch, try_many_moves_what_goes_at_once_and_says_how_many)
{
	weir_queue *queue = fifo(100);
	void *in[200], *out[200];
	size_t done = 9;

	for (size_t i = 0; i < 200; i++)
		in[i] = item(i);
	cr_expect_eq(weir_queue_try_enqueue_many(queue, in, 70, &done), WEIR_OK);
	cr_expect_eq(done, 70);
	cr_expect_eq(weir_queue_try_enqueue_many(queue, in + 70, 130, &done), WEIR_OK);
	cr_expect_eq(done, 30, "room for 30");
	cr_expect_eq(weir_queue_try_enqueue_many(queue, in, 1, &done), WEIR_WOULD_BLOCK);
	cr_expect_eq(done, 0);
	cr_expect_eq(weir_queue_try_dequeue_many(queue, out, 3, &done), WEIR_OK);
	cr_expect_eq(done, 3);
	expect_numbers(out, 0, 3);
	cr_expect_eq(weir_queue_try_dequeue_many(queue, out, 200, &done), WEIR_OK);
	cr_expect_eq(done, 97, "all that is there");
	expect_numbers(out, 3, 97);
	cr_expect_eq(weir_queue_try_dequeue_many(queue, out, 200, &done), WEIR_WOULD_BLOCK);
	cr_expect_eq(done, 0);
	destroy(queue);
}

Test(queue_batch, try_many_of_none_succeeds_whatever_the_state)
{
	weir_queue *queue = fifo(1);
	void *untouched = item(4711);
	size_t done;

	for (int round = 0; round < 3; round++) {
		done = 9;
		cr_expect_eq(weir_queue_try_enqueue_many(queue, &untouched, 0, &done), WEIR_OK);
		cr_expect_eq(done, 0);
		done = 9;
		cr_expect_eq(weir_queue_try_dequeue_many(queue, NULL, 0, &done), WEIR_OK);
		cr_expect_eq(done, 0);
		if (round == 0)
			put(queue, 1, 1);
		else
			(void)weir_queue_close(queue, WEIR_CLOSE_DRAIN, NULL);
	}
	expect_next(queue, 1, 1);
	destroy(queue);
}

Test(queue_batch, try_many_tells_closed_from_full_and_drained_from_empty)
{
	weir_queue *queue = fifo(4);
	void *items[4] = {item(9), item(9), item(9), item(9)};
	size_t done = 9;

	put(queue, 1, 2);
	cr_assert_eq(weir_queue_close(queue, WEIR_CLOSE_DRAIN, NULL), WEIR_OK);
	cr_expect_eq(weir_queue_try_enqueue_many(queue, items, 2, &done), WEIR_CANCELLED);
	cr_expect_eq(done, 0);
	cr_expect_eq(weir_queue_try_dequeue_many(queue, items, 4, &done), WEIR_OK);
	cr_expect_eq(done, 2);
	expect_numbers(items, 1, 2);
	cr_expect_eq(number_of(items[2]), 9, "untouched");
	cr_expect_eq(weir_queue_try_dequeue_many(queue, items, 4, &done), WEIR_OUT_OF_RANGE);
	cr_expect_eq(done, 0);
	destroy(queue);
}

Test(queue_batch, try_many_refuses_null_and_leaves_done_alone)
{
	weir_queue *queue = fifo(1);
	void *any = item(1);
	size_t done = 9;

	cr_expect_eq(weir_queue_try_enqueue_many(NULL, &any, 1, &done), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_queue_try_enqueue_many(queue, NULL, 1, &done), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_queue_try_enqueue_many(queue, &any, 1, NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_queue_try_dequeue_many(NULL, &any, 1, &done), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_queue_try_dequeue_many(queue, NULL, 1, &done), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_queue_try_dequeue_many(queue, &any, 1, NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(done, 9);
	expect_nothing(queue);
	destroy(queue);
}

Test(queue_batch, try_many_lets_waiters_of_the_other_side_go_on)
{
	weir_queue *queue = fifo(2);
	struct call consumer = {.kind = DEQUEUE, .queue = queue}, producer = {.kind = ENQUEUE, .queue = queue};
	void *items[3] = {item(1), item(2), item(3)};
	size_t done;

	begin_waiting_call(&consumer, 1);
	cr_expect_eq(weir_queue_try_enqueue_many(queue, items, 2, &done), WEIR_OK);
	cr_expect_eq(done, 2);
	cr_assert_eq(end_call(&consumer), WEIR_OK);
	cr_expect_eq(number_of(consumer.items[0]), 1);
	put(queue, 3, 1);
	producer.items[0] = item(4);
	begin_waiting_call(&producer, 1);
	cr_expect_eq(weir_queue_try_dequeue_many(queue, items, 3, &done), WEIR_OK);
	cr_expect_eq(done, 2);
	cr_assert_eq(end_call(&producer), WEIR_OK);
	expect_numbers(items, 2, 2);
	expect_next(queue, 4, 1);
	destroy(queue);
}

Test(queue_batch, try_many_of_a_fair_queue_lets_waiters_first)
{
	weir_queue *queue =
		queue_with((struct weir_queue_options){.capacity = 2, .flags = WEIR_QUEUE_FAIR, .name = "fair"});
	struct call batch = {.kind = DEQUEUE_MANY, .queue = queue, .count = 3};
	void *items[2] = {item(1), item(2)};
	size_t done = 9;

	begin_waiting_call(&batch, 1);
	put(queue, 1, 2);
	cr_expect_eq(weir_queue_try_dequeue_many(queue, items, 2, &done), WEIR_WOULD_BLOCK);
	cr_expect_eq(done, 0);
	put(queue, 3, 1);
	cr_assert_eq(end_call(&batch), WEIR_OK);
	destroy(queue);
}

/* The keys are the numbers. */
static int64_t number_as_key_of_many(void *context, void *any)
{
	(void)context;
	return (int64_t)number_of(any);
}

Test(queue_batch, try_many_of_a_priority_queue_takes_the_smallest_first)
{
	weir_queue *queue = queue_with((struct weir_queue_options){
		.capacity = 4, .order = WEIR_QUEUE_PRIORITY, .key = number_as_key_of_many, .name = "by key"});
	void *items[5] = {item(3), item(1), item(2), item(0), item(9)};
	size_t done;

	cr_expect_eq(weir_queue_try_enqueue_many(queue, items, 5, &done), WEIR_OK);
	cr_expect_eq(done, 4);
	cr_expect_eq(weir_queue_try_dequeue_many(queue, items, 5, &done), WEIR_OK);
	cr_expect_eq(done, 4);
	expect_numbers(items, 0, 4);
	destroy(queue);
}

Test(queue_batch, try_many_takes_what_a_batch_has_returned_first)
{
	weir_queue *queue = fifo(4);
	struct call batch = {.kind = DEQUEUE_MANY, .queue = queue, .count = 3};
	void *items[4];
	size_t done;

	cr_assert_eq(weir_cancel_create(NULL, &batch.token, NULL), WEIR_OK);
	begin_waiting_call(&batch, 1);
	put(queue, 1, 2);
	await(weir_queue_size_approx(queue) == 0);
	(void)weir_cancel_fire(batch.token, NULL);
	cr_assert_eq(end_call(&batch), WEIR_CANCELLED);
	put(queue, 3, 2);
	cr_expect_eq(weir_queue_try_dequeue_many(queue, items, 4, &done), WEIR_OK);
	cr_expect_eq(done, 4);
	expect_numbers(items, 1, 4);
	weir_cancel_release(batch.token);
	destroy(queue);
}

/* -- streams ----------------------------------------------------------------------------------- */

enum { STREAM = 2000 };

struct stream {
	weir_queue *queue;
	_Atomic(size_t) wrong;
	_Atomic(size_t) received;
};

/* Enqueues 0, 1, 2, ... by single enqueues and by enqueue_many of 0 to 16 items. */
static void *feed(void *argument)
{
	struct stream *stream = argument;
	size_t next = 0;

	for (size_t step = 0; next < STREAM; step++) {
		size_t count = step * 7 % 17, done = 0;
		struct call call;

		count = count < STREAM - next ? count : STREAM - next;
		call = (struct call){.kind = step % 3 == 0 ? ENQUEUE : ENQUEUE_MANY, .queue = stream->queue, .count = count};
		for (size_t i = 0; i < KIT_MOST_ITEMS; i++)
			call.items[i] = item(next + i);
		weiri_fetch_add_relaxed(&stream->wrong, call_now(&call) != WEIR_OK);
		done = call.kind == ENQUEUE ? 1 : call.done;
		next += done;
	}
	return NULL;
}

Test(queue_batch, a_mix_of_calls_keeps_one_stream_in_order)
{
	struct stream stream = {.queue = fifo(10)};
	size_t next = 0;
	pthread_t thread;

	cr_assert_eq(pthread_create(&thread, NULL, feed, &stream), 0);
	for (size_t step = 0; next < STREAM; step++) {
		size_t count = step * 5 % 14;
		struct call call = {.kind = step % 4 == 0 ? DEQUEUE : DEQUEUE_MANY, .queue = stream.queue};

		call.count = count < STREAM - next ? count : STREAM - next;
		cr_assert_eq(call_now(&call), WEIR_OK, "%s", call.error.message);
		count = call.kind == DEQUEUE ? 1 : call.count;
		expect_numbers(call.items, next, count);
		next += count;
	}
	cr_assert_eq(pthread_join(thread, NULL), 0);
	cr_expect_eq(stream.wrong, 0);
	expect_nothing(stream.queue);
	destroy(stream.queue);
}

static void *feed_batches(void *argument)
{
	struct stream *stream = argument;

	for (size_t i = 0; i < 100; i++) {
		struct call call = run_of(stream->queue, 10 * i, 10);

		weiri_fetch_add_relaxed(&stream->wrong, call_now(&call) != WEIR_OK);
	}
	return NULL;
}

/*
 * Each batch of 7 has consecutive numbers in at most two runs, because no other batch collects
 * meanwhile.
 */
static void *take_batches(void *argument)
{
	struct stream *stream = argument;
	size_t breaks;

	for (;;) {
		struct call call = {.kind = DEQUEUE_UP_TO, .queue = stream->queue, .count = 7};

		if (call_now(&call) != WEIR_OK)
			return NULL;
		breaks = 0;
		for (size_t i = 1; i < call.done; i++)
			breaks += number_of(call.items[i]) < number_of(call.items[i - 1]);
		weiri_fetch_add_relaxed(&stream->wrong, breaks > 1);
		weiri_fetch_add_relaxed(&stream->received, call.done);
	}
}

Test(queue_batch, batches_of_many_threads_are_each_of_one_piece)
{
	struct stream stream = {.queue = fifo(16)};
	pthread_t feeder, takers[4];

	for (size_t i = 0; i < 4; i++)
		cr_assert_eq(pthread_create(&takers[i], NULL, take_batches, &stream), 0);
	cr_assert_eq(pthread_create(&feeder, NULL, feed_batches, &stream), 0);
	cr_assert_eq(pthread_join(feeder, NULL), 0);
	cr_assert_eq(weir_queue_close(stream.queue, WEIR_CLOSE_DRAIN, NULL), WEIR_OK);
	for (size_t i = 0; i < 4; i++)
		cr_assert_eq(pthread_join(takers[i], NULL), 0);
	cr_expect_eq(stream.wrong, 0);
	cr_expect_eq(stream.received, 1000);
	destroy(stream.queue);
}

/* -- a dequeue stopped before each of its instructions, while a batch gives back --------------- */

struct beside {
	weir_queue *queue;
	enum weir_status status;
	void *got;
};

static void try_dequeue(void *context)
{
	struct beside *beside = context;

	beside->status = weir_queue_try_dequeue(beside->queue, &beside->got);
}

static void forget(void *context, enum weir_status status, const weir_error *error, void **items, size_t done)
{
	(void)context, (void)status, (void)error, (void)items, (void)done;
}

/* Starts a batch that collects what is in the queue, and keeps it until the batch is cancelled. */
static weir_pending *hold(weir_queue *queue, void *items[2])
{
	weir_pending *op = NULL;

	cr_assert_eq(weir_queue_start(queue, WEIR_QUEUE_OP_DEQUEUE_MANY, items, 2, forget, NULL, &op, NULL), WEIR_OK);
	return op;
}

static void give_up(weir_pending *op)
{
	weir_pending_cancel(op, NULL);
	weir_pending_release(op);
}

/*
 * A dequeue that had looked for a putback before the batch gave back took a newer item.
 */
static void pass_what_went_back(weir_queue *queue)
{
	struct beside beside = {.queue = queue};
	struct stepped call = {.call = try_dequeue, .context = &beside};
	size_t at = 0;

	for (int goes_on = 1; goes_on; at += stepped_stride(1)) {
		void *items[2];
		weir_pending *op;

		put(beside.queue, 1, 1);
		op = hold(beside.queue, items);
		goes_on = stepped_start(&call, at);
		give_up(op);
		put(beside.queue, 2, 1);
		stepped_finish(&call);
		if (beside.status == WEIR_OK)
			cr_assert_eq(number_of(beside.got), 1, "stopped at %zu", at);
		else
			/* This item came before the batch put its items back. */
			expect_next(beside.queue, 1, 1);
		expect_next(beside.queue, 2, 1);
	}
	destroy(beside.queue);
}

static int64_t number_as_key(void *context, void *any)
{
	(void)context;
	return (int64_t)number_of(any);
}

Test(queue_batch, what_went_back_is_not_passed_by_a_dequeue_that_was_under_way)
{
	stepped_or_skip();
	pass_what_went_back(fifo(4));
	pass_what_went_back(
		queue_with((struct weir_queue_options){.capacity = 4, .order = WEIR_QUEUE_PRIORITY, .key = number_as_key}));
}

/*
 * The queue always holds an item: first one that was put back, then newer ones beside it, then the
 * newer ones alone.
 */
Test(queue_batch, a_dequeue_beside_what_went_back_and_what_comes_in_is_not_told_empty)
{
	struct beside beside = {.queue = fifo(4)};
	struct stepped call = {.call = try_dequeue, .context = &beside};
	size_t at = 0;

	stepped_or_skip();
	for (int goes_on = 1; goes_on; at += stepped_stride(1)) {
		void *items[2];

		put(beside.queue, 1, 1);
		give_up(hold(beside.queue, items));
		goes_on = stepped_start(&call, at);
		put(beside.queue, 2, 2);
		/* The first dequeue empties the putback, and the second one unlinks it. */
		for (int i = 0; i < 2; i++) {
			void *other;

			cr_assert_eq(weir_queue_try_dequeue(beside.queue, &other), WEIR_OK);
		}
		stepped_finish(&call);
		cr_assert_eq(beside.status, WEIR_OK, "stopped at %zu", at);
		expect_nothing(beside.queue);
	}
	destroy(beside.queue);
}

/* -- a ring for batches ------------------------------------------------------------------------ */

Test(queue_batch, a_queue_for_batches_moves_whole_batches_and_single_items_in_order)
{
	weir_queue *queue = queue_with((struct weir_queue_options){.capacity = 300, .flags = WEIR_QUEUE_BATCHES});
	static void *items[400], *got[400];
	size_t in = 0, out = 0, done;

	for (size_t round = 0; round < 40; round++) {
		size_t count = 1 + round * 37 % 400, room = 300 - (in - out);

		for (size_t i = 0; i < count; i++)
			items[i] = item(in + i);
		cr_assert_eq(weir_queue_try_enqueue_many(queue, items, count, &done), WEIR_OK);
		cr_assert_eq(done, count < room ? count : room, "the exact room");
		in += done;
		cr_assert_eq(weir_queue_size_approx(queue), in - out);
		cr_assert_eq(weir_queue_try_dequeue(queue, &got[0]), WEIR_OK);
		cr_assert_eq(number_of(got[0]), out++);
		cr_assert_eq(weir_queue_try_dequeue_many(queue, got, 400, &done), in == out ? WEIR_WOULD_BLOCK : WEIR_OK);
		for (size_t i = 0; i < done; i++)
			cr_assert_eq(number_of(got[i]), out++);
	}
	destroy(queue);
}

Test(queue_batch, a_queue_for_batches_gives_a_batch_that_failed_back)
{
	weir_queue *queue = queue_with((struct weir_queue_options){.capacity = 8, .flags = WEIR_QUEUE_BATCHES});
	void *items[8];

	put(queue, 0, 5);
	cr_expect_eq(weir_queue_dequeue_many(queue, items, 6, 0, NULL, NULL), WEIR_DEADLINE_EXCEEDED);
	put(queue, 5, 3);
	cr_expect_eq(weir_queue_close(queue, WEIR_CLOSE_DRAIN, NULL), WEIR_OK);
	cr_expect_eq(weir_queue_dequeue_many(queue, items, 6, 0, NULL, NULL), WEIR_OK);
	for (size_t i = 0; i < 6; i++)
		cr_expect_eq(number_of(items[i]), i);
	cr_expect_eq(weir_queue_dequeue_many(queue, items, 3, 0, NULL, NULL), WEIR_OUT_OF_RANGE);
	cr_expect_eq(weir_queue_size_approx(queue), 2);
	destroy(queue);
}

Test(queue_batch, only_a_fifo_queue_is_for_batches)
{
	struct weir_queue_options options = {WEIR_QUEUE_OPTIONS_INIT, .capacity = 4, .order = WEIR_QUEUE_SHUFFLE,
	                                     .flags = WEIR_QUEUE_BATCHES};
	weir_queue *queue = NULL;

	cr_expect_eq(weir_queue_create(&options, &queue, NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_null(queue);
}

/* -- numbers as items -------------------------------------------------------------------------- */

#if UINTPTR_MAX >= UINT64_MAX
static void expect_words(const uint64_t *got, const uint64_t *expected, size_t count)
{
	for (size_t i = 0; i < count; i++)
		cr_expect_eq(got[i], expected[i], "%zu", i);
}

/* Each call and its twin of the other direction, with numbers that are no addresses. */
Test(queue_batch, numbers_come_out_as_they_went_in)
{
	static const uint64_t in[3] = {0, UINT64_MAX, UINT64_C(0x8000000000000001)};
	weir_queue *queue = fifo(4);
	uint64_t out[4], number = 7;
	size_t done = 9;

	for (size_t i = 0; i < 3; i++) {
		cr_assert_eq(weir_queue_try_enqueue_u64(queue, in[i]), WEIR_OK);
		cr_assert_eq(weir_queue_dequeue_u64(queue, &out[i], in_good_time(), NULL, NULL), WEIR_OK);
		cr_expect_eq(out[i], in[i]);
		cr_assert_eq(weir_queue_enqueue_u64(queue, in[i], in_good_time(), NULL, NULL), WEIR_OK);
		cr_assert_eq(weir_queue_try_dequeue_u64(queue, &out[i]), WEIR_OK);
	}
	expect_words(out, in, 3);
	cr_expect_eq(weir_queue_try_dequeue_u64(queue, &number), WEIR_WOULD_BLOCK);
	cr_expect_eq(number, 7, "untouched");
	cr_assert_eq(weir_queue_try_enqueue_many_u64(queue, in, 3, &done), WEIR_OK);
	cr_expect_eq(done, 3);
	cr_assert_eq(weir_queue_dequeue_many_u64(queue, out, 3, in_good_time(), NULL, NULL), WEIR_OK);
	expect_words(out, in, 3);
	cr_assert_eq(weir_queue_enqueue_many_u64(queue, in, 3, in_good_time(), NULL, &done, NULL), WEIR_OK);
	cr_assert_eq(weir_queue_try_dequeue_many_u64(queue, out, 2, &done), WEIR_OK);
	cr_expect_eq(done, 2);
	expect_words(out, in, 2);
	cr_assert_eq(weir_queue_close(queue, WEIR_CLOSE_DRAIN, NULL), WEIR_OK);
	cr_assert_eq(weir_queue_dequeue_up_to_u64(queue, out, 4, in_good_time(), NULL, &done, NULL), WEIR_OK);
	cr_expect_eq(done, 1);
	expect_words(out, in + 2, 1);
	destroy(queue);
}
#endif
