/*
 * 003_4.c - the graph of a training pipeline: examples into a shuffle queue, batches out of it, and a
 * train op. It is built, printed, and not run.
 */
#include "training.h"

static enum weir_status print(void *context, const char *text, size_t size, weir_error *error)
{
	(void)context;
	(void)error;
	printf("%.*s", (int)size, text);
	return WEIR_OK;
}

int main(void)
{
	struct training training;

	build_training(&training, 0);
	must(weir_graph_print(training.graph, WEIR_GRAPH_TEXT, print, NULL, &listing_error));
	expect(weir_graph_node_count(training.graph) == 6, "example, enqueue, the batch size, dequeue, sum and train");
	expect(weir_iterator_position(training.examples) == 0 && model_of(&training) == 0,
	       "nothing may run while a graph is built");
	end_training(&training);
	return 0;
}
