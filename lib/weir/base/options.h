/*
 * options.h - reading the options that a caller gives: one rule and one message for all of them.
 */
#ifndef WEIRI_OPTIONS_H
#define WEIRI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <weir/status.h>

#include "base/compiler.h"

/*
 * Copies *given to *options, which has `size` bytes. Both begin with size_t struct_size. A smaller
 * struct is that of an earlier version; the fields that it lacks become 0, their default. If
 * `given` is NULL, all fields become 0. Afterwards options->struct_size is `size`. Errors, with
 * `what` in the message: WEIR_INVALID_ARGUMENT if struct_size is larger than `size`, or smaller
 * than a size_t.
 */
WEIRI_SHARED enum weir_status weiri_options_read(const char *what, const void *given, void *options, size_t size,
                                                 weir_error *error);

/* Errors: WEIR_INVALID_ARGUMENT if `flags` has a bit that is not in `known`. */
WEIRI_SHARED enum weir_status weiri_options_flags(const char *what, uint32_t flags, uint32_t known, weir_error *error);

/*
 * Returns true if struct_size is the size of this version's struct, or of a smaller, earlier one.
 */
static inline bool weiri_options_size_ok(size_t struct_size, size_t ours)
{
	return struct_size >= sizeof(size_t) && struct_size <= ours;
}

#endif
