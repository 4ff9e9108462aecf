/*
 * test_op_elementwise.c - the ops of weir/flow/op_math.h: values, dtypes, NaN, and refusals.
 */
#include <math.h>

#include <weir/flow.h>

#include "graph_kit.h"

typedef enum weir_status unary_fn(weir_graph *graph, const char *name, weir_output x, weir_output *out,
                                  weir_error *error);
typedef enum weir_status binary_fn(weir_graph *graph, const char *name, weir_output a, weir_output b, weir_output *out,
                                   weir_error *error);

enum { MOST = 4 };

struct unary_case {
	const char *name;
	unary_fn *op;
	bool floats_only;
	double x[MOST], y[MOST];
};

static const struct unary_case unary[] = {
	{"neg", weir_op_neg, false, {-2, 0, 1, 3}, {2, 0, -1, -3}},
	{"abs", weir_op_abs, false, {-2, 0, 1, 3}, {2, 0, 1, 3}},
	{"sign", weir_op_sign, false, {-2, 0, 1, 3}, {-1, 0, 1, 1}},
	{"square", weir_op_square, false, {-2, 0, 1, 3}, {4, 0, 1, 9}},
	{"relu", weir_op_relu, false, {-2, 0, 1, 3}, {0, 0, 1, 3}},
	{"exp", weir_op_exp, true, {-2, 0, 1, 3}, {0.1353352832366127, 1, 2.718281828459045, 20.085536923187668}},
	{"log", weir_op_log, true, {0.5, 1, 2, 4}, {-0.6931471805599453, 0, 0.6931471805599453, 1.3862943611198906}},
	{"sqrt", weir_op_sqrt, true, {0, 1, 4, 9}, {0, 1, 2, 3}},
	{"tanh", weir_op_tanh, true, {-1, 0, 1, 30}, {-0.7615941559557649, 0, 0.7615941559557649, 1}},
	{"sigmoid", weir_op_sigmoid, true, {-1000, 0, 1, 1000}, {0, 0.5, 0.7310585786300049, 1}},
};

struct binary_case {
	const char *name;
	binary_fn *op;
	double a[MOST], b[MOST], y[MOST], integer_y[MOST];
};

static const struct binary_case binary[] = {
	{"div", weir_op_div, {7, -7, 7, 1}, {2, 2, -2, 4}, {3.5, -3.5, -3.5, 0.25}, {3, -3, -3, 0}},
	{"maximum", weir_op_maximum, {1, -5, 3, 0}, {2, -6, 3, -1}, {2, -5, 3, 0}, {2, -5, 3, 0}},
	{"minimum", weir_op_minimum, {1, -5, 3, 0}, {2, -6, 3, -1}, {1, -6, 3, -1}, {1, -6, 3, -1}},
};

static const enum weir_dtype dtypes[] = {WEIR_F32, WEIR_F64, WEIR_I32, WEIR_I64};
enum { DTYPES = 4 };

static weir_tensor *tensor_of(enum weir_dtype dtype, const double values[])
{
	weir_shape shape = kit_shape(1, MOST);
	weir_tensor *tensor = NULL;
	float f32[MOST];
	int32_t i32[MOST];
	int64_t i64[MOST];
	const void *data = dtype == WEIR_F32 ? (void *)f32 : dtype == WEIR_I32 ? (void *)i32 : (void *)i64;

	for (int i = 0; i < MOST; i++) {
		f32[i] = (float)values[i];
		i32[i] = (int32_t)values[i];
		i64[i] = (int64_t)values[i];
	}
	cr_assert_eq(weir_tensor_copy_of(dtype, &shape, dtype == WEIR_F64 ? values : data, NULL, &tensor), WEIR_OK);
	return tensor;
}

static double element(const weir_tensor *tensor, size_t i)
{
	const void *data = weir_tensor_data(tensor);

	switch (weir_tensor_dtype(tensor)) {
	case WEIR_F32: return (double)((const float *)data)[i];
	case WEIR_F64: return ((const double *)data)[i];
	case WEIR_I32: return (double)((const int32_t *)data)[i];
	default: return (double)((const int64_t *)data)[i];
	}
}

static void expect_values(weir_graph *graph, weir_output out, enum weir_dtype dtype, const double expected[],
                          const char *name)
{
	weir_session *session = kit_session(graph, 0);
	weir_tensor *result = kit_fetch(session, out);

	cr_assert_eq(weir_tensor_dtype(result), dtype);
	for (size_t i = 0; i < MOST; i++)
		cr_expect_float_eq(element(result, i), expected[i], dtype == WEIR_F32 ? 1e-5 * (1 + fabs(expected[i])) : 1e-12,
		                   "%s of %s, element %zu: %.17g", name, weir_dtype_name(dtype), i, element(result, i));
	weir_tensor_release(result);
	cr_assert_eq(weir_session_destroy(session, NULL), WEIR_OK);
}

Test(op_elementwise, one_operand_of_each_dtype)
{
	for (size_t k = 0; k < sizeof(unary) / sizeof(unary[0]); k++) {
		for (int d = 0; d < DTYPES; d++) {
			weir_graph *graph = kit_graph();
			weir_output x = kit_constant(graph, tensor_of(dtypes[d], unary[k].x)), out = {NULL, 0};
			enum weir_status status = unary[k].op(graph, NULL, x, &out, NULL);

			if (unary[k].floats_only && d >= 2) {
				cr_expect_eq(status, WEIR_UNIMPLEMENTED, "%s", unary[k].name);
				cr_expect_null(out.node);
			} else {
				cr_assert_eq(status, WEIR_OK, "%s", unary[k].name);
				expect_values(graph, out, dtypes[d], unary[k].y, unary[k].name);
			}
			cr_assert_eq(weir_graph_destroy(graph, NULL), WEIR_OK);
		}
	}
}

Test(op_elementwise, two_operands_of_each_dtype)
{
	for (size_t k = 0; k < sizeof(binary) / sizeof(binary[0]); k++) {
		for (int d = 0; d < DTYPES; d++) {
			weir_graph *graph = kit_graph();
			weir_output a = kit_constant(graph, tensor_of(dtypes[d], binary[k].a));
			weir_output b = kit_constant(graph, tensor_of(dtypes[d], binary[k].b)), out;

			cr_assert_eq(binary[k].op(graph, NULL, a, b, &out, NULL), WEIR_OK);
			expect_values(graph, out, dtypes[d], d < 2 ? binary[k].y : binary[k].integer_y, binary[k].name);
			cr_assert_eq(weir_graph_destroy(graph, NULL), WEIR_OK);
		}
	}
}

Test(op_elementwise, integers_wrap_and_are_not_divided_by_zero)
{
	weir_graph *graph = kit_graph();
	weir_session *session = kit_session(graph, 0);
	weir_output least = kit_constant(graph, kit_i64(INT64_MIN)), minus = kit_constant(graph, kit_i64(-1)), out;
	weir_output one_and_zero[] = {kit_constant(graph, kit_tensor(WEIR_I64, kit_shape(1, 2), (const int64_t[]){1, 0})),
	                              kit_constant(graph, kit_tensor(WEIR_I32, kit_shape(1, 2), (const int32_t[]){1, 0}))};
	weir_tensor *result = NULL;
	weir_error error;

	cr_assert_eq(weir_op_div(graph, NULL, least, minus, &out, NULL), WEIR_OK);
	cr_expect_eq(kit_fetch_i64(session, out), INT64_MIN);
	cr_assert_eq(weir_op_abs(graph, NULL, least, &out, NULL), WEIR_OK);
	cr_expect_eq(kit_fetch_i64(session, out), INT64_MIN);
	for (int i = 0; i < 2; i++) {
		weir_output divisor = one_and_zero[i];

		cr_assert_eq(weir_op_div(graph, i == 0 ? "i64" : "i32", divisor, divisor, &out, NULL), WEIR_OK);
		cr_expect_eq(weir_session_run(session, NULL, 0, &out, 1, &result, NULL, 0, WEIR_NO_DEADLINE, NULL, &error),
		             WEIR_INVALID_ARGUMENT);
		cr_expect_not_null(strstr(error.message, ": an integer is divided by 0"), "%s", error.message);
	}
	out = kit_constant(graph, kit_tensor(WEIR_I32, kit_shape(0), &(const int32_t){1}));
	cr_assert_eq(weir_op_div(graph, NULL, out, out, &out, NULL), WEIR_OK);
	result = kit_fetch(session, out);
	cr_expect_eq(*(const int32_t *)weir_tensor_data(result), 1);
	weir_tensor_release(result);
	kit_end(session, graph);
}

Test(op_elementwise, a_nan_stays_one)
{
	const double a[MOST] = {NAN, 1, NAN, 2}, b[MOST] = {1, NAN, NAN, 3};
	binary_fn *const ops[] = {weir_op_maximum, weir_op_minimum};
	unary_fn *const others[] = {weir_op_relu, weir_op_sign, weir_op_abs, weir_op_reduce_max, weir_op_reduce_min};

	for (int d = 0; d < 2; d++) {
		weir_graph *graph = kit_graph();
		weir_session *session = kit_session(graph, 0);
		weir_output x = kit_constant(graph, tensor_of(dtypes[d], a));
		weir_output y = kit_constant(graph, tensor_of(dtypes[d], b)), out;
		weir_tensor *result;

		for (int k = 0; k < 2; k++) {
			cr_assert_eq(ops[k](graph, NULL, x, y, &out, NULL), WEIR_OK);
			result = kit_fetch(session, out);
			for (size_t i = 0; i < 3; i++)
				cr_expect(isnan(element(result, i)), "op %d, element %zu", k, i);
			weir_tensor_release(result);
		}
		for (int k = 0; k < 5; k++) {
			cr_assert_eq(others[k](graph, NULL, x, &out, NULL), WEIR_OK);
			result = kit_fetch(session, out);
			cr_expect(isnan(element(result, 0)), "op %d", k);
			weir_tensor_release(result);
		}
		kit_end(session, graph);
	}
}

Test(op_elementwise, the_largest_and_smallest_along_axes)
{
	const double values[] = {4, -1, 3, 3};
	weir_shape square = kit_shape(2, 2, 2);

	for (int d = 0; d < DTYPES; d++) {
		weir_graph *graph = kit_graph();
		weir_session *session = kit_session(graph, 0);
		weir_output x = kit_constant(graph, tensor_of(dtypes[d], values)), out;
		weir_tensor *result;

		cr_assert_eq(weir_op_reshape(graph, NULL, x, &square, &x, NULL), WEIR_OK);
		cr_assert_eq(weir_op_reduce_max(graph, NULL, x, &out, NULL), WEIR_OK);
		result = kit_fetch(session, out);
		cr_expect_eq(element(result, 0), 4);
		weir_tensor_release(result);
		cr_assert_eq(weir_op_reduce_min_axis(graph, NULL, x, 1, &out, NULL), WEIR_OK);
		result = kit_fetch(session, out);
		cr_expect(element(result, 0) == -1 && element(result, 1) == 3);
		weir_tensor_release(result);
		cr_assert_eq(weir_op_reduce_max_axis(graph, NULL, x, 0, &out, NULL), WEIR_OK);
		result = kit_fetch(session, out);
		cr_expect(element(result, 0) == 4 && element(result, 1) == 3);
		weir_tensor_release(result);
		kit_end(session, graph);
	}
}

Test(op_elementwise, what_does_not_fit_is_refused_by_name)
{
	weir_graph *graph = kit_graph();
	weir_session *session = kit_session(graph, 0);
	weir_output truth = kit_constant(graph, kit_tensor(WEIR_BOOL, kit_shape(1, 2), (const bool[]){true, false}));
	weir_output none = kit_constant(graph, kit_tensor(WEIR_F32, kit_shape(2, 2, 0), NULL)), out = {NULL, 0};
	weir_output x = kit_constant(graph, kit_f32(1));
	weir_tensor *result = NULL;
	weir_error error;

	cr_expect_eq(weir_op_relu(graph, "r", truth, &out, &error), WEIR_UNIMPLEMENTED);
	cr_expect_str_eq(error.message, "relu \"r\": expected i32, i64, f32 or f64, got bool");
	cr_expect_eq(weir_op_maximum(graph, "m", truth, truth, &out, &error), WEIR_UNIMPLEMENTED);
	cr_expect_eq(weir_op_reduce_max_axis(graph, "a", x, 0, &out, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_str_eq(error.message, "reduce_max \"a\": there is no axis 0 in f32 []");
	cr_expect_eq(weir_op_reduce_max_axis(graph, "a", x, UINT32_MAX, &out, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_op_softmax(graph, "s", x, &out, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_op_softmax(graph, "s", truth, &out, &error), WEIR_UNIMPLEMENTED);
	cr_expect_eq(weir_op_exp(graph, "e", x, NULL, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_null(out.node);
	cr_assert_eq(weir_op_reduce_min_axis(graph, "least", none, 1, &out, &error), WEIR_OK);
	cr_expect_eq(weir_session_run(session, NULL, 0, &out, 1, &result, NULL, 0, WEIR_NO_DEADLINE, NULL, &error),
	             WEIR_INVALID_ARGUMENT);
	cr_expect_not_null(strstr(error.message, "reduce_min \"least\": there are no elements"), "%s", error.message);
	kit_end(session, graph);
}

Test(op_elementwise, softmax_rows_are_probabilities_and_do_not_overflow)
{
	weir_graph *graph = kit_graph();
	weir_session *session = kit_session(graph, 0);
	const float logits[] = {1000, 1000, 1, 2};
	weir_output x = kit_constant(graph, kit_tensor(WEIR_F32, kit_shape(2, 2, 2), logits)), out;
	weir_tensor *result;

	cr_assert_eq(weir_op_softmax(graph, NULL, x, &out, NULL), WEIR_OK);
	result = kit_fetch(session, out);
	cr_expect_float_eq(kit_f32_at(result, 0), 0.5f, 1e-6f);
	cr_expect_float_eq(kit_f32_at(result, 3), 0.7310586f, 1e-6f);
	cr_expect_float_eq(kit_f32_at(result, 2) + kit_f32_at(result, 3), 1.0f, 1e-6f);
	weir_tensor_release(result);
	kit_end(session, graph);
}
