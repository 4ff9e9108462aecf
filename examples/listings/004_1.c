/*
 * 004_1.c - a counter that two functions share: one increments it, and the other prints it. Prints
 * 1, then 2.
 *
 * The counter is an argument. The body of a function is built once for the counter that it gets.
 */
#include "listing.h"

struct printed {
	int64_t values[2];
	int count;
};

/* Only one step at a time calls it. */
static enum weir_status print(void *context, const struct weir_kernel_call *call, weir_error *error)
{
	struct printed *printed = context;
	int64_t value = *(const int64_t *)weir_tensor_data(call->inputs[0]);

	(void)error;
	printf("Counter value: %lld\n", (long long)value);
	if (printed->count < 2)
		printed->values[printed->count++] = value;
	return WEIR_OK;
}
/* Nothing uses the node, but it is stateful, so each call of the function runs it. */
static const struct weir_kernel print_kernel = {WEIR_KERNEL_INIT, .name = "print", .flags = WEIR_KERNEL_STATEFUL,
                                                .run = print};

static enum weir_status increment_counter(void *context, weir_graph *body, const struct weir_argument arguments[],
                                          weir_output results[], weir_error *error)
{
	(void)context;
	return weir_op_assign_add(body, NULL, arguments[0].var, constant(body, i64(1)), &results[0], error);
}

static enum weir_status print_counter(void *context, weir_graph *body, const struct weir_argument arguments[],
                                      weir_output results[], weir_error *error)
{
	weir_output value;
	enum weir_status status = weir_op_read(body, NULL, arguments[0].var, &value, error);

	(void)results;
	return status != WEIR_OK
	           ? status
	           : weir_op_kernel(body, NULL, &print_kernel, context, &value, 1, NULL, 0, NULL, 0, NULL, NULL, error);
}

int main(void)
{
	static const struct weir_parameter parameter = {"counter", WEIR_PARAMETER_VAR, WEIR_I64, &weir_shape_scalar};
	struct printed printed = {.count = 0};
	weir_function *increment = function_of("increment_counter", increment_counter, NULL, &parameter, 1, 1);
	weir_function *printing = function_of("print_counter", print_counter, &printed, &parameter, 1, 0);
	weir_var *counter = variable("shared_counter", i64(0));
	struct weir_argument argument = {.var = counter};
	weir_session *session;
	weir_graph *graph;
	int64_t value;

	begin_session(&session, &graph);
	for (int i = 0; i < 2; i++) {
		call(increment, session, &argument, &value, sizeof(value));
		expect(value == i + 1, "an increment must give the new value");
		must(weir_function_run(printing, session, &argument, NULL, WEIR_NO_DEADLINE, NULL, NULL, &listing_error));
	}
	expect(printed.count == 2 && printed.values[0] == 1 && printed.values[1] == 2, "the program must print 1, then 2");

	end_session(session, graph);
	must(weir_function_destroy(increment, &listing_error));
	must(weir_function_destroy(printing, &listing_error));
	weir_var_destroy(counter, NULL);
	return 0;
}
