/*
 * statistics.h - medians, quartiles, and ratios with a confidence interval from resampling.
 */
#ifndef WEIR_BENCH_STATISTICS_H
#define WEIR_BENCH_STATISTICS_H

/*
 * Interpolates between the two nearest values. NaN when there are none. There are at most
 * BENCH_MAX_REPEAT values.
 */
double bench_quantile(const double values[], unsigned count, double q);

struct bench_interval {
	double low, middle, high;
};

/*
 * The ratio of two medians, with its 95 % interval. The interval comes from 2000 resamplings of the
 * repetitions with replacement, which always start from the same seed. Infinite where b may be 0;
 * NaN when there are no samples.
 */
struct bench_interval bench_ratio(const double a[], unsigned a_count, const double b[], unsigned b_count);
/*
 * The same for a[i] and b[i] that were measured in the same repetition and are drawn together. Also
 * NaN when there is no such number, because a repetition completed no operation.
 */
struct bench_interval bench_paired_ratio(const double a[], unsigned a_count, const double b[], unsigned b_count);

#endif
