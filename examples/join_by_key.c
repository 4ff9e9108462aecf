/*
 * join_by_key.c - pictures from one thread and labels from another leave a keyed join as pairs.
 *
 * The threads bring keys in different orders. A pair can be taken once both parts are there. When
 * both threads are done, the keyed join is closed. Incomplete keys can then no longer be completed,
 * and a take returns WEIR_OUT_OF_RANGE after the last pairs.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <weir/flow/keyed_join.h>

enum { PAIRS = 600, LABELS_ONLY = 3, AT_ONCE = 4, BATCH = 32, PICTURE = 0, LABEL = 1 };

static weir_keyed_join *pairs;

/* Returns 1, and prints a message, unless the call succeeded. */
static int failed(const char *what, enum weir_status status, const weir_error *error)
{
	if (status != WEIR_OK)
		(void)fprintf(stderr, "%s: %s: %s\n", what, weir_status_name(status), error->message);
	return status != WEIR_OK;
}

/*
 * Key i is the text of i, and its part is the number i. One call inserts AT_ONCE keys, all or none.
 */
static int bring(size_t component, int64_t first)
{
	weir_shape shape = {1, {AT_ONCE}};
	char text[AT_ONCE][24];
	weir_bytes names[AT_ONCE];
	int64_t numbers[AT_ONCE];
	weir_tensor *keys = NULL, *values = NULL;
	weir_error error = {WEIR_RESOURCE_EXHAUSTED, "there is no memory for keys"};
	enum weir_status status;

	for (int i = 0; i < AT_ONCE; i++) {
		numbers[i] = first + i;
		names[i].data = text[i];
		names[i].size = (size_t)snprintf(text[i], sizeof(text[i]), "%" PRId64, numbers[i]);
	}
	status = weir_tensor_copy_of(WEIR_BYTES, &shape, names, NULL, &keys);
	if (status == WEIR_OK)
		status = weir_tensor_copy_of(WEIR_I64, &shape, numbers, NULL, &values);
	if (status == WEIR_OK)
		status = weir_keyed_join_insert_many(pairs, component, keys, values, &error);
	weir_tensor_release(keys);
	weir_tensor_release(values);
	return !failed("bring", status, &error);
}

/* Inserts from the first to the last. Both functions return their argument, or NULL on failure. */
static void *bring_pictures(void *right)
{
	for (int64_t i = 0; i < PAIRS; i += AT_ONCE) {
		if (!bring(PICTURE, i))
			return NULL;
	}
	return right;
}

/* Inserts from the last to the first, and some labels for which there is no picture. */
static void *bring_labels(void *right)
{
	for (int64_t i = PAIRS + (LABELS_ONLY - 1) * AT_ONCE; i >= 0; i -= AT_ONCE) {
		if (!bring(LABEL, i))
			return NULL;
	}
	return right;
}

/* Counts the matching pairs of the batch, and releases them. */
static int matching(const struct weir_keyed_join_batch *batch)
{
	const weir_bytes *keys = weir_tensor_data(batch->keys);
	const int64_t *pictures = weir_tensor_data(batch->values[PICTURE]);
	const int64_t *labels = weir_tensor_data(batch->values[LABEL]);
	int count = 0;

	for (int64_t i = 0; i < (int64_t)batch->count; i++) {
		char text[24];

		(void)snprintf(text, sizeof(text), "%.*s", (int)keys[i].size, keys[i].data);
		count += pictures[i] == labels[i] && strtoll(text, NULL, 10) == pictures[i];
	}
	weir_tensor_release(batch->indices);
	weir_tensor_release(batch->keys);
	weir_tensor_release(batch->values[PICTURE]);
	weir_tensor_release(batch->values[LABEL]);
	return count;
}

static void *take(void *count)
{
	struct weir_keyed_join_batch batch;
	weir_error error;
	enum weir_status status;

	/* Takes full batches while more pairs may come, and the rest at the end. */
	while ((status = weir_keyed_join_take_many(pairs, BATCH, WEIR_KEYED_JOIN_ALLOW_SMALL_BATCH, WEIR_NO_DEADLINE, NULL,
	                                           &batch, &error)) == WEIR_OK)
		*(int *)count += matching(&batch);
	printf("the end: %s\n", error.message);
	return status == WEIR_OUT_OF_RANGE ? count : NULL;
}

int main(void)
{
	struct weir_tensor_component components[] = {{WEIR_I64, &weir_shape_scalar, "picture"},
	                                             {WEIR_I64, &weir_shape_scalar, "label"}};
	struct weir_keyed_join_options options = {WEIR_KEYED_JOIN_OPTIONS_INIT, .name = "pairs", .components = components,
	                                          .component_count = 2};
	void *(*const work[])(void *) = {bring_pictures, bring_labels, take};
	pthread_t threads[3];
	size_t ready = 0, incomplete = 0;
	int count = 0, wrong = 0;
	weir_error error;
	void *outcome;

	if (failed("keyed join", weir_keyed_join_create(&options, &pairs, &error), &error))
		return 1;
	for (int i = 0; i < 3; i++) {
		if (pthread_create(&threads[i], NULL, work[i], &count) != 0)
			return 1;
	}
	for (int i = 0; i < 2; i++) {
		(void)pthread_join(threads[i], &outcome);
		wrong += outcome == NULL;
	}
	wrong += weir_keyed_join_size(pairs, &ready, &incomplete) != WEIR_OK || incomplete != (size_t)LABELS_ONLY * AT_ONCE;
	/* drops incomplete keys */
	wrong += weir_keyed_join_close(pairs, WEIR_CLOSE_CANCEL, NULL) != WEIR_OK;
	(void)pthread_join(threads[2], &outcome);
	wrong += outcome == NULL || count != PAIRS;
	wrong += weir_keyed_join_destroy(pairs, &error) != WEIR_OK;
	printf("%d pairs, %d labels without a picture%s\n", count, (int)incomplete, wrong != 0 ? ": wrong" : "");
	return wrong == 0 ? 0 : 1;
}
