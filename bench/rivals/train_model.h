/*
 * train_model.h - the model of the suite "train": equal weights with equal gradients, so that the weights
 * of step n are known.
 */
#ifndef WEIR_BENCH_TRAIN_MODEL_H
#define WEIR_BENCH_TRAIN_MODEL_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>

#define TRAIN_RATE 0.001
#define TRAIN_GRADIENT 0.5f
#define TRAIN_START 100.0f

/* The rate of step t, with the factor for slots that begin with 0. */
static inline float train_rate(uint64_t t)
{
	return (float)(TRAIN_RATE * sqrt(1 - pow(0.999, (double)t)) / (1 - pow(0.9, (double)t)));
}

/* Returns 1 if the weights are those after `steps` steps, up to rounding. */
static inline int train_is_right(const float *w, size_t count, uint64_t steps)
{
	/* With a constant gradient each step moves each weight by the rate. */
	double expected = (double)TRAIN_START - TRAIN_RATE * (double)steps;

	for (size_t i = 0; i < count; i++) {
		if (w[i] != w[0])
			return 0;
	}
	return fabs((double)w[0] - expected) <= 0.01 + 0.01 * TRAIN_RATE * (double)steps;
}

#endif
