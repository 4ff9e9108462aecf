/*
 * test_op_math.c - ops that compute: values, broadcasting, dtypes, and refusals.
 */
#include <math.h>

#include "failing_allocator.h"
#include "graph_kit.h"

/* Runs one op on a session without threads, and compares the result. */
static void expect_f32(weir_graph *graph, weir_output out, weir_shape shape, const float expected[])
{
	weir_session *session = kit_session(graph, 0);
	weir_tensor *result = kit_fetch(session, out);

	cr_assert(weir_shape_equal(weir_tensor_shape(result), &shape));
	for (int64_t i = 0; i < weir_tensor_element_count(result); i++)
		cr_expect_float_eq(kit_f32_at(result, (size_t)i), expected[i], 1e-5f, "element %d: %f", (int)i,
		                   (double)kit_f32_at(result, (size_t)i));
	weir_tensor_release(result);
	cr_assert_eq(weir_session_destroy(session, NULL), WEIR_OK);
}

static weir_output f32_constant(weir_graph *graph, weir_shape shape, const float values[])
{
	return kit_constant(graph, kit_tensor(WEIR_F32, shape, values));
}

static const float one_to_six[] = {1, 2, 3, 4, 5, 6};

Test(op_math, add_sub_mul_square_of_equal_shapes)
{
	weir_graph *graph = kit_graph();
	weir_output x = f32_constant(graph, kit_shape(2, 2, 3), one_to_six);
	weir_output y = f32_constant(graph, kit_shape(2, 2, 3), (const float[]){10, 20, 30, 40, 50, 60});
	weir_output sum, difference, product, square;

	cr_assert_eq(weir_op_add(graph, NULL, x, y, &sum, NULL), WEIR_OK);
	cr_assert_eq(weir_op_sub(graph, NULL, x, y, &difference, NULL), WEIR_OK);
	cr_assert_eq(weir_op_mul(graph, NULL, x, y, &product, NULL), WEIR_OK);
	cr_assert_eq(weir_op_square(graph, NULL, x, &square, NULL), WEIR_OK);
	expect_f32(graph, sum, kit_shape(2, 2, 3), (const float[]){11, 22, 33, 44, 55, 66});
	expect_f32(graph, difference, kit_shape(2, 2, 3), (const float[]){-9, -18, -27, -36, -45, -54});
	expect_f32(graph, product, kit_shape(2, 2, 3), (const float[]){10, 40, 90, 160, 250, 360});
	expect_f32(graph, square, kit_shape(2, 2, 3), (const float[]){1, 4, 9, 16, 25, 36});
	cr_assert_eq(weir_graph_destroy(graph, NULL), WEIR_OK);
}

Test(op_math, the_smaller_operand_is_repeated_on_either_side)
{
	weir_graph *graph = kit_graph();
	weir_output x = f32_constant(graph, kit_shape(2, 2, 3), one_to_six);
	weir_output row = f32_constant(graph, kit_shape(1, 3), (const float[]){10, 20, 30});
	weir_output scalar = f32_constant(graph, kit_shape(0), (const float[]){100});
	weir_output out;

	cr_assert_eq(weir_op_add(graph, NULL, x, row, &out, NULL), WEIR_OK);
	expect_f32(graph, out, kit_shape(2, 2, 3), (const float[]){11, 22, 33, 14, 25, 36});
	cr_assert_eq(weir_op_sub(graph, NULL, row, x, &out, NULL), WEIR_OK);
	expect_f32(graph, out, kit_shape(2, 2, 3), (const float[]){9, 18, 27, 6, 15, 24});
	cr_assert_eq(weir_op_mul(graph, NULL, x, scalar, &out, NULL), WEIR_OK);
	expect_f32(graph, out, kit_shape(2, 2, 3), (const float[]){100, 200, 300, 400, 500, 600});
	cr_assert_eq(weir_op_sub(graph, NULL, scalar, x, &out, NULL), WEIR_OK);
	expect_f32(graph, out, kit_shape(2, 2, 3), (const float[]){99, 98, 97, 96, 95, 94});
	cr_assert_eq(weir_op_add(graph, NULL, scalar, scalar, &out, NULL), WEIR_OK);
	expect_f32(graph, out, kit_shape(0), (const float[]){200});
	cr_assert_eq(weir_graph_destroy(graph, NULL), WEIR_OK);
}

Test(op_math, no_elements_stay_no_elements)
{
	weir_graph *graph = kit_graph();
	weir_output none = f32_constant(graph, kit_shape(2, 0, 3), NULL);
	weir_output row = f32_constant(graph, kit_shape(1, 3), one_to_six);
	weir_output columnless = f32_constant(graph, kit_shape(2, 2, 0), NULL);
	weir_output out;

	cr_assert_eq(weir_op_add(graph, NULL, none, row, &out, NULL), WEIR_OK);
	expect_f32(graph, out, kit_shape(2, 0, 3), NULL);
	cr_assert_eq(weir_op_reduce_sum(graph, NULL, none, &out, NULL), WEIR_OK);
	expect_f32(graph, out, kit_shape(0), (const float[]){0});
	cr_assert_eq(weir_op_reduce_sum_axis(graph, NULL, columnless, 1, &out, NULL), WEIR_OK);
	expect_f32(graph, out, kit_shape(1, 2), (const float[]){0, 0});
	cr_assert_eq(weir_op_matmul(graph, NULL, columnless, none, 0, &out, NULL), WEIR_OK);
	expect_f32(graph, out, kit_shape(2, 2, 3), (const float[]){0, 0, 0, 0, 0, 0});
	cr_assert_eq(weir_graph_destroy(graph, NULL), WEIR_OK);
}

Test(op_math, integers_wrap)
{
	weir_graph *graph = kit_graph();
	weir_session *session = kit_session(graph, 0);
	weir_output big = kit_constant(graph, kit_i64(INT64_MAX));
	weir_output one = kit_constant(graph, kit_i64(1));
	int32_t ints[] = {INT32_MAX, -7};
	weir_output x = kit_constant(graph, kit_tensor(WEIR_I32, kit_shape(1, 2), ints));
	weir_output out;
	weir_tensor *result;

	cr_assert_eq(weir_op_add(graph, NULL, big, one, &out, NULL), WEIR_OK);
	cr_expect_eq(kit_fetch_i64(session, out), INT64_MIN);
	cr_assert_eq(weir_op_mul(graph, NULL, x, x, &out, NULL), WEIR_OK);
	result = kit_fetch(session, out);
	cr_expect_eq(((const int32_t *)weir_tensor_data(result))[0], 1);
	cr_expect_eq(((const int32_t *)weir_tensor_data(result))[1], 49);
	weir_tensor_release(result);
	cr_assert_eq(weir_op_reduce_sum(graph, NULL, x, &out, NULL), WEIR_OK);
	result = kit_fetch(session, out);
	cr_expect_eq(((const int32_t *)weir_tensor_data(result))[0], INT32_MAX - 7);
	weir_tensor_release(result);
	kit_end(session, graph);
}

Test(op_math, matmul_with_every_transposition)
{
	weir_graph *graph = kit_graph();
	weir_output a = f32_constant(graph, kit_shape(2, 2, 3), one_to_six);
	weir_output at = f32_constant(graph, kit_shape(2, 3, 2), (const float[]){1, 4, 2, 5, 3, 6});
	weir_output b = f32_constant(graph, kit_shape(2, 3, 2), (const float[]){7, 8, 9, 10, 11, 12});
	weir_output bt = f32_constant(graph, kit_shape(2, 2, 3), (const float[]){7, 9, 11, 8, 10, 12});
	const float expected[] = {58, 64, 139, 154};
	weir_output out;

	cr_assert_eq(weir_op_matmul(graph, NULL, a, b, 0, &out, NULL), WEIR_OK);
	expect_f32(graph, out, kit_shape(2, 2, 2), expected);
	cr_assert_eq(weir_op_matmul(graph, NULL, at, b, WEIR_MATMUL_TRANSPOSE_A, &out, NULL), WEIR_OK);
	expect_f32(graph, out, kit_shape(2, 2, 2), expected);
	cr_assert_eq(weir_op_matmul(graph, NULL, a, bt, WEIR_MATMUL_TRANSPOSE_B, &out, NULL), WEIR_OK);
	expect_f32(graph, out, kit_shape(2, 2, 2), expected);
	cr_assert_eq(weir_op_matmul(graph, NULL, at, bt, WEIR_MATMUL_TRANSPOSE_A | WEIR_MATMUL_TRANSPOSE_B, &out, NULL),
	             WEIR_OK);
	expect_f32(graph, out, kit_shape(2, 2, 2), expected);
	cr_assert_eq(weir_graph_destroy(graph, NULL), WEIR_OK);
}

enum { N = 37, K = 41, M = 43 };

/*
 * Fills a matrix with small whole numbers, so that sums are exact in f64.
 */
static void fill(double *x, size_t count, int seed)
{
	for (size_t i = 0; i < count; i++)
		x[i] = (double)((int)((i * 7919 + (size_t)seed * 104729) % 13) - 6);
}

/* The matrix is large enough for CBLAS, if there is one. */
Test(op_math, a_large_f64_matmul_agrees_with_the_definition)
{
	static double a[N * K], b[K * M];

	fill(a, N * K, 1);
	fill(b, K * M, 2);
	for (uint32_t flags = 0; flags < 4; flags++) {
		weir_graph *graph = kit_graph();
		weir_session *session = kit_session(graph, 1);
		int ta = (flags & WEIR_MATMUL_TRANSPOSE_A) != 0;
		int tb = (flags & WEIR_MATMUL_TRANSPOSE_B) != 0;
		weir_output x = kit_constant(graph, kit_tensor(WEIR_F64, ta ? kit_shape(2, K, N) : kit_shape(2, N, K), a));
		weir_output y = kit_constant(graph, kit_tensor(WEIR_F64, tb ? kit_shape(2, M, K) : kit_shape(2, K, M), b));
		weir_output out;
		weir_tensor *result;
		const double *got;

		cr_assert_eq(weir_op_matmul(graph, NULL, x, y, flags, &out, NULL), WEIR_OK);
		result = kit_fetch(session, out);
		got = weir_tensor_data(result);
		for (size_t i = 0; i < N; i++) {
			for (size_t j = 0; j < M; j++) {
				double sum = 0;

				for (size_t k = 0; k < K; k++)
					sum += (ta ? a[k * N + i] : a[i * K + k]) * (tb ? b[j * K + k] : b[k * M + j]);
				cr_expect_float_eq(got[i * M + j], sum, 1e-9, "flags %u, [%zu,%zu]", flags, i, j);
			}
		}
		weir_tensor_release(result);
		kit_end(session, graph);
	}
}

Test(op_math, sums_and_means_along_any_axis)
{
	weir_graph *graph = kit_graph();
	float values[24];
	weir_output x, out;

	for (size_t i = 0; i < 24; i++)
		values[i] = (float)i;
	x = f32_constant(graph, kit_shape(3, 2, 3, 4), values);
	cr_assert_eq(weir_op_reduce_sum(graph, NULL, x, &out, NULL), WEIR_OK);
	expect_f32(graph, out, kit_shape(0), (const float[]){276});
	cr_assert_eq(weir_op_reduce_mean(graph, NULL, x, &out, NULL), WEIR_OK);
	expect_f32(graph, out, kit_shape(0), (const float[]){11.5f});
	cr_assert_eq(weir_op_reduce_sum_axis(graph, NULL, x, 0, &out, NULL), WEIR_OK);
	expect_f32(graph, out, kit_shape(2, 3, 4), (const float[]){12, 14, 16, 18, 20, 22, 24, 26, 28, 30, 32, 34});
	cr_assert_eq(weir_op_reduce_sum_axis(graph, NULL, x, 1, &out, NULL), WEIR_OK);
	expect_f32(graph, out, kit_shape(2, 2, 4), (const float[]){12, 15, 18, 21, 48, 51, 54, 57});
	cr_assert_eq(weir_op_reduce_mean_axis(graph, NULL, x, 2, &out, NULL), WEIR_OK);
	expect_f32(graph, out, kit_shape(2, 2, 3), (const float[]){1.5f, 5.5f, 9.5f, 13.5f, 17.5f, 21.5f});
	cr_assert_eq(weir_graph_destroy(graph, NULL), WEIR_OK);
}

/* There are more columns than one block of the sum has. */
Test(op_math, a_sum_over_rows_wider_than_a_block)
{
	weir_graph *graph = kit_graph();
	static float values[3 * 150];
	static float expected[150];
	weir_output x, out;

	for (size_t i = 0; i < 150; i++) {
		values[i] = (float)i;
		values[150 + i] = 1;
		values[300 + i] = 0.5f;
		expected[i] = (float)i + 1.5f;
	}
	x = f32_constant(graph, kit_shape(2, 3, 150), values);
	cr_assert_eq(weir_op_reduce_sum_axis(graph, NULL, x, 0, &out, NULL), WEIR_OK);
	expect_f32(graph, out, kit_shape(1, 150), expected);
	cr_assert_eq(weir_graph_destroy(graph, NULL), WEIR_OK);
}

Test(op_math, f32_is_summed_in_double)
{
	weir_graph *graph = kit_graph();
	weir_output x = f32_constant(graph, kit_shape(1, 3), (const float[]){16777216.0f, 1.0f, 1.0f});
	weir_output out;

	cr_assert_eq(weir_op_reduce_sum(graph, NULL, x, &out, NULL), WEIR_OK);
	expect_f32(graph, out, kit_shape(0), (const float[]){16777218.0f});
	cr_assert_eq(weir_graph_destroy(graph, NULL), WEIR_OK);
}

Test(op_math, argmax_takes_the_first_of_equals_and_shows_a_nan)
{
	weir_graph *graph = kit_graph();
	weir_session *session = kit_session(graph, 0);
	weir_output x =
		f32_constant(graph, kit_shape(2, 3, 4), (const float[]){1, 9, 9, 2, -5, -4, -3, -3, 0, NAN, 7, NAN});
	weir_output out;
	weir_tensor *result;

	cr_assert_eq(weir_op_argmax(graph, NULL, x, &out, NULL), WEIR_OK);
	result = kit_fetch(session, out);
	cr_assert_eq(weir_tensor_element_count(result), 3);
	cr_expect_eq(kit_i64_at(result, 0), 1);
	cr_expect_eq(kit_i64_at(result, 1), 2);
	cr_expect_eq(kit_i64_at(result, 2), 1);
	weir_tensor_release(result);
	kit_end(session, graph);
}

Test(op_math, cast_saturates_and_truncates)
{
	weir_graph *graph = kit_graph();
	weir_session *session = kit_session(graph, 0);
	weir_output x = f32_constant(graph, kit_shape(1, 6), (const float[]){-1, 2.9f, 300, NAN, 1e30f, -1e30f});
	weir_output as_u8, as_i64, back;
	weir_tensor *result;
	const uint8_t expected[] = {0, 2, 255, 0, 255, 0};

	cr_assert_eq(weir_op_cast(graph, NULL, x, WEIR_U8, &as_u8, NULL), WEIR_OK);
	result = kit_fetch(session, as_u8);
	cr_expect_arr_eq(weir_tensor_data(result), expected, 6);
	weir_tensor_release(result);
	cr_assert_eq(weir_op_cast(graph, NULL, x, WEIR_I64, &as_i64, NULL), WEIR_OK);
	result = kit_fetch(session, as_i64);
	cr_expect_eq(kit_i64_at(result, 0), -1);
	cr_expect_eq(kit_i64_at(result, 3), 0);
	cr_expect_eq(kit_i64_at(result, 4), INT64_MAX);
	cr_expect_eq(kit_i64_at(result, 5), INT64_MIN);
	weir_tensor_release(result);
	cr_assert_eq(weir_op_cast(graph, NULL, as_u8, WEIR_F32, &back, NULL), WEIR_OK);
	expect_f32(graph, back, kit_shape(1, 6), (const float[]){0, 2, 255, 0, 255, 0});
	kit_end(session, graph);
}

/* -- every dtype, compared with long double, which holds each of them exactly ------------------ */

static const enum weir_dtype every_dtype[] = {WEIR_BOOL, WEIR_U8,  WEIR_I8,  WEIR_I16, WEIR_U16, WEIR_U32,
                                              WEIR_U64,  WEIR_I32, WEIR_I64, WEIR_F32, WEIR_F64};
enum { DTYPES = sizeof(every_dtype) / sizeof(every_dtype[0]), NUMERIC_FROM = 7 };

static int is_float(enum weir_dtype dtype)
{
	return dtype == WEIR_F32 || dtype == WEIR_F64;
}

static long double element(const void *data, enum weir_dtype dtype, size_t at)
{
	switch (dtype) {
	case WEIR_BOOL: return ((const uint8_t *)data)[at] != 0;
	case WEIR_U8: return ((const uint8_t *)data)[at];
	case WEIR_I8: return ((const int8_t *)data)[at];
	case WEIR_I16: return ((const int16_t *)data)[at];
	case WEIR_U16: return ((const uint16_t *)data)[at];
	case WEIR_U32: return ((const uint32_t *)data)[at];
	case WEIR_U64: return ((const uint64_t *)data)[at];
	case WEIR_I32: return ((const int32_t *)data)[at];
	case WEIR_I64: return ((const int64_t *)data)[at];
	case WEIR_F32: return ((const float *)data)[at];
	case WEIR_F64: return ((const double *)data)[at];
	case WEIR_F16:
	case WEIR_BF16:
	case WEIR_BYTES: break;
	}
	cr_assert(0, "no such element");
	return 0;
}

/* The value in a dtype: rounded towards zero and saturated, or the nearest one. */
static long double fitted(long double value, enum weir_dtype dtype)
{
	static const long double low[] = {[WEIR_U8] = 0,          [WEIR_I8] = INT8_MIN,   [WEIR_I16] = INT16_MIN,
	                                  [WEIR_I32] = INT32_MIN, [WEIR_I64] = INT64_MIN, [WEIR_U64] = 0};
	static const long double high[] = {
		[WEIR_U8] = UINT8_MAX,  [WEIR_I8] = INT8_MAX,    [WEIR_I16] = INT16_MAX,  [WEIR_I32] = INT32_MAX,
		[WEIR_I64] = INT64_MAX, [WEIR_U16] = UINT16_MAX, [WEIR_U32] = UINT32_MAX, [WEIR_U64] = (long double)UINT64_MAX};

	if (dtype == WEIR_BOOL)
		return value != 0;
	if (dtype == WEIR_F32)
		return (float)value;
	if (dtype == WEIR_F64)
		return (double)value;
	return truncl(value) < low[dtype] ? low[dtype] : truncl(value) > high[dtype] ? high[dtype] : truncl(value);
}

static weir_tensor *tensor_of(enum weir_dtype dtype, weir_shape shape, const long double values[])
{
	_Alignas(16) unsigned char data[16 * sizeof(double)];
	size_t count = 1;

	for (uint32_t i = 0; i < shape.rank; i++)
		count *= (size_t)shape.dims[i];
	cr_assert_leq(count, 16);
	for (size_t i = 0; i < count; i++) {
		switch (dtype) {
		case WEIR_BOOL:
		case WEIR_U8: ((uint8_t *)data)[i] = (uint8_t)fitted(values[i], dtype); break;
		case WEIR_I8: ((int8_t *)data)[i] = (int8_t)fitted(values[i], dtype); break;
		case WEIR_I16: ((int16_t *)data)[i] = (int16_t)fitted(values[i], dtype); break;
		case WEIR_U16: ((uint16_t *)data)[i] = (uint16_t)fitted(values[i], dtype); break;
		case WEIR_U32: ((uint32_t *)data)[i] = (uint32_t)fitted(values[i], dtype); break;
		case WEIR_U64: ((uint64_t *)data)[i] = (uint64_t)fitted(values[i], dtype); break;
		case WEIR_I32: ((int32_t *)data)[i] = (int32_t)fitted(values[i], dtype); break;
		case WEIR_I64: ((int64_t *)data)[i] = (int64_t)fitted(values[i], dtype); break;
		case WEIR_F32: ((float *)data)[i] = (float)values[i]; break;
		case WEIR_F64: ((double *)data)[i] = (double)values[i]; break;
		case WEIR_F16:
		case WEIR_BF16:
		case WEIR_BYTES: cr_assert(0, "no such element"); break;
		}
	}
	return kit_tensor(dtype, shape, data);
}

static void expect_values(weir_session *session, weir_output out, enum weir_dtype dtype, weir_shape shape,
                          const long double expected[], const char *what)
{
	weir_tensor *result = kit_fetch(session, out);

	cr_assert_eq(weir_tensor_dtype(result), dtype, "%s", what);
	cr_assert(weir_shape_equal(weir_tensor_shape(result), &shape), "%s", what);
	for (int64_t i = 0; i < weir_tensor_element_count(result); i++)
		cr_expect_eq(element(weir_tensor_data(result), dtype, (size_t)i), expected[i], "%s of %s, element %d: %Lg",
		             what, weir_dtype_name(dtype), (int)i, element(weir_tensor_data(result), dtype, (size_t)i));
	weir_tensor_release(result);
}

/* Under valgrind a long double is a double, which cannot hold the largest int64. */
static int long_double_holds_int64(void)
{
	volatile long double most = (long double)(INT64_MAX - 1);

	return most + 1 != most;
}

/* The last values are beyond int64, and beyond uint64. */
Test(op_math, every_dtype_is_cast_to_every_other)
{
	static const long double values[] = {0,   1,     -1,     2.75L, -3.5L, 127,   128,  -129,
	                                     300, 40000, -40000, 3e9L,  -3e9L, 1e19L, 1e25L};
	const size_t count = sizeof(values) / sizeof(values[0]) - (long_double_holds_int64() ? 0 : 2);
	weir_shape shape = kit_shape(1, (int)count);
	weir_graph *graph = kit_graph();
	weir_session *session = kit_session(graph, 0);

	for (size_t from = 0; from < DTYPES; from++) {
		weir_tensor *tensor = tensor_of(every_dtype[from], shape, values);
		long double held[16];

		for (size_t i = 0; i < count; i++)
			held[i] = element(weir_tensor_data(tensor), every_dtype[from], i);
		for (size_t to = 0; to < DTYPES; to++) {
			long double expected[16];
			weir_output out;

			for (size_t i = 0; i < count; i++)
				expected[i] = fitted(held[i], every_dtype[to]);
			weir_tensor_retain(tensor);
			cr_assert_eq(weir_op_cast(graph, NULL, kit_constant(graph, tensor), every_dtype[to], &out, NULL), WEIR_OK);
			expect_values(session, out, every_dtype[to], shape, expected, weir_dtype_name(every_dtype[from]));
		}
		weir_tensor_release(tensor);
	}
	kit_end(session, graph);
}

/* The allocator notices writes past a block. */
Test(op_math, a_cast_writes_its_own_elements_and_no_more)
{
	enum { COUNT = 1000 };
	static float values[COUNT];
	struct failing_allocator memory = {0};
	weir_allocator allocator = failing_allocator_hooks(&memory);
	struct weir_session_options options = {WEIR_SESSION_OPTIONS_INIT, .flags = WEIR_SESSION_NO_THREADS,
	                                       .allocator = &allocator};
	weir_graph *graph = kit_graph();
	weir_session *session = NULL;
	weir_output x;

	for (int i = 0; i < COUNT; i++)
		values[i] = (float)(i % 100);
	x = f32_constant(graph, kit_shape(1, COUNT), values);
	cr_assert_eq(weir_session_create(graph, &options, &session, NULL), WEIR_OK);
	for (size_t to = 0; to < DTYPES; to++) {
		weir_output out;
		weir_tensor *result;

		cr_assert_eq(weir_op_cast(graph, NULL, x, every_dtype[to], &out, NULL), WEIR_OK);
		result = kit_fetch(session, out);
		for (size_t i = 0; i < COUNT; i++)
			cr_assert_eq(element(weir_tensor_data(result), every_dtype[to], i), fitted(values[i], every_dtype[to]));
		weir_tensor_release(result);
	}
	kit_end(session, graph);
	cr_expect_str_eq(failing_allocator_verdict(&memory), "balanced");
}

/* The values are small, so that each dtype holds the results. */
Test(op_math, arithmetic_sums_and_argmax_are_the_same_in_every_dtype)
{
	static const long double a[] = {4, -2, 7, 7, 1, -5}, b[] = {3, 5, -6, 0, 2, -1};
	weir_graph *graph = kit_graph();
	weir_session *session = kit_session(graph, 0);

	for (size_t i = NUMERIC_FROM; i < DTYPES; i++) {
		enum weir_dtype dtype = every_dtype[i];
		weir_output x = kit_constant(graph, tensor_of(dtype, kit_shape(2, 2, 3), a));
		weir_output y = kit_constant(graph, tensor_of(dtype, kit_shape(2, 2, 3), b));
		weir_output out;

		cr_assert_eq(weir_op_add(graph, NULL, x, y, &out, NULL), WEIR_OK);
		expect_values(session, out, dtype, kit_shape(2, 2, 3), (const long double[]){7, 3, 1, 7, 3, -6}, "add");
		cr_assert_eq(weir_op_sub(graph, NULL, x, y, &out, NULL), WEIR_OK);
		expect_values(session, out, dtype, kit_shape(2, 2, 3), (const long double[]){1, -7, 13, 7, -1, -4}, "sub");
		cr_assert_eq(weir_op_mul(graph, NULL, x, y, &out, NULL), WEIR_OK);
		expect_values(session, out, dtype, kit_shape(2, 2, 3), (const long double[]){12, -10, -42, 0, 2, 5}, "mul");
		cr_assert_eq(weir_op_square(graph, NULL, x, &out, NULL), WEIR_OK);
		expect_values(session, out, dtype, kit_shape(2, 2, 3), (const long double[]){16, 4, 49, 49, 1, 25}, "square");
		cr_assert_eq(weir_op_reduce_sum(graph, NULL, x, &out, NULL), WEIR_OK);
		expect_values(session, out, dtype, kit_shape(0), (const long double[]){12}, "sum");
		cr_assert_eq(weir_op_reduce_sum_axis(graph, NULL, x, 0, &out, NULL), WEIR_OK);
		expect_values(session, out, dtype, kit_shape(1, 3), (const long double[]){11, -1, 2}, "sum over rows");
		cr_assert_eq(weir_op_reduce_sum_axis(graph, NULL, x, 1, &out, NULL), WEIR_OK);
		expect_values(session, out, dtype, kit_shape(1, 2), (const long double[]){9, 3}, "sum over columns");
		cr_assert_eq(weir_op_argmax(graph, NULL, x, &out, NULL), WEIR_OK);
		expect_values(session, out, WEIR_I64, kit_shape(1, 2), (const long double[]){2, 0}, "argmax");
		if (is_float(dtype)) {
			cr_assert_eq(weir_op_reduce_mean_axis(graph, NULL, x, 1, &out, NULL), WEIR_OK);
			expect_values(session, out, dtype, kit_shape(1, 2), (const long double[]){3, 1}, "mean over columns");
		}
	}
	kit_end(session, graph);
}

/* The same as in f32 (argmax_takes_the_first_of_equals_and_shows_a_nan). */
Test(op_math, argmax_of_f64_takes_the_first_nan)
{
	weir_graph *graph = kit_graph();
	weir_session *session = kit_session(graph, 0);
	weir_output x = kit_constant(graph, kit_tensor(WEIR_F64, kit_shape(1, 4), (const double[]){1, NAN, 7, NAN}));
	weir_output out;

	cr_assert_eq(weir_op_argmax(graph, NULL, x, &out, NULL), WEIR_OK);
	cr_expect_eq(kit_fetch_i64(session, out), 1);
	kit_end(session, graph);
}

Test(op_math, what_cannot_fit_is_refused_when_it_is_built)
{
	weir_graph *graph = kit_graph();
	weir_output x = kit_placeholder(graph, "x", WEIR_F32, kit_shape(2, -1, 3));
	weir_output y = kit_placeholder(graph, "y", WEIR_F32, kit_shape(2, -1, 4));
	weir_output i = kit_placeholder(graph, "i", WEIR_I64, kit_shape(2, -1, 3));
	weir_output u = kit_placeholder(graph, "u", WEIR_U8, kit_shape(1, 3));
	weir_output s = kit_placeholder(graph, "s", WEIR_F32, kit_shape(0));
	weir_output w = kit_placeholder(graph, "w", WEIR_F32, kit_shape(2, 4, 5));
	size_t nodes = weir_graph_node_count(graph);
	weir_output out = {NULL, 7};
	weir_error error;

	cr_expect_eq(weir_op_add(graph, "sum", x, y, &out, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_not_null(strstr(error.message, "add \"sum\""), "%s", error.message);
	cr_expect_not_null(strstr(error.message, "f32 [?,3] and f32 [?,4]"), "%s", error.message);
	cr_expect_eq(weir_op_add(graph, NULL, x, i, &out, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_op_mul(graph, NULL, u, u, &out, &error), WEIR_UNIMPLEMENTED);
	cr_expect_eq(weir_op_square(graph, NULL, u, &out, &error), WEIR_UNIMPLEMENTED);
	cr_expect_eq(weir_op_matmul(graph, "product", x, w, 0, &out, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_not_null(strstr(error.message, "matmul \"product\""), "%s", error.message);
	cr_expect_eq(weir_op_matmul(graph, NULL, i, i, 0, &out, &error), WEIR_UNIMPLEMENTED);
	cr_expect_eq(weir_op_matmul(graph, NULL, x, s, 0, &out, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_op_matmul(graph, NULL, x, x, 8, &out, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_op_reduce_sum_axis(graph, NULL, x, 2, &out, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_op_reduce_sum_axis(graph, NULL, x, UINT32_MAX, &out, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_op_reduce_mean(graph, NULL, i, &out, &error), WEIR_UNIMPLEMENTED);
	cr_expect_eq(weir_op_reduce_sum(graph, NULL, u, &out, &error), WEIR_UNIMPLEMENTED);
	cr_expect_eq(weir_op_argmax(graph, NULL, s, &out, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_op_cast(graph, NULL, x, WEIR_F16, &out, &error), WEIR_UNIMPLEMENTED);
	cr_expect_eq(weir_op_cast(graph, NULL, x, (enum weir_dtype)99, &out, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_null(out.node);
	cr_expect_eq(out.index, 7, "an out parameter was touched on failure");
	cr_expect_eq(weir_graph_node_count(graph), nodes);
	cr_assert_eq(weir_graph_destroy(graph, NULL), WEIR_OK);
}

Test(op_math, shapes_known_only_at_run_time_are_checked_then)
{
	weir_graph *graph = kit_graph();
	weir_session *session = kit_session(graph, 0);
	weir_output x, y, sum;
	weir_tensor *two = kit_tensor(WEIR_F32, kit_shape(1, 2), one_to_six);
	weir_tensor *three = kit_tensor(WEIR_F32, kit_shape(1, 3), one_to_six);
	weir_tensor *result = NULL;
	struct weir_feed feeds[2];
	weir_error error;

	cr_assert_eq(weir_op_placeholder(graph, "x", WEIR_F32, NULL, &x, NULL), WEIR_OK);
	cr_assert_eq(weir_op_placeholder(graph, "y", WEIR_F32, NULL, &y, NULL), WEIR_OK);
	cr_assert_eq(weir_op_add(graph, "sum", x, y, &sum, NULL), WEIR_OK);
	feeds[0] = (struct weir_feed){x, two};
	feeds[1] = (struct weir_feed){y, three};
	cr_expect_eq(weir_session_run(session, feeds, 2, &sum, 1, &result, NULL, 0, WEIR_NO_DEADLINE, NULL, &error),
	             WEIR_INVALID_ARGUMENT);
	cr_expect_not_null(strstr(error.message, "add \"sum\""), "%s", error.message);
	cr_expect_not_null(strstr(error.message, "f32 [2] and f32 [3]"), "%s", error.message);
	cr_expect_null(result);
	weir_tensor_release(two);
	weir_tensor_release(three);
	kit_end(session, graph);
}

Test(op_math, a_target_is_computed_though_its_result_goes_nowhere)
{
	weir_graph *graph = kit_graph();
	weir_session *session = kit_session(graph, 0);
	weir_output x = f32_constant(graph, kit_shape(2, 2, 3), one_to_six);
	weir_output labels = kit_constant(graph, kit_tensor(WEIR_I32, kit_shape(1, 2), (const int32_t[]){0, 2}));
	weir_output outs[9];
	weir_error error;

	cr_assert_eq(weir_op_add(graph, NULL, x, x, &outs[0], NULL), WEIR_OK);
	cr_assert_eq(weir_op_square(graph, NULL, x, &outs[1], NULL), WEIR_OK);
	cr_assert_eq(weir_op_matmul(graph, NULL, x, x, WEIR_MATMUL_TRANSPOSE_B, &outs[2], NULL), WEIR_OK);
	cr_assert_eq(weir_op_reduce_sum(graph, NULL, x, &outs[3], NULL), WEIR_OK);
	cr_assert_eq(weir_op_reduce_sum_axis(graph, NULL, x, 0, &outs[4], NULL), WEIR_OK);
	cr_assert_eq(weir_op_reduce_mean_axis(graph, NULL, x, 1, &outs[5], NULL), WEIR_OK);
	cr_assert_eq(weir_op_argmax(graph, NULL, x, &outs[6], NULL), WEIR_OK);
	cr_assert_eq(weir_op_cast(graph, NULL, x, WEIR_I32, &outs[7], NULL), WEIR_OK);
	cr_assert_eq(weir_op_softmax_cross_entropy(graph, NULL, x, labels, &outs[8], NULL, NULL), WEIR_OK);
	for (size_t i = 0; i < sizeof(outs) / sizeof(outs[0]); i++)
		cr_expect_eq(kit_run_target(session, outs[i].node, &error), WEIR_OK, "%s: %s", weir_node_op(outs[i].node),
		             error.message);
	kit_end(session, graph);
}

Test(op_math, partial_shapes_are_merged)
{
	weir_graph *graph = kit_graph();
	weir_output x = kit_placeholder(graph, "x", WEIR_F32, kit_shape(2, -1, 64));
	weir_output w = kit_placeholder(graph, "w", WEIR_F32, kit_shape(2, 64, 10));
	weir_output b = kit_placeholder(graph, "b", WEIR_F32, kit_shape(1, 10));
	weir_output xw, logits, best;
	enum weir_dtype dtype = WEIR_U8;
	weir_shape shape;

	cr_assert_eq(weir_op_matmul(graph, NULL, x, w, 0, &xw, NULL), WEIR_OK);
	cr_assert_eq(weir_op_add(graph, NULL, xw, b, &logits, NULL), WEIR_OK);
	cr_assert_eq(weir_op_argmax(graph, NULL, logits, &best, NULL), WEIR_OK);
	cr_assert_eq(weir_output_spec(logits, &dtype, &shape, NULL), WEIR_OK);
	cr_expect_eq(dtype, WEIR_F32);
	cr_expect_eq(shape.rank, 2);
	cr_expect_lt(shape.dims[0], 0);
	cr_expect_eq(shape.dims[1], 10);
	cr_assert_eq(weir_output_spec(best, &dtype, &shape, NULL), WEIR_OK);
	cr_expect_eq(dtype, WEIR_I64);
	cr_expect_eq(shape.rank, 1);
	cr_assert_eq(weir_graph_destroy(graph, NULL), WEIR_OK);
}
