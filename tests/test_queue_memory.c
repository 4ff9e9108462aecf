/*
 * test_queue_memory.c - a failed allocation loses and leaks nothing and leaves the queue usable;
 * and which calls allocate at all.
 */
#include "queue_kit.h"

#include "late_failure.h"

static void flush(void)
{
	cr_assert_eq(weir_reclaim_flush(in_good_time()), WEIR_OK);
}

static weir_queue *queue_from(const weir_allocator *allocator, enum weir_queue_order order, size_t capacity)
{
	weir_queue *queue = NULL;
	struct weir_queue_options options = {WEIR_QUEUE_OPTIONS_INIT, .capacity = capacity, .order = order,
	                                     .allocator = allocator};

	(void)weir_queue_create(&options, &queue, NULL);
	return queue;
}

static size_t asked(struct failing_allocator *state)
{
	return weiri_load_relaxed(&state->asked);
}

/* -- each allocation in turn ------------------------------------------------------------------- */

static enum weir_status create_one(const weir_allocator *allocator, void *context)
{
	const enum weir_queue_order *order = context;
	struct weir_queue_options options = {WEIR_QUEUE_OPTIONS_INIT, .capacity = 100, .order = *order, .name = "named",
	                                     .allocator = allocator};
	weir_queue *queue = NULL;
	weir_error error = {0};
	enum weir_status status = weir_queue_create(&options, &queue, &error);

	cr_assert_eq(queue == NULL, status != WEIR_OK);
	cr_assert_eq(error.code, status);
	cr_assert_eq(weir_queue_destroy(queue, NULL), WEIR_OK);
	return status;
}

Test(queue_memory, create_survives_each_failure)
{
	enum weir_queue_order fifo_order = WEIR_QUEUE_FIFO, shuffled = WEIR_QUEUE_SHUFFLE;

	cr_expect_eq(fail_each_allocation(create_one, &fifo_order), 3, "the queue, its name, its store");
	cr_expect_eq(fail_each_allocation(create_one, &shuffled), 3, "the queue, its name, its store");
}

/* A call that must wait, on a queue that has memory. Only the allocations of the call fail. */
struct waiting {
	struct call call;
	/* The items in the queue, from 1 on, before and after the call. */
	size_t inside;
	int with_token;
	/* The status if no allocation fails. The deadline has passed. */
	enum weir_status expected;
};

static enum weir_status wait_in_vain(const weir_allocator *allocator, void *context)
{
	struct waiting waiting = *(const struct waiting *)context;
	struct late_failure late = {0};
	weir_allocator memory = late_failure_hooks(&late);
	weir_queue *queue = queue_from(&memory, WEIR_QUEUE_FIFO, 4);
	weir_cancel *token = NULL;
	enum weir_status status;

	cr_assert_not_null(queue);
	cr_assert_eq(weir_cancel_create(&memory, &token, NULL), WEIR_OK);
	put(queue, 1, waiting.inside);
	waiting.call.queue = queue;
	waiting.call.token = waiting.with_token ? token : NULL;
	waiting.call.deadline_ns = weir_now_ns();
	late.under_test = allocator;
	status = call_now(&waiting.call);
	late.under_test = NULL;
	cr_assert(status == waiting.expected || status == WEIR_RESOURCE_EXHAUSTED, "%s", weir_status_name(status));
	cr_assert_eq(waiting.call.error.code, status);
	/* All items are there, in order. No operation waits, and the queue is usable. */
	cr_assert_eq(idle_in(queue), 0);
	expect_next(queue, 1, waiting.inside);
	put(queue, 50, 4);
	expect_next(queue, 50, 4);
	destroy(queue);
	weir_cancel_release(token);
	flush();
	late_failure_end(&late);
	return status == waiting.expected ? WEIR_OK : status;
}

Test(queue_memory, a_dequeue_that_cannot_wait_loses_nothing)
{
	struct waiting waiting = {.call = {.kind = DEQUEUE}, .expected = WEIR_DEADLINE_EXCEEDED};

	cr_expect_eq(fail_each_allocation(wait_in_vain, &waiting), 1, "the operation");
	waiting.with_token = 1;
	cr_expect_eq(fail_each_allocation(wait_in_vain, &waiting), 2, "the same, and the hook on the token");
}

Test(queue_memory, an_enqueue_that_cannot_wait_loses_nothing)
{
	struct waiting waiting = {
		.call = {.kind = ENQUEUE, .items = {item(9)}}, .inside = 4, .expected = WEIR_DEADLINE_EXCEEDED};

	cr_expect_eq(fail_each_allocation(wait_in_vain, &waiting), 1);
	waiting.with_token = 1;
	cr_expect_eq(fail_each_allocation(wait_in_vain, &waiting), 2);
}

Test(queue_memory, a_batch_dequeue_without_memory_puts_all_back)
{
	struct waiting waiting = {
		.call = {.kind = DEQUEUE_MANY, .count = 6}, .inside = 3, .expected = WEIR_DEADLINE_EXCEEDED};

	cr_expect_eq(fail_each_allocation(wait_in_vain, &waiting), 2, "the operation, room for the batch");
	waiting.with_token = 1;
	cr_expect_eq(fail_each_allocation(wait_in_vain, &waiting), 3);
	waiting.call.kind = DEQUEUE_UP_TO;
	cr_expect_eq(fail_each_allocation(wait_in_vain, &waiting), 3);
}

static enum weir_status enqueue_too_many(const weir_allocator *allocator, void *context)
{
	struct late_failure late = {0};
	weir_allocator memory = late_failure_hooks(&late);
	weir_queue *queue = queue_from(&memory, WEIR_QUEUE_FIFO, 4);
	struct call call = {.kind = ENQUEUE_MANY, .queue = queue, .count = 6, .deadline_ns = weir_now_ns(), .done = 9};
	enum weir_status status;

	(void)context;
	for (size_t i = 0; i < 6; i++)
		call.items[i] = item(i);
	late.under_test = allocator;
	status = call_now(&call);
	late.under_test = NULL;
	cr_assert_eq(call.done, 4, "%s: %zu are in", weir_status_name(status), call.done);
	expect_next(queue, 0, 4);
	destroy(queue);
	flush();
	late_failure_end(&late);
	return status == WEIR_DEADLINE_EXCEEDED ? WEIR_OK : status;
}

Test(queue_memory, an_enqueue_many_without_memory_says_how_many_are_in)
{
	cr_expect_eq(fail_each_allocation(enqueue_too_many, NULL), 1);
}

static void count_completion(void *context, enum weir_status status, const weir_error *error, void **items, size_t done)
{
	(void)status, (void)error, (void)items, (void)done;
	++*(int *)context;
}

static enum weir_status start_a_batch(const weir_allocator *allocator, void *context)
{
	struct late_failure late = {0};
	weir_allocator memory = late_failure_hooks(&late);
	weir_queue *queue = queue_from(&memory, WEIR_QUEUE_FIFO, 4);
	weir_pending *op = NULL;
	weir_error error = {0};
	void *items[6];
	int completions = 0;
	enum weir_status status;

	(void)context;
	put(queue, 1, 3);
	late.under_test = allocator;
	status = weir_queue_start(queue, WEIR_QUEUE_OP_DEQUEUE_MANY, items, 6, count_completion, &completions, &op, &error);
	late.under_test = NULL;
	cr_assert_eq(error.code, status);
	cr_assert_eq(op == NULL, status != WEIR_OK);
	cr_assert_eq(completions, 0);
	weir_pending_cancel(op, NULL);
	cr_assert_eq(completions, status == WEIR_OK);
	weir_pending_release(op);
	expect_next(queue, 1, 3);
	destroy(queue);
	flush();
	late_failure_end(&late);
	return status;
}

Test(queue_memory, a_start_without_memory_completes_nothing)
{
	cr_expect_eq(fail_each_allocation(start_a_batch, NULL), 2, "the operation, room for the batch");
}

/* One asynchronous operation that must wait, of each kind and in each order of leaving. */
struct starting {
	enum weir_queue_op_kind kind;
	enum weir_queue_order order;
	size_t count, inside;
};

static enum weir_status start_and_give_up(const weir_allocator *allocator, void *context)
{
	const struct starting *starting = context;
	struct late_failure late = {0};
	weir_allocator memory = late_failure_hooks(&late);
	weir_queue *queue = queue_from(&memory, starting->order, 4);
	weir_pending *op = NULL;
	void *items[6] = {item(50), item(51), item(52), item(53), item(54), item(55)}, *got;
	int completions = 0;
	size_t left = 0;
	enum weir_status status;

	put(queue, 1, starting->inside);
	late.under_test = allocator;
	status = weir_queue_start(queue, starting->kind, items, starting->count, count_completion, &completions, &op, NULL);
	late.under_test = NULL;
	cr_assert_eq(completions, 0);
	weir_pending_cancel(op, NULL);
	cr_assert_eq(completions, status == WEIR_OK);
	weir_pending_release(op);
	while (weir_queue_try_dequeue(queue, &got) == WEIR_OK)
		left++;
	/* An enqueue that was cancelled may have filled the room that there was. */
	cr_assert_eq(left, starting->kind == WEIR_QUEUE_OP_ENQUEUE && status == WEIR_OK ? 4 : starting->inside);
	cr_assert_eq(number_of(items[0]), 50);
	destroy(queue);
	flush();
	late_failure_end(&late);
	return status;
}

Test(queue_memory, each_kind_of_start_survives_each_failure)
{
	static const struct {
		enum weir_queue_op_kind kind;
		size_t count, inside, allocations;
	} kinds[] = {
		{WEIR_QUEUE_OP_ENQUEUE, 1, 4, 1},      {WEIR_QUEUE_OP_ENQUEUE, 3, 2, 1},
		{WEIR_QUEUE_OP_DEQUEUE_MANY, 1, 0, 1}, {WEIR_QUEUE_OP_DEQUEUE_UP_TO, 1, 0, 1},
		{WEIR_QUEUE_OP_DEQUEUE_MANY, 5, 2, 2}, {WEIR_QUEUE_OP_DEQUEUE_UP_TO, 5, 3, 2},
	};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		for (int order = WEIR_QUEUE_FIFO; order <= WEIR_QUEUE_SHUFFLE; order++) {
			struct starting starting = {kinds[i].kind, (enum weir_queue_order)order, kinds[i].count, kinds[i].inside};

			cr_expect_eq(fail_each_allocation(start_and_give_up, &starting), kinds[i].allocations, "kind %zu", i);
		}
	}
}

/* -- when memory is allocated ------------------------------------------------------------------ */

Test(queue_memory, what_need_not_wait_needs_no_memory)
{
	struct failing_allocator state = {0};
	weir_allocator allocator = failing_allocator_hooks(&state);
	weir_queue *queue = queue_from(&allocator, WEIR_QUEUE_FIFO, 8);
	struct call in = {.kind = ENQUEUE_MANY, .queue = queue, .count = 8}, one = {.kind = ENQUEUE, .queue = queue};
	size_t before = asked(&state);
	weir_error cause = {WEIR_ABORTED, "why"};
	void *got;

	cr_expect_eq(call_now(&in), WEIR_OK);
	cr_expect_eq(weir_queue_enqueue(queue, item(9), 0, NULL, NULL), WEIR_DEADLINE_EXCEEDED);
	cr_expect_eq(weir_queue_enqueue_many(queue, in.items, 2, 0, NULL, NULL, NULL), WEIR_DEADLINE_EXCEEDED);
	for (int i = 0; i < 8; i++)
		cr_expect_eq(weir_queue_dequeue(queue, &got, in_good_time(), NULL, NULL), WEIR_OK);
	cr_expect_eq(weir_queue_dequeue(queue, &got, 0, NULL, NULL), WEIR_DEADLINE_EXCEEDED);
	cr_expect_eq(weir_queue_close(queue, WEIR_CLOSE_DRAIN, &cause), WEIR_OK);
	/* Nor does the end of the queue. */
	cr_expect_eq(weir_queue_dequeue(queue, &got, in_good_time(), NULL, NULL), WEIR_OUT_OF_RANGE);
	cr_expect_eq(call_now(&one), WEIR_CANCELLED);
	cr_expect_eq(call_now(&in), WEIR_CANCELLED);
	cr_expect_eq(asked(&state), before);
	destroy(queue);
	cr_expect_str_eq(failing_allocator_verdict(&state), "balanced");
}

/*
 * The list may keep an operation until much later, but the room of its batch is released at once.
 */
Test(queue_memory, room_for_a_batch_is_given_back_when_the_batch_is_over)
{
	struct failing_allocator state = {0};
	weir_allocator allocator = failing_allocator_hooks(&state);
	weir_queue *queue = queue_from(&allocator, WEIR_QUEUE_FIFO, 2);
	static void *items[10000];
	size_t before = weiri_load_relaxed(&state.bytes);
	int completions = 0;
	weir_pending *op;

	put(queue, 0, 1);
	cr_assert_eq(
		weir_queue_start(queue, WEIR_QUEUE_OP_DEQUEUE_MANY, items, 10000, count_completion, &completions, &op, NULL),
		WEIR_OK);
	for (size_t i = 1; i < 10000; i++)
		put(queue, i, 1);
	cr_expect_eq(completions, 1);
	cr_expect_eq(number_of(items[9999]), 9999);
	cr_expect_lt(weiri_load_relaxed(&state.bytes) - before, 8 * 10000, "the test still owns the handle");
	weir_pending_release(op);
	destroy(queue);
	flush();
	cr_expect_str_eq(failing_allocator_verdict(&state), "balanced");
}

/* -- user code outside of sections ------------------------------------------------------------- */

/* The default allocator, which checks whether it was called within a section of this thread. */
struct watching {
	_Atomic(size_t) calls;
	_Atomic(size_t) in_a_section;
};

static void look_for_a_section(struct watching *watching)
{
	struct weiri_record *record = weiri_record_mine;

	(void)weiri_fetch_add_relaxed(&watching->calls, 1);
	(void)weiri_fetch_add_relaxed(&watching->in_a_section, record != NULL && weiri_load_relaxed(&record->lo) != 0);
}

static void *watching_allocate(void *context, size_t size, size_t alignment)
{
	look_for_a_section(context);
	return weir_default_allocator()->allocate(weir_default_allocator()->context, size, alignment);
}

static void watching_release(void *context, void *memory, size_t size, size_t alignment)
{
	look_for_a_section(context);
	weir_default_allocator()->release(weir_default_allocator()->context, memory, size, alignment);
}

static void put_back_and_take(weir_queue *queue, size_t rounds)
{
	void *items[4];

	for (size_t i = 0; i < rounds; i++) {
		struct call out = {.kind = DEQUEUE_UP_TO, .queue = queue, .count = 3, .deadline_ns = 1};

		put(queue, 0, 2);
		cr_assert_eq(call_now(&out), WEIR_DEADLINE_EXCEEDED);
		/* The next operation, or single calls, unlink the segment of the previous one. */
		cr_assert_eq(weir_queue_dequeue_many(queue, items, 4, 1, NULL, NULL), WEIR_DEADLINE_EXCEEDED);
		expect_next(queue, 0, 2);
		expect_nothing(queue);
		/*
		 * Some rounds have one more batch, so that each kind of retired object sometimes starts a
		 * collection.
		 */
		if (i % 3 == 0)
			cr_assert_eq(weir_queue_dequeue_many(queue, items, 4, 1, NULL, NULL), WEIR_DEADLINE_EXCEEDED);
	}
}

Test(queue_memory, the_allocator_is_never_called_within_a_section)
{
	struct watching watching = {0};
	weir_allocator allocator = {watching_allocate, watching_release, &watching};
	weir_queue *queue = queue_from(&allocator, WEIR_QUEUE_FIFO, 4);

	/* This retires so much that collections begin by themselves. */
	put_back_and_take(queue, 1000);
	cr_expect_eq(watching.in_a_section, 0, "%zu of %zu calls", watching.in_a_section, watching.calls);
	destroy(queue);
	flush();
	cr_expect_eq(watching.in_a_section, 0);
}
