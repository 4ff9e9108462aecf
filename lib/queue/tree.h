/*
 * tree.h - a sorted collection whose versions are immutable: an edit shares with the old version what it does not touch.
 *
 * Algorithm. A treap (Seidel, Aragon, Algorithmica 1996) with path copying (Driscoll, Sarnak, Sleator, Tarjan, JCSS 1989). An object keeps
 * its version in an atomic pointer to a state that holds roots; a change reads it in a section, edits, and publishes by one CAS. So
 * any change, however many keys it touches, is atomic, and every look is of one instant; what others published first makes it try again.
 *
 * Invariants
 *   T1  a node that was published never changes
 *   T2  a node that is not `published` belongs to one edit, which may change it, and is freed with it or published by it
 *   T3  an edit's `made` holds every node that it made; the origin of each is the published node whose place it takes, or that is gone
 * Reclamation: what a published edit replaced is retired after the CAS, so a section that read the state before may walk it: all was
 *   born before the state was published and retired after it was replaced (I1 of reclaim/section.h).
 * Cost: 2 log2 n nodes a key, on average.
 * Checked: tests/test_tree.c, stress/model/check_staging.c.
 */
#ifndef WEIRI_QUEUE_TREE_H
#define WEIRI_QUEUE_TREE_H

#include <weir/alloc.h>

#include "reclaim/scope.h"

/* A version: its root; NULL is empty. */
struct weiri_tree {
	struct weiri_retired retired; /* first */
	struct weiri_tree *left, *right;
	struct weiri_tree *origin;    /* the edit's: what it takes the place of */
	struct weiri_tree *next_made; /* the edit's */
	void *item;
	uint64_t weight; /* not less than those below it */
	size_t count;    /* of items, this one's and below */
	int published, dropped;
	weir_allocator allocator;
};

/* Less than, equal to or greater than 0 as `key` is before, that of, or after the item's. */
typedef int weiri_tree_compare(const void *key, const void *item);

struct weiri_tree_edit {
	const weir_allocator *allocator;
	struct weiri_tree *made;
	int failed; /* for want of memory: what it returned is of no use */
};

static inline size_t weiri_tree_count(const struct weiri_tree *tree)
{
	return tree != NULL ? tree->count : 0;
}

/* NULL: not there. */
void *weiri_tree_find(const struct weiri_tree *tree, weiri_tree_compare *compare, const void *key);
/* The item with `rank` smaller ones; NULL: there are not so many. */
void *weiri_tree_at(const struct weiri_tree *tree, size_t rank);

struct weiri_tree_edit weiri_tree_edit_begin(const weir_allocator *allocator);
/* The version with the item, whose key is `key` and was not there; `seed` spreads: equal keys, equal seeds. */
struct weiri_tree *weiri_tree_insert(struct weiri_tree_edit *edit, struct weiri_tree *tree, weiri_tree_compare *compare,
                                     const void *key, uint64_t seed, void *item);
/* The version without the key's item, which was there. */
struct weiri_tree *weiri_tree_remove(struct weiri_tree_edit *edit, struct weiri_tree *tree, weiri_tree_compare *compare,
                                     const void *key);
/* The version with another item in the place of the key's, which was there. */
struct weiri_tree *weiri_tree_replace(struct weiri_tree_edit *edit, struct weiri_tree *tree,
                                      weiri_tree_compare *compare, const void *key, void *item);
/* Ends the edit: nothing was done. */
void weiri_tree_discard(struct weiri_tree_edit *edit);
/*
 * Ends the edit, in the section that read `state` from *current. 1: `next` took the place of `state`, which is retired, as is what was
 * replaced; or memory was short (`next` NULL, or the edit failed), nothing was done, and *status is WEIR_RESOURCE_EXHAUSTED. 0: another
 * state was there, and nothing was done.
 */
int weiri_tree_publish(struct weiri_tree_edit *edit, struct weiri_scope *scope,
                       _Atomic(struct weiri_retired *) *current, struct weiri_retired *state,
                       struct weiri_retired *next, enum weir_status *status);

/* Retires, or, without a scope, frees, every node of a version that was replaced by nothing. each(), if not NULL, gets the items. */
void weiri_tree_end(struct weiri_tree *tree, struct weiri_scope *scope, void (*each)(void *context, void *item),
                    void *context);

#endif
