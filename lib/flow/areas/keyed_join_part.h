/*
 * keyed_join_part.h - what a keyed join keeps for a key: a chain of parts, the newest first.
 *
 * A part adds one component to the earlier parts, which do not change. So an insert changes no
 * count and copies no tuple, and an insert that came too late has changed nothing.
 *
 * Invariants
 *   B1  a part never changes once it is published
 *   B2  the published version owns the parts of its tuples; a thread that publishes a version
 *       without a tuple retires the parts of that tuple
 *   B3  a part's tensor is released when no section can see the part: a take may read it before it
 *       knows whether it succeeds
 */
#ifndef WEIRI_QUEUE_KEYED_JOIN_PART_H
#define WEIRI_QUEUE_KEYED_JOIN_PART_H

#include <weir/tensor.h>

#include "reclaim/scope.h"

struct weiri_keyed_join_part {
	struct weiri_retired retired; /* first */
	weir_tensor *tensor;
	size_t component;
	/* Set before it is published. */
	struct weiri_keyed_join_part *before;
	uint64_t have; /* a bit for each component, this and earlier ones */
	int64_t index;
	uint64_t order;                     /* of a ready tuple's first */
	struct weiri_keyed_join_part *next; /* of its creator */
	weir_allocator allocator;
	size_t key_size;
	char key[];
};

/* A part for a row of `values`; NULL: no memory. */
struct weiri_keyed_join_part *weiri_keyed_join_part_create(const weir_allocator *allocator, size_t component,
                                                           const weir_bytes *key, weir_tensor *values, int64_t row);
/* Frees parts that were never published, linked by `next`. */
void weiri_keyed_join_parts_free(struct weiri_keyed_join_part *first);
/*
 * B2: retires a tuple, in the section; without a scope, frees a tuple that no other thread can see
 * any longer.
 */
void weiri_keyed_join_tuple_end(struct weiri_scope *scope, struct weiri_keyed_join_part *tuple);

/* The part of a tuple that has it. */
weir_tensor *weiri_keyed_join_tuple_tensor(const struct weiri_keyed_join_part *tuple, size_t component);

int weiri_keyed_join_compare_keys(const void *key, const void *item);
/* The order of ready tuples: by index, then as they became ready. */
int weiri_keyed_join_compare_order(const void *key, const void *item);
/* A hash of the key. */
uint64_t weiri_keyed_join_seed(const struct weiri_keyed_join_part *part);

#endif
