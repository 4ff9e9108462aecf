/*
 * 000_3.c - a producer and a consumer share a session and pass 50 matrices through a queue of 10.
 *
 * Each run of the enqueue draws new random numbers. They depend only on the number of the run, so the
 * consumer can draw each matrix again, and check that it gets every one once and in order.
 */
#define _POSIX_C_SOURCE 200809L
#include <time.h>

#include "listing.h"

enum { SIDE = 10, MATRICES = 50 };

struct program {
	weir_session *session;
	weir_node *enqueue;
	weir_callable *draw; /* the matrix of a run with a given number */
	weir_output dequeue;
	int consumed;
};

static enum weir_status producer(weir_coordinator *coordinator, void *context, weir_error *error)
{
	struct program *p = context;
	struct timespec interval = {.tv_nsec = 200000};

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

/* Draws the matrix of run `number` again. */
static bool is_matrix(const struct program *p, const weir_tensor *data, int number, weir_error *error)
{
	struct weir_run_options options = {WEIR_RUN_OPTIONS_INIT, .random_step = (uint64_t)number + 1};
	weir_tensor *expected;
	bool same;

	if (weir_callable_run(p->draw, NULL, &expected, WEIR_NO_DEADLINE, NULL, &options, error) != WEIR_OK)
		return false;
	same = memcmp(weir_tensor_data(data), weir_tensor_data(expected), weir_tensor_byte_count(expected)) == 0;
	weir_tensor_release(expected);
	return same;
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
		p->consumed += is_matrix(p, data, i, error);
		weir_tensor_release(data);
	}
	return WEIR_OK;
}

int main(void)
{
	weir_shape matrix = {.rank = 2, .dims = {SIDE, SIDE}};
	weir_tensor_queue *queue = queue_of(WEIR_F32, &matrix, 10, WEIR_QUEUE_FIFO, 0);
	struct program p = {.consumed = 0};
	weir_coordinator *coordinator;
	weir_output source;
	weir_graph *graph;

	must(weir_graph_create(NULL, &graph, &listing_error));
	must(weir_op_random_normal(graph, "random_normal", WEIR_F32, &matrix, 0, 1, 0, &source, &listing_error));
	must(weir_op_enqueue(graph, "enqueue", queue, &source, 1, &p.enqueue, &listing_error));
	must(weir_op_dequeue(graph, "dequeue", queue, &p.dequeue, 1, NULL, &listing_error));
	must(weir_session_create(graph, NULL, &p.session, &listing_error));
	must(weir_session_compile(p.session, NULL, 0, &source, 1, NULL, 0, NULL, &p.draw, &listing_error));
	must(weir_coordinator_create(NULL, &coordinator, &listing_error));

	must(weir_coordinator_start_thread(coordinator, "producer", producer, &p, &listing_error));
	must(weir_coordinator_start_thread(coordinator, "consumer", consumer, &p, &listing_error));
	must(weir_coordinator_join(coordinator, WEIR_NO_DEADLINE, WEIR_COORDINATOR_GRACE_NS, 0, &listing_error));
	expect(p.consumed == MATRICES, "the consumer must get all 50 matrices, unchanged and in order");
	expect(weir_tensor_queue_size_approx(queue) == 0, "the queue must be empty at the end");

	must(weir_coordinator_destroy(coordinator, &listing_error));
	weir_callable_release(p.draw);
	end_session(p.session, graph);
	must(weir_tensor_queue_destroy(queue, &listing_error));
	return 0;
}
