/*
 * latency.h - records durations in a fixed amount of memory.
 *
 * A histogram whose buckets are at most 3 % wide gives percentiles of any number of samples. Only
 * one thread at a time may use it.
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
/* The duration that `share` (0 to 1) of the samples do not exceed; 0 without samples. */
uint64_t latency_percentile(const struct latency *latency, double share);

#endif
