/*
 * dataset_batches.c - lines of text become shuffled batches of numbers, read ahead by a pool.
 *
 * The generator stands for a file. Lines are parsed two at a time and come in order; the shuffle
 * gives each pass another order; the batches are ready before they are asked for. A line that is no
 * number is an error in its place, and the next call goes on behind it.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weir/dataset.h>

enum { LINES = 100, BATCH = 8, PASSES = 3 };

/* The state of a pass is the number of its next line. */
static enum weir_status open_lines(void *context, void **state, weir_error *error)
{
	(void)context, (void)error;
	*state = calloc(1, sizeof(int));
	return *state != NULL ? WEIR_OK : WEIR_RESOURCE_EXHAUSTED;
}

static enum weir_status next_line(void *context, void *state, weir_tensor *out[], weir_error *error)
{
	int *line = state;
	char text[32];

	(void)context, (void)error;
	if (*line == LINES)
		return WEIR_OUT_OF_RANGE;
	(void)snprintf(text, sizeof(text), *line == 13 ? "thirteen" : "%d", *line);
	++*line;
	return weir_tensor_scalar_bytes(text, strlen(text), &out[0]);
}

static void close_lines(void *context, void *state)
{
	(void)context;
	free(state);
}

static enum weir_status parse(void *context, weir_tensor *const in[], weir_tensor *out[], weir_error *error)
{
	const weir_bytes *line = weir_tensor_data(in[0]);
	char text[32] = "", *end;
	int64_t number;

	(void)context;
	memcpy(text, line->data, line->size < sizeof(text) ? line->size : sizeof(text) - 1);
	number = strtoll(text, &end, 10);
	if (*end == '\0')
		return weir_tensor_scalar_i64(number, &out[0]);
	(void)snprintf(error->message, sizeof(error->message), "\"%s\" is no number", text);
	return WEIR_DATA_LOSS;
}

/* Puts a stage around *dataset; the inner one then belongs to the outer one. */
static void become(weir_dataset **dataset, enum weir_status status, weir_dataset *const *outer, const weir_error *error)
{
	if (status != WEIR_OK) {
		(void)fprintf(stderr, "%s\n", error->message);
		exit(1);
	}
	weir_dataset_release(*dataset);
	*dataset = *outer;
}

static weir_dataset *describe(void)
{
	static const enum weir_dtype bytes = WEIR_BYTES, i64 = WEIR_I64;
	const struct weir_dataset_generator lines = {WEIR_DATASET_GENERATOR_INIT, open_lines, next_line, close_lines, NULL};
	const struct weir_dataset_options texts = {WEIR_DATASET_OPTIONS_INIT, .dtypes = &bytes, .width = 1};
	const struct weir_dataset_options numbers = {WEIR_DATASET_OPTIONS_INIT, .at_once = 2, .dtypes = &i64, .width = 1};
	weir_dataset *dataset = NULL, *outer = NULL;
	weir_error error;

	become(&dataset, weir_dataset_generate(&lines, &texts, &outer, &error), &outer, &error);
	become(&dataset, weir_dataset_map(dataset, parse, NULL, &numbers, &outer, &error), &outer, &error);
	become(&dataset, weir_dataset_shuffle(dataset, 32, NULL, &outer, &error), &outer, &error);
	become(&dataset, weir_dataset_repeat(dataset, PASSES, NULL, &outer, &error), &outer, &error);
	become(&dataset, weir_dataset_batch(dataset, BATCH, NULL, &outer, &error), &outer, &error);
	become(&dataset, weir_dataset_prefetch(dataset, 4, NULL, &outer, &error), &outer, &error);
	return dataset;
}

int main(void)
{
	struct weir_pool_options workers = {WEIR_POOL_OPTIONS_INIT, .threads = 2};
	struct weir_iterator_options options = {WEIR_ITERATOR_OPTIONS_INIT};
	weir_dataset *dataset = describe();
	weir_iterator *iterator = NULL;
	enum weir_status status;
	int64_t sum = 0, numbers = 0, errors = 0;
	char text[WEIR_DATASET_TEXT_SIZE];
	weir_error error;

	if (weir_pool_create(&workers, &options.pool, NULL) != WEIR_OK ||
	    weir_iterator_create(dataset, &options, &iterator, &error) != WEIR_OK)
		return 1;
	printf("%s\n", weir_dataset_text(dataset, text, sizeof(text)));
	weir_dataset_release(dataset);
	do {
		weir_tensor *batch;

		status = weir_iterator_next(iterator, WEIR_NO_DEADLINE, NULL, &batch, 1, &error);
		if (status == WEIR_OK) {
			for (int64_t i = 0; i < weir_tensor_element_count(batch); i++, numbers++)
				sum += ((const int64_t *)weir_tensor_data(batch))[i];
			weir_tensor_release(batch);
		} else if (status == WEIR_DATA_LOSS) {
			errors++;
			printf("%s\n", error.message);
		}
	} while (status != WEIR_OUT_OF_RANGE);
	printf("%" PRId64 " numbers, their sum is %" PRId64 "; %" PRId64 " errors\n", numbers, sum, errors);
	if (weir_iterator_destroy(iterator, NULL) != WEIR_OK || weir_pool_destroy(options.pool, NULL) != WEIR_OK)
		return 1;
	return numbers == INT64_C(99) * PASSES && sum == (INT64_C(4950) - 13) * PASSES && errors == PASSES ? 0 : 1;
}
