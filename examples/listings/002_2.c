/*
 * 002_2.c - a function with a loop of as many updates as its argument says, then a read: prints 5
 * and 5.
 *
 * No value flows from one update to the next, or to the read. The automatic control edges of the
 * function order them: an iteration follows the other, and the read follows the loop, which writes.
 */
#include "listing.h"

/* Counts `left` down to 0. */
static enum weir_status is_left(void *context, weir_graph *body, const struct weir_argument arguments[],
                                weir_output results[], weir_error *error)
{
	(void)context;
	return weir_op_cast(body, NULL, arguments[0].output, WEIR_BOOL, &results[0], error);
}

static enum weir_status update(void *context, weir_graph *body, const struct weir_argument arguments[],
                               weir_output results[], weir_error *error)
{
	weir_output one = constant(body, i32(1)), updated;

	(void)context;
	return weir_op_assign_add(body, NULL, arguments[1].var, one, &updated, error) ||
	               weir_op_sub(body, NULL, arguments[0].output, one, &results[0], error)
	           ? error->code
	           : WEIR_OK;
}

struct loop {
	weir_function *is_left, *update;
};

static enum weir_status update_loop(void *context, weir_graph *body, const struct weir_argument arguments[],
                                    weir_output results[], weir_error *error)
{
	struct loop *loop = context;
	weir_output left;

	return weir_op_while(body, "loop", loop->is_left, loop->update, arguments, 2, NULL, &left, NULL, error) ||
	               weir_op_read(body, "result", arguments[1].var, &results[0], error)
	           ? error->code
	           : WEIR_OK;
}

int main(void)
{
	static const struct weir_parameter parameters[] = {
		{"iterations", WEIR_PARAMETER_TENSOR, WEIR_I32, &weir_shape_scalar},
		{"x", WEIR_PARAMETER_VAR, WEIR_I32, &weir_shape_scalar}};
	struct loop loop = {function_of("is_left", is_left, NULL, parameters, 2, 1),
	                    function_of("update", update, NULL, parameters, 2, 1)};
	weir_function *function = function_of("update_loop", update_loop, &loop, parameters, 2, 1);
	weir_var *x = variable("x", i32(0));
	struct weir_argument arguments[] = {{.tensor = i32(5)}, {.var = x}};
	weir_session *session;
	weir_graph *graph;
	int32_t result;
	int32_t value;

	begin_session(&session, &graph);
	call(function, session, arguments, &result, sizeof(result));
	value_of(x, &value, sizeof(value));
	printf("result: %d\nx: %d\n", (int)result, (int)value);
	expect(result == 5 && value == 5, "both must be 5");

	weir_tensor_release(arguments[0].tensor);
	end_session(session, graph);
	must(weir_function_destroy(function, &listing_error));
	must(weir_function_destroy(loop.is_left, &listing_error));
	must(weir_function_destroy(loop.update, &listing_error));
	weir_var_destroy(x, NULL);
	return 0;
}
