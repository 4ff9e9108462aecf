/*
 * wrap_memory.c - memory of the program becomes a tensor, and its rows pass through a queue,
 * without a copy.
 *
 * The release callback reports that the last view of the memory was released, on any thread.
 */
#include <stdio.h>
#include <stdlib.h>
#include <weir/flow/tensor_queue.h>

enum { ROWS = 4, COLUMNS = 3 };

static int released;

static void give_back(void *context, void *data)
{
	(void)context;
	free(data);
	released++;
}

static weir_tensor *wrap_table(float *table)
{
	weir_shape shape = {2, {ROWS, COLUMNS}};
	weir_tensor *tensor;

	for (int i = 0; table != NULL && i < ROWS * COLUMNS; i++)
		table[i] = (float)i;
	if (table != NULL && weir_tensor_wrap(WEIR_F32, &shape, table, give_back, NULL, NULL, &tensor) == WEIR_OK)
		return tensor;
	free(table); /* give_back() is not called when wrapping failed */
	return NULL;
}

int main(void)
{
	weir_shape row = {1, {COLUMNS}};
	struct weir_tensor_component component = {WEIR_F32, &row, "row"};
	struct weir_tensor_queue_options options = {WEIR_TENSOR_QUEUE_OPTIONS_INIT, .capacity = ROWS,
	                                            .components = &component, .component_count = 1};
	float *memory = malloc(ROWS * COLUMNS * sizeof(*memory));
	weir_tensor *table = wrap_table(memory), *taken, *rest;
	weir_tensor_queue *queue;
	int wrong = 0;

	if (table == NULL || weir_tensor_queue_create(&options, &queue, NULL) != WEIR_OK)
		return 1;
	wrong += weir_tensor_queue_enqueue_many(queue, &table, 1, 0, NULL, NULL, NULL) != WEIR_OK;
	weir_tensor_release(table);
	wrong += released != 0; /* the rows in the queue keep the memory alive */

	wrong += weir_tensor_queue_dequeue(queue, &taken, 1, 0, NULL, NULL) != WEIR_OK;
	wrong += weir_tensor_data(taken) != memory; /* row 0, in its original place */
	/* A batch is a tensor of its own: the rows are copied. */
	wrong += weir_tensor_queue_dequeue_many(queue, ROWS - 1, &rest, 1, 0, NULL, NULL) != WEIR_OK;
	wrong += ((const float *)weir_tensor_data(rest))[0] != (float)COLUMNS;
	wrong += released != 0;
	weir_tensor_release(taken);
	wrong += released != 1; /* that was the last view */

	weir_tensor_release(rest);
	wrong += weir_tensor_queue_destroy(queue, NULL) != WEIR_OK;
	printf("%s\n", wrong == 0 ? "released once, with the last view" : "wrong");
	return wrong == 0 ? 0 : 1;
}
