/*
 * 002_2.c - five updates in a row, then a read: prints 5 and 5.
 *
 * No value flows from one update to the next. Control edges order the updates, and the read after
 * them.
 */
#include "listing.h"

/* Adds one update per iteration, each after the previous one; *last is the last. */
static void update_loop(weir_graph *graph, weir_var *x, int iterations, weir_node **last)
{
	weir_output one = constant(graph, i32(1));

	*last = NULL;
	for (int i = 0; i < iterations; i++) {
		weir_output update;

		must(weir_op_assign_add(graph, NULL, x, one, &update, &listing_error));
		if (*last != NULL)
			must(weir_graph_add_control(graph, *last, update.node, &listing_error));
		*last = update.node;
	}
}

int main(void)
{
	weir_var *x = variable("x", i32(0));
	weir_session *session;
	weir_output read;
	weir_graph *graph;
	weir_node *last;
	int32_t result;
	int32_t value;

	must(weir_graph_create(NULL, &graph, &listing_error));
	update_loop(graph, x, 5, &last);
	must(weir_op_read(graph, "result", x, &read, &listing_error));
	must(weir_graph_add_control(graph, last, read.node, &listing_error));
	must(weir_session_create(graph, NULL, &session, &listing_error));

	run_for(session, read, &result, sizeof(result));
	value_of(x, &value, sizeof(value));
	printf("result: %d\nx: %d\n", (int)result, (int)value);
	expect(result == 5 && value == 5, "both must be 5");

	end_session(session, graph);
	weir_var_destroy(x, NULL);
	return 0;
}
