/*
 * 004_3.c - a dataset of 100 rows in batches of 10, and two functions: one doubles a batch, one sums
 * it. Prints the sum of each batch.
 *
 * The batches share nothing but the dataset, which is immutable: any number of threads could take
 * them, each batch once.
 */
#include "listing.h"

enum { ROWS = 100, WIDTH = 10, BATCH = 10 };

static enum weir_status process_batch(void *context, weir_graph *body, const struct weir_argument arguments[],
                                      weir_output results[], weir_error *error)
{
	(void)context;
	return weir_op_mul(body, NULL, arguments[0].output, constant(body, f32(2.0f)), &results[0], error);
}

static enum weir_status sum_batch(void *context, weir_graph *body, const struct weir_argument arguments[],
                                  weir_output results[], weir_error *error)
{
	(void)context;
	return weir_op_reduce_sum(body, NULL, arguments[0].output, &results[0], error);
}

/* Small whole numbers, so that sums are exact. */
static float value_at(int i)
{
	return (float)((i * 37 + i / 7) % 13 - 6);
}

static weir_tensor *rows(void)
{
	weir_shape shape = {.rank = 2, .dims = {ROWS, WIDTH}};
	float values[ROWS * WIDTH];
	weir_tensor *tensor;

	for (int i = 0; i < ROWS * WIDTH; i++)
		values[i] = value_at(i);
	must(weir_tensor_copy_of(WEIR_F32, &shape, values, NULL, &tensor));
	return tensor;
}

/* Takes the next batch. Returns NULL at the end. */
static weir_tensor *next_batch(weir_iterator *iterator)
{
	weir_tensor *batch = NULL;
	enum weir_status status = weir_iterator_next(iterator, WEIR_NO_DEADLINE, NULL, &batch, 1, &listing_error);

	if (status != WEIR_OUT_OF_RANGE)
		must(status);
	return batch;
}

static weir_iterator *batches_of(weir_tensor *data)
{
	weir_dataset *slices, *batches;
	weir_iterator *iterator;

	must(weir_dataset_from_slices(&data, 1, NULL, &slices, &listing_error));
	must(weir_dataset_batch(slices, BATCH, NULL, &batches, &listing_error));
	must(weir_iterator_create(batches, NULL, &iterator, &listing_error));
	weir_dataset_release(slices);
	weir_dataset_release(batches);
	return iterator;
}

int main(void)
{
	static const weir_shape any_rows = {.rank = 2, .dims = {-1, WIDTH}};
	static const struct weir_parameter parameter = {"batch", WEIR_PARAMETER_TENSOR, WEIR_F32, &any_rows};
	weir_function *process = function_of("process_batch", process_batch, NULL, &parameter, 1, 1);
	weir_function *sum = function_of("sum_batch", sum_batch, NULL, &parameter, 1, 1);
	weir_tensor *data = rows(), *batch;
	weir_iterator *iterator = batches_of(data);
	weir_session *session;
	weir_graph *graph;
	int count = 0;

	begin_session(&session, &graph);
	while ((batch = next_batch(iterator)) != NULL) {
		struct weir_argument argument = {.tensor = batch};
		weir_tensor *processed;
		float batch_sum, expected = 0;

		must(weir_function_run(process, session, &argument, &processed, WEIR_NO_DEADLINE, NULL, NULL, &listing_error));
		argument.tensor = processed;
		call(sum, session, &argument, &batch_sum, sizeof(batch_sum));
		printf("Batch sum: %g\n", (double)batch_sum);
		for (int i = 0; i < BATCH * WIDTH; i++)
			expected += 2.0f * value_at(count * BATCH * WIDTH + i);
		expect(batch_sum == expected, "the sum of a batch must be twice that of its rows");
		weir_tensor_release(processed);
		weir_tensor_release(batch);
		count++;
	}
	expect(count == ROWS / BATCH, "there must be ten batches");

	must(weir_iterator_destroy(iterator, &listing_error));
	weir_tensor_release(data);
	end_session(session, graph);
	must(weir_function_destroy(process, &listing_error));
	must(weir_function_destroy(sum, &listing_error));
	return 0;
}
