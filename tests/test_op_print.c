/*
 * test_op_print.c - print, assert and queue_is_closed, and the graph as text.
 */
#include <stdio.h>

#include "failing_allocator.h"
#include "graph_kit.h"

/* Collects what is written. */
struct page {
	char text[4096];
	size_t used;
	int calls;
	enum weir_status status; /* of each call */
};

static enum weir_status write_page(void *context, const char *text, size_t size, weir_error *error)
{
	struct page *page = context;

	page->calls++;
	cr_assert_eq(text[size], '\0');
	cr_assert_lt(page->used + size, sizeof(page->text));
	(void)memcpy(page->text + page->used, text, size + 1);
	page->used += size;
	if (page->status != WEIR_OK)
		(void)snprintf(error->message, sizeof(error->message), "the page is full");
	return page->status;
}

/* Runs a print of `x` without a message; the line is in *page. */
static void print_one(struct page *page, weir_tensor *x, size_t elements)
{
	struct weir_print_options options = {WEIR_PRINT_OPTIONS_INIT};
	weir_graph *graph = kit_graph();
	weir_output value = kit_constant(graph, x);
	weir_session *session;
	weir_node *node;

	options.write = write_page;
	options.context = page;
	options.elements = elements;
	page->used = 0;
	cr_assert_eq(weir_op_print(graph, NULL, &options, &value, 1, &node, NULL), WEIR_OK);
	session = kit_session(graph, 0);
	cr_assert_eq(kit_run_target(session, node, NULL), WEIR_OK);
	kit_end(session, graph);
}

static weir_tensor *strings(void)
{
	weir_shape shape = kit_shape(1, 2);
	weir_bytes of[2] = {{"a\"b\n", 4}, {NULL, 0}};

	return kit_tensor(WEIR_BYTES, shape, of);
}

Test(op_print, a_tensor_is_dtype_shape_and_elements)
{
	struct page page = {.used = 0};

	print_one(&page, kit_f32(1.5f), 0);
	cr_expect_str_eq(page.text, "f32 [] 1.5\n");
	print_one(&page, kit_tensor(WEIR_I32, kit_shape(2, 2, 3), (const int32_t[]){1, 2, 3, 4, 5, -6}), 0);
	cr_expect_str_eq(page.text, "i32 [2,3] [[1 2 3] [4 5 -6]]\n");
	print_one(&page, kit_tensor(WEIR_I32, kit_shape(2, 2, 3), (const int32_t[]){1, 2, 3, 4, 5, -6}), 4);
	cr_expect_str_eq(page.text, "i32 [2,3] [[1 2 3] [4 ...\n");
	print_one(&page, kit_tensor(WEIR_F64, kit_shape(2, 0, 3), NULL), 0);
	cr_expect_str_eq(page.text, "f64 [0,3] []\n");
	print_one(&page, kit_tensor(WEIR_BOOL, kit_shape(1, 2), (const uint8_t[]){1, 0}), 0);
	cr_expect_str_eq(page.text, "bool [2] [true false]\n");
	print_one(&page, kit_tensor(WEIR_F16, kit_shape(1, 5), (const uint16_t[]){0x3c00, 0xc100, 0x7bff, 1, 0xfc00}), 0);
	cr_expect_str_eq(page.text, "f16 [5] [1 -2.5 6.55e+04 5.96e-08 -inf]\n");
	print_one(&page, kit_tensor(WEIR_BF16, kit_shape(1, 2), (const uint16_t[]){0x3f80, 0xc040}), 0);
	cr_expect_str_eq(page.text, "bf16 [2] [1 -3]\n");
	print_one(&page, kit_tensor(WEIR_U64, kit_shape(0), &(uint64_t){UINT64_MAX}), 0);
	cr_expect_str_eq(page.text, "u64 [] 18446744073709551615\n");
	print_one(&page, strings(), 0);
	cr_expect_str_eq(page.text, "bytes [2] [\"a\\\"b\\x0a\" \"\"]\n");
}

Test(op_print, a_line_has_the_message_and_all_inputs_in_one_write)
{
	struct weir_print_options options = {WEIR_PRINT_OPTIONS_INIT};
	struct page page = {.used = 0};
	weir_graph *graph = kit_graph();
	weir_output values[2] = {kit_constant(graph, kit_f32(1)), kit_constant(graph, kit_i64(2))};
	weir_node *first, *second;
	weir_session *session;

	options.write = write_page;
	options.context = &page;
	options.message = "step:";
	cr_assert_eq(weir_op_print(graph, "p", &options, values, 2, &first, NULL), WEIR_OK);
	options.message = "done";
	cr_assert_eq(weir_op_print(graph, "q", &options, NULL, 0, &second, NULL), WEIR_OK);
	cr_assert_eq(weir_graph_add_control(graph, first, second, NULL), WEIR_OK);
	session = kit_session(graph, 2);
	cr_assert_eq(kit_run_target(session, second, NULL), WEIR_OK);
	cr_expect_str_eq(page.text, "step: f32 [] 1, i64 [] 2\ndone\n");
	cr_expect_eq(page.calls, 2);
	kit_end(session, graph);
}

Test(op_print, a_long_line_is_cut_and_still_ends)
{
	static const double zeros[4096];
	struct page page = {.used = 0};

	print_one(&page, kit_tensor(WEIR_F64, kit_shape(1, 4096), zeros), 4096);
	cr_expect_lt(page.used, WEIR_PRINT_LINE_SIZE);
	cr_expect_gt(page.used, WEIR_PRINT_LINE_SIZE - 8);
	cr_expect_eq(page.text[page.used - 1], '\n');
}

Test(op_print, a_writer_that_fails_fails_the_step)
{
	struct weir_print_options options = {WEIR_PRINT_OPTIONS_INIT};
	struct page page = {.status = WEIR_DATA_LOSS};
	weir_graph *graph = kit_graph();
	weir_session *session;
	weir_node *node;
	weir_error error;

	cr_expect_eq(weir_op_print(graph, "p", &options, NULL, 0, &node, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_str_eq(error.message, "print \"p\": write is NULL");
	options.write = write_page;
	options.context = &page;
	cr_assert_eq(weir_op_print(graph, "p", &options, NULL, 0, &node, NULL), WEIR_OK);
	session = kit_session(graph, 0);
	cr_expect_eq(kit_run_target(session, node, &error), WEIR_DATA_LOSS);
	cr_expect_str_eq(error.message, "print \"p\": the page is full");
	kit_end(session, graph);
}

Test(op_print, an_assertion_that_does_not_hold_fails_the_step_with_its_values)
{
	weir_graph *graph = kit_graph();
	weir_output x = kit_placeholder(graph, "x", WEIR_F32, kit_shape(1, -1)), positive;
	struct weir_feed feed = {x, NULL};
	weir_session *session;
	weir_node *node;
	weir_error error;

	cr_assert_eq(weir_op_greater(graph, NULL, x, kit_constant(graph, kit_f32(0)), &positive, NULL), WEIR_OK);
	cr_assert_eq(weir_op_assert(graph, "a", positive, "not positive", &x, 1, &node, NULL), WEIR_OK);
	session = kit_session(graph, 0);
	feed.value = kit_tensor(WEIR_F32, kit_shape(1, 2), (const float[]){1, 2});
	cr_expect_eq(weir_session_run(session, &feed, 1, NULL, 0, NULL, &node, 1, WEIR_NO_DEADLINE, NULL, &error), WEIR_OK);
	weir_tensor_release(feed.value);
	feed.value = kit_tensor(WEIR_F32, kit_shape(1, 2), (const float[]){1, -2});
	cr_expect_eq(weir_session_run(session, &feed, 1, NULL, 0, NULL, &node, 1, WEIR_NO_DEADLINE, NULL, &error),
	             WEIR_INVALID_ARGUMENT);
	cr_expect_str_eq(error.message, "assert \"a\": not positive: f32 [2] [1 -2]");
	weir_tensor_release(feed.value);
	cr_expect_eq(weir_op_assert(graph, "b", x, NULL, NULL, 0, NULL, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_str_eq(error.message, "assert \"b\": expected a condition of bool, got f32");
	cr_expect_eq(weir_op_assert(graph, "b", positive, NULL, NULL, 1, NULL, NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_op_assert(graph, "b", positive, NULL, &x, WEIR_ASSERT_MAX_VALUES + 1, NULL, NULL),
	             WEIR_INVALID_ARGUMENT);
	kit_end(session, graph);
}

Test(op_print, a_queue_tells_whether_it_is_closed)
{
	weir_graph *graph = kit_graph();
	weir_tensor_queue *queue = kit_queue("q", 2, WEIR_F32, NULL);
	weir_output closed;
	weir_session *session;

	cr_assert_eq(weir_op_queue_is_closed(graph, NULL, queue, &closed, NULL), WEIR_OK);
	cr_expect_eq(weir_op_queue_is_closed(graph, NULL, NULL, &closed, NULL), WEIR_INVALID_ARGUMENT);
	session = kit_session(graph, 0);
	for (int want = 0; want < 2; want++) {
		weir_tensor *result = kit_fetch(session, closed);

		cr_expect_eq(weir_tensor_dtype(result), WEIR_BOOL);
		cr_expect_eq(*(const uint8_t *)weir_tensor_data(result), want);
		weir_tensor_release(result);
		cr_assert_eq(weir_tensor_queue_close(queue, WEIR_CLOSE_DRAIN, NULL), WEIR_OK);
	}
	kit_end(session, graph);
	kit_queue_end(queue);
}

/* -- graphs ------------------------------------------------------------------------------------ */

static weir_graph *small_graph(const weir_allocator *allocator, weir_var *var)
{
	struct weir_graph_options options = {WEIR_GRAPH_OPTIONS_INIT};
	weir_graph *graph = NULL;
	weir_output x, sum;
	weir_node *first;

	options.allocator = allocator;
	cr_assert_eq(weir_graph_create(&options, &graph, NULL), WEIR_OK);
	x = kit_placeholder(graph, "a \"x\"", WEIR_F32, kit_shape(0));
	cr_assert_eq(weir_op_no_op(graph, "first", &first, NULL), WEIR_OK);
	cr_assert_eq(weir_op_assign_add(graph, "sum", var, x, &sum, NULL), WEIR_OK);
	cr_assert_eq(weir_graph_add_control(graph, first, sum.node, NULL), WEIR_OK);
	return graph;
}

Test(op_print, a_graph_is_printed_as_text_and_as_dot)
{
	weir_var *var = kit_var("w", kit_f32(0));
	weir_graph *graph = small_graph(NULL, var);
	struct page page = {.used = 0};

	cr_assert_eq(weir_graph_print(graph, WEIR_GRAPH_TEXT, write_page, &page, NULL), WEIR_OK);
	cr_expect_str_eq(page.text, "\"a \\\"x\\\"\" = placeholder() -> f32 []\n"
	                            "\"first\" = no_op()\n"
	                            "\"sum\" = assign_add(\"a \\\"x\\\"\":0) -> f32 [], i64 [] on variable \"w\" after "
	                            "\"first\"\n");
	page.used = 0;
	cr_assert_eq(weir_graph_print(graph, WEIR_GRAPH_DOT, write_page, &page, NULL), WEIR_OK);
	cr_expect_str_eq(page.text, "digraph weir {\n"
	                            "  node [shape=box];\n"
	                            "  n0 [label=\"a \\\"x\\\"\"+\"\\nplaceholder\"];\n"
	                            "  n1 [label=\"first\"+\"\\nno_op\"];\n"
	                            "  n2 [label=\"sum\"+\"\\nassign_add\"+\"\\nvariable \"+\"w\"];\n"
	                            "  n0 -> n2 [label=\"f32 []\"];\n"
	                            "  n1 -> n2 [style=dashed];\n"
	                            "}\n");
	cr_assert_eq(weir_graph_destroy(graph, NULL), WEIR_OK);
	cr_assert_eq(weir_var_destroy(var, NULL), WEIR_OK);
}

static enum weir_status write_nowhere(void *context, const char *text, size_t size, weir_error *error)
{
	(void)context, (void)text, (void)size;
	cr_assert_not_null(error);
	return WEIR_UNAVAILABLE;
}

static enum weir_status write_without_end(void *context, const char *text, size_t size, weir_error *error)
{
	(void)context, (void)text, (void)size;
	memset(error->message, 'x', sizeof(error->message));
	return WEIR_UNAVAILABLE;
}

Test(op_print, a_message_of_a_writer_need_not_end)
{
	static const char begin[] = "weir_graph_print: the writer failed: x";
	weir_graph *graph = kit_graph();
	struct page page = {.used = 0};
	weir_error error = {WEIR_OK, "as before"};

	cr_expect_eq(weir_graph_print(graph, WEIR_GRAPH_DOT, write_page, &page, &error), WEIR_OK);
	cr_expect_str_eq(error.message, "as before");
	cr_expect_eq(weir_graph_print(graph, WEIR_GRAPH_DOT, write_without_end, NULL, &error), WEIR_UNAVAILABLE);
	cr_expect_eq(strncmp(error.message, begin, sizeof(begin) - 1), 0);
	cr_expect_eq(strlen(error.message), sizeof(begin) - 2 + 180);
	cr_assert_eq(weir_graph_destroy(graph, NULL), WEIR_OK);
}

Test(op_print, a_graph_that_cannot_be_printed_is_reported)
{
	weir_var *var = kit_var("w", kit_f32(0));
	weir_graph *graph = small_graph(NULL, var);
	struct page page = {.status = WEIR_DATA_LOSS};
	weir_error error;

	cr_expect_eq(weir_graph_print(NULL, WEIR_GRAPH_TEXT, write_page, &page, NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_graph_print(graph, WEIR_GRAPH_TEXT, NULL, &page, NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_graph_print(graph, (enum weir_graph_format)7, write_page, &page, NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_graph_print(graph, WEIR_GRAPH_DOT, write_page, &page, &error), WEIR_DATA_LOSS);
	cr_expect_eq(page.calls, 1, "nothing is written after a failure");
	cr_expect_eq(error.code, WEIR_DATA_LOSS);
	cr_expect_str_eq(error.message, "weir_graph_print: the writer failed: the page is full");
	cr_expect_eq(weir_graph_print(graph, WEIR_GRAPH_DOT, write_nowhere, &page, &error), WEIR_UNAVAILABLE);
	cr_expect_str_eq(error.message, "weir_graph_print: the writer failed: WEIR_UNAVAILABLE");
	cr_expect_eq(weir_graph_print(graph, WEIR_GRAPH_DOT, write_nowhere, &page, NULL), WEIR_UNAVAILABLE);
	cr_assert_eq(weir_graph_destroy(graph, NULL), WEIR_OK);
	cr_assert_eq(weir_var_destroy(var, NULL), WEIR_OK);
}

Test(op_print, a_line_lists_the_inputs_of_a_node)
{
	weir_graph *graph = kit_graph();
	weir_output a = kit_placeholder(graph, "a", WEIR_F32, kit_shape(0));
	weir_output b = kit_placeholder(graph, "b", WEIR_F32, kit_shape(0)), sum;
	struct page page = {.used = 0};

	cr_assert_eq(weir_op_add(graph, "sum", a, b, &sum, NULL), WEIR_OK);
	cr_assert_eq(weir_graph_print(graph, WEIR_GRAPH_TEXT, write_page, &page, NULL), WEIR_OK);
	cr_expect_not_null(strstr(page.text, "\"sum\" = add(\"a\":0, \"b\":0) -> f32 []\n"), "%s", page.text);
	cr_assert_eq(weir_graph_destroy(graph, NULL), WEIR_OK);
}

/* Builds, prints and runs; each allocation fails in turn. */
static enum weir_status build_and_print(const weir_allocator *allocator, void *context)
{
	struct weir_graph_options options = {WEIR_GRAPH_OPTIONS_INIT};
	struct weir_print_options print = {WEIR_PRINT_OPTIONS_INIT, .write = write_page, .message = "x"};
	struct page page = {.used = 0};
	weir_graph *graph = NULL;
	weir_output x, same;
	enum weir_status status;

	(void)context;
	print.context = &page;
	options.allocator = allocator;
	status = weir_graph_create(&options, &graph, NULL);
	if (status == WEIR_OK)
		status = weir_op_placeholder(graph, "x", WEIR_F32, NULL, &x, NULL);
	if (status == WEIR_OK)
		status = weir_op_equal(graph, NULL, x, x, &same, NULL);
	if (status == WEIR_OK)
		status = weir_op_assert(graph, NULL, same, "not a number", &x, 1, NULL, NULL);
	if (status == WEIR_OK)
		status = weir_op_print(graph, NULL, &print, &x, 1, NULL, NULL);
	if (status == WEIR_OK)
		status = weir_graph_print(graph, WEIR_GRAPH_TEXT, write_page, &page, NULL);
	(void)weir_graph_destroy(graph, NULL);
	return status;
}

Test(op_print, every_allocation_may_fail)
{
	cr_expect_eq(fail_each_allocation(build_and_print, NULL), 8);
}
