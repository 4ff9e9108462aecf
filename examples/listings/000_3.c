/*
 * 000_3.c - a producer and a consumer share a session and pass 50 matrices through a queue of 10.
 *
 * Each run of the enqueue draws new random numbers. They depend only on the number of the run, so
 * the consumer can check that it gets every matrix once and in order.
 */
#define _POSIX_C_SOURCE 200809L
#include <time.h>

#include "listing.h"

enum { SIDE = 10, ELEMENTS = SIDE * SIDE, MATRICES = 50 };

/* Uniform in [0, 1), from a counter (splitmix64). */
static double uniform(uint64_t counter)
{
	uint64_t z = (counter + 1) * UINT64_C(0x9E3779B97F4A7C15);

	z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
	z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
	return (double)((z ^ z >> 31) >> 11) * 0x1p-53;
}

/* Element `i` of matrix `number`: nearly standard normal, as the sum of twelve uniform numbers. */
static float normal(int number, int i)
{
	uint64_t first = ((uint64_t)number * ELEMENTS + (uint64_t)i) * 12;
	double sum = 0;

	for (uint64_t k = 0; k < 12; k++)
		sum += uniform(first + k);
	return (float)(sum - 6.0);
}

/* Only the producer's runs call it, one after the other. */
static enum weir_status random_normal(void *context, const struct weir_kernel_call *call, weir_error *error)
{
	int *number = context;
	weir_shape shape = {.rank = 2, .dims = {SIDE, SIDE}};
	float values[ELEMENTS];

	(void)error;
	for (int i = 0; i < ELEMENTS; i++)
		values[i] = normal(*number, i);
	++*number;
	return weir_tensor_copy_of(WEIR_F32, &shape, values, NULL, &call->outputs[0]);
}
static const struct weir_kernel random_normal_kernel = {WEIR_KERNEL_INIT, .name = "random_normal",
                                                        .run = random_normal};

struct program {
	weir_session *session;
	weir_node *enqueue;
	weir_output dequeue;
	int produced; /* by random_normal */
	int consumed;
};

static enum weir_status producer(weir_coordinator *coordinator, void *context, weir_error *error)
{
	struct program *p = context;
	struct timespec interval = {.tv_nsec = 10000000};

	(void)coordinator;
	for (int i = 0; i < MATRICES; i++) {
		enum weir_status status =
			weir_session_run(p->session, NULL, 0, NULL, 0, NULL, &p->enqueue, 1, WEIR_NO_DEADLINE, NULL, error);

		if (status != WEIR_OK)
			return status;
		(void)nanosleep(&interval, NULL); /* as if data came at intervals */
	}
	return WEIR_OK;
}

static int is_matrix(const weir_tensor *data, int number)
{
	const float *values = weir_tensor_data(data);

	for (int i = 0; i < ELEMENTS; i++) {
		if (values[i] != normal(number, i))
			return 0;
	}
	return 1;
}

static enum weir_status consumer(weir_coordinator *coordinator, void *context, weir_error *error)
{
	struct program *p = context;

	(void)coordinator;
	for (int i = 0; i < MATRICES; i++) {
		weir_tensor *data;
		enum weir_status status =
			weir_session_run(p->session, NULL, 0, &p->dequeue, 1, &data, NULL, 0, WEIR_NO_DEADLINE, NULL, error);

		if (status != WEIR_OK)
			return status;
		printf("Consumed: (%d, %d)\n", (int)weir_tensor_shape(data)->dims[0], (int)weir_tensor_shape(data)->dims[1]);
		p->consumed += is_matrix(data, i);
		weir_tensor_release(data);
	}
	return WEIR_OK;
}

int main(void)
{
	weir_shape matrix = {.rank = 2, .dims = {SIDE, SIDE}};
	struct weir_output_type type = {WEIR_F32, &matrix};
	weir_tensor_queue *queue = queue_of(WEIR_F32, &matrix, 10, WEIR_QUEUE_FIFO, 0);
	struct program p = {.produced = 0};
	weir_coordinator *coordinator;
	weir_output source;
	weir_graph *graph;

	must(weir_graph_create(NULL, &graph, &listing_error));
	must(weir_op_kernel(graph, "random_normal", &random_normal_kernel, &p.produced, NULL, 0, &type, 1, NULL, 0, &source,
	                    NULL, &listing_error));
	must(weir_op_enqueue(graph, "enqueue", queue, &source, 1, &p.enqueue, &listing_error));
	must(weir_op_dequeue(graph, "dequeue", queue, &p.dequeue, 1, NULL, &listing_error));
	must(weir_session_create(graph, NULL, &p.session, &listing_error));
	must(weir_coordinator_create(NULL, &coordinator, &listing_error));

	must(weir_coordinator_start_thread(coordinator, "producer", producer, &p, &listing_error));
	must(weir_coordinator_start_thread(coordinator, "consumer", consumer, &p, &listing_error));
	must(weir_coordinator_join(coordinator, WEIR_NO_DEADLINE, WEIR_COORDINATOR_GRACE_NS, 0, &listing_error));
	expect(p.consumed == MATRICES, "the consumer must get all 50 matrices, unchanged and in order");
	expect(weir_tensor_queue_size_approx(queue) == 0, "the queue must be empty at the end");

	must(weir_coordinator_destroy(coordinator, &listing_error));
	end_session(p.session, graph);
	must(weir_tensor_queue_destroy(queue, &listing_error));
	return 0;
}
