/*
 * 000_2.c - two threads train one model, 100 steps each, and share a loss and a count of steps.
 *
 * The loss and the count are not variables of the model: both threads add to them at every step,
 * and the main thread reads them occasionally. An ordinary variable of the program would lose
 * additions. A weir_mean has them all, and its sum contains exactly as many losses as its count
 * says. A histogram has the durations of the steps.
 */
#include <pthread.h>

#include "linear.h"

enum { STEPS = 100, THREADS = 2 };

struct program {
	struct linear model;
	weir_mean *loss;
	weir_counter *steps;
	weir_histogram *times; /* of steps, in nanoseconds */
};

struct thread {
	struct program *program;
	pthread_t thread;
	weir_tensor *x, *y; /* other data for each thread */
};

/* Returns the loss before the step. */
static double train_step(const struct thread *of)
{
	const struct linear *model = &of->program->model;
	struct weir_feed feeds[] = {{model->x, of->x}, {model->y, of->y}};
	weir_output fetches[] = {model->loss, model->step};
	weir_tensor *results[2];
	weir_error error;
	double loss;

	if (weir_session_run(model->session, feeds, 2, fetches, 2, results, NULL, 0, WEIR_NO_DEADLINE, NULL, &error) !=
	    WEIR_OK)
		expect(0, error.message);
	loss = (double)*(const float *)weir_tensor_data(results[0]);
	weir_tensor_release(results[0]);
	weir_tensor_release(results[1]);
	return loss;
}

static void *train(void *context)
{
	const struct thread *me = context;

	for (int i = 0; i < STEPS; i++) {
		uint64_t begun = weir_now_ns();

		weir_mean_add(me->program->loss, train_step(me));
		weir_counter_add(me->program->steps, 1);
		weir_histogram_add(me->program->times, weir_now_ns() - begun);
	}
	return NULL;
}

/* The main thread may read at any time. Here it reads until all steps are done. */
static void watch(const struct program *p)
{
	struct weir_mean_value last = {0, 0};

	while (last.count < THREADS * STEPS) {
		struct weir_mean_value now = weir_mean_read(p->loss);

		expect(now.count >= last.count && now.sum >= last.sum, "a later read has at least what an earlier read had");
		last = now;
	}
	expect(weir_counter_read(p->steps) <= THREADS * STEPS, "no step is counted twice");
}

static void report(const struct program *p)
{
	struct weir_mean_value loss = weir_mean_read(p->loss);
	weir_summary *times;
	uint64_t median, slow;

	must(weir_summary_create(NULL, &times, &listing_error));
	must(weir_histogram_read(p->times, times, &listing_error));
	must(weir_summary_quantile(times, 0.5, &median));
	must(weir_summary_quantile(times, 0.99, &slow));
	printf("average loss of %llu steps of %d threads: %.4f\n", (unsigned long long)loss.count, THREADS,
	       loss.sum / (double)loss.count);
	printf("a step took %llu ns (median), %llu ns (99 %%)\n", (unsigned long long)median, (unsigned long long)slow);
	expect(loss.count == THREADS * STEPS, "every loss is in the mean");
	expect(weir_counter_read(p->steps) == THREADS * STEPS, "every step is counted");
	expect(weir_summary_count(times) == THREADS * STEPS, "every time is in the histogram");
	weir_summary_destroy(times, NULL);
}

int main(void)
{
	struct program p;
	struct thread threads[THREADS];
	double before, after;

	linear_create(&p.model);
	must(weir_mean_create(NULL, &p.loss, &listing_error));
	must(weir_counter_create(NULL, &p.steps, &listing_error));
	must(weir_histogram_create(NULL, &p.times, &listing_error));
	for (int i = 0; i < THREADS; i++) {
		threads[i].program = &p;
		linear_data(&p.model, (uint64_t)i + 1, &threads[i].x, &threads[i].y);
	}
	before = linear_loss(&p.model, threads[0].x, threads[0].y);
	for (size_t i = 0; i < THREADS; i++)
		expect(pthread_create(&threads[i].thread, NULL, train, &threads[i]) == 0, "a thread can be started");
	watch(&p);
	for (size_t i = 0; i < THREADS; i++)
		(void)pthread_join(threads[i].thread, NULL);
	report(&p);
	after = linear_loss(&p.model, threads[0].x, threads[0].y);
	printf("loss before: %.4f, after: %.4f\n", before, after);
	expect(after < before / 2, "the model has learned");
	for (int i = 0; i < THREADS; i++) {
		weir_tensor_release(threads[i].x);
		weir_tensor_release(threads[i].y);
	}
	weir_mean_destroy(p.loss, NULL);
	weir_counter_destroy(p.steps, NULL);
	weir_histogram_destroy(p.times, NULL);
	linear_destroy(&p.model);
	return 0;
}
