/*
 * 002_1.c - an update and a value computed from it: prints 4 and 2.
 *
 * The product takes the output of the update itself, so it is twice the value that this update
 * published.
 */
#include "listing.h"

int main(void)
{
	weir_var *var = variable("var", f32(1.0f));
	weir_output updated, doubled;
	weir_session *session;
	weir_graph *graph;
	float result;

	must(weir_graph_create(NULL, &graph, &listing_error));
	must(weir_op_assign_add(graph, "new_var", var, constant(graph, f32(1.0f)), &updated, &listing_error));
	must(weir_op_mul(graph, "doubled_var", updated, constant(graph, f32(2.0f)), &doubled, &listing_error));
	must(weir_session_create(graph, NULL, &session, &listing_error));

	result = run_for_f32(session, doubled);
	printf("result: %g\nvar: %g\n", (double)result, (double)value_of_f32(var));
	expect(result == 4.0f && value_of_f32(var) == 2.0f, "the result must be 4 and the variable 2");

	end_session(session, graph);
	weir_var_destroy(var, NULL);
	return 0;
}
