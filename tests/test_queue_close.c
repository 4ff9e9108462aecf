/*
 * test_queue_close.c - after a close: what still goes in, what still comes out, which call gets
 * which status, and that every call ends.
 */
#include "queue_kit.h"

static void close_for_good(weir_queue *queue, enum weir_close_mode mode)
{
	cr_assert_eq(weir_queue_close(queue, mode, NULL), WEIR_OK);
}

/* -- a closed queue ---------------------------------------------------------------------------- */

Test(queue_close, later_enqueues_are_refused)
{
	weir_queue *queue = fifo(8);
	struct call one = {.kind = ENQUEUE, .queue = queue, .items = {item(2)}};
	struct call many = {.kind = ENQUEUE_MANY, .queue = queue, .count = 3, .done = 9};

	put(queue, 1, 1);
	cr_expect_eq(weir_queue_closed(queue), 0);
	close_for_good(queue, WEIR_CLOSE_DRAIN);
	cr_expect_eq(weir_queue_closed(queue), 1);
	cr_expect_eq(weir_queue_try_enqueue(queue, item(2)), WEIR_CANCELLED);
	cr_expect_eq(call_now(&one), WEIR_CANCELLED);
	cr_expect_eq(one.error.code, WEIR_CANCELLED);
	cr_expect_not_null(strstr(one.error.message, "\"test\" is closed"), "%s", one.error.message);
	cr_expect_eq(call_now(&many), WEIR_CANCELLED);
	cr_expect_eq(many.done, 0);
	cr_expect_not_null(strstr(many.error.message, "\"test\" is closed: 0 of 3"), "%s", many.error.message);
	cr_expect_eq(weir_queue_enqueue(queue, item(2), 0, NULL, NULL), WEIR_CANCELLED, "not the deadline");
	expect_next(queue, 1, 1);
	expect_drained(queue);
	destroy(queue);
}

Test(queue_close, what_is_inside_comes_out_and_then_the_end_for_ever)
{
	weir_queue *queue = fifo(8);
	weir_error error = {0};
	void *got = item(4711);

	put(queue, 1, 4);
	close_for_good(queue, WEIR_CLOSE_DRAIN);
	cr_expect_eq(weir_queue_size_approx(queue), 4);
	for (size_t i = 1; i <= 4; i++) {
		cr_expect_eq(weir_queue_dequeue(queue, &got, 0, NULL, NULL), WEIR_OK);
		cr_expect_eq(number_of(got), i);
	}
	for (int i = 0; i < 3; i++) {
		cr_expect_eq(weir_queue_dequeue(queue, &got, in_good_time(), NULL, &error), WEIR_OUT_OF_RANGE);
		cr_expect_eq(error.code, WEIR_OUT_OF_RANGE);
		cr_expect_not_null(strstr(error.message, "\"test\" is closed and drained: 1 item asked for, 0 left"), "%s",
		                   error.message);
		cr_expect_eq(number_of(got), 4);
		expect_drained(queue);
	}
	cr_expect_eq(weir_queue_size_approx(queue), 0);
	destroy(queue);
}

Test(queue_close, an_empty_queue_ends_at_once)
{
	weir_queue *queue = fifo(8);
	struct call one = {.kind = DEQUEUE, .queue = queue}, many = {.kind = DEQUEUE_MANY, .queue = queue, .count = 3};
	struct call up_to = {.kind = DEQUEUE_UP_TO, .queue = queue, .count = 3, .done = 9};

	close_for_good(queue, WEIR_CLOSE_DRAIN);
	cr_expect_eq(call_now(&one), WEIR_OUT_OF_RANGE);
	cr_expect_eq(call_now(&many), WEIR_OUT_OF_RANGE);
	cr_expect_eq(call_now(&up_to), WEIR_OUT_OF_RANGE);
	cr_expect_eq(up_to.done, 0);
	destroy(queue);
}

Test(queue_close, a_second_close_changes_nothing)
{
	weir_queue *queue = fifo(8);

	put(queue, 1, 2);
	for (int i = 0; i < 3; i++) {
		close_for_good(queue, WEIR_CLOSE_DRAIN);
		close_for_good(queue, WEIR_CLOSE_CANCEL);
	}
	expect_next(queue, 1, 2);
	expect_drained(queue);
	close_for_good(queue, WEIR_CLOSE_DRAIN);
	expect_drained(queue);
	destroy(queue);
}

/* -- the cause --------------------------------------------------------------------------------- */

static void expect_cause(weir_queue *queue, const char *code, const char *message)
{
	weir_error error = {0};
	void *got;

	cr_expect_eq(weir_queue_dequeue(queue, &got, 0, NULL, &error), WEIR_OUT_OF_RANGE);
	cr_expect_not_null(strstr(error.message, code), "%s", error.message);
	cr_expect_not_null(strstr(error.message, message), "%s", error.message);
	cr_expect_eq(weir_queue_enqueue(queue, item(1), 0, NULL, &error), WEIR_CANCELLED);
	cr_expect_not_null(strstr(error.message, code), "%s", error.message);
	cr_expect_not_null(strstr(error.message, message), "%s", error.message);
}

Test(queue_close, the_first_cause_is_in_every_later_message)
{
	weir_queue *queue = fifo(8);
	weir_error first = {WEIR_DATA_LOSS, "line 12 is no number"}, second = {WEIR_INTERNAL, "a later cause"};

	cr_expect_eq(weir_queue_close(queue, WEIR_CLOSE_DRAIN, &first), WEIR_OK);
	cr_expect_eq(weir_queue_close(queue, WEIR_CLOSE_CANCEL, &second), WEIR_OK);
	close_for_good(queue, WEIR_CLOSE_DRAIN);
	first.message[0] = '?';
	expect_cause(queue, "WEIR_DATA_LOSS", "line 12 is no number");
	destroy(queue);
}

Test(queue_close, a_close_without_a_cause_leaves_the_place_to_one_that_has)
{
	weir_queue *queue = fifo(8);
	weir_error ok = {WEIR_OK, ""}, cause = {WEIR_ABORTED, "stopped by hand"}, error = {0};
	void *got;

	close_for_good(queue, WEIR_CLOSE_DRAIN);
	cr_expect_eq(weir_queue_close(queue, WEIR_CLOSE_DRAIN, &ok), WEIR_OK);
	cr_expect_eq(weir_queue_dequeue(queue, &got, 0, NULL, &error), WEIR_OUT_OF_RANGE);
	cr_expect_null(strstr(error.message, "because"), "%s", error.message);
	cr_expect_eq(weir_queue_close(queue, WEIR_CLOSE_CANCEL, &cause), WEIR_OK);
	expect_cause(queue, "WEIR_ABORTED", "stopped by hand");
	destroy(queue);
}

Test(queue_close, words_without_a_code_are_a_cause_too)
{
	weir_queue *queue = fifo(1);
	weir_error words = {WEIR_OK, "the reader ended"};

	cr_expect_eq(weir_queue_close(queue, WEIR_CLOSE_DRAIN, &words), WEIR_OK);
	expect_cause(queue, "WEIR_OK", "the reader ended");
	cr_expect_eq(weir_queue_destroy(queue, NULL), WEIR_OK);
}

Test(queue_close, a_long_cause_is_cut_and_the_message_stays_whole)
{
	weir_queue *queue = fifo(8);
	weir_error cause = {.code = WEIR_ABORTED}, error = {0};
	void *got;

	memset(cause.message, 'x', sizeof(cause.message) - 1);
	cr_expect_eq(weir_queue_close(queue, WEIR_CLOSE_DRAIN, &cause), WEIR_OK);
	cr_expect_eq(weir_queue_dequeue(queue, &got, 0, NULL, &error), WEIR_OUT_OF_RANGE);
	cr_expect_not_null(strstr(error.message, "WEIR_ABORTED: xxx"), "%s", error.message);
	cr_expect_lt(strlen(error.message), sizeof(error.message));
	destroy(queue);
}

/* -- dequeues that wait ------------------------------------------------------------------------ */

Test(queue_close, a_cause_whose_message_is_not_terminated_is_kept_terminated)
{
	weir_queue *queue = fifo(1);
	weir_error endless = {.code = WEIR_ABORTED}, error;
	void *got;

	memset(endless.message, 'x', sizeof(endless.message));
	cr_expect_eq(weir_queue_close(queue, WEIR_CLOSE_DRAIN, &endless), WEIR_OK);
	cr_expect_not_null(memchr(queue->cause.message, '\0', sizeof(queue->cause.message)));
	cr_expect_eq(weir_queue_dequeue(queue, &got, 0, NULL, &error), WEIR_OUT_OF_RANGE);
	cr_expect_lt(strnlen(error.message, sizeof(error.message)), sizeof(error.message));
	destroy(queue);
}

Test(queue_close, dequeues_that_wait_are_told_the_end_and_why)
{
	weir_queue *queue = fifo(8);
	struct call calls[4] = {{.kind = DEQUEUE, .queue = queue},
	                        {.kind = DEQUEUE_MANY, .queue = queue, .count = 2},
	                        {.kind = DEQUEUE_UP_TO, .queue = queue, .count = 2, .done = 9},
	                        {.kind = DEQUEUE, .queue = queue}};
	weir_error cause = {WEIR_ABORTED, "no more input"};

	for (size_t i = 0; i < 4; i++)
		begin_waiting_call(&calls[i], i + 1);
	cr_expect_eq(weir_queue_close(queue, WEIR_CLOSE_DRAIN, &cause), WEIR_OK);
	for (size_t i = 0; i < 4; i++) {
		cr_expect_eq(end_call(&calls[i]), WEIR_OUT_OF_RANGE);
		cr_expect_not_null(strstr(calls[i].error.message, "no more input"), "%s", calls[i].error.message);
	}
	cr_expect_eq(calls[2].done, 0);
	destroy(queue);
}

Test(queue_close, a_batch_that_cannot_be_filled_leaves_its_items_to_the_others)
{
	weir_queue *queue = fifo(8);
	struct call batch = {.kind = DEQUEUE_MANY, .queue = queue, .count = 3};
	struct call singles[2] = {{.kind = DEQUEUE, .queue = queue}, {.kind = DEQUEUE, .queue = queue}};

	put(queue, 1, 1);
	begin_waiting_call(&batch, 1);
	begin_waiting_call(&singles[0], 2);
	begin_waiting_call(&singles[1], 3);
	close_for_good(queue, WEIR_CLOSE_DRAIN);
	cr_expect_eq(end_call(&batch), WEIR_OUT_OF_RANGE);
	cr_expect_eq(end_call(&singles[0]), WEIR_OK);
	cr_expect_eq(number_of(singles[0].items[0]), 1);
	cr_expect_eq(end_call(&singles[1]), WEIR_OUT_OF_RANGE);
	destroy(queue);
}

Test(queue_close, a_single_dequeue_ahead_of_a_batch_is_not_told_the_end_before_the_batch_has_given_back)
{
	weir_queue *queue = fifo(8);
	struct call single = {.kind = DEQUEUE, .queue = queue}, batch = {.kind = DEQUEUE_MANY, .queue = queue, .count = 3};
	void *items[3];

	/*
	 * The first single dequeue gets item 1. The batch then holds item 2 and waits for more, and a
	 * second single dequeue waits behind it.
	 */
	begin_waiting_call(&single, 1);
	put(queue, 1, 1);
	cr_expect_eq(end_call(&single), WEIR_OK);
	put(queue, 2, 1);
	begin_waiting_call(&batch, 1);
	single = (struct call){.kind = DEQUEUE, .queue = queue};
	begin_waiting_call(&single, 2);
	close_for_good(queue, WEIR_CLOSE_DRAIN);
	cr_expect_eq(end_call(&batch), WEIR_OUT_OF_RANGE);
	cr_expect_not_null(strstr(batch.error.message, "\"test\" is closed: 3 items asked for, 1 left"), "%s",
	                   batch.error.message);
	cr_expect_eq(end_call(&single), WEIR_OK);
	cr_expect_eq(number_of(single.items[0]), 2);
	cr_expect_eq(weir_queue_dequeue_many(queue, items, 3, 0, NULL, NULL), WEIR_OUT_OF_RANGE);
	destroy(queue);
}

Test(queue_close, of_two_batches_the_second_takes_what_the_first_could_not_use)
{
	weir_queue *queue = fifo(8);
	struct call large = {.kind = DEQUEUE_MANY, .queue = queue, .count = 5};
	struct call small = {.kind = DEQUEUE_MANY, .queue = queue, .count = 3};
	struct call rest = {.kind = DEQUEUE_UP_TO, .queue = queue, .count = 9};

	put(queue, 1, 4);
	begin_waiting_call(&large, 1);
	begin_waiting_call(&small, 2);
	begin_waiting_call(&rest, 3);
	close_for_good(queue, WEIR_CLOSE_DRAIN);
	cr_expect_eq(end_call(&large), WEIR_OUT_OF_RANGE);
	cr_expect_eq(end_call(&small), WEIR_OK);
	expect_numbers(small.items, 1, 3);
	cr_expect_eq(end_call(&rest), WEIR_OK);
	cr_expect_eq(rest.done, 1);
	cr_expect_eq(number_of(rest.items[0]), 4);
	destroy(queue);
}

Test(queue_close, a_single_dequeue_gets_the_item_that_a_failed_batch_put_back)
{
	weir_queue *queue = fifo(8);
	void *items[3];
	struct call second = {.kind = DEQUEUE_MANY, .queue = queue, .count = 3};

	put(queue, 1, 4);
	cr_expect_eq(weir_queue_dequeue_many(queue, items, 3, 0, NULL, NULL), WEIR_OK);
	begin_waiting_call(&second, 1);
	close_for_good(queue, WEIR_CLOSE_DRAIN);
	cr_expect_eq(end_call(&second), WEIR_OUT_OF_RANGE);
	expect_next(queue, 4, 1);
	expect_drained(queue);
	destroy(queue);
}

/* -- enqueues that wait ------------------------------------------------------------------------ */

Test(queue_close, admitted_enqueues_go_in_as_room_appears)
{
	weir_queue *queue = fifo(2);
	struct call calls[2] = {{.kind = ENQUEUE, .queue = queue, .items = {item(3)}},
	                        {.kind = ENQUEUE_MANY, .queue = queue, .count = 3, .items = {item(4), item(5), item(6)}}};

	put(queue, 1, 2);
	begin_waiting_call(&calls[0], 1);
	begin_waiting_call(&calls[1], 2);
	close_for_good(queue, WEIR_CLOSE_DRAIN);
	cr_expect_eq(weir_queue_closed(queue), 1, "the close returns at once, although enqueues wait");
	cr_expect_eq(weir_queue_try_enqueue(queue, item(9)), WEIR_CANCELLED);
	expect_next(queue, 1, 1);
	cr_expect_eq(end_call(&calls[0]), WEIR_OK);
	cr_expect_eq(weir_queue_try_enqueue(queue, item(9)), WEIR_CANCELLED);
	expect_next(queue, 2, 5);
	cr_expect_eq(end_call(&calls[1]), WEIR_OK);
	cr_expect_eq(calls[1].done, 3);
	expect_drained(queue);
	destroy(queue);
}

/*
 * Dequeues of every kind, in shuffled order or not: the end comes after the items of the admitted
 * enqueues.
 */
static void expect_end_after_admitted(enum weir_queue_order order, enum call_kind kind)
{
	weir_queue *queue = queue_with((struct weir_queue_options){.capacity = 2, .order = order, .name = "test"});
	struct call in = {.kind = ENQUEUE_MANY, .queue = queue, .count = 4, .items = {item(3), item(4), item(5), item(6)}};
	struct call out = {.kind = kind, .queue = queue, .count = 6};
	size_t sum = 0;

	put(queue, 1, 2);
	begin_waiting_call(&in, 1);
	close_for_good(queue, WEIR_CLOSE_DRAIN);
	cr_assert_eq(call_now(&out), WEIR_OK, "%s", out.error.message);
	cr_assert_eq(end_call(&in), WEIR_OK);
	for (size_t i = 0; i < 6; i++)
		sum += number_of(out.items[i]);
	cr_assert_eq(sum, 1 + 2 + 3 + 4 + 5 + 6);
	expect_drained(queue);
	destroy(queue);
}

Test(queue_close, a_batch_gets_what_admitted_enqueues_still_bring)
{
	expect_end_after_admitted(WEIR_QUEUE_FIFO, DEQUEUE_MANY);
	expect_end_after_admitted(WEIR_QUEUE_FIFO, DEQUEUE_UP_TO);
}

Test(queue_close, a_shuffled_batch_gets_what_admitted_enqueues_still_bring)
{
	expect_end_after_admitted(WEIR_QUEUE_SHUFFLE, DEQUEUE_MANY);
	expect_end_after_admitted(WEIR_QUEUE_SHUFFLE, DEQUEUE_UP_TO);
}

Test(queue_close, an_admitted_enqueue_that_gives_up_lets_the_queue_end)
{
	for (int by_token = 0; by_token < 2; by_token++) {
		weir_queue *queue = fifo(1);
		struct call in = {.kind = ENQUEUE, .queue = queue, .items = {item(2)}};
		weir_cancel *token;

		cr_assert_eq(weir_cancel_create(NULL, &token, NULL), WEIR_OK);
		put(queue, 1, 1);
		if (by_token)
			in.token = token;
		else
			in.deadline_ns = weir_deadline_in(50000000);
		begin_call(&in);
		await(idle_in(queue) == 1 || has_ended(&in));
		close_for_good(queue, WEIR_CLOSE_DRAIN);
		if (by_token)
			(void)weir_cancel_fire(token, NULL);
		cr_expect_eq(end_call(&in), by_token ? WEIR_CANCELLED : WEIR_DEADLINE_EXCEEDED);
		expect_next(queue, 1, 1);
		expect_drained(queue);
		weir_cancel_release(token);
		destroy(queue);
	}
}

Test(queue_close, cancelling_ends_the_enqueues_that_wait_and_keeps_what_is_in)
{
	weir_queue *queue = fifo(2);
	struct call one = {.kind = ENQUEUE, .queue = queue, .items = {item(3)}};
	struct call many = {
		.kind = ENQUEUE_MANY, .queue = queue, .count = 3, .items = {item(4), item(5), item(6)}, .done = 9};
	weir_error cause = {WEIR_ABORTED, "stopped by hand"};

	put(queue, 1, 1);
	begin_waiting_call(&many, 1);
	begin_waiting_call(&one, 2);
	cr_expect_eq(weir_queue_close(queue, WEIR_CLOSE_CANCEL, &cause), WEIR_OK);
	cr_expect_eq(end_call(&one), WEIR_CANCELLED);
	cr_expect_not_null(strstr(one.error.message, "\"test\""), "%s", one.error.message);
	cr_expect_not_null(strstr(one.error.message, "stopped by hand"), "%s", one.error.message);
	cr_expect_eq(end_call(&many), WEIR_CANCELLED);
	cr_expect_eq(many.done, 1, "one item went in");
	expect_next(queue, 1, 1);
	expect_next(queue, 4, 1);
	expect_drained(queue);
	destroy(queue);
}

Test(queue_close, cancelling_may_follow_draining)
{
	weir_queue *queue = fifo(1);
	struct call call = {.kind = ENQUEUE, .queue = queue, .items = {item(2)}};

	put(queue, 1, 1);
	begin_waiting_call(&call, 1);
	close_for_good(queue, WEIR_CLOSE_DRAIN);
	cr_expect_eq(idle_in(queue), 1, "still waits");
	close_for_good(queue, WEIR_CLOSE_CANCEL);
	cr_expect_eq(end_call(&call), WEIR_CANCELLED);
	expect_next(queue, 1, 1);
	expect_drained(queue);
	destroy(queue);
}

Test(queue_close, cancelling_does_not_touch_dequeues_that_find_items)
{
	weir_queue *queue = fifo(4);
	struct call batch = {.kind = DEQUEUE_UP_TO, .queue = queue, .count = 4};

	put(queue, 1, 2);
	begin_waiting_call(&batch, 1);
	close_for_good(queue, WEIR_CLOSE_CANCEL);
	cr_expect_eq(end_call(&batch), WEIR_OK);
	cr_expect_eq(batch.done, 2);
	destroy(queue);
}

/* -- many threads ------------------------------------------------------------------------------ */

enum { CONSUMERS = 4, PRODUCERS = 3, MOST = 40000 };

struct storm {
	weir_queue *queue;
	_Atomic(size_t) next;
	_Atomic(int) in[MOST];
	_Atomic(int) out[MOST];
	_Atomic(int) after_the_end;
	_Atomic(int) strange;
};

/* Enqueues until the queue refuses. */
static void *produce(void *argument)
{
	struct storm *storm = argument;

	for (;;) {
		size_t number = weiri_fetch_add_relaxed(&storm->next, 1);
		enum weir_status status;

		if (number >= MOST)
			return NULL;
		status = number % 3 != 0 ? weir_queue_enqueue(storm->queue, item(number), in_good_time(), NULL, NULL)
		                         : weir_queue_try_enqueue(storm->queue, item(number));
		weiri_store_relaxed(&storm->in[number], status == WEIR_OK);
		if (status != WEIR_OK && status != WEIR_WOULD_BLOCK) {
			weiri_fetch_add_relaxed(&storm->strange, status != WEIR_CANCELLED);
			return NULL;
		}
	}
}

/* Dequeues until the end. Every third call is for a batch. */
static void *consume(void *argument)
{
	struct storm *storm = argument;

	for (size_t step = 0;; step++) {
		struct call call = {.kind = step % 3 == 0   ? DEQUEUE_MANY
		                            : step % 3 == 1 ? DEQUEUE_UP_TO
		                                            : DEQUEUE,
		                    .queue = storm->queue};
		enum weir_status status;

		call.count = call.done = call.kind == DEQUEUE ? 1 : 2 + step % 5;
		status = call_now(&call);
		if (status == WEIR_OUT_OF_RANGE && call.kind != DEQUEUE_MANY)
			return NULL;
		weiri_fetch_add_relaxed(&storm->strange, status != WEIR_OK && status != WEIR_OUT_OF_RANGE);
		for (size_t i = 0; status == WEIR_OK && i < call.done; i++)
			weiri_fetch_add_relaxed(&storm->out[number_of(call.items[i])], 1);
	}
}

static void close_in_a_storm(struct weir_queue_options options, enum weir_close_mode mode, size_t when)
{
	static struct storm storm;
	pthread_t producers[PRODUCERS], consumers[CONSUMERS];
	size_t lost = 0;

	memset(&storm, 0, sizeof(storm));
	storm.queue = queue_with(options);
	for (size_t i = 0; i < CONSUMERS; i++)
		cr_assert_eq(pthread_create(&consumers[i], NULL, consume, &storm), 0);
	for (size_t i = 0; i < PRODUCERS; i++)
		cr_assert_eq(pthread_create(&producers[i], NULL, produce, &storm), 0);
	await(weiri_load_relaxed(&storm.next) >= when);
	cr_assert_eq(weir_queue_close(storm.queue, mode, NULL), WEIR_OK);
	/* Every thread ends by itself. */
	for (size_t i = 0; i < PRODUCERS; i++)
		cr_assert_eq(pthread_join(producers[i], NULL), 0);
	for (size_t i = 0; i < CONSUMERS; i++)
		cr_assert_eq(pthread_join(consumers[i], NULL), 0);
	for (size_t i = 0; i < MOST; i++)
		lost += storm.in[i] != storm.out[i];
	cr_assert_eq(lost, 0, "%zu items only went in or only came out", lost);
	cr_assert_eq(storm.strange, 0);
	expect_drained(storm.queue);
	destroy(storm.queue);
}

Test(queue_close, a_drain_in_a_storm_loses_nothing_and_ends_everybody)
{
	for (size_t i = 0; i < 20; i++)
		close_in_a_storm((struct weir_queue_options){.capacity = 1 + i % 5}, WEIR_CLOSE_DRAIN, 40 * i);
}

Test(queue_close, a_cancel_in_a_storm_loses_nothing_and_ends_everybody)
{
	for (size_t i = 0; i < 20; i++)
		close_in_a_storm((struct weir_queue_options){.capacity = 1 + i % 5}, WEIR_CLOSE_CANCEL, 40 * i);
}

Test(queue_close, a_fair_queue_ends_everybody)
{
	for (size_t i = 0; i < 20; i++)
		close_in_a_storm((struct weir_queue_options){.capacity = 1 + i % 5, .flags = WEIR_QUEUE_FAIR},
		                 i % 2 != 0 ? WEIR_CLOSE_DRAIN : WEIR_CLOSE_CANCEL, 40 * i);
}

Test(queue_close, a_shuffle_queue_ends_everybody)
{
	for (size_t i = 0; i < 20; i++)
		close_in_a_storm(
			(struct weir_queue_options){.capacity = 3 + i % 5, .order = WEIR_QUEUE_SHUFFLE, .min_after_dequeue = 2},
			i % 2 != 0 ? WEIR_CLOSE_DRAIN : WEIR_CLOSE_CANCEL, 40 * i);
}

struct race {
	weir_queue *queue;
	_Atomic(int) go;
	_Atomic(int) wrong;
};

static void *close_it(void *argument)
{
	struct race *race = argument;

	while (weiri_load_acquire(&race->go) == 0)
		weiri_pause();
	(void)weir_queue_close(race->queue, WEIR_CLOSE_DRAIN, NULL);
	return NULL;
}

/*
 * The view of one thread: while the queue is open, an item goes in or is refused. Once any call
 * says "closed", no later item goes in.
 */
static int sees_closed_and_then_open(weir_queue *queue)
{
	int closed = 0;

	for (size_t after = 0; after < 4; after += (size_t)closed) {
		int was_closed = weir_queue_closed(queue);
		enum weir_status status = weir_queue_try_enqueue(queue, item(1));

		if ((was_closed || closed) && status == WEIR_OK)
			return 1;
		if (status == WEIR_CANCELLED && !weir_queue_closed(queue))
			return 1;
		closed = was_closed || status == WEIR_CANCELLED;
		(void)weir_queue_try_dequeue(queue, &(void *){NULL});
	}
	return 0;
}

Test(queue_close, nobody_who_saw_it_closed_gets_an_item_in)
{
	uint64_t until = weir_deadline_in(UINT64_C(300000000));

	for (size_t round = 0; weir_now_ns() < until; round++) {
		struct race race = {.queue = round % 2 == 0 ? fifo(4)
		                                            : queue_with((struct weir_queue_options){
														  .capacity = 4, .order = WEIR_QUEUE_SHUFFLE})};
		pthread_t thread;

		cr_assert_eq(pthread_create(&thread, NULL, close_it, &race), 0);
		weiri_store_release(&race.go, 1);
		cr_assert_not(sees_closed_and_then_open(race.queue), "round %zu", round);
		cr_assert_eq(pthread_join(thread, NULL), 0);
		destroy(race.queue);
	}
}
