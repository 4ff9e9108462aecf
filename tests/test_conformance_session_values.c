/*
 * test_conformance_session_values.c - sessions: the rows SES about what is fetched and what is fed.
 */
#include "conformance_session_kit.h"

/* -- short ways -------------------------------------------------------------------------------- */

static float fed_f32(weir_session *session, weir_output at, float value, weir_output fetch)
{
	weir_tensor *result = NULL;
	weir_error error;
	float got;

	cr_assert_eq(run_fed(session, at, kit_f32(value), fetch, &result, &error), WEIR_OK, "%s", error.message);
	got = kit_f32_at(result, 0);
	weir_tensor_release(result);
	return got;
}

/* -- fetches ----------------------------------------------------------------------------------- */

Test(conformance_session_values, SES_013_a_tensor_gives_its_value_and_an_op_nothing)
{
	struct bench b = open_bench();
	weir_output c = named(b.graph, NULL, 42);
	weir_output assigned = assign_to(&b, NULL, c);
	weir_callable *callable = compiled(b.session, NULL, &c, NULL), *op = compiled(b.session, NULL, NULL, assigned.node);
	weir_tensor *result;

	cr_expect_eq(kit_fetch_f32(b.session, c), 42.0f);
	cr_expect_eq(kit_run_target(b.session, assigned.node, NULL), WEIR_OK);
	cr_assert_eq(weir_callable_run(callable, NULL, &result, WEIR_NO_DEADLINE, NULL, NULL, NULL), WEIR_OK);
	cr_expect_eq(kit_f32_at(result, 0), 42.0f);
	weir_tensor_release(result);
	cr_expect_eq(weir_callable_run(op, NULL, NULL, WEIR_NO_DEADLINE, NULL, NULL, NULL), WEIR_OK);
	cr_expect_eq(kit_var_f32(b.var, 0), 42.0f);
	weir_callable_release(callable);
	weir_callable_release(op);
	close_bench(&b);
}

Test(conformance_session_values, SES_014_a_fetch_by_name)
{
	struct bench b = open_bench();

	(void)named(b.graph, "a", 42);
	cr_expect_eq(named_f32(b.session, "a"), 42.0f);
	cr_expect_eq(named_f32(b.session, "a:0"), 42.0f);
	close_bench(&b);
}

Test(conformance_session_values, SES_015_a_list_of_ops_and_names)
{
	struct bench b = open_bench();
	const char *const fetches[] = {"a", "b:0", "assign"}, *const targets[] = {"assign", "nothing"};
	weir_tensor *results[3];
	weir_node *nothing;

	(void)named(b.graph, "a", 42);
	(void)assign_to(&b, "assign", named(b.graph, "b", 7));
	cr_assert_eq(weir_op_no_op(b.graph, "nothing", &nothing, NULL), WEIR_OK);
	cr_assert_eq(
		weir_session_run_named(b.session, NULL, 0, fetches, 3, results, targets, 2, WEIR_NO_DEADLINE, NULL, NULL),
		WEIR_OK);
	cr_expect_eq(kit_f32_at(results[0], 0), 42.0f);
	cr_expect_eq(kit_f32_at(results[1], 0), 7.0f);
	cr_expect_eq(kit_f32_at(results[2], 0), 7.0f);
	cr_expect_eq(kit_var_f32(b.var, 0), 7.0f);
	for (int i = 0; i < 3; i++)
		weir_tensor_release(results[i]);
	close_bench(&b);
}

Test(conformance_session_values, SES_016_results_are_in_the_order_of_the_fetches)
{
	struct bench b = open_bench();
	weir_output x = named(b.graph, NULL, 1), y = named(b.graph, NULL, 2), z = named(b.graph, NULL, 3);
	weir_output fetches[] = {z, x, y};
	const float expected[] = {3, 1, 2};
	weir_tensor *results[3];

	cr_assert_eq(weir_session_run(b.session, NULL, 0, fetches, 3, results, NULL, 0, WEIR_NO_DEADLINE, NULL, NULL),
	             WEIR_OK);
	for (int i = 0; i < 3; i++) {
		cr_expect_eq(kit_f32_at(results[i], 0), expected[i]);
		weir_tensor_release(results[i]);
	}
	close_bench(&b);
}

Test(conformance_session_values, SES_018_a_result_belongs_to_the_name_at_its_place)
{
	struct bench b = open_bench();
	const char *const names[] = {"second", "first"};
	weir_tensor *results[2];

	(void)named(b.graph, "first", 1);
	(void)named(b.graph, "second", 2);
	cr_assert_eq(weir_session_run_named(b.session, NULL, 0, names, 2, results, NULL, 0, WEIR_NO_DEADLINE, NULL, NULL),
	             WEIR_OK);
	cr_expect_eq(kit_f32_at(results[0], 0), 2.0f);
	cr_expect_eq(kit_f32_at(results[1], 0), 1.0f);
	weir_tensor_release(results[0]);
	weir_tensor_release(results[1]);
	close_bench(&b);
}

Test(conformance_session_values, SES_023_one_fetch_or_several)
{
	struct bench b = open_bench();
	weir_output a = named(b.graph, NULL, 1), sum;
	weir_output fetches[3];
	weir_tensor *results[3];

	cr_assert_eq(weir_op_add(b.graph, NULL, a, a, &sum, NULL), WEIR_OK);
	fetches[0] = a, fetches[1] = sum, fetches[2] = square_of(b.graph, NULL, sum);
	cr_expect_eq(kit_fetch_f32(b.session, fetches[2]), 4.0f);
	cr_assert_eq(weir_session_run(b.session, NULL, 0, fetches, 3, results, NULL, 0, WEIR_NO_DEADLINE, NULL, NULL),
	             WEIR_OK);
	cr_expect_eq(kit_f32_at(results[0], 0), 1.0f);
	cr_expect_eq(kit_f32_at(results[1], 0), 2.0f);
	cr_expect_eq(kit_f32_at(results[2], 0), 4.0f);
	for (int i = 0; i < 3; i++)
		weir_tensor_release(results[i]);
	close_bench(&b);
}

Test(conformance_session_values, SES_024_scalars_keep_their_types)
{
	static const enum weir_dtype dtypes[] = {WEIR_I32, WEIR_I64, WEIR_F32, WEIR_F64, WEIR_F16};
	static const uint64_t bits = 7;
	struct bench b = open_bench();

	for (size_t i = 0; i < sizeof(dtypes) / sizeof(dtypes[0]); i++) {
		weir_tensor *result = kit_fetch(b.session, kit_constant(b.graph, kit_tensor(dtypes[i], scalar, &bits)));

		cr_expect_eq(weir_tensor_dtype(result), dtypes[i]);
		cr_expect_eq(weir_tensor_shape(result)->rank, 0);
		cr_expect_eq(memcmp(weir_tensor_data(result), &bits, weir_dtype_size(dtypes[i])), 0);
		weir_tensor_release(result);
	}
	close_bench(&b);
}

Test(conformance_session_values, SES_025_an_op_that_initializes_and_the_value_after_it)
{
	struct bench b = open_bench();
	weir_output init = assign_to(&b, NULL, named(b.graph, NULL, 3)), value = read_of(&b, NULL);

	cr_expect_eq(kit_run_target(b.session, init.node, NULL), WEIR_OK);
	cr_expect_eq(kit_fetch_f32(b.session, value), 3.0f);
	close_bench(&b);
}

/* Places and values of the elements that are not zero; the shape of the whole may be left out. */
Test(conformance_session_values, SES_026_the_parts_of_a_sparse_tensor_are_fetched_together)
{
	static const int64_t places[] = {3, 2, 0, 4, 5, 1}, whole[] = {7, 9, 2};
	static const float values[] = {1, 2};
	struct bench b = open_bench();
	weir_output parts[] = {kit_constant(b.graph, kit_tensor(WEIR_I64, kit_shape(2, 2, 3), places)),
	                       kit_constant(b.graph, kit_tensor(WEIR_F32, kit_shape(1, 2), values)),
	                       kit_constant(b.graph, kit_tensor(WEIR_I64, kit_shape(1, 3), whole))};
	weir_tensor *results[3];

	for (size_t count = 2; count <= 3; count++) {
		cr_assert_eq(weir_session_run(b.session, NULL, 0, parts, count, results, NULL, 0, WEIR_NO_DEADLINE, NULL, NULL),
		             WEIR_OK);
		cr_expect_eq(memcmp(weir_tensor_data(results[0]), places, sizeof(places)), 0);
		cr_expect_eq(memcmp(weir_tensor_data(results[1]), values, sizeof(values)), 0);
		cr_expect_eq(weir_tensor_shape(results[0])->dims[0], weir_tensor_shape(results[1])->dims[0]);
		for (size_t i = 0; i < count; i++)
			weir_tensor_release(results[i]);
	}
	close_bench(&b);
}

Test(conformance_session_values, SES_047_the_same_fetch_twice_gives_the_same_value_twice)
{
	struct bench b = open_bench();
	weir_output one = named(b.graph, NULL, 1), fetches[2];
	weir_tensor *results[2];

	cr_assert_eq(weir_op_assign_add(b.graph, NULL, b.var, one, &fetches[0], NULL), WEIR_OK);
	fetches[1] = fetches[0];
	cr_assert_eq(weir_session_run(b.session, NULL, 0, fetches, 2, results, NULL, 0, WEIR_NO_DEADLINE, NULL, NULL),
	             WEIR_OK);
	cr_expect_eq(kit_f32_at(results[0], 0), 11.0f);
	cr_expect_eq(kit_f32_at(results[1], 0), 11.0f);
	cr_expect_eq(kit_var_f32(b.var, 0), 11.0f, "computed once");
	weir_tensor_release(results[0]);
	weir_tensor_release(results[1]);
	close_bench(&b);
}

/* -- strings ----------------------------------------------------------------------------------- */

static weir_tensor *strings_of(weir_shape shape, const weir_bytes strings[])
{
	return kit_tensor(WEIR_BYTES, shape, strings);
}

static void expect_strings(const weir_tensor *tensor, const weir_bytes strings[], size_t count)
{
	const weir_bytes *got = weir_tensor_data(tensor);

	cr_assert_eq(weir_tensor_dtype(tensor), WEIR_BYTES);
	cr_assert_eq(weir_tensor_element_count(tensor), (int64_t)count);
	for (size_t i = 0; i < count; i++) {
		cr_assert_eq(got[i].size, strings[i].size);
		cr_expect(got[i].size == 0 || memcmp(got[i].data, strings[i].data, got[i].size) == 0);
	}
}

static const weir_bytes words[] = {{"", 0}, {"a", 1}, {"with\0nul", 8}, {"\xc3\xa9\xe2\x82\xac", 5}};
enum { WORDS = sizeof(words) / sizeof(words[0]) };

Test(conformance_session_values, SES_056_strings_of_several_shapes_are_fetched)
{
	static const int64_t shapes[][3] = {{1, 4, 1}, {1, 2, 2}, {2, 2, 1}};
	struct bench b = open_bench();

	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
		weir_shape shape = {.rank = 3, .dims = {shapes[i][0], shapes[i][1], shapes[i][2]}};
		weir_tensor *result = kit_fetch(b.session, kit_constant(b.graph, strings_of(shape, words)));

		expect_strings(result, words, WORDS);
		cr_expect(weir_shape_equal(weir_tensor_shape(result), &shape));
		weir_tensor_release(result);
	}
	close_bench(&b);
}

Test(conformance_session_values, SES_057_strings_with_zeros_and_of_unicode_are_fed)
{
	struct bench b = open_bench();
	weir_output x = kit_placeholder(b.graph, "x", WEIR_BYTES, kit_shape(1, -1)), same;
	weir_tensor *result;

	cr_assert_eq(weir_op_identity(b.graph, NULL, x, &same, NULL), WEIR_OK);
	cr_assert_eq(run_fed(b.session, x, strings_of(kit_shape(1, WORDS), words), same, &result, NULL), WEIR_OK);
	expect_strings(result, words, WORDS);
	weir_tensor_release(result);
	close_bench(&b);
}

/* -- feeds ------------------------------------------------------------------------------------- */

Test(conformance_session_values, SES_031_one_tensor_with_a_feed)
{
	struct bench b = open_bench();
	weir_output x = kit_placeholder(b.graph, "x", WEIR_F32, scalar);

	cr_expect_eq(fed_f32(b.session, x, 3, square_of(b.graph, NULL, x)), 9.0f);
	close_bench(&b);
}

Test(conformance_session_values, SES_032_one_op_and_the_source_of_an_assign_fed)
{
	struct bench b = open_bench();
	weir_output source = named(b.graph, NULL, 1), assigned = assign_to(&b, NULL, source);
	struct weir_feed feed = {source, kit_f32(6)};

	cr_expect_eq(kit_run_target(b.session, assigned.node, NULL), WEIR_OK);
	cr_expect_eq(kit_var_f32(b.var, 0), 1.0f);
	cr_expect_eq(weir_session_run(b.session, &feed, 1, NULL, 0, NULL, &assigned.node, 1, WEIR_NO_DEADLINE, NULL, NULL),
	             WEIR_OK);
	cr_expect_eq(kit_var_f32(b.var, 0), 6.0f);
	weir_tensor_release(feed.value);
	close_bench(&b);
}

Test(conformance_session_values, SES_038_feeds_by_object_and_by_name)
{
	struct bench b = open_bench();
	weir_output x = kit_placeholder(b.graph, "x", WEIR_F32, scalar), y = named(b.graph, "y", 2), sum;
	struct weir_feed by_object[] = {{x, kit_f32(3)}, {y, kit_f32(4)}};
	struct weir_named_feed by_name[] = {{"x:0", by_object[0].value}, {"y", by_object[1].value}};
	const char *fetch = "sum";
	weir_tensor *results[2];

	cr_assert_eq(weir_op_add(b.graph, "sum", x, y, &sum, NULL), WEIR_OK);
	cr_assert_eq(weir_session_run(b.session, by_object, 2, &sum, 1, &results[0], NULL, 0, WEIR_NO_DEADLINE, NULL, NULL),
	             WEIR_OK);
	cr_assert_eq(
		weir_session_run_named(b.session, by_name, 2, &fetch, 1, &results[1], NULL, 0, WEIR_NO_DEADLINE, NULL, NULL),
		WEIR_OK);
	for (int i = 0; i < 2; i++) {
		cr_expect_eq(kit_f32_at(results[i], 0), 7.0f);
		weir_tensor_release(results[i]);
		weir_tensor_release(by_object[i].value);
	}
	close_bench(&b);
}

Test(conformance_session_values, SES_048_every_dtype_and_shape_is_fed_and_fetched)
{
	static const enum weir_dtype dtypes[] = {WEIR_BOOL, WEIR_U8,  WEIR_U16, WEIR_U32, WEIR_U64, WEIR_I8,
	                                         WEIR_I16,  WEIR_I32, WEIR_I64, WEIR_F16, WEIR_F32, WEIR_F64};
	static const uint64_t zeros[12];
	const weir_shape shapes[] = {kit_shape(0), kit_shape(1, 0), kit_shape(1, 5), kit_shape(2, 0, 3),
	                             kit_shape(3, 2, 3, 2)};
	struct bench b = open_bench();

	for (size_t d = 0; d < sizeof(dtypes) / sizeof(dtypes[0]); d++) {
		weir_output x, same, fetches[2];

		cr_assert_eq(weir_op_placeholder(b.graph, NULL, dtypes[d], NULL, &x, NULL), WEIR_OK);
		cr_assert_eq(weir_op_identity(b.graph, NULL, x, &same, NULL), WEIR_OK);
		fetches[0] = x, fetches[1] = same;
		for (size_t s = 0; s < sizeof(shapes) / sizeof(shapes[0]); s++) {
			struct weir_feed feed = {x, kit_tensor(dtypes[d], shapes[s], zeros)};
			weir_tensor *results[2];

			cr_assert_eq(
				weir_session_run(b.session, &feed, 1, fetches, 2, results, NULL, 0, WEIR_NO_DEADLINE, NULL, NULL),
				WEIR_OK);
			cr_expect_eq(results[0], feed.value);
			for (int i = 0; i < 2; i++) {
				cr_expect_eq(weir_tensor_dtype(results[i]), dtypes[d]);
				cr_expect(weir_shape_equal(weir_tensor_shape(results[i]), &shapes[s]));
				weir_tensor_release(results[i]);
			}
			weir_tensor_release(feed.value);
		}
	}
	close_bench(&b);
}

Test(conformance_session_values, SES_054_a_feed_needs_a_value)
{
	struct bench b = open_bench();
	weir_output x = kit_placeholder(b.graph, "x", WEIR_F32, scalar);
	weir_tensor *result = NULL;
	weir_error error;

	cr_expect_eq(run_fed(b.session, x, NULL, x, &result, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_not_null(strstr(error.message, "\"x\""), "%s", error.message);
	close_bench(&b);
}

Test(conformance_session_values, SES_055_a_feed_that_would_lose_precision_is_refused)
{
	struct bench b = open_bench();
	weir_output x = kit_placeholder(b.graph, "x", WEIR_I32, scalar);
	weir_tensor *result = NULL;
	weir_error error;

	cr_expect_eq(run_fed(b.session, x, kit_i64(INT64_MAX), x, &result, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_not_null(strstr(error.message, "i32"), "%s", error.message);
	cr_expect_not_null(strstr(error.message, "i64"), "%s", error.message);
	close_bench(&b);
}

Test(conformance_session_values, SES_064_shapes_that_do_not_fit_are_refused)
{
	static const float four[] = {1, 2, 3, 4};
	struct bench b = open_bench();
	weir_output x = kit_placeholder(b.graph, "x", WEIR_F32, kit_shape(1, 3));
	weir_output open = kit_placeholder(b.graph, "open", WEIR_F32, kit_shape(1, -1)), sum;
	weir_output three = kit_constant(b.graph, kit_tensor(WEIR_F32, kit_shape(1, 3), four));
	weir_tensor *result = NULL;
	weir_error error;

	cr_expect_eq(run_fed(b.session, x, kit_tensor(WEIR_F32, kit_shape(1, 4), four), x, &result, NULL),
	             WEIR_INVALID_ARGUMENT, "what the graph knows");
	cr_assert_eq(weir_op_add(b.graph, "sum", open, three, &sum, NULL), WEIR_OK);
	cr_expect_eq(run_fed(b.session, open, kit_tensor(WEIR_F32, kit_shape(1, 4), four), sum, &result, &error),
	             WEIR_INVALID_ARGUMENT, "what only the run finds");
	cr_expect_not_null(strstr(error.message, "sum"), "%s", error.message);
	cr_expect_null(result);
	close_bench(&b);
}
