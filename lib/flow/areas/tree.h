/*
 * tree.h - a sorted collection whose versions are immutable: an edit shares with the old version
 * what it does not change.
 *
 * Algorithm. An object keeps its version in an atomic pointer to a state that holds roots. A change
 * reads the state in a section, edits, and publishes by one CAS. So a change is atomic, however
 * many keys it touches, and each read sees one instant. A change retries if another thread
 * published first.
 * Source. A treap (Seidel, Aragon, Algorithmica 1996) with path copying (Driscoll, Sarnak, Sleator,
 * Tarjan, JCSS 1989). Publishing such a version by one CAS of its root is common practice.
 *
 * Invariants
 *   T1  a node that was published never changes
 *   T2  a node that is not `published` belongs to one edit, which may change it, and which frees or
 *       publishes it
 *   T3  an edit's `made` holds every node that the edit made; the origin of each is the published
 *       node that it replaces or removes
 *   T4  the weight of a node is not less than those of its children, and its count is theirs and
 *       its own item: so ranks are right, and the depth is that of a random tree
 * Reclamation: what a published edit replaced is retired after the CAS, so a section that read the
 * state before may walk it. All of it was born before the state was published and retired after the
 * state was replaced (I1 of reclaim/section.h).
 * Cost: 2 log2 n nodes per key, on average.
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
	struct weiri_tree *origin;    /* the edit's: the node that it replaces */
	struct weiri_tree *next_made; /* the edit's */
	void *item;
	uint64_t weight; /* not less than those below it */
	size_t count;    /* of items, this one's and below */
	int published, dropped;
	weir_allocator allocator;
};

/* Less than, equal to or greater than 0 if `key` is before, equal to, or after the item's key. */
typedef int weiri_tree_compare(const void *key, const void *item);

struct weiri_tree_edit {
	const weir_allocator *allocator;
	struct weiri_tree *made;
	int failed; /* no memory: its results are not usable */
};

static inline size_t weiri_tree_count(const struct weiri_tree *tree)
{
	return tree != NULL ? tree->count : 0;
}

/* NULL: there is no such item. */
void *weiri_tree_find(const struct weiri_tree *tree, weiri_tree_compare *compare, const void *key);
/* The item that has `rank` smaller items; NULL: there are not as many items. */
void *weiri_tree_at(const struct weiri_tree *tree, size_t rank);

struct weiri_tree_edit weiri_tree_edit_begin(const weir_allocator *allocator);
/*
 * The version with the item added; its key `key` was not in the tree. `seed` is a hash: equal keys
 * have equal seeds.
 */
struct weiri_tree *weiri_tree_insert(struct weiri_tree_edit *edit, struct weiri_tree *tree, weiri_tree_compare *compare,
                                     const void *key, uint64_t seed, void *item);
/* The version without the key's item, which was in the tree. */
struct weiri_tree *weiri_tree_remove(struct weiri_tree_edit *edit, struct weiri_tree *tree, weiri_tree_compare *compare,
                                     const void *key);
/* The version with another item in place of the key's item, which was in the tree. */
struct weiri_tree *weiri_tree_replace(struct weiri_tree_edit *edit, struct weiri_tree *tree,
                                      weiri_tree_compare *compare, const void *key, void *item);
/* Ends the edit without an effect. */
void weiri_tree_discard(struct weiri_tree_edit *edit);
/*
 * Ends the edit, in the section that read `state` from *current.
 * 1, *status WEIR_OK: `next` replaced `state`; `state` and the replaced nodes are retired.
 * 1, *status WEIR_RESOURCE_EXHAUSTED: there was no memory (`next` is NULL, or the edit failed);
 * nothing changed.
 * 0: *current was another state; nothing changed.
 */
int weiri_tree_publish(struct weiri_tree_edit *edit, struct weiri_scope *scope,
                       _Atomic(struct weiri_retired *) *current, struct weiri_retired *state,
                       struct weiri_retired *next, enum weir_status *status);

/*
 * Retires, or frees if there is no scope, every node of a version that has no successor. each(), if
 * not NULL, gets the items.
 */
void weiri_tree_end(struct weiri_tree *tree, struct weiri_scope *scope, void (*each)(void *context, void *item),
                    void *context);

#endif
