/*
 * histogram.c - a histogram to which many threads add: one word of each stripe for each bucket.
 */
#include <stdalign.h>
#include <weir/metrics.h>

#include "base/error.h"
#include "base/memory.h"
#include "metrics/stripes.h"
#include "metrics/summary.h"

struct weir_histogram {
	struct weiri_layout layout;
	struct weiri_stripes *stripes;
	weir_allocator allocator;
};

enum weir_status weir_histogram_create(const struct weir_histogram_options *options, weir_histogram **out,
                                       weir_error *error)
{
	struct weir_histogram_options given;
	struct weiri_layout layout;
	enum weir_status status = weiri_layout_init(&layout, "histogram", options, out, &given, error);
	weir_allocator allocator;
	weir_histogram *histogram;

	if (status != WEIR_OK)
		return status;
	allocator = weiri_allocator_or_default(given.allocator);
	histogram = weiri_allocate_zeroed(&allocator, sizeof(*histogram), alignof(weir_histogram));
	if (histogram == NULL)
		return weiri_fail(error, WEIR_RESOURCE_EXHAUSTED, "histogram: no memory");
	*histogram = (weir_histogram){.layout = layout, .allocator = allocator};
	histogram->stripes = weiri_stripes_create("histogram", given.threads, layout.buckets, &allocator, &status, error);
	if (status == WEIR_OK)
		*out = histogram;
	else
		weiri_release(&allocator, histogram, sizeof(*histogram), alignof(weir_histogram));
	return status;
}

enum weir_status weir_histogram_destroy(weir_histogram *histogram, weir_error *error)
{
	(void)error; /* it never fails */
	if (histogram != NULL) {
		weir_allocator allocator = histogram->allocator;

		weiri_stripes_destroy(histogram->stripes);
		weiri_release(&allocator, histogram, sizeof(*histogram), alignof(weir_histogram));
	}
	return WEIR_OK;
}

void weir_histogram_add(weir_histogram *histogram, uint64_t value)
{
	weiri_stripes_add(histogram->stripes, weiri_layout_bucket(&histogram->layout, value), 1);
}

/* Adds one stripe to the summary. A read goes stripe by stripe, since each is contiguous memory. */
static void add_stripe(weir_summary *summary, const _Atomic(uint64_t) *words)
{
	for (size_t i = 0; i < summary->layout.buckets; i++) {
		uint64_t count = weiri_load_relaxed(&words[i]); /* [relaxed] see stripes.h */

		summary->counts[i] += count;
		summary->count += count;
	}
}

enum weir_status weir_histogram_read(const weir_histogram *histogram, weir_summary *summary, weir_error *error)
{
	enum weir_status status;

	if (histogram == NULL || summary == NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "histogram: %s is NULL", histogram == NULL ? "it" : "summary");
	status = weiri_layout_check(&histogram->layout, &summary->layout, error);
	if (status != WEIR_OK)
		return status;
	weir_summary_clear(summary);
	for (uint32_t i = 0; i < weiri_stripes_count(histogram->stripes); i++)
		add_stripe(summary, weiri_stripe_at(histogram->stripes, i));
	return WEIR_OK;
}
