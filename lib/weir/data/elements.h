/*
 * elements.h - a list of elements that grows: references to `width` tensors for each.
 *
 * A list of zeros with a width is empty. The allocator of all calls on a list is the same.
 */
#ifndef WEIRI_DATA_ELEMENTS_H
#define WEIRI_DATA_ELEMENTS_H

#include "data/stage.h"

struct weiri_elements {
	size_t width, count, room;
	weir_tensor **parts; /* of element i: at i * width */
};

static inline weir_tensor **weiri_elements_at(const struct weiri_elements *elements, size_t i)
{
	return elements->parts + i * elements->width;
}

/* For a list without room. */
WEIRI_MUST_CHECK bool weiri_elements_grow(struct weiri_elements *elements, size_t most,
                                          const weir_allocator *allocator);
/*
 * Makes room for one more element; the list doubles, up to `most` elements. Returns false if there is
 * no memory; the list is then as it was.
 */
WEIRI_MUST_CHECK static inline bool weiri_elements_make_room(struct weiri_elements *elements, size_t most,
                                                             const weir_allocator *allocator)
{
	return elements->count < elements->room || weiri_elements_grow(elements, most, allocator);
}
/* Releases the references. */
void weiri_elements_clear(struct weiri_elements *elements);
/* Releases the references and the memory. */
void weiri_elements_fini(struct weiri_elements *elements, const weir_allocator *allocator);

#endif
