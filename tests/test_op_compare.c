/*
 * test_op_compare.c - comparisons, logic and select: values, shapes, refusals.
 */
#include <math.h>

#include "graph_kit.h"

typedef enum weir_status binary_fn(weir_graph *, const char *, weir_output, weir_output, weir_output *, weir_error *);

static binary_fn *const comparisons[] = {weir_op_equal,      weir_op_not_equal, weir_op_less,
                                         weir_op_less_equal, weir_op_greater,   weir_op_greater_equal};

/* `expected` has a character for each element: '1' is true. */
static void expect_bools(weir_graph *graph, weir_output out, weir_shape shape, const char *expected)
{
	weir_session *session = kit_session(graph, 0);
	weir_tensor *result = kit_fetch(session, out);

	cr_assert_eq(weir_tensor_dtype(result), WEIR_BOOL);
	cr_assert(weir_shape_equal(weir_tensor_shape(result), &shape));
	cr_assert_eq((size_t)weir_tensor_element_count(result), strlen(expected));
	for (size_t i = 0; expected[i] != '\0'; i++)
		cr_expect_eq(((const uint8_t *)weir_tensor_data(result))[i], expected[i] == '1', "element %zu of %s", i,
		             weir_node_op(out.node));
	weir_tensor_release(result);
	cr_assert_eq(weir_session_destroy(session, NULL), WEIR_OK);
}

static weir_output bools(weir_graph *graph, weir_shape shape, const char *values)
{
	uint8_t bytes[16];

	for (size_t i = 0; values[i] != '\0'; i++)
		bytes[i] = values[i] == '1';
	return kit_constant(graph, kit_tensor(WEIR_BOOL, shape, bytes));
}

/* expected[i] is the outcome of comparisons[i]. */
static void expect_comparisons(weir_graph *graph, weir_output a, weir_output b, weir_shape shape,
                               const char *const expected[])
{
	for (size_t i = 0; i < 6; i++) {
		weir_output out;

		cr_assert_eq(comparisons[i](graph, NULL, a, b, &out, NULL), WEIR_OK);
		expect_bools(graph, out, shape, expected[i]);
	}
}

Test(op_compare, numbers_of_each_dtype_are_less_equal_or_greater)
{
	static const char *const expected[] = {"010", "101", "100", "110", "001", "011"};
	static const int32_t i32[2][3] = {{-5, 2, 7}, {-4, 2, 6}};
	static const int64_t i64[2][3] = {{INT64_MIN, 0, INT64_MAX}, {INT64_MAX, 0, INT64_MIN}};
	static const float f32[2][3] = {{-INFINITY, -0.0f, 1}, {-1, 0.0f, 0.5f}};
	static const double f64[2][3] = {{1, 2, 1.0000000000000002}, {2, 2, 1}};
	static const enum weir_dtype dtypes[] = {WEIR_I32, WEIR_I64, WEIR_F32, WEIR_F64};
	const void *const values[][2] = {{i32[0], i32[1]}, {i64[0], i64[1]}, {f32[0], f32[1]}, {f64[0], f64[1]}};
	weir_graph *graph = kit_graph();

	for (size_t i = 0; i < 4; i++)
		expect_comparisons(graph, kit_constant(graph, kit_tensor(dtypes[i], kit_shape(1, 3), values[i][0])),
		                   kit_constant(graph, kit_tensor(dtypes[i], kit_shape(1, 3), values[i][1])), kit_shape(1, 3),
		                   expected);
	cr_assert_eq(weir_graph_destroy(graph, NULL), WEIR_OK);
}

Test(op_compare, a_nan_is_only_not_equal)
{
	static const char *const expected[] = {"00", "11", "00", "00", "00", "00"};
	weir_graph *graph = kit_graph();
	weir_output a = kit_constant(graph, kit_tensor(WEIR_F32, kit_shape(1, 2), (const float[]){NAN, NAN}));
	weir_output b = kit_constant(graph, kit_tensor(WEIR_F32, kit_shape(1, 2), (const float[]){1, NAN}));

	expect_comparisons(graph, a, b, kit_shape(1, 2), expected);
	cr_assert_eq(weir_graph_destroy(graph, NULL), WEIR_OK);
}

Test(op_compare, the_smaller_operand_is_repeated_on_either_side)
{
	weir_graph *graph = kit_graph();
	weir_output x = kit_constant(graph, kit_tensor(WEIR_I32, kit_shape(2, 2, 3), (const int32_t[]){1, 2, 3, 4, 5, 6}));
	weir_output row = kit_constant(graph, kit_tensor(WEIR_I32, kit_shape(1, 3), (const int32_t[]){2, 2, 9}));
	weir_output scalar = kit_constant(graph, kit_tensor(WEIR_I32, kit_shape(0), (const int32_t[]){3}));
	weir_output out, wide, narrow;

	cr_assert_eq(weir_op_less(graph, NULL, x, row, &out, NULL), WEIR_OK);
	expect_bools(graph, out, kit_shape(2, 2, 3), "101001");
	cr_assert_eq(weir_op_less(graph, NULL, row, x, &out, NULL), WEIR_OK);
	expect_bools(graph, out, kit_shape(2, 2, 3), "000110");
	cr_assert_eq(weir_op_greater_equal(graph, NULL, x, scalar, &wide, NULL), WEIR_OK);
	expect_bools(graph, wide, kit_shape(2, 2, 3), "001111");
	cr_assert_eq(weir_op_greater_equal(graph, NULL, scalar, x, &out, NULL), WEIR_OK);
	expect_bools(graph, out, kit_shape(2, 2, 3), "111000");
	narrow = bools(graph, kit_shape(1, 3), "101");
	cr_assert_eq(weir_op_and(graph, NULL, wide, narrow, &out, NULL), WEIR_OK);
	expect_bools(graph, out, kit_shape(2, 2, 3), "001101");
	cr_assert_eq(weir_op_or(graph, NULL, narrow, wide, &out, NULL), WEIR_OK);
	expect_bools(graph, out, kit_shape(2, 2, 3), "101111");
	cr_assert_eq(weir_op_or(graph, NULL, bools(graph, kit_shape(0), "1"), wide, &out, NULL), WEIR_OK);
	expect_bools(graph, out, kit_shape(2, 2, 3), "111111");
	cr_assert_eq(weir_graph_destroy(graph, NULL), WEIR_OK);
}

Test(op_compare, and_or_not_have_their_truth_tables)
{
	weir_graph *graph = kit_graph();
	weir_output a = bools(graph, kit_shape(1, 4), "0011"), b = bools(graph, kit_shape(1, 4), "0101");
	weir_output both, either, inverse;

	cr_assert_eq(weir_op_and(graph, NULL, a, b, &both, NULL), WEIR_OK);
	cr_assert_eq(weir_op_or(graph, NULL, a, b, &either, NULL), WEIR_OK);
	cr_assert_eq(weir_op_not(graph, NULL, either, &inverse, NULL), WEIR_OK);
	expect_bools(graph, both, kit_shape(1, 4), "0001");
	expect_bools(graph, either, kit_shape(1, 4), "0111");
	expect_bools(graph, inverse, kit_shape(1, 4), "1000");
	cr_assert_eq(weir_graph_destroy(graph, NULL), WEIR_OK);
}

Test(op_compare, select_takes_elements_or_one_of_two_tensors)
{
	weir_graph *graph = kit_graph();
	weir_output a = kit_constant(graph, kit_tensor(WEIR_F32, kit_shape(1, 3), (const float[]){1, 2, 3}));
	weir_output b = kit_constant(graph, kit_tensor(WEIR_F32, kit_shape(1, 3), (const float[]){10, 20, 30}));
	weir_output sum, out, whole;
	weir_session *session;
	weir_tensor *result, *taken, *direct;

	/* The operands are spent here, so that the output may lie over one of them. */
	cr_assert_eq(weir_op_add(graph, NULL, a, a, &sum, NULL), WEIR_OK);
	cr_assert_eq(weir_op_select(graph, NULL, bools(graph, kit_shape(1, 3), "010"), sum, b, &out, NULL), WEIR_OK);
	cr_assert_eq(weir_op_select(graph, NULL, bools(graph, kit_shape(0), "0"), a, b, &whole, NULL), WEIR_OK);
	session = kit_session(graph, 0);
	result = kit_fetch(session, out);
	cr_expect_eq(kit_f32_at(result, 0), 10);
	cr_expect_eq(kit_f32_at(result, 1), 4);
	cr_expect_eq(kit_f32_at(result, 2), 30);
	taken = kit_fetch(session, whole);
	direct = kit_fetch(session, b);
	cr_expect_eq(weir_tensor_data(taken), weir_tensor_data(direct), "a scalar condition copies nothing");
	weir_tensor_release(result);
	weir_tensor_release(taken);
	weir_tensor_release(direct);
	kit_end(session, graph);
}

Test(op_compare, what_does_not_fit_is_refused)
{
	weir_graph *graph = kit_graph();
	weir_output f = kit_constant(graph, kit_f32(1)), i = kit_constant(graph, kit_i64(1));
	weir_output yes = bools(graph, kit_shape(0), "1"), three = bools(graph, kit_shape(1, 3), "110"), out;
	weir_error error;

	cr_expect_eq(weir_op_less(graph, "x", f, i, &out, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_str_eq(error.message,
	                 "less \"x\": expected one dtype and equal shapes, or one the last dims of the other; "
	                 "got f32 [] and i64 []");
	cr_expect_eq(weir_op_equal(graph, NULL, yes, yes, &out, &error), WEIR_UNIMPLEMENTED);
	cr_expect_eq(weir_op_and(graph, "x", yes, f, &out, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_str_eq(error.message, "and \"x\": expected bool, got f32");
	cr_expect_eq(weir_op_or(graph, "x", f, yes, &out, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_op_not(graph, "x", i, &out, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_op_select(graph, "x", yes, f, i, &out, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_str_eq(error.message, "select \"x\": expected two values of one dtype and shape, got f32 [] and i64 []");
	cr_expect_eq(weir_op_select(graph, "x", three, f, f, &out, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_str_eq(error.message, "select \"x\": expected a condition that is a scalar or fits f32 [], got bool [3]");
	cr_expect_eq(weir_op_select(graph, "x", f, f, f, &out, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_graph_node_count(graph), 4);
	cr_assert_eq(weir_graph_destroy(graph, NULL), WEIR_OK);
}

Test(op_compare, shapes_that_are_known_late_are_checked_late)
{
	weir_graph *graph = kit_graph();
	weir_output a = kit_placeholder(graph, "a", WEIR_F32, kit_shape(1, -1));
	weir_output b = kit_constant(graph, kit_tensor(WEIR_F32, kit_shape(1, 2), (const float[]){1, 2}));
	weir_output out;
	struct weir_feed feed = {a, NULL};
	weir_tensor *result = NULL;
	weir_session *session;
	weir_error error;

	cr_assert_eq(weir_op_select(graph, "s", bools(graph, kit_shape(0), "1"), a, b, &out, NULL), WEIR_OK);
	session = kit_session(graph, 0);
	feed.value = kit_tensor(WEIR_F32, kit_shape(1, 3), (const float[]){1, 2, 3});
	cr_expect_eq(weir_session_run(session, &feed, 1, &out, 1, &result, NULL, 0, WEIR_NO_DEADLINE, NULL, &error),
	             WEIR_INVALID_ARGUMENT);
	cr_expect_str_eq(error.message,
	                 "select \"s\": expected two values of one dtype and shape, got f32 [3] and f32 [2]");
	weir_tensor_release(feed.value);
	kit_end(session, graph);
}
