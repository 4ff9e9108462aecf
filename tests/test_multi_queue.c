/*
 * test_multi_queue.c - the relaxed priority queue: no lost values, exact bounds, closing, and how
 * close to strict order it is.
 */
#include <criterion/criterion.h>

#include <weir/multi_queue.h>
#include <weir/priority_queue.h>

#include "exchange.h"
#include "failing_allocator.h"

static weir_multi_queue *make(size_t capacity, uint32_t lanes, uint32_t stickiness)
{
	struct weir_multi_queue_options options = {WEIR_MULTI_QUEUE_OPTIONS_INIT, .lanes = lanes, .stickiness = stickiness};
	weir_multi_queue *queue = NULL;

	cr_assert_eq(weir_multi_queue_create(capacity, &options, &queue, NULL), WEIR_OK);
	return queue;
}

Test(multi_queue, one_lane_is_strict)
{
	weir_multi_queue *queue = make(100, 1, 3);
	uint64_t value;
	int64_t key;

	cr_expect_eq(weir_multi_queue_lane_count(queue), 1);
	for (uint64_t i = 0; i < 100; i++)
		cr_assert_eq(weir_multi_queue_try_enqueue(queue, (int64_t)(i * 37 % 10) - 5, i), WEIR_OK);
	for (int64_t expected = 0; expected < 100; expected++) {
		cr_assert_eq(weir_multi_queue_try_dequeue(queue, &key, &value), WEIR_OK);
		cr_assert_eq(key, expected / 10 - 5);
	}
	weir_multi_queue_destroy(queue, NULL);
}

/* With two lanes, a dequeue always looks at both. */
Test(multi_queue, two_lanes_are_strict_for_a_thread_that_is_alone)
{
	weir_multi_queue *queue = make(1000, 2, 1);
	uint64_t value;

	for (uint64_t i = 0; i < 1000; i++)
		cr_assert_eq(weir_multi_queue_try_enqueue(queue, (int64_t)(i * 7 % 1000), i), WEIR_OK);
	for (int64_t expected = 0, key; expected < 1000; expected++) {
		cr_assert_eq(weir_multi_queue_try_dequeue(queue, &key, &value), WEIR_OK);
		cr_assert_eq(key, expected);
	}
	weir_multi_queue_destroy(queue, NULL);
}

Test(multi_queue, holds_as_many_as_it_says_and_gives_all_back)
{
	static const size_t capacities[] = {1, 2, 7, 64, 1001};

	for (size_t c = 0; c < sizeof(capacities) / sizeof(capacities[0]); c++) {
		size_t n = capacities[c];
		weir_multi_queue *queue = make(n, n < 8 ? 1 : 8, 1 + (uint32_t)c);
		uint64_t sum = 0, value = 77;
		int64_t key = 78;

		cr_assert_eq(weir_multi_queue_capacity(queue), n);
		for (int lap = 0; lap < 2; lap++) {
			for (size_t i = 0; i < n; i++) {
				cr_assert_eq(weir_multi_queue_try_enqueue(queue, (int64_t)i, i), WEIR_OK);
				cr_assert_eq(weir_multi_queue_size_approx(queue), i + 1);
			}
			cr_assert_eq(weir_multi_queue_try_enqueue(queue, 0, 0), WEIR_WOULD_BLOCK);
			for (size_t i = 0; i < n; i++) {
				cr_assert_eq(weir_multi_queue_try_dequeue(queue, &key, &value), WEIR_OK);
				cr_assert_eq((uint64_t)key, value);
				sum += value;
			}
			value = 77;
			key = 78;
			cr_assert_eq(weir_multi_queue_try_dequeue(queue, &key, &value), WEIR_WOULD_BLOCK);
			cr_assert(value == 77 && key == 78);
		}
		cr_assert_eq(sum, n * (n - 1));
		weir_multi_queue_destroy(queue, NULL);
	}
}

Test(multi_queue, lanes_by_default_are_some_a_processor_and_no_more_than_values)
{
	weir_multi_queue *queue = NULL;

	cr_assert_eq(weir_multi_queue_create(1 << 16, NULL, &queue, NULL), WEIR_OK);
	cr_expect_geq(weir_multi_queue_lane_count(queue), WEIR_MULTI_QUEUE_LANES_A_PROCESSOR);
	weir_multi_queue_destroy(queue, NULL);
	cr_assert_eq(weir_multi_queue_create(2, NULL, &queue, NULL), WEIR_OK);
	cr_expect_leq(weir_multi_queue_lane_count(queue), 2);
	weir_multi_queue_destroy(queue, NULL);
}

/*
 * With 8 lanes, about 6 smaller keys are passed over on average (docs/concepts.md). With one random
 * lane the number would grow without bound.
 */
Test(multi_queue, the_smaller_of_two_lanes_is_near_the_smallest)
{
	enum { VALUES = 20000, LANES = 8 };
	static unsigned char inside[VALUES];
	weir_multi_queue *queue = make(VALUES, LANES, 1);
	uint64_t passed = 0, value, first = 0;

	for (uint64_t i = 0; i < VALUES; i++) {
		uint64_t key = i * 7919 % VALUES;

		cr_assert_eq(weir_multi_queue_try_enqueue(queue, (int64_t)key, key), WEIR_OK);
		inside[key] = 1;
	}
	for (uint64_t i = 0; i < VALUES; i++) {
		cr_assert_eq(weir_multi_queue_try_dequeue(queue, NULL, &value), WEIR_OK);
		while (!inside[first])
			first++;
		for (uint64_t smaller = first; smaller < value; smaller++)
			passed += inside[smaller];
		cr_assert(inside[value]);
		inside[value] = 0;
	}
	cr_expect_leq(passed / VALUES, 2 * LANES);
	cr_expect_gt(passed, 0);
	weir_multi_queue_destroy(queue, NULL);
}

Test(multi_queue, a_closed_one_gives_what_it_has_and_ends)
{
	weir_multi_queue *queue = make(16, 4, 1);
	uint64_t value;

	for (uint64_t i = 0; i < 5; i++)
		cr_assert_eq(weir_multi_queue_try_enqueue(queue, (int64_t)i, i), WEIR_OK);
	cr_assert_not(weir_multi_queue_closed(queue));
	weir_multi_queue_close(queue);
	cr_assert(weir_multi_queue_closed(queue));
	cr_assert_eq(weir_multi_queue_try_enqueue(queue, 0, 0), WEIR_CANCELLED);
	for (uint64_t i = 0; i < 5; i++)
		cr_assert_eq(weir_multi_queue_try_dequeue(queue, NULL, &value), WEIR_OK);
	cr_assert_eq(weir_multi_queue_try_dequeue(queue, NULL, &value), WEIR_OUT_OF_RANGE);
	weir_multi_queue_destroy(queue, NULL);
}

Test(multi_queue, bad_arguments_are_refused)
{
	struct weir_multi_queue_options options = {WEIR_MULTI_QUEUE_OPTIONS_INIT, .flags = 1};
	weir_multi_queue *queue = NULL;
	uint64_t value;

	cr_expect_eq(weir_multi_queue_create(8, &options, &queue, NULL), WEIR_INVALID_ARGUMENT);
	options = (struct weir_multi_queue_options){WEIR_MULTI_QUEUE_OPTIONS_INIT, .lanes = 9};
	cr_expect_eq(weir_multi_queue_create(8, &options, &queue, NULL), WEIR_INVALID_ARGUMENT);
	options.lanes = WEIR_MULTI_QUEUE_MAX_LANES + 1;
	cr_expect_eq(weir_multi_queue_create(100000, &options, &queue, NULL), WEIR_INVALID_ARGUMENT);
	options.lanes = 1;
	cr_expect_eq(weir_multi_queue_create((size_t)WEIR_PRIORITY_QUEUE_MAX_CAPACITY + 1, &options, &queue, NULL),
	             WEIR_INVALID_ARGUMENT);
	options.struct_size = 3;
	cr_expect_eq(weir_multi_queue_create(8, &options, &queue, NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_multi_queue_create(0, NULL, &queue, NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_multi_queue_create(8, NULL, NULL, NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_null(queue);
	cr_expect_eq(weir_multi_queue_try_enqueue(NULL, 0, 0), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_multi_queue_try_dequeue(NULL, NULL, &value), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(
		weir_multi_queue_capacity(NULL) + weir_multi_queue_lane_count(NULL) + weir_multi_queue_size_approx(NULL), 0);
	cr_expect_not(weir_multi_queue_closed(NULL));
	weir_multi_queue_close(NULL);
	weir_multi_queue_destroy(NULL, NULL);
}

static enum weir_status make_and_destroy(const weir_allocator *allocator, void *context)
{
	struct weir_multi_queue_options options = {WEIR_MULTI_QUEUE_OPTIONS_INIT, .lanes = 3, .allocator = allocator};
	weir_multi_queue *queue;
	enum weir_status status = weir_multi_queue_create(100, &options, &queue, NULL);

	(void)context;
	if (status == WEIR_OK)
		weir_multi_queue_destroy(queue, NULL);
	return status;
}

Test(multi_queue, create_survives_each_allocation_failing)
{
	cr_assert_eq(fail_each_allocation(make_and_destroy, NULL), 4, "the queue and its lanes");
}

/* -- threads ----------------------------------------------------------------------------------- */

static struct {
	weir_multi_queue *queue;
	_Atomic(uint64_t) sum;
} shared;

static void *put_and_take(void *argument)
{
	uint64_t number = (uint64_t)(uintptr_t)argument, in = 0, out = 0, value;

	while (in < EACH || out < EACH) {
		int64_t key = (int64_t)((in * 31 + number) % 101);

		if (in < EACH && weir_multi_queue_try_enqueue(shared.queue, key, in) == WEIR_OK)
			in++;
		if (out < EACH && weir_multi_queue_try_dequeue(shared.queue, NULL, &value) == WEIR_OK) {
			(void)weiri_fetch_add_relaxed(&shared.sum, value); /* [relaxed] read after the join */
			out++;
		}
	}
	return NULL;
}

Test(multi_queue, nothing_is_lost_or_doubled_between_threads)
{
	for (uint32_t lanes = 1; lanes <= 8; lanes *= 2) {
		shared.queue = make(64, lanes, lanes);
		expect_exchanged(put_and_take, &shared.sum);
		cr_assert_eq(weir_multi_queue_size_approx(shared.queue), 0);
		weir_multi_queue_destroy(shared.queue, NULL);
	}
}
