/*
 * test_priority_queue.c - the strict priority queue: order, exact bounds, closing, recycling of
 * nodes.
 */
#include <criterion/criterion.h>

#include <weir/priority_queue.h>

#include "exchange.h"
#include "failing_allocator.h"
#include "ring/priority_queue.h"

static weir_priority_queue *make(size_t capacity)
{
	weir_priority_queue *queue = NULL;

	cr_assert_eq(weir_priority_queue_create(capacity, NULL, &queue, NULL), WEIR_OK);
	return queue;
}

static void put(weir_priority_queue *queue, int64_t key, uint64_t value)
{
	cr_assert_eq(weir_priority_queue_try_enqueue(queue, key, value), WEIR_OK);
}

static void expect(weir_priority_queue *queue, int64_t key, uint64_t value)
{
	int64_t got_key = ~key;
	uint64_t got = ~value;

	cr_assert_eq(weir_priority_queue_try_dequeue(queue, &got_key, &got), WEIR_OK);
	cr_assert_eq(got_key, key);
	cr_assert_eq(got, value);
}

Test(priority_queue, smallest_first_with_the_extremes_of_keys_and_values)
{
	static const int64_t keys[] = {3, INT64_MAX, -1, 0, INT64_MIN, 7, INT64_MIN + 1, INT64_MAX - 1};
	static const int64_t sorted[] = {INT64_MIN, INT64_MIN + 1, -1, 0, 3, 7, INT64_MAX - 1, INT64_MAX};
	weir_priority_queue *queue = make(8);

	for (size_t i = 0; i < 8; i++)
		put(queue, keys[i], (uint64_t)keys[i] * 5);
	for (size_t i = 0; i < 8; i++)
		expect(queue, sorted[i], (uint64_t)sorted[i] * 5);
	weir_priority_queue_destroy(queue, NULL);
}

Test(priority_queue, equal_keys_leave_in_the_order_they_came)
{
	weir_priority_queue *queue = make(1000);

	for (uint64_t lap = 0; lap < 5; lap++) {
		for (uint64_t i = 0; i < 999; i++)
			put(queue, (int64_t)(i % 3), i);
		for (uint64_t key = 0; key < 3; key++)
			for (uint64_t i = key; i < 999; i += 3)
				expect(queue, (int64_t)key, i);
	}
	weir_priority_queue_destroy(queue, NULL);
}

Test(priority_queue, capacity_is_exact_and_empty_is_exact)
{
	static const size_t capacities[] = {1, 2, 3, 4, 5, 7, 16, 17, 100, 1000};

	for (size_t c = 0; c < sizeof(capacities) / sizeof(capacities[0]); c++) {
		size_t n = capacities[c];
		weir_priority_queue *queue = make(n);
		uint64_t value = 77;
		int64_t key = 78;

		cr_assert_eq(weir_priority_queue_capacity(queue), n);
		for (int64_t lap = 0; lap < 3; lap++) {
			cr_assert_eq(weir_priority_queue_try_dequeue(queue, &key, &value), WEIR_WOULD_BLOCK);
			cr_assert(value == 77 && key == 78);
			for (size_t i = 0; i < n; i++) {
				cr_assert_eq(weir_priority_queue_size_approx(queue), i);
				put(queue, lap - (int64_t)i, i);
			}
			cr_assert_eq(weir_priority_queue_try_enqueue(queue, INT64_MIN, 0), WEIR_WOULD_BLOCK);
			for (size_t i = n; i-- > 0;) {
				cr_assert_eq(weir_priority_queue_size_approx(queue), i + 1);
				expect(queue, lap - (int64_t)i, i);
			}
		}
		weir_priority_queue_destroy(queue, NULL);
	}
}

/* The model counts for each key the items that came and those that left. */
Test(priority_queue, agrees_with_a_sorted_array_over_many_random_calls)
{
	enum { CAPACITY = 300, KEYS = 64, CALLS = 200000 };
	static uint64_t in[KEYS], out[KEYS];
	weir_priority_queue *queue = make(CAPACITY);
	uint64_t random = 42, size = 0;

	for (int i = 0; i < CALLS; i++) {
		size_t k;

		random = random * UINT64_C(6364136223846793005) + 1;
		k = random >> 40 & (KEYS - 1);
		/* There are long spells with more puts than takes, and with more takes than puts. */
		if ((random >> 50 & 7) < (i / 3000 % 2 != 0 ? 5u : 3u)) {
			enum weir_status status = weir_priority_queue_try_enqueue(queue, (int64_t)k - 30, in[k]);

			cr_assert_eq(status, size == CAPACITY ? WEIR_WOULD_BLOCK : WEIR_OK);
			in[k] += status == WEIR_OK;
			size += status == WEIR_OK;
			continue;
		}
		for (k = 0; k < KEYS && in[k] == out[k]; k++)
			;
		if (k == KEYS) {
			uint64_t value;

			cr_assert_eq(weir_priority_queue_try_dequeue(queue, NULL, &value), WEIR_WOULD_BLOCK);
			continue;
		}
		expect(queue, (int64_t)k - 30, out[k]++);
		size--;
	}
	weir_priority_queue_destroy(queue, NULL);
}

Test(priority_queue, takes_below_a_limit_only_and_peeks)
{
	weir_priority_queue *queue = make(4);
	_Atomic(void *) place = NULL;
	int64_t key = 1, limit = 5;
	const struct weiri_priority_beside beside = {&place, NULL, &limit};
	uint64_t value = 2;

	cr_assert_not(weiri_priority_queue_peek(queue, &key));
	put(queue, 5, 50);
	cr_assert(weiri_priority_queue_peek(queue, &key) && key == 5);
	cr_assert_eq(weiri_priority_queue_take(queue, &beside, &key, &value), WEIR_WOULD_BLOCK);
	limit = 6;
	cr_assert_eq(weiri_priority_queue_take(queue, &beside, &key, &value), WEIR_OK);
	cr_assert(key == 5 && value == 50);
	weir_priority_queue_destroy(queue, NULL);
}

Test(priority_queue, a_closed_one_gives_what_it_has_and_ends)
{
	weir_priority_queue *queue = make(3);
	uint64_t value;

	put(queue, 2, 20);
	put(queue, 1, 10);
	cr_assert_not(weir_priority_queue_closed(queue));
	weir_priority_queue_close(queue);
	weir_priority_queue_close(queue);
	cr_assert(weir_priority_queue_closed(queue));
	cr_assert_eq(weir_priority_queue_try_enqueue(queue, 0, 0), WEIR_CANCELLED);
	cr_assert_eq(weiri_priority_queue_put(queue, 3, 30, 1), WEIR_OK);
	expect(queue, 1, 10);
	expect(queue, 2, 20);
	expect(queue, 3, 30);
	cr_assert_eq(weir_priority_queue_try_dequeue(queue, NULL, &value), WEIR_OUT_OF_RANGE);
	cr_assert_eq(weir_priority_queue_try_enqueue(queue, 0, 0), WEIR_CANCELLED);
	weir_priority_queue_destroy(queue, NULL);
}

/* Creation gets as far as the allocation, which this allocator refuses. */
Test(priority_queue, the_largest_capacity_is_not_refused)
{
	struct failing_allocator none = {.fail_at = 1, .fail_count = SIZE_MAX};
	weir_allocator allocator = failing_allocator_hooks(&none);
	struct weir_priority_queue_options options = {WEIR_PRIORITY_QUEUE_OPTIONS_INIT, .allocator = &allocator};
	weir_priority_queue *queue = NULL;

	cr_assert_eq(weir_priority_queue_create(WEIR_PRIORITY_QUEUE_MAX_CAPACITY, &options, &queue, NULL),
	             WEIR_RESOURCE_EXHAUSTED);
	cr_assert_eq(weir_priority_queue_create((size_t)WEIR_PRIORITY_QUEUE_MAX_CAPACITY + 1, &options, &queue, NULL),
	             WEIR_INVALID_ARGUMENT);
}

Test(priority_queue, bad_arguments_are_refused)
{
	struct weir_priority_queue_options options = {WEIR_PRIORITY_QUEUE_OPTIONS_INIT, .flags = 1};
	weir_priority_queue *queue = NULL;
	uint64_t value;

	cr_assert_eq(weir_priority_queue_create(0, NULL, &queue, NULL), WEIR_INVALID_ARGUMENT);
	cr_assert_eq(weir_priority_queue_create((size_t)WEIR_PRIORITY_QUEUE_MAX_CAPACITY + 1, NULL, &queue, NULL),
	             WEIR_INVALID_ARGUMENT);
	cr_assert_eq(weir_priority_queue_create(1, NULL, NULL, NULL), WEIR_INVALID_ARGUMENT);
	cr_assert_eq(weir_priority_queue_create(1, &options, &queue, NULL), WEIR_INVALID_ARGUMENT);
	options = (struct weir_priority_queue_options){.struct_size = 1};
	cr_assert_eq(weir_priority_queue_create(1, &options, &queue, NULL), WEIR_INVALID_ARGUMENT);
	cr_assert_null(queue);
	cr_assert_eq(weir_priority_queue_try_enqueue(NULL, 0, 0), WEIR_INVALID_ARGUMENT);
	cr_assert_eq(weir_priority_queue_try_dequeue(NULL, NULL, &value), WEIR_INVALID_ARGUMENT);
	cr_assert_not(weir_priority_queue_closed(NULL));
	cr_assert_eq(weir_priority_queue_capacity(NULL), 0);
	cr_assert_eq(weir_priority_queue_size_approx(NULL), 0);
	weir_priority_queue_close(NULL);
	weir_priority_queue_destroy(NULL, NULL);
	queue = make(1);
	cr_assert_eq(weir_priority_queue_try_dequeue(queue, NULL, NULL), WEIR_INVALID_ARGUMENT);
	weir_priority_queue_destroy(queue, NULL);
}

static enum weir_status make_and_destroy(const weir_allocator *allocator, void *context)
{
	struct weir_priority_queue_options options = {WEIR_PRIORITY_QUEUE_OPTIONS_INIT, .allocator = allocator};
	weir_priority_queue *queue;
	enum weir_status status = weir_priority_queue_create(100, &options, &queue, NULL);

	(void)context;
	if (status == WEIR_OK)
		weir_priority_queue_destroy(queue, NULL);
	return status;
}

Test(priority_queue, create_survives_its_allocation_failing)
{
	cr_assert_eq(fail_each_allocation(make_and_destroy, NULL), 1);
}

/* -- threads ----------------------------------------------------------------------------------- */

static struct {
	weir_priority_queue *queue;
	_Atomic(uint64_t) sum;
} shared;

/*
 * Each thread puts EACH values and takes as many, whichever thread put them. When the queue is full
 * or empty, it tries again at the other end.
 */
static void *put_and_take(void *argument)
{
	uint64_t number = (uint64_t)(uintptr_t)argument, random = number + 1, in = 0, out = 0, value;

	while (in < EACH || out < EACH) {
		int64_t key;

		random = random * UINT64_C(6364136223846793005) + 1;
		key = (int64_t)(random >> 50 & 255);
		if (in < EACH && weir_priority_queue_try_enqueue(shared.queue, key, (uint64_t)key << 32 | in) == WEIR_OK)
			in++;
		if (out < EACH && weir_priority_queue_try_dequeue(shared.queue, &key, &value) == WEIR_OK) {
			cr_assert_eq((uint64_t)key, value >> 32);
			(void)weiri_fetch_add_relaxed(&shared.sum, value & UINT32_MAX); /* [relaxed] read after the join */
			out++;
		}
	}
	return NULL;
}

Test(priority_queue, nothing_is_lost_or_doubled_between_threads)
{
	static const size_t capacities[] = {1, 2, 5, 64, 1000};

	for (size_t c = 0; c < sizeof(capacities) / sizeof(capacities[0]); c++) {
		shared.queue = make(capacities[c]);
		expect_exchanged(put_and_take, &shared.sum);
		cr_assert_eq(weir_priority_queue_size_approx(shared.queue), 0);
		weir_priority_queue_destroy(shared.queue, NULL);
	}
}
