/*
 * test_queue_async.c - operations that hold no thread: each has one completion, whatever else
 * happens.
 */
#include "queue_kit.h"

#include <stdlib.h>

/* An operation, and what its completion was told. */
struct started {
	weir_pending *op;
	void *items[KIT_MOST_ITEMS];
	_Atomic(int) completions;
	enum weir_status status;
	size_t done;
	weir_error error;
	int had_error;
	void **got_items;
	pthread_t thread;
};

static void note(void *context, enum weir_status status, const weir_error *error, void **items, size_t done)
{
	struct started *started = context;

	started->status = status;
	started->done = done;
	started->had_error = error != NULL;
	if (error != NULL)
		started->error = *error;
	started->got_items = items;
	started->thread = pthread_self();
	cr_expect_eq(weiri_load_relaxed(&weiri_record_get()->lo), 0u, "a completion in a section");
	/* [release] the outcome; pairs with completions() */
	(void)weiri_fetch_add_release(&started->completions, 1);
}

static int completions(struct started *started)
{
	/* [acquire] pairs with note() */
	return weiri_load_acquire(&started->completions);
}

static void start(weir_queue *queue, enum weir_queue_op_kind kind, size_t count, struct started *started)
{
	cr_assert_eq(weir_queue_start(queue, kind, started->items, count, note, started, &started->op, NULL), WEIR_OK);
}

static void start_dequeue(weir_queue *queue, struct started *started)
{
	start(queue, WEIR_QUEUE_OP_DEQUEUE_MANY, 1, started);
}

static void start_enqueue(weir_queue *queue, size_t first, size_t count, struct started *started)
{
	for (size_t i = 0; i < count; i++)
		started->items[i] = item(first + i);
	start(queue, WEIR_QUEUE_OP_ENQUEUE, count, started);
}

/* The operation has completed once, with this outcome. Releases the handle. */
static void expect_end(struct started *started, enum weir_status status, size_t done)
{
	cr_assert_eq(completions(started), 1, "%d completions", completions(started));
	cr_assert_eq(started->status, status, "%s", weir_status_name(started->status));
	cr_assert_eq(started->done, done);
	cr_assert_eq(started->had_error, status != WEIR_OK);
	cr_assert_eq(started->got_items, started->items);
	if (status != WEIR_OK) {
		cr_assert_eq(started->error.code, status);
		cr_assert_not_null(strstr(started->error.message, "\"test\""), "%s", started->error.message);
	}
	weir_pending_release(started->op);
	started->op = NULL;
}

/* -- starting ---------------------------------------------------------------------------------- */

Test(queue_async, bad_arguments_are_refused_and_nothing_completes)
{
	weir_queue *queue = fifo(2);
	struct started started = {0};
	weir_error error = {0};

	put(queue, 1, 1);
	cr_expect_eq(weir_queue_start(NULL, WEIR_QUEUE_OP_ENQUEUE, started.items, 1, note, &started, &started.op, &error),
	             WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_queue_start(queue, WEIR_QUEUE_OP_ENQUEUE, NULL, 1, note, &started, &started.op, &error),
	             WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_queue_start(queue, WEIR_QUEUE_OP_ENQUEUE, started.items, 1, NULL, &started, &started.op, &error),
	             WEIR_INVALID_ARGUMENT);
	cr_expect_not_null(strstr(error.message, "done"), "%s", error.message);
	for (int kind = 0; kind <= 4; kind += 4) {
		cr_expect_eq(weir_queue_start(queue, (enum weir_queue_op_kind)kind, started.items, 1, note, &started,
		                              &started.op, &error),
		             WEIR_INVALID_ARGUMENT);
		cr_expect_not_null(strstr(error.message, "kind"), "%s", error.message);
	}
	cr_expect_eq(completions(&started), 0);
	cr_expect_null(started.op);
	weir_pending_cancel(NULL, NULL);
	weir_pending_release(NULL);
	expect_next(queue, 1, 1);
	destroy(queue);
}

Test(queue_async, what_can_be_done_at_once_completes_inside_the_start)
{
	weir_queue *queue = fifo(4);
	struct started in = {0}, out = {0}, none = {0};

	start_enqueue(queue, 1, 3, &in);
	expect_end(&in, WEIR_OK, 3);
	cr_expect(pthread_equal(in.thread, pthread_self()));
	start(queue, WEIR_QUEUE_OP_DEQUEUE_MANY, 2, &out);
	expect_end(&out, WEIR_OK, 2);
	expect_numbers(out.items, 1, 2);
	start(queue, WEIR_QUEUE_OP_DEQUEUE_UP_TO, 0, &none);
	expect_end(&none, WEIR_OK, 0);
	expect_next(queue, 3, 1);
	destroy(queue);
}

Test(queue_async, the_handle_is_optional)
{
	weir_queue *queue = fifo(4);
	struct started in = {.items = {item(1)}}, out = {0};

	cr_expect_eq(weir_queue_start(queue, WEIR_QUEUE_OP_DEQUEUE_MANY, out.items, 1, note, &out, NULL, NULL), WEIR_OK);
	cr_expect_eq(weir_queue_start(queue, WEIR_QUEUE_OP_ENQUEUE, in.items, 1, note, &in, NULL, NULL), WEIR_OK);
	cr_expect_eq(completions(&in), 1);
	cr_expect_eq(completions(&out), 1);
	cr_expect_eq(number_of(out.items[0]), 1);
	destroy(queue);
}

Test(queue_async, the_handle_may_be_given_back_while_the_operation_waits)
{
	weir_queue *queue = fifo(4);
	struct started out = {0};

	start_dequeue(queue, &out);
	weir_pending_release(out.op);
	cr_expect_eq(completions(&out), 0);
	put(queue, 1, 1);
	cr_expect_eq(completions(&out), 1);
	cr_expect_eq(number_of(out.items[0]), 1);
	destroy(queue);
}

/* -- waiting asynchronously -------------------------------------------------------------------- */

Test(queue_async, a_dequeue_completes_on_the_thread_that_brings_the_item)
{
	weir_queue *queue = fifo(4);
	struct started out = {0};
	struct call call = {.kind = ENQUEUE, .queue = queue, .items = {item(5)}};

	start_dequeue(queue, &out);
	cr_expect_eq(completions(&out), 0);
	begin_call(&call);
	await(has_ended(&call));
	expect_end(&out, WEIR_OK, 1);
	cr_expect(pthread_equal(out.thread, call.thread));
	cr_expect_eq(number_of(out.items[0]), 5);
	cr_expect_eq(end_call(&call), WEIR_OK);
	destroy(queue);
}

Test(queue_async, operations_are_served_in_the_order_of_their_start)
{
	weir_queue *queue = fifo(1);
	struct started out[5] = {{0}}, in[5] = {{0}};

	for (size_t i = 0; i < 5; i++)
		start_dequeue(queue, &out[i]);
	for (size_t i = 0; i < 5; i++) {
		put(queue, 10 + i, 1);
		expect_end(&out[i], WEIR_OK, 1);
		cr_expect_eq(number_of(out[i].items[0]), 10 + i);
	}
	put(queue, 20, 1);
	for (size_t i = 0; i < 5; i++)
		start_enqueue(queue, 21 + i, 1, &in[i]);
	for (size_t i = 0; i < 5; i++) {
		cr_expect_eq(completions(&in[i]), 0);
		expect_next(queue, 20 + i, 1);
		expect_end(&in[i], WEIR_OK, 1);
	}
	expect_next(queue, 25, 1);
	expect_nothing(queue);
	destroy(queue);
}

Test(queue_async, batches_collect_without_a_thread)
{
	weir_queue *queue = fifo(2);
	struct started out = {0}, in = {0};

	start(queue, WEIR_QUEUE_OP_DEQUEUE_MANY, 7, &out);
	start_enqueue(queue, 1, 9, &in);
	/* Each operation made room or items for the other, on this thread. */
	expect_end(&out, WEIR_OK, 7);
	expect_numbers(out.items, 1, 7);
	expect_end(&in, WEIR_OK, 9);
	expect_next(queue, 8, 2);
	expect_nothing(queue);
	destroy(queue);
}

Test(queue_async, many_operations_may_wait_at_once)
{
	enum { MANY = 500 };
	weir_queue *queue = fifo(1);
	struct started *all = calloc(MANY, sizeof(*all));
	weir_error error = {0};

	cr_assert_not_null(all);
	for (size_t i = 0; i < MANY; i++)
		start_dequeue(queue, &all[i]);
	cr_expect_eq(weir_queue_destroy(queue, &error), WEIR_FAILED_PRECONDITION);
	cr_expect_not_null(strstr(error.message, "500"), "%s", error.message);
	put(queue, 0, MANY);
	for (size_t i = 0; i < MANY; i++) {
		expect_end(&all[i], WEIR_OK, 1);
		cr_assert_eq(number_of(all[i].items[0]), i);
	}
	free(all);
	destroy(queue);
}

Test(queue_async, a_close_ends_dequeues_and_cancels_enqueues)
{
	weir_queue *queue = fifo(2), *full = fifo(2);
	struct started many = {0}, up_to = {0}, in = {0};
	weir_error cause = {WEIR_ABORTED, "stopped by hand"};

	put(queue, 1, 1);
	start(queue, WEIR_QUEUE_OP_DEQUEUE_MANY, 3, &many);
	start(queue, WEIR_QUEUE_OP_DEQUEUE_UP_TO, 3, &up_to);
	cr_expect_eq(weir_queue_close(queue, WEIR_CLOSE_DRAIN, &cause), WEIR_OK);
	expect_end(&many, WEIR_OUT_OF_RANGE, 0);
	cr_expect_not_null(strstr(many.error.message, "stopped by hand"), "%s", many.error.message);
	expect_end(&up_to, WEIR_OK, 1);
	cr_expect_eq(number_of(up_to.items[0]), 1);
	put(full, 1, 1);
	start_enqueue(full, 2, 4, &in);
	cr_expect_eq(weir_queue_close(full, WEIR_CLOSE_CANCEL, &cause), WEIR_OK);
	expect_end(&in, WEIR_CANCELLED, 1);
	cr_expect_not_null(strstr(in.error.message, "stopped by hand"), "%s", in.error.message);
	expect_next(full, 1, 2);
	expect_drained(full);
	destroy(queue);
	destroy(full);
}

Test(queue_async, an_operation_on_a_closed_queue_completes_inside_the_start)
{
	weir_queue *queue = fifo(2);
	struct started in = {0}, out = {0};

	cr_expect_eq(weir_queue_close(queue, WEIR_CLOSE_DRAIN, NULL), WEIR_OK);
	start_enqueue(queue, 1, 2, &in);
	expect_end(&in, WEIR_CANCELLED, 0);
	start_dequeue(queue, &out);
	expect_end(&out, WEIR_OUT_OF_RANGE, 0);
	destroy(queue);
}

/* -- cancelling -------------------------------------------------------------------------------- */

Test(queue_async, a_cancelled_operation_completes_with_the_cause)
{
	weir_queue *queue = fifo(2);
	struct started out = {0};
	weir_error cause = {WEIR_ABORTED, "the step failed"};

	start_dequeue(queue, &out);
	weir_pending_cancel(out.op, &cause);
	cr_expect_eq(completions(&out), 1);
	cr_expect_not_null(strstr(out.error.message, "the step failed"), "%s", out.error.message);
	weir_pending_cancel(out.op, NULL);
	expect_end(&out, WEIR_CANCELLED, 0);
	put(queue, 1, 1);
	expect_next(queue, 1, 1);
	destroy(queue);
}

Test(queue_async, a_cause_whose_message_is_not_terminated_is_kept_terminated)
{
	weir_queue *queue = fifo(2);
	struct started out = {0};
	weir_error endless = {.code = WEIR_ABORTED};

	memset(endless.message, 'x', sizeof(endless.message));
	start_dequeue(queue, &out);
	weir_pending_cancel(out.op, &endless);
	cr_expect_eq(completions(&out), 1);
	cr_expect_not_null(memchr(out.op->caller_cause.message, '\0', sizeof(endless.message)));
	expect_end(&out, WEIR_CANCELLED, 0);
	destroy(queue);
}

Test(queue_async, a_long_cause_is_cut)
{
	weir_queue *queue = fifo(2);
	struct started out = {0};
	weir_error cause = {.code = WEIR_ABORTED};

	memset(cause.message, 'x', sizeof(cause.message) - 1);
	start_dequeue(queue, &out);
	weir_pending_cancel(out.op, &cause);
	cr_expect_not_null(strstr(out.error.message, "xxx"), "%s", out.error.message);
	expect_end(&out, WEIR_CANCELLED, 0);
	destroy(queue);
}

Test(queue_async, a_cancelled_batch_gives_back_what_it_had)
{
	weir_queue *queue = fifo(4);
	struct started batch = {0}, single = {0};

	put(queue, 1, 3);
	start(queue, WEIR_QUEUE_OP_DEQUEUE_MANY, 5, &batch);
	start_dequeue(queue, &single);
	cr_expect_eq(weir_queue_size_approx(queue), 0);
	weir_pending_cancel(batch.op, NULL);
	expect_end(&batch, WEIR_CANCELLED, 0);
	/* The first item that went back went to the waiting operation. */
	expect_end(&single, WEIR_OK, 1);
	cr_expect_eq(number_of(single.items[0]), 1);
	expect_next(queue, 2, 2);
	destroy(queue);
}

Test(queue_async, a_cancelled_enqueue_says_how_many_are_in)
{
	weir_queue *queue = fifo(2);
	struct started in = {0};

	start_enqueue(queue, 1, 5, &in);
	expect_next(queue, 1, 1);
	weir_pending_cancel(in.op, NULL);
	expect_end(&in, WEIR_CANCELLED, 3);
	expect_next(queue, 2, 2);
	expect_nothing(queue);
	destroy(queue);
}

Test(queue_async, cancelling_what_has_completed_does_nothing_even_when_the_queue_is_gone)
{
	weir_queue *queue = fifo(2);
	struct started in = {0};

	start_enqueue(queue, 1, 1, &in);
	destroy(queue);
	weir_pending_cancel(in.op, NULL);
	expect_end(&in, WEIR_OK, 1);
}

/* -- completions that start operations --------------------------------------------------------- */

/* Takes one item after the other. Each completion starts the operation that takes the next item. */
struct chain {
	weir_queue *queue;
	void *items[1];
	size_t taken;
	size_t out_of_order;
	enum weir_status end;
	_Atomic(int) ended;
};

static void take_next(void *context, enum weir_status status, const weir_error *error, void **items, size_t done)
{
	struct chain *chain = context;

	(void)error, (void)done;
	if (status != WEIR_OK) {
		chain->end = status;
		weiri_store_release(&chain->ended, 1);
		return;
	}
	chain->out_of_order += number_of(items[0]) != chain->taken;
	chain->taken++;
	(void)weir_queue_start(chain->queue, WEIR_QUEUE_OP_DEQUEUE_MANY, chain->items, 1, take_next, chain, NULL, NULL);
}

Test(queue_async, a_completion_may_start_the_next_operation)
{
	struct chain chain = {.queue = fifo(4)};

	take_next(&chain, WEIR_OK, NULL, &(void *){item(0)}, 1);
	put(chain.queue, 1, 300);
	cr_expect_eq(chain.taken, 301);
	cr_expect_eq(chain.out_of_order, 0);
	cr_expect_eq(weir_queue_close(chain.queue, WEIR_CLOSE_DRAIN, NULL), WEIR_OK);
	cr_expect_eq(chain.ended, 1);
	cr_expect_eq(chain.end, WEIR_OUT_OF_RANGE);
	destroy(chain.queue);
}

static void put_another(void *context, enum weir_status status, const weir_error *error, void **items, size_t done)
{
	weir_queue *queue = context;

	(void)status, (void)error, (void)items, (void)done;
	(void)weir_queue_try_enqueue(queue, item(2));
}

Test(queue_async, a_completion_may_use_the_queue_it_came_from)
{
	weir_queue *queue = fifo(4);
	struct started out = {0};
	void *taken[1];

	cr_expect_eq(weir_queue_start(queue, WEIR_QUEUE_OP_DEQUEUE_MANY, taken, 1, put_another, queue, NULL, NULL),
	             WEIR_OK);
	start_dequeue(queue, &out);
	put(queue, 1, 1);
	cr_expect_eq(number_of(taken[0]), 1);
	expect_end(&out, WEIR_OK, 1);
	cr_expect_eq(number_of(out.items[0]), 2);
	destroy(queue);
}

/* -- races ------------------------------------------------------------------------------------- */

static uint64_t a_while(void)
{
	return weir_deadline_in(UINT64_C(200000000));
}

struct race {
	weir_queue *queue;
	struct started *started;
	_Atomic(int) ready;
	int parties;
	int close;
};

static void meet(struct race *race)
{
	(void)weiri_fetch_add_acq_rel(&race->ready, 1);
	while (weiri_load_acquire(&race->ready) < race->parties)
		(void)sched_yield();
}

static void *cancel_it(void *argument)
{
	struct race *race = argument;

	meet(race);
	weir_pending_cancel(race->started->op, NULL);
	return NULL;
}

static void *end_it(void *argument)
{
	struct race *race = argument;

	meet(race);
	if (race->close)
		(void)weir_queue_close(race->queue, WEIR_CLOSE_CANCEL, NULL);
	else
		(void)weir_queue_try_enqueue(race->queue, item(7));
	return NULL;
}

/* Two cancellers race with a thread that brings an item or closes the queue. */
static void race_to_end(struct race *race)
{
	pthread_t threads[2];

	race->parties = 3;
	cr_assert_eq(pthread_create(&threads[0], NULL, cancel_it, race), 0);
	cr_assert_eq(pthread_create(&threads[1], NULL, end_it, race), 0);
	meet(race);
	weir_pending_cancel(race->started->op, NULL);
	for (int i = 0; i < 2; i++)
		cr_assert_eq(pthread_join(threads[i], NULL), 0);
	cr_assert_eq(completions(race->started), 1, "%d completions", completions(race->started));
	weir_pending_release(race->started->op);
}

Test(queue_async, a_dequeue_that_is_cancelled_while_an_item_comes_has_it_or_leaves_it)
{
	uint64_t until = a_while();
	size_t got = 0, left = 0;

	while (weir_now_ns() < until) {
		struct started out = {0};
		struct race race = {.queue = fifo(2), .started = &out};

		start_dequeue(race.queue, &out);
		race_to_end(&race);
		if (out.status == WEIR_OK) {
			cr_assert_eq(number_of(out.items[0]), 7);
			expect_nothing(race.queue);
			got++;
		} else {
			cr_assert_eq(out.status, WEIR_CANCELLED);
			expect_next(race.queue, 7, 1);
			left++;
		}
		destroy(race.queue);
	}
	cr_log_info("got %zu, left %zu", got, left);
}

Test(queue_async, a_batch_that_is_cancelled_while_an_item_comes_loses_none)
{
	uint64_t until = a_while();

	for (size_t round = 0; weir_now_ns() < until; round++) {
		struct started out = {0};
		struct race race = {.queue = fifo(8), .started = &out};

		put(race.queue, 5, 2);
		/* The item that comes completes the batch, or the batch still lacks one. */
		start(race.queue, WEIR_QUEUE_OP_DEQUEUE_MANY, 3 + round % 2, &out);
		race_to_end(&race);
		if (out.status == WEIR_OK) {
			expect_numbers(out.items, 5, 3);
			expect_nothing(race.queue);
		} else {
			expect_next(race.queue, 5, 3);
		}
		destroy(race.queue);
	}
}

Test(queue_async, an_enqueue_that_is_cancelled_while_the_queue_closes_completes_once)
{
	uint64_t until = a_while();

	while (weir_now_ns() < until) {
		struct started in = {0};
		struct race race = {.queue = fifo(1), .started = &in, .close = 1};

		start_enqueue(race.queue, 1, 2, &in);
		race_to_end(&race);
		cr_assert_eq(in.status, WEIR_CANCELLED);
		cr_assert_eq(in.done, 1);
		expect_next(race.queue, 1, 1);
		expect_drained(race.queue);
		destroy(race.queue);
	}
}

/* -- chains on many threads -------------------------------------------------------------------- */

static void *feed_chain(void *argument)
{
	struct chain *chain = argument;

	for (size_t i = 0; i < 5000; i++)
		(void)weir_queue_enqueue(chain->queue, item(i), in_good_time(), NULL, NULL);
	return NULL;
}

/*
 * The chain counts in plain memory, because its completions run one after another, whichever
 * threads run them.
 */
Test(queue_async, a_chain_of_completions_runs_one_at_a_time_on_any_thread)
{
	struct chain chain = {.queue = fifo(3)};
	pthread_t threads[3];

	(void)weir_queue_start(chain.queue, WEIR_QUEUE_OP_DEQUEUE_MANY, chain.items, 1, take_next, &chain, NULL, NULL);
	for (int i = 0; i < 3; i++)
		cr_assert_eq(pthread_create(&threads[i], NULL, feed_chain, &chain), 0);
	for (int i = 0; i < 3; i++)
		cr_assert_eq(pthread_join(threads[i], NULL), 0);
	cr_expect_eq(weir_queue_close(chain.queue, WEIR_CLOSE_DRAIN, NULL), WEIR_OK);
	cr_expect_eq(chain.ended, 1);
	cr_expect_eq(chain.taken, 15000);
	destroy(chain.queue);
}

/* A completion that stands still, as if its thread were stopped in it. */
struct standstill {
	weir_queue *queue;
	_Atomic(int) reached, released;
};

static void stand_still(void *context, enum weir_status status, const weir_error *error, void **items, size_t done)
{
	struct standstill *standstill = context;

	(void)status, (void)error, (void)items, (void)done;
	weiri_store_release(&standstill->reached, 1);
	while (!weiri_load_acquire(&standstill->released))
		(void)sched_yield();
}

static void *bring_three(void *argument)
{
	struct standstill *standstill = argument;
	void *items[3] = {item(1), item(2), item(3)};

	(void)weir_queue_enqueue_many(standstill->queue, items, 3, in_good_time(), NULL, NULL, NULL);
	return NULL;
}

Test(queue_async, a_thread_that_is_stopped_in_a_completion_holds_up_nobody_behind_it)
{
	struct standstill standstill = {.queue = fifo(8)};
	struct call calls[2] = {{.kind = DEQUEUE, .queue = standstill.queue}, {.kind = DEQUEUE, .queue = standstill.queue}};
	void *items[1];
	pthread_t thread;

	cr_assert_eq(
		weir_queue_start(standstill.queue, WEIR_QUEUE_OP_DEQUEUE_MANY, items, 1, stand_still, &standstill, NULL, NULL),
		WEIR_OK);
	for (size_t i = 0; i < 2; i++)
		begin_waiting_call(&calls[i], i + 2);
	cr_assert_eq(pthread_create(&thread, NULL, bring_three, &standstill), 0);
	await(weiri_load_acquire(&standstill.reached));
	/* The next thread that calls serves the others. */
	put(standstill.queue, 4, 1);
	for (size_t i = 0; i < 2; i++) {
		cr_expect_eq(end_call(&calls[i]), WEIR_OK);
		cr_expect_eq(number_of(calls[i].items[0]), i + 2);
	}
	weiri_store_release(&standstill.released, 1);
	cr_assert_eq(pthread_join(thread, NULL), 0);
	cr_expect_eq(number_of(items[0]), 1);
	expect_next(standstill.queue, 4, 1);
	destroy(standstill.queue);
}
