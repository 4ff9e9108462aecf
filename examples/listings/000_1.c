/*
 * 000_1.c - two threads train one linear model by Adam, 100 steps each, through one session.
 *
 * Each run of the graph reads weights and bias, computes the loss of its thread's data and the gradients,
 * and makes a step. Two things are shown:
 *
 * - The step is one commit, so none of the 200 is lost, whatever the threads do at the same time.
 * - The way from the read to the step is not one: another thread may make steps between. So a gradient may
 *   be of values that are some steps old. The program counts how often that happened. The model learns all
 *   the same, but its final weights differ from run to run.
 */
#include <pthread.h>

#include "linear.h"

enum { STEPS = 100, THREADS = 2 };

struct thread {
	pthread_t thread;
	const struct linear *model;
	weir_tensor *x, *y; /* other data for each thread */
	int stale;          /* steps whose gradients were of older values */
};

/* The runs of one thread come one after the other; those of the other thread come between. */
static void *train(void *context)
{
	struct thread *me = context;
	const struct linear *model = me->model;
	struct weir_feed feeds[] = {{model->x, me->x}, {model->y, me->y}};
	weir_output fetches[] = {model->step, model->read_version};

	for (int i = 0; i < STEPS; i++) {
		weir_tensor *results[2];
		weir_error error;

		if (weir_session_run(model->session, feeds, 2, fetches, 2, results, NULL, 0, WEIR_NO_DEADLINE, NULL, &error) !=
		    WEIR_OK)
			expect(0, error.message);
		/* Step n publishes version n + 1 of the weights, and computes from version n. */
		me->stale += *(const int64_t *)weir_tensor_data(results[0]) != *(const int64_t *)weir_tensor_data(results[1]);
		weir_tensor_release(results[0]);
		weir_tensor_release(results[1]);
	}
	return NULL;
}

static int64_t steps_of(const struct linear *model)
{
	int64_t steps;

	value_of(weir_optimizer_step(model->optimizer), &steps, sizeof(steps));
	return steps;
}

int main(void)
{
	struct thread threads[THREADS] = {{.stale = 0}};
	struct linear model;
	double before, after;
	int stale = 0;

	linear_create(&model);
	for (int i = 0; i < THREADS; i++) {
		threads[i].model = &model;
		linear_data(&model, (uint64_t)i + 1, &threads[i].x, &threads[i].y);
	}
	before = linear_loss(&model, threads[0].x, threads[0].y);
	for (int i = 0; i < THREADS; i++)
		expect(pthread_create(&threads[i].thread, NULL, train, &threads[i]) == 0, "a thread can be started");
	for (int i = 0; i < THREADS; i++) {
		(void)pthread_join(threads[i].thread, NULL);
		stale += threads[i].stale;
	}
	after = linear_loss(&model, threads[0].x, threads[0].y);
	printf("%lld steps; the gradients of %d were of older values\n", (long long)steps_of(&model), stale);
	printf("loss before: %.4f, after: %.4f\n", before, after);
	expect(steps_of(&model) == (int64_t)STEPS * THREADS, "no step may be lost");
	expect(after < before / 2, "the model must have learned");

	for (int i = 0; i < THREADS; i++) {
		weir_tensor_release(threads[i].x);
		weir_tensor_release(threads[i].y);
	}
	linear_destroy(&model);
	return 0;
}
