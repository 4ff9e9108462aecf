/*
 * counter.c - a counter: one word of each stripe.
 */
#include <weir/metrics.h>

#include "metrics/options.h"
#include "metrics/stripes.h"

struct weir_counter {
	struct weiri_stripes stripes;
};

enum weir_status weir_counter_create(const struct weir_metrics_options *options, weir_counter **out, weir_error *error)
{
	struct weiri_stripes *stripes;
	enum weir_status status = weiri_metrics_create("counter", options, 1, out, &stripes, error);

	if (status == WEIR_OK)
		*out = WEIRI_CONTAINER_OF(stripes, weir_counter, stripes);
	return status;
}

enum weir_status weir_counter_destroy(weir_counter *counter, weir_error *error)
{
	(void)error; /* it never fails */
	weiri_stripes_destroy(counter != NULL ? &counter->stripes : NULL);
	return WEIR_OK;
}

void weir_counter_add(weir_counter *counter, int64_t n)
{
	weiri_stripes_add(&counter->stripes, 0, (uint64_t)n);
}

int64_t weir_counter_read(const weir_counter *counter)
{
	return (int64_t)weiri_stripes_sum(&counter->stripes, 0);
}
