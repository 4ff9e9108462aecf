/*
 * 004_1.c - a counter that two functions share: one increments it, and the other prints it. Prints
 * 1, then 2.
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
static const struct weir_kernel print_kernel = {WEIR_KERNEL_INIT, .name = "print", .run = print};

int main(void)
{
	weir_var *counter = variable("shared_counter", i64(0));
	struct printed printed = {.count = 0};
	weir_node *print_counter;
	weir_output increment, value;
	weir_session *session;
	weir_graph *graph;

	must(weir_graph_create(NULL, &graph, &listing_error));
	must(weir_op_assign_add(graph, "increment_counter", counter, constant(graph, i64(1)), &increment, &listing_error));
	must(weir_op_read(graph, "value", counter, &value, &listing_error));
	must(weir_op_kernel(graph, "print_counter", &print_kernel, &printed, &value, 1, NULL, 0, NULL, 0, NULL,
	                    &print_counter, &listing_error));
	must(weir_session_create(graph, NULL, &session, &listing_error));

	for (int i = 0; i < 2; i++) {
		run(session, increment.node);
		run(session, print_counter);
	}
	expect(printed.count == 2 && printed.values[0] == 1 && printed.values[1] == 2, "the program must print 1, then 2");

	end_session(session, graph);
	weir_var_destroy(counter, NULL);
	return 0;
}
