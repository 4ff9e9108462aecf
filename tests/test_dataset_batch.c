/*
 * test_dataset_batch.c - batches read by one thread without a pool: rows that fit and rows that do not,
 * padding, slices, errors between the rows, memory that is missing.
 */
#include "dataset_kit.h"

#include <weir/weir.h>

#include "failing_allocator.h"

static enum weir_status as_vector(void *context, weir_tensor *const in[], weir_tensor *out[], weir_error *error)
{
	int64_t length = data_number(in[0]);
	weir_shape shape = {1, {length}};
	int64_t numbers[8] = {length, length, length, length, length, length, length, length};

	(void)context, (void)error;
	return weir_tensor_copy_of(WEIR_I64, &shape, numbers, NULL, &out[0]);
}

Test(dataset_batch, shapes_that_do_not_batch_are_named_and_the_rows_are_gone)
{
	weir_dataset *dataset = data_batch(data_map(data_range(1, 6), as_vector, NULL, 0, 0), 2, 0);
	weir_iterator *iterator = data_iterate(dataset, NULL);
	weir_tensor *part = NULL;
	weir_error error;

	weir_dataset_release(dataset);
	for (int i = 0; i < 2; i++) {
		cr_expect_eq(weir_iterator_next(iterator, 0, NULL, &part, 1, &error), WEIR_INVALID_ARGUMENT);
		cr_expect_str_eq(error.message,
		                 i == 0 ? "batch(2) of map of range: component 0: element 0 is [1], element 1 is [2]"
		                        : "batch(2) of map of range: component 0: element 0 is [3], element 1 is [4]");
	}
	cr_expect_eq(weir_iterator_next(iterator, 0, NULL, &part, 1, &error), WEIR_OK);
	cr_expect_eq(weir_tensor_shape(part)->dims[0], 1);
	cr_expect_eq(weir_tensor_shape(part)->dims[1], 5);
	weir_tensor_release(part);
	cr_expect_eq(weir_iterator_destroy(iterator, NULL), WEIR_OK);
}

/* Element 0 is a vector, element 1 a number; the others are as large as tensors may be, but for the batch. */
static enum weir_status of_several_ranks(void *context, weir_tensor *const in[], weir_tensor *out[], weir_error *error)
{
	int64_t number = data_number(in[0]);
	weir_shape shape = {WEIR_MAX_RANK - 1, {1, 1, 1}};

	(void)context, (void)error;
	for (uint32_t i = 0; i < shape.rank; i++)
		shape.dims[i] = 1;
	if (number < 2)
		shape = (weir_shape){number == 0, {number == 0}};
	return weir_tensor_copy_of(WEIR_I64, &shape, &number, NULL, &out[0]);
}

Test(dataset_batch, rows_of_other_ranks_are_refused_and_those_of_the_highest_one_fit)
{
	weir_dataset *dataset = data_batch(data_map(data_range(0, 6), of_several_ranks, NULL, 0, 0), 2, 0);
	weir_iterator *iterator = data_iterate(dataset, NULL);
	weir_tensor *part = NULL;
	weir_error error;

	weir_dataset_release(dataset);
	cr_expect_eq(weir_iterator_next(iterator, 0, NULL, &part, 1, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_str_eq(error.message, "batch(2) of map of range: component 0: element 0 is [1], element 1 is []");
	for (int64_t number = 2; number < 6; number += 2) {
		cr_assert_eq(weir_iterator_next(iterator, 0, NULL, &part, 1, &error), WEIR_OK);
		cr_expect_eq(weir_tensor_shape(part)->rank, WEIR_MAX_RANK);
		cr_expect_eq(((const int64_t *)weir_tensor_data(part))[0], number);
		cr_expect_eq(((const int64_t *)weir_tensor_data(part))[1], number + 1);
		weir_tensor_release(part);
	}
	cr_expect_eq(weir_iterator_destroy(iterator, NULL), WEIR_OK);
}

/* Component 0 grows at 3, component 1 at 2. */
static enum weir_status as_two_vectors(void *context, weir_tensor *const in[], weir_tensor *out[], weir_error *error)
{
	int64_t number = data_number(in[0]), numbers[2] = {number, number};
	weir_shape first = {1, {number >= 3 ? 2 : 1}}, second = {2, {1, number >= 2 ? 2 : 1}};

	(void)context, (void)error;
	return weir_tensor_copy_of(WEIR_I64, &first, numbers, NULL, &out[0]) ||
	               weir_tensor_copy_of(WEIR_I64, &second, numbers, NULL, &out[1])
	           ? WEIR_RESOURCE_EXHAUSTED
	           : WEIR_OK;
}

Test(dataset_batch, the_first_component_that_does_not_batch_is_named)
{
	static const enum weir_dtype types[2] = {WEIR_I64, WEIR_I64};
	const struct weir_dataset_options options = {WEIR_DATASET_OPTIONS_INIT, .dtypes = types, .width = 2};
	weir_dataset *range = data_range(0, 9), *vectors = NULL, *batches;
	weir_tensor *parts[2] = {NULL, NULL};
	weir_iterator *iterator;
	weir_error error;

	cr_assert_eq(weir_dataset_map(range, as_two_vectors, NULL, &options, &vectors, NULL), WEIR_OK);
	batches = data_batch(vectors, 4, 0);
	iterator = data_iterate(batches, NULL);
	cr_expect_eq(weir_iterator_next(iterator, 0, NULL, parts, 2, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_str_eq(error.message, "batch(4) of map of range: component 0: element 0 is [1], element 3 is [2]");
	for (int64_t rows = 4; rows > 0; rows -= 3) {
		cr_assert_eq(weir_iterator_next(iterator, 0, NULL, parts, 2, &error), WEIR_OK);
		for (size_t c = 0; c < 2; c++) {
			cr_expect_eq(weir_tensor_shape(parts[c])->dims[0], rows);
			cr_expect_eq(((const int64_t *)weir_tensor_data(parts[c]))[2 * rows - 1], rows == 4 ? 7 : 8);
			weir_tensor_release(parts[c]);
		}
	}
	cr_expect_eq(weir_iterator_next(iterator, 0, NULL, parts, 2, &error), WEIR_OUT_OF_RANGE);
	weir_dataset_release(batches);
	weir_dataset_release(range);
	cr_expect_eq(weir_iterator_destroy(iterator, NULL), WEIR_OK);
}

/* Rows of a small batch are copied as they come, those of a large one when it is complete. */
Test(dataset_batch, a_small_and_a_large_batch_have_the_same_rows)
{
	for (size_t size = 50; size <= 1000000; size *= 100) {
		weir_dataset *dataset = data_batch(data_range(0, 50), size, 0);
		weir_iterator *iterator = data_iterate(dataset, NULL);
		weir_tensor *part = NULL;

		weir_dataset_release(dataset);
		cr_assert_eq(weir_iterator_next(iterator, 0, NULL, &part, 1, NULL), WEIR_OK);
		cr_expect_eq(weir_tensor_element_count(part), 50);
		for (int64_t i = 0; i < 50; i++)
			cr_expect_eq(((const int64_t *)weir_tensor_data(part))[i], i);
		cr_expect_eq(weir_tensor_byte_count(part), 400);
		weir_tensor_release(part);
		cr_expect_eq(weir_iterator_next(iterator, 0, NULL, &part, 1, NULL), WEIR_OUT_OF_RANGE);
		cr_expect_eq(weir_iterator_destroy(iterator, NULL), WEIR_OK);
	}
}

Test(dataset_batch, a_padded_batch_pads)
{
	weir_dataset *vectors = data_map(data_range(1, 4), as_vector, NULL, 0, 0), *dataset = NULL;
	const int64_t expected[9] = {1, 0, 0, 2, 2, 0, 3, 3, 3};
	weir_tensor *part = NULL;
	weir_iterator *iterator;

	cr_assert_eq(weir_dataset_padded_batch(vectors, 3, NULL, &dataset, NULL), WEIR_OK);
	iterator = data_iterate(dataset, NULL);
	cr_assert_eq(weir_iterator_next(iterator, 0, NULL, &part, 1, NULL), WEIR_OK);
	cr_expect_eq(weir_tensor_byte_count(part), sizeof(expected));
	cr_expect_eq(memcmp(weir_tensor_data(part), expected, sizeof(expected)), 0);
	weir_tensor_release(part);
	weir_dataset_release(dataset);
	weir_dataset_release(vectors);
	cr_expect_eq(weir_iterator_destroy(iterator, NULL), WEIR_OK);
}

/* Component 0 has one rank, component 1 two. */
static enum weir_status as_two_ranks(void *context, weir_tensor *const in[], weir_tensor *out[], weir_error *error)
{
	int64_t number = data_number(in[0]);
	weir_shape first = {1, {1}}, second = {1 + (uint32_t)(number % 2), {1, 1}};

	(void)context, (void)error;
	return weir_tensor_copy_of(WEIR_I64, &first, &number, NULL, &out[0]) ||
	               weir_tensor_copy_of(WEIR_I64, &second, &number, NULL, &out[1])
	           ? WEIR_RESOURCE_EXHAUSTED
	           : WEIR_OK;
}

Test(dataset_batch, a_batch_of_which_the_second_component_does_not_fit_leaves_nothing)
{
	static const enum weir_dtype types[2] = {WEIR_I64, WEIR_I64};
	const struct weir_dataset_options options = {WEIR_DATASET_OPTIONS_INIT, .dtypes = types, .width = 2};
	struct failing_allocator state = {.fail_at = 0};
	weir_allocator allocator = failing_allocator_hooks(&state);
	struct weir_iterator_options reading = {WEIR_ITERATOR_OPTIONS_INIT, .allocator = &allocator};
	weir_dataset *range = data_range(0, 4), *ranks = NULL, *batches = NULL;
	weir_tensor *parts[2] = {NULL, NULL};
	weir_iterator *iterator = NULL;
	weir_error error;

	cr_assert_eq(weir_dataset_map(range, as_two_ranks, NULL, &options, &ranks, NULL), WEIR_OK);
	cr_assert_eq(weir_dataset_padded_batch(ranks, 4, NULL, &batches, NULL), WEIR_OK);
	cr_assert_eq(weir_iterator_create(batches, &reading, &iterator, NULL), WEIR_OK);
	cr_expect_eq(weir_iterator_next(iterator, 0, NULL, parts, 2, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_not_null(strstr(error.message, "component 1: element 0 is [1], element 1 is [1,1]"), "%s", error.message);
	cr_expect_eq(weir_iterator_next(iterator, 0, NULL, parts, 2, &error), WEIR_OUT_OF_RANGE);
	cr_expect_eq(weir_iterator_destroy(iterator, NULL), WEIR_OK);
	cr_expect_str_eq(failing_allocator_verdict(&state), "balanced");
	weir_dataset_release(batches);
	weir_dataset_release(ranks);
	weir_dataset_release(range);
}

/* Rows of slices that come as a whole are given without a copy if there is no memory for one. */
Test(dataset_batch, a_batch_of_slices_without_memory_is_the_rows_themselves)
{
	static const int64_t numbers[4] = {5, 6, 7, 8};
	struct failing_allocator state = {.fail_at = 0};
	weir_allocator allocator = failing_allocator_hooks(&state);
	struct weir_iterator_options reading = {WEIR_ITERATOR_OPTIONS_INIT, .allocator = &allocator};
	weir_dataset *batches = data_batch(data_of_numbers(numbers, 4), 2, 0);
	weir_iterator *iterator = NULL;

	cr_assert_eq(weir_iterator_create(batches, &reading, &iterator, NULL), WEIR_OK);
	for (size_t i = 0; i < 4; i += 2) {
		weir_tensor *part = NULL;

		state.fail_at = weiri_load_relaxed(&state.asked) + 1;
		cr_assert_eq(weir_iterator_next(iterator, 0, NULL, &part, 1, NULL), WEIR_OK);
		cr_expect_eq(weiri_load_relaxed(&state.refused), i / 2 + 1);
		cr_assert_eq(weir_tensor_byte_count(part), 2 * sizeof(numbers[0]));
		cr_expect_eq(memcmp(weir_tensor_data(part), &numbers[i], 2 * sizeof(numbers[0])), 0);
		weir_tensor_release(part);
	}
	cr_expect_eq(weir_iterator_destroy(iterator, NULL), WEIR_OK);
	cr_expect_str_eq(failing_allocator_verdict(&state), "balanced");
	weir_dataset_release(batches);
}

/* Rows that are copied as a whole, and those that are copied one by one: at the end of a pass, of an input. */
Test(dataset_batch, batches_of_slices_are_those_of_single_rows)
{
	static const int64_t numbers[7] = {0, 1, 2, 3, 4, 5, 6};
	weir_dataset *slices = data_of_numbers(numbers, 7);

	for (size_t size = 1; size <= 9; size++) {
		for (int64_t times = 1; times <= 3; times += 2) {
			weir_dataset *rows = data_repeat(weir_dataset_retain(slices), times);
			weir_dataset *plain = data_batch(data_map(weir_dataset_retain(rows), data_same, NULL, 0, 0), size, 0);
			weir_dataset *whole = data_batch(rows, size, 0);
			weir_iterator *a = data_iterate(plain, NULL), *b = data_iterate(whole, NULL);
			enum weir_status status = WEIR_OK;

			while (status == WEIR_OK) {
				weir_tensor *one = NULL, *other = NULL;

				status = weir_iterator_next(a, 0, NULL, &one, 1, NULL);
				cr_assert_eq(weir_iterator_next(b, 0, NULL, &other, 1, NULL), status);
				if (status != WEIR_OK)
					break;
				cr_expect(weir_shape_equal(weir_tensor_shape(one), weir_tensor_shape(other)));
				cr_expect_eq(memcmp(weir_tensor_data(one), weir_tensor_data(other), weir_tensor_byte_count(one)), 0);
				weir_tensor_release(one);
				weir_tensor_release(other);
			}
			cr_expect_eq(weir_iterator_position(a), weir_iterator_position(b));
			weir_dataset_release(plain);
			weir_dataset_release(whole);
			cr_assert_eq(weir_iterator_destroy(a, NULL), WEIR_OK);
			cr_assert_eq(weir_iterator_destroy(b, NULL), WEIR_OK);
		}
	}
	weir_dataset_release(slices);
}

Test(dataset_batch, an_error_inside_a_batch_comes_first_and_loses_no_row)
{
	int64_t every = 3;
	weir_dataset *dataset = data_batch(data_map(data_range(1, 6), data_fail_at_multiples, &every, 0, 0), 4, 0);
	weir_iterator *iterator = data_iterate(dataset, NULL);
	const int64_t expected[4] = {1, 2, 4, 5};
	weir_tensor *part = NULL;

	weir_dataset_release(dataset);
	cr_expect_eq(weir_iterator_next(iterator, 0, NULL, &part, 1, NULL), WEIR_ABORTED);
	cr_assert_eq(weir_iterator_next(iterator, 0, NULL, &part, 1, NULL), WEIR_OK);
	cr_expect_eq(memcmp(weir_tensor_data(part), expected, sizeof(expected)), 0);
	weir_tensor_release(part);
	cr_expect_eq(weir_iterator_destroy(iterator, NULL), WEIR_OK);
}
