/*
 * 002_3.c - two functions that change one variable, called in turn: prints 0, 1, 2, 2.
 *
 * Inside a function, the assignment follows the read. Between the functions, the order comes from
 * the program, which calls one after the other. If two threads called them at once, a read and the
 * assignment computed from it would not be one atomic update; weir_op_snapshot and weir_op_commit
 * make them one.
 */
#include "listing.h"

/* variable = variable + 1; the result is the new value. */
static enum weir_status function_one(void *context, weir_graph *body, const struct weir_argument arguments[],
                                     weir_output results[], weir_error *error)
{
	weir_output value, sum;

	(void)context;
	return weir_op_read(body, NULL, arguments[0].var, &value, error) ||
	               weir_op_add(body, NULL, value, constant(body, f32(1.0f)), &sum, error) ||
	               weir_op_assign(body, NULL, arguments[0].var, sum, &results[0], error)
	           ? error->code
	           : WEIR_OK;
}

/* variable = variable * 2. */
static enum weir_status function_two(void *context, weir_graph *body, const struct weir_argument arguments[],
                                     weir_output results[], weir_error *error)
{
	weir_output value, product;

	(void)context;
	return weir_op_read(body, NULL, arguments[0].var, &value, error) ||
	               weir_op_mul(body, NULL, value, constant(body, f32(2.0f)), &product, error) ||
	               weir_op_assign(body, NULL, arguments[0].var, product, &results[0], error)
	           ? error->code
	           : WEIR_OK;
}

int main(void)
{
	static const struct weir_parameter parameter = {"variable", WEIR_PARAMETER_VAR, WEIR_F32, &weir_shape_scalar};
	weir_function *first = function_of("function_one", function_one, NULL, &parameter, 1, 1);
	weir_function *second = function_of("function_two", function_two, NULL, &parameter, 1, 1);
	weir_var *global = variable("global_variable", f32(0.0f));
	struct weir_argument argument = {.var = global};
	weir_session *session;
	weir_graph *graph;
	float initial, one, two, final;

	begin_session(&session, &graph);
	initial = value_of_f32(global);
	call(first, session, &argument, &one, sizeof(one));
	call(second, session, &argument, &two, sizeof(two));
	final = value_of_f32(global);
	printf("Initial variable: %.1f\nFunction one return: %.1f\nFunction two return: %.1f\nFinal variable: %.1f\n",
	       (double)initial, (double)one, (double)two, (double) final);
	expect(initial == 0.0f && one == 1.0f && two == 2.0f && final == 2.0f, "the values must be 0, 1, 2, 2");

	end_session(session, graph);
	must(weir_function_destroy(first, &listing_error));
	must(weir_function_destroy(second, &listing_error));
	weir_var_destroy(global, NULL);
	return 0;
}
