/*
 * options.c - see options.h.
 */
#include "base/options.h"

#include <string.h>

#include "base/error.h"

enum weir_status weiri_options_read(const char *what, const void *given, void *options, size_t size, weir_error *error)
{
	size_t given_size = sizeof(size_t);

	memset(options, 0, size);
	if (given != NULL)
		memcpy(&given_size, given, sizeof(given_size));
	if (!weiri_options_size_ok(given_size, size))
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "%s: struct_size of the options is %zu, expected %zu to %zu",
		                  what, given_size, sizeof(size_t), size);
	if (given != NULL)
		memcpy(options, given, given_size);
	memcpy(options, &size, sizeof(size));
	return WEIR_OK;
}

enum weir_status weiri_options_flags(const char *what, uint32_t flags, uint32_t known, weir_error *error)
{
	if ((flags & ~known) != 0)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "%s: unknown flags 0x%x", what, (unsigned)(flags & ~known));
	return WEIR_OK;
}
