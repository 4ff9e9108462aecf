/*
 * 004_1.c - a counter that two functions share: one increments it, and the other prints it. Prints
 * 1, then 2.
 *
 * The counter is an argument. The body of a function is built once for the counter that it gets.
 */
#include "listing.h"

struct printed {
	char text[256];
	size_t size;
};

/* Only one step at a time prints. */
static enum weir_status print(void *context, const char *text, size_t size, weir_error *error)
{
	struct printed *printed = context;

	(void)error;
	printf("%.*s", (int)size, text);
	if (size < sizeof(printed->text) - printed->size) {
		memcpy(printed->text + printed->size, text, size);
		printed->size += size;
	}
	return WEIR_OK;
}

static enum weir_status increment_counter(void *context, weir_graph *body, const struct weir_argument arguments[],
                                          weir_output results[], weir_error *error)
{
	(void)context;
	return weir_op_assign_add(body, NULL, arguments[0].var, constant(body, i64(1)), &results[0], error);
}

/* Nothing uses the node, but printing is an effect, so each call of the function runs it. */
static enum weir_status print_counter(void *context, weir_graph *body, const struct weir_argument arguments[],
                                      weir_output results[], weir_error *error)
{
	struct weir_print_options options = {WEIR_PRINT_OPTIONS_INIT, .write = print, .context = context,
	                                     .message = "Counter value:"};
	weir_output value;
	enum weir_status status = weir_op_read(body, NULL, arguments[0].var, &value, error);

	(void)results;
	return status != WEIR_OK ? status : weir_op_print(body, NULL, &options, &value, 1, NULL, error);
}

int main(void)
{
	static const struct weir_parameter parameter = {"counter", WEIR_PARAMETER_VAR, WEIR_I64, &weir_shape_scalar};
	struct printed printed = {.size = 0};
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
	expect(strcmp(printed.text, "Counter value: i64 [] 1\nCounter value: i64 [] 2\n") == 0,
	       "the program must print 1, then 2");

	end_session(session, graph);
	must(weir_function_destroy(increment, &listing_error));
	must(weir_function_destroy(printing, &listing_error));
	weir_var_destroy(counter, NULL);
	return 0;
}
