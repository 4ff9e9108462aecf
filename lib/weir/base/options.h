/*
 * options.h - the structs that begin with their size: options that a caller gives, statistics that
 * it asks for. One rule and one message for all of them.
 *
 * The rule is that of openat2(2). A program and the library may be of different releases, and a
 * release adds fields only at the end of a struct. So the two may disagree about the size:
 *
 *     the caller's struct is smaller    the fields that it lacks are 0, which is their default
 *     the caller's struct is larger     accepted if all that the library does not know is 0, so the
 *                                       program asks for nothing but defaults there
 *     below a size_t, above the maximum refused: no release has such a struct
 *
 * The maximum bounds what is read of a struct whose size is a mistake.
 */
#ifndef WEIRI_OPTIONS_H
#define WEIRI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <weir/status.h>

#include "base/compiler.h"

/* A page of the smallest kind, as in openat2(2). */
enum weiri_options_bounds { WEIRI_OPTIONS_MAX_SIZE = 4096 };

/*
 * Copies *given to *options, which has `size` bytes, by the rule above. If `given` is NULL, all
 * fields become 0. Afterwards options->struct_size is `size`. Errors, with `what` and both sizes in
 * the message: WEIR_INVALID_ARGUMENT if struct_size is less than a size_t or more than
 * WEIRI_OPTIONS_MAX_SIZE, or if a byte of *given behind the first `size` is not 0.
 */
WEIRI_SHARED enum weir_status weiri_options_read(const char *what, const void *given, void *options, size_t size,
                                                 weir_error *error);

/* Errors: WEIR_INVALID_ARGUMENT if `flags` has a bit that is not in `known`. */
WEIRI_SHARED enum weir_status weiri_options_flags(const char *what, uint32_t flags, uint32_t known, weir_error *error);

/* Returns true if a struct of some release can have this size. */
static inline bool weiri_options_size_ok(size_t struct_size)
{
	return struct_size >= sizeof(size_t) && struct_size <= (size_t)WEIRI_OPTIONS_MAX_SIZE;
}

/*
 * Copies what this release counts, the `size` bytes of *ours, to *stats, as far as the caller has
 * room: stats->struct_size bytes, which weiri_options_size_ok() has accepted. What the caller has
 * room for and this release does not count becomes 0. stats->struct_size remains.
 */
void weiri_statistics_write(void *stats, const void *ours, size_t size);

#endif
