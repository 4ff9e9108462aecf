/*
 * statistics.h - medians, quartiles, and ratios with the interval that resampling gives.
 */
#ifndef WEIR_BENCH_STATISTICS_H
#define WEIR_BENCH_STATISTICS_H

/* By interpolation between the two nearest; NaN when there are none. At most BENCH_MAX_REPEAT values. */
double bench_quantile(const double values[], unsigned count, double q);

struct bench_interval {
	double low, middle, high;
};

/*
 * The ratio of two medians, and where it lies with 95 % when repetitions are drawn anew with replacement, 2000 times, from the same
 * seed each time. Infinite where b may be 0; NaN when there are no samples.
 */
struct bench_interval bench_ratio(const double a[], unsigned a_count, const double b[], unsigned b_count);
/*
 * The same of a[i] and b[i] that were measured in the same repetition, which are drawn together. NaN also when there is no such number,
 * as nothing was done in some of them.
 */
struct bench_interval bench_paired_ratio(const double a[], unsigned a_count, const double b[], unsigned b_count);

#endif
