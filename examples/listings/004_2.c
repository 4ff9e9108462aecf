/*
 * 004_2.c - two functions that share a struct of resources, weights and a bias: prints the shape of
 * the output, (5, 10), and that of the weights, (10, 10).
 *
 * A struct of resources is several parameters. The first dim of the input is open, so one body
 * serves batches of any size.
 */
#include "listing.h"

enum { ROWS = 5, WIDTH = 10 };

struct shared_resources {
	weir_var *weights, *bias;
};

/* input x weights + bias */
static enum weir_status process_data(void *context, weir_graph *body, const struct weir_argument arguments[],
                                     weir_output results[], weir_error *error)
{
	weir_output weights, bias, product;

	(void)context;
	return weir_op_read(body, "weights", arguments[1].var, &weights, error) ||
	               weir_op_read(body, "bias", arguments[2].var, &bias, error) ||
	               weir_op_matmul(body, NULL, arguments[0].output, weights, 0, &product, error) ||
	               weir_op_add(body, NULL, product, bias, &results[0], error)
	           ? error->code
	           : WEIR_OK;
}

static enum weir_status give_weights(void *context, weir_graph *body, const struct weir_argument arguments[],
                                     weir_output results[], weir_error *error)
{
	(void)context;
	return weir_op_read(body, "weights", arguments[0].var, &results[0], error);
}

/* A tensor [rows, WIDTH] of numbers, or [WIDTH] if rows is 0. */
static weir_tensor *numbers(int64_t rows)
{
	float values[WIDTH * WIDTH];
	weir_shape shape = {.rank = rows != 0 ? 2 : 1, .dims = {rows != 0 ? rows : WIDTH, WIDTH}};
	weir_tensor *tensor;

	for (int i = 0; i < WIDTH * WIDTH; i++)
		values[i] = (float)(i % 7) - 3.0f;
	must(weir_tensor_copy_of(WEIR_F32, &shape, values, NULL, &tensor));
	return tensor;
}

/* Runs a function of one result, prints its shape, and checks it. */
static void expect_shape(weir_function *function, weir_session *session, const struct weir_argument arguments[],
                         const char *what, int64_t rows)
{
	const weir_shape *shape;
	weir_tensor *result;

	must(weir_function_run(function, session, arguments, &result, WEIR_NO_DEADLINE, NULL, NULL, &listing_error));
	shape = weir_tensor_shape(result);
	printf("%s shape: (%lld, %lld)\n", what, (long long)shape->dims[0], (long long)shape->dims[1]);
	expect(shape->rank == 2 && shape->dims[0] == rows && shape->dims[1] == WIDTH, what);
	weir_tensor_release(result);
}

int main(void)
{
	static const weir_shape batch = {.rank = 2, .dims = {-1, WIDTH}};
	static const struct weir_parameter parameters[] = {{"input", WEIR_PARAMETER_TENSOR, WEIR_F32, &batch},
	                                                   {"resources.weights", WEIR_PARAMETER_VAR, WEIR_F32, NULL},
	                                                   {"resources.bias", WEIR_PARAMETER_VAR, WEIR_F32, NULL}};
	struct shared_resources shared = {variable("weights", numbers(WIDTH)), variable("bias", numbers(0))};
	weir_function *process = function_of("process_data", process_data, NULL, parameters, 3, 1);
	weir_function *weights = function_of("print_weights", give_weights, NULL, parameters + 1, 2, 1);
	struct weir_argument arguments[] = {{.tensor = numbers(ROWS)}, {.var = shared.weights}, {.var = shared.bias}};
	weir_session *session;
	weir_graph *graph;

	begin_session(&session, &graph);
	expect_shape(process, session, arguments, "Output", ROWS);
	weir_tensor_release(arguments[0].tensor);
	arguments[0].tensor = numbers(2);
	expect_shape(process, session, arguments, "Second output", 2);
	expect(weir_function_body_count(process) == 1, "one body must serve both batches");
	expect_shape(weights, session, arguments + 1, "Weights", WIDTH);

	weir_tensor_release(arguments[0].tensor);
	end_session(session, graph);
	must(weir_function_destroy(process, &listing_error));
	must(weir_function_destroy(weights, &listing_error));
	weir_var_destroy(shared.weights, NULL);
	weir_var_destroy(shared.bias, NULL);
	return 0;
}
