/*
 * test_conformance_dataset.c - the rows of conformance_rows.tsv about datasets, one test for each
 * id.
 */
#include "dataset_kit.h"

#include <pthread.h>
#include <stdio.h>
#include <weir/weir.h>

#include "run/countdown.h"

static const uint64_t eleven = 11, twelve = 12, zero = 0;

static bool same_order(weir_dataset *a, weir_dataset *b)
{
	struct data_list first, second;

	data_read(a, NULL, &first);
	data_read(b, NULL, &second);
	return data_equal(&first, &second);
}

/* -- shuffle ----------------------------------------------------------------------------------- */

Test(conformance_dataset, DAT_001_a_shuffle_keeps_the_elements_and_its_seed_decides_the_order)
{
	struct data_list list;

	data_read(data_shuffle(data_range(0, 100), 100, &eleven, 0), NULL, &list);
	data_sort(&list);
	data_expect_range(&list, 0, 100);
	cr_expect(same_order(data_shuffle(data_range(0, 100), 100, &eleven, 0),
	                     data_shuffle(data_range(0, 100), 100, &eleven, 0)));
	cr_expect_not(same_order(data_shuffle(data_range(0, 100), 100, &eleven, 0),
	                         data_shuffle(data_range(0, 100), 100, &twelve, 0)));
	data_read(data_shuffle(data_range(0, 100), 2, &eleven, 0), NULL, &list);
	data_sort(&list);
	data_expect_range(&list, 0, 100);
	data_read(data_shuffle(data_range(0, 0), 100, &eleven, 0), NULL, &list);
	cr_expect_eq(list.count, 0);
}

Test(conformance_dataset, DAT_002_seed_0_is_a_seed)
{
	cr_expect(same_order(data_shuffle(data_range(0, 50), 10, &zero, 0), data_shuffle(data_range(0, 50), 10, &zero, 0)));
}

Test(conformance_dataset, DAT_003_each_element_comes_in_each_of_10_passes)
{
	weir_dataset *dataset = data_repeat(data_shuffle(data_range(0, 10), 10, NULL, 0), -1);
	weir_iterator *iterator = data_iterate(dataset, NULL);
	int counts[10] = {0};
	struct data_list list;

	data_take_some(iterator, 100, &list);
	for (size_t i = 0; i < 100; i++)
		counts[list.at[i]]++;
	for (int i = 0; i < 10; i++)
		cr_expect_eq(counts[i], 10);
	weir_dataset_release(dataset);
	cr_expect_eq(weir_iterator_destroy(iterator, NULL), WEIR_OK);
}

Test(conformance_dataset, DAT_004_a_seed_reproduces_the_order_in_both_modes)
{
	for (uint32_t flags = 0; flags <= WEIR_DATASET_SAME_EACH_TIME; flags += WEIR_DATASET_SAME_EACH_TIME)
		cr_expect(same_order(data_repeat(data_shuffle(data_range(0, 30), 9, &eleven, flags), 3),
		                     data_repeat(data_shuffle(data_range(0, 30), 9, &eleven, flags), 3)));
}

Test(conformance_dataset, DAT_005_two_iterators_of_a_shuffle_without_a_seed_differ)
{
	weir_dataset *dataset = data_shuffle(data_range(0, 100), 100, NULL, 0);

	cr_expect_not(same_order(weir_dataset_retain(dataset), weir_dataset_retain(dataset)));
	weir_dataset_release(dataset);
}

static bool passes_are_equal(uint32_t flags, const uint64_t *seed)
{
	struct data_list list;

	data_read(data_repeat(data_shuffle(data_range(0, 100), 100, seed, flags), 2), NULL, &list);
	cr_assert_eq(list.count, 200);
	return memcmp(list.at, list.at + 100, 100 * sizeof(list.at[0])) == 0;
}

Test(conformance_dataset, DAT_006_two_passes_are_equal_only_if_the_same_each_time)
{
	cr_expect_not(passes_are_equal(0, NULL));
	cr_expect_not(passes_are_equal(0, &eleven));
	cr_expect(passes_are_equal(WEIR_DATASET_SAME_EACH_TIME, NULL));
	cr_expect(passes_are_equal(WEIR_DATASET_SAME_EACH_TIME, &eleven));
}

Test(conformance_dataset, DAT_007_two_iterations_are_equal_only_if_the_same_each_time)
{
	for (int seeded = 0; seeded < 2; seeded++) {
		weir_dataset *fresh = data_shuffle(data_range(0, 100), 100, seeded ? &eleven : NULL, 0);
		weir_dataset *same =
			data_shuffle(data_range(0, 100), 100, seeded ? &eleven : NULL, WEIR_DATASET_SAME_EACH_TIME);

		cr_expect_not(same_order(weir_dataset_retain(fresh), weir_dataset_retain(fresh)));
		cr_expect(same_order(weir_dataset_retain(same), weir_dataset_retain(same)));
		weir_dataset_release(fresh);
		weir_dataset_release(same);
	}
}

Test(conformance_dataset, DAT_009_two_shuffles_are_equal_only_if_they_have_one_seed)
{
	cr_expect(same_order(data_shuffle(data_range(0, 100), 100, &eleven, 0),
	                     data_shuffle(data_range(0, 100), 100, &eleven, 0)));
	cr_expect_not(
		same_order(data_shuffle(data_range(0, 100), 100, NULL, 0), data_shuffle(data_range(0, 100), 100, NULL, 0)));
}

/* Fails once, at its first element. */
static enum weir_status fail_first(void *context, weir_tensor *const in[], weir_tensor *out[], weir_error *error)
{
	int *calls = context;

	(void)error;
	if ((*calls)++ == 0)
		return WEIR_DATA_LOSS;
	out[0] = weir_tensor_retain(in[0]);
	return WEIR_OK;
}

Test(conformance_dataset, DAT_011_an_error_comes_first_and_then_the_end)
{
	int calls = 0;
	weir_dataset *dataset =
		data_repeat(data_shuffle(data_cache(data_map(data_range(0, 1), fail_first, &calls, 1, 0)), 4, &eleven, 0), 1);
	weir_iterator *iterator = data_iterate(dataset, NULL);
	int64_t number;

	cr_expect_eq(data_next(iterator, &number, NULL), WEIR_DATA_LOSS);
	for (int i = 0; i < 3; i++)
		cr_expect_eq(data_next(iterator, &number, NULL), WEIR_OUT_OF_RANGE);
	weir_dataset_release(dataset);
	cr_expect_eq(weir_iterator_destroy(iterator, NULL), WEIR_OK);
}

Test(conformance_dataset, DAT_012_a_shuffle_that_is_made_anew_without_a_seed_differs)
{
	for (uint32_t flags = 0; flags <= WEIR_DATASET_SAME_EACH_TIME; flags += WEIR_DATASET_SAME_EACH_TIME)
		cr_expect_not(same_order(data_shuffle(data_range(0, 100), 100, NULL, flags),
		                         data_shuffle(data_range(0, 100), 100, NULL, flags)));
}

Test(conformance_dataset, DAT_013_a_position_reproduces_the_tail)
{
	for (uint64_t position = 0; position <= 40; position += 13) {
		weir_dataset *dataset = data_repeat(data_shuffle(data_range(0, 20), 7, &eleven, 0), 2);
		struct weir_iterator_options options = {WEIR_ITERATOR_OPTIONS_INIT, .iteration = 1, .position = position};
		weir_iterator *iterator = NULL;
		struct data_list whole, tail;

		data_read(weir_dataset_retain(dataset), NULL, &whole);
		cr_assert_eq(weir_iterator_create(dataset, &options, &iterator, NULL), WEIR_OK);
		data_take_some(iterator, 50, &tail);
		cr_assert_eq(tail.count, 40 - position);
		cr_expect_eq(memcmp(tail.at, whole.at + position, tail.count * sizeof(tail.at[0])), 0);
		weir_dataset_release(dataset);
		cr_expect_eq(weir_iterator_destroy(iterator, NULL), WEIR_OK);
	}
}

/* -- batch ------------------------------------------------------------------------------------- */

static void expect_batches(int64_t count, size_t size, uint32_t flags, size_t at_once, weir_pool *pool)
{
	weir_dataset *numbers = data_range(0, count), *dataset;
	weir_iterator *iterator;
	weir_tensor *part;
	int64_t next = 0, left = count;

	if (at_once > 1)
		numbers = data_prefetch(numbers, at_once);
	dataset = data_batch(numbers, size, flags);
	iterator = data_iterate(dataset, pool);
	while (left > 0 && ((size_t)left >= size || (flags & WEIR_DATASET_DROP_REMAINDER) == 0)) {
		int64_t rows = (size_t)left < size ? left : (int64_t)size;

		cr_assert_eq(weir_iterator_next(iterator, WEIR_NO_DEADLINE, NULL, &part, 1, NULL), WEIR_OK);
		cr_assert_eq(weir_tensor_shape(part)->rank, 1);
		cr_assert_eq(weir_tensor_shape(part)->dims[0], rows);
		for (int64_t i = 0; i < rows; i++)
			cr_expect_eq(((const int64_t *)weir_tensor_data(part))[i], next++);
		weir_tensor_release(part);
		left -= rows;
	}
	cr_expect_eq(weir_iterator_next(iterator, WEIR_NO_DEADLINE, NULL, &part, 1, NULL), WEIR_OUT_OF_RANGE);
	weir_dataset_release(dataset);
	cr_expect_eq(weir_iterator_destroy(iterator, NULL), WEIR_OK);
}

Test(conformance_dataset, DAT_014_batches_are_exact_with_and_without_the_remainder)
{
	weir_pool *pool = data_pool(2);

	for (uint32_t flags = 0; flags <= WEIR_DATASET_DROP_REMAINDER; flags += WEIR_DATASET_DROP_REMAINDER) {
		for (size_t at_once = 1; at_once <= 4; at_once += 3) {
			expect_batches(28, 14, flags, at_once, pool);
			expect_batches(28, 15, flags, at_once, pool);
			expect_batches(0, 14, flags, at_once, pool);
		}
	}
	cr_assert_eq(weir_pool_destroy(pool, NULL), WEIR_OK);
}

Test(conformance_dataset, DAT_015_a_batch_of_0_is_refused)
{
	weir_dataset *range = data_range(0, 1), *out = NULL;

	cr_expect_eq(weir_dataset_batch(range, 0, NULL, &out, NULL), WEIR_INVALID_ARGUMENT);
	weir_dataset_release(range);
}

static enum weir_status as_vector(void *context, weir_tensor *const in[], weir_tensor *out[], weir_error *error)
{
	int64_t zeros[8] = {0};
	weir_shape shape = {1, {data_number(in[0])}};

	(void)context, (void)error;
	return weir_tensor_copy_of(WEIR_I64, &shape, zeros, NULL, &out[0]);
}

Test(conformance_dataset, DAT_017_shapes_that_differ_are_named)
{
	weir_dataset *dataset = data_batch(data_map(data_range(3, 5), as_vector, NULL, 1, 0), 2, 0);
	weir_iterator *iterator = data_iterate(dataset, NULL);
	weir_tensor *part;
	weir_error error;

	cr_expect_eq(weir_iterator_next(iterator, 0, NULL, &part, 1, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_str_eq(error.message, "batch(2) of map of range: component 0: element 0 is [3], element 1 is [4]");
	weir_dataset_release(dataset);
	cr_expect_eq(weir_iterator_destroy(iterator, NULL), WEIR_OK);
}

/* Holds element 0 back until all others of its window have run. */
struct slow_first {
	_Atomic(int) others;
	int wanted;
};

static enum weir_status hold_first(void *context, weir_tensor *const in[], weir_tensor *out[], weir_error *error)
{
	struct slow_first *slow = context;

	(void)error;
	/* [relaxed] counts */
	if (data_number(in[0]) != 0)
		(void)weiri_fetch_add_relaxed(&slow->others, 1);
	while (data_number(in[0]) == 0 && weiri_load_relaxed(&slow->others) < slow->wanted)
		(void)sched_yield();
	out[0] = weir_tensor_retain(in[0]);
	return WEIR_OK;
}

Test(conformance_dataset, DAT_018_the_order_is_kept_unless_it_is_given_up)
{
	weir_pool *pool = data_pool(2);
	struct slow_first slow = {.wanted = 2};
	struct data_list list;

	data_read(data_map(data_range(0, 40), hold_first, &slow, 3, 0), pool, &list);
	data_expect_range(&list, 0, 40);
	slow.others = 0;
	slow.wanted = 39;
	data_read(data_map(data_range(0, 40), hold_first, &slow, 3, WEIR_DATASET_UNORDERED), pool, &list);
	cr_assert_eq(list.count, 40);
	cr_expect_eq(list.at[39], 0, "the others overtook it");
	cr_assert_eq(weir_pool_destroy(pool, NULL), WEIR_OK);
}

/* -- prefetch ---------------------------------------------------------------------------------- */

Test(conformance_dataset, DAT_021_a_prefetch_of_any_size_gives_the_input_in_order)
{
	weir_pool *pool = data_pool(2);
	const size_t sizes[] = {0, 1, 42, WEIR_DATASET_MAX_AHEAD};

	for (size_t i = 0; i < 4; i++) {
		struct data_list list;

		data_read(data_prefetch(data_range(0, 100), sizes[i]), pool, &list);
		data_expect_range(&list, 0, 100);
	}
	cr_assert_eq(weir_pool_destroy(pool, NULL), WEIR_OK);
}

struct endless {
	struct weiri_latch begun, let_go;
};

static enum weir_status never(void *context, void *state, weir_tensor *out[], weir_error *error)
{
	struct endless *endless = context;

	(void)state, (void)out, (void)error;
	weiri_latch_set(&endless->begun);
	while (!weiri_latch_is_set(&endless->let_go))
		(void)sched_yield();
	return WEIR_OUT_OF_RANGE;
}

struct blocked {
	weir_iterator *iterator;
	struct endless *endless;
	enum weir_status status;
};

static void *take_one(void *context)
{
	struct blocked *blocked = context;
	int64_t number;

	blocked->status = data_next(blocked->iterator, &number, NULL);
	weiri_latch_set(&blocked->endless->let_go);
	return NULL;
}

Test(conformance_dataset, DAT_024_destroy_cancels_a_taker_of_a_producer_that_never_ends)
{
	weir_pool *pool = data_pool(1);
	struct endless endless;
	struct weir_dataset_generator generator = {WEIR_DATASET_GENERATOR_INIT, NULL, never, NULL, &endless};
	enum weir_dtype dtype = WEIR_I64;
	struct weir_dataset_options options = {WEIR_DATASET_OPTIONS_INIT, .dtypes = &dtype, .width = 1};
	weir_dataset *dataset = NULL;
	struct blocked blocked = {.endless = &endless};
	pthread_t thread;

	weiri_latch_init(&endless.begun);
	weiri_latch_init(&endless.let_go);
	cr_assert_eq(weir_dataset_generate(&generator, &options, &dataset, NULL), WEIR_OK);
	dataset = data_prefetch(dataset, 2);
	blocked.iterator = data_iterate(dataset, pool);
	cr_assert_eq(pthread_create(&thread, NULL, take_one, &blocked), 0);
	while (!weiri_latch_is_set(&endless.begun))
		(void)sched_yield();
	/* The taker ends with the destroy, and only then lets the producer end. */
	cr_assert_eq(weir_iterator_destroy(blocked.iterator, NULL), WEIR_OK);
	(void)pthread_join(thread, NULL);
	cr_expect_eq(blocked.status, WEIR_CANCELLED);
	weir_dataset_release(dataset);
	cr_assert_eq(weir_pool_destroy(pool, NULL), WEIR_OK);
}

/* -- repeat ------------------------------------------------------------------------------------ */

Test(conformance_dataset, DAT_026_a_dataset_is_repeated_0_3_and_7_times)
{
	for (int64_t times = 0; times <= 7; times += times == 0 ? 3 : 4) {
		struct data_list list;

		data_read(data_repeat(data_range(0, 3), times), NULL, &list);
		cr_assert_eq(list.count, (size_t)times * 3);
		for (size_t i = 0; i < list.count; i++)
			cr_expect_eq(list.at[i], (int64_t)(i % 3));
	}
}

Test(conformance_dataset, DAT_027_an_endless_repetition_goes_on)
{
	weir_dataset *dataset = data_repeat(data_range(0, 3), -1);
	weir_iterator *iterator = data_iterate(dataset, NULL);
	struct data_list list;

	data_take_some(iterator, 51, &list);
	cr_assert_eq(list.count, 51);
	cr_expect_eq(list.at[50], 50 % 3);
	weir_dataset_release(dataset);
	cr_expect_eq(weir_iterator_destroy(iterator, NULL), WEIR_OK);
}

Test(conformance_dataset, DAT_028_repetitions_multiply)
{
	struct data_list list;

	data_read(data_repeat(data_repeat(data_range(0, 1), 7), 14), NULL, &list);
	cr_expect_eq(list.count, 98);
}

Test(conformance_dataset, DAT_029_an_endless_repetition_of_nothing_ends)
{
	weir_pool *pool = data_pool(1);
	struct data_list list;

	data_read(data_repeat(data_range(0, 0), -1), NULL, &list);
	cr_expect_eq(list.count, 0);
	data_read(data_repeat(data_prefetch(data_range(0, 0), 3), -1), pool, &list);
	cr_expect_eq(list.count, 0);
	cr_assert_eq(weir_pool_destroy(pool, NULL), WEIR_OK);
}

/* -- interleave -------------------------------------------------------------------------------- */

/* The number, as often as it says. 13 is an error. */
static enum weir_status repeated(void *context, weir_tensor *const in[], weir_dataset **out, weir_error *error)
{
	int64_t number = data_number(in[0]);
	weir_dataset *one = NULL;
	enum weir_status status = weir_dataset_range(number, number + 1, 1, NULL, &one, error);

	(void)context;
	if (status == WEIR_OK)
		status = number == 13 ? WEIR_DATA_LOSS : weir_dataset_repeat(one, number, NULL, out, error);
	weir_dataset_release(one);
	return status;
}

static void expect_interleaved(const int64_t inputs[], size_t input_count, size_t cycle, size_t block, size_t at_once,
                               weir_pool *pool, const int64_t expected[], size_t count)
{
	struct data_list list;

	data_read(data_interleave(data_of_numbers(inputs, input_count), repeated, NULL, cycle, block, at_once, 0), pool,
	          &list);
	cr_assert_eq(list.count, count, "cycle %zu, block %zu: %zu elements, expected %zu", cycle, block, list.count,
	             count);
	for (size_t i = 0; i < count; i++)
		cr_expect_eq(list.at[i], expected[i], "cycle %zu, block %zu, element %zu: %lld, expected %lld", cycle, block, i,
		             (long long)list.at[i], (long long)expected[i]);
}

Test(conformance_dataset, DAT_030_five_orders_of_4_5_6)
{
	static const int64_t inputs[] = {4, 5, 6}, twice[] = {4, 5, 6, 4, 5, 6};
	static const int64_t one_one[] = {4, 4, 4, 4, 5, 5, 5, 5, 5, 6, 6, 6, 6, 6, 6};
	static const int64_t two_one[] = {4, 5, 4, 5, 4, 5, 4, 5, 5, 6, 6, 6, 6, 6, 6};
	static const int64_t two_three[] = {4, 4, 4, 5, 5, 5, 4, 5, 5, 6, 6, 6, 6, 6, 6};
	static const int64_t seven_two[] = {4, 4, 5, 5, 6, 6, 4, 4, 5, 5, 6, 6, 4, 4, 5,
	                                    5, 6, 6, 4, 4, 5, 5, 6, 6, 5, 6, 6, 5, 6, 6};

	expect_interleaved(inputs, 3, 1, 1, 1, NULL, one_one, 15);
	expect_interleaved(inputs, 3, 2, 1, 1, NULL, two_one, 15);
	expect_interleaved(inputs, 3, 2, 3, 1, NULL, two_three, 15);
	expect_interleaved(inputs, 3, 1, 3, 1, NULL, one_one, 15);
	expect_interleaved(twice, 6, 7, 2, 1, NULL, seven_two, 30);
}

Test(conformance_dataset, DAT_031_orders_are_the_same_with_empty_inputs_and_in_parallel)
{
	static const int64_t inputs[] = {4, 0, 6, 0, 0, 5, 0};
	weir_pool *pool = data_pool(2);

	for (size_t cycle = 1; cycle <= 7; cycle += 3) {
		for (size_t block = 1; block <= 3; block++) {
			struct data_list list;

			data_read(data_interleave(data_of_numbers(inputs, 7), repeated, NULL, cycle, block, 1, 0), NULL, &list);
			cr_expect_eq(list.count, 15);
			expect_interleaved(inputs, 7, cycle, block, 3, pool, list.at, list.count);
		}
	}
	cr_assert_eq(weir_pool_destroy(pool, NULL), WEIR_OK);
}

Test(conformance_dataset, DAT_032_a_bad_element_is_an_error_in_its_place)
{
	static const int64_t inputs[] = {2, 13, 3};
	static const int64_t expected[] = {2, DATA_ERROR, 2, 3, 3, 3};
	weir_pool *pool = data_pool(2);

	expect_interleaved(inputs, 3, 2, 1, 1, NULL, expected, 6);
	expect_interleaved(inputs, 3, 2, 1, 2, pool, expected, 6);
	cr_assert_eq(weir_pool_destroy(pool, NULL), WEIR_OK);
}

Test(conformance_dataset, DAT_033_the_end_of_an_interleave_stays)
{
	struct data_list list;

	data_read(data_interleave(data_range(1, 4), repeated, NULL, 2, 1, 1, 0), NULL, &list); /* asks three times */
	cr_expect_eq(list.count, 6);
}

/* Two numbers: 10 n, 10 n + 1; through the map of the context. */
static enum weir_status two_of(void *context, weir_tensor *const in[], weir_dataset **out, weir_error *error)
{
	int64_t number = data_number(in[0]);
	weir_dataset *numbers = NULL;

	(void)error;
	cr_assert_eq(weir_dataset_range(10 * number, 10 * number + 2, 1, NULL, &numbers, NULL), WEIR_OK);
	*out = data_map(numbers, context != NULL ? hold_first : data_same, context, 1, 0);
	return WEIR_OK;
}

/* With a pool whose tasks run in the taker, inputs become ready in their order. */
Test(conformance_dataset, DAT_034_unordered_inputs_that_are_ready_in_order_come_in_order)
{
	weir_pool *pool = data_pool(0);
	struct data_list ordered, list;

	data_read(data_interleave(data_range(0, 4), two_of, NULL, 4, 2, 1, 0), NULL, &ordered);
	data_read(data_interleave(data_range(0, 4), two_of, NULL, 4, 2, 2, WEIR_DATASET_UNORDERED), pool, &list);
	cr_expect(data_equal(&ordered, &list));
	cr_assert_eq(weir_pool_destroy(pool, NULL), WEIR_OK);
}

Test(conformance_dataset, DAT_035_a_late_input_is_overtaken_by_its_neighbour)
{
	weir_pool *pool = data_pool(2);
	struct slow_first slow = {.wanted = 3}; /* 10, 11 and 1 come before 0 has returned: 1 cannot; so 10 and 11 */
	weir_dataset *dataset = data_interleave(data_range(0, 2), two_of, &slow, 2, 1, 2, WEIR_DATASET_UNORDERED);
	weir_iterator *iterator = data_iterate(dataset, pool);
	struct data_list list;

	data_take_some(iterator, 2, &list);
	data_expect_range(&list, 10, 12);
	(void)weiri_fetch_add_relaxed(&slow.others, 3); /* [relaxed] lets the first one go on */
	data_take_some(iterator, 4, &list);
	data_expect_range(&list, 0, 2);
	weir_dataset_release(dataset);
	cr_assert_eq(weir_iterator_destroy(iterator, NULL), WEIR_OK);
	cr_assert_eq(weir_pool_destroy(pool, NULL), WEIR_OK);
}

/* -- map --------------------------------------------------------------------------------------- */

static void taken_by(size_t threads, size_t at_once, size_t count)
{
	weir_pool *pool = data_pool(2);

	data_each_once(threads, data_map(data_range(0, (int64_t)count), data_same, NULL, at_once, 0), count, pool);
	cr_assert_eq(weir_pool_destroy(pool, NULL), WEIR_OK);
}

Test(conformance_dataset, DAT_037_eight_threads_take_each_element_once)
{
	taken_by(8, 1, 1000);
}

Test(conformance_dataset, DAT_038_parallel_maps_with_a_prefetch_keep_the_order)
{
	weir_pool *pool = data_pool(2);

	for (size_t at_once = 1; at_once <= 8; at_once++) {
		for (size_t ahead = 1; ahead <= 100; ahead *= 10) {
			struct data_list list;

			data_read(data_prefetch(data_map(data_range(0, 98), data_same, NULL, at_once, 0), ahead), pool, &list);
			data_expect_range(&list, 0, 98);
		}
	}
	cr_assert_eq(weir_pool_destroy(pool, NULL), WEIR_OK);
}

Test(conformance_dataset, DAT_039_sixty_four_threads_take_each_element_of_a_parallel_map_once)
{
	taken_by(64, 4, 1000);
}

Test(conformance_dataset, DAT_040_an_abandoned_parallel_map_shuts_down)
{
	weir_pool *pool = data_pool(2);

	for (size_t taken = 0; taken < 3; taken++) {
		weir_dataset *dataset = data_prefetch(data_map(data_repeat(data_range(0, 9), -1), data_same, NULL, 8, 0), 100);
		weir_iterator *iterator = data_iterate(dataset, pool);
		struct data_list list;

		data_take_some(iterator, taken, &list);
		weir_dataset_release(dataset);
		cr_expect_eq(weir_iterator_destroy(iterator, NULL), WEIR_OK);
	}
	cr_assert_eq(weir_pool_destroy(pool, NULL), WEIR_OK);
}

static enum weir_status fail_at_3(void *context, weir_tensor *const in[], weir_tensor *out[], weir_error *error)
{
	(void)context, (void)error;
	out[0] = weir_tensor_retain(in[0]);
	return data_number(in[0]) == 3 ? WEIR_INVALID_ARGUMENT : WEIR_OK;
}

static void the_fourth_fails(size_t at_once, size_t ahead)
{
	static const int64_t expected[5] = {0, 1, 2, DATA_ERROR, 4};
	weir_pool *pool = data_pool(2);
	struct data_list list;

	data_read(data_prefetch(data_map(data_range(0, 5), fail_at_3, NULL, at_once, 0), ahead), pool, &list);
	cr_assert_eq(list.count, 5);
	cr_expect_eq(memcmp(list.at, expected, sizeof(expected)), 0);
	cr_assert_eq(weir_pool_destroy(pool, NULL), WEIR_OK);
}

Test(conformance_dataset, DAT_041_the_elements_before_a_bad_one_come_first)
{
	weir_pool *pool = data_pool(2);
	weir_dataset *dataset = data_map(data_range(0, 5), fail_at_3, NULL, 2, 0);
	weir_iterator *iterator = data_iterate(dataset, pool);
	struct data_list list;

	data_take_some(iterator, 3, &list);
	data_expect_range(&list, 0, 3);
	weir_dataset_release(dataset);
	cr_expect_eq(weir_iterator_destroy(iterator, NULL), WEIR_OK);
	cr_assert_eq(weir_pool_destroy(pool, NULL), WEIR_OK);
}

Test(conformance_dataset, DAT_042_the_fourth_element_fails_the_fifth_comes_and_then_the_end)
{
	the_fourth_fails(1, 0);
	the_fourth_fails(2, 0);
}

Test(conformance_dataset, DAT_043_errors_pass_through_a_prefetch)
{
	the_fourth_fails(1, 2);
	the_fourth_fails(4, 3);
}

static enum weir_status add_of_the_other(void *context, weir_tensor *const in[], weir_tensor *out[], weir_error *error)
{
	int64_t other = 0;
	enum weir_status status = data_next(context, &other, error);

	return status != WEIR_OK ? status : weir_tensor_scalar_i64(1000 * data_number(in[0]) + other, &out[0]);
}

Test(conformance_dataset, DAT_044_a_map_over_an_iterator_pairs_the_elements_in_order)
{
	weir_dataset *other = data_range(500, 510);
	weir_iterator *captured = data_iterate(other, NULL);
	struct data_list list;

	data_read(data_map(data_range(0, 10), add_of_the_other, captured, 1, 0), NULL, &list);
	cr_assert_eq(list.count, 10);
	for (int64_t i = 0; i < 10; i++)
		cr_expect_eq(list.at[i], 1000 * i + 500 + i);
	weir_dataset_release(other);
	cr_expect_eq(weir_iterator_destroy(captured, NULL), WEIR_OK);
}
