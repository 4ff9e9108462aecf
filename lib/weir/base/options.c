/*
 * options.c - see options.h.
 */
#include "base/options.h"

#include <string.h>

#include "base/error.h"

/* Returns the place of the first byte from `begin` on that is not 0, or `end`. */
static size_t first_set(const unsigned char *bytes, size_t begin, size_t end)
{
	while (begin < end && bytes[begin] == 0)
		begin++;
	return begin;
}

/* Checks the size that the caller gave, and what lies behind the `size` bytes that we know. */
static enum weir_status check_size(const char *what, const void *given, size_t given_size, size_t size,
                                   weir_error *error)
{
	size_t set;

	if (!weiri_options_size_ok(given_size))
		return weiri_fail(error, WEIR_INVALID_ARGUMENT,
		                  "%s: struct_size of the options is %zu, expected %zu, or another from %zu to %d; begin the "
		                  "struct with its initialiser, WEIR_..._INIT",
		                  what, given_size, size, sizeof(size_t), WEIRI_OPTIONS_MAX_SIZE);
	set = first_set(given, size, given_size);
	if (set < given_size)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT,
		                  "%s: struct_size of the options is %zu, expected %zu, and byte %zu is not 0: "
		                  "this release lacks that field",
		                  what, given_size, size, set);
	return WEIR_OK;
}

enum weir_status weiri_options_read(const char *what, const void *given, void *options, size_t size, weir_error *error)
{
	enum weir_status status;
	size_t given_size;

	memset(options, 0, size);
	if (given != NULL) {
		memcpy(&given_size, given, sizeof(given_size));
		status = check_size(what, given, given_size, size, error);
		if (status != WEIR_OK)
			return status;
		memcpy(options, given, given_size < size ? given_size : size);
	}
	memcpy(options, &size, sizeof(size));
	return WEIR_OK;
}

enum weir_status weiri_options_flags(const char *what, uint32_t flags, uint32_t known, weir_error *error)
{
	if ((flags & ~known) != 0)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "%s: unknown flags 0x%x", what, (unsigned)(flags & ~known));
	return WEIR_OK;
}

void weiri_statistics_write(void *stats, const void *ours, size_t size)
{
	size_t room;

	memcpy(&room, stats, sizeof(room));
	memset(stats, 0, room);
	memcpy(stats, ours, room < size ? room : size);
	memcpy(stats, &room, sizeof(room));
}
