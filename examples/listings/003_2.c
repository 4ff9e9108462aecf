/*
 * 003_2.c - passes 0 to 99 through a small shuffle queue, in ten batches of ten.
 *
 * A queue runner fills the queue from four threads. At the end of the numbers it closes the queue,
 * which lifts min_after_dequeue. The loop takes what remains, and ends with WEIR_OUT_OF_RANGE, a
 * normal end.
 *
 * A number cannot come out arbitrarily early. When the j-th number comes out (from 0), j earlier
 * ones have come out, at most 20 are in the queue, and the other threads hold at most 3. So the
 * j-th number out is at most 20 + j + 2.
 */
#include <stdatomic.h>

#include "listing.h"

enum { NUMBERS = 100, CAPACITY = 20, BATCH = 10, THREADS = 4 };

/* The next number of the input; concurrent callers get different numbers. */
static enum weir_status next_number(void *context, const struct weir_kernel_call *call, weir_error *error)
{
	atomic_int *next = context;
	/* Relaxed: each number is handed out once, and it publishes nothing else. */
	int number = atomic_fetch_add_explicit(next, 1, memory_order_relaxed);

	if (number >= NUMBERS) {
		error->code = WEIR_OUT_OF_RANGE;
		(void)snprintf(error->message, sizeof(error->message), "all %d numbers were handed out", NUMBERS);
		return WEIR_OUT_OF_RANGE;
	}
	return weir_tensor_scalar_i32(number, &call->outputs[0]);
}
static const struct weir_kernel next_number_kernel = {WEIR_KERNEL_INIT, .name = "next_number", .run = next_number};

struct program {
	weir_session *session;
	weir_node *enqueue;
	weir_output get_batch;
	int seen[NUMBERS];
	int count;
};

static weir_graph *build(struct program *p, weir_tensor_queue *queue, atomic_int *next)
{
	struct weir_output_type number = {WEIR_I32, &weir_shape_scalar};
	weir_output source;
	weir_graph *graph;

	must(weir_graph_create(NULL, &graph, &listing_error));
	must(weir_op_kernel(graph, "input", &next_number_kernel, next, NULL, 0, &number, 1, NULL, 0, &source, NULL,
	                    &listing_error));
	must(weir_op_enqueue(graph, "enqueue", queue, &source, 1, &p->enqueue, &listing_error));
	must(weir_op_dequeue_many(graph, "get_batch", queue, constant(graph, i32(BATCH)), &p->get_batch, 1, NULL,
	                          &listing_error));
	return graph;
}

static void print_batch(struct program *p, const weir_tensor *batch)
{
	const int32_t *numbers = weir_tensor_data(batch);

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

static void take_batches(struct program *p)
{
	for (;;) {
		weir_tensor *batch;
		enum weir_status status = weir_session_run(p->session, NULL, 0, &p->get_batch, 1, &batch, NULL, 0,
		                                           WEIR_NO_DEADLINE, NULL, &listing_error);

		if (status == WEIR_OUT_OF_RANGE)
			return;
		must(status);
		print_batch(p, batch);
		weir_tensor_release(batch);
	}
}

int main(void)
{
	weir_tensor_queue *queue = queue_of(WEIR_I32, &weir_shape_scalar, CAPACITY, WEIR_QUEUE_SHUFFLE, CAPACITY * 9 / 10);
	struct program p = {.count = 0};
	atomic_int next = 0;
	weir_graph *graph = build(&p, queue, &next);
	struct weir_session_target enqueue;
	struct weir_queue_runner_step step = {weir_session_run_target, &enqueue, "enqueue"};
	struct weir_queue_runner_options options = {WEIR_QUEUE_RUNNER_OPTIONS_INIT, .steps = &step, .step_count = 1,
	                                            .threads_per_step = THREADS};
	weir_coordinator *coordinator;
	weir_queue_runner *runner;

	must(weir_session_create(graph, NULL, &p.session, &listing_error));
	enqueue = (struct weir_session_target){p.session, p.enqueue};
	must(weir_coordinator_create(NULL, &coordinator, &listing_error));
	weir_tensor_queue_bind_runner(queue, &options);
	must(weir_queue_runner_create(&options, &runner, &listing_error));
	must(weir_queue_runner_start(runner, coordinator, &listing_error));

	take_batches(&p);
	must(weir_coordinator_request_stop(coordinator, NULL));
	must(weir_coordinator_join(coordinator, WEIR_NO_DEADLINE, WEIR_COORDINATOR_GRACE_NS, 0, &listing_error));
	expect(p.count == NUMBERS, "there must be ten batches");
	for (int i = 0; i < NUMBERS; i++)
		expect(p.seen[i] == 1, "each number must come out exactly once");

	must(weir_queue_runner_destroy(runner, &listing_error));
	must(weir_coordinator_destroy(coordinator, &listing_error));
	end_session(p.session, graph);
	must(weir_tensor_queue_destroy(queue, &listing_error));
	return 0;
}
