/*
 * summary.h - a summary: a histogram for one thread. Reading a striped histogram fills a summary.
 */
#ifndef WEIRI_METRICS_SUMMARY_H
#define WEIRI_METRICS_SUMMARY_H

#include <weir/metrics.h>

#include "metrics/buckets.h"

/* The set of buckets. Summaries with equal layouts can be merged. */
struct weiri_layout {
	uint32_t precision;
	uint64_t largest;
	size_t buckets; /* the last one is for values above `largest` */
};

struct weir_summary {
	struct weiri_layout layout;
	uint64_t count;
	weir_allocator allocator;
	uint64_t counts[]; /* of each bucket */
};

/* Checks the options, copies them to *given, and sets *layout. `out` must not be NULL. */
enum weir_status weiri_layout_init(struct weiri_layout *layout, const char *what,
                                   const struct weir_histogram_options *options, const void *out,
                                   struct weir_histogram_options *given, weir_error *error);
/* Errors: WEIR_INVALID_ARGUMENT unless both layouts are equal. */
enum weir_status weiri_layout_check(const struct weiri_layout *expected, const struct weiri_layout *came,
                                    weir_error *error);

static inline size_t weiri_layout_bucket(const struct weiri_layout *layout, uint64_t value)
{
	return value <= layout->largest ? weiri_bucket_of(value, layout->precision) : layout->buckets - 1;
}

#endif
