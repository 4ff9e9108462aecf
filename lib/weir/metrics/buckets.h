/*
 * buckets.h - log-linear buckets: the bucket of a value, and the values of a bucket.
 *
 * With precision p, each value below 2^(p+1) has a bucket of its own. A larger value has its
 * highest bit at position e > p. Its bucket is given by e and by the p bits after the highest, so
 * each e has 2^p buckets. The number of the bucket is (e - p) 2^p + (value >> (e - p)), where the
 * second term is from 2^p to 2^(p+1) - 1. For e <= p the number is the value.
 * Source: log-linear buckets are known from HdrHistogram (Tene).
 */
#ifndef WEIRI_METRICS_BUCKETS_H
#define WEIRI_METRICS_BUCKETS_H

#include <stddef.h>
#include <stdint.h>

static inline size_t weiri_bucket_of(uint64_t value, uint32_t precision)
{
	uint32_t highest = 63U - (uint32_t)__builtin_clzll(value | 1);
	uint32_t shift = highest > precision ? highest - precision : 0;

	return ((size_t)shift << precision) + (size_t)(value >> shift);
}

/* Returns the smallest value in a bucket. */
static inline uint64_t weiri_bucket_low(size_t bucket, uint32_t precision)
{
	size_t each = (size_t)1 << precision;
	size_t shift = bucket < 2 * each ? 0 : bucket / each - 1;

	return (uint64_t)(bucket - shift * each) << shift;
}

/* Returns the largest value in a bucket. */
static inline uint64_t weiri_bucket_high(size_t bucket, uint32_t precision)
{
	size_t each = (size_t)1 << precision;
	size_t shift = bucket < 2 * each ? 0 : bucket / each - 1;

	return weiri_bucket_low(bucket, precision) + ((UINT64_C(1) << shift) - 1);
}

#endif
