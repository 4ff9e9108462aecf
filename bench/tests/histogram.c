/*
 * histogram.c - compares the histogram with the sorted durations, and the statistics with values
 * computed by hand.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "../histogram.h"
#include "../statistics.h"

enum { DURATIONS = 100000 };

static unsigned faults;

static void expect(int holds, const char *what, double got)
{
	if (holds)
		return;
	(void)printf("FAIL %s: %g\n", what, got);
	faults++;
}

static int by_size(const void *a, const void *b)
{
	uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

	return (left > right) - (left < right);
}

static void buckets_are_in_order_and_narrow(void)
{
	for (unsigned i = 0; i + 1 < BENCH_BUCKETS; i++) {
		uint64_t top = bench_bucket_top(i), width = i == 0 ? 1 : top - bench_bucket_top(i - 1);

		expect(bench_bucket_of(top) == i, "the top of a bucket is in it", i);
		expect(bench_bucket_of(top + 1) == i + 1, "the next value is in the next bucket", i);
		expect(width <= 1 || width * 64 <= top, "a bucket is at most 1/64 wide", (double)top);
	}
	expect(bench_bucket_of(UINT64_MAX) == BENCH_BUCKETS - 1, "the last bucket has no end", 0);
}

static void quantiles_are_those_of_the_durations(void)
{
	static const double shares[] = {0, 0.25, 0.5, 0.9, 0.99, 0.999, 0.9999, 1};
	struct bench_histogram *halves[2] = {bench_histogram_create(), bench_histogram_create()};
	uint64_t *sorted = malloc(DURATIONS * sizeof(*sorted)), state = 1;

	if (sorted == NULL)
		exit(3);
	for (int i = 0; i < DURATIONS; i++) {
		state = state * UINT64_C(6364136223846793005) + 1442695040888963407u;
		sorted[i] = (state >> 33) >> (state % 31); /* many short durations, a few long ones */
		bench_histogram_add(halves[i % 2], sorted[i]);
	}
	qsort(sorted, DURATIONS, sizeof(*sorted), by_size);
	bench_histogram_merge(halves[0], halves[1]);
	for (size_t i = 0; i < sizeof(shares) / sizeof(shares[0]); i++) {
		size_t rank = (size_t)ceil(shares[i] * DURATIONS);
		double exact = (double)sorted[rank == 0 ? 0 : rank - 1];
		double got = (double)bench_histogram_quantile(halves[0], shares[i]);

		expect(got >= exact && got <= exact * (1 + 1.0 / 64) + 1, "a quantile", shares[i]);
	}
	expect(bench_histogram_quantile(halves[0], 1) == sorted[DURATIONS - 1], "the longest is exact", 0);
	expect(halves[0]->count == DURATIONS, "no duration is lost", (double)halves[0]->count);
	free(sorted);
	bench_histogram_destroy(halves[0]);
	bench_histogram_destroy(halves[1]);
}

static void ratios_have_an_interval(void)
{
	static const double quick[] = {10, 11, 10, 9, 10, 10, 11}, slow[] = {20, 22, 20, 18, 20, 20, 22};
	struct bench_interval paired = bench_paired_ratio(slow, 7, quick, 7), same = bench_ratio(quick, 7, quick, 7);

	expect(bench_quantile(quick, 7, 0.5) == 10 && bench_quantile(quick, 4, 0.5) == 10, "a median",
	       bench_quantile(quick, 4, 0.5));
	expect(bench_quantile(quick, 7, 0) == 9 && bench_quantile(quick, 7, 1) == 11, "the ends", 0);
	expect(paired.low == 2 && paired.middle == 2 && paired.high == 2, "pairs stay together", paired.high);
	expect(same.low < 1 && same.middle == 1 && same.high > 1, "values drawn apart differ", same.low);
	expect(isnan(bench_ratio(quick, 0, slow, 7).middle), "no samples have no ratio", 0);
}

/* On a busy machine a repetition of a few milliseconds may complete no operation. */
static void nothing_done_is_no_fault(void)
{
	static const double quick[] = {10, 11, 10}, idle[] = {0, 0, 0}, seldom[] = {0, 0, 10};
	struct bench_interval lost = bench_ratio(quick, 3, idle, 3), both = bench_ratio(idle, 3, idle, 3);
	struct bench_interval some = bench_ratio(quick, 3, seldom, 3);

	expect(isinf(lost.low) && isinf(lost.middle) && isinf(lost.high), "a ratio to 0 is infinite", lost.low);
	expect(both.low == 1 && both.middle == 1 && both.high == 1, "0 to 0 is 1", both.low);
	expect(some.low >= 1 && isfinite(some.low) && isinf(some.high), "an interval from a number to infinity", some.low);
	expect(isnan(bench_paired_ratio(quick, 3, idle, 3).middle), "an infinite paired ratio is NaN", 0);
	expect(isnan(bench_paired_ratio(idle, 3, quick, 3).middle), "a paired ratio of 0 is NaN", 0);
	expect(isnan(bench_paired_ratio(quick, 3, seldom, 3).middle), "a paired ratio with an infinite end is NaN", 0);
}

int main(void)
{
	buckets_are_in_order_and_narrow();
	quantiles_are_those_of_the_durations();
	ratios_have_an_interval();
	nothing_done_is_no_fault();
	(void)printf("%s histogram and statistics: %u faults\n", faults == 0 ? "PASS" : "FAIL", faults);
	return faults != 0;
}
