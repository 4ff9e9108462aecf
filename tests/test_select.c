/*
 * test_select.c - one of several queue operations: the first that can proceed, and no other.
 */
#include "queue_kit.h"

#include <weir/select.h>

#include "failing_allocator.h"

static struct weir_select_case take_from(weir_queue *queue)
{
	return (struct weir_select_case){.queue = queue, .kind = WEIR_SELECT_DEQUEUE, .status = WEIR_INTERNAL};
}

static struct weir_select_case put_into(weir_queue *queue, size_t number)
{
	return (struct weir_select_case){
		.queue = queue, .kind = WEIR_SELECT_ENQUEUE, .item = item(number), .status = WEIR_INTERNAL};
}

static weir_queue *fair(size_t capacity)
{
	return queue_with((struct weir_queue_options){.capacity = capacity, .flags = WEIR_QUEUE_FAIR, .name = "fair"});
}

static void close_it(weir_queue *queue, enum weir_close_mode mode, const char *why)
{
	weir_error cause = {WEIR_ABORTED, ""};

	(void)snprintf(cause.message, sizeof(cause.message), "%s", why);
	cr_assert_eq(weir_queue_close(queue, mode, &cause), WEIR_OK);
}

/* -- without waiting --------------------------------------------------------------------------- */

Test(select, takes_from_the_queue_that_has_an_item)
{
	weir_queue *first = fifo(1), *second = fifo(1);
	struct weir_select_case cases[2] = {take_from(first), take_from(second)};
	size_t chosen = 9;

	put(second, 5, 1);
	cr_assert_eq(weir_try_select(cases, 2, &chosen, NULL), WEIR_OK);
	cr_expect_eq(chosen, 1);
	cr_expect_eq(cases[1].status, WEIR_OK);
	cr_expect_eq(number_of(cases[1].item), 5);
	cr_expect_null(cases[0].item);
	expect_nothing(second);
	destroy(first);
	destroy(second);
}

Test(select, puts_into_the_queue_that_has_room)
{
	weir_queue *first = fifo(1), *second = fifo(1);
	struct weir_select_case cases[2] = {put_into(first, 7), put_into(second, 8)};
	size_t chosen = 9;

	put(first, 1, 1);
	cr_assert_eq(weir_select(cases, 2, in_good_time(), NULL, &chosen, NULL), WEIR_OK);
	cr_expect_eq(chosen, 1);
	expect_next(second, 8, 1);
	expect_next(first, 1, 1);
	destroy(first);
	destroy(second);
}

Test(select, says_at_once_that_none_can)
{
	weir_queue *first = fifo(1), *second = fifo(1);
	struct weir_select_case cases[2] = {take_from(first), put_into(second, 8)};
	weir_error error = {0};
	size_t chosen = 9;

	put(second, 1, 1);
	cr_expect_eq(weir_try_select(cases, 2, &chosen, &error), WEIR_WOULD_BLOCK);
	cr_expect_eq(error.code, WEIR_WOULD_BLOCK);
	cr_expect_eq(weir_select(cases, 2, 0, NULL, &chosen, &error), WEIR_DEADLINE_EXCEEDED);
	cr_expect_eq(chosen, 9);
	cr_expect_eq(cases[0].status, WEIR_INTERNAL);
	destroy(first);
	destroy(second);
}

Test(select, a_closed_queue_can_proceed_with_its_status)
{
	weir_queue *open = fifo(1), *closed = fifo(1);
	struct weir_select_case take[2] = {take_from(open), take_from(closed)};
	struct weir_select_case give[2] = {take_from(open), put_into(closed, 3)};
	weir_error error = {0};
	size_t chosen = 9;

	put(closed, 4, 1);
	close_it(closed, WEIR_CLOSE_DRAIN, "end of input");
	cr_assert_eq(weir_select(take, 2, in_good_time(), NULL, &chosen, &error), WEIR_OK);
	cr_expect(chosen == 1 && take[1].status == WEIR_OK && number_of(take[1].item) == 4,
	          "the items that are left come first");
	cr_assert_eq(weir_select(take, 2, in_good_time(), NULL, &chosen, &error), WEIR_OK);
	cr_expect(chosen == 1 && take[1].status == WEIR_OUT_OF_RANGE);
	cr_expect_not_null(strstr(error.message, "end of input"), "%s", error.message);
	cr_assert_eq(weir_try_select(give, 2, &chosen, &error), WEIR_OK);
	cr_expect(chosen == 1 && give[1].status == WEIR_CANCELLED);
	destroy(open);
	destroy(closed);
}

Test(select, says_of_a_closed_queue_that_nothing_went_in_or_that_nothing_is_left)
{
	weir_queue *closed = fifo(1);
	struct weir_select_case give[1] = {put_into(closed, 3)}, take[1] = {take_from(closed)};
	weir_error error = {0};
	size_t chosen = 9;

	close_it(closed, WEIR_CLOSE_DRAIN, "end of input");
	cr_assert_eq(weir_try_select(give, 1, &chosen, &error), WEIR_OK);
	cr_expect_not_null(strstr(error.message, "closed: 0 of 1 item went in"), "%s", error.message);
	cr_assert_eq(weir_select(take, 1, in_good_time(), NULL, &chosen, &error), WEIR_OK);
	cr_expect_not_null(strstr(error.message, "drained: 1 item asked for, 0 left"), "%s", error.message);
	destroy(closed);
}

Test(select, begins_at_another_place_each_time)
{
	enum { CASES = 4, ROUNDS = 4000 };
	weir_queue *queues[CASES];
	struct weir_select_case cases[CASES];
	size_t times[CASES] = {0}, chosen;

	for (size_t i = 0; i < CASES; i++) {
		queues[i] = fifo(ROUNDS);
		put(queues[i], 1, ROUNDS);
		cases[i] = take_from(queues[i]);
	}
	for (int i = 0; i < ROUNDS; i++) {
		cr_assert_eq(weir_try_select(cases, CASES, &chosen, NULL), WEIR_OK);
		times[chosen]++;
	}
	for (size_t i = 0; i < CASES; i++) {
		/* A fair quarter of 4,000 draws is 1,000, with a deviation of 27. */
		cr_expect(times[i] > 800 && times[i] < 1200, "case %zu was chosen %zu times", i, times[i]);
		destroy(queues[i]);
	}
}

static void count_choice(void *context, enum weir_status status, const weir_error *error,
                         struct weir_select_case cases[], size_t chosen)
{
	size_t *times = context;

	(void)error, (void)cases;
	cr_assert_eq(status, WEIR_OK);
	times[chosen]++;
}

/* For a call that may wait, for one that is started, and for one that only tries. */
Test(select, prefers_no_case_however_it_is_called)
{
	enum { CASES = 4, ROUNDS = 2000 };
	weir_queue *queues[CASES];
	struct weir_select_case cases[CASES];
	size_t called[CASES] = {0}, started[CASES] = {0}, chosen;

	for (size_t i = 0; i < CASES; i++) {
		queues[i] = fifo(2 * ROUNDS);
		put(queues[i], 1, 2 * ROUNDS);
		cases[i] = take_from(queues[i]);
	}
	for (int i = 0; i < ROUNDS; i++) {
		cr_assert_eq(weir_select(cases, CASES, in_good_time(), NULL, &chosen, NULL), WEIR_OK);
		called[chosen]++;
		cr_assert_eq(weir_select_start(cases, CASES, count_choice, started, NULL, NULL), WEIR_OK);
	}
	for (size_t i = 0; i < CASES; i++) {
		/* A fair quarter is 500, with a deviation of 19. */
		cr_expect(called[i] > 350 && called[i] < 650, "case %zu was chosen %zu times", i, called[i]);
		cr_expect(started[i] > 350 && started[i] < 650, "case %zu was chosen %zu times", i, started[i]);
		destroy(queues[i]);
	}
}

Test(select, refuses_and_names_what_is_wrong)
{
	weir_queue *queue = fifo(1);
	struct weir_select_case none[2] = {take_from(queue), take_from(NULL)};
	struct weir_select_case unknown[1] = {{.queue = queue, .kind = (enum weir_select_kind)7}};
	weir_error error = {0};
	size_t chosen = 9;

	put(queue, 1, 1);
	cr_expect_eq(weir_select(none, 0, 0, NULL, &chosen, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_select(NULL, 1, 0, NULL, &chosen, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_select(none, 2, 0, NULL, &chosen, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_not_null(strstr(error.message, "case 1"), "%s", error.message);
	cr_expect_eq(weir_try_select(unknown, 1, &chosen, &error), WEIR_INVALID_ARGUMENT);
	cr_expect(strstr(error.message, "\"test\"") != NULL && strstr(error.message, "7") != NULL, "%s", error.message);
	cr_expect_eq(weir_try_select(none, 1, NULL, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_select_start(none, 1, NULL, NULL, NULL, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(chosen, 9);
	expect_next(queue, 1, 1);
	destroy(queue);
}

/* -- waiting ----------------------------------------------------------------------------------- */

struct chooser {
	struct weir_select_case cases[3];
	size_t count, chosen;
	uint64_t deadline_ns; /* 0: no deadline that matters */
	weir_cancel *token;
	enum weir_status status;
	weir_error error;
	_Atomic(int) ended;
	pthread_t thread;
};

static void *choose_main(void *argument)
{
	struct chooser *chooser = argument;

	chooser->chosen = 99;
	chooser->status =
		weir_select(chooser->cases, chooser->count, chooser->deadline_ns != 0 ? chooser->deadline_ns : in_good_time(),
	                chooser->token, &chooser->chosen, &chooser->error);
	/* [release] the outcome; pairs with end_choice() */
	weiri_store_release(&chooser->ended, 1);
	return NULL;
}

/* Begins a select, and returns when `entries` operations or cases wait in the queue. */
static void begin_choice(struct chooser *chooser, weir_queue *queue, size_t entries)
{
	cr_assert_eq(pthread_create(&chooser->thread, NULL, choose_main, chooser), 0);
	await(idle_in(queue) == entries);
}

static enum weir_status end_choice(struct chooser *chooser)
{
	await(weiri_load_acquire(&chooser->ended));
	cr_assert_eq(pthread_join(chooser->thread, NULL), 0);
	return chooser->status;
}

Test(select, waits_for_the_first_of_two)
{
	for (size_t which = 0; which < 2; which++) {
		weir_queue *queues[2] = {fifo(1), fifo(1)};
		struct chooser chooser = {.cases = {take_from(queues[0]), take_from(queues[1])}, .count = 2};

		begin_choice(&chooser, queues[1], 1);
		put(queues[which], 6, 1);
		cr_assert_eq(end_choice(&chooser), WEIR_OK);
		cr_expect_eq(chooser.chosen, which);
		cr_expect_eq(number_of(chooser.cases[which].item), 6);
		cr_expect_eq(idle_in(queues[0]) + idle_in(queues[1]), 0);
		destroy(queues[0]);
		destroy(queues[1]);
	}
}

Test(select, waits_in_both_directions)
{
	weir_queue *full = fifo(1), *empty = fifo(1);
	struct chooser chooser = {.cases = {put_into(full, 2), take_from(empty)}, .count = 2};

	put(full, 1, 1);
	begin_choice(&chooser, empty, 1);
	expect_next(full, 1, 1);
	cr_assert_eq(end_choice(&chooser), WEIR_OK);
	cr_expect_eq(chooser.chosen, 0);
	expect_next(full, 2, 1);
	expect_nothing(empty);
	destroy(full);
	destroy(empty);
}

Test(select, the_same_queue_may_stand_in_it_twice)
{
	weir_queue *queue = fifo(1);
	struct chooser chooser = {.cases = {take_from(queue), take_from(queue)}, .count = 2};

	begin_choice(&chooser, queue, 2);
	put(queue, 3, 1);
	cr_assert_eq(end_choice(&chooser), WEIR_OK);
	cr_expect_eq(number_of(chooser.cases[chooser.chosen].item), 3);
	expect_nothing(queue);
	destroy(queue);
}

Test(select, is_passed_on_to_those_who_wait_for_what_it_put)
{
	weir_queue *first = fifo(1), *second = fifo(1);
	struct chooser chooser = {.cases = {put_into(first, 2), put_into(second, 3)}, .count = 2};
	struct call consumer = {.kind = DEQUEUE, .queue = first};

	put(first, 1, 1);
	put(second, 1, 1);
	begin_choice(&chooser, second, 1);
	expect_next(first, 1, 1); /* then 2 goes in */
	cr_assert_eq(end_choice(&chooser), WEIR_OK);
	begin_call(&consumer);
	cr_assert_eq(end_call(&consumer), WEIR_OK);
	cr_expect_eq(number_of(consumer.items[0]), 2);
	expect_next(second, 1, 1);
	destroy(first);
	destroy(second);
}

Test(select, ends_at_its_deadline_having_done_nothing)
{
	weir_queue *full = fifo(1), *empty = fifo(1);
	struct weir_select_case cases[2] = {put_into(full, 2), take_from(empty)};
	weir_error error = {0};
	size_t chosen = 9;

	put(full, 1, 1);
	cr_assert_eq(weir_select(cases, 2, weir_deadline_in(1000000), NULL, &chosen, &error), WEIR_DEADLINE_EXCEEDED);
	cr_expect_not_null(strstr(error.message, "2 cases"), "%s", error.message);
	cr_expect_eq(chosen, 9);
	cr_expect_eq(idle_in(full) + idle_in(empty), 0);
	expect_next(full, 1, 1);
	destroy(full);
	destroy(empty);
}

Test(select, ends_by_its_token_and_says_why)
{
	weir_queue *first = fifo(1), *second = fifo(1);
	struct chooser chooser = {.cases = {take_from(first), take_from(second)}, .count = 2};
	weir_error cause = {WEIR_ABORTED, "the firer"};
	size_t chosen;

	cr_assert_eq(weir_cancel_create(NULL, &chooser.token, NULL), WEIR_OK);
	begin_choice(&chooser, second, 1);
	(void)weir_cancel_fire(chooser.token, &cause);
	cr_assert_eq(end_choice(&chooser), WEIR_CANCELLED);
	cr_expect_not_null(strstr(chooser.error.message, "the firer"), "%s", chooser.error.message);
	cr_expect_eq(chooser.chosen, 99);
	put(first, 1, 1);
	cr_expect_eq(weir_select(chooser.cases, 2, in_good_time(), chooser.token, &chosen, &chooser.error), WEIR_CANCELLED,
	             "a fired token comes before the cases");
	expect_next(first, 1, 1);
	weir_cancel_release(chooser.token);
	destroy(first);
	destroy(second);
}

static void close_one_of_two(enum weir_close_mode mode, enum weir_status expected)
{
	weir_queue *full = fifo(1), *empty = fifo(1);
	struct chooser chooser = {.cases = {put_into(full, 2), take_from(empty)}, .count = 2};

	put(full, 1, 1);
	begin_choice(&chooser, empty, 1);
	close_it(mode == WEIR_CLOSE_CANCEL ? full : empty, mode, "the closer");
	cr_assert_eq(end_choice(&chooser), WEIR_OK);
	cr_expect_eq(chooser.chosen, mode == WEIR_CLOSE_CANCEL ? 0u : 1u);
	cr_expect_eq(chooser.cases[chooser.chosen].status, expected);
	cr_expect_not_null(strstr(chooser.error.message, "the closer"), "%s", chooser.error.message);
	expect_next(full, 1, 1);
	destroy(full);
	destroy(empty);
}

Test(select, a_close_ends_it)
{
	close_one_of_two(WEIR_CLOSE_CANCEL, WEIR_CANCELLED);
	close_one_of_two(WEIR_CLOSE_DRAIN, WEIR_OUT_OF_RANGE);
}

Test(select, an_enqueue_that_waited_before_a_close_that_drains_still_goes_in)
{
	weir_queue *full = fifo(1), *empty = fifo(1);
	struct chooser chooser = {.cases = {put_into(full, 2), take_from(empty)}, .count = 2};

	put(full, 1, 1);
	begin_choice(&chooser, empty, 1);
	close_it(full, WEIR_CLOSE_DRAIN, "the closer");
	/* The thread of the select may be making one more attempt. */
	await(idle_in(empty) == 1);
	expect_next(full, 1, 1);
	cr_assert_eq(end_choice(&chooser), WEIR_OK);
	cr_expect(chooser.chosen == 0 && chooser.cases[0].status == WEIR_OK);
	expect_next(full, 2, 1);
	expect_drained(full);
	destroy(full);
	destroy(empty);
}

Test(select, a_queue_in_which_it_waits_is_not_destroyed)
{
	weir_queue *first = fifo(1), *second = fifo(1);
	struct chooser chooser = {.cases = {take_from(first), take_from(second)}, .count = 2};

	begin_choice(&chooser, second, 1);
	cr_expect_eq(weir_queue_destroy(first, NULL), WEIR_FAILED_PRECONDITION);
	cr_expect_eq(weir_queue_destroy(second, NULL), WEIR_FAILED_PRECONDITION);
	put(second, 1, 1);
	cr_assert_eq(end_choice(&chooser), WEIR_OK);
	destroy(first);
	destroy(second);
}

Test(select, passes_nobody_in_a_fair_queue)
{
	weir_queue *queue = fair(2), *other = fifo(1);
	struct call before = {.kind = DEQUEUE, .queue = queue};
	struct chooser chooser = {.cases = {take_from(queue), take_from(other)}, .count = 2};
	struct call after = {.kind = DEQUEUE, .queue = queue};

	begin_waiting_call(&before, 1);
	begin_choice(&chooser, queue, 2);
	begin_waiting_call(&after, 3);
	for (size_t i = 1; i <= 3; i++)
		cr_assert_eq(weir_queue_enqueue(queue, item(i), in_good_time(), NULL, NULL), WEIR_OK);
	cr_assert_eq(end_call(&before), WEIR_OK);
	cr_assert_eq(end_choice(&chooser), WEIR_OK);
	cr_assert_eq(end_call(&after), WEIR_OK);
	cr_expect_eq(number_of(before.items[0]), 1);
	cr_expect_eq(number_of(chooser.cases[0].item), 2);
	cr_expect_eq(number_of(after.items[0]), 3);
	destroy(queue);
	destroy(other);
}

/* -- asynchronous ------------------------------------------------------------------------------ */

struct outcome {
	int times;
	enum weir_status status;
	size_t chosen;
	weir_error error;
};

static void note(void *context, enum weir_status status, const weir_error *error, struct weir_select_case cases[],
                 size_t chosen)
{
	struct outcome *outcome = context;

	(void)cases;
	outcome->times++;
	outcome->status = status;
	outcome->chosen = chosen;
	if (error != NULL)
		outcome->error = *error;
}

static void count_told(void *context, enum weir_status status, const weir_error *error, void **items, size_t done)
{
	(void)error, (void)items;
	*(int *)context += status == WEIR_OK && done == 1;
}

Test(select, holds_no_thread_and_completes_once)
{
	weir_queue *first = fifo(1), *second = fifo(1);
	struct weir_select_case cases[2] = {take_from(first), take_from(second)};
	struct outcome outcome = {0};

	cr_assert_eq(weir_select_start(cases, 2, note, &outcome, NULL, NULL), WEIR_OK);
	cr_expect_eq(outcome.times, 0);
	put(second, 4, 1);
	put(first, 5, 1);
	cr_expect_eq(outcome.times, 1);
	cr_expect(outcome.status == WEIR_OK && outcome.chosen == 1 && cases[1].status == WEIR_OK);
	cr_expect_eq(number_of(cases[1].item), 4);
	expect_next(first, 5, 1);
	destroy(first);
	destroy(second);
}

Test(select, started_where_it_can_proceed_it_completes_at_once)
{
	weir_queue *queue = fifo(1);
	struct weir_select_case cases[1] = {put_into(queue, 4)};
	struct outcome outcome = {0};

	cr_assert_eq(weir_select_start(cases, 1, note, &outcome, NULL, NULL), WEIR_OK);
	cr_expect(outcome.times == 1 && outcome.status == WEIR_OK && outcome.chosen == 0);
	expect_next(queue, 4, 1);
	destroy(queue);
}

Test(select, started_it_lets_those_go_on_who_wait_for_what_it_moved_in_whichever_case)
{
	weir_queue *never = fifo(1);

	for (size_t place = 0; place < 2; place++) {
		weir_queue *queue = fifo(1);
		struct weir_select_case cases[2] = {take_from(never), take_from(never)};
		struct outcome outcome = {0};
		void *waits_for = NULL;
		int told = 0;

		cases[place] = put_into(queue, 4);
		cr_assert_eq(weir_queue_start(queue, WEIR_QUEUE_OP_DEQUEUE_MANY, &waits_for, 1, count_told, &told, NULL, NULL),
		             WEIR_OK);
		cr_assert_eq(weir_select_start(cases, 2, note, &outcome, NULL, NULL), WEIR_OK);
		cr_expect(outcome.times == 1 && outcome.status == WEIR_OK && outcome.chosen == place);
		cr_expect_eq(told, 1, "case %zu", place);
		cr_expect_eq(number_of(waits_for), 4);
		destroy(queue);
	}
	destroy(never);
}

Test(select, is_cancelled_by_its_handle)
{
	weir_queue *full = fifo(1), *empty = fifo(1);
	struct weir_select_case cases[2] = {put_into(full, 2), take_from(empty)};
	struct outcome outcome = {0};
	weir_error cause = {WEIR_ABORTED, "no longer wanted"};
	weir_pending *op;

	put(full, 1, 1);
	cr_assert_eq(weir_select_start(cases, 2, note, &outcome, &op, NULL), WEIR_OK);
	weir_pending_cancel(op, &cause);
	weir_pending_cancel(op, NULL);
	weir_pending_release(op);
	cr_expect(outcome.times == 1 && outcome.status == WEIR_CANCELLED);
	cr_expect_not_null(strstr(outcome.error.message, "no longer wanted"), "%s", outcome.error.message);
	expect_next(full, 1, 1);
	destroy(full);
	destroy(empty);
}

static enum weir_status start_and_cancel(const weir_allocator *allocator, void *context)
{
	struct weir_queue_options options = {WEIR_QUEUE_OPTIONS_INIT, .capacity = 1, .allocator = allocator};
	struct weir_select_case cases[2];
	struct outcome outcome = {0};
	weir_queue *queue;
	weir_pending *op;
	enum weir_status status = weir_queue_create(&options, &queue, NULL);

	(void)context;
	if (status != WEIR_OK)
		return status;
	cases[0] = take_from(queue);
	cases[1] = take_from(queue);
	status = weir_select_start(cases, 2, note, &outcome, &op, NULL);
	if (status == WEIR_OK) {
		weir_pending_cancel(op, NULL);
		weir_pending_release(op);
		cr_assert_eq(outcome.times, 1);
		cr_assert_eq(weir_reclaim_flush(0), WEIR_OK);
	}
	destroy(queue);
	return status;
}

Test(select, survives_every_allocation_failing)
{
	cr_assert_eq(fail_each_allocation(start_and_cancel, NULL), 4, "three for the queue, and one for the operation");
}
