/*
 * test_queue_stats.c - the statistics of a queue.
 */
#include <weir/select.h>
#include <weir/flow/tensor_queue.h>

#include "queue_kit.h"

static struct weir_queue_stats stats_of(weir_queue *queue)
{
	struct weir_queue_stats stats = {WEIR_QUEUE_STATS_INIT};

	cr_assert_eq(weir_queue_get_stats(queue, &stats), WEIR_OK);
	return stats;
}

static void expect_moved(weir_queue *queue, uint64_t in, uint64_t out)
{
	struct weir_queue_stats stats = stats_of(queue);

	cr_expect_eq(stats.items_in, in, "%s: %llu in, not %llu", weir_queue_name(queue),
	             (unsigned long long)stats.items_in, (unsigned long long)in);
	cr_expect_eq(stats.items_out, out, "%s: %llu out, not %llu", weir_queue_name(queue),
	             (unsigned long long)stats.items_out, (unsigned long long)out);
}

static int64_t key_of(void *context, void *any)
{
	(void)context;
	return (int64_t)(number_of(any) * 7 % 5);
}

/* One queue of each order. */
static weir_queue *any_queue(int i, size_t capacity)
{
	static const struct weir_queue_options kinds[] = {
		{.name = "fifo", .order = WEIR_QUEUE_FIFO},
		{.name = "shuffle", .order = WEIR_QUEUE_SHUFFLE, .seed = 3},
		{.name = "priority", .order = WEIR_QUEUE_PRIORITY, .key = key_of},
		{.name = "fair", .order = WEIR_QUEUE_FIFO, .flags = WEIR_QUEUE_FAIR},
	};
	struct weir_queue_options options = kinds[i];

	options.capacity = capacity;
	return queue_with(options);
}
enum { KINDS = 4 };

static void take_any(weir_queue *queue, size_t count)
{
	void *got;

	for (size_t i = 0; i < count; i++)
		cr_assert_eq(weir_queue_try_dequeue(queue, &got), WEIR_OK);
}

/* -- items ------------------------------------------------------------------------------------- */

Test(queue_stats, of_a_new_queue_are_zero)
{
	for (int i = 0; i < KINDS; i++) {
		weir_queue *queue = any_queue(i, 5);
		struct weir_queue_stats stats = stats_of(queue), zero = {WEIR_QUEUE_STATS_INIT};

		cr_expect_eq(memcmp(&stats, &zero, sizeof(zero)), 0);
		destroy(queue);
	}
}

Test(queue_stats, items_are_counted_exactly_lap_after_lap)
{
	for (int i = 0; i < KINDS; i++) {
		weir_queue *queue = any_queue(i, 7);
		size_t in = 0, out = 0;

		for (size_t lap = 0; lap < 20; lap++) {
			size_t more = 1 + lap * 5 % (7 - (in - out)), fewer;

			put(queue, in + 1, more);
			in += more;
			fewer = lap % (in - out) + 1;
			take_any(queue, fewer);
			out += fewer;
			expect_moved(queue, in, out);
		}
		destroy(queue);
	}
}

Test(queue_stats, batches_count_each_item)
{
	for (int i = 0; i < KINDS; i++) {
		weir_queue *queue = any_queue(i, 100);
		void *items[64];
		size_t done;

		for (size_t k = 0; k < 64; k++)
			items[k] = item(k + 1);
		cr_assert_eq(weir_queue_enqueue_many(queue, items, 64, 0, NULL, NULL, NULL), WEIR_OK);
		expect_moved(queue, 64, 0);
		cr_assert_eq(weir_queue_dequeue_many(queue, items, 30, 0, NULL, NULL), WEIR_OK);
		expect_moved(queue, 64, 30);
		cr_assert_eq(weir_queue_close(queue, WEIR_CLOSE_DRAIN, NULL), WEIR_OK);
		cr_assert_eq(weir_queue_dequeue_up_to(queue, items, 64, 0, NULL, &done, NULL), WEIR_OK);
		expect_moved(queue, 64, 64);
		destroy(queue);
	}
}

Test(queue_stats, what_a_batch_gives_back_has_not_come_out)
{
	for (int i = 0; i < KINDS; i++) {
		weir_queue *queue = any_queue(i, 5);
		void *items[4];

		put(queue, 1, 3);
		cr_assert_eq(weir_queue_dequeue_many(queue, items, 4, weir_deadline_in(1000), NULL, NULL),
		             WEIR_DEADLINE_EXCEEDED);
		expect_moved(queue, 3, 0);
		take_any(queue, 2);
		expect_moved(queue, 3, 2);
		put(queue, 4, 4);
		take_any(queue, 5);
		expect_moved(queue, 7, 7);
		destroy(queue);
	}
}

Test(queue_stats, refused_calls_move_nothing)
{
	for (int i = 0; i < KINDS; i++) {
		weir_queue *queue = any_queue(i, 2);
		void *got;

		cr_assert_eq(weir_queue_try_dequeue(queue, &got), WEIR_WOULD_BLOCK);
		put(queue, 1, 2);
		cr_assert_eq(weir_queue_try_enqueue(queue, item(3)), WEIR_WOULD_BLOCK);
		cr_assert_eq(weir_queue_close(queue, WEIR_CLOSE_DRAIN, NULL), WEIR_OK);
		cr_assert_eq(weir_queue_try_enqueue(queue, item(3)), WEIR_CANCELLED);
		take_any(queue, 2);
		expect_drained(queue);
		expect_moved(queue, 2, 2);
		destroy(queue);
	}
}

/* -- the high-water mark ----------------------------------------------------------------------- */

static uint64_t mark_of(weir_queue *queue)
{
	return stats_of(queue).high_water;
}

Test(queue_stats, the_mark_is_the_capacity_once_an_enqueue_found_no_room)
{
	for (int i = 0; i < KINDS; i++) {
		weir_queue *queue = any_queue(i, 1000);

		for (size_t k = 1; weir_queue_try_enqueue(queue, item(k)) == WEIR_OK; k++)
			;
		take_any(queue, 1000);
		cr_expect_eq(mark_of(queue), 1000, "%s", weir_queue_name(queue));
		destroy(queue);
	}
}

/* The test reads the mark only after the items were taken out again. */
Test(queue_stats, the_mark_is_less_than_64_below_the_truth_with_one_producer)
{
	for (int i = 0; i < KINDS; i++) {
		weir_queue *queue = any_queue(i, 1024);
		size_t at = 1;
		uint64_t before = 0;

		for (size_t top = 1; top < 1024; top += 1 + top / 3) {
			uint64_t mark;

			put(queue, at, top);
			at += top;
			take_any(queue, top);
			mark = mark_of(queue);
			cr_expect_leq(mark, top, "%s: %llu of %zu", weir_queue_name(queue), (unsigned long long)mark, top);
			cr_expect_gt(mark + 64, top, "%s: %llu of %zu", weir_queue_name(queue), (unsigned long long)mark, top);
			cr_expect_geq(mark, before, "%s", weir_queue_name(queue));
			before = mark;
		}
		destroy(queue);
	}
}

Test(queue_stats, a_batch_is_looked_at_too)
{
	for (int i = 0; i < KINDS; i++) {
		weir_queue *queue = any_queue(i, 1024);
		void *items[200];

		for (size_t k = 0; k < 200; k++)
			items[k] = item(k + 1);
		cr_assert_eq(weir_queue_enqueue_many(queue, items, 200, 0, NULL, NULL, NULL), WEIR_OK);
		take_any(queue, 200);
		cr_expect_eq(mark_of(queue), 200, "%s", weir_queue_name(queue));
		destroy(queue);
	}
}

static void ended(void *context, enum weir_status status, const weir_error *error, void **items, size_t done)
{
	(void)status, (void)error, (void)items, (void)done;
	*(int *)context += 1;
}

Test(queue_stats, a_batch_that_is_started_is_looked_at_too)
{
	for (int i = 0; i < KINDS; i++) {
		weir_queue *queue = any_queue(i, 1024);
		void *items[200];
		int times = 0;

		for (size_t k = 0; k < 200; k++)
			items[k] = item(k + 1);
		cr_assert_eq(weir_queue_start(queue, WEIR_QUEUE_OP_ENQUEUE, items, 200, ended, &times, NULL, NULL), WEIR_OK);
		cr_assert_eq(times, 1);
		take_any(queue, 200);
		cr_expect_eq(mark_of(queue), 200, "%s", weir_queue_name(queue));
		destroy(queue);
	}
}

Test(queue_stats, the_mark_of_the_smallest_queues_is_exact)
{
	for (int i = 0; i < KINDS; i++) {
		for (size_t capacity = 1; capacity < 8; capacity++) {
			weir_queue *queue = any_queue(i, capacity);

			for (size_t top = 1; top <= capacity; top++) {
				put(queue, 1, top);
				take_any(queue, top);
				cr_expect_eq(mark_of(queue), top, "%s of %zu", weir_queue_name(queue), capacity);
			}
			destroy(queue);
		}
	}
}

/* -- waits and wakes --------------------------------------------------------------------------- */

Test(queue_stats, a_thread_that_sleeps_is_woken_once_and_its_time_is_counted)
{
	for (int i = 0; i < KINDS; i++) {
		weir_queue *queue = any_queue(i, 2);
		struct call call = {.kind = DEQUEUE, .queue = queue};
		uint64_t begin = weir_now_ns(), asleep, woken;
		struct weir_queue_stats stats;

		begin_waiting_call(&call, 1);
		asleep = weir_now_ns();
		stats = stats_of(queue);
		cr_expect_eq(stats.waiting, 1);
		cr_expect_eq(stats.dequeue_waits, 1);
		cr_expect_eq(stats.dequeue_blocked_ns, 0, "it has not ended");
		woken = weir_now_ns();
		put(queue, 1, 1);
		cr_expect_eq(end_call(&call), WEIR_OK);
		stats = stats_of(queue);
		cr_expect_eq(stats.waiting, 0);
		cr_expect_eq(stats.dequeue_waits, 1);
		cr_expect_eq(stats.enqueue_waits, 0);
		cr_expect_geq(stats.dequeue_blocked_ns, woken - asleep);
		cr_expect_leq(stats.dequeue_blocked_ns, weir_now_ns() - begin);
		cr_expect_eq(stats.enqueue_blocked_ns, 0);
		cr_expect_eq(stats.wakes, 1);
		cr_expect_leq(stats.retries, 2);
		destroy(queue);
	}
}

Test(queue_stats, an_enqueue_that_waits_is_counted_on_its_side)
{
	for (int i = 0; i < KINDS; i++) {
		weir_queue *queue = any_queue(i, 1);
		struct call call = {.kind = ENQUEUE, .queue = queue, .items = {item(2)}};
		struct weir_queue_stats stats;

		put(queue, 1, 1);
		begin_waiting_call(&call, 1);
		take_any(queue, 1);
		cr_expect_eq(end_call(&call), WEIR_OK);
		stats = stats_of(queue);
		cr_expect_eq(stats.enqueue_waits, 1);
		cr_expect_eq(stats.dequeue_waits, 0);
		cr_expect_gt(stats.enqueue_blocked_ns, 0);
		cr_expect_eq(stats.wakes, 1);
		cr_expect_eq(stats.high_water, 1);
		expect_moved(queue, 2, 1);
		take_any(queue, 1);
		destroy(queue);
	}
}

/* The owner of the operation does not sleep yet, so there is no thread to wake. */
Test(queue_stats, who_does_not_sleep_is_not_woken)
{
	weir_queue *queue = fifo(2);
	void *got[1] = {NULL};
	weir_pending *op = &weiri_queue_operation_create(queue, WEIR_QUEUE_OP_DEQUEUE_MANY, got, 1, 0, NULL, NULL)->pending;

	cr_assert_not_null(op);
	op->is_blocking = 1;
	weiri_pending_start(weiri_record_get(), op);
	put(queue, 1, 1);
	cr_expect_eq(stats_of(queue).dequeue_waits, 1);
	cr_expect_eq(stats_of(queue).wakes, 0);
	cr_expect_eq(weiri_load_acquire(&op->finished), WEIRI_PENDING_FINISHED);
	cr_expect_eq(op->status, WEIR_OK);
	cr_expect_eq(number_of(got[0]), 1);
	weiri_pending_release(op);
	destroy(queue);
}

Test(queue_stats, a_deadline_wakes_nobody)
{
	weir_queue *queue = fifo(2);
	struct weir_queue_stats stats;
	void *got;

	cr_assert_eq(weir_queue_dequeue(queue, &got, weir_deadline_in(2000000), NULL, NULL), WEIR_DEADLINE_EXCEEDED);
	stats = stats_of(queue);
	cr_expect_eq(stats.dequeue_waits, 1);
	cr_expect_gt(stats.dequeue_blocked_ns, 0);
	cr_expect_eq(stats.wakes, 0);
	destroy(queue);
}

Test(queue_stats, an_asynchronous_operation_waits_and_is_not_woken)
{
	weir_queue *queue = fifo(2);
	struct weir_queue_stats stats;
	void *got[1];
	int times = 0;

	cr_assert_eq(weir_queue_start(queue, WEIR_QUEUE_OP_DEQUEUE_MANY, got, 1, ended, &times, NULL, NULL), WEIR_OK);
	put(queue, 1, 1);
	cr_assert_eq(times, 1);
	stats = stats_of(queue);
	cr_expect_eq(stats.dequeue_waits, 1);
	cr_expect_gt(stats.dequeue_blocked_ns, 0);
	cr_expect_eq(stats.wakes, 0);
	destroy(queue);
}

Test(queue_stats, an_asynchronous_enqueue_that_finds_no_room_says_so)
{
	for (int i = 0; i < KINDS; i++) {
		weir_queue *queue = any_queue(i, 1000);
		void *last[1] = {item(1001)};
		int times = 0;

		put(queue, 1, 1000);
		cr_assert_eq(weir_queue_start(queue, WEIR_QUEUE_OP_ENQUEUE, last, 1, ended, &times, NULL, NULL), WEIR_OK);
		take_any(queue, 1001);
		cr_assert_eq(times, 1);
		cr_expect_eq(mark_of(queue), 1000, "%s", weir_queue_name(queue));
		destroy(queue);
	}
}

Test(queue_stats, a_select_waits_in_each_of_its_queues)
{
	weir_queue *queues[2] = {fifo(1), fifo(1)};
	struct weir_select_case cases[2] = {{.queue = queues[0], .kind = WEIR_SELECT_DEQUEUE},
	                                    {.queue = queues[1], .kind = WEIR_SELECT_ENQUEUE, .item = item(2)}};
	size_t chosen;

	put(queues[1], 1, 1);
	cr_assert_eq(weir_select(cases, 2, weir_deadline_in(1000000), NULL, &chosen, NULL), WEIR_DEADLINE_EXCEEDED);
	cr_expect_eq(stats_of(queues[0]).dequeue_waits, 1);
	cr_expect_eq(stats_of(queues[1]).enqueue_waits, 1);
	cr_expect_gt(stats_of(queues[1]).enqueue_blocked_ns, 0);
	take_any(queues[1], 1);
	destroy(queues[0]);
	destroy(queues[1]);
}

/*
 * The operations behind the first one that finds nothing would find nothing too, so they are not
 * tried.
 */
Test(queue_stats, a_walk_ends_at_the_first_that_finds_nothing)
{
	weir_queue *queue = fifo(4);
	weir_pending *ops[5];
	void *items[5][1];
	int times = 0;

	for (int i = 0; i < 5; i++)
		cr_assert_eq(weir_queue_start(queue, WEIR_QUEUE_OP_DEQUEUE_MANY, items[i], 1, ended, &times, &ops[i], NULL),
		             WEIR_OK);
	cr_assert_eq(stats_of(queue).waiting, 5);
	put(queue, 1, 1);
	cr_assert_eq(times, 1);
	cr_expect_leq(stats_of(queue).retries, 2 + 4,
	              "each start tries the operation ahead of it; each of the two rounds of the put tries one");
	for (int i = 0; i < 5; i++) {
		weir_pending_cancel(ops[i], NULL);
		weir_pending_release(ops[i]);
	}
	destroy(queue);
}

/* An attempt of a walk counts if the operation still waits afterwards, even if it moved an item. */
Test(queue_stats, carrying_on_in_vain_is_a_retry)
{
	weir_queue *queue = fifo(4);
	struct call call = {.kind = DEQUEUE_MANY, .queue = queue, .count = 4};
	uint64_t before;

	begin_waiting_call(&call, 1);
	before = stats_of(queue).retries;
	put(queue, 1, 3);
	cr_expect_eq(stats_of(queue).retries - before, 6,
	             "for each of three items, one round moved it and one found nothing");
	cr_expect_eq(stats_of(queue).wakes, 0, "the batch is not complete");
	put(queue, 4, 1);
	cr_expect_eq(end_call(&call), WEIR_OK);
	cr_expect_eq(stats_of(queue).wakes, 1);
	destroy(queue);
}

/* -- no storm ---------------------------------------------------------------------------------- */

enum { SLEEPERS = 4 };

static void begin_sleeping(struct call calls[SLEEPERS], weir_queue *queue)
{
	for (size_t i = 0; i < SLEEPERS; i++) {
		calls[i] = (struct call){.kind = DEQUEUE, .queue = queue};
		begin_waiting_call(&calls[i], i + 1);
	}
}

Test(queue_stats, each_item_wakes_one_of_those_who_sleep)
{
	weir_queue *queue = fifo(8);
	struct call calls[SLEEPERS];

	begin_sleeping(calls, queue);
	for (size_t i = 0; i < SLEEPERS; i++) {
		put(queue, i + 1, 1);
		cr_expect_eq(stats_of(queue).wakes, i + 1);
		cr_expect_eq(stats_of(queue).waiting, SLEEPERS - i - 1);
		cr_assert_eq(end_call(&calls[i]), WEIR_OK, "in the order in which they came");
		cr_expect_eq(number_of(calls[i].items[0]), i + 1);
	}
	put(queue, 9, 1);
	cr_expect_eq(stats_of(queue).wakes, SLEEPERS, "no waiter is left");
	expect_next(queue, 9, 1);
	destroy(queue);
}

Test(queue_stats, a_close_wakes_each_sleeper_once)
{
	weir_queue *queue = fifo(8);
	struct call calls[SLEEPERS];

	begin_sleeping(calls, queue);
	cr_assert_eq(weir_queue_close(queue, WEIR_CLOSE_DRAIN, NULL), WEIR_OK);
	cr_assert_eq(weir_queue_close(queue, WEIR_CLOSE_CANCEL, NULL), WEIR_OK);
	for (size_t i = 0; i < SLEEPERS; i++)
		cr_expect_eq(end_call(&calls[i]), WEIR_OUT_OF_RANGE);
	cr_expect_eq(stats_of(queue).wakes, SLEEPERS);
	destroy(queue);
}

enum { OSCILLATIONS = 6000, MOST_MOVERS = 6 };

struct mover {
	weir_queue *queue;
	size_t items;
	int puts;
	int failed;
	pthread_t thread;
};

static void *move(void *context)
{
	struct mover *mover = context;

	for (size_t i = 0; i < mover->items && !mover->failed; i++) {
		void *got;

		mover->failed = (mover->puts ? weir_queue_enqueue(mover->queue, item(i + 1), in_good_time(), NULL, NULL)
		                             : weir_queue_dequeue(mover->queue, &got, in_good_time(), NULL, NULL)) != WEIR_OK;
		if (i % 3 == 0)
			/* So that the queue is sometimes empty and sometimes full. */
			(void)sched_yield();
	}
	return NULL;
}

/*
 * Under every schedule, each wake ends an operation that waited and then moved an item. So there
 * are never more wakes than waits.
 */
static void oscillate(weir_queue *queue, int producers, int consumers)
{
	struct mover movers[MOST_MOVERS];
	struct weir_queue_stats stats;

	for (int i = 0; i < producers + consumers; i++) {
		movers[i] = (struct mover){.queue = queue, .puts = i < producers};
		movers[i].items = (size_t)OSCILLATIONS / (size_t)(movers[i].puts ? producers : consumers);
		cr_assert_eq(pthread_create(&movers[i].thread, NULL, move, &movers[i]), 0);
	}
	for (int i = 0; i < producers + consumers; i++) {
		cr_assert_eq(pthread_join(movers[i].thread, NULL), 0);
		cr_assert_not(movers[i].failed);
	}
	stats = stats_of(queue);
	expect_moved(queue, OSCILLATIONS, OSCILLATIONS);
	cr_expect_leq(stats.enqueue_waits, OSCILLATIONS);
	cr_expect_leq(stats.dequeue_waits, OSCILLATIONS);
	cr_expect_leq(stats.wakes, stats.enqueue_waits + stats.dequeue_waits, "%llu wakes for %llu waits",
	              (unsigned long long)stats.wakes, (unsigned long long)(stats.enqueue_waits + stats.dequeue_waits));
	cr_expect_eq(stats.waiting, 0);
}

Test(queue_stats, an_oscillating_queue_wakes_only_those_who_sleep)
{
	for (int i = 0; i < KINDS; i++) {
		weir_queue *queues[2] = {any_queue(i, 1), any_queue(i, 2)};

		oscillate(queues[0], 1, 1);
		oscillate(queues[1], 2, 3);
		destroy(queues[0]);
		destroy(queues[1]);
	}
}

/* -- the call itself --------------------------------------------------------------------------- */

Test(queue_stats, bad_arguments_are_refused)
{
	weir_queue *queue = fifo(1);
	struct weir_queue_stats stats = {WEIR_QUEUE_STATS_INIT};

	cr_expect_eq(weir_queue_get_stats(NULL, &stats), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_queue_get_stats(queue, NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_tensor_queue_get_stats(NULL, &stats), WEIR_INVALID_ARGUMENT);
	stats.struct_size = 0;
	cr_expect_eq(weir_queue_get_stats(queue, &stats), WEIR_INVALID_ARGUMENT);
	stats.struct_size = SIZE_MAX;
	cr_expect_eq(weir_queue_get_stats(queue, &stats), WEIR_INVALID_ARGUMENT);
	destroy(queue);
}

Test(queue_stats, no_more_is_written_than_the_caller_knows)
{
	weir_queue *queue = fifo(4);
	struct weir_queue_stats stats;

	memset(&stats, 0xA5, sizeof(stats));
	stats.struct_size = offsetof(struct weir_queue_stats, items_out);
	put(queue, 1, 3);
	cr_assert_eq(weir_queue_get_stats(queue, &stats), WEIR_OK);
	cr_expect_eq(stats.items_in, 3);
	cr_expect_eq(stats.struct_size, offsetof(struct weir_queue_stats, items_out));
	cr_expect_eq(stats.items_out, UINT64_C(0xA5A5A5A5A5A5A5A5));
	expect_next(queue, 1, 3);
	destroy(queue);
}

Test(queue_stats, what_this_release_does_not_count_is_0)
{
	weir_queue *queue = fifo(4);
	struct {
		struct weir_queue_stats known;
		uint64_t unknown[2];
	} stats;

	memset(&stats, 0xA5, sizeof(stats));
	stats.known.struct_size = sizeof(stats.known) + 8;
	put(queue, 1, 3);
	cr_assert_eq(weir_queue_get_stats(queue, &stats.known), WEIR_OK);
	cr_expect_eq(stats.known.items_in, 3);
	cr_expect_eq(stats.known.struct_size, sizeof(stats.known) + 8);
	cr_expect_eq(stats.unknown[0], 0);
	cr_expect_eq(stats.unknown[1], UINT64_C(0xA5A5A5A5A5A5A5A5));
	expect_next(queue, 1, 3);
	destroy(queue);
}

Test(queue_stats, a_tensor_queue_counts_tuples)
{
	struct weir_tensor_component component = {.dtype = WEIR_I64};
	struct weir_tensor_queue_options options = {WEIR_TENSOR_QUEUE_OPTIONS_INIT, .capacity = 8, .components = &component,
	                                            .component_count = 1, .name = "t"};
	struct weir_queue_stats stats = {WEIR_QUEUE_STATS_INIT};
	weir_tensor_queue *queue;
	weir_tensor *value, *out;

	cr_assert_eq(weir_tensor_queue_create(&options, &queue, NULL), WEIR_OK);
	cr_assert_eq(weir_tensor_scalar_i64(1, &value), WEIR_OK);
	for (int i = 0; i < 3; i++)
		cr_assert_eq(weir_tensor_queue_enqueue(queue, &value, 1, 0, NULL, NULL), WEIR_OK);
	cr_assert_eq(weir_tensor_queue_dequeue(queue, &out, 1, 0, NULL, NULL), WEIR_OK);
	cr_assert_eq(weir_tensor_queue_get_stats(queue, &stats), WEIR_OK);
	cr_expect_eq(stats.items_in, 3);
	cr_expect_eq(stats.items_out, 1);
	weir_tensor_release(value);
	weir_tensor_release(out);
	cr_assert_eq(weir_tensor_queue_destroy(queue, NULL), WEIR_OK);
}
