/*
 * test_stack_padded.c - batches of tensors whose dims differ.
 */
#include <criterion/criterion.h>

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <weir/tensor.h>

#include "failing_allocator.h"

#define SHAPE(...) (&(weir_shape){sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), {__VA_ARGS__}})

static weir_tensor *copy_of(enum weir_dtype dtype, const weir_shape *shape, const void *data)
{
	weir_tensor *tensor = NULL;

	cr_assert_eq(weir_tensor_copy_of(dtype, shape, data, NULL, &tensor), WEIR_OK);
	return tensor;
}

/* Returns the batch of `count` tensors, whose references it takes over. */
static weir_tensor *padded(weir_tensor *tensors[], size_t count)
{
	weir_tensor *batch = NULL;

	cr_assert_eq(weir_tensor_stack_padded(tensors, count, NULL, &batch), WEIR_OK);
	for (size_t i = 0; i < count; i++)
		weir_tensor_release(tensors[i]);
	return batch;
}

/* `values` may be NULL for none. */
static void expect_i32(weir_tensor *batch, const weir_shape *shape, const int32_t values[])
{
	cr_assert(weir_shape_equal(weir_tensor_shape(batch), shape));
	if (values != NULL)
		cr_expect_arr_eq(weir_tensor_data(batch), values, (size_t)weir_tensor_element_count(batch) * sizeof(int32_t));
	weir_tensor_release(batch);
}

Test(stack_padded, vectors_end_in_zeros)
{
	weir_tensor *parts[] = {copy_of(WEIR_I32, SHAPE(1), (int32_t[]){1}),
	                        copy_of(WEIR_I32, SHAPE(3), (int32_t[]){2, 3, 4}), copy_of(WEIR_I32, SHAPE(0), NULL)};

	expect_i32(padded(parts, 3), SHAPE(3, 3), (int32_t[]){1, 0, 0, 2, 3, 4, 0, 0, 0});
}

Test(stack_padded, matrices_are_padded_in_both_dims)
{
	weir_tensor *parts[] = {copy_of(WEIR_I32, SHAPE(2, 1), (int32_t[]){1, 2}),
	                        copy_of(WEIR_I32, SHAPE(1, 3), (int32_t[]){3, 4, 5})};

	expect_i32(padded(parts, 2), SHAPE(2, 2, 3), (int32_t[]){1, 0, 0, 2, 0, 0, 3, 4, 5, 0, 0, 0});
}

Test(stack_padded, tensors_that_are_alike_need_no_padding)
{
	weir_tensor *parts[] = {copy_of(WEIR_I32, SHAPE(2), (int32_t[]){1, 2}),
	                        copy_of(WEIR_I32, SHAPE(2), (int32_t[]){3, 4})};
	weir_tensor *scalars[] = {copy_of(WEIR_I32, &(weir_shape){.rank = 0}, (int32_t[]){7}),
	                          copy_of(WEIR_I32, &(weir_shape){.rank = 0}, (int32_t[]){8})};

	expect_i32(padded(parts, 2), SHAPE(2, 2), (int32_t[]){1, 2, 3, 4});
	expect_i32(padded(scalars, 2), SHAPE(2), (int32_t[]){7, 8});
}

Test(stack_padded, no_element_anywhere_makes_an_empty_batch)
{
	weir_tensor *parts[] = {copy_of(WEIR_I32, SHAPE(0, INT64_MAX, 3), NULL),
	                        copy_of(WEIR_I32, SHAPE(0, 2, INT64_MAX), NULL)};

	expect_i32(padded(parts, 2), SHAPE(2, 0, INT64_MAX, INT64_MAX), NULL);
}

/* Returns the element of the source at an index, by the definition, one dim after the other. */
static int32_t element_at(const weir_tensor *tensor, const int64_t index[])
{
	const weir_shape *shape = weir_tensor_shape(tensor);
	int64_t at = 0;

	for (uint32_t d = 0; d < shape->rank; d++) {
		if (index[d] >= shape->dims[d])
			return 0;
		at = at * shape->dims[d] + index[d];
	}
	return ((const int32_t *)weir_tensor_data(tensor))[at];
}

static void expect_batch_of(const weir_tensor *batch, weir_tensor *const parts[])
{
	const weir_shape *shape = weir_tensor_shape(batch);

	for (int64_t i = 0; i < weir_tensor_element_count(batch); i++) {
		int64_t index[WEIR_MAX_RANK], rest = i;

		for (uint32_t d = shape->rank; d-- > 0;) {
			index[d] = rest % shape->dims[d];
			rest /= shape->dims[d];
		}
		cr_assert_eq(((const int32_t *)weir_tensor_data(batch))[i], element_at(parts[index[0]], index + 1),
		             "element %d", (int)i);
	}
}

/* Every rank, with dims of 0 to 3. */
Test(stack_padded, each_rank_agrees_with_the_definition)
{
	enum { PARTS = 3, MOST_ELEMENTS = 2187 };
	static int32_t numbers[MOST_ELEMENTS];
	/* Fresh memory is not zero. */
	struct failing_allocator state = {0};
	weir_allocator allocator = failing_allocator_hooks(&state);
	unsigned seed = 7;

	for (int32_t i = 0; i < MOST_ELEMENTS; i++)
		numbers[i] = i + 1;
	for (int round = 0; round < 400; round++) {
		weir_tensor *parts[PARTS], *batch = NULL;

		for (size_t i = 0; i < PARTS; i++) {
			weir_shape shape = {.rank = (uint32_t)round % WEIR_MAX_RANK};

			for (uint32_t d = 0; d < shape.rank; d++)
				shape.dims[d] = rand_r(&seed) % 16 == 0 ? 0 : 1 + rand_r(&seed) % 3;
			parts[i] = copy_of(WEIR_I32, &shape, numbers);
		}
		cr_assert_eq(weir_tensor_stack_padded(parts, PARTS, &allocator, &batch), WEIR_OK);
		expect_batch_of(batch, parts);
		for (size_t i = 0; i < PARTS; i++)
			weir_tensor_release(parts[i]);
		weir_tensor_release(batch);
	}
	cr_expect_str_eq(failing_allocator_verdict(&state), "balanced");
}

Test(stack_padded, strings_are_copied_and_padded_with_empty_ones)
{
	weir_tensor *parts[] = {copy_of(WEIR_BYTES, SHAPE(1), (weir_bytes[]){{"dam", 3}}),
	                        copy_of(WEIR_BYTES, SHAPE(3), (weir_bytes[]){{"lock", 4}, {NULL, 0}, {"gate", 4}})};
	static const char *const expected[] = {"dam", "", "", "lock", "", "gate"};
	weir_tensor *batch = padded(parts, 2);
	const weir_bytes *strings = weir_tensor_data(batch);

	cr_assert(weir_shape_equal(weir_tensor_shape(batch), SHAPE(2, 3)));
	for (size_t i = 0; i < 6; i++) {
		cr_assert_eq(strings[i].size, strlen(expected[i]));
		cr_expect(strings[i].size == 0 || memcmp(strings[i].data, expected[i], strings[i].size) == 0, "string %zu", i);
	}
	cr_expect_eq(weir_tensor_byte_count(batch), 6 * sizeof(weir_bytes) + 11);
	weir_tensor_release(batch);
}

static void expect_refused(weir_tensor *const tensors[], size_t count)
{
	weir_tensor *batch = tensors != NULL ? tensors[0] : NULL;
	weir_tensor *before = batch;

	cr_expect_eq(weir_tensor_stack_padded(tensors, count, NULL, &batch), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(batch, before);
}

Test(stack_padded, another_dtype_or_rank_is_refused)
{
	weir_tensor *a = copy_of(WEIR_I32, SHAPE(2), (int32_t[]){1, 2});
	weir_tensor *other_type = copy_of(WEIR_F32, SHAPE(2), (float[]){1, 2});
	weir_tensor *other_rank = copy_of(WEIR_I32, SHAPE(2, 1), (int32_t[]){1, 2});
	weir_tensor *rank_eight = copy_of(WEIR_U8, SHAPE(1, 1, 1, 1, 1, 1, 1, 1), "x");
	weir_tensor *long_one = copy_of(WEIR_I32, SHAPE(0, INT64_MAX), NULL),
				*wide_one = copy_of(WEIR_I32, SHAPE(2, 1), (int32_t[]){1, 2});

	expect_refused((weir_tensor *[]){a, other_type}, 2);
	expect_refused((weir_tensor *[]){a, other_rank}, 2);
	expect_refused((weir_tensor *[]){a, NULL}, 2);
	expect_refused((weir_tensor *[]){NULL, a}, 2);
	expect_refused((weir_tensor *[]){rank_eight}, 1);
	expect_refused((weir_tensor *[]){long_one, wide_one}, 2);
	expect_refused((weir_tensor *[]){a}, 0);
	expect_refused(NULL, 1);
	cr_expect_eq(weir_tensor_stack_padded((weir_tensor *[]){a}, 1, NULL, NULL), WEIR_INVALID_ARGUMENT);
	weir_tensor_release(a);
	weir_tensor_release(other_type);
	weir_tensor_release(other_rank);
	weir_tensor_release(rank_eight);
	weir_tensor_release(long_one);
	weir_tensor_release(wide_one);
}

static enum weir_status stack_two(const weir_allocator *allocator, void *context)
{
	weir_tensor *batch = NULL;
	enum weir_status status = weir_tensor_stack_padded(context, 2, allocator, &batch);

	weir_tensor_release(batch);
	return status;
}

Test(stack_padded, every_allocation_may_fail_and_nothing_leaks)
{
	weir_tensor *parts[] = {copy_of(WEIR_BYTES, SHAPE(1), (weir_bytes[]){{"part", 4}}),
	                        copy_of(WEIR_BYTES, SHAPE(2), (weir_bytes[]){{"a", 1}, {"b", 1}})};

	cr_expect_eq(fail_each_allocation(stack_two, parts), 1, "header, elements and strings are one allocation");
	weir_tensor_release(parts[0]);
	weir_tensor_release(parts[1]);
}
