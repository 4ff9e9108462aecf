/*
 * options.c - see options.h.
 */
#include "metrics/options.h"

#include "base/error.h"
#include "base/options.h"

enum weir_status weiri_metrics_create(const char *what, const struct weir_metrics_options *options, size_t words,
                                      const void *out, struct weiri_stripes **stripes, weir_error *error)
{
	struct weir_metrics_options given;
	enum weir_status status;

	if (out == NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "%s: out is NULL", what);
	status = weiri_options_read(what, options, &given, sizeof(given), error);
	if (status == WEIR_OK)
		status = weiri_options_flags(what, given.flags, 0, error);
	if (status != WEIR_OK)
		return status;
	*stripes = weiri_stripes_create(what, given.threads, words, given.allocator, &status, error);
	return status;
}
