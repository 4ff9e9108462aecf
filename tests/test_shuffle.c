/*
 * test_shuffle.c - a shuffle queue: each dequeue draws evenly from the items inside, and the bounds
 * hold.
 */
#include "queue_kit.h"

#include <math.h>
#include <stdlib.h>

static weir_queue *shuffled(size_t capacity, size_t min_after_dequeue, uint64_t seed)
{
	return queue_with((struct weir_queue_options){.capacity = capacity,
	                                              .order = WEIR_QUEUE_SHUFFLE,
	                                              .min_after_dequeue = min_after_dequeue,
	                                              .seed = seed,
	                                              .name = "test"});
}

static size_t take_one(weir_queue *queue)
{
	void *got = NULL;

	cr_assert_eq(weir_queue_try_dequeue(queue, &got), WEIR_OK);
	return number_of(got);
}

/* Takes the items first .. first + count - 1, each once, in any order. */
static void expect_all(weir_queue *queue, size_t first, size_t count)
{
	char *seen = calloc(count, 1);

	cr_assert_not_null(seen);
	for (size_t i = 0; i < count; i++) {
		size_t number = take_one(queue);

		cr_assert(number >= first && number - first < count && !seen[number - first], "item %zu", number);
		seen[number - first] = 1;
	}
	free(seen);
}

/* -- the draw ---------------------------------------------------------------------------------- */

/*
 * The `counts` of `cells` cells should be equal. A chi-square sum five standard deviations above
 * its mean occurs once in millions of times. The seed is fixed, so the outcome is the same every
 * time.
 */
static void expect_even(const size_t counts[], size_t cells, size_t draws, const char *what)
{
	double expected = (double)draws / (double)cells, sum = 0, freedom = (double)cells - 1;

	for (size_t i = 0; i < cells; i++)
		sum += ((double)counts[i] - expected) * ((double)counts[i] - expected) / expected;
	cr_expect_lt(sum, freedom + 5 * sqrt(2 * freedom), "%s: chi-square %.1f of %zu cells", what, sum, cells);
	/* Nor are they more even than chance makes them. */
	cr_expect_gt(sum, freedom - 5 * sqrt(2 * freedom), "%s: chi-square %.1f of %zu cells", what, sum, cells);
}

/*
 * There are `inside` items in a queue of `capacity`. Each draw is noted, and its item is put back.
 */
static void expect_even_draws(size_t capacity, size_t inside, const char *what)
{
	weir_queue *queue = shuffled(capacity, 0, 20240607);
	size_t draws = 100 * inside < 20000 ? 20000 : 100 * inside, *counts = calloc(inside, sizeof(*counts));

	cr_assert_not_null(counts);
	put(queue, 0, inside);
	for (size_t i = 0; i < draws; i++) {
		size_t number = take_one(queue);

		counts[number]++;
		put(queue, number, 1);
	}
	expect_even(counts, inside, draws, what);
	free(counts);
	destroy(queue);
}

Test(shuffle, each_item_of_a_full_queue_is_equally_likely)
{
	expect_even_draws(300, 300, "300 of 300");
	expect_even_draws(64, 64, "64 of 64");
	expect_even_draws(65, 65, "65 of 65");
	expect_even_draws(2, 2, "2 of 2");
	expect_even_draws(5000, 5000, "5000 of 5000");
}

Test(shuffle, each_item_of_a_half_full_queue_is_equally_likely)
{
	expect_even_draws(300, 150, "150 of 300");
	expect_even_draws(100, 50, "50 of 100");
	expect_even_draws(5000, 2500, "2500 of 5000");
}

Test(shuffle, each_item_of_a_nearly_empty_queue_is_equally_likely)
{
	expect_even_draws(1000, 10, "10 of 1000");
	expect_even_draws(300, 3, "3 of 300");
	expect_even_draws(5000, 50, "50 of 5000");
	expect_even_draws(300000, 3000, "3000 of 300000");
}

Test(shuffle, the_place_of_an_item_in_the_output_says_nothing_of_its_place_in_the_input)
{
	enum { ITEMS = 16, ROUNDS = 8000 };
	/* The place at the input, the place at the output. */
	static size_t counts[ITEMS][ITEMS];
	weir_queue *queue = shuffled(20, 0, 7);

	for (size_t round = 0; round < ROUNDS; round++) {
		put(queue, 0, ITEMS);
		for (size_t place = 0; place < ITEMS; place++)
			counts[take_one(queue)][place]++;
	}
	for (size_t i = 0; i < ITEMS; i++)
		expect_even(counts[i], ITEMS, ROUNDS, "places");
	destroy(queue);
}

Test(shuffle, what_came_out_last_says_nothing_of_what_comes_next)
{
	enum { ITEMS = 12, ROUNDS = 40000 };
	static size_t pairs[ITEMS * ITEMS];
	weir_queue *queue = shuffled(ITEMS, 0, 99);
	size_t before;

	put(queue, 0, ITEMS);
	before = take_one(queue);
	put(queue, before, 1);
	for (size_t i = 0; i < ROUNDS; i++) {
		size_t now = take_one(queue);

		pairs[before * ITEMS + now]++;
		put(queue, now, 1);
		before = now;
	}
	expect_even(pairs, ITEMS * ITEMS, ROUNDS, "pairs");
	destroy(queue);
}

/* -- the seed ---------------------------------------------------------------------------------- */

enum { LENGTH = 16 };

static void order_of(uint64_t seed, enum call_kind kind, size_t numbers[LENGTH])
{
	weir_queue *queue = shuffled(LENGTH, 0, seed);

	put(queue, 0, LENGTH);
	for (size_t i = 0; i < LENGTH; i += 8) {
		struct call call = {.kind = kind, .queue = queue, .count = 8};

		for (size_t k = 0; kind == DEQUEUE && k < 8; k++)
			numbers[i + k] = take_one(queue);
		if (kind != DEQUEUE)
			cr_assert_eq(call_now(&call), WEIR_OK);
		for (size_t k = 0; kind != DEQUEUE && k < 8; k++)
			numbers[i + k] = number_of(call.items[k]);
	}
	destroy(queue);
}

Test(shuffle, the_seed_is_read_back)
{
	weir_queue *queue = shuffled(4, 0, 12345), *drawn = shuffled(4, 0, 0), *other = shuffled(4, 0, 0);

	cr_expect_eq(weir_queue_seed(queue), 12345);
	cr_expect_neq(weir_queue_seed(drawn), 0);
	cr_expect_neq(weir_queue_seed(other), 0);
	cr_expect_neq(weir_queue_seed(drawn), weir_queue_seed(other));
	destroy(queue);
	destroy(drawn);
	destroy(other);
}

Test(shuffle, the_same_seed_gives_the_same_order_by_any_call)
{
	size_t one[LENGTH], again[LENGTH];
	static const enum call_kind kinds[] = {DEQUEUE, DEQUEUE_MANY, DEQUEUE_UP_TO};

	order_of(5, DEQUEUE, one);
	for (size_t i = 0; i < 3; i++) {
		order_of(5, kinds[i], again);
		cr_expect_arr_eq(one, again, sizeof(one));
	}
}

Test(shuffle, a_drawn_seed_replays_the_order)
{
	weir_queue *queue = shuffled(LENGTH, 0, 0);
	size_t again[LENGTH];

	put(queue, 0, LENGTH);
	order_of(weir_queue_seed(queue), DEQUEUE, again);
	for (size_t i = 0; i < LENGTH; i++)
		cr_expect_eq(take_one(queue), again[i]);
	destroy(queue);
}

Test(shuffle, two_seeds_and_two_halves_give_different_orders)
{
	static const enum call_kind kinds[] = {DEQUEUE, DEQUEUE_MANY, DEQUEUE_UP_TO};

	for (size_t k = 0; k < 3; k++) {
		size_t one[LENGTH], other[LENGTH], sorted = 0;

		order_of(1, kinds[k], one);
		order_of(2, kinds[k], other);
		cr_expect_arr_neq(one, other, sizeof(one));
		for (size_t i = 0; i < LENGTH; i++)
			sorted += one[i] == i;
		cr_expect_lt(sorted, LENGTH);
	}
}

/* -- bounds ------------------------------------------------------------------------------------ */

Test(shuffle, a_shuffle_queue_holds_exactly_its_capacity_and_each_item_once)
{
	static const size_t capacities[] = {1, 2, 3, 63, 64, 65, 128, 200};

	for (size_t i = 0; i < sizeof(capacities) / sizeof(capacities[0]); i++) {
		weir_queue *queue = shuffled(capacities[i], 0, 3);

		for (size_t round = 0; round < 3; round++) {
			put(queue, 1, capacities[i]);
			cr_expect_eq(weir_queue_try_enqueue(queue, item(0)), WEIR_WOULD_BLOCK);
			cr_expect_eq(weir_queue_size_approx(queue), capacities[i]);
			expect_all(queue, 1, capacities[i]);
			expect_nothing(queue);
		}
		destroy(queue);
	}
}

Test(shuffle, an_enqueue_that_waits_goes_in_when_one_is_out)
{
	weir_queue *queue = shuffled(4, 0, 1);
	struct call call = {.kind = ENQUEUE_MANY, .queue = queue, .count = 2, .items = {item(5), item(6)}};
	size_t first;

	put(queue, 1, 4);
	begin_waiting_call(&call, 1);
	cr_expect_eq(weir_queue_size_approx(queue), 4);
	first = take_one(queue);
	cr_expect_leq(first, 4, "an old one");
	cr_expect_neq(take_one(queue), 6, "was outside till now");
	cr_expect_eq(end_call(&call), WEIR_OK);
	destroy(queue);
}

Test(shuffle, the_minimum_stays_behind_while_the_queue_is_open)
{
	weir_queue *queue = shuffled(10, 2, 1);
	struct call call = {.kind = DEQUEUE, .queue = queue};
	void *got;

	put(queue, 0, 4);
	(void)take_one(queue);
	(void)take_one(queue);
	cr_expect_eq(weir_queue_try_dequeue(queue, &got), WEIR_WOULD_BLOCK);
	cr_expect_eq(weir_queue_dequeue(queue, &got, 0, NULL, NULL), WEIR_DEADLINE_EXCEEDED);
	cr_expect_eq(weir_queue_size_approx(queue), 2);
	begin_waiting_call(&call, 1);
	put(queue, 4, 1);
	cr_expect_eq(end_call(&call), WEIR_OK);
	cr_expect_eq(weir_queue_size_approx(queue), 2);
	destroy(queue);
}

Test(shuffle, a_close_lifts_the_minimum_for_those_who_wait_and_those_who_come)
{
	weir_queue *queue = shuffled(10, 2, 1);
	struct call call = {.kind = DEQUEUE, .queue = queue};

	put(queue, 0, 2);
	begin_waiting_call(&call, 1);
	cr_expect_eq(weir_queue_close(queue, WEIR_CLOSE_DRAIN, NULL), WEIR_OK);
	cr_expect_eq(end_call(&call), WEIR_OK);
	cr_expect_eq(number_of(call.items[0]) + take_one(queue), 1);
	expect_drained(queue);
	destroy(queue);
}

Test(shuffle, up_to_takes_the_minimum_only_after_the_close)
{
	weir_queue *queue = shuffled(10, 2, 1);
	struct call call = {.kind = DEQUEUE_UP_TO, .queue = queue, .count = 3}, rest = call;

	put(queue, 0, 4);
	begin_waiting_call(&call, 1);
	cr_expect_eq(weir_queue_size_approx(queue), 2);
	cr_expect_eq(weir_queue_close(queue, WEIR_CLOSE_DRAIN, NULL), WEIR_OK);
	cr_expect_eq(end_call(&call), WEIR_OK);
	cr_expect_eq(call.done, 3);
	cr_expect_eq(call_now(&rest), WEIR_OK);
	cr_expect_eq(rest.done, 1);
	expect_drained(queue);
	destroy(queue);
}

Test(shuffle, a_batch_that_is_too_large_at_the_close_leaves_its_items)
{
	weir_queue *queue = shuffled(10, 0, 1);
	struct call batch = {.kind = DEQUEUE_MANY, .queue = queue, .count = 3}, one = batch;

	put(queue, 0, 4);
	cr_expect_eq(call_now(&batch), WEIR_OK);
	begin_waiting_call(&batch, 1);
	cr_expect_eq(weir_queue_size_approx(queue), 0);
	cr_expect_eq(weir_queue_close(queue, WEIR_CLOSE_DRAIN, NULL), WEIR_OK);
	cr_expect_eq(end_call(&batch), WEIR_OUT_OF_RANGE);
	cr_expect_eq(weir_queue_size_approx(queue), 1);
	one.count = 1;
	cr_expect_eq(call_now(&one), WEIR_OK);
	expect_drained(queue);
	destroy(queue);
}

Test(shuffle, what_a_batch_gave_back_leaves_first_and_in_its_order)
{
	weir_queue *queue = shuffled(10, 2, 1);
	void *items[8];

	put(queue, 0, 5);
	cr_expect_eq(weir_queue_dequeue_many(queue, items, 4, 0, NULL, NULL), WEIR_DEADLINE_EXCEEDED);
	cr_expect_eq(weir_queue_size_approx(queue), 5);
	put(queue, 5, 5);
	/*
	 * Three items were drawn. The other two are below the minimum, and the queue has as many places
	 * as before.
	 */
	for (int i = 0; i < 3; i++)
		cr_expect_lt(take_one(queue), 5);
	cr_expect_eq(weir_queue_size_approx(queue), 7);
	destroy(queue);
}

static void count_drop(void *context, void *any)
{
	*(size_t *)context += number_of(any);
}

Test(shuffle, destroy_drops_also_what_the_minimum_kept_behind)
{
	size_t sum = 0;
	weir_queue *queue = queue_with((struct weir_queue_options){
		.capacity = 8, .order = WEIR_QUEUE_SHUFFLE, .min_after_dequeue = 3, .drop = count_drop, .drop_context = &sum});

	put(queue, 1, 4);
	sum = take_one(queue);
	destroy(queue);
	cr_expect_eq(sum, 1 + 2 + 3 + 4);
}

/* -- many threads ------------------------------------------------------------------------------ */

/*
 * A number and its complement share an item. WORKERS * TURNS fits into half of a pointer, also of
 * one with 32 bits.
 */
enum { WORKERS = 4, TURNS = 16000, HALF = sizeof(size_t) * 4 };
static const size_t LOW = ((size_t)1 << HALF) - 1;

struct churn {
	weir_queue *queue;
	_Atomic(size_t) put;
	_Atomic(size_t) taken;
	_Atomic(size_t) wrong;
	_Atomic(size_t) worker;
};

/*
 * Enqueues and dequeues at random. Each item that comes out was put in whole: a number and its
 * complement.
 */
static void *churn_on(void *argument)
{
	struct churn *churn = argument;
	size_t worker = weiri_fetch_add_relaxed(&churn->worker, 1);
	uint64_t state = worker + 1;

	for (size_t i = 0; i < TURNS; i++) {
		void *got;

		state = state * UINT64_C(6364136223846793005) + 1442695040888963407u;
		if (state >> 63 != 0) {
			size_t number = worker * TURNS + i;

			if (weir_queue_try_enqueue(churn->queue, item(number << HALF | (~number & LOW))) == WEIR_OK)
				weiri_fetch_add_relaxed(&churn->put, number);
		} else if (weir_queue_try_dequeue(churn->queue, &got) == WEIR_OK) {
			size_t number = number_of(got) >> HALF;

			weiri_fetch_add_relaxed(&churn->taken, number);
			weiri_fetch_add_relaxed(&churn->wrong, (number_of(got) & LOW) != (~number & LOW));
		}
	}
	return NULL;
}

static void churn_in(size_t capacity, size_t min_after_dequeue)
{
	struct churn churn = {.queue = shuffled(capacity, min_after_dequeue, 11)};
	pthread_t threads[WORKERS];
	size_t left, room = 0;

	for (size_t i = 0; i < WORKERS; i++)
		cr_assert_eq(pthread_create(&threads[i], NULL, churn_on, &churn), 0);
	for (size_t i = 0; i < WORKERS; i++)
		cr_assert_eq(pthread_join(threads[i], NULL), 0);
	/* All threads have ended, and no place is lost. */
	left = weir_queue_size_approx(churn.queue);
	while (weir_queue_try_enqueue(churn.queue, item(SIZE_MAX)) == WEIR_OK)
		room++;
	cr_expect_eq(left + room, capacity);
	cr_expect_eq(weir_queue_close(churn.queue, WEIR_CLOSE_DRAIN, NULL), WEIR_OK);
	for (size_t i = 0; i < capacity; i++) {
		size_t number = take_one(churn.queue);

		churn.taken += number != SIZE_MAX ? number >> HALF : 0;
	}
	expect_drained(churn.queue);
	cr_expect_eq(churn.wrong, 0);
	cr_expect_eq(churn.put, churn.taken);
	destroy(churn.queue);
}

Test(shuffle, items_of_many_threads_come_out_whole_and_once)
{
	churn_in(1, 0);
	churn_in(3, 1);
	churn_in(64, 0);
	churn_in(300, 100);
}

static void *take_random_parts(void *argument)
{
	struct churn *churn = argument;
	size_t worker = weiri_fetch_add_relaxed(&churn->worker, 1);

	for (size_t step = 0;; step++) {
		struct call call = {.kind = DEQUEUE_UP_TO, .queue = churn->queue, .count = 1 + (step * 7 + worker * 5) % 16};

		if (call_now(&call) != WEIR_OK)
			return NULL;
		for (size_t i = 0; i < call.done; i++)
			weiri_fetch_add_relaxed(&churn->taken, number_of(call.items[i]));
	}
}

Test(shuffle, batches_of_random_sizes_share_all_items_out)
{
	struct churn churn = {.queue = shuffled(50, 20, 5)};
	pthread_t threads[WORKERS];

	for (size_t i = 0; i < WORKERS; i++)
		cr_assert_eq(pthread_create(&threads[i], NULL, take_random_parts, &churn), 0);
	for (size_t i = 1; i <= 1000; i++)
		cr_assert_eq(weir_queue_enqueue(churn.queue, item(i), in_good_time(), NULL, NULL), WEIR_OK);
	cr_assert_eq(weir_queue_close(churn.queue, WEIR_CLOSE_DRAIN, NULL), WEIR_OK);
	for (size_t i = 0; i < WORKERS; i++)
		cr_assert_eq(pthread_join(threads[i], NULL), 0);
	cr_expect_eq(churn.taken, 1000 * 1001 / 2);
	destroy(churn.queue);
}
