/*
 * options.c - see options.h.
 */
#include "metrics/options.h"

#include "base/error.h"

enum weir_status weiri_metrics_check(const char *what, const void *out, size_t size, size_t expected, uint32_t flags,
                                     weir_error *error)
{
	if (out == NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "%s: out is NULL", what);
	if (size != expected)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "%s: options of %zu bytes, expected %zu", what, size, expected);
	if (flags != 0)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "%s: unknown flags 0x%x", what, flags);
	return WEIR_OK;
}

enum weir_status weiri_metrics_create(const char *what, const struct weir_metrics_options *options, size_t words,
                                      const void *out, struct weiri_stripes **stripes, weir_error *error)
{
	static const struct weir_metrics_options usual = {.struct_size = sizeof(usual)};
	const struct weir_metrics_options *chosen = options != NULL ? options : &usual;
	enum weir_status status =
		weiri_metrics_check(what, out, chosen->struct_size, sizeof(*chosen), chosen->flags, error);

	if (status != WEIR_OK)
		return status;
	*stripes = weiri_stripes_create(what, chosen->threads, words, chosen->allocator, &status, error);
	return status;
}
