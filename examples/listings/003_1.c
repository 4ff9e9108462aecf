/*
 * 003_1.c - simple_shuffle_batch: a queue between a source and its batches, filled by four threads.
 *
 * The function of the listing makes a shuffle queue, an op that puts one item into it, a queue runner
 * that runs the op on four threads, and returns the op that takes a batch. A monitored session starts
 * the runner, and its end stops and joins the threads. Here the source counts up from 1, so each
 * number that comes out must be new.
 */
#include "listing.h"

enum { CAPACITY = 20, BATCH = 10, THREADS = 4, BATCHES = 5 };

/* What the function makes besides its result. */
struct shuffle_batch {
	weir_tensor_queue *queue;
	weir_node *enqueue;
	struct weir_monitored_runner runner;
};

static weir_output simple_shuffle_batch(struct shuffle_batch *made, weir_graph *graph, weir_output source,
                                        size_t capacity, int32_t batch_size)
{
	weir_output batch;

	made->queue = queue_of(WEIR_I64, &weir_shape_scalar, capacity, WEIR_QUEUE_SHUFFLE, capacity * 9 / 10);
	must(weir_op_enqueue(graph, "enqueue", made->queue, &source, 1, &made->enqueue, &listing_error));
	made->runner = (struct weir_monitored_runner){&made->enqueue, 1, THREADS, made->queue};
	must(weir_op_dequeue_many(graph, "dequeue_many", made->queue, constant(graph, i32(batch_size)), &batch, 1, NULL,
	                          &listing_error));
	return batch;
}

static enum weir_status make(void *context, weir_session **session, weir_error *error)
{
	return weir_session_create(context, NULL, session, error);
}

/* Counts each number; none may come out twice, and none much earlier than it went in. */
static void check_batch(const weir_tensor *batch, int seen[], int *count)
{
	const int64_t *numbers = weir_tensor_data(batch);

	expect(weir_tensor_element_count(batch) == BATCH, "a batch must have 10 numbers");
	for (int i = 0; i < BATCH; i++) {
		expect(numbers[i] >= 1 && numbers[i] <= CAPACITY + *count + THREADS - 1, "no number may come out too early");
		expect(seen[numbers[i]]++ == 0, "no number may come out twice");
		++*count;
	}
}

int main(void)
{
	weir_var *counter = variable("counter", i64(0));
	int seen[CAPACITY + BATCHES * BATCH + THREADS] = {0}, count = 0;
	struct weir_monitored_options options = {WEIR_MONITORED_OPTIONS_INIT, .make = make, .runner_count = 1};
	struct shuffle_batch made;
	weir_monitored *session;
	weir_output source, batch;
	weir_graph *graph;

	must(weir_graph_create(NULL, &graph, &listing_error));
	must(weir_op_assign_add(graph, "source", counter, constant(graph, i64(1)), &source, &listing_error));
	batch = simple_shuffle_batch(&made, graph, source, CAPACITY, BATCH);
	options.context = graph;
	options.runners = &made.runner;
	must(weir_monitored_create(&options, &session, &listing_error));

	for (int i = 0; i < BATCHES; i++) {
		weir_tensor *numbers;

		must(weir_monitored_run(session, NULL, 0, &batch, 1, &numbers, NULL, 0, WEIR_NO_DEADLINE, NULL, NULL,
		                        &listing_error));
		check_batch(numbers, seen, &count);
		weir_tensor_release(numbers);
	}
	printf("%d batches of %d numbers, none twice\n", BATCHES, BATCH);

	must(weir_monitored_close(session, WEIR_OK, &listing_error));
	must(weir_monitored_destroy(session, &listing_error));
	must(weir_graph_destroy(graph, &listing_error));
	must(weir_tensor_queue_destroy(made.queue, &listing_error));
	weir_var_destroy(counter, NULL);
	return 0;
}
