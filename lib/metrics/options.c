/*
 * options.c - the options of counters and means.
 */
#include "metrics/options.h"

#include "base/error.h"

enum weir_status weiri_metrics_create(const char *what, const struct weir_metrics_options *options, size_t words,
                                      const void *out, struct weiri_stripes **stripes, weir_error *error)
{
	static const struct weir_metrics_options usual = {.struct_size = sizeof(usual)};
	const struct weir_metrics_options *chosen = options != NULL ? options : &usual;
	enum weir_status status = WEIR_OK;

	if (out == NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "%s: out is NULL", what);
	if (chosen->struct_size != sizeof(*chosen))
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "%s: options of %zu bytes, expected %zu", what,
		                  chosen->struct_size, sizeof(*chosen));
	if (chosen->flags != 0)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "%s: unknown flags 0x%x", what, chosen->flags);
	*stripes = weiri_stripes_create(what, chosen->threads, words, chosen->allocator, &status, error);
	return status;
}
