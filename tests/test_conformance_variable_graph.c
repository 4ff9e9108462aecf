/*
 * test_conformance_variable_graph.c - the rows of conformance_rows.tsv about variables that speak of
 * ops, control edges and feeds.
 */
#include "graph_kit.h"

static weir_output read_of(weir_graph *graph, weir_var *var)
{
	weir_output out;

	cr_assert_eq(weir_op_read(graph, NULL, var, &out, NULL), WEIR_OK);
	return out;
}

static weir_output assign_of(weir_graph *graph, weir_var *var, weir_output value)
{
	weir_output out;

	cr_assert_eq(weir_op_assign(graph, NULL, var, value, &out, NULL), WEIR_OK);
	return out;
}

static void after(weir_graph *graph, weir_output first, weir_output second)
{
	cr_assert_eq(weir_graph_add_control(graph, first.node, second.node, NULL), WEIR_OK);
}

/* Fetches two outputs in one run, and expects these values. */
static void expect_pair(weir_session *session, weir_output first, float a, weir_output second, float b)
{
	const weir_output fetches[2] = {first, second};
	weir_tensor *results[2] = {NULL, NULL};
	weir_error error = {.message = ""};

	cr_assert_eq(weir_session_run(session, NULL, 0, fetches, 2, results, NULL, 0, WEIR_NO_DEADLINE, NULL, &error),
	             WEIR_OK, "%s", error.message);
	cr_expect_eq(kit_f32_at(results[0], 0), a);
	cr_expect_eq(kit_f32_at(results[1], 0), b);
	weir_tensor_release(results[0]);
	weir_tensor_release(results[1]);
}

Test(conformance_variable_graph, VAR_013_a_read_fetched_with_an_addition_gives_the_old_value)
{
	weir_graph *graph = kit_graph();
	weir_session *session = kit_session(graph, 2);
	weir_var *var = kit_var("v", kit_f32(1));
	weir_output read = read_of(graph, var), sum;

	cr_assert_eq(weir_op_assign_add(graph, NULL, var, kit_constant(graph, kit_f32(2)), &sum, NULL), WEIR_OK);
	after(graph, read, sum);
	expect_pair(session, read, 1, sum, 3);
	expect_pair(session, sum, 5, read, 3);
	kit_end(session, graph);
	cr_assert_eq(weir_var_destroy(var, NULL), WEIR_OK);
}

Test(conformance_variable_graph, VAR_018_reads_that_control_edges_order_see_the_assigns_before_them)
{
	weir_graph *graph = kit_graph();
	weir_session *session = kit_session(graph, 2);
	weir_var *var = kit_var("v", kit_f32(0));
	weir_output first = assign_of(graph, var, kit_constant(graph, kit_f32(1))), one = read_of(graph, var);
	weir_output second = assign_of(graph, var, kit_constant(graph, kit_f32(2))), two = read_of(graph, var);

	after(graph, first, one);
	after(graph, one, second);
	after(graph, second, two);
	for (int i = 0; i < 20; i++)
		expect_pair(session, one, 1, two, 2);
	kit_end(session, graph);
	cr_assert_eq(weir_var_destroy(var, NULL), WEIR_OK);
}

Test(conformance_variable_graph, VAR_041_an_assign_gives_the_new_value_if_it_is_fetched)
{
	weir_graph *graph = kit_graph();
	weir_session *session = kit_session(graph, 1);
	weir_var *var = kit_var("v", kit_f32(1));
	weir_output assign = assign_of(graph, var, kit_constant(graph, kit_f32(2)));
	weir_error error;

	cr_expect_eq(kit_fetch_f32(session, assign), 2);
	cr_expect_eq(kit_run_target(session, assign.node, &error), WEIR_OK, "as a target it gives nothing");
	cr_expect_eq(kit_var_f32(var, 0), 2);
	cr_expect_eq(weir_var_version(var), 3, "both runs have assigned");
	kit_end(session, graph);
	cr_assert_eq(weir_var_destroy(var, NULL), WEIR_OK);
}

static void expect_shape(weir_output output, weir_shape expected)
{
	enum weir_dtype dtype;
	weir_shape shape;

	cr_assert_eq(weir_output_spec(output, &dtype, &shape, NULL), WEIR_OK);
	cr_expect_eq(dtype, WEIR_F32);
	cr_expect(weir_shape_equal(&shape, &expected));
}

Test(conformance_variable_graph, VAR_056_the_shapes_of_a_read_and_a_gather_are_static)
{
	const float values[6] = {1, 2, 3, 4, 5, 6};
	weir_graph *graph = kit_graph();
	weir_var *var = kit_var("v", kit_tensor(WEIR_F32, kit_shape(2, 3, 2), values));
	weir_output read = read_of(graph, var), gathered;
	weir_output indices = kit_placeholder(graph, "indices", WEIR_I64, kit_shape(1, 4));

	cr_assert_eq(weir_op_gather(graph, NULL, var, indices, &gathered, NULL), WEIR_OK);
	expect_shape(read, kit_shape(2, 3, 2));
	expect_shape(gathered, kit_shape(2, 4, 2));
	weir_graph_destroy(graph, NULL);
	cr_assert_eq(weir_var_destroy(var, NULL), WEIR_OK);
}

Test(conformance_variable_graph, VAR_057_a_feed_overrides_the_initial_value)
{
	weir_graph *graph = kit_graph();
	weir_session *session = kit_session(graph, 1);
	weir_var *var = kit_var("v", kit_f32(0));
	weir_output initial = kit_constant(graph, kit_f32(1)), initialize = assign_of(graph, var, initial);
	weir_tensor *other = kit_f32(2);
	struct weir_feed feed = {initial, other};
	weir_error error;

	cr_expect_eq(kit_run_target(session, initialize.node, &error), WEIR_OK);
	cr_expect_eq(kit_var_f32(var, 0), 1);
	cr_expect_eq(
		weir_session_run(session, &feed, 1, NULL, 0, NULL, &initialize.node, 1, WEIR_NO_DEADLINE, NULL, &error),
		WEIR_OK);
	cr_expect_eq(kit_var_f32(var, 0), 2);
	weir_tensor_release(other);
	kit_end(session, graph);
	cr_assert_eq(weir_var_destroy(var, NULL), WEIR_OK);
}
