/*
 * planted.c - runs a graph with a library that has a fault, and looks whether the check of the trace
 * names it.
 *
 * usage: planted_NAME WORK TEXT: WORK is the part that runs; a line of the check must contain TEXT.
 * With the TEXT "" there must be no fault. Exit status: 0 as expected, 1 not.
 */
#include "planted_kit.h"

enum { RUNS = 20 };

static weir_graph *graph;
static weir_output x, doubled, fetches[3];
static size_t fetch_count;
static weir_node *target;
static weir_var *var;
static weir_tensor_queue *queue;

/* A value with two users, each of which could write over it. */
static void build_values(void)
{
	weir_output square, product;
	weir_error e;

	must(weir_op_add(graph, "doubled", x, x, &doubled, &e), &e);
	must(weir_op_square(graph, "square", doubled, &square, &e), &e);
	must(weir_op_mul(graph, "product", doubled, x, &product, &e), &e);
	must(weir_op_add(graph, "sum", square, product, &fetches[fetch_count++], &e), &e);
}

/* A read, a write after it, and a read after that; the edges are control edges. */
static void build_variable(void)
{
	weir_output before, sum;
	weir_error e;

	must(weir_op_read(graph, "before", var, &before, &e), &e);
	must(weir_op_assign_add(graph, "add", var, x, &sum, &e), &e);
	must(weir_op_read(graph, "after", var, &fetches[fetch_count], &e), &e);
	must(weir_graph_add_control(graph, before.node, sum.node, &e), &e);
	must(weir_graph_add_control(graph, sum.node, fetches[fetch_count++].node, &e), &e);
}

static void build_queue(void)
{
	weir_error e;
	weir_node *put;

	must(weir_op_enqueue(graph, "put", queue, &x, 1, &put, &e), &e);
	must(weir_op_dequeue(graph, "take", queue, &fetches[fetch_count], 1, NULL, &e), &e);
	must(weir_graph_add_control(graph, put, fetches[fetch_count++].node, &e), &e);
}

/* Nodes that a fault may run twice without harm. */
static void build_chain(void)
{
	weir_node *first;
	weir_error e;

	must(weir_op_no_op(graph, "first", &first, &e), &e);
	must(weir_op_no_op(graph, "last", &target, &e), &e);
	must(weir_graph_add_control(graph, first, target, &e), &e);
}

static void run_all(weir_session *session, bool feeds_both)
{
	struct weir_feed feeds[2] = {{x, number(1)}, {doubled, number(2)}};
	/* A second reference: no op may write over what is fed. */
	weir_tensor *held = weir_tensor_retain(feeds[0].value);
	weir_tensor *results[3];
	weir_error e;

	for (int i = 0; i < RUNS; i++) {
		must(weir_session_run(session, feeds, feeds_both ? 2 : 1, fetches, fetch_count, results, &target,
		                      target != NULL, WEIR_NO_DEADLINE, NULL, &e),
		     &e);
		for (size_t k = 0; k < fetch_count; k++)
			weir_tensor_release(results[k]);
	}
	weir_tensor_release(held);
	weir_tensor_release(feeds[0].value);
	weir_tensor_release(feeds[1].value);
}

static void make_objects(void)
{
	struct weir_var_options options = {WEIR_VAR_OPTIONS_INIT, .name = "w", .dtype = WEIR_F32,
	                                   .shape = &weir_shape_scalar};
	struct weir_tensor_component component = {.dtype = WEIR_F32, .shape = &weir_shape_scalar};
	struct weir_tensor_queue_options line = {WEIR_TENSOR_QUEUE_OPTIONS_INIT, .capacity = 4, .name = "q",
	                                         .components = &component, .component_count = 1};
	weir_tensor *one = number(1);
	weir_error e;

	must(weir_graph_create(NULL, &graph, &e), &e);
	must(weir_var_create(one, &options, &var, &e), &e);
	must(weir_tensor_queue_create(&line, &queue, &e), &e);
	weir_tensor_release(one);
	must(weir_op_placeholder(graph, "x", WEIR_F32, &weir_shape_scalar, &x, &e), &e);
}

int main(int argc, char *argv[])
{
	struct weir_trace_options options = {WEIR_TRACE_OPTIONS_INIT, .flags = WEIR_TRACE_CHECKSUMS};
	struct weir_session_options with = {WEIR_SESSION_OPTIONS_INIT, .flags = WEIR_SESSION_NO_THREADS, .shuffle_seed = 1};
	struct planted_findings findings = {.failed = false};
	weir_session *session;
	weir_error e;

	if (argc != 3)
		return 1;
	findings.expected = argv[2];
	make_objects();
	if (strcmp(argv[1], "values") == 0 || strcmp(argv[1], "feeds") == 0)
		build_values();
	if (strcmp(argv[1], "chain") == 0)
		build_chain();
	if (strcmp(argv[1], "variable") == 0)
		build_variable();
	if (strcmp(argv[1], "queue") == 0)
		build_queue();
	must(weir_trace_create(&options, &with.trace, &e), &e);
	must(weir_session_create(graph, &with, &session, &e), &e);
	run_all(session, strcmp(argv[1], "feeds") == 0);
	must(weir_session_destroy(session, &e), &e);
	planted_check(with.trace, &findings);
	must(weir_trace_destroy(with.trace, &e), &e);
	must(weir_graph_destroy(graph, &e), &e);
	must(weir_tensor_queue_destroy(queue, &e), &e);
	must(weir_var_destroy(var, &e), &e);
	return planted_status(&findings);
}
