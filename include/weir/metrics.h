/*
 * metrics.h - counters, means and histograms that many threads add to and a few read occasionally.
 *
 * Use them for requests, bytes, losses or latencies, where all threads would contend for the cache
 * line of a shared atomic. Each thread adds on a cache line of its own, without a locked
 * instruction; a reader pays by going through all lines. Do not use them for values on which each
 * step depends (tickets, reference counts, limits): those need the sum immediately, and an atomic
 * is right.
 *
 * | call                        | threads   | progress      | blocks on | allocates | signal-safe |
 * |-----------------------------|-----------|---------------|-----------|-----------|-------------|
 * | weir_counter_add            | any       | wait-free     | nothing   | no (1)    | no          |
 * | weir_mean_add               | any       | wait-free (2) | nothing   | no (1)    | no          |
 * | weir_histogram_add          | any       | wait-free     | nothing   | no (1)    | no          |
 * | weir_counter_read, weir_mean_read | any | wait-free     | nothing   | no        | no          |
 * | weir_histogram_read         | any (3)   | wait-free     | nothing   | no        | no          |
 * | weir_summary_add, _merge, _subtract, _clear | one (4) | wait-free | nothing | no | no         |
 * | weir_summary_count, _quantile | any (5) | wait-free     | nothing   | no        | no          |
 * | weir_summary_bucket_count, _bucket | any (5) | wait-free | nothing  | no        | no          |
 * | weir_counter_create, weir_mean_create | any | allocator | allocator | yes       | no          |
 * | weir_histogram_create, weir_summary_create | any | allocator | allocator | yes  | no          |
 * | weir_counter_destroy, weir_mean_destroy | one, last | allocator | allocator | no | no         |
 * | weir_histogram_destroy, weir_summary_destroy | one, last | allocator | allocator | no | no    |
 *
 * (1) Except that a thread's first call of Weir allocates its record. If there is no memory for it,
 *     the thread adds on the shared lines.
 * (2) Lock-free on the shared lines.
 * (3) One thread at a time per summary.
 * (4) At a time, per summary.
 * (5) While no thread changes the summary.
 *
 * What a read promises. A read counts every addition that happens before the read, and no addition
 * that the read happens before. It may count any of the additions that are concurrent with it,
 * those of one thread in their order. So of two reads one after the other, the later counts
 * everything that the earlier one counted. If all additions happened before the read (for example,
 * their threads were joined), it is exact. An addition orders nothing else: it publishes nothing
 * that its thread wrote before.
 *
 * Memory. Each of `threads` threads (default 32) has lines of its own, 128 bytes or more; all
 * further threads share 4 sets of lines.
 *
 *     counter, mean   128 x (threads + 4) bytes
 *     histogram       8 x buckets, rounded up to 128, x (threads + 4) bytes
 *
 * A line belongs to a thread until the thread ends, and then to the next thread that needs one. Set
 * `threads` to the number of threads that add at the same time. With more, the results stay
 * correct, but an addition costs a locked instruction on a line that other threads use.
 *
 * Objects that are added to or read must not be NULL, unless a call says otherwise: a check would
 * cost too much of an addition.
 */
#ifndef WEIR_METRICS_H
#define WEIR_METRICS_H

#include <stddef.h>
#include <stdint.h>
#include <weir/alloc.h>
#include <weir/status.h>

WEIR_BEGIN_DECLS

enum weir_metrics_limits { WEIR_METRICS_DEFAULT_THREADS = 32, WEIR_METRICS_MAX_THREADS = 65536 };

/* ---- counters ---- */

typedef struct weir_counter weir_counter;

struct weir_metrics_options {
	size_t struct_size;              /* WEIR_METRICS_OPTIONS_INIT sets it */
	size_t threads;                  /* with lines of their own; 0: WEIR_METRICS_DEFAULT_THREADS */
	uint32_t flags;                  /* must be 0 */
	const weir_allocator *allocator; /* NULL: the default allocator */
};
#define WEIR_METRICS_OPTIONS_INIT WEIR_STRUCT_SIZE(struct weir_metrics_options)

/*
 * Creates a counter at 0. options may be NULL.
 *
 * Errors: WEIR_INVALID_ARGUMENT if out is NULL, struct_size is wrong, a flag is unknown, or threads
 * exceeds WEIR_METRICS_MAX_THREADS. WEIR_RESOURCE_EXHAUSTED.
 *
 * Source: sloppy counters (Boyd-Wickizer et al., OSDI 2010), with lines owned by threads.
 * @since 0.1
 */
WEIR_API enum weir_status weir_counter_create(const struct weir_metrics_options *options,
                                              weir_counter **out, weir_error *error);
/* No other call on it may be under way. Accepts NULL. Never fails. @since 0.1 */
WEIR_API enum weir_status weir_counter_destroy(weir_counter *counter, weir_error *error);
/* Adds `n`, which may be negative; wraps around. @since 0.1 */
WEIR_API void weir_counter_add(weir_counter *counter, int64_t n);

/*
 * The sum: see "What a read promises". With additions of both signs it may be a value that the
 * counter never had.
 * @since 0.1
 */
WEIR_API int64_t weir_counter_read(const weir_counter *counter);

/* ---- means ---- */

typedef struct weir_mean weir_mean;

/*
 * The number of values added, and their sum. For each thread with a line of its own, sum and count
 * agree: the sum is that of exactly the first `count` values. (The read tries 64 times. It fails
 * only if the thread adds 7 values between two loads each time; the sum may then include more.) For
 * threads on shared lines, the sum may include values added during the read that the count does
 * not. Each thread's sum is rounded as it adds; these sums are added in no particular order.
 */
struct weir_mean_value {
	uint64_t count;
	double sum;
};

/* See weir_counter_create(). @since 0.1 */
WEIR_API enum weir_status weir_mean_create(const struct weir_metrics_options *options,
                                           weir_mean **out, weir_error *error);
/* No other call on it may be under way. Accepts NULL. Never fails. @since 0.1 */
WEIR_API enum weir_status weir_mean_destroy(weir_mean *mean, weir_error *error);
/* Adds `value` to the sum and 1 to the count. @since 0.1 */
WEIR_API void weir_mean_add(weir_mean *mean, double value);
/* Reads count and sum. The mean is sum / count, if count is not 0. @since 0.1 */
WEIR_API struct weir_mean_value weir_mean_read(const weir_mean *mean);

/* ---- histograms ---- */

/*
 * Each value up to 2^(precision + 1) - 1 has its own bucket. Above, each power of two is divided
 * into 2^precision buckets of equal width. So the width of a bucket is at most 2^-precision of its
 * values, and its middle is within 2^-(precision + 1) of each of them, relative to the value.
 * Values above `largest` are counted in one more bucket, the last. Source: HdrHistogram (Tene),
 * with powers of two throughout.
 */
enum weir_histogram_limits {
	WEIR_HISTOGRAM_DEFAULT_PRECISION = 5, /* middles within 1.6 % */
	WEIR_HISTOGRAM_MAX_PRECISION = 10     /* within 0.05 % */
};

struct weir_histogram_options {
	size_t struct_size; /* WEIR_HISTOGRAM_OPTIONS_INIT sets it */
	size_t threads;     /* with lines of their own; 0: WEIR_METRICS_DEFAULT_THREADS */
	/* 1 to WEIR_HISTOGRAM_MAX_PRECISION; 0: WEIR_HISTOGRAM_DEFAULT_PRECISION */
	uint32_t precision;
	uint64_t largest;                /* the largest value told from larger ones; 0: UINT64_MAX */
	uint32_t flags;                  /* must be 0 */
	const weir_allocator *allocator; /* NULL: the default allocator */
};
#define WEIR_HISTOGRAM_OPTIONS_INIT WEIR_STRUCT_SIZE(struct weir_histogram_options)

typedef struct weir_histogram weir_histogram;

/*
 * The content of a histogram when it was read, or a histogram for one thread. Summaries with the
 * same precision and largest can be merged.
 */
typedef struct weir_summary weir_summary;

/*
 * Create a histogram or a summary. options may be NULL; a summary ignores `threads`. Errors:
 * WEIR_INVALID_ARGUMENT (out NULL, struct_size, flags, threads, precision),
 * WEIR_RESOURCE_EXHAUSTED.
 * @since 0.1
 */
WEIR_API enum weir_status weir_histogram_create(const struct weir_histogram_options *options,
                                                weir_histogram **out, weir_error *error);
WEIR_API enum weir_status weir_summary_create(const struct weir_histogram_options *options,
                                              weir_summary **out, weir_error *error);
/* No other call on it may be under way. Accept NULL. Never fail. @since 0.1 */
WEIR_API enum weir_status weir_histogram_destroy(weir_histogram *histogram, weir_error *error);
WEIR_API enum weir_status weir_summary_destroy(weir_summary *summary, weir_error *error);

/* Counts `value`. @since 0.1 */
WEIR_API void weir_histogram_add(weir_histogram *histogram, uint64_t value);
WEIR_API void weir_summary_add(weir_summary *summary, uint64_t value);

/*
 * Replaces the content of `summary` by that of the histogram: see "What a read promises". The count
 * is the sum of the buckets, so both always agree. Errors: WEIR_INVALID_ARGUMENT if an argument is
 * NULL, or precision or largest differ; the message has both.
 * @since 0.1
 */
WEIR_API enum weir_status weir_histogram_read(const weir_histogram *histogram,
                                              weir_summary *summary, weir_error *error);

/*
 * Add or subtract the content of `from`. Subtract an earlier read of the same histogram to see what
 * was added since. Errors as for weir_histogram_read().
 * @since 0.1
 */
WEIR_API enum weir_status weir_summary_merge(weir_summary *into, const weir_summary *from,
                                             weir_error *error);
WEIR_API enum weir_status weir_summary_subtract(weir_summary *summary, const weir_summary *earlier,
                                                weir_error *error);
/* Resets all counts to 0. @since 0.1 */
WEIR_API void weir_summary_clear(weir_summary *summary);

/* The number of values. @since 0.1 */
WEIR_API uint64_t weir_summary_count(const weir_summary *summary);

/*
 * Computes the q-quantile, 0 <= q <= 1: of n sorted values, the one numbered ceil(q n), at least 1;
 * q = 0.5 is the median. *value is the middle of its bucket, so its relative error is at most
 * 2^-(precision + 1); exact up to 2^(precision + 1) - 1.
 *
 * Errors: WEIR_INVALID_ARGUMENT (NULL, q). WEIR_FAILED_PRECONDITION if there are no values.
 * WEIR_OUT_OF_RANGE if the quantile is above `largest`; *value is then the lower end of the last
 * bucket.
 * @since 0.1
 */
WEIR_API enum weir_status weir_summary_quantile(const weir_summary *summary, double q,
                                                uint64_t *value);

/* A bucket: the number of values from `low` to `high`, both included. */
struct weir_bucket {
	uint64_t low;
	uint64_t high;
	uint64_t count;
};
/* The number of buckets, empty ones included; it depends on precision and largest. @since 0.1 */
WEIR_API size_t weir_summary_bucket_count(const weir_summary *summary);
/* Bucket `index` < weir_summary_bucket_count(), in the order of values. @since 0.1 */
WEIR_API struct weir_bucket weir_summary_bucket(const weir_summary *summary, size_t index);

WEIR_END_DECLS

#endif
