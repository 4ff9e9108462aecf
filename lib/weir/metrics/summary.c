/*
 * summary.c - counts of values in buckets, for one thread: merging, subtracting, and quantiles.
 */
#include "metrics/summary.h"

#include <inttypes.h>
#include <math.h>
#include <stdalign.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/options.h"

enum weir_status weiri_layout_init(struct weiri_layout *layout, const char *what,
                                   const struct weir_histogram_options *options, const void *out,
                                   struct weir_histogram_options *given, weir_error *error)
{
	enum weir_status status;

	if (out == NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "%s: out is NULL", what);
	status = weiri_options_read(what, options, given, sizeof(*given), error);
	if (status == WEIR_OK)
		status = weiri_options_flags(what, given->flags, 0, error);
	if (status != WEIR_OK)
		return status;
	if (given->precision > WEIR_HISTOGRAM_MAX_PRECISION)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "%s: precision %u, expected 1 to %d", what, given->precision,
		                  WEIR_HISTOGRAM_MAX_PRECISION);
	*layout = (struct weiri_layout){
		.precision = given->precision != 0 ? given->precision : WEIR_HISTOGRAM_DEFAULT_PRECISION,
		.largest = given->largest != 0 ? given->largest : UINT64_MAX,
	};
	layout->buckets = weiri_bucket_of(layout->largest, layout->precision) + 2;
	return WEIR_OK;
}

enum weir_status weiri_layout_check(const struct weiri_layout *expected, const struct weiri_layout *came,
                                    weir_error *error)
{
	if (expected->precision == came->precision && expected->largest == came->largest)
		return WEIR_OK;
	return weiri_fail(error, WEIR_INVALID_ARGUMENT,
	                  "summary: expected precision %u and largest %" PRIu64 ", got %u and %" PRIu64,
	                  expected->precision, expected->largest, came->precision, came->largest);
}

static size_t size_of(const struct weiri_layout *layout)
{
	return sizeof(weir_summary) + layout->buckets * sizeof(uint64_t);
}

enum weir_status weir_summary_create(const struct weir_histogram_options *options, weir_summary **out,
                                     weir_error *error)
{
	struct weir_histogram_options given;
	struct weiri_layout layout;
	enum weir_status status = weiri_layout_init(&layout, "summary", options, out, &given, error);
	weir_allocator allocator;
	weir_summary *summary;

	if (status != WEIR_OK)
		return status;
	allocator = weiri_allocator_or_default(given.allocator);
	summary = weiri_allocate_zeroed(&allocator, size_of(&layout), alignof(weir_summary));
	if (summary == NULL)
		return weiri_fail(error, WEIR_RESOURCE_EXHAUSTED, "summary: no memory for %zu buckets", layout.buckets);
	summary->layout = layout;
	summary->allocator = allocator;
	*out = summary;
	return WEIR_OK;
}

enum weir_status weir_summary_destroy(weir_summary *summary, weir_error *error)
{
	(void)error; /* it never fails */
	if (summary != NULL) {
		weir_allocator allocator = summary->allocator;

		weiri_release(&allocator, summary, size_of(&summary->layout), alignof(weir_summary));
	}
	return WEIR_OK;
}

void weir_summary_add(weir_summary *summary, uint64_t value)
{
	summary->counts[weiri_layout_bucket(&summary->layout, value)]++;
	summary->count++;
}

void weir_summary_clear(weir_summary *summary)
{
	memset(summary->counts, 0, summary->layout.buckets * sizeof(*summary->counts));
	summary->count = 0;
}

static enum weir_status combine(weir_summary *into, const weir_summary *from, uint64_t sign, weir_error *error)
{
	enum weir_status status;

	if (into == NULL || from == NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "summary: %s is NULL", into == NULL ? "it" : "the other one");
	status = weiri_layout_check(&into->layout, &from->layout, error);
	if (status != WEIR_OK)
		return status;
	for (size_t i = 0; i < into->layout.buckets; i++)
		into->counts[i] += sign * from->counts[i];
	into->count += sign * from->count;
	return WEIR_OK;
}

enum weir_status weir_summary_merge(weir_summary *into, const weir_summary *from, weir_error *error)
{
	return combine(into, from, 1, error);
}

enum weir_status weir_summary_subtract(weir_summary *summary, const weir_summary *earlier, weir_error *error)
{
	return combine(summary, earlier, UINT64_MAX, error); /* minus one */
}

uint64_t weir_summary_count(const weir_summary *summary)
{
	return summary->count;
}

size_t weir_summary_bucket_count(const weir_summary *summary)
{
	return summary->layout.buckets;
}

struct weir_bucket weir_summary_bucket(const weir_summary *summary, size_t index)
{
	const struct weiri_layout *layout = &summary->layout;
	struct weir_bucket bucket = {layout->largest, UINT64_MAX, summary->counts[index]};

	/*
	 * The last bucket is for values above the largest. It stays empty if the largest is UINT64_MAX.
	 */
	if (index == layout->buckets - 1) {
		bucket.low = layout->largest == UINT64_MAX ? UINT64_MAX : layout->largest + 1;
		return bucket;
	}
	bucket.low = weiri_bucket_low(index, layout->precision);
	bucket.high = weiri_bucket_high(index, layout->precision);
	if (bucket.high > layout->largest)
		bucket.high = layout->largest;
	return bucket;
}

/*
 * Returns ceil(q n), but at least 1. It returns at most n, although n may be rounded up as a
 * double.
 */
static uint64_t rank_of(double q, uint64_t n)
{
	double rank = ceil(q * (double)n);

	if (rank < 1)
		return 1;
	return rank >= (double)n ? n : (uint64_t)rank;
}

enum weir_status weir_summary_quantile(const weir_summary *summary, double q, uint64_t *value)
{
	struct weir_bucket bucket;
	uint64_t left;
	size_t i = 0;

	if (summary == NULL || value == NULL || !(q >= 0 && q <= 1))
		return WEIR_INVALID_ARGUMENT;
	if (summary->count == 0)
		return WEIR_FAILED_PRECONDITION;
	left = rank_of(q, summary->count);
	/* The counts add up to `count`, so this ends. */
	while (left > summary->counts[i])
		left -= summary->counts[i++];
	bucket = weir_summary_bucket(summary, i);
	if (i == summary->layout.buckets - 1) {
		*value = bucket.low;
		return WEIR_OUT_OF_RANGE;
	}
	*value = bucket.low + (bucket.high - bucket.low) / 2;
	return WEIR_OK;
}
