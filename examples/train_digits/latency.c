/*
 * latency.c - see latency.h.
 *
 * Values below LATENCY_STEPS have a bucket each. Above, each power of two is divided into
 * LATENCY_STEPS equal buckets.
 */
#include "latency.h"

#include <stddef.h>

static unsigned exponent_of(uint64_t value)
{
	return 63 - (unsigned)__builtin_clzll(value | LATENCY_STEPS) - 5; /* 2^5 = LATENCY_STEPS */
}

static size_t bucket_of(uint64_t value)
{
	unsigned exponent = exponent_of(value);

	/*
	 * value >> exponent is below 2 * LATENCY_STEPS. It is at least LATENCY_STEPS if exponent > 0.
	 */
	return (size_t)exponent * LATENCY_STEPS + (size_t)(value >> exponent);
}

/* Returns the largest value in a bucket. */
static uint64_t top_of(size_t bucket)
{
	size_t exponent = bucket < 2 * LATENCY_STEPS ? 0 : bucket / LATENCY_STEPS - 1;
	uint64_t first = (uint64_t)(bucket - exponent * LATENCY_STEPS);

	return ((first + 1) << exponent) - 1;
}

void latency_add(struct latency *latency, uint64_t nanoseconds)
{
	latency->count++;
	latency->buckets[bucket_of(nanoseconds)]++;
	if (nanoseconds > latency->longest)
		latency->longest = nanoseconds;
}

uint64_t latency_percentile(const struct latency *latency, double share)
{
	uint64_t below = 0, wanted = (uint64_t)(share * (double)latency->count);

	for (size_t i = 0; i < LATENCY_BUCKETS; i++) {
		below += latency->buckets[i];
		if (below > wanted || (below == latency->count && below != 0))
			return top_of(i) < latency->longest ? top_of(i) : latency->longest;
	}
	return 0;
}
