/*
 * latency.h - how long things took, in a fixed amount of memory.
 *
 * A histogram whose buckets are at most 3 % wide: percentiles of any number of samples. For one thread at a time.
 */
#ifndef TRAIN_DIGITS_LATENCY_H
#define TRAIN_DIGITS_LATENCY_H

#include <stdint.h>

enum { LATENCY_STEPS = 32, LATENCY_BUCKETS = 60 * LATENCY_STEPS };

struct latency {
	uint64_t count;
	uint64_t longest;
	uint64_t buckets[LATENCY_BUCKETS];
};

void latency_add(struct latency *latency, uint64_t nanoseconds);
/* The time within which `share` (0 to 1) of the samples were; 0 without samples. */
uint64_t latency_percentile(const struct latency *latency, double share);

#endif
