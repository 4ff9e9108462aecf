/*
 * metrics.h - counters, means and histograms that many threads add to and a few read now and then.
 *
 * Use them where a shared atomic would be the line of cache that all threads meet at: requests, bytes, losses, latencies. Each
 * thread adds on a line of its own, with no locked instruction; who reads pays, by going through all lines. Not for values that
 * decide something at each step (tickets, references, limits): there the sum is needed at once, and an atomic is right.
 *
 * | call                                    | threads | progress            | blocks on | allocates | signal-safe |
 * |-----------------------------------------|---------|---------------------|-----------|-----------|-------------|
 * | weir_counter_add                        | any     | wait-free           | nothing   | no (1)    | no          |
 * | weir_mean_add                           | any     | wait-free; lock-free beyond `threads` | nothing | no (1) | no |
 * | weir_histogram_add                      | any     | wait-free           | nothing   | no (1)    | no          |
 * | weir_counter_read, weir_mean_read       | any     | wait-free           | nothing   | no        | no          |
 * | weir_histogram_read                     | any; one per summary | wait-free | nothing | no       | no          |
 * | weir_summary_add, _merge, _subtract, _clear | one per summary | wait-free | nothing | no       | no          |
 * | weir_summary_count, _quantile, _bucket_count, _bucket | any, while nobody changes the summary | wait-free | nothing | no | no |
 * | weir_counter_create, weir_mean_create, weir_histogram_create, weir_summary_create | any | the allocator's | allocator | yes | no |
 * | weir_counter_destroy, weir_mean_destroy, weir_histogram_destroy, weir_summary_destroy | one, last | the allocator's | allocator | no | no          |
 *
 * (1) But a thread's first use of Weir allocates its record; without memory for it the thread adds where threads beyond
 * `threads` do.
 *
 * What a read promises. It counts every addition that happened before it and none that it happened before. Of those beside it,
 * it may count any; each thread's are counted in the order in which it made them. So of two reads one after the other the later
 * has each thread's additions of the earlier one, and as many more; and when all additions happened before it (their threads were
 * joined, say) it is exact. An addition orders nothing else: what a thread wrote before it is not published by it.
 *
 * Memory. Of `threads` (default 32) lines of their own, of 128 bytes and more each, and 4 lines that all other threads share:
 *
 *     counter, mean   128 x (threads + 4) bytes
 *     histogram       8 x buckets, rounded up to 128, x (threads + 4) bytes
 *
 * A line belongs to a thread while that lives, and then to the next that comes. Give as many `threads` as will add at the same
 * time: beyond that all stays right, at the price of a locked instruction on a line that others use.
 *
 * What is added to or read must not be NULL, unless a call says what it does then: an addition is too short to ask.
 */
#ifndef WEIR_METRICS_H
#define WEIR_METRICS_H

#include <stddef.h>
#include <stdint.h>
#include <weir/alloc.h>
#include <weir/status.h>

WEIR_BEGIN_DECLS

enum { WEIR_METRICS_DEFAULT_THREADS = 32, WEIR_METRICS_MAX_THREADS = 65536 };

/* ---- counters ---- */

typedef struct weir_counter weir_counter;

struct weir_metrics_options {
	size_t struct_size;              /* sizeof(struct weir_metrics_options) */
	uint32_t threads;                /* that have a line of their own; 0: WEIR_METRICS_DEFAULT_THREADS */
	uint32_t flags;                  /* must be 0 */
	const weir_allocator *allocator; /* NULL: the default one */
};

/*
 * A counter at 0. options may be NULL. WEIR_INVALID_ARGUMENT (out NULL, struct_size, flags, more than WEIR_METRICS_MAX_THREADS),
 * WEIR_RESOURCE_EXHAUSTED. Source: sloppy counters (Boyd-Wickizer et al., OSDI 2010), with lines owned by threads. @since 0.1
 */
WEIR_API enum weir_status weir_counter_create(const struct weir_metrics_options *options, weir_counter **out,
                                              weir_error *error);
/* No other call on it may be under way. Accepts NULL. @since 0.1 */
WEIR_API void weir_counter_destroy(weir_counter *counter);
/* Adds `n`, which may be below 0; wraps around. @since 0.1 */
WEIR_API void weir_counter_add(weir_counter *counter, int64_t n);
/* The sum: see "What a read promises". With additions of both signs it may be one that the counter never had. @since 0.1 */
WEIR_API int64_t weir_counter_read(const weir_counter *counter);

/* ---- means ---- */

typedef struct weir_mean weir_mean;

/*
 * How many values were added, and their sum. Of each thread that has a line of its own the two belong together: the sum is of
 * exactly the first so many values. (It is tried 64 times, and fails only if the thread adds 7 values between two loads each
 * time; then the sum may be of more.) Of threads beyond, the sum may be of more values than the count: of those added during
 * the read. Each thread's sum is rounded as it adds; the sum of all is those sums, added in no particular order.
 */
struct weir_mean_value {
	uint64_t count;
	double sum;
};

/* As weir_counter_create. @since 0.1 */
WEIR_API enum weir_status weir_mean_create(const struct weir_metrics_options *options, weir_mean **out,
                                           weir_error *error);
/* No other call on it may be under way. Accepts NULL. @since 0.1 */
WEIR_API void weir_mean_destroy(weir_mean *mean);
/* Adds `value` to the sum and 1 to the count. @since 0.1 */
WEIR_API void weir_mean_add(weir_mean *mean, double value);
/* The mean is sum / count, when count is not 0. @since 0.1 */
WEIR_API struct weir_mean_value weir_mean_read(const weir_mean *mean);

/* ---- histograms ---- */

/*
 * Values up to 2^(precision + 1) - 1 have a bucket each. Above, each power of two is divided into 2^precision buckets of the
 * same width: so a bucket is at most 2^-precision of its values wide, and its middle is within 2^-(precision + 1) of each of
 * them. Values above `largest` are counted in one more bucket, the last. Source: HdrHistogram (Tene), with powers of two
 * throughout.
 */
enum {
	WEIR_HISTOGRAM_DEFAULT_PRECISION = 5, /* middles within 1.6 % */
	WEIR_HISTOGRAM_MAX_PRECISION = 10     /* within 0.05 % */
};

struct weir_histogram_options {
	size_t struct_size;              /* sizeof(struct weir_histogram_options) */
	uint32_t threads;                /* that have lines of their own; 0: WEIR_METRICS_DEFAULT_THREADS */
	uint32_t precision;              /* 1 to WEIR_HISTOGRAM_MAX_PRECISION; 0: WEIR_HISTOGRAM_DEFAULT_PRECISION */
	uint64_t largest;                /* the largest value that is told from larger ones; 0: UINT64_MAX */
	uint32_t flags;                  /* must be 0 */
	const weir_allocator *allocator; /* NULL: the default one */
};

typedef struct weir_histogram weir_histogram;
/*
 * What a histogram held when it was read; or a histogram for one thread. Summaries of the same precision and largest can be
 * merged.
 */
typedef struct weir_summary weir_summary;

/*
 * WEIR_INVALID_ARGUMENT (out NULL, struct_size, flags, threads, precision), WEIR_RESOURCE_EXHAUSTED. options may be NULL;
 * `threads` means nothing to a summary. @since 0.1
 */
WEIR_API enum weir_status weir_histogram_create(const struct weir_histogram_options *options, weir_histogram **out,
                                                weir_error *error);
WEIR_API enum weir_status weir_summary_create(const struct weir_histogram_options *options, weir_summary **out,
                                              weir_error *error);
/* No other call on it may be under way. Accept NULL. @since 0.1 */
WEIR_API void weir_histogram_destroy(weir_histogram *histogram);
WEIR_API void weir_summary_destroy(weir_summary *summary);

/* Counts `value`. @since 0.1 */
WEIR_API void weir_histogram_add(weir_histogram *histogram, uint64_t value);
WEIR_API void weir_summary_add(weir_summary *summary, uint64_t value);

/*
 * Replaces what is in `summary` by what the histogram holds: see "What a read promises"; the count is that of the buckets, so
 * both always agree. WEIR_INVALID_ARGUMENT: NULL, or another precision or largest; the message has both. @since 0.1
 */
WEIR_API enum weir_status weir_histogram_read(const weir_histogram *histogram, weir_summary *summary,
                                              weir_error *error);
/*
 * Adds what is in `from`, or takes it away: an earlier read of the same histogram, to see what came since. Errors as above.
 * @since 0.1
 */
WEIR_API enum weir_status weir_summary_merge(weir_summary *into, const weir_summary *from, weir_error *error);
WEIR_API enum weir_status weir_summary_subtract(weir_summary *summary, const weir_summary *earlier, weir_error *error);
/* Counts nothing any more. @since 0.1 */
WEIR_API void weir_summary_clear(weir_summary *summary);

/* How many values. @since 0.1 */
WEIR_API uint64_t weir_summary_count(const weir_summary *summary);
/*
 * The q-quantile, 0 <= q <= 1: with n values in order, the one numbered ceil(q n), but at least 1; q = 0.5 is the median.
 * *value is the middle of its bucket, so within 2^-(precision + 1) of it, relative to it; exact up to 2^(precision + 1) - 1.
 * WEIR_INVALID_ARGUMENT (NULL, q), WEIR_FAILED_PRECONDITION (no values), WEIR_OUT_OF_RANGE (it is above `largest`, and *value
 * is the lower end of that bucket). @since 0.1
 */
WEIR_API enum weir_status weir_summary_quantile(const weir_summary *summary, double q, uint64_t *value);

/* A bucket: values from `low` to `high`, both included, and how many of them. */
struct weir_bucket {
	uint64_t low;
	uint64_t high;
	uint64_t count;
};
/* How many buckets there are, empty ones too: by precision and largest. @since 0.1 */
WEIR_API size_t weir_summary_bucket_count(const weir_summary *summary);
/* index < weir_summary_bucket_count(), in the order of values. @since 0.1 */
WEIR_API struct weir_bucket weir_summary_bucket(const weir_summary *summary, size_t index);

WEIR_END_DECLS

#endif
