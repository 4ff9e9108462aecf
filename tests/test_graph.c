/*
 * test_graph.c - nodes, names, control edges, and what the builders refuse.
 */
#include <pthread.h>
#include <stdio.h>

#include "failing_allocator.h"
#include "graph_kit.h"

static weir_node *no_op(weir_graph *graph, const char *name)
{
	weir_node *node = NULL;
	weir_error error;

	cr_assert_eq(weir_op_no_op(graph, name, &node, &error), WEIR_OK, "%s", error.message);
	return node;
}

Test(graph, create_refuses_bad_options)
{
	struct weir_graph_options options = {WEIR_GRAPH_OPTIONS_INIT};
	weir_graph *graph = NULL;
	weir_error error;

	cr_expect_eq(weir_graph_create(&options, NULL, &error), WEIR_INVALID_ARGUMENT);
	options.flags = 4;
	cr_expect_eq(weir_graph_create(&options, &graph, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_not_null(strstr(error.message, "0x4"));
	options.flags = 0;
	options.struct_size = 1;
	cr_expect_eq(weir_graph_create(&options, &graph, &error), WEIR_INVALID_ARGUMENT);
	options.struct_size = SIZE_MAX;
	cr_expect_eq(weir_graph_create(&options, &graph, NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_null(graph);
	cr_expect_eq(weir_graph_destroy(NULL, NULL), WEIR_OK);
}

Test(graph, names_are_unique_and_found)
{
	weir_graph *graph = kit_graph();
	weir_output x = kit_placeholder(graph, "x", WEIR_F32, kit_shape(0));
	weir_output y = {NULL, 0};
	weir_output out;
	weir_node *found = NULL;
	weir_error error;

	cr_expect_eq(weir_op_placeholder(graph, "x", WEIR_F32, NULL, &y, &error), WEIR_ALREADY_EXISTS);
	cr_expect_not_null(strstr(error.message, "placeholder \"x\""), "%s", error.message);
	cr_expect_null(y.node);
	cr_expect_eq(weir_op_square(graph, "", x, &y, &error), WEIR_INVALID_ARGUMENT);
	cr_assert_eq(weir_graph_find(graph, "x", &found, &error), WEIR_OK);
	cr_expect_eq(found, x.node);
	cr_expect_str_eq(weir_node_name(found), "x");
	cr_expect_str_eq(weir_node_op(found), "placeholder");
	cr_assert_eq(weir_node_output(found, 0, &out, &error), WEIR_OK);
	cr_expect_eq(weir_graph_find(graph, "nowhere", &found, &error), WEIR_NOT_FOUND);
	cr_expect_not_null(strstr(error.message, "nowhere"));
	cr_expect_eq(found, x.node, "an out parameter was touched on failure");
	cr_assert_eq(weir_graph_destroy(graph, NULL), WEIR_OK);
}

Test(graph, an_output_is_found_by_its_name)
{
	weir_graph *graph = kit_graph();
	weir_var *var = kit_var("v", kit_f32(0));
	weir_output read, colon, nested, out = {NULL, 7};
	weir_node *group;
	weir_error error;

	cr_assert_eq(weir_op_read(graph, "r", var, &read, NULL), WEIR_OK);
	cr_assert_eq(weir_op_identity(graph, "r:0", read, &colon, NULL), WEIR_OK);
	cr_assert_eq(weir_op_identity(graph, "a:b", read, &nested, NULL), WEIR_OK);
	cr_assert_eq(weir_op_no_op(graph, "group", &group, NULL), WEIR_OK);
	cr_assert_eq(weir_graph_find_output(graph, "r", &out, &error), WEIR_OK, "%s", error.message);
	cr_expect(out.node == read.node && out.index == 0);
	cr_assert_eq(weir_graph_find_output(graph, "r:1", &out, &error), WEIR_OK, "%s", error.message);
	cr_expect(out.node == read.node && out.index == 1);
	cr_assert_eq(weir_graph_find_output(graph, "r:0", &out, &error), WEIR_OK, "%s", error.message);
	cr_expect(out.node == colon.node && out.index == 0, "a whole name comes first");
	cr_assert_eq(weir_graph_find_output(graph, "a:b:0", &out, &error), WEIR_OK, "%s", error.message);
	cr_expect(out.node == nested.node && out.index == 0);

	out = (weir_output){NULL, 7};
	cr_expect_eq(weir_graph_find_output(graph, "r:2", &out, &error), WEIR_OUT_OF_RANGE);
	cr_expect_str_eq(error.message, "weir_graph_find_output: \"r\" has 2 outputs, there is no output 2");
	cr_expect_eq(weir_graph_find_output(graph, "a:b:1", &out, &error), WEIR_OUT_OF_RANGE);
	cr_expect_str_eq(error.message, "weir_graph_find_output: \"a:b\" has 1 output, there is no output 1");
	cr_expect_eq(weir_graph_find_output(graph, "group", &out, &error), WEIR_OUT_OF_RANGE);
	cr_expect_eq(weir_graph_find_output(graph, "nowhere:1", &out, &error), WEIR_NOT_FOUND);
	cr_expect_str_eq(error.message, "weir_graph_find_output: the graph has no node \"nowhere\"");
	for (size_t i = 0; i < 7; i++) {
		static const char *const names[] = {"r:", "r:x", "r:1x", "r:1234567890", ":0", "", "rr"};

		cr_expect_eq(weir_graph_find_output(graph, names[i], &out, &error), WEIR_NOT_FOUND, "%s", names[i]);
	}
	cr_expect_eq(weir_graph_find_output(NULL, "r", &out, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_graph_find_output(graph, NULL, &out, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_graph_find_output(graph, "r", NULL, &error), WEIR_INVALID_ARGUMENT);
	cr_expect(out.node == NULL && out.index == 7);
	cr_assert_eq(weir_graph_destroy(graph, NULL), WEIR_OK);
	weir_var_destroy(var, NULL);
}

Test(graph, generated_names_avoid_those_that_are_taken)
{
	weir_graph *graph = kit_graph();
	char name[32];

	/* Takes the names that the graph would generate next. */
	for (int i = 0; i < 20; i++) {
		(void)snprintf(name, sizeof(name), "no_op_%d", 20 + i);
		(void)no_op(graph, name);
	}
	for (int i = 0; i < 20; i++)
		cr_expect_not_null(no_op(graph, NULL));
	cr_expect_eq(weir_graph_node_count(graph), 40);
	cr_assert_eq(weir_graph_destroy(graph, NULL), WEIR_OK);
}

Test(graph, accessors_accept_nothing)
{
	weir_output out;
	weir_node *node = NULL;
	weir_graph *graph = kit_graph();
	weir_output nothing = {NULL, 0};

	cr_expect_null(weir_node_name(NULL));
	cr_expect_null(weir_node_op(NULL));
	cr_expect_eq(weir_node_output_count(NULL), 0);
	cr_expect_eq(weir_graph_node_count(NULL), 0);
	cr_expect_eq(weir_node_output(NULL, 0, &out, NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_graph_find(NULL, "x", &node, NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_graph_find(graph, NULL, &node, NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_graph_find(graph, "x", NULL, NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_output_spec(nothing, NULL, NULL, NULL), WEIR_INVALID_ARGUMENT);
	node = no_op(graph, NULL);
	cr_expect_eq(weir_node_output(node, 0, &out, NULL), WEIR_OUT_OF_RANGE);
	cr_assert_eq(weir_graph_destroy(graph, NULL), WEIR_OK);
}

Test(graph, builders_refuse_what_is_missing)
{
	weir_graph *graph = kit_graph();
	weir_graph *other = kit_graph();
	weir_output x = kit_placeholder(graph, "x", WEIR_F32, kit_shape(0));
	weir_output foreign = kit_placeholder(other, "foreign", WEIR_F32, kit_shape(0));
	weir_output nothing = {NULL, 0};
	weir_output beyond = {x.node, 1};
	weir_shape rank9 = {.rank = 9};
	weir_output out;
	weir_error error;

	cr_expect_eq(weir_op_add(NULL, NULL, x, x, &out, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_op_add(graph, NULL, x, x, NULL, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_op_add(graph, NULL, x, nothing, &out, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_not_null(strstr(error.message, "input 1"), "%s", error.message);
	cr_expect_eq(weir_op_add(graph, NULL, beyond, x, &out, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_op_add(graph, "mixed", x, foreign, &out, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_not_null(strstr(error.message, "\"foreign\", belongs to another graph"), "%s", error.message);
	cr_expect_eq(weir_op_placeholder(graph, NULL, (enum weir_dtype)0, NULL, &out, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_op_placeholder(graph, NULL, WEIR_F32, &rank9, &out, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_op_placeholder(graph, NULL, WEIR_F32, NULL, NULL, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_op_placeholder(NULL, NULL, WEIR_F32, NULL, &out, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_op_constant(graph, NULL, NULL, &out, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_op_identity(graph, NULL, x, NULL, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_op_no_op(graph, NULL, NULL, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_op_no_op(NULL, NULL, NULL, NULL), WEIR_INVALID_ARGUMENT);
	cr_assert_eq(weir_graph_destroy(graph, NULL), WEIR_OK);
	cr_assert_eq(weir_graph_destroy(other, NULL), WEIR_OK);
}

Test(graph, control_edges_that_close_a_cycle_are_refused_with_their_names)
{
	weir_graph *graph = kit_graph();
	weir_node *a = no_op(graph, "a");
	weir_node *b = no_op(graph, "b");
	weir_node *c = no_op(graph, "c");
	weir_error error;

	cr_expect_eq(weir_graph_add_control(graph, a, a, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_graph_add_control(graph, c, a, &error), WEIR_OK, "an edge to an older node makes no cycle");
	cr_expect_eq(weir_graph_add_control(graph, a, b, &error), WEIR_OK);
	cr_expect_eq(weir_graph_add_control(graph, a, b, &error), WEIR_OK, "the same edge again");
	cr_expect_eq(weir_graph_add_control(graph, b, c, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_not_null(strstr(error.message, "\"b\" before \"c\""), "%s", error.message);
	cr_assert_eq(weir_graph_destroy(graph, NULL), WEIR_OK);
}

Test(graph, control_edges_against_data_edges_are_cycles_too)
{
	weir_graph *graph = kit_graph();
	weir_output x = kit_constant(graph, kit_f32(1));
	weir_output y, z;

	cr_assert_eq(weir_op_square(graph, "y", x, &y, NULL), WEIR_OK);
	cr_assert_eq(weir_op_square(graph, "z", y, &z, NULL), WEIR_OK);
	cr_expect_eq(weir_graph_add_control(graph, z.node, x.node, NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_graph_add_control(graph, x.node, z.node, NULL), WEIR_OK);
	cr_assert_eq(weir_graph_destroy(graph, NULL), WEIR_OK);
}

Test(graph, control_edges_need_two_nodes_of_the_graph)
{
	weir_graph *graph = kit_graph();
	weir_graph *other = kit_graph();
	weir_node *a = no_op(graph, "a");
	weir_node *b = no_op(other, "b");
	weir_error error;

	cr_expect_eq(weir_graph_add_control(NULL, a, a, NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_graph_add_control(graph, NULL, a, NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_graph_add_control(graph, a, NULL, NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_graph_add_control(graph, a, b, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_not_null(strstr(error.message, "\"b\""), "%s", error.message);
	cr_assert_eq(weir_graph_destroy(graph, NULL), WEIR_OK);
	cr_assert_eq(weir_graph_destroy(other, NULL), WEIR_OK);
}

Test(graph, a_node_that_has_run_takes_no_more_control_edges)
{
	weir_graph *graph = kit_graph();
	weir_session *session = kit_session(graph, 0);
	weir_node *a = no_op(graph, "a");
	weir_node *b = no_op(graph, "b");
	weir_error error;

	cr_assert_eq(kit_run_target(session, b, &error), WEIR_OK);
	cr_expect_eq(weir_graph_add_control(graph, a, b, &error), WEIR_FAILED_PRECONDITION);
	cr_expect_not_null(strstr(error.message, "\"b\""), "%s", error.message);
	cr_expect_eq(weir_graph_add_control(graph, b, a, &error), WEIR_OK);
	cr_assert_eq(kit_run_target(session, a, &error), WEIR_OK);
	cr_expect_eq(weir_graph_add_control(graph, b, a, &error), WEIR_OK, "it is there already");
	kit_end(session, graph);
}

Test(graph, a_control_edge_that_comes_too_late_gives_its_memory_back)
{
	struct failing_allocator memory = {0};
	weir_allocator allocator = failing_allocator_hooks(&memory);
	struct weir_graph_options options = {WEIR_GRAPH_OPTIONS_INIT, .allocator = &allocator};
	weir_graph *graph = NULL;
	weir_session *session;
	weir_node *a, *b;
	size_t kept;

	cr_assert_eq(weir_graph_create(&options, &graph, NULL), WEIR_OK);
	session = kit_session(graph, 0);
	a = no_op(graph, "a");
	b = no_op(graph, "b");
	cr_assert_eq(kit_run_target(session, b, NULL), WEIR_OK);
	kept = weiri_load_relaxed(&memory.outstanding);
	cr_expect_eq(weir_graph_add_control(graph, a, b, NULL), WEIR_FAILED_PRECONDITION);
	cr_expect_eq(weiri_load_relaxed(&memory.outstanding), kept);
	kit_end(session, graph);
	cr_expect_str_eq(failing_allocator_verdict(&memory), "balanced");
}

Test(graph, a_long_chain_of_backward_edges_is_searched_without_recursion)
{
	enum { LENGTH = 20000 };
	weir_graph *graph = kit_graph();
	weir_session *session = kit_session(graph, 0);
	weir_node *newer = NULL;
	weir_node *first = no_op(graph, "first");
	weir_node *before = first;

	for (int i = 0; i < LENGTH; i++) {
		newer = no_op(graph, NULL);
		/*
		 * Only the first edge goes backward. From then on the graph searches for a cycle with each
		 * edge. An edge for each node would take quadratic time.
		 */
		if (i == 0)
			cr_assert_eq(weir_graph_add_control(graph, newer, first, NULL), WEIR_OK);
		else if (i % 200 == 0)
			cr_assert_eq(weir_graph_add_control(graph, before, newer, NULL), WEIR_OK);
		before = newer;
	}
	cr_expect_eq(kit_run_target(session, first, NULL), WEIR_OK);
	kit_end(session, graph);
}

enum { BUILDERS = 4, EACH = 200 };

struct builder {
	weir_graph *graph;
	int built;
	int taken;
};

/* All builders want the same names. */
static void *build_names(void *context)
{
	struct builder *builder = context;
	char name[32];

	for (int i = 0; i < EACH; i++) {
		weir_node *node;
		enum weir_status status;

		(void)snprintf(name, sizeof(name), "node%d", i);
		status = weir_op_no_op(builder->graph, name, &node, NULL);
		builder->built += status == WEIR_OK;
		builder->taken += status == WEIR_ALREADY_EXISTS;
	}
	return NULL;
}

Test(graph, of_many_builders_one_gets_each_name)
{
	weir_graph *graph = kit_graph();
	struct builder builders[BUILDERS];
	pthread_t threads[BUILDERS];
	int built = 0;
	int taken = 0;

	for (int i = 0; i < BUILDERS; i++) {
		builders[i] = (struct builder){graph, 0, 0};
		cr_assert_eq(pthread_create(&threads[i], NULL, build_names, &builders[i]), 0);
	}
	for (int i = 0; i < BUILDERS; i++) {
		cr_assert_eq(pthread_join(threads[i], NULL), 0);
		built += builders[i].built;
		taken += builders[i].taken;
	}
	cr_expect_eq(built, EACH);
	cr_expect_eq(taken, (BUILDERS - 1) * EACH);
	cr_expect_eq(weir_graph_node_count(graph), EACH);
	cr_assert_eq(weir_graph_destroy(graph, NULL), WEIR_OK);
}

Test(graph, a_constant_keeps_its_tensor_and_gives_it_back)
{
	weir_graph *graph = kit_graph();
	weir_output out;
	weir_tensor *value = kit_f32(3);

	cr_assert_eq(weir_op_constant(graph, "c", value, &out, NULL), WEIR_OK);
	cr_expect_eq(weir_op_constant(graph, "c", value, &out, NULL), WEIR_ALREADY_EXISTS);
	weir_tensor_release(value);
	/* AddressSanitizer shows a reference too few or too many here. */
	cr_assert_eq(weir_graph_destroy(graph, NULL), WEIR_OK);
}

Test(graph, destroy_waits_for_its_sessions_to_go)
{
	weir_graph *graph = kit_graph();
	weir_session *session = kit_session(graph, 0);
	weir_error error;

	cr_expect_eq(weir_graph_destroy(graph, &error), WEIR_FAILED_PRECONDITION);
	cr_expect_not_null(strstr(error.message, "session"));
	kit_end(session, graph);
}

static enum weir_status build_something(const weir_allocator *allocator, void *context)
{
	struct weir_graph_options options = {WEIR_GRAPH_OPTIONS_INIT, .allocator = allocator};
	weir_shape scalar = {.rank = 0};
	weir_graph *graph;
	weir_output x;
	weir_output y = {NULL, 0};
	enum weir_status status = weir_graph_create(&options, &graph, NULL);

	(void)context;
	if (status != WEIR_OK)
		return status;
	status = weir_op_placeholder(graph, "x", WEIR_F32, &scalar, &x, NULL);
	if (status == WEIR_OK)
		status = weir_op_square(graph, NULL, x, &y, NULL);
	if (status == WEIR_OK)
		status = weir_graph_add_control(graph, x.node, y.node, NULL);
	(void)weir_graph_destroy(graph, NULL);
	return status;
}

Test(graph, building_survives_every_allocation_failing)
{
	cr_expect_gt(fail_each_allocation(build_something, NULL), 3);
}
