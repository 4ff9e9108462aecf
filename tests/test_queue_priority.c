/*
 * test_queue_priority.c - queues by priority: order, ties, batches, and what goes back among what is newer.
 */
#include "queue_kit.h"

/* Item 307 has key 3; 7 tells it from its equals. Item 1 .. 99: key 0. */
static int64_t key_of(void *context, void *item)
{
	(void)context;
	return (int64_t)(number_of(item) / 100);
}

static int64_t key_behind(void *context, void *item)
{
	(void)context;
	return *(const int64_t *)item;
}

static void add_up(void *context, void *item)
{
	*(size_t *)context += number_of(item);
}

struct async_batch {
	int called;
	enum weir_status status;
	size_t done;
};

static void note_batch(void *context, enum weir_status status, const weir_error *error, void **items, size_t done)
{
	struct async_batch *batch = context;

	(void)error;
	(void)items;
	*batch = (struct async_batch){batch->called + 1, status, done};
}

static weir_queue *by_key(size_t capacity)
{
	return queue_with(
		(struct weir_queue_options){.capacity = capacity, .order = WEIR_QUEUE_PRIORITY, .key = key_of, .name = "test"});
}

static void put_all(weir_queue *queue, const size_t numbers[], size_t count)
{
	for (size_t i = 0; i < count; i++)
		put(queue, numbers[i], 1);
}

static void expect_all(weir_queue *queue, const size_t numbers[], size_t count)
{
	for (size_t i = 0; i < count; i++)
		expect_next(queue, numbers[i], 1);
}

static void expect_these(void *const items[], const size_t numbers[], size_t count)
{
	for (size_t i = 0; i < count; i++)
		expect_numbers(&items[i], numbers[i], 1);
}

#define NUMBERS(...) (const size_t[]){__VA_ARGS__}, sizeof((const size_t[]){__VA_ARGS__}) / sizeof(size_t)

/* -- order -------------------------------------------------------------------------------------------------------------------- */

Test(queue_priority, smallest_key_first_and_equals_in_the_order_they_came)
{
	weir_queue *queue = by_key(8);

	put_all(queue, NUMBERS(500, 301, 102, 303, 104, 305, 900, 107));
	cr_expect_eq(weir_queue_size(queue), 8);
	cr_expect_eq(weir_queue_try_enqueue(queue, item(1)), WEIR_WOULD_BLOCK);
	expect_all(queue, NUMBERS(102, 104, 107, 301, 303, 305, 500, 900));
	expect_nothing(queue);
	destroy(queue);
}

Test(queue_priority, keys_are_signed)
{
	static int64_t keys[] = {5, -5, INT64_MIN, INT64_MAX, 0};
	static const int order[] = {2, 1, 4, 0, 3};
	weir_queue *queue = NULL;
	struct weir_queue_options options = {.struct_size = sizeof(options), .capacity = 5, .order = WEIR_QUEUE_PRIORITY};

	options.key = key_behind;
	cr_assert_eq(weir_queue_create(&options, &queue, NULL), WEIR_OK);
	for (size_t i = 0; i < 5; i++)
		cr_assert_eq(weir_queue_try_enqueue(queue, &keys[i]), WEIR_OK);
	for (size_t i = 0; i < 5; i++) {
		void *got = NULL;

		cr_assert_eq(weir_queue_try_dequeue(queue, &got), WEIR_OK);
		cr_assert(got == &keys[order[i]]);
	}
	destroy(queue);
}

Test(queue_priority, what_waits_for_room_goes_in_by_its_key)
{
	weir_queue *queue = by_key(1);
	struct call call = {.kind = ENQUEUE, .queue = queue, .items = {item(100)}};

	put(queue, 500, 1);
	begin_waiting_call(&call, 1);
	expect_next(queue, 500, 1);
	cr_expect_eq(end_call(&call), WEIR_OK);
	expect_next(queue, 100, 1);
	destroy(queue);
}

Test(queue_priority, an_item_wakes_who_waits_for_one)
{
	weir_queue *queue = by_key(4);
	struct call call = {.kind = DEQUEUE, .queue = queue};

	begin_waiting_call(&call, 1);
	put(queue, 300, 1);
	cr_expect_eq(end_call(&call), WEIR_OK);
	expect_numbers(call.items, 300, 1);
	destroy(queue);
}

/* -- batches ------------------------------------------------------------------------------------------------------------------ */

Test(queue_priority, a_batch_comes_out_sorted_though_it_was_collected_as_items_came)
{
	weir_queue *queue = by_key(2);
	struct call call = {.kind = DEQUEUE_MANY, .queue = queue, .count = 7};

	put_all(queue, NUMBERS(500, 301));
	begin_waiting_call(&call, 1);
	for (size_t i = 0; i < 5; i++) {
		put(queue, (const size_t[]){302, 100, 700, 303, 101}[i], 1);
		if (i < 4)
			await(idle_in(queue) == 1);
	}
	cr_expect_eq(end_call(&call), WEIR_OK);
	expect_these(call.items, NUMBERS(100, 101, 301, 302, 303, 500, 700));
	expect_nothing(queue);
	destroy(queue);
}

Test(queue_priority, what_a_batch_gave_back_leaves_by_its_key_and_before_its_newer_equals)
{
	weir_queue *queue = by_key(4);
	void *items[5];

	put_all(queue, NUMBERS(500, 301, 302));
	cr_expect_eq(weir_queue_dequeue_many(queue, items, 5, 0, NULL, NULL), WEIR_DEADLINE_EXCEEDED);
	cr_expect_eq(weir_queue_size(queue), 3);
	put_all(queue, NUMBERS(303, 100, 400, 501));
	expect_all(queue, NUMBERS(100, 301, 302, 303, 400, 500, 501));
	expect_nothing(queue);
	destroy(queue);
}

Test(queue_priority, two_batches_that_gave_back_keep_the_order_between_them)
{
	weir_queue *queue = by_key(4);
	void *items[9];

	put_all(queue, NUMBERS(600, 401, 202, 803));
	cr_expect_eq(weir_queue_dequeue_many(queue, items, 9, 0, NULL, NULL), WEIR_DEADLINE_EXCEEDED);
	put_all(queue, NUMBERS(404, 105));
	cr_expect_eq(weir_queue_dequeue_many(queue, items, 3, 0, NULL, NULL), WEIR_OK);
	expect_these(items, NUMBERS(105, 202, 401));
	put_all(queue, NUMBERS(606, 307));
	/* Takes 307, 404, 600, 606 and 803, of what lies in two places, and gives them back above what was there. */
	cr_expect_eq(weir_queue_dequeue_many(queue, items, 6, 0, NULL, NULL), WEIR_DEADLINE_EXCEEDED);
	put_all(queue, NUMBERS(608, 309, 10));
	expect_all(queue, NUMBERS(10, 307, 309, 404, 600, 606, 608, 803));
	expect_nothing(queue);
	destroy(queue);
}

Test(queue_priority, a_long_batch_is_sorted_in_the_order_of_arrival_among_equals)
{
	enum { MANY = 1000 };
	static void *items[MANY];
	weir_queue *queue = by_key(1);
	struct async_batch batch = {0};

	cr_assert_eq(weir_queue_start(queue, WEIR_QUEUE_OP_DEQUEUE_MANY, items, MANY, note_batch, &batch, NULL, NULL),
	             WEIR_OK);
	/* Each is taken at once, so it comes to the batch in this order: keys fall, in runs of 10 that rise. */
	for (size_t i = 0; i < MANY; i++)
		put(queue, 100 * (1 + (MANY - 1 - i) / 10) + i % 10, 1);
	cr_assert(batch.called == 1 && batch.status == WEIR_OK && batch.done == MANY);
	for (size_t i = 0; i < MANY; i++)
		expect_numbers(&items[i], 100 * (1 + i / 10) + i % 10, 1);
	destroy(queue);
}

/* -- closing ------------------------------------------------------------------------------------------------------------------ */

Test(queue_priority, a_closed_one_gives_what_it_has_and_what_waited_before_and_ends)
{
	weir_queue *queue = by_key(2);
	struct call call = {.kind = ENQUEUE, .queue = queue, .items = {item(100)}};
	void *items[9];
	size_t done = 0;

	put_all(queue, NUMBERS(500, 301));
	begin_waiting_call(&call, 1);
	cr_expect_eq(weir_queue_close(queue, WEIR_CLOSE_DRAIN, NULL), WEIR_OK);
	cr_expect(weir_queue_closed(queue));
	cr_expect_eq(weir_queue_try_enqueue(queue, item(1)), WEIR_CANCELLED);
	expect_next(queue, 301, 1);
	cr_expect_eq(end_call(&call), WEIR_OK);
	cr_expect_eq(weir_queue_dequeue_many(queue, items, 3, 0, NULL, NULL), WEIR_OUT_OF_RANGE);
	cr_expect_eq(weir_queue_dequeue_up_to(queue, items, 9, 0, NULL, &done, NULL), WEIR_OK);
	cr_expect_eq(done, 2);
	expect_these(items, NUMBERS(100, 500));
	expect_drained(queue);
	destroy(queue);
}

Test(queue_priority, what_is_left_is_dropped_each_once)
{
	size_t dropped = 0;
	weir_queue *queue = queue_with((struct weir_queue_options){
		.capacity = 4, .order = WEIR_QUEUE_PRIORITY, .key = key_of, .drop = add_up, .drop_context = &dropped});

	put_all(queue, NUMBERS(500, 301, 102));
	destroy(queue);
	cr_expect_eq(dropped, 903);
}

Test(queue_priority, a_key_is_needed_and_is_for_priority_queues_alone)
{
	struct weir_queue_options options = {.struct_size = sizeof(options), .capacity = 1, .order = WEIR_QUEUE_PRIORITY};
	weir_queue *queue = NULL;
	weir_error error = {0};

	cr_expect_eq(weir_queue_create(&options, &queue, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_not_null(strstr(error.message, "key"), "%s", error.message);
	options.key = key_of;
	options.min_after_dequeue = 1;
	options.capacity = 2;
	cr_expect_eq(weir_queue_create(&options, &queue, &error), WEIR_INVALID_ARGUMENT);
	options.min_after_dequeue = 0;
	options.capacity = (size_t)WEIR_PRIORITY_QUEUE_MAX_CAPACITY + 1;
	cr_expect_eq(weir_queue_create(&options, &queue, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_not_null(strstr(error.message, "16777214"), "%s", error.message);
	options.capacity = 1;
	options.order = WEIR_QUEUE_FIFO;
	cr_expect_eq(weir_queue_create(&options, &queue, &error), WEIR_INVALID_ARGUMENT);
	options.order = WEIR_QUEUE_SHUFFLE;
	cr_expect_eq(weir_queue_create(&options, &queue, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_null(queue);
}
