/*
 * histogram.h - counts durations in buckets. The width of a bucket is at most 1/64 of the duration.
 */
#ifndef WEIR_BENCH_HISTOGRAM_H
#define WEIR_BENCH_HISTOGRAM_H

#include <stdint.h>

/*
 * Each power of two from 64 ns to 2^40 ns is divided into 64 buckets. Below 64 ns each nanosecond
 * has a bucket of its own.
 */
enum { BENCH_SUB_BITS = 6, BENCH_TOP_BIT = 40, BENCH_BUCKETS = (BENCH_TOP_BIT - BENCH_SUB_BITS + 1) << BENCH_SUB_BITS };

struct bench_histogram {
	uint64_t count, max;
	uint64_t buckets[BENCH_BUCKETS];
};

struct bench_histogram *bench_histogram_create(void);
void bench_histogram_destroy(struct bench_histogram *histogram); /* accepts NULL */
void bench_histogram_merge(struct bench_histogram *into, const struct bench_histogram *from);
/*
 * The q-quantile: the upper end of the first bucket up to which at least the share q of all
 * durations lies. 0 when the histogram is empty.
 */
uint64_t bench_histogram_quantile(const struct bench_histogram *histogram, double q);
/* The longest duration that falls into a bucket. */
uint64_t bench_bucket_top(unsigned bucket);

static inline unsigned bench_bucket_of(uint64_t ns)
{
	unsigned shift;

	if (ns < (1u << BENCH_SUB_BITS))
		return (unsigned)ns;
	if (ns >> BENCH_TOP_BIT != 0)
		return BENCH_BUCKETS - 1;
	shift = 63u - (unsigned)__builtin_clzll(ns) - BENCH_SUB_BITS;
	/* ns >> shift lies in 64 .. 127 */
	return (shift << BENCH_SUB_BITS) + (unsigned)(ns >> shift);
}

static inline void bench_histogram_add(struct bench_histogram *histogram, uint64_t ns)
{
	histogram->buckets[bench_bucket_of(ns)]++;
	histogram->count++;
	if (ns > histogram->max)
		histogram->max = ns;
}

#endif
