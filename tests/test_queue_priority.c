/*
 * test_queue_priority.c - queues by priority: order, ties, batches, and items that are put back
 * among newer ones.
 */
#include "queue_kit.h"

#include <weir/select.h>

/* Item 307 has key 3, and 7 tells it from others of that key. Items 1 .. 99 have key 0. */
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

/* -- order ------------------------------------------------------------------------------------- */

Test(queue_priority, smallest_key_first_and_equals_in_the_order_they_came)
{
	weir_queue *queue = by_key(8);

	put_all(queue, NUMBERS(500, 301, 102, 303, 104, 305, 900, 107));
	cr_expect_eq(weir_queue_size_approx(queue), 8);
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
	struct weir_queue_options options = {WEIR_QUEUE_OPTIONS_INIT, .capacity = 5, .order = WEIR_QUEUE_PRIORITY};

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

/* -- batches ----------------------------------------------------------------------------------- */

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
	cr_expect_eq(weir_queue_size_approx(queue), 3);
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
	/*
	 * The batch takes 307, 404, 600, 606 and 803 from two places, and puts them back above what was
	 * there.
	 */
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
	/*
	 * Each item is taken at once, so the batch gets them in this order: the keys fall, in runs of
	 * 10 that rise.
	 */
	for (size_t i = 0; i < MANY; i++)
		put(queue, 100 * (1 + (MANY - 1 - i) / 10) + i % 10, 1);
	cr_assert(batch.called == 1 && batch.status == WEIR_OK && batch.done == MANY);
	for (size_t i = 0; i < MANY; i++)
		expect_numbers(&items[i], 100 * (1 + i / 10) + i % 10, 1);
	destroy(queue);
}

/* -- closing ----------------------------------------------------------------------------------- */

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
	struct weir_queue_options options = {WEIR_QUEUE_OPTIONS_INIT, .capacity = 1, .order = WEIR_QUEUE_PRIORITY};
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

/* -- where the key function is called ---------------------------------------------------------- */

/*
 * A key function that uses Weir, and may not be called in a section. The keys are those of
 * key_of().
 */
struct asking {
	size_t asked, inside;
	/* It also waits until all that was retired is freed, which is impossible inside a section. */
	int collects;
	enum weir_status flushed;
	weir_queue *other;
};

static int64_t ask(void *context, void *any)
{
	struct asking *asking = context;
	const struct weiri_record *record = weiri_record_get();
	void *got = NULL;

	asking->asked++;
	/* [relaxed] own field */
	asking->inside += weiri_load_relaxed(&record->lo) != 0;
	asking->inside += weir_queue_try_enqueue(asking->other, any) != WEIR_OK;
	asking->inside += weir_queue_try_dequeue(asking->other, &got) != WEIR_OK;
	if (asking->collects)
		asking->flushed = weir_reclaim_flush(weir_deadline_in(UINT64_C(2000000000)));
	return key_of(NULL, any);
}

static weir_queue *that_asks(struct asking *asking, size_t capacity, uint32_t flags)
{
	asking->other = fifo(1);
	return queue_with((struct weir_queue_options){.capacity = capacity,
	                                              .order = WEIR_QUEUE_PRIORITY,
	                                              .flags = flags,
	                                              .key = ask,
	                                              .key_context = asking,
	                                              .name = "test"});
}

static void expect_asked_outside(struct asking *asking, weir_queue *queue)
{
	cr_expect_gt(asking->asked, 0);
	cr_expect_eq(asking->inside, 0, "the function of %zu of %zu keys was called in a section", asking->inside,
	             asking->asked);
	destroy(queue);
	destroy(asking->other);
}

static void started_are_asked_outside(uint32_t flags)
{
	struct asking asking = {0};
	weir_queue *queue = that_asks(&asking, 2, flags);
	struct async_batch in = {0};
	void *items[] = {item(301), item(102), item(503), item(204)};

	cr_expect_eq(weir_queue_start(queue, WEIR_QUEUE_OP_ENQUEUE, items, 4, note_batch, &in, NULL, NULL), WEIR_OK);
	cr_expect_eq(in.called, 0, "two wait");
	expect_next(queue, 102, 1);
	expect_next(queue, 301, 1);
	cr_expect_eq(in.called, 1);
	cr_expect_eq(in.done, 4);
	cr_expect_eq(asking.asked, 4, "each once");
	expect_next(queue, 204, 1);
	expect_next(queue, 503, 1);
	expect_asked_outside(&asking, queue);
}

Test(queue_priority, keys_of_a_started_enqueue_are_asked_for_outside_of_sections)
{
	started_are_asked_outside(0);
}

Test(queue_priority, keys_of_a_started_enqueue_into_a_fair_queue_are_asked_for_outside_of_sections)
{
	started_are_asked_outside(WEIR_QUEUE_FAIR);
}

Test(queue_priority, keys_of_calls_that_wait_are_asked_for_outside_of_sections)
{
	struct asking asking = {0};
	weir_queue *queue = that_asks(&asking, 2, 0);
	struct call one = {.kind = ENQUEUE, .queue = queue, .items = {item(101)}};
	struct call many = {.kind = ENQUEUE_MANY, .queue = queue, .count = 3, .items = {item(201), item(102), item(301)}};

	put(queue, 901, 1);
	/* One of the three has room. Its key is not asked for again once it is in. */
	begin_waiting_call(&many, 1);
	expect_next(queue, 201, 1);
	cr_expect_eq(asking.asked, 5, "901, then three; the second found no room, and its key was asked for again");
	begin_waiting_call(&one, 2);
	expect_next(queue, 102, 1);
	cr_expect_eq(end_call(&many), WEIR_OK);
	expect_next(queue, 301, 1);
	cr_expect_eq(end_call(&one), WEIR_OK);
	expect_next(queue, 101, 1);
	expect_next(queue, 901, 1);
	expect_asked_outside(&asking, queue);
}

static void note_select(void *context, enum weir_status status, const weir_error *error,
                        struct weir_select_case cases[], size_t chosen)
{
	(void)error, (void)cases;
	*(int *)context += status == WEIR_OK && chosen == 1;
}

Test(queue_priority, keys_of_a_select_are_asked_for_outside_of_sections)
{
	struct asking asking = {0};
	weir_queue *queue = that_asks(&asking, 1, 0), *never = fifo(1);
	struct weir_select_case cases[2] = {{.queue = never, .kind = WEIR_SELECT_DEQUEUE},
	                                    {.queue = queue, .kind = WEIR_SELECT_ENQUEUE, .item = item(201)}};
	int told = 0;

	cr_assert_eq(weir_select_start(cases, 2, note_select, &told, NULL, NULL), WEIR_OK);
	cr_expect_eq(told, 1, "room");
	cases[1].item = item(102);
	cr_assert_eq(weir_select_start(cases, 2, note_select, &told, NULL, NULL), WEIR_OK);
	cr_expect_eq(told, 1, "no room");
	expect_next(queue, 201, 1);
	cr_expect_eq(told, 2);
	expect_next(queue, 102, 1);
	destroy(never);
	expect_asked_outside(&asking, queue);
}

Test(queue_priority, a_batch_is_sorted_by_the_keys_with_which_its_items_went_in)
{
	struct asking asking = {0};
	weir_queue *queue = that_asks(&asking, 8, 0);
	struct async_batch out = {0}, gives_back = {0};
	weir_pending *op = NULL;
	void *items[4];

	/* Two items were there, two come, and one is put back. */
	put_all(queue, NUMBERS(701, 302));
	cr_assert_eq(weir_queue_start(queue, WEIR_QUEUE_OP_DEQUEUE_MANY, items, 3, note_batch, &gives_back, &op, NULL),
	             WEIR_OK);
	weir_pending_cancel(op, NULL);
	weir_pending_release(op);
	cr_expect_eq(gives_back.status, WEIR_CANCELLED);
	cr_assert_eq(weir_queue_start(queue, WEIR_QUEUE_OP_DEQUEUE_MANY, items, 4, note_batch, &out, NULL, NULL), WEIR_OK);
	put_all(queue, NUMBERS(503, 104));
	cr_expect_eq(out.done, 4);
	expect_these(items, NUMBERS(104, 302, 503, 701));
	cr_expect_eq(asking.asked, 4, "each key when its item went in, and never again");
	expect_asked_outside(&asking, queue);
}

Test(queue_priority, a_key_function_may_wait_until_all_is_freed)
{
	struct asking asking = {.collects = 1, .flushed = WEIR_ABORTED};
	weir_queue *queue = that_asks(&asking, 1, 0);
	struct async_batch in = {0};
	void *items[] = {item(301)};

	cr_expect_eq(weir_queue_start(queue, WEIR_QUEUE_OP_ENQUEUE, items, 1, note_batch, &in, NULL, NULL), WEIR_OK);
	cr_expect_eq(in.done, 1);
	cr_expect_eq(asking.flushed, WEIR_OK, "%s", weir_status_name(asking.flushed));
	expect_next(queue, 301, 1);
	expect_asked_outside(&asking, queue);
}
