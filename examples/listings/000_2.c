/*
 * 000_2.c - two threads train one model, 100 steps each, and share a loss and a count of steps.
 *
 * The loss and the count are not variables of the model: both threads add to them at every step,
 * and the main thread reads them occasionally. An ordinary variable of the program would lose
 * additions. A weir_mean has them all, and its sum contains exactly as many losses as its count
 * says. A histogram has the durations of the steps.
 */
#include <pthread.h>

#include "listing.h"

enum { FEATURES = 10, ROWS = 20, STEPS = 100, THREADS = 2 };

static const float rate = 0.02F;

struct program {
	weir_var *weights, *bias;
	weir_mean *loss;
	weir_counter *steps;
	weir_histogram *times; /* of steps, in nanoseconds */
};

struct thread {
	struct program *program;
	pthread_t thread;
	float x[ROWS][FEATURES], y[ROWS];
};

/* Returns a number from -1 to 1, from a counter (splitmix64). */
static float noise(uint64_t counter)
{
	uint64_t z = (counter + 1) * UINT64_C(0x9E3779B97F4A7C15);

	z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
	z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
	return (float)((double)((z ^ z >> 31) >> 11) * 0x1p-52 - 1.0);
}

/* Makes data for the model to learn: y = x . (1, 2, ..., 10) / 10 + 3. */
static void make_data(struct thread *of, uint64_t number)
{
	for (uint64_t r = 0; r < ROWS; r++) {
		of->y[r] = 3;
		for (uint64_t f = 0; f < FEATURES; f++) {
			of->x[r][f] = noise((number * ROWS + r) * FEATURES + f);
			of->y[r] += of->x[r][f] * (float)(f + 1) / 10;
		}
	}
}

/*
 * Returns the mean squared error of this thread's data, and computes its gradients times the rate.
 */
static double gradients(const struct thread *of, const float *weights, float bias, float by_weight[], float *by_bias)
{
	double loss = 0;

	memset(by_weight, 0, FEATURES * sizeof(*by_weight));
	*by_bias = 0;
	for (size_t r = 0; r < ROWS; r++) {
		float error = bias - of->y[r];

		for (size_t f = 0; f < FEATURES; f++)
			error += of->x[r][f] * weights[f];
		for (size_t f = 0; f < FEATURES; f++)
			by_weight[f] += 2 * rate / (float)ROWS * error * of->x[r][f];
		*by_bias += 2 * rate / (float)ROWS * error;
		loss += (double)(error * error) / (double)ROWS;
	}
	return loss;
}

static double train_step(const struct thread *of)
{
	weir_var *vars[] = {of->program->weights, of->program->bias};
	weir_read now[2];
	weir_tensor *change;
	float by_weight[FEATURES], by_bias;
	double loss;

	/* The snapshot has weights and bias that belong together, although the other thread writes. */
	must(weir_var_snapshot(vars, 2, now, &listing_error));
	loss = gradients(of, weir_tensor_data(now[0].tensor), *(const float *)weir_tensor_data(now[1].tensor), by_weight,
	                 &by_bias);
	weir_read_release_many(now, 2);
	must(weir_tensor_copy_of(WEIR_F32, &(weir_shape){1, {FEATURES}}, by_weight, NULL, &change));
	must(weir_var_assign_sub(of->program->weights, change, WEIR_NO_DEADLINE, NULL, &listing_error));
	weir_tensor_release(change);
	must(weir_tensor_scalar_f32(by_bias, &change));
	must(weir_var_assign_sub(of->program->bias, change, WEIR_NO_DEADLINE, NULL, &listing_error));
	weir_tensor_release(change);
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
	float zeros[FEATURES] = {0}, by_weight[FEATURES], by_bias;
	double before, after;
	weir_tensor *weights, *bias;
	weir_read now[2];

	must(weir_tensor_copy_of(WEIR_F32, &(weir_shape){1, {FEATURES}}, zeros, NULL, &weights));
	must(weir_tensor_scalar_f32(0, &bias));
	p.weights = variable("weights", weights);
	p.bias = variable("bias", bias);
	must(weir_mean_create(NULL, &p.loss, &listing_error));
	must(weir_counter_create(NULL, &p.steps, &listing_error));
	must(weir_histogram_create(NULL, &p.times, &listing_error));
	for (uint64_t i = 0; i < THREADS; i++) {
		threads[i].program = &p;
		make_data(&threads[i], i);
	}
	before = gradients(&threads[0], zeros, 0, by_weight, &by_bias);
	for (size_t i = 0; i < THREADS; i++)
		expect(pthread_create(&threads[i].thread, NULL, train, &threads[i]) == 0, "a thread can be started");
	watch(&p);
	for (size_t i = 0; i < THREADS; i++)
		(void)pthread_join(threads[i].thread, NULL);
	report(&p);
	must(weir_var_snapshot((weir_var *[]){p.weights, p.bias}, 2, now, &listing_error));
	after = gradients(&threads[0], weir_tensor_data(now[0].tensor), *(const float *)weir_tensor_data(now[1].tensor),
	                  by_weight, &by_bias);
	weir_read_release_many(now, 2);
	printf("loss before: %.4f, after: %.4f\n", before, after);
	expect(after < before / 10, "the model has learned");
	weir_mean_destroy(p.loss, NULL);
	weir_counter_destroy(p.steps, NULL);
	weir_histogram_destroy(p.times, NULL);
	weir_var_destroy(p.weights, NULL);
	weir_var_destroy(p.bias, NULL);
	return 0;
}
