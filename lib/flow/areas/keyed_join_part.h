/*
 * keyed_join_part.h - what a keyed join keeps for a key: a chain of parts, the newest first.
 *
 * A part adds one component to the earlier parts, which do not change. So an insert writes to no
 * part that is published, and copies no tuple. An insert whose CAS fails has changed nothing.
 *
 * Invariants
 *   B1  a part never changes once it is published
 *   B2  the published version owns the parts of its tuples; a thread that publishes a version
 *       without a tuple retires the parts of that tuple
 *   B3  a part's tensor is released only when no section can see the part, because a take reads the
 *       tensor before it is certain that the take succeeds
 */
#ifndef WEIRI_QUEUE_KEYED_JOIN_PART_H
#define WEIRI_QUEUE_KEYED_JOIN_PART_H

#include <weir/tensor.h>

#include "reclaim/scope.h"

struct weiri_keyed_join_part {
	struct weiri_retired retired; /* first */
	weir_tensor *tensor;
	size_t component;
	/* An insert sets these before it publishes the part. */
	struct weiri_keyed_join_part *before;
	uint64_t have; /* a bit for the component of this part and of each earlier part */
	int64_t index;
	uint64_t order;                     /* set only in the newest part of a ready tuple */
	struct weiri_keyed_join_part *next; /* for the thread that creates the parts */
	weir_allocator allocator;
	size_t key_size;
	char key[];
};

/* Creates a part for a row of `values`. Returns NULL if there is no memory. */
struct weiri_keyed_join_part *weiri_keyed_join_part_create(const weir_allocator *allocator, size_t component,
                                                           const weir_bytes *key, weir_tensor *values, int64_t row);
/* Frees parts that were never published, linked by `next`. */
void weiri_keyed_join_parts_free(struct weiri_keyed_join_part *first);
/*
 * Retires the parts of a tuple (B2). If `scope` is NULL, frees them: then no other thread can see
 * the tuple any longer.
 */
void weiri_keyed_join_tuple_end(struct weiri_scope *scope, struct weiri_keyed_join_part *tuple);

/* Returns the tensor of a component that the tuple has. */
weir_tensor *weiri_keyed_join_tuple_tensor(const struct weiri_keyed_join_part *tuple, size_t component);

int weiri_keyed_join_compare_keys(const void *key, const void *item);
/* Orders ready tuples: by index, and within one index as they became ready. */
int weiri_keyed_join_compare_order(const void *key, const void *item);
/* Returns a hash of the key. */
uint64_t weiri_keyed_join_seed(const struct weiri_keyed_join_part *part);

#endif
