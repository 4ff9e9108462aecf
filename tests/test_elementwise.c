/*
 * test_elementwise.c - sums and differences of tensors, as updates of variables compute them.
 */
#include <criterion/criterion.h>

#include <math.h>
#include <stdint.h>
#include <string.h>
#include <weir/tensor.h>

#include "failing_allocator.h"
#include "tensor/elementwise.h"
#include "var/change.h"

typedef enum weir_status operation(const weir_tensor *, const weir_tensor *, const weir_allocator *, weir_tensor **);

static enum weir_status add(const weir_tensor *a, const weir_tensor *b, const weir_allocator *allocator,
                            weir_tensor **out)
{
	struct weiri_change change = {.how = WEIRI_COMBINE_ADD, .operand = b};

	return weiri_change_value(&change, "x", a, allocator, out, NULL);
}

static enum weir_status subtract(const weir_tensor *a, const weir_tensor *b, const weir_allocator *allocator,
                                 weir_tensor **out)
{
	struct weiri_change change = {.how = WEIRI_COMBINE_SUBTRACT, .operand = b};

	return weiri_change_value(&change, "x", a, allocator, out, NULL);
}

static weir_tensor *vector(enum weir_dtype dtype, const void *data, int64_t n)
{
	weir_tensor *tensor = NULL;

	cr_assert_eq(weir_tensor_copy_of(dtype, &(weir_shape){1, {n}}, data, NULL, &tensor), WEIR_OK);
	return tensor;
}

static void expect_result(operation *apply, enum weir_dtype dtype, const void *a, const void *b, const void *expected,
                          int64_t n)
{
	weir_tensor *x = vector(dtype, a, n);
	weir_tensor *y = vector(dtype, b, n);
	weir_tensor *z = NULL;

	cr_assert_eq(apply(x, y, NULL, &z), WEIR_OK);
	cr_expect_eq(weir_tensor_dtype(z), dtype);
	cr_expect(weir_shape_equal(weir_tensor_shape(z), weir_tensor_shape(x)));
	cr_expect_eq((uintptr_t)weir_tensor_data(z) % WEIR_TENSOR_ALIGNMENT, 0);
	cr_expect_arr_eq(weir_tensor_data(z), expected, weir_tensor_byte_count(z), "%s", weir_dtype_name(dtype));
	cr_expect_arr_eq(weir_tensor_data(x), a, weir_tensor_byte_count(x), "an operand was changed");
	weir_tensor_release(x);
	weir_tensor_release(y);
	weir_tensor_release(z);
}

Test(elementwise, nothing_is_written_behind_the_last_element)
{
	static const enum weir_dtype dtypes[] = {WEIR_U8,  WEIR_I8,  WEIR_I16, WEIR_I32, WEIR_I64,
	                                         WEIR_F32, WEIR_F64, WEIR_U16, WEIR_U32, WEIR_U64};
	static const enum weiri_combine hows[] = {WEIRI_COMBINE_ADD, WEIRI_COMBINE_SUBTRACT};
	_Alignas(64) static const unsigned char zeros[128 * sizeof(double)];
	_Alignas(64) static unsigned char out[128 * sizeof(double)];

	for (size_t d = 0; d < sizeof(dtypes) / sizeof(dtypes[0]); d++) {
		for (size_t n = 0; n <= 100; n++) {
			size_t bytes = n * weir_dtype_size(dtypes[d]);

			(void)memset(out, 0x5a, sizeof(out));
			weiri_elementwise_apply(dtypes[d], hows[n % 2], zeros, zeros, out, n);
			cr_assert_arr_eq(out, zeros, bytes, "%s, %zu elements", weir_dtype_name(dtypes[d]), n);
			for (size_t i = bytes; i < sizeof(out); i++)
				cr_assert_eq(out[i], 0x5a, "%s, %zu elements: byte %zu", weir_dtype_name(dtypes[d]), n, i);
		}
	}
}

Test(elementwise, integers_wrap)
{
	expect_result(add, WEIR_U8, (uint8_t[]){250, 1}, (uint8_t[]){10, 2}, (uint8_t[]){4, 3}, 2);
	expect_result(add, WEIR_U16, (uint16_t[]){UINT16_MAX}, (uint16_t[]){2}, (uint16_t[]){1}, 1);
	expect_result(add, WEIR_U32, (uint32_t[]){UINT32_MAX}, (uint32_t[]){2}, (uint32_t[]){1}, 1);
	expect_result(subtract, WEIR_U64, (uint64_t[]){0}, (uint64_t[]){1}, (uint64_t[]){UINT64_MAX}, 1);
	expect_result(subtract, WEIR_U8, (uint8_t[]){1, 9}, (uint8_t[]){2, 2}, (uint8_t[]){255, 7}, 2);
	expect_result(add, WEIR_I8, (int8_t[]){127, -1}, (int8_t[]){1, 1}, (int8_t[]){-128, 0}, 2);
	expect_result(subtract, WEIR_I8, (int8_t[]){-128, 5}, (int8_t[]){1, 7}, (int8_t[]){127, -2}, 2);
	expect_result(add, WEIR_I16, (int16_t[]){32767, -5}, (int16_t[]){1, 3}, (int16_t[]){-32768, -2}, 2);
	expect_result(subtract, WEIR_I16, (int16_t[]){-32768}, (int16_t[]){1}, (int16_t[]){32767}, 1);
	expect_result(add, WEIR_I32, (int32_t[]){INT32_MAX, 40}, (int32_t[]){1, 2}, (int32_t[]){INT32_MIN, 42}, 2);
	expect_result(subtract, WEIR_I32, (int32_t[]){INT32_MIN}, (int32_t[]){1}, (int32_t[]){INT32_MAX}, 1);
	expect_result(add, WEIR_I64, (int64_t[]){INT64_MAX, 40}, (int64_t[]){1, 2}, (int64_t[]){INT64_MIN, 42}, 2);
	expect_result(subtract, WEIR_I64, (int64_t[]){INT64_MIN}, (int64_t[]){1}, (int64_t[]){INT64_MAX}, 1);
}

Test(elementwise, floats_follow_ieee)
{
	/*
	 * The values pass through variables and casts, because some machines compute and read constants
	 * with more precision than the type has.
	 */
	float tenth = 0.1F, three_tenths = 0.3F, f32 = (float)(tenth - three_tenths);
	double first = 0.1, second = 0.2, f64 = (double)(first + second);

	expect_result(add, WEIR_F32, (float[]){1.5F, INFINITY}, (float[]){2.25F, 1.0F}, (float[]){3.75F, INFINITY}, 2);
	expect_result(subtract, WEIR_F32, &tenth, &three_tenths, &f32, 1);
	expect_result(add, WEIR_F64, &first, &second, &f64, 1);
	expect_result(subtract, WEIR_F64, (double[]){1e300}, (double[]){-1e300}, (double[]){2e300}, 1);
}

/* The loops run in blocks, so the test tries every length up to several blocks. */
Test(elementwise, every_element_is_reached_once_at_every_length)
{
	enum { LONGEST = 200 };
	int16_t a[LONGEST];
	int16_t b[LONGEST];
	int16_t sum[LONGEST];
	double x[LONGEST];
	double y[LONGEST];
	double difference[LONGEST];

	for (int i = 0; i < LONGEST; i++) {
		a[i] = (int16_t)(31 * i);
		b[i] = (int16_t)(1000 - i);
		sum[i] = (int16_t)(a[i] + b[i]);
		x[i] = i;
		y[i] = 0.5 * i - 7;
		difference[i] = x[i] - y[i];
	}
	for (int64_t n = 0; n <= LONGEST; n++) {
		expect_result(add, WEIR_I16, a, b, sum, n);
		expect_result(subtract, WEIR_F64, x, y, difference, n);
	}
}

Test(elementwise, views_and_a_tensor_with_itself_are_operands)
{
	weir_tensor *whole = vector(WEIR_I32, (int32_t[]){1, 2, 3, 4, 5}, 5);
	weir_tensor *front = NULL;
	weir_tensor *back = NULL;
	weir_tensor *sum = NULL;
	weir_tensor *zero = NULL;

	cr_assert_eq(weir_tensor_slice(whole, 0, 3, &front), WEIR_OK);
	cr_assert_eq(weir_tensor_slice(whole, 2, 3, &back), WEIR_OK);
	cr_assert_eq(add(front, back, NULL, &sum), WEIR_OK);
	cr_expect_arr_eq(weir_tensor_data(sum), ((int32_t[]){4, 6, 8}), 3 * sizeof(int32_t));
	cr_assert_eq(subtract(whole, whole, NULL, &zero), WEIR_OK);
	cr_expect_arr_eq(weir_tensor_data(zero), ((int32_t[]){0, 0, 0, 0, 0}), 5 * sizeof(int32_t));
	weir_tensor_release(whole);
	weir_tensor_release(front);
	weir_tensor_release(back);
	weir_tensor_release(sum);
	weir_tensor_release(zero);
}

Test(elementwise, wrapped_tensors_without_data_are_operands)
{
	weir_tensor *none = NULL;
	weir_tensor *sum = NULL;

	cr_assert_eq(weir_tensor_wrap(WEIR_F64, &(weir_shape){1, {0}}, NULL, NULL, NULL, NULL, &none), WEIR_OK);
	cr_assert_eq(add(none, none, NULL, &sum), WEIR_OK);
	cr_expect_eq(weir_tensor_element_count(sum), 0);
	weir_tensor_release(none);
	weir_tensor_release(sum);
}

static void expect_refusal(const weir_tensor *a, const weir_tensor *b, enum weir_status expected)
{
	weir_tensor *untouched = NULL;

	cr_expect_eq(add(a, b, NULL, &untouched), expected);
	cr_expect_eq(subtract(a, b, NULL, &untouched), expected);
	cr_expect_null(untouched);
}

Test(elementwise, operands_that_differ_are_refused)
{
	weir_tensor *ints = vector(WEIR_I32, (int32_t[]){1, 2}, 2);
	weir_tensor *floats = vector(WEIR_F32, (float[]){1, 2}, 2);
	weir_tensor *three = vector(WEIR_I32, (int32_t[]){1, 2, 3}, 3);
	weir_tensor *one = NULL;

	cr_assert_eq(weir_tensor_row(ints, 0, &one), WEIR_OK);
	expect_refusal(ints, floats, WEIR_INVALID_ARGUMENT);
	expect_refusal(ints, three, WEIR_INVALID_ARGUMENT);
	expect_refusal(ints, one, WEIR_INVALID_ARGUMENT);
	weir_tensor_release(ints);
	weir_tensor_release(floats);
	weir_tensor_release(three);
	weir_tensor_release(one);
}

Test(elementwise, bool_f16_and_bytes_have_no_arithmetic)
{
	static const enum weir_dtype dtypes[] = {WEIR_BOOL, WEIR_F16, WEIR_BF16, WEIR_BYTES};

	for (size_t i = 0; i < sizeof(dtypes) / sizeof(dtypes[0]); i++) {
		weir_tensor *tensor = vector(dtypes[i], (weir_bytes[]){{"", 0}}, 1);

		expect_refusal(tensor, tensor, WEIR_UNIMPLEMENTED);
		weir_tensor_release(tensor);
	}
}

static enum weir_status add_to_itself(const weir_allocator *allocator, void *context)
{
	weir_tensor *sum = NULL;
	enum weir_status status = add(context, context, allocator, &sum);

	weir_tensor_release(sum);
	return status;
}

Test(elementwise, a_sum_is_one_allocation_and_survives_its_failure)
{
	weir_tensor *x = vector(WEIR_F32, (float[]){1, 2, 3}, 3);

	cr_expect_eq(fail_each_allocation(add_to_itself, x), 1);
	weir_tensor_release(x);
}
