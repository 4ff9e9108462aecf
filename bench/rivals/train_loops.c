/*
 * train_loops.c - Adam by a plain loop over arrays, in place: alone, or under a mutex. Compiled with the
 * flags of our own loops.
 */
#include <math.h>
#include <pthread.h>
#include <stdlib.h>

#include "rivals.h"
#include "train_model.h"

struct arrays {
	pthread_mutex_t mutex;
	size_t count;
	uint64_t steps;
	float *g, *w, *m, *v;
};

static float *floats(size_t count, float value)
{
	float *values = aligned_alloc(64, (count * sizeof(*values) + 63) / 64 * 64);

	if (values == NULL)
		exit(3);
	for (size_t i = 0; i < count; i++)
		values[i] = value;
	return values;
}

static void *create(size_t count, unsigned threads)
{
	struct arrays *a = malloc(sizeof(*a));

	(void)threads;
	if (a == NULL)
		exit(3);
	*a = (struct arrays){.count = count,
	                     .g = floats(count, TRAIN_GRADIENT),
	                     .w = floats(count, TRAIN_START),
	                     .m = floats(count, 0),
	                     .v = floats(count, 0)};
	(void)pthread_mutex_init(&a->mutex, NULL);
	return a;
}

static void destroy(void *self)
{
	struct arrays *a = self;

	free(a->g);
	free(a->w);
	free(a->m);
	free(a->v);
	free(a);
}

static void adam(size_t n, float rate, const float *restrict g, float *restrict w, float *restrict m, float *restrict v)
{
	for (size_t i = 0; i < n; i++) {
		m[i] = 0.9f * m[i] + 0.1f * g[i];
		v[i] = 0.999f * v[i] + 0.001f * g[i] * g[i];
		w[i] -= rate * m[i] / (sqrtf(v[i]) + 1e-8f);
	}
}

static void step(void *self, unsigned thread)
{
	struct arrays *a = self;

	(void)thread;
	(void)pthread_mutex_lock(&a->mutex);
	a->steps++;
	adam(a->count, train_rate(a->steps), a->g, a->w, a->m, a->v);
	(void)pthread_mutex_unlock(&a->mutex);
}

static uint64_t steps(void *self)
{
	const struct arrays *a = self;

	return train_is_right(a->w, a->count, a->steps) ? a->steps : UINT64_MAX;
}

const struct train_contender train_loop_contender = {
	.about = {.name = "plain loop, mutex", .lacks = "readers see steps half"},
	.create = create,
	.destroy = destroy,
	.step = step,
	.steps = steps,
};
