/*
 * histogram.c - makes, merges and queries histograms.
 */
#include "histogram.h"

#include <stdlib.h>

struct bench_histogram *bench_histogram_create(void)
{
	struct bench_histogram *histogram = calloc(1, sizeof(*histogram));

	if (histogram == NULL)
		exit(3);
	return histogram;
}

void bench_histogram_destroy(struct bench_histogram *histogram)
{
	free(histogram);
}

void bench_histogram_merge(struct bench_histogram *into, const struct bench_histogram *from)
{
	for (unsigned i = 0; i < BENCH_BUCKETS; i++)
		into->buckets[i] += from->buckets[i];
	into->count += from->count;
	if (from->max > into->max)
		into->max = from->max;
}

uint64_t bench_bucket_top(unsigned bucket)
{
	unsigned shift, first;

	if (bucket < (2u << BENCH_SUB_BITS))
		return bucket;
	shift = (bucket >> BENCH_SUB_BITS) - 1;
	first = (bucket & ((1u << BENCH_SUB_BITS) - 1)) + (1u << BENCH_SUB_BITS);
	return ((uint64_t)(first + 1) << shift) - 1;
}

uint64_t bench_histogram_quantile(const struct bench_histogram *histogram, double q)
{
	double exact = q * (double)histogram->count;
	uint64_t wanted = (uint64_t)exact, seen = 0;

	if (histogram->count == 0)
		return 0;
	if ((double)wanted < exact)
		wanted++;
	if (wanted == 0)
		wanted = 1;
	for (unsigned i = 0; i < BENCH_BUCKETS; i++) {
		seen += histogram->buckets[i];
		if (seen >= wanted) {
			/* The last bucket has no upper end, and no duration exceeds the maximum. */
			uint64_t top = i + 1 < BENCH_BUCKETS ? bench_bucket_top(i) : histogram->max;

			return top < histogram->max ? top : histogram->max;
		}
	}
	return histogram->max;
}
