/*
 * test_dataset_ahead.c - datasets whose elements are computed ahead by a pool, and iterators from
 * which several threads take.
 */
#include "dataset_kit.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <weir/weir.h>

#include "base/atomic.h"
#include "failing_allocator.h"
#include "run/countdown.h"

static const uint64_t long_ns = 100000000000u;

static void wait_until(bool (*holds)(void *context), void *context, const char *what)
{
	uint64_t deadline = weir_deadline_in(long_ns);

	while (!holds(context)) {
		cr_assert_lt(weir_now_ns(), deadline, "waited too long for %s", what);
		(void)sched_yield();
	}
}

/* -- functions of pipelines -------------------------------------------------------------------- */

static enum weir_status fail_at_fives(void *context, weir_tensor *const in[], weir_tensor *out[], weir_error *error)
{
	int64_t number = data_number(in[0]);

	(void)context;
	if (number % 5 != 0)
		return weir_tensor_scalar_i64(number, &out[0]);
	(void)snprintf(error->message, sizeof(error->message), "%lld", (long long)number);
	return WEIR_ABORTED;
}

/* Counts how many calls run, and holds those back whose number is `held`. */
struct busy {
	_Atomic(int) running, most, begun;
	int64_t held;
	struct weiri_latch let_go;
};

static void busy_init(struct busy *busy, int64_t held)
{
	*busy = (struct busy){.held = held};
	weiri_latch_init(&busy->let_go);
}

static enum weir_status work(void *context, weir_tensor *const in[], weir_tensor *out[], weir_error *error)
{
	struct busy *busy = context;
	/* [relaxed] counts, which order nothing */
	int now = weiri_fetch_add_relaxed(&busy->running, 1) + 1, most = weiri_load_relaxed(&busy->most);

	(void)error;
	while (now > most && !weiri_cas_relaxed(&busy->most, &most, now))
		;
	(void)weiri_fetch_add_relaxed(&busy->begun, 1);
	while (data_number(in[0]) == busy->held && !weiri_latch_is_set(&busy->let_go))
		(void)sched_yield();
	(void)weiri_fetch_sub_relaxed(&busy->running, 1);
	out[0] = weir_tensor_retain(in[0]);
	return WEIR_OK;
}

static bool has_begun(void *context)
{
	return weiri_load_relaxed(&((struct busy *)context)->begun) > 0;
}

/* -- order ------------------------------------------------------------------------------------- */

Test(dataset_ahead, a_parallel_map_gives_its_elements_in_order)
{
	weir_pool *pool = data_pool(3);

	for (size_t at_once = 1; at_once <= 9; at_once += 2) {
		struct data_list list;
		struct busy busy;

		busy_init(&busy, -1);
		data_read(data_prefetch(data_map(data_range(0, 500), work, &busy, at_once, 0), at_once % 4), pool, &list);
		data_expect_range(&list, 0, 500);
		cr_expect_leq(weiri_load_relaxed(&busy.most), (int)at_once, "no more than at_once calls at a time");
	}
	cr_assert_eq(weir_pool_destroy(pool, NULL), WEIR_OK);
}

Test(dataset_ahead, an_unordered_map_gives_each_element_once)
{
	weir_pool *pool = data_pool(3);

	for (size_t at_once = 2; at_once <= 16; at_once *= 2) {
		struct data_list list;

		data_read(data_map(data_range(0, 500), data_same, NULL, at_once, WEIR_DATASET_UNORDERED), pool, &list);
		data_sort(&list);
		data_expect_range(&list, 0, 500);
	}
	cr_assert_eq(weir_pool_destroy(pool, NULL), WEIR_OK);
}

/* Element 0 is held back; all others come before it, and the end after it. */
Test(dataset_ahead, an_unordered_element_that_is_slow_is_overtaken)
{
	weir_pool *pool = data_pool(2);
	struct busy busy;
	weir_dataset *dataset = data_map(data_range(0, 50), work, &busy, 4, WEIR_DATASET_UNORDERED);
	weir_iterator *iterator = data_iterate(dataset, pool);
	struct data_list list;
	int64_t number;

	busy_init(&busy, 0);
	data_take_some(iterator, 49, &list);
	data_sort(&list);
	data_expect_range(&list, 1, 50);
	weiri_latch_set(&busy.let_go);
	cr_expect_eq(data_next(iterator, &number, NULL), WEIR_OK);
	cr_expect_eq(number, 0);
	cr_expect_eq(data_next(iterator, &number, NULL), WEIR_OUT_OF_RANGE);
	weir_dataset_release(dataset);
	cr_assert_eq(weir_iterator_destroy(iterator, NULL), WEIR_OK);
	cr_assert_eq(weir_pool_destroy(pool, NULL), WEIR_OK);
}

static bool have_four_begun(void *context)
{
	return weiri_load_relaxed(&((struct busy *)context)->begun) == 4;
}

/* Element 0 is held back; as many as two calls at a time may have finished are worked on behind it. */
Test(dataset_ahead, a_slow_element_does_not_stop_the_work_on_those_behind_it)
{
	weir_pool *pool = data_pool(2);
	struct busy busy;
	weir_dataset *dataset = data_map(data_range(0, 50), work, &busy, 2, 0);
	weir_iterator *iterator = data_iterate(dataset, pool);
	weir_tensor *part = NULL;
	struct data_list list;

	busy_init(&busy, 0);
	cr_expect_eq(weir_iterator_next(iterator, 0, NULL, &part, 1, NULL), WEIR_DEADLINE_EXCEEDED);
	wait_until(have_four_begun, &busy, "elements 1 to 3");
	cr_expect_eq(weir_iterator_next(iterator, 0, NULL, &part, 1, NULL), WEIR_DEADLINE_EXCEEDED);
	weiri_latch_set(&busy.let_go);
	data_take_some(iterator, 51, &list);
	data_expect_range(&list, 0, 50);
	cr_expect_leq(weiri_load_relaxed(&busy.most), 2, "no more than two calls at a time");
	weir_dataset_release(dataset);
	cr_assert_eq(weir_iterator_destroy(iterator, NULL), WEIR_OK);
	cr_assert_eq(weir_pool_destroy(pool, NULL), WEIR_OK);
}

Test(dataset_ahead, errors_come_in_their_places_also_through_a_prefetch)
{
	weir_pool *pool = data_pool(2);

	for (size_t size = 0; size < 20; size += 6) {
		weir_dataset *dataset = data_prefetch(data_map(data_range(1, 23), fail_at_fives, NULL, 3, 0), size);
		weir_iterator *iterator = data_iterate(dataset, pool);
		weir_error error;
		int64_t number = 0;

		weir_dataset_release(dataset);
		for (int64_t i = 1; i < 23; i++) {
			char expected[64];

			if (i % 5 != 0) {
				cr_expect_eq(data_next(iterator, &number, &error), WEIR_OK);
				cr_expect_eq(number, i);
				continue;
			}
			(void)snprintf(expected, sizeof(expected), "map(3) of range: %lld", (long long)i);
			cr_expect_eq(data_next(iterator, &number, &error), WEIR_ABORTED);
			cr_expect_str_eq(error.message, expected);
		}
		cr_expect_eq(data_next(iterator, &number, &error), WEIR_OUT_OF_RANGE);
		cr_assert_eq(weir_iterator_destroy(iterator, NULL), WEIR_OK);
	}
	cr_assert_eq(weir_pool_destroy(pool, NULL), WEIR_OK);
}

/* -- interleaving ------------------------------------------------------------------------------ */

static enum weir_status repeated(void *context, weir_tensor *const in[], weir_dataset **out, weir_error *error)
{
	int64_t number = data_number(in[0]);
	weir_dataset *one = NULL;
	enum weir_status status = weir_dataset_range(number * 100, number * 100 + number, 1, NULL, &one, error);

	(void)context;
	if (number == 7)
		status = WEIR_ABORTED;
	if (status == WEIR_OK)
		*out = weir_dataset_retain(one);
	weir_dataset_release(one);
	return status;
}

Test(dataset_ahead, a_parallel_interleave_has_the_order_of_a_sequential_one)
{
	weir_pool *pool = data_pool(2);

	for (size_t cycle = 1; cycle <= 10; cycle += 3) {
		for (size_t block = 1; block <= 5; block += 2) {
			struct data_list expected, list;
			weir_dataset *dataset = data_interleave(data_range(0, 15), repeated, NULL, cycle, block, 1, 0);

			data_read(dataset, NULL, &expected);
			cr_expect_eq(expected.count, 14 * 15 / 2 - 7 + 1);
			data_read(data_interleave(data_range(0, 15), repeated, NULL, cycle, block, 2, 0), pool, &list);
			cr_expect(data_equal(&expected, &list), "cycle %zu, block %zu", cycle, block);
			data_read(
				data_interleave(data_map(data_range(0, 15), data_same, NULL, 4, 0), repeated, NULL, cycle, block, 2, 0),
				pool, &list);
			cr_expect(data_equal(&expected, &list), "cycle %zu, block %zu, mapped", cycle, block);
			data_read(data_interleave(data_range(0, 15), repeated, NULL, cycle, block, 2, WEIR_DATASET_UNORDERED), pool,
			          &list);
			data_sort(&expected);
			data_sort(&list);
			cr_expect(data_equal(&expected, &list), "cycle %zu, block %zu, unordered", cycle, block);
		}
	}
	cr_assert_eq(weir_pool_destroy(pool, NULL), WEIR_OK);
}

/* The sub-dataset of 1 is held back; that of 2 overtakes it, but only if unordered. */
static enum weir_status through_work(void *context, weir_tensor *const in[], weir_dataset **out, weir_error *error)
{
	int64_t number = data_number(in[0]);
	weir_dataset *numbers = NULL;

	(void)error;
	cr_assert_eq(weir_dataset_range(number * 10, number * 10 + 2, 1, NULL, &numbers, NULL), WEIR_OK);
	*out = data_map(numbers, work, context, 1, 0);
	return WEIR_OK;
}

Test(dataset_ahead, an_unordered_interleave_lets_a_ready_input_overtake)
{
	weir_pool *pool = data_pool(2);
	struct busy busy;
	weir_dataset *dataset = data_interleave(data_range(1, 3), through_work, &busy, 2, 1, 2, WEIR_DATASET_UNORDERED);
	weir_iterator *iterator = data_iterate(dataset, pool);
	struct data_list list;

	busy_init(&busy, 10);
	data_take_some(iterator, 2, &list);
	data_expect_range(&list, 20, 22);
	weiri_latch_set(&busy.let_go);
	data_take_some(iterator, 3, &list);
	data_expect_range(&list, 10, 12);
	weir_dataset_release(dataset);
	cr_assert_eq(weir_iterator_destroy(iterator, NULL), WEIR_OK);
	cr_assert_eq(weir_pool_destroy(pool, NULL), WEIR_OK);
}

/* -- waiting ----------------------------------------------------------------------------------- */

Test(dataset_ahead, a_deadline_or_a_token_ends_a_wait_and_loses_nothing)
{
	weir_pool *pool = data_pool(1);
	struct busy busy;
	weir_dataset *dataset = data_map(data_range(0, 3), work, &busy, 2, 0);
	weir_iterator *iterator = data_iterate(dataset, pool);
	weir_cancel *token = NULL;
	weir_tensor *part = NULL;
	struct data_list list;
	weir_error error;

	busy_init(&busy, 0);
	cr_expect_eq(weir_iterator_next(iterator, 0, NULL, &part, 1, &error), WEIR_DEADLINE_EXCEEDED);
	cr_expect_str_eq(error.message, "iterator \"map(2) of range\": the next element is not ready");
	wait_until(has_begun, &busy, "the map to begin");
	cr_expect_eq(weir_iterator_next(iterator, weir_deadline_in(1000000), NULL, &part, 1, &error),
	             WEIR_DEADLINE_EXCEEDED);
	cr_expect_str_eq(error.message, "iterator \"map(2) of range\": the deadline passed in next");
	cr_assert_eq(weir_cancel_create(NULL, &token, NULL), WEIR_OK);
	(void)weir_cancel_fire(token, NULL);
	cr_expect_eq(weir_iterator_next(iterator, WEIR_NO_DEADLINE, token, &part, 1, &error), WEIR_CANCELLED);
	weir_cancel_release(token);
	cr_expect_null(part);
	weiri_latch_set(&busy.let_go);
	data_take_some(iterator, 4, &list);
	data_expect_range(&list, 0, 3);
	weir_dataset_release(dataset);
	cr_assert_eq(weir_iterator_destroy(iterator, NULL), WEIR_OK);
	cr_assert_eq(weir_pool_destroy(pool, NULL), WEIR_OK);
}

Test(dataset_ahead, many_threads_on_one_iterator_take_each_element_once)
{
	weir_pool *pool = data_pool(2);

	data_each_once(8, data_range(0, 3000), 3000, NULL);
	data_each_once(8, data_map(data_range(0, 2000), data_same, NULL, 4, 0), 2000, pool);
	data_each_once(32, data_prefetch(data_range(0, 2000), 8), 2000, pool);
	data_each_once(3, data_repeat(data_map(data_range(0, 2000), data_same, NULL, 2, 0), 1), 2000, pool);
	cr_assert_eq(weir_pool_destroy(pool, NULL), WEIR_OK);
}

/* -- the pool ---------------------------------------------------------------------------------- */

struct reading_task {
	weir_task task;
	weir_iterator *iterator;
	struct data_list list;
	struct weiri_latch done;
};

static void read_in_task(weir_task *task)
{
	struct reading_task *reading = (struct reading_task *)(void *)task;

	data_take_some(reading->iterator, DATA_MOST, &reading->list);
	weiri_latch_set(&reading->done);
}

static bool is_done(void *context)
{
	return weiri_latch_is_set(&((struct reading_task *)context)->done);
}

Test(dataset_ahead, a_task_of_the_only_worker_may_take)
{
	weir_pool *pool = data_pool(1);
	weir_dataset *dataset = data_prefetch(data_map(data_range(0, 200), data_same, NULL, 4, 0), 3);
	struct reading_task reading = {{.run = read_in_task}, data_iterate(dataset, pool), {.count = 0}, {0}};

	weiri_latch_init(&reading.done);
	cr_assert_eq(weir_pool_submit(pool, &reading.task), WEIR_OK);
	wait_until(is_done, &reading, "the task");
	data_expect_range(&reading.list, 0, 200);
	weir_dataset_release(dataset);
	cr_assert_eq(weir_iterator_destroy(reading.iterator, NULL), WEIR_OK);
	cr_assert_eq(weir_pool_destroy(pool, NULL), WEIR_OK);
}

Test(dataset_ahead, a_pool_without_workers_runs_in_the_takers)
{
	weir_pool *pool = data_pool(0);
	struct data_list list;

	data_read(data_prefetch(data_map(data_range(0, 200), data_same, NULL, 4, 0), 3), pool, &list);
	data_expect_range(&list, 0, 200);
	data_each_once(4, data_map(data_range(0, 1000), data_same, NULL, 4, 0), 1000, pool);
	/* A window that is closed with work under way. */
	data_read(data_take(data_prefetch(data_map(data_range(0, 200), data_same, NULL, 4, 0), 9), 3), pool, &list);
	data_expect_range(&list, 0, 3);
	cr_assert_eq(weir_pool_destroy(pool, NULL), WEIR_OK);
}

/* Runs the tasks of the pool inside a call: as many more calls begin in them as may run at a time. */
struct nested {
	struct busy busy;
	weir_pool *pool;
};

static enum weir_status help_in_call(void *context, weir_tensor *const in[], weir_tensor *out[], weir_error *error)
{
	struct nested *nested = context;
	int now = weiri_fetch_add_relaxed(&nested->busy.running, 1) + 1;

	(void)error;
	if (now > weiri_load_relaxed(&nested->busy.most))
		weiri_store_relaxed(&nested->busy.most, now);
	(void)weir_pool_help(nested->pool, SIZE_MAX);
	(void)weiri_fetch_sub_relaxed(&nested->busy.running, 1);
	out[0] = weir_tensor_retain(in[0]);
	return WEIR_OK;
}

/* There are `at_once` helpers, and the taker works, too: one of them finds the limit. */
Test(dataset_ahead, a_taker_that_works_is_one_of_those_that_may)
{
	for (int at_once = 1; at_once < 5; at_once++) {
		struct nested nested = {.pool = data_pool(0)};
		struct data_list list;

		busy_init(&nested.busy, -1);
		data_read(data_map(data_range(0, 20), help_in_call, &nested, (size_t)at_once, 0), nested.pool, &list);
		data_expect_range(&list, 0, 20);
		cr_expect_eq(weiri_load_relaxed(&nested.busy.most), at_once);
		cr_assert_eq(weir_pool_destroy(nested.pool, NULL), WEIR_OK);
	}
}

static enum weir_status call_the_iterator(void *context, weir_tensor *const in[], weir_tensor *out[], weir_error *error)
{
	weir_iterator **iterator = context;
	weir_tensor *part;

	out[0] = weir_tensor_retain(in[0]);
	if (weir_iterator_destroy(*iterator, error) != WEIR_FAILED_PRECONDITION)
		return WEIR_INTERNAL;
	return weir_iterator_next(*iterator, WEIR_NO_DEADLINE, NULL, &part, 1, error);
}

Test(dataset_ahead, a_function_cannot_wait_for_its_own_iterator)
{
	weir_pool *pool = data_pool(1);

	for (int parallel = 0; parallel < 2; parallel++) {
		weir_iterator *iterator = NULL;
		weir_dataset *dataset = data_map(data_range(0, 2), call_the_iterator, &iterator, parallel ? 2 : 1, 0);
		weir_error error;
		int64_t number;

		iterator = data_iterate(dataset, pool);
		cr_expect_eq(data_next(iterator, &number, &error), WEIR_FAILED_PRECONDITION);
		cr_expect(strstr(error.message, "next was called by a function of its own pipeline") != NULL, "%s",
		          error.message);
		weir_dataset_release(dataset);
		cr_assert_eq(weir_iterator_destroy(iterator, NULL), WEIR_OK);
	}
	cr_assert_eq(weir_pool_destroy(pool, NULL), WEIR_OK);
}

/* -- ends -------------------------------------------------------------------------------------- */

static void *destroy(void *iterator)
{
	cr_expect_eq(weir_iterator_destroy(iterator, NULL), WEIR_OK);
	return NULL;
}

/* A taker waits for an element that is held back. Destroying ends the wait, and waits for the function. */
Test(dataset_ahead, destroy_ends_the_takers_and_waits_for_functions_that_run)
{
	weir_pool *pool = data_pool(2);
	struct busy busy;
	weir_dataset *dataset = data_map(data_range(0, 100), work, &busy, 4, 0);
	struct data_taker taker = {.iterator = data_iterate(dataset, pool)};
	pthread_t destroyer;
	int begun;

	busy_init(&busy, 0);
	weir_dataset_release(dataset);
	cr_assert_eq(pthread_create(&taker.thread, NULL, data_take_all, &taker), 0);
	/* Only a call that takes begins the map. */
	wait_until(has_begun, &busy, "the map to begin");
	cr_assert_eq(pthread_create(&destroyer, NULL, destroy, taker.iterator), 0);
	(void)pthread_join(taker.thread, NULL);
	cr_expect_eq(taker.status, WEIR_CANCELLED);
	cr_expect_eq(taker.list.count, 0);
	begun = weiri_load_relaxed(&busy.begun);
	cr_expect_leq(begun, 8, "4 that are worked on, and 4 that are finished");
	weiri_latch_set(&busy.let_go);
	(void)pthread_join(destroyer, NULL);
	cr_expect_eq(weiri_load_relaxed(&busy.running), 0);
	cr_assert_eq(weir_pool_destroy(pool, NULL), WEIR_OK);
}

Test(dataset_ahead, an_abandoned_pipeline_shuts_down_cleanly)
{
	weir_pool *pool = data_pool(2);

	for (size_t taken = 0; taken < 40; taken++) {
		weir_dataset *dataset = data_prefetch(data_repeat(data_map(data_prefetch(data_range(0, 10), 2), data_same, NULL,
		                                                           3, taken % 2 != 0 ? WEIR_DATASET_UNORDERED : 0),
		                                                  -1),
		                                      taken % 7);
		weir_iterator *iterator = data_iterate(dataset, pool);
		struct data_list list;

		weir_dataset_release(dataset);
		data_take_some(iterator, taken, &list);
		cr_expect_eq(list.count, taken);
		cr_assert_eq(weir_iterator_destroy(iterator, NULL), WEIR_OK);
	}
	cr_assert_eq(weir_pool_destroy(pool, NULL), WEIR_OK);
}

static enum weir_status keep_few(void *context, weir_tensor *const in[], bool *keep, weir_error *error)
{
	struct busy *busy = context;

	(void)error;
	/* [relaxed] a count, which orders nothing */
	(void)weiri_fetch_add_relaxed(&busy->begun, 1);
	*keep = data_number(in[0]) < 0;
	return WEIR_OK;
}

/* The filter looks for an element that never comes. */
Test(dataset_ahead, destroy_ends_a_filter_of_an_endless_input)
{
	for (int with_pool = 0; with_pool < 2; with_pool++) {
		weir_pool *pool = data_pool(1);
		struct busy busy = {0};
		weir_dataset *none = data_filter(data_repeat(data_range(0, 3), -1), keep_few, &busy);
		struct data_taker taker = {.iterator = NULL};

		if (with_pool)
			none = data_prefetch(none, 2);
		taker.iterator = data_iterate(none, with_pool ? pool : NULL);
		weir_dataset_release(none);
		cr_assert_eq(pthread_create(&taker.thread, NULL, data_take_all, &taker), 0);
		/* Only a call that takes begins the filter, and it does not end before the iterator. */
		wait_until(has_begun, &busy, "the filter to begin");
		cr_assert_eq(weir_iterator_destroy(taker.iterator, NULL), WEIR_OK);
		(void)pthread_join(taker.thread, NULL);
		cr_expect_eq(taker.status, WEIR_CANCELLED);
		cr_assert_eq(weir_pool_destroy(pool, NULL), WEIR_OK);
	}
}

/* Each sub-dataset begins only if the other one has begun, too. */
static enum weir_status meet(void *context, weir_tensor *const in[], weir_tensor *out[], weir_error *error)
{
	struct busy *busy = context;
	uint64_t deadline = weir_deadline_in(long_ns);

	(void)error;
	(void)weiri_fetch_add_relaxed(&busy->begun, 1); /* [relaxed] a count */
	while (weiri_load_relaxed(&busy->begun) < 2 && weir_now_ns() < deadline)
		(void)sched_yield();
	out[0] = weir_tensor_retain(in[0]);
	return WEIR_OK;
}

static enum weir_status one_that_meets(void *context, weir_tensor *const in[], weir_dataset **out, weir_error *error)
{
	int64_t number = data_number(in[0]);
	weir_dataset *one = NULL;

	(void)error;
	cr_assert_eq(weir_dataset_range(number, number + 1, 1, NULL, &one, NULL), WEIR_OK);
	*out = data_map(one, meet, context, 1, 0);
	return WEIR_OK;
}

Test(dataset_ahead, the_inputs_of_an_ordered_interleave_run_at_a_time)
{
	weir_pool *pool = data_pool(2);
	struct busy busy;
	struct data_list list;

	busy_init(&busy, -1);
	data_read(data_interleave(data_range(0, 2), one_that_meets, &busy, 2, 1, 2, 0), pool, &list);
	data_expect_range(&list, 0, 2);
	cr_assert_eq(weir_pool_destroy(pool, NULL), WEIR_OK);
}

static enum weir_status give_too_much(void *context, weir_tensor *const in[], weir_tensor *out[], weir_error *error)
{
	(void)context, (void)error;
	out[0] = weir_tensor_retain(in[0]);
	out[1] = data_number(in[0]) == 3 ? weir_tensor_retain(in[0]) : NULL;
	return WEIR_OK;
}

Test(dataset_ahead, a_map_that_gives_too_many_components_is_refused_in_place)
{
	weir_pool *pool = data_pool(2);

	for (int with_pool = 0; with_pool < 2; with_pool++) {
		weir_dataset *dataset = data_map(data_range(2, 5), give_too_much, NULL, 4, 0);
		weir_iterator *iterator = data_iterate(dataset, with_pool ? pool : NULL);
		weir_error error;
		int64_t number;

		cr_expect_eq(data_next(iterator, &number, &error), WEIR_OK);
		cr_expect_eq(data_next(iterator, &number, &error), WEIR_INVALID_ARGUMENT);
		cr_expect_str_eq(error.message, "map(4) of range: the function gave 2 components, expected 1");
		cr_expect_eq(data_next(iterator, &number, &error), WEIR_OK);
		cr_expect_eq(number, 4);
		weir_dataset_release(dataset);
		cr_assert_eq(weir_iterator_destroy(iterator, NULL), WEIR_OK);
	}
	cr_assert_eq(weir_pool_destroy(pool, NULL), WEIR_OK);
}

/* A function of a pipeline takes from another one, inside a task of their pool. */
static enum weir_status add_the_other(void *context, weir_tensor *const in[], weir_tensor *out[], weir_error *error)
{
	int64_t other = 0;
	enum weir_status status = data_next(context, &other, error);

	return status != WEIR_OK ? status : weir_tensor_scalar_i64(data_number(in[0]) + other, &out[0]);
}

Test(dataset_ahead, a_function_may_take_from_another_pipeline_of_the_same_pool)
{
	for (size_t threads = 0; threads < 3; threads++) {
		weir_pool *pool = data_pool(threads);
		weir_dataset *others = data_prefetch(data_map(data_range(0, 100), data_same, NULL, 3, 0), 2);
		weir_iterator *other = data_iterate(others, pool);
		struct data_list list;
		int64_t sum = 0;

		data_read(data_prefetch(data_map(data_range(0, 100), add_the_other, other, 3, 0), 2), pool, &list);
		cr_expect_eq(list.count, 100);
		for (size_t i = 0; i < list.count; i++)
			sum += list.at[i];
		cr_expect_eq(sum, 2 * 99 * 50);
		weir_dataset_release(others);
		cr_assert_eq(weir_iterator_destroy(other, NULL), WEIR_OK);
		cr_assert_eq(weir_pool_destroy(pool, NULL), WEIR_OK);
	}
}

static enum weir_status twice(void *context, weir_tensor *const in[], weir_tensor *out[], weir_error *error)
{
	(void)context, (void)error;
	return weir_tensor_scalar_i64(2 * data_number(in[0]), &out[0]);
}

static enum weir_status with_its_square(void *context, weir_tensor *const in[], weir_tensor *out[], weir_error *error)
{
	int64_t number = data_number(in[0]);

	(void)context, (void)error;
	out[0] = weir_tensor_retain(in[0]);
	return weir_tensor_scalar_i64(number * number, &out[1]);
}

static enum weir_status square_alone(void *context, weir_tensor *const in[], weir_tensor *out[], weir_error *error)
{
	(void)context, (void)error;
	out[0] = weir_tensor_retain(in[1]);
	return WEIR_OK;
}

/* A slot holds what comes and what goes: the wider of the two. */
Test(dataset_ahead, a_parallel_map_may_drop_components)
{
	static const enum weir_dtype types[2] = {WEIR_I64, WEIR_I64};
	struct weir_dataset_options wide = {WEIR_DATASET_OPTIONS_INIT, .dtypes = types, .width = 2};
	struct weir_dataset_options narrow = {WEIR_DATASET_OPTIONS_INIT, .dtypes = types, .width = 1, .at_once = 3};
	weir_dataset *range = data_range(0, 100), *both = NULL, *squares = NULL;
	weir_pool *pool = data_pool(2);
	struct data_list list;

	cr_assert_eq(weir_dataset_map(range, with_its_square, NULL, &wide, &both, NULL), WEIR_OK);
	cr_assert_eq(weir_dataset_map(both, square_alone, NULL, &narrow, &squares, NULL), WEIR_OK);
	data_read(squares, pool, &list);
	cr_assert_eq(list.count, 100);
	for (size_t i = 0; i < 100; i++)
		cr_expect_eq(list.at[i], (int64_t)(i * i));
	weir_dataset_release(both);
	weir_dataset_release(range);
	cr_assert_eq(weir_pool_destroy(pool, NULL), WEIR_OK);
}

/* A window whose memory is missing, at any place of the pipeline and in any pass. */
static enum weir_status read_ahead(const weir_allocator *allocator, void *pool)
{
	struct weir_dataset_options plain = {WEIR_DATASET_OPTIONS_INIT, .allocator = allocator}, options = plain;
	struct weir_iterator_options reading = {WEIR_ITERATOR_OPTIONS_INIT, .pool = pool, .allocator = allocator};
	weir_dataset *stage[4] = {NULL};
	weir_iterator *iterator = NULL;
	enum weir_status status = weir_dataset_range(0, 30, 1, &plain, &stage[0], NULL), first = WEIR_OK;
	int64_t sum = 0;

	options.at_once = 3;
	if (status == WEIR_OK)
		status = weir_dataset_map(stage[0], twice, NULL, &options, &stage[1], NULL);
	if (status == WEIR_OK)
		status = weir_dataset_repeat(stage[1], 2, &plain, &stage[2], NULL);
	if (status == WEIR_OK)
		status = weir_dataset_prefetch(stage[2], 2, &plain, &stage[3], NULL);
	if (status == WEIR_OK)
		status = weir_iterator_create(stage[3], &reading, &iterator, NULL);
	while (status == WEIR_OK) {
		int64_t number = 0;
		enum weir_status got = data_next(iterator, &number, NULL);

		if (got == WEIR_OUT_OF_RANGE)
			break;
		first = first == WEIR_OK ? got : first;
		sum += number;
	}
	if (status == WEIR_OK)
		cr_expect_eq(sum, 2 * 29 * 30);
	cr_expect_eq(weir_iterator_destroy(iterator, NULL), WEIR_OK);
	for (size_t i = 0; i < 4; i++)
		weir_dataset_release(stage[i]);
	return status == WEIR_OK ? first : status;
}

static enum weir_status two_of(void *context, weir_tensor *const in[], weir_dataset **out, weir_error *error)
{
	int64_t number = data_number(in[0]);

	(void)context;
	return weir_dataset_range(10 * number, 10 * number + 2, 1, NULL, out, error);
}

/* An input whose window finds no memory has this error in its place. */
static enum weir_status read_interleaved(const weir_allocator *allocator, void *pool)
{
	struct weir_dataset_options options = {WEIR_DATASET_OPTIONS_INIT, .at_once = 2, .cycle = 2, .block = 1};
	struct weir_iterator_options reading = {WEIR_ITERATOR_OPTIONS_INIT, .pool = pool, .allocator = allocator};
	weir_dataset *range = data_range(0, 4), *pairs = NULL;
	weir_iterator *iterator = NULL;
	enum weir_status status, first = WEIR_OK;
	size_t count = 0;

	cr_assert_eq(weir_dataset_interleave(range, two_of, NULL, &options, &pairs, NULL), WEIR_OK);
	status = weir_iterator_create(pairs, &reading, &iterator, NULL);
	while (status == WEIR_OK) {
		int64_t number = 0;
		enum weir_status got = data_next(iterator, &number, NULL);

		if (got == WEIR_OUT_OF_RANGE)
			break;
		count += got == WEIR_OK;
		first = first == WEIR_OK ? got : first;
	}
	if (status == WEIR_OK)
		cr_expect(count == 8 || (first != WEIR_OK && count == 6), "%zu elements", count);
	cr_expect_eq(weir_iterator_destroy(iterator, NULL), WEIR_OK);
	weir_dataset_release(pairs);
	weir_dataset_release(range);
	return status == WEIR_OK ? first : status;
}

Test(dataset_ahead, an_input_that_finds_no_memory_is_an_error_in_its_place)
{
	weir_pool *pool = data_pool(0); /* so that each run makes the same allocations */

	cr_expect_gt(fail_each_allocation(read_interleaved, pool), 5);
	cr_assert_eq(weir_pool_destroy(pool, NULL), WEIR_OK);
}

Test(dataset_ahead, each_allocation_that_fails_loses_nothing)
{
	weir_pool *pool = data_pool(0); /* so that each run makes the same allocations */

	cr_expect_gt(fail_each_allocation(read_ahead, pool), 8);
	cr_assert_eq(weir_pool_destroy(pool, NULL), WEIR_OK);
}
