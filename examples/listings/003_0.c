/*
 * 003_0.c - a queue of zeros: each step takes one item, adds 1 to it and puts it back.
 *
 * After k steps on m items, the sum of the items is k, no two items differ by more than 1, and
 * their order is a rotation of the original order.
 */
#include "listing.h"

enum { ITEMS = 3, STEPS = 10 };

int main(void)
{
	weir_shape row = {.rank = 1, .dims = {ITEMS}};
	weir_tensor_queue *queue = queue_of(WEIR_F32, &weir_shape_scalar, ITEMS, WEIR_QUEUE_FIFO, 0);
	weir_node *fill, *put_back;
	weir_output taken, increased;
	weir_session *session;
	weir_tensor *zeros;
	weir_graph *graph;
	float sum = 0, items[ITEMS];

	must(weir_tensor_copy_of(WEIR_F32, &row, (const float[ITEMS]){0}, NULL, &zeros));
	must(weir_graph_create(NULL, &graph, &listing_error));
	must(weir_op_enqueue_many(graph, "init", queue, (const weir_output[]){constant(graph, zeros)}, 1, &fill,
	                          &listing_error));
	must(weir_op_dequeue(graph, "x", queue, &taken, 1, NULL, &listing_error));
	must(weir_op_add(graph, "y", taken, constant(graph, f32(1.0f)), &increased, &listing_error));
	must(weir_op_enqueue(graph, "q_inc", queue, &increased, 1, &put_back, &listing_error));
	must(weir_session_create(graph, NULL, &session, &listing_error));

	run(session, fill);
	for (int step = 0; step < STEPS; step++)
		run(session, put_back);
	printf("after %d steps:", STEPS);
	for (int i = 0; i < ITEMS; i++) {
		items[i] = run_for_f32(session, taken);
		printf(" %g", (double)items[i]);
		sum += items[i];
	}
	printf("\n");
	expect(sum == (float)STEPS, "the sum must be the number of steps");
	for (int i = 0; i < ITEMS; i++) {
		/* The item that was increased last is at the end. The items before it are next. */
		float turns = (float)((STEPS + ITEMS - 1 - (STEPS + i) % ITEMS) / ITEMS);

		expect(items[i] == turns, "the items must have been increased in rotation");
	}

	end_session(session, graph);
	must(weir_tensor_queue_destroy(queue, &listing_error));
	return 0;
}
