/*
 * barrier_part.h - what a barrier keeps of a key: a chain of parts, the newest first.
 *
 * A part adds one component to those before it, which stay as they are. So an insert touches no count and copies no tuple, and one that was too
 * late has changed nothing.
 *
 * Invariants
 *   B1  a part never changes once it is published
 *   B2  the parts of a tuple that is in the published version belong to it; who publishes a version without the tuple retires them
 *   B3  a part's tensor is released when no section can see the part: a take may read it before it knows that it will win
 */
#ifndef WEIRI_QUEUE_BARRIER_PART_H
#define WEIRI_QUEUE_BARRIER_PART_H

#include <weir/tensor.h>

#include "reclaim/scope.h"

struct weiri_barrier_part {
	struct weiri_retired retired; /* first */
	weir_tensor *tensor;
	size_t component;
	/* Set before it is published. */
	struct weiri_barrier_part *before;
	uint64_t have; /* a bit for each component, this one's and before */
	int64_t index;
	uint64_t order;                  /* of a ready tuple's first */
	struct weiri_barrier_part *next; /* of who made it */
	weir_allocator allocator;
	size_t key_size;
	char key[];
};

/* Of a row of `values`; NULL: no memory. */
struct weiri_barrier_part *weiri_barrier_part_create(const weir_allocator *allocator, size_t component,
                                                     const weir_bytes *key, weir_tensor *values, int64_t row);
/* Parts that were never published, by `next`. */
void weiri_barrier_parts_free(struct weiri_barrier_part *first);
/* B2: a tuple, in the section; or, without a scope, frees it, which nobody else can see any more. */
void weiri_barrier_tuple_end(struct weiri_scope *scope, struct weiri_barrier_part *tuple);

/* Of a tuple that has it. */
weir_tensor *weiri_barrier_tuple_tensor(const struct weiri_barrier_part *tuple, size_t component);

int weiri_barrier_compare_keys(const void *key, const void *item);
/* Ready tuples: by index, then as they became ready. */
int weiri_barrier_compare_order(const void *key, const void *item);
/* A number that spreads keys. */
uint64_t weiri_barrier_seed(const struct weiri_barrier_part *part);

#endif
