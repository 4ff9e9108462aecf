/*
 * statistics.c - order statistics of a few samples, and the bootstrap (Efron 1979, percentiles).
 */
#include "statistics.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "options.h"

enum { RESAMPLES = 2000 };

static const struct bench_interval none = {NAN, NAN, NAN};

static int by_value(const void *a, const void *b)
{
	double left = *(const double *)a, right = *(const double *)b;

	return (left > right) - (left < right);
}

static double of_sorted(const double sorted[], unsigned count, double q)
{
	double at = q * (count - 1);
	unsigned low = (unsigned)at;

	/* Equal values may be infinite, and their difference would then be NaN. */
	if (low + 1 >= count || at == low || sorted[low] == sorted[low + 1])
		return sorted[low];
	return sorted[low] + (at - low) * (sorted[low + 1] - sorted[low]);
}

double bench_quantile(const double values[], unsigned count, double q)
{
	double sorted[BENCH_MAX_REPEAT];

	if (count == 0)
		return NAN;
	memcpy(sorted, values, count * sizeof(sorted[0]));
	qsort(sorted, count, sizeof(sorted[0]), by_value);
	return of_sorted(sorted, count, q);
}

/* splitmix64 */
static uint64_t draw(uint64_t *state)
{
	uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

/* A median may be 0 if a run was too short or did not get a processor. 0 to 0 counts as 1. */
static double ratio_of(double a, double b)
{
	return a == 0 && b == 0 ? 1 : a / b;
}

static double resampled_ratio(const double a[], unsigned a_count, const double b[], unsigned b_count, int paired,
                              uint64_t *state)
{
	double from_a[BENCH_MAX_REPEAT], from_b[BENCH_MAX_REPEAT];

	for (unsigned i = 0; i < a_count; i++) {
		unsigned which = (unsigned)(draw(state) % a_count);

		from_a[i] = a[which];
		if (paired)
			from_b[i] = b[which];
	}
	for (unsigned i = 0; !paired && i < b_count; i++)
		from_b[i] = b[draw(state) % b_count];
	return ratio_of(bench_quantile(from_a, a_count, 0.5), bench_quantile(from_b, b_count, 0.5));
}

static struct bench_interval ratio_between(const double a[], unsigned a_count, const double b[], unsigned b_count,
                                           int paired)
{
	double ratios[RESAMPLES];
	uint64_t state = 1;

	if (a_count == 0 || b_count == 0 || (paired && a_count != b_count))
		return none;
	for (int i = 0; i < RESAMPLES; i++)
		ratios[i] = resampled_ratio(a, a_count, b, b_count, paired, &state);
	qsort(ratios, RESAMPLES, sizeof(ratios[0]), by_value);
	return (struct bench_interval){of_sorted(ratios, RESAMPLES, 0.025),
	                               ratio_of(bench_quantile(a, a_count, 0.5), bench_quantile(b, b_count, 0.5)),
	                               of_sorted(ratios, RESAMPLES, 0.975)};
}

struct bench_interval bench_ratio(const double a[], unsigned a_count, const double b[], unsigned b_count)
{
	return ratio_between(a, a_count, b, b_count, 0);
}

struct bench_interval bench_paired_ratio(const double a[], unsigned a_count, const double b[], unsigned b_count)
{
	struct bench_interval ratio = ratio_between(a, a_count, b, b_count, 1);

	return ratio.low > 0 && isfinite(ratio.high) ? ratio : none;
}
