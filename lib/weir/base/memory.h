/*
 * memory.h - allocation through the allocator with which an object was created.
 */
#ifndef WEIRI_MEMORY_H
#define WEIRI_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <weir/alloc.h>

#include "base/compiler.h"

/*
 * Returns *allocator, or the default allocator if `allocator` is NULL. A create call copies the
 * result into its object.
 */
WEIRI_SHARED weir_allocator weiri_allocator_or_default(const weir_allocator *allocator);

/* The function of the default allocator; it tells that allocator from others. */
void *weiri_default_allocate(void *context, size_t size, size_t alignment);
void weiri_default_release(void *context, void *memory, size_t size, size_t alignment);

/*
 * Returns `size` bytes, not cleared. Returns NULL if there is no memory, or size is 0 or larger
 * than PTRDIFF_MAX.
 */
WEIRI_SHARED void *weiri_allocate(const weir_allocator *allocator, size_t size, size_t alignment);
/* The same, cleared. */
WEIRI_SHARED void *weiri_allocate_zeroed(const weir_allocator *allocator, size_t size, size_t alignment);
/* Accepts NULL. size and alignment are those of the allocation. */
WEIRI_SHARED void weiri_release(const weir_allocator *allocator, void *memory, size_t size, size_t alignment);

/* *product = a * b; returns false if that overflows. */
WEIRI_MUST_CHECK static inline bool weiri_multiply(size_t a, size_t b, size_t *product)
{
	return !__builtin_mul_overflow(a, b, product);
}

/* *sum = a + b; returns false if that overflows. */
WEIRI_MUST_CHECK static inline bool weiri_add(size_t a, size_t b, size_t *sum)
{
	return !__builtin_add_overflow(a, b, sum);
}

#endif
