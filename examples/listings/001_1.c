/*
 * 001_1.c - five threads subtract the gradient of sum(k * v) from a variable v, k = 1 to 5: prints
 * [-14, -13, -12] in every run.
 *
 * The gradient is k in each element, whatever v is, so no thread computes from an old value. Each
 * subtraction is one atomic update. So nothing is lost, and the order does not matter. A race needs a
 * value that is read, and a write that is computed from it: the second part reads v in all threads
 * before any of them assigns v - k, and then four of the five updates are lost.
 */
#include <pthread.h>

#include "listing.h"

enum { THREADS = 5, WIDTH = 3 };

struct program {
	weir_session *session;
	weir_var *tensor;
	weir_output gradient[THREADS]; /* k, in each element */
	weir_node *subtract[THREADS];
	weir_output read, fed, assigned; /* assigned = fed */
	pthread_barrier_t all_have_read;
};

struct thread {
	struct program *program;
	int number;
	pthread_t thread;
};

static void build(struct program *p, weir_graph **graph)
{
	weir_shape shape = {.rank = 1, .dims = {WIDTH}};

	must(weir_graph_create(NULL, graph, &listing_error));
	for (int i = 0; i < THREADS; i++) {
		weir_output updated;

		p->gradient[i] = constant(*graph, f32_row(WIDTH, (float)(i + 1), 0.0f));
		must(weir_op_assign_sub(*graph, NULL, p->tensor, p->gradient[i], &updated, &listing_error));
		p->subtract[i] = updated.node;
	}
	must(weir_op_read(*graph, "read", p->tensor, &p->read, &listing_error));
	must(weir_op_placeholder(*graph, "new", WEIR_F32, &shape, &p->fed, &listing_error));
	must(weir_op_assign(*graph, "assign", p->tensor, p->fed, &p->assigned, &listing_error));
	must(weir_session_create(*graph, NULL, &p->session, &listing_error));
}

/* The threads share no error of the listing: each has its own, and any failure shows in the result. */
static void *modify_tensor(void *context)
{
	struct thread *self = context;
	struct program *p = self->program;
	weir_error error;

	(void)weir_session_run(p->session, NULL, 0, NULL, 0, NULL, &p->subtract[self->number], 1, WEIR_NO_DEADLINE, NULL,
	                       &error);
	return NULL;
}

/* Reads, and assigns what it computed from that: not one update, but two operations. */
static void *read_then_assign(void *context)
{
	struct thread *self = context;
	struct program *p = self->program;
	weir_tensor *value = NULL, *next = NULL;
	float values[WIDTH] = {0};
	struct weir_feed feed;
	weir_error error;

	if (weir_session_run(p->session, NULL, 0, &p->read, 1, &value, NULL, 0, WEIR_NO_DEADLINE, NULL, &error) ==
	    WEIR_OK) {
		for (int i = 0; i < WIDTH; i++)
			values[i] = ((const float *)weir_tensor_data(value))[i] - (float)(self->number + 1);
	}
	(void)pthread_barrier_wait(&p->all_have_read);
	if (value == NULL || weir_tensor_copy_of(WEIR_F32, weir_tensor_shape(value), values, NULL, &next) != WEIR_OK)
		return NULL;
	feed = (struct weir_feed){p->fed, next};
	(void)weir_session_run(p->session, &feed, 1, NULL, 0, NULL, &p->assigned.node, 1, WEIR_NO_DEADLINE, NULL, &error);
	weir_tensor_release(value);
	weir_tensor_release(next);
	return NULL;
}

static void run_threads(struct program *p, void *(*body)(void *))
{
	struct thread threads[THREADS];

	for (int i = 0; i < THREADS; i++) {
		threads[i] = (struct thread){.program = p, .number = i};
		expect(pthread_create(&threads[i].thread, NULL, body, &threads[i]) == 0, "a thread must start");
	}
	for (int i = 0; i < THREADS; i++)
		(void)pthread_join(threads[i].thread, NULL);
}

static void print_tensor(struct program *p, float values[WIDTH])
{
	value_of(p->tensor, values, WIDTH * sizeof(values[0]));
	printf("[%g %g %g]\n", (double)values[0], (double)values[1], (double)values[2]);
}

int main(void)
{
	struct program p = {.tensor = variable("shared_tensor", f32_row(WIDTH, 1.0f, 1.0f))};
	weir_tensor *start = f32_row(WIDTH, 1.0f, 1.0f);
	float values[WIDTH];
	weir_graph *graph;

	build(&p, &graph);
	expect(pthread_barrier_init(&p.all_have_read, NULL, THREADS) == 0, "there must be a barrier");

	printf("assign_sub: ");
	run_threads(&p, modify_tensor);
	print_tensor(&p, values);
	expect(values[0] == -14.0f && values[1] == -13.0f && values[2] == -12.0f, "no update may be lost");

	must(weir_var_assign(p.tensor, start, WEIR_NO_DEADLINE, NULL, &listing_error));
	weir_tensor_release(start);
	printf("read, then assign: ");
	run_threads(&p, read_then_assign);
	print_tensor(&p, values);
	expect(values[0] >= -4.0f && values[0] <= 0.0f, "one of the five updates must be left");
	expect(values[1] == values[0] + 1.0f && values[2] == values[0] + 2.0f, "and it must be whole");

	(void)pthread_barrier_destroy(&p.all_have_read);
	end_session(p.session, graph);
	weir_var_destroy(p.tensor, NULL);
	return 0;
}
