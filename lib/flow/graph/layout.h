/*
 * layout.h - several arrays in one allocation.
 *
 * A caller adds the parts, allocates `size` bytes aligned to WEIRI_LAYOUT_ALIGNMENT, and finds each
 * part at its offset. After an overflow `size` stays SIZE_MAX, so the allocation fails.
 */
#ifndef WEIRI_LAYOUT_H
#define WEIRI_LAYOUT_H

#include <stddef.h>
#include <stdint.h>

#include "base/memory.h"

enum { WEIRI_LAYOUT_ALIGNMENT = 16 };

struct weiri_layout {
	size_t size;
};

/* Adds an array of `count` elements. Returns its offset. */
static inline size_t weiri_layout_add(struct weiri_layout *layout, size_t count, size_t element_size)
{
	const size_t up = WEIRI_LAYOUT_ALIGNMENT - 1;
	size_t offset = layout->size;
	size_t bytes;

	if (offset == SIZE_MAX || !weiri_multiply(count, element_size, &bytes) || !weiri_add(bytes, up, &bytes) ||
	    !weiri_add(offset, bytes & ~up, &layout->size)) {
		layout->size = SIZE_MAX;
		return 0;
	}
	return offset;
}

static inline void *weiri_layout_at(void *block, size_t offset)
{
	return (char *)block + offset;
}

#endif
