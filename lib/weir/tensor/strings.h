/*
 * strings.h - the memory of the strings of a WEIR_BYTES tensor.
 *
 * A builder does not know how long its strings will be, and finishing must not fail. So the strings
 * are copied into chunks, which grow by doubling, and the tensor keeps the chunks. Only one thread
 * may use such a list at a time.
 */
#ifndef WEIRI_TENSOR_STRINGS_H
#define WEIRI_TENSOR_STRINGS_H

#include <stddef.h>
#include <stdint.h>
#include <weir/alloc.h>
#include <weir/tensor.h>

#include "base/compiler.h"

/* The newest chunk of a list. An empty list is NULL. */
struct weiri_strings;

/*
 * Reserves size (> 0) bytes, not cleared, valid until weiri_strings_release(). Returns NULL if
 * there is no memory; then nothing has changed.
 */
char *weiri_strings_reserve(struct weiri_strings **strings, size_t size, const weir_allocator *allocator);
/* The allocated bytes of all chunks together. Accepts NULL. */
WEIRI_SHARED size_t weiri_strings_allocated(const struct weiri_strings *strings);
/*
 * Releases every chunk. Accepts NULL. The allocator is that of the weiri_strings_reserve() calls.
 */
void weiri_strings_release(struct weiri_strings *strings, const weir_allocator *allocator);

/*
 * Sets *total to the bytes of all strings together and returns true. Returns false if one has a
 * size but no data, or the sum overflows.
 */
WEIRI_MUST_CHECK bool weiri_strings_measure(const weir_bytes strings[], int64_t count, size_t *total);
/*
 * Copies strings to `room`, which must hold their total, and points to[] at the copies. Returns the
 * remaining room.
 */
char *weiri_strings_copy(weir_bytes to[], const weir_bytes from[], int64_t count, char *room);

#endif
