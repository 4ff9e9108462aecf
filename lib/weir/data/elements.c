/*
 * elements.c - see elements.h.
 */
#include "data/elements.h"

#include <stdalign.h>
#include <string.h>

#include "base/memory.h"

enum { FIRST_ROOM = 16 };

static void release_memory(struct weiri_elements *elements, const weir_allocator *allocator)
{
	weiri_release(allocator, elements->parts, elements->room * elements->width * sizeof(weir_tensor *),
	              alignof(weir_tensor *));
}

bool weiri_elements_grow(struct weiri_elements *elements, size_t most, const weir_allocator *allocator)
{
	size_t room = elements->room < FIRST_ROOM ? FIRST_ROOM : elements->room * 2, bytes;
	weir_tensor **parts;

	if (room > most)
		room = most;
	if (!weiri_multiply(room, elements->width * sizeof(weir_tensor *), &bytes))
		return false;
	parts = weiri_allocate(allocator, bytes, alignof(weir_tensor *));
	if (parts == NULL)
		return false;
	if (elements->count != 0)
		memcpy(parts, elements->parts, elements->count * elements->width * sizeof(weir_tensor *));
	release_memory(elements, allocator);
	elements->parts = parts;
	elements->room = room;
	return true;
}

void weiri_elements_clear(struct weiri_elements *elements)
{
	if (elements->count != 0)
		weiri_parts_release(elements->parts, elements->count * elements->width);
	elements->count = 0;
}

void weiri_elements_fini(struct weiri_elements *elements, const weir_allocator *allocator)
{
	weiri_elements_clear(elements);
	release_memory(elements, allocator);
}
