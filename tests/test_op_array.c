/*
 * test_op_array.c - the ops of weir/flow/op_array.h: views, parts, rows by number, random numbers.
 */
#include <math.h>

#include <weir/flow.h>

#include "graph_kit.h"

static const float one_to_twelve[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};

static void expect_f32(weir_graph *graph, weir_output out, weir_shape shape, const float expected[])
{
	weir_session *session = kit_session(graph, 0);
	weir_tensor *result = kit_fetch(session, out);

	cr_assert(weir_shape_equal(weir_tensor_shape(result), &shape));
	for (int64_t i = 0; i < weir_tensor_element_count(result); i++)
		cr_expect_eq(kit_f32_at(result, (size_t)i), expected[i], "element %d: %f", (int)i,
		             (double)kit_f32_at(result, (size_t)i));
	weir_tensor_release(result);
	cr_assert_eq(weir_session_destroy(session, NULL), WEIR_OK);
}

static weir_output matrix(weir_graph *graph)
{
	return kit_constant(graph, kit_tensor(WEIR_F32, kit_shape(2, 3, 4), one_to_twelve));
}

Test(op_array, reshape_rows_and_parts_along_axis_0_are_views)
{
	weir_graph *graph = kit_graph();
	weir_session *session = kit_session(graph, 0);
	weir_tensor *value = kit_tensor(WEIR_F32, kit_shape(2, 3, 4), one_to_twelve), *results[4];
	weir_shape shape = kit_shape(3, 2, -1, 3);
	weir_output x, outs[4], parts[3];

	cr_assert_eq(weir_op_constant(graph, NULL, value, &x, NULL), WEIR_OK);
	cr_assert_eq(weir_op_reshape(graph, NULL, x, &shape, &outs[0], NULL), WEIR_OK);
	cr_assert_eq(weir_op_rows(graph, NULL, x, 1, WEIR_REST, &outs[1], NULL), WEIR_OK);
	cr_assert_eq(weir_op_slice(graph, NULL, x, 0, 2, 1, &outs[2], NULL), WEIR_OK);
	cr_assert_eq(weir_op_split(graph, NULL, x, 0, 3, parts, NULL), WEIR_OK);
	outs[3] = parts[1];
	cr_assert_eq(weir_session_run(session, NULL, 0, outs, 4, results, NULL, 0, WEIR_NO_DEADLINE, NULL, NULL), WEIR_OK);
	cr_expect_eq(weir_tensor_data(results[0]), weir_tensor_data(value));
	cr_expect(weir_shape_equal(weir_tensor_shape(results[0]), &(weir_shape){3, {2, 2, 3}}));
	cr_expect_eq(weir_tensor_data(results[1]), (const float *)weir_tensor_data(value) + 4);
	cr_expect(weir_shape_equal(weir_tensor_shape(results[1]), &(weir_shape){2, {2, 4}}));
	cr_expect_eq(weir_tensor_data(results[2]), (const float *)weir_tensor_data(value) + 8);
	cr_expect_eq(weir_tensor_data(results[3]), (const float *)weir_tensor_data(value) + 4);
	for (int i = 0; i < 4; i++)
		weir_tensor_release(results[i]);
	weir_tensor_release(value);
	kit_end(session, graph);
}

Test(op_array, slice_split_and_concat_along_a_later_axis)
{
	weir_graph *graph = kit_graph();
	weir_output x = matrix(graph), out, parts[2], joined[3];

	cr_assert_eq(weir_op_slice(graph, NULL, x, 1, 1, 2, &out, NULL), WEIR_OK);
	expect_f32(graph, out, kit_shape(2, 3, 2), (const float[]){2, 3, 6, 7, 10, 11});
	cr_assert_eq(weir_op_split(graph, NULL, x, 1, 2, parts, NULL), WEIR_OK);
	expect_f32(graph, parts[1], kit_shape(2, 3, 2), (const float[]){3, 4, 7, 8, 11, 12});
	joined[0] = parts[1];
	joined[1] = out;
	joined[2] = parts[0];
	cr_assert_eq(weir_op_concat(graph, NULL, joined, 3, 1, &out, NULL), WEIR_OK);
	expect_f32(graph, out, kit_shape(2, 3, 6),
	           (const float[]){3, 4, 2, 3, 1, 2, 7, 8, 6, 7, 5, 6, 11, 12, 10, 11, 9, 10});
	cr_assert_eq(weir_op_concat(graph, NULL, parts, 2, 0, &out, NULL), WEIR_OK);
	expect_f32(graph, out, kit_shape(2, 6, 2), (const float[]){1, 2, 5, 6, 9, 10, 3, 4, 7, 8, 11, 12});
	cr_assert_eq(weir_graph_destroy(graph, NULL), WEIR_OK);
}

Test(op_array, transpose_in_reverse_and_in_an_order)
{
	weir_graph *graph = kit_graph();
	weir_output x = matrix(graph), out;
	weir_shape cube = kit_shape(3, 2, 3, 2);

	cr_assert_eq(weir_op_transpose(graph, NULL, x, NULL, 0, &out, NULL), WEIR_OK);
	expect_f32(graph, out, kit_shape(2, 4, 3), (const float[]){1, 5, 9, 2, 6, 10, 3, 7, 11, 4, 8, 12});
	cr_assert_eq(weir_op_reshape(graph, NULL, x, &cube, &x, NULL), WEIR_OK);
	cr_assert_eq(weir_op_transpose(graph, NULL, x, (const uint32_t[]){1, 2, 0}, 3, &out, NULL), WEIR_OK);
	expect_f32(graph, out, kit_shape(3, 3, 2, 2), (const float[]){1, 7, 2, 8, 3, 9, 4, 10, 5, 11, 6, 12});
	cr_assert_eq(weir_graph_destroy(graph, NULL), WEIR_OK);
}

Test(op_array, rows_by_number_and_one_hot)
{
	weir_graph *graph = kit_graph();
	weir_session *session = kit_session(graph, 0);
	weir_output x = matrix(graph), out;
	weir_output indices = kit_constant(graph, kit_tensor(WEIR_I32, kit_shape(1, 3), (const int32_t[]){2, 0, 3}));
	weir_output good = kit_constant(graph, kit_tensor(WEIR_I64, kit_shape(1, 2), (const int64_t[]){2, 0}));
	weir_tensor *result = NULL;
	weir_error error;

	cr_assert_eq(weir_op_gather_rows(graph, NULL, x, good, &out, NULL), WEIR_OK);
	expect_f32(graph, out, kit_shape(2, 2, 4), (const float[]){9, 10, 11, 12, 1, 2, 3, 4});
	cr_assert_eq(weir_op_one_hot(graph, NULL, indices, 3, WEIR_F32, &out, NULL), WEIR_OK);
	expect_f32(graph, out, kit_shape(2, 3, 3), (const float[]){0, 0, 1, 1, 0, 0, 0, 0, 0});
	cr_assert_eq(weir_op_gather_rows(graph, "rows", x, indices, &out, NULL), WEIR_OK);
	cr_expect_eq(weir_session_run(session, NULL, 0, &out, 1, &result, NULL, 0, WEIR_NO_DEADLINE, NULL, &error),
	             WEIR_INVALID_ARGUMENT);
	cr_expect_not_null(strstr(error.message, "gather_rows \"rows\""), "%s", error.message);
	kit_end(session, graph);
}

/* WEIR_OUT_OF_RANGE would tell the loop around the run that its input has ended. */
Test(op_array, a_part_that_a_run_does_not_find_is_a_fault_and_no_end)
{
	weir_graph *graph = kit_graph();
	weir_session *session = kit_session(graph, 0);
	weir_output x = kit_placeholder(graph, "x", WEIR_F32, kit_shape(1, -1)), out;
	struct weir_feed feed = {x, kit_tensor(WEIR_F32, kit_shape(1, 3), (const float[]){1, 2, 3})};
	weir_tensor *result = NULL;
	weir_error error;

	cr_assert_eq(weir_op_rows(graph, "batch", x, 0, 4, &out, NULL), WEIR_OK);
	cr_expect_eq(weir_session_run(session, &feed, 1, &out, 1, &result, NULL, 0, WEIR_NO_DEADLINE, NULL, &error),
	             WEIR_INVALID_ARGUMENT);
	cr_expect_str_eq(error.message, "slice \"batch\": axis 0 has 3, 4 from 0 on are too many");
	cr_expect_null(result);
	weir_tensor_release(feed.value);
	kit_end(session, graph);
}

Test(op_array, what_does_not_fit_is_refused_by_name)
{
	weir_graph *graph = kit_graph();
	weir_output x = matrix(graph), out = {NULL, 0}, outs[5] = {{NULL, 0}};
	weir_output truth = kit_constant(graph, kit_tensor(WEIR_BOOL, kit_shape(1, 2), (const bool[]){true, false}));
	weir_output two[2] = {x, truth};
	weir_shape open = kit_shape(2, -1, -1), odd = kit_shape(2, 5, -1);
	weir_error error;

	cr_expect_eq(weir_op_reshape(graph, "r", x, &open, &out, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_str_eq(error.message, "reshape \"r\": 2 dims are open, at most 1 may be");
	cr_expect_eq(weir_op_reshape(graph, "r", x, &odd, &out, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_str_eq(error.message, "reshape \"r\": f32 [3,4] does not have the number of elements of [5,?]");
	cr_expect_eq(weir_op_rows(graph, "s", x, 2, 2, &out, &error), WEIR_OUT_OF_RANGE);
	cr_expect_str_eq(error.message, "slice \"s\": axis 0 has 3, 2 from 2 on are too many");
	cr_expect_eq(weir_op_slice(graph, "s", x, 2, 0, 1, &out, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_str_eq(error.message, "slice \"s\": there is no axis 2 in f32 [3,4]");
	cr_expect_eq(weir_op_transpose(graph, "t", x, (const uint32_t[]){0, 0}, 2, &out, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_op_transpose(graph, "t", x, (const uint32_t[]){0}, 1, &out, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_op_concat(graph, "c", two, 2, 0, &out, &error), WEIR_UNIMPLEMENTED);
	cr_expect_eq(weir_op_concat(graph, "c", two, 0, 0, &out, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_op_split(graph, "p", x, 0, 2, outs, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_str_eq(error.message, "split \"p\": axis 0 of f32 [3,4] cannot be divided into 2 equal parts");
	cr_expect_eq(weir_op_gather_rows(graph, "g", x, x, &out, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_op_one_hot(graph, "o", x, 3, WEIR_F32, &out, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_op_one_hot(graph, "o", x, 0, WEIR_F32, &out, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_op_random_uniform(graph, "u", WEIR_F32, &weir_shape_scalar, 1, 1, 0, &out, &error),
	             WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_op_random_uniform(graph, "u", WEIR_BOOL, &weir_shape_scalar, 0, 1, 0, &out, &error),
	             WEIR_UNIMPLEMENTED);
	cr_expect_eq(weir_op_random_normal(graph, "n", WEIR_I32, &weir_shape_scalar, 0, 1, 0, &out, &error),
	             WEIR_UNIMPLEMENTED);
	cr_expect_eq(weir_op_random_normal(graph, "n", WEIR_F32, &open, 0, 1, 0, &out, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_null(out.node);
	cr_expect_null(outs[0].node);
	cr_assert_eq(weir_graph_destroy(graph, NULL), WEIR_OK);
}

/* -- random numbers -------------------------------------------------------------------------------- */

enum { DRAWN = 4000 };

static weir_tensor *draw(weir_session *session, weir_output out, uint64_t random_step)
{
	struct weir_run_options options = {WEIR_RUN_OPTIONS_INIT, .random_step = random_step};
	weir_callable *callable;
	weir_tensor *result = NULL;
	weir_error error;

	cr_assert_eq(weir_session_compile(session, NULL, 0, &out, 1, NULL, 0, NULL, &callable, &error), WEIR_OK);
	cr_assert_eq(weir_callable_run(callable, NULL, &result, WEIR_NO_DEADLINE, NULL, &options, &error), WEIR_OK, "%s",
	             error.message);
	weir_callable_release(callable);
	return result;
}

static bool same(const weir_tensor *a, const weir_tensor *b)
{
	return memcmp(weir_tensor_data(a), weir_tensor_data(b), weir_tensor_byte_count(a)) == 0;
}

static void expect_same(weir_tensor *a, weir_tensor *b, bool expected, const char *what)
{
	cr_expect_eq(same(a, b), expected, "%s", what);
	weir_tensor_release(a);
	weir_tensor_release(b);
}

Test(op_array, random_numbers_follow_from_seed_node_and_step)
{
	weir_shape shape = kit_shape(1, 16);
	weir_graph *graphs[2] = {kit_graph(), kit_graph()};
	weir_session *sessions[2];
	weir_output first[2], second[2], other[2];

	for (int i = 0; i < 2; i++) {
		cr_assert_eq(weir_op_random_uniform(graphs[i], NULL, WEIR_F32, &shape, 0, 1, 7, &first[i], NULL), WEIR_OK);
		cr_assert_eq(weir_op_random_uniform(graphs[i], NULL, WEIR_F32, &shape, 0, 1, 7, &second[i], NULL), WEIR_OK);
		cr_assert_eq(weir_op_random_uniform(graphs[i], NULL, WEIR_F32, &shape, 0, 1, 8, &other[i], NULL), WEIR_OK);
		sessions[i] = kit_session(graphs[i], (size_t)i);
	}
	expect_same(draw(sessions[0], first[0], 3), draw(sessions[1], first[1], 3), true, "graphs built alike draw alike");
	expect_same(draw(sessions[0], first[0], 3), draw(sessions[0], first[0], 4), false, "another step");
	expect_same(draw(sessions[0], first[0], 3), draw(sessions[0], second[0], 3), false, "another node");
	expect_same(draw(sessions[0], second[0], 3), draw(sessions[0], other[0], 3), false, "another seed");
	expect_same(draw(sessions[0], first[0], 0), draw(sessions[0], first[0], 0), false,
	            "each run has a step of its own");
	expect_same(draw(sessions[0], first[0], 0), draw(sessions[0], first[0], 3), true, "which are counted from 1");
	for (int i = 0; i < 2; i++)
		kit_end(sessions[i], graphs[i]);
}

static enum weir_status build_draw(void *context, weir_graph *body, const struct weir_argument arguments[],
                                   weir_output results[], weir_error *error)
{
	(void)context;
	(void)arguments;
	return weir_op_random_uniform(body, NULL, WEIR_I64, &weir_shape_scalar, 0, 1e15, 1, results, error);
}

Test(op_array, each_call_and_each_row_draws_other_numbers)
{
	struct weir_function_options options = {
		WEIR_FUNCTION_OPTIONS_INIT, .name = "draw",
		.build = build_draw,        .parameters = &(struct weir_parameter){"row", WEIR_PARAMETER_TENSOR, 0, NULL},
		.parameter_count = 1,       .result_count = 1};
	weir_graph *graph = kit_graph();
	weir_session *session = kit_session(graph, 0);
	struct weir_argument rows = {.output = matrix(graph)};
	weir_output outs[3];
	weir_tensor *results[3];
	weir_function *function;
	weir_error error;

	cr_assert_eq(weir_function_create(&options, &function, &error), WEIR_OK);
	cr_assert_eq(weir_op_call(graph, NULL, function, &rows, 1, &outs[0], NULL, &error), WEIR_OK, "%s", error.message);
	cr_assert_eq(weir_op_call(graph, NULL, function, &rows, 1, &outs[1], NULL, &error), WEIR_OK);
	cr_assert_eq(weir_op_map(graph, NULL, function, &rows, 1, NULL, &outs[2], NULL, &error), WEIR_OK);
	cr_assert_eq(weir_session_run(session, NULL, 0, outs, 3, results, NULL, 0, WEIR_NO_DEADLINE, NULL, &error), WEIR_OK,
	             "%s", error.message);
	cr_expect_neq(kit_i64_at(results[0], 0), kit_i64_at(results[1], 0));
	cr_expect_neq(kit_i64_at(results[2], 0), kit_i64_at(results[2], 1));
	cr_expect_neq(kit_i64_at(results[2], 1), kit_i64_at(results[2], 2));
	for (int i = 0; i < 3; i++)
		weir_tensor_release(results[i]);
	kit_end(session, graph);
	cr_assert_eq(weir_function_destroy(function, &error), WEIR_OK, "%s", error.message);
}

/* The mean of n draws is within 5 standard errors; the seeds are fixed, so this cannot fail by chance. */
Test(op_array, random_numbers_have_their_distribution)
{
	weir_shape shape = kit_shape(1, DRAWN);
	weir_graph *graph = kit_graph();
	weir_session *session = kit_session(graph, 0);
	weir_output outs[3];
	weir_tensor *results[3];
	double sums[3] = {0}, squares[3] = {0};

	cr_assert_eq(weir_op_random_uniform(graph, NULL, WEIR_F32, &shape, -1, 3, 1, &outs[0], NULL), WEIR_OK);
	cr_assert_eq(weir_op_random_normal(graph, NULL, WEIR_F64, &shape, 5, 2, 1, &outs[1], NULL), WEIR_OK);
	cr_assert_eq(weir_op_random_uniform(graph, NULL, WEIR_I32, &shape, -2, 3, 1, &outs[2], NULL), WEIR_OK);
	cr_assert_eq(weir_session_run(session, NULL, 0, outs, 3, results, NULL, 0, WEIR_NO_DEADLINE, NULL, NULL), WEIR_OK);
	for (size_t i = 0; i < DRAWN; i++) {
		double x[3] = {(double)kit_f32_at(results[0], i), ((const double *)weir_tensor_data(results[1]))[i],
		               (double)((const int32_t *)weir_tensor_data(results[2]))[i]};

		cr_assert(x[0] >= -1 && x[0] < 3 && x[2] >= -2 && x[2] <= 2);
		for (int k = 0; k < 3; k++) {
			sums[k] += x[k] / (double)DRAWN;
			squares[k] += x[k] * x[k] / (double)DRAWN;
		}
	}
	for (int k = 0; k < 3; k++) {
		const double means[] = {1, 5, 0}, variances[] = {16.0 / 12, 4, 2};

		cr_expect_float_eq(sums[k], means[k], 5 * sqrt(variances[k] / (double)DRAWN), "mean %d is %f", k, sums[k]);
		cr_expect_float_eq(squares[k] - sums[k] * sums[k], variances[k], 0.3, "variance %d", k);
		weir_tensor_release(results[k]);
	}
	kit_end(session, graph);
}
