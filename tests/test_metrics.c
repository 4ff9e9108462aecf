/*
 * test_metrics.c - counters, means and histograms: each addition counts once, whichever thread made
 * it. A mean is read while a thread is stopped at any instruction of an addition. Buckets and
 * quantiles.
 */
#include <criterion/criterion.h>

#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <weir/metrics.h>

#include "failing_allocator.h"
#include "metrics/buckets.h"
#include "metrics/stripes.h"
#include "stepped.h"

enum { THREADS = 12, ADDITIONS = 2000 };

static struct weir_metrics_options lines(uint32_t threads)
{
	return (struct weir_metrics_options){WEIR_METRICS_OPTIONS_INIT, .threads = threads};
}

static void run_threads(void *(*body)(void *), void *context)
{
	pthread_t threads[THREADS];

	for (size_t i = 0; i < THREADS; i++)
		cr_assert_eq(pthread_create(&threads[i], NULL, body, context), 0);
	for (size_t i = 0; i < THREADS; i++)
		(void)pthread_join(threads[i], NULL);
}

/* -- counters ---------------------------------------------------------------------------------- */

static void *count_up(void *counter)
{
	for (int i = 0; i < ADDITIONS; i++)
		weir_counter_add(counter, i % 2 == 0 ? 5 : -2);
	return NULL;
}

/*
 * The counter has a line for all threads, for some, or for one. The second run brings new threads
 * after the first ones have ended.
 */
Test(metrics, a_counter_has_what_all_threads_added)
{
	for (uint32_t threads = 1; threads <= 2 * THREADS; threads *= 3) {
		struct weir_metrics_options options = lines(threads);
		weir_counter *counter;

		cr_assert_eq(weir_counter_create(&options, &counter, NULL), WEIR_OK);
		cr_expect_eq(weir_counter_read(counter), 0);
		weir_counter_add(counter, 7);
		run_threads(count_up, counter);
		cr_expect_eq(weir_counter_read(counter), 7 + THREADS * ADDITIONS / 2 * 3);
		run_threads(count_up, counter);
		cr_expect_eq(weir_counter_read(counter), 7 + 2 * (THREADS * ADDITIONS / 2 * 3));
		weir_counter_destroy(counter, NULL);
	}
}

Test(metrics, a_counter_wraps_around)
{
	weir_counter *counter;

	cr_assert_eq(weir_counter_create(NULL, &counter, NULL), WEIR_OK);
	weir_counter_add(counter, INT64_MAX);
	weir_counter_add(counter, 1);
	cr_expect_eq(weir_counter_read(counter), INT64_MIN);
	weir_counter_destroy(counter, NULL);
}

static void *address_of_line(void *counter)
{
	return weiri_stripe_mine(counter).words;
}

/*
 * A new thread gets the lowest free line. So a few lines suffice for threads that come and go.
 */
Test(metrics, a_line_is_used_again_when_its_thread_has_ended)
{
	struct weiri_stripes *stripes;
	enum weir_status status = WEIR_OK;
	const void *first = NULL, *mine;

	stripes = weiri_stripes_create("lines", 4, 1, NULL, &status, NULL);
	cr_assert_not_null(stripes);
	mine = address_of_line(stripes);
	for (int i = 0; i < 20; i++) {
		pthread_t thread;
		void *line;

		cr_assert_eq(pthread_create(&thread, NULL, address_of_line, stripes), 0);
		(void)pthread_join(thread, &line);
		first = i == 0 ? line : first;
		cr_expect_eq(line, first);
		cr_expect_neq(line, mine, "the line of a running thread");
	}
	weiri_stripes_destroy(stripes);
}

/* -- means ------------------------------------------------------------------------------------- */

static void *add_quarters(void *mean)
{
	for (int i = 0; i < ADDITIONS; i++)
		weir_mean_add(mean, 0.25);
	return NULL;
}

Test(metrics, a_mean_has_what_all_threads_added)
{
	for (uint32_t threads = 1; threads <= 2 * THREADS; threads *= 3) {
		struct weir_metrics_options options = lines(threads);
		struct weir_mean_value value;
		weir_mean *mean;

		cr_assert_eq(weir_mean_create(&options, &mean, NULL), WEIR_OK);
		value = weir_mean_read(mean);
		cr_expect(value.count == 0 && value.sum == 0);
		run_threads(add_quarters, mean);
		run_threads(add_quarters, mean);
		value = weir_mean_read(mean);
		cr_expect_eq(value.count, 2 * THREADS * ADDITIONS);
		cr_expect(value.sum == 0.25 * (double)(2 * THREADS * ADDITIONS));
		weir_mean_destroy(mean, NULL);
	}
}

static weir_mean *stepped_mean;

static void meet_mean(void *context)
{
	(void)context;
	(void)weiri_record_get();
}

static void add_to_mean(void *context)
{
	(void)context;
	weir_mean_add(stepped_mean, 3.0);
}

static void check_mean_beside_stopped(uint32_t threads)
{
	struct weir_metrics_options options = lines(threads);
	struct stepped call = {.prepare = meet_mean, .call = add_to_mean};
	struct weir_mean_value value;
	uint64_t trials = 0;

	cr_assert_eq(weir_mean_create(&options, &stepped_mean, NULL), WEIR_OK);
	weir_mean_add(stepped_mean, 3.0);
	for (size_t at = 0; stepped_start(&call, at); at += stepped_stride(1)) {
		trials++;
		value = weir_mean_read(stepped_mean);
		cr_expect(value.count == trials || value.count == trials + 1);
		/* On a shared line an addition changes the sum before the count. */
		cr_expect(value.sum == 3.0 * (double)value.count ||
		              (threads == 1 && value.sum == 3.0 * (double)(value.count + 1)),
		          "stopped before instruction %zu: %" PRIu64 " times 3 is %g", at, value.count, value.sum);
		stepped_finish(&call);
	}
	stepped_finish(&call);
	value = weir_mean_read(stepped_mean);
	cr_expect_eq(value.count, trials + 2);
	cr_expect_gt(trials, 5, "the call was not stepped through");
	weir_mean_destroy(stepped_mean, NULL);
}

Test(metrics, an_adder_stopped_anywhere_keeps_no_reader_waiting)
{
	stepped_or_skip();
	check_mean_beside_stopped(8);
	/* The test's own thread has the line, so the stopped thread uses the shared one. */
	check_mean_beside_stopped(1);
}

/* -- buckets ----------------------------------------------------------------------------------- */

Test(metrics, buckets_follow_one_another_without_a_gap)
{
	for (uint32_t precision = 1; precision <= WEIR_HISTOGRAM_MAX_PRECISION; precision++) {
		size_t last = weiri_bucket_of(UINT64_MAX, precision);

		cr_expect_eq(weiri_bucket_low(0, precision), 0);
		cr_expect_eq(weiri_bucket_high(last, precision), UINT64_MAX);
		for (size_t i = 0; i <= last; i++) {
			uint64_t low = weiri_bucket_low(i, precision), high = weiri_bucket_high(i, precision);

			cr_assert(low <= high);
			cr_assert(i == last || weiri_bucket_low(i + 1, precision) == high + 1, "bucket %zu", i);
			cr_assert_eq(weiri_bucket_of(low, precision), i);
			cr_assert_eq(weiri_bucket_of(high, precision), i);
			/* The width is what metrics.h states. */
			cr_assert_leq(high - low, low >> precision, "bucket %zu", i);
			cr_assert(low >= (UINT64_C(2) << precision) || low == high);
		}
	}
}

/* -- summaries --------------------------------------------------------------------------------- */

static weir_summary *summary_of(uint32_t precision, uint64_t largest)
{
	struct weir_histogram_options options = {WEIR_HISTOGRAM_OPTIONS_INIT, .precision = precision, .largest = largest};
	weir_summary *summary;

	cr_assert_eq(weir_summary_create(&options, &summary, NULL), WEIR_OK);
	return summary;
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

Test(metrics, quantiles_are_within_the_stated_error_of_those_of_all_values)
{
	enum { VALUES = 2001 };
	static uint64_t values[VALUES];
	uint64_t seed = 88172645463325252u;

	for (uint32_t precision = 1; precision <= WEIR_HISTOGRAM_MAX_PRECISION; precision++) {
		weir_summary *summary = summary_of(precision, 0);

		for (size_t i = 0; i < VALUES; i++) {
			seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
			values[i] = seed >> seed % 64; /* values of all magnitudes */
			weir_summary_add(summary, values[i]);
		}
		qsort(values, VALUES, sizeof(*values), by_value);
		cr_expect_eq(weir_summary_count(summary), VALUES);
		for (int percent = 0; percent <= 100; percent++) {
			double q = percent / 100.0, error;
			size_t rank = (size_t)ceil(q * (double)VALUES);
			uint64_t exact = values[rank > 0 ? rank - 1 : 0], found = 0;

			cr_assert_eq(weir_summary_quantile(summary, q, &found), WEIR_OK);
			error = fabs((double)found - (double)exact);
			cr_expect_leq(error, (double)exact / (double)(UINT64_C(2) << precision), "precision %u, %d %%: %g",
			              precision, percent, error);
			cr_expect(exact >= (UINT64_C(2) << precision) || found == exact);
		}
		weir_summary_destroy(summary, NULL);
	}
}

Test(metrics, a_quantile_of_few_values_is_one_of_them)
{
	weir_summary *summary = summary_of(0, 0);
	uint64_t value = 99;

	cr_expect_eq(weir_summary_quantile(summary, 0.5, &value), WEIR_FAILED_PRECONDITION);
	cr_expect_eq(weir_summary_quantile(summary, 1.5, &value), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_summary_quantile(summary, NAN, &value), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_summary_quantile(NULL, 0.5, &value), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(value, 99);
	for (uint64_t i = 1; i <= 4; i++)
		weir_summary_add(summary, 10 * i);
	cr_expect_eq(weir_summary_quantile(summary, 0, &value), WEIR_OK);
	cr_expect_eq(value, 10);
	cr_expect_eq(weir_summary_quantile(summary, 0.25, &value), WEIR_OK);
	cr_expect_eq(value, 10);
	cr_expect_eq(weir_summary_quantile(summary, 0.26, &value), WEIR_OK);
	cr_expect_eq(value, 20);
	cr_expect_eq(weir_summary_quantile(summary, 0.5, &value), WEIR_OK);
	cr_expect_eq(value, 20);
	cr_expect_eq(weir_summary_quantile(summary, 1, &value), WEIR_OK);
	cr_expect_eq(value, 40);
	weir_summary_clear(summary);
	cr_expect_eq(weir_summary_quantile(summary, 0.5, &value), WEIR_FAILED_PRECONDITION);
	weir_summary_destroy(summary, NULL);
}

Test(metrics, values_above_the_largest_are_counted_apart)
{
	weir_summary *summary = summary_of(2, 100);
	size_t last = weir_summary_bucket_count(summary) - 1;
	struct weir_bucket bucket;
	uint64_t value = 0;

	weir_summary_add(summary, 100);
	weir_summary_add(summary, 101);
	weir_summary_add(summary, UINT64_MAX);
	bucket = weir_summary_bucket(summary, last);
	cr_expect(bucket.low == 101 && bucket.high == UINT64_MAX && bucket.count == 2);
	bucket = weir_summary_bucket(summary, last - 1);
	cr_expect(bucket.low <= 100 && bucket.high == 100 && bucket.count == 1);
	cr_expect_eq(weir_summary_quantile(summary, 0.2, &value), WEIR_OK);
	cr_expect(value >= bucket.low && value <= 100);
	cr_expect_eq(weir_summary_quantile(summary, 0.9, &value), WEIR_OUT_OF_RANGE);
	cr_expect_eq(value, 101);
	weir_summary_destroy(summary, NULL);
}

Test(metrics, summaries_of_one_layout_are_merged_and_subtracted)
{
	weir_summary *a = summary_of(3, 1000), *b = summary_of(3, 1000), *other = summary_of(4, 1000);
	weir_error error;
	uint64_t value = 0;

	weir_summary_add(a, 5);
	weir_summary_add(b, 5);
	weir_summary_add(b, 7);
	cr_expect_eq(weir_summary_merge(a, b, NULL), WEIR_OK);
	cr_expect_eq(weir_summary_count(a), 3);
	cr_expect_eq(weir_summary_bucket(a, 5).count, 2);
	cr_expect_eq(weir_summary_subtract(a, b, NULL), WEIR_OK);
	cr_expect_eq(weir_summary_count(a), 1);
	cr_expect_eq(weir_summary_quantile(a, 1, &value), WEIR_OK);
	cr_expect_eq(value, 5);
	cr_expect_eq(weir_summary_merge(a, other, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_str_eq(error.message, "summary: expected precision 3 and largest 1000, got 4 and 1000");
	cr_expect_eq(weir_summary_count(a), 1);
	cr_expect_eq(weir_summary_merge(a, NULL, NULL), WEIR_INVALID_ARGUMENT);
	weir_summary_destroy(a, NULL);
	weir_summary_destroy(b, NULL);
	weir_summary_destroy(other, NULL);
}

/* -- histograms -------------------------------------------------------------------------------- */

static void *add_up_to_99(void *histogram)
{
	for (uint64_t i = 0; i < ADDITIONS; i++)
		weir_histogram_add(histogram, i % 100);
	return NULL;
}

Test(metrics, a_histogram_has_what_all_threads_added)
{
	for (uint32_t threads = 1; threads <= 2 * THREADS; threads *= 3) {
		struct weir_histogram_options options = {WEIR_HISTOGRAM_OPTIONS_INIT, .threads = threads, .precision = 6,
		                                         .largest = 1000};
		weir_histogram *histogram;
		weir_summary *summary = summary_of(6, 1000), *earlier = summary_of(6, 1000);
		uint64_t median = 0;

		cr_assert_eq(weir_histogram_create(&options, &histogram, NULL), WEIR_OK);
		run_threads(add_up_to_99, histogram);
		cr_assert_eq(weir_histogram_read(histogram, earlier, NULL), WEIR_OK);
		run_threads(add_up_to_99, histogram);
		/* The read replaces what was in the summary. */
		weir_summary_add(summary, 12);
		cr_assert_eq(weir_histogram_read(histogram, summary, NULL), WEIR_OK);
		cr_expect_eq(weir_summary_count(summary), 2 * THREADS * ADDITIONS);
		cr_expect_eq(weir_summary_subtract(summary, earlier, NULL), WEIR_OK);
		for (size_t i = 0; i < 100; i++)
			cr_expect_eq(weir_summary_bucket(summary, i).count, THREADS * ADDITIONS / 100);
		cr_expect_eq(weir_summary_quantile(summary, 0.5, &median), WEIR_OK);
		cr_expect_eq(median, 49);
		weir_summary_destroy(summary, NULL);
		weir_summary_destroy(earlier, NULL);
		weir_histogram_destroy(histogram, NULL);
	}
}

Test(metrics, a_histogram_and_a_summary_of_other_layouts_are_refused)
{
	weir_histogram *histogram;
	weir_summary *summary = summary_of(5, 7);
	weir_error error;

	cr_assert_eq(weir_histogram_create(NULL, &histogram, NULL), WEIR_OK);
	cr_expect_eq(weir_histogram_read(histogram, summary, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_str_eq(error.message, "summary: expected precision 5 and largest 18446744073709551615, got 5 and 7");
	cr_expect_eq(weir_histogram_read(histogram, NULL, NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_histogram_read(NULL, summary, NULL), WEIR_INVALID_ARGUMENT);
	weir_histogram_destroy(histogram, NULL);
	weir_summary_destroy(summary, NULL);
}

/* -- making them ------------------------------------------------------------------------------- */

Test(metrics, options_that_cannot_be_are_refused)
{
	struct weir_metrics_options options = lines(WEIR_METRICS_MAX_THREADS + 1);
	struct weir_histogram_options buckets = {WEIR_HISTOGRAM_OPTIONS_INIT, .precision = 11};
	weir_counter *counter = NULL;
	weir_mean *mean = NULL;
	weir_histogram *histogram = NULL;
	weir_summary *summary = NULL;
	weir_error error;

	cr_expect_eq(weir_counter_create(&options, &counter, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_str_eq(error.message, "counter: 65537 threads, expected at most 65536");
	options = lines(1);
	options.flags = 1;
	cr_expect_eq(weir_mean_create(&options, &mean, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_str_eq(error.message, "mean: unknown flags 0x1");
	options.struct_size = 3;
	cr_expect_eq(weir_mean_create(&options, &mean, NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_counter_create(NULL, NULL, NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_histogram_create(&buckets, &histogram, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_str_eq(error.message, "histogram: precision 11, expected 1 to 10");
	buckets = (struct weir_histogram_options){WEIR_HISTOGRAM_OPTIONS_INIT, .threads = WEIR_METRICS_MAX_THREADS + 1};
	cr_expect_eq(weir_histogram_create(&buckets, &histogram, NULL), WEIR_INVALID_ARGUMENT);
	buckets = (struct weir_histogram_options){WEIR_HISTOGRAM_OPTIONS_INIT, .flags = 4};
	cr_expect_eq(weir_summary_create(&buckets, &summary, NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_summary_create(NULL, NULL, NULL), WEIR_INVALID_ARGUMENT);
	cr_expect(counter == NULL && mean == NULL && histogram == NULL && summary == NULL);
	weir_counter_destroy(NULL, NULL);
	weir_mean_destroy(NULL, NULL);
	weir_histogram_destroy(NULL, NULL);
	weir_summary_destroy(NULL, NULL);
}

static enum weir_status make_all(const weir_allocator *allocator, void *context)
{
	struct weir_metrics_options options = {WEIR_METRICS_OPTIONS_INIT, .allocator = allocator};
	struct weir_histogram_options buckets = {WEIR_HISTOGRAM_OPTIONS_INIT, .largest = 50, .allocator = allocator};
	weir_counter *counter = NULL;
	weir_mean *mean = NULL;
	weir_histogram *histogram = NULL;
	weir_summary *summary = NULL;
	enum weir_status status = weir_counter_create(&options, &counter, NULL);

	(void)context;
	if (status == WEIR_OK)
		status = weir_mean_create(&options, &mean, NULL);
	if (status == WEIR_OK)
		status = weir_histogram_create(&buckets, &histogram, NULL);
	if (status == WEIR_OK)
		status = weir_summary_create(&buckets, &summary, NULL);
	weir_counter_destroy(counter, NULL);
	weir_mean_destroy(mean, NULL);
	weir_histogram_destroy(histogram, NULL);
	weir_summary_destroy(summary, NULL);
	return status;
}

Test(metrics, making_them_survives_every_allocation_failing)
{
	cr_expect_eq(fail_each_allocation(make_all, NULL), 5);
}
