/*
 * scenario_metrics.c - counters, means and histograms: short-lived threads add, on lines of their
 * own and on shared lines, while other threads read. No read decreases, a mean's sum fits its
 * count, and at the end everything is counted.
 */
#include "harness.h"

#include <inttypes.h>
#include <weir/metrics.h>

#include "scenarios.h"

enum { MOST_ADDERS = 16, READERS = 2, ADDITIONS = 4000, MOST_STEP = 100, FEW = 2, MANY = 256 };

static struct {
	weir_counter *counter;
	weir_mean *mean;
	weir_histogram *histogram;
	int own_lines; /* each thread has one */
	_Atomic(uint32_t) adding;
	_Atomic(int64_t) total;
} now;

static void open_metrics(uint32_t threads)
{
	struct weir_metrics_options options = {WEIR_METRICS_OPTIONS_INIT, .threads = threads};
	struct weir_histogram_options buckets = {WEIR_HISTOGRAM_OPTIONS_INIT, .threads = threads, .precision = 3,
	                                         .largest = MOST_STEP};

	STRESS_CHECK(weir_counter_create(&options, &now.counter, NULL) == WEIR_OK, "no counter");
	STRESS_CHECK(weir_mean_create(&options, &now.mean, NULL) == WEIR_OK, "no mean");
	STRESS_CHECK(weir_histogram_create(&buckets, &now.histogram, NULL) == WEIR_OK, "no histogram");
	now.own_lines = threads == MANY;
	weiri_store_relaxed(&now.total, 0); /* [relaxed] before the threads */
}

static void add(struct stress_thread *self, void *context)
{
	int64_t total = 0;

	(void)context;
	for (uint64_t i = 0; i < stress_scaled(ADDITIONS); i++) {
		int64_t step = (int64_t)stress_below(self, MOST_STEP);

		stress_begin(self, "add");
		weir_counter_add(now.counter, step);
		weir_mean_add(now.mean, 1.0);
		weir_histogram_add(now.histogram, (uint64_t)step);
		total += step;
		stress_end(self, 1);
	}
	(void)weiri_fetch_add_relaxed(&now.total, total); /* [relaxed] read after a join */
	(void)weiri_fetch_sub_release(&now.adding, 1u);   /* pairs with read(), below */
}

/* What the last read of this thread returned. */
struct seen {
	int64_t sum;
	uint64_t count, in_buckets;
};

static void read_all(struct seen *seen, weir_summary *summary)
{
	struct weir_mean_value mean = weir_mean_read(now.mean);
	int64_t sum = weir_counter_read(now.counter);

	STRESS_CHECK(sum >= seen->sum, "the counter decreased from %" PRId64 " to %" PRId64, seen->sum, sum);
	STRESS_CHECK(mean.count >= seen->count, "the count of the mean decreased");
	STRESS_CHECK(mean.sum >= (double)mean.count && (!now.own_lines || mean.sum <= (double)mean.count),
	             "%" PRIu64 " additions of 1 have the sum %.0f", mean.count, mean.sum);
	STRESS_CHECK(weir_histogram_read(now.histogram, summary, NULL) == WEIR_OK, "the summary has a different layout");
	STRESS_CHECK(weir_summary_count(summary) >= seen->in_buckets, "the count of the histogram decreased");
	*seen = (struct seen){sum, mean.count, weir_summary_count(summary)};
}

static weir_summary *new_summary(void)
{
	struct weir_histogram_options buckets = {WEIR_HISTOGRAM_OPTIONS_INIT, .precision = 3, .largest = MOST_STEP};
	weir_summary *summary;

	STRESS_CHECK(weir_summary_create(&buckets, &summary, NULL) == WEIR_OK, "no summary");
	return summary;
}

static void keep_reading(struct stress_thread *self, void *context)
{
	struct seen seen = {0, 0, 0};
	weir_summary *summary = new_summary();

	(void)context;
	while (weiri_load_acquire(&now.adding) != 0) { /* pairs with add() */
		stress_begin(self, "read");
		read_all(&seen, summary);
		stress_end(self, 1);
	}
	weir_summary_destroy(summary, NULL);
}

/* All threads have ended. */
static void check_totals(uint64_t additions)
{
	weir_summary *summary = new_summary();
	struct seen seen = {0, 0, 0};
	int64_t in_buckets = 0;

	read_all(&seen, summary);
	/*
	 * [relaxed] joined. Buckets up to 15 hold one value each, and larger ones at most 8 values, so
	 * the sum is known up to this width.
	 */
	STRESS_CHECK(seen.sum == weiri_load_relaxed(&now.total), "the counter is %" PRId64 ", but %" PRId64 " were added",
	             seen.sum, weiri_load_relaxed(&now.total));
	STRESS_CHECK(seen.count == additions, "%" PRIu64 " of %" PRIu64 " values are in the mean", seen.count, additions);
	STRESS_CHECK(seen.in_buckets == additions, "%" PRIu64 " of %" PRIu64 " values are in the histogram",
	             seen.in_buckets, additions);
	for (size_t i = 0; i + 1 < weir_summary_bucket_count(summary); i++) {
		struct weir_bucket bucket = weir_summary_bucket(summary, i);

		in_buckets += (int64_t)(bucket.count * bucket.low);
	}
	STRESS_CHECK(in_buckets <= seen.sum && seen.sum <= in_buckets + (int64_t)(7 * additions),
	             "values with the sum %" PRId64 " are in buckets with the sum %" PRId64, seen.sum, in_buckets);
	weir_summary_destroy(summary, NULL);
}

static void run_round(struct stress_thread *self)
{
	unsigned adders = 1 + (unsigned)stress_below(self, stress_threads(READERS + MOST_ADDERS) - READERS);

	open_metrics(stress_one_in(self, 2) ? MANY : FEW);
	weiri_store_relaxed(&now.adding, adders); /* [relaxed] before the threads */
	for (unsigned i = 0; i < READERS; i++)
		(void)stress_start("reader", keep_reading, NULL);
	for (unsigned i = 0; i < adders; i++)
		(void)stress_start("adder", add, NULL);
	stress_join();
	check_totals(adders * stress_scaled(ADDITIONS));
	weir_counter_destroy(now.counter, NULL);
	weir_mean_destroy(now.mean, NULL);
	weir_histogram_destroy(now.histogram, NULL);
}

void scenario_metrics(void)
{
	stress_disturb();
	while (stress_goes_on())
		run_round(stress_self());
}
