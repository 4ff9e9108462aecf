/*
 * 003_2.c - passes 0 to 99 through a small shuffle queue, in ten batches of ten.
 *
 * A monitored session starts a queue runner, which fills the queue from four threads. At the end of
 * the numbers the runner closes the queue, which lifts min_after_dequeue. The loop takes what remains,
 * and ends with WEIR_OUT_OF_RANGE, a normal end.
 *
 * A number cannot come out arbitrarily early. When the j-th number comes out (from 0), j earlier
 * ones have come out, at most 20 are in the queue, and the other threads hold at most 3. So the
 * j-th number out is at most 20 + j + 2.
 */
#include "listing.h"

enum { NUMBERS = 100, CAPACITY = 20, BATCH = 10, THREADS = 4 };

struct program {
	weir_iterator *input;
	weir_tensor_queue *queue;
	weir_graph *graph;
	weir_node *enqueue;
	weir_output get_batch;
	int seen[NUMBERS];
	int count;
};

static void build(struct program *p)
{
	weir_dataset *numbers;
	weir_output number;

	must(weir_dataset_range(0, NUMBERS, 1, NULL, &numbers, &listing_error));
	must(weir_iterator_create(numbers, NULL, &p->input, &listing_error));
	weir_dataset_release(numbers);
	p->queue = queue_of(WEIR_I64, &weir_shape_scalar, CAPACITY, WEIR_QUEUE_SHUFFLE, CAPACITY * 9 / 10);
	must(weir_graph_create(NULL, &p->graph, &listing_error));
	must(weir_op_next(p->graph, "input", p->input, &number, 1, NULL, &listing_error));
	must(weir_op_enqueue(p->graph, "enqueue", p->queue, &number, 1, &p->enqueue, &listing_error));
	must(weir_op_dequeue_many(p->graph, "get_batch", p->queue, constant(p->graph, i32(BATCH)), &p->get_batch, 1, NULL,
	                          &listing_error));
}

static enum weir_status make(void *context, weir_session **session, weir_error *error)
{
	return weir_session_create(context, NULL, session, error);
}

static void print_batch(struct program *p, const weir_tensor *batch)
{
	const int64_t *numbers = weir_tensor_data(batch);

	expect(weir_tensor_element_count(batch) == BATCH, "a batch must have 10 numbers");
	printf("[");
	for (int i = 0; i < BATCH; i++) {
		printf("%s%d", i == 0 ? "" : " ", (int)numbers[i]);
		expect(numbers[i] <= CAPACITY + p->count + THREADS - 2, "no number may come out earlier than the queue allows");
		p->seen[numbers[i]]++;
		p->count++;
	}
	printf("]\n");
}

/* Returns the status with which the loop ends. */
static enum weir_status take_batches(struct program *p, weir_monitored *session)
{
	enum weir_status status = WEIR_OK;

	while (status == WEIR_OK && !weir_monitored_should_stop(session)) {
		weir_tensor *batch;

		status = weir_monitored_run(session, NULL, 0, &p->get_batch, 1, &batch, NULL, 0, WEIR_NO_DEADLINE, NULL, NULL,
		                            &listing_error);
		if (status != WEIR_OK)
			break;
		print_batch(p, batch);
		weir_tensor_release(batch);
	}
	return status;
}

int main(void)
{
	struct program p = {.count = 0};
	struct weir_monitored_options options = {WEIR_MONITORED_OPTIONS_INIT, .make = make, .runner_count = 1};
	struct weir_monitored_runner runner;
	weir_monitored *session;
	enum weir_status status;

	build(&p);
	runner = (struct weir_monitored_runner){&p.enqueue, 1, THREADS, p.queue};
	options.context = p.graph;
	options.runners = &runner;
	must(weir_monitored_create(&options, &session, &listing_error));
	status = take_batches(&p, session);
	expect(status == WEIR_OUT_OF_RANGE, "the loop must end with the numbers");
	must(weir_monitored_close(session, status, &listing_error));
	expect(p.count == NUMBERS, "there must be ten batches");
	for (int i = 0; i < NUMBERS; i++)
		expect(p.seen[i] == 1, "each number must come out exactly once");

	must(weir_monitored_destroy(session, &listing_error));
	must(weir_graph_destroy(p.graph, &listing_error));
	must(weir_tensor_queue_destroy(p.queue, &listing_error));
	must(weir_iterator_destroy(p.input, &listing_error));
	return 0;
}
