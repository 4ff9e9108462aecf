/*
 * 001_2.c - five threads read a variable, compute, and assign, one at a time: prints
 * [-14, -13, -12] in every run.
 *
 * The listing takes a mutex around the body of each thread. Here it is a critical section, whose
 * waits have deadlines and tokens. Only the exclusion makes the read and the assignment one step; for
 * this sum, the one atomic update of 001_1 does it without.
 */
#include <pthread.h>

#include "listing.h"

enum { THREADS = 5, WIDTH = 3 };

struct program {
	weir_session *session;
	weir_critical_section *lock;
	weir_var *tensor;
	weir_node *modify[THREADS]; /* assign v - k, with v as a read of the same run has it */
};

struct thread {
	struct program *program;
	int number;
	enum weir_status status;
	pthread_t thread;
};

static void build(struct program *p, weir_graph **graph)
{
	must(weir_graph_create(NULL, graph, &listing_error));
	for (int i = 0; i < THREADS; i++) {
		weir_output value, next, assigned;

		must(weir_op_read(*graph, NULL, p->tensor, &value, &listing_error));
		must(weir_op_sub(*graph, NULL, value, constant(*graph, f32_row(WIDTH, (float)(i + 1), 0.0f)), &next,
		                 &listing_error));
		must(weir_op_assign(*graph, NULL, p->tensor, next, &assigned, &listing_error));
		p->modify[i] = assigned.node;
	}
	must(weir_session_create(*graph, NULL, &p->session, &listing_error));
}

/* Inside the critical section. */
static enum weir_status modify_tensor(void *context, weir_error *error)
{
	struct thread *self = context;
	struct program *p = self->program;

	return weir_session_run(p->session, NULL, 0, NULL, 0, NULL, &p->modify[self->number], 1, WEIR_NO_DEADLINE, NULL,
	                        error);
}

static void *modify_tensor_safe(void *context)
{
	struct thread *self = context;

	self->status =
		weir_critical_section_execute(self->program->lock, modify_tensor, self, WEIR_NO_DEADLINE, NULL, NULL);
	return NULL;
}

int main(void)
{
	struct program p = {.tensor = variable("shared_tensor", f32_row(WIDTH, 1.0f, 1.0f))};
	struct thread threads[THREADS];
	float values[WIDTH];
	weir_graph *graph;

	build(&p, &graph);
	must(weir_critical_section_create(NULL, &p.lock, &listing_error));
	for (int i = 0; i < THREADS; i++) {
		threads[i] = (struct thread){.program = &p, .number = i};
		expect(pthread_create(&threads[i].thread, NULL, modify_tensor_safe, &threads[i]) == 0, "a thread must start");
	}
	for (int i = 0; i < THREADS; i++) {
		(void)pthread_join(threads[i].thread, NULL);
		must(threads[i].status);
	}
	value_of(p.tensor, values, sizeof(values));
	printf("[%g %g %g]\n", (double)values[0], (double)values[1], (double)values[2]);
	expect(values[0] == -14.0f && values[1] == -13.0f && values[2] == -12.0f, "no update may be lost");

	must(weir_critical_section_destroy(p.lock, &listing_error));
	end_session(p.session, graph);
	weir_var_destroy(p.tensor, NULL);
	return 0;
}
