/*
 * ring_list.h - the memory of a list of rings: see ring_list.c.
 */
#ifndef WEIRI_RING_RING_LIST_H
#define WEIRI_RING_RING_LIST_H

#include <stddef.h>
#include <stdint.h>
#include <weir/ring_list.h>

#include "base/compiler.h"
#include "reclaim/scope.h"

/* Its ring follows in memory. */
struct weiri_ring_segment {
	struct weiri_retired retired;              /* first */
	_Atomic(struct weiri_ring_segment *) next; /* NULL: the last one */
	uint64_t number;                           /* constant */
	size_t memory_size;                        /* constant */
	weir_allocator allocator;                  /* constant */
};

struct weir_ring_list {
	size_t segment_capacity; /* constant, as the next three */
	size_t segment_size;
	struct weir_ring_options ring_options;
	weir_allocator allocator;
	WEIRI_ALIGNED_APART _Atomic(struct weiri_ring_segment *) tail;
	WEIRI_ALIGNED_APART _Atomic(struct weiri_ring_segment *) head;
};

#endif
