/*
 * 002_3.c - two functions that change one variable, called in turn: prints 0, 1, 2, 2.
 *
 * Each function is a part of one graph, and a call of it is a run that fetches its result. The
 * order comes from the program, which calls one after the other. If two threads called them at
 * once, a read and the assignment computed from it would not be one atomic update; weir_op_snapshot
 * and weir_op_commit make them one.
 */
#include "listing.h"

typedef enum weir_status binary_op(weir_graph *graph, const char *name, weir_output a, weir_output b, weir_output *out,
                                   weir_error *error);

/* variable = variable `op` operand; *result is the new value. */
static void function(weir_graph *graph, weir_var *var, binary_op *op, float operand, weir_output *result)
{
	weir_output value, computed;

	must(weir_op_read(graph, NULL, var, &value, &listing_error));
	must(op(graph, NULL, value, constant(graph, f32(operand)), &computed, &listing_error));
	must(weir_op_assign(graph, NULL, var, computed, result, &listing_error));
}

int main(void)
{
	weir_var *global = variable("global_variable", f32(0.0f));
	weir_output function_one, function_two;
	weir_session *session;
	weir_graph *graph;
	float initial, one, two, final;

	must(weir_graph_create(NULL, &graph, &listing_error));
	function(graph, global, weir_op_add, 1.0f, &function_one);
	function(graph, global, weir_op_mul, 2.0f, &function_two);
	must(weir_session_create(graph, NULL, &session, &listing_error));

	initial = value_of_f32(global);
	one = run_for_f32(session, function_one);
	two = run_for_f32(session, function_two);
	final = value_of_f32(global);
	printf("Initial variable: %.1f\nFunction one return: %.1f\nFunction two return: %.1f\nFinal variable: %.1f\n",
	       (double)initial, (double)one, (double)two, (double) final);
	expect(initial == 0.0f && one == 1.0f && two == 2.0f && final == 2.0f, "the values must be 0, 1, 2, 2");

	end_session(session, graph);
	weir_var_destroy(global, NULL);
	return 0;
}
