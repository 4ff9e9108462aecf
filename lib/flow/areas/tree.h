/*
 * tree.h - a sorted collection whose versions are immutable: an edit shares with the old version
 * what it does not change.
 *
 * Algorithm. An object has an atomic pointer to its state, which holds the roots of versions. A
 * change reads the state in a section, edits the versions, and publishes a new state by one CAS. So
 * a change is atomic, however many keys it touches, and each read sees one instant. A change
 * retries if another thread published first.
 * Source. A treap (Seidel, Aragon, Algorithmica 1996) with path copying (Driscoll, Sarnak, Sleator,
 * Tarjan, JCSS 1989). Publishing such a version by one CAS of its root is common practice.
 *
 * Invariants
 *   T1  a node that was published never changes
 *   T2  a node that is not `published` belongs to one edit. That edit may change it, and in the end
 *       frees or publishes it
 *   T3  an edit's `made` holds every node that the edit made; the origin of each is the published
 *       node that it replaces or removes
 *   T4  the weight of a node is not less than the weights of its children, and its count is the sum
 *       of their counts plus 1 for its own item. So ranks are right, and the depth is that of a
 *       random tree
 * Reclamation: the nodes that a published edit replaced are retired after the CAS. A section that
 * read the state before the CAS may still walk them: all were born before that state was published,
 * and are retired after it was replaced (I1 of reclaim/section.h).
 * Cost: 2 log2 n nodes per key, on average.
 * Checked: tests/test_tree.c, stress/model/check_staging.c.
 */
#ifndef WEIRI_QUEUE_TREE_H
#define WEIRI_QUEUE_TREE_H

#include <weir/alloc.h>

#include "reclaim/scope.h"

/* A node. The root stands for its version; NULL is the empty version. */
struct weiri_tree {
	struct weiri_retired retired; /* first */
	struct weiri_tree *left, *right;
	struct weiri_tree *origin;    /* used by the edit: the node that this one replaces or removes */
	struct weiri_tree *next_made; /* used by the edit: the list of its nodes */
	void *item;
	uint64_t weight; /* not less than the weights of the nodes below */
	size_t count;    /* of the items in this node and below */
	bool published, dropped;
	weir_allocator allocator;
};

/* Returns less than, equal to, or more than 0 if `key` is before, equal to, or after the item's. */
typedef int weiri_tree_compare(const void *key, const void *item);

struct weiri_tree_edit {
	const weir_allocator *allocator;
	struct weiri_tree *made;
	bool failed; /* true: there was no memory, and the edit's results are not usable */
};

static inline size_t weiri_tree_count(const struct weiri_tree *tree)
{
	return tree != NULL ? tree->count : 0;
}

/* Returns the item with this key, or NULL if there is none. */
void *weiri_tree_find(const struct weiri_tree *tree, weiri_tree_compare *compare, const void *key);
/* Returns the item that has `rank` smaller items, or NULL if there are not so many items. */
void *weiri_tree_at(const struct weiri_tree *tree, size_t rank);

struct weiri_tree_edit weiri_tree_edit_begin(const weir_allocator *allocator);
/*
 * Returns the version with the item added. The item's key is `key`, which must not be in the tree.
 * `seed` is a hash: equal keys have equal seeds.
 */
struct weiri_tree *weiri_tree_insert(struct weiri_tree_edit *edit, struct weiri_tree *tree, weiri_tree_compare *compare,
                                     const void *key, uint64_t seed, void *item);
/* Returns the version without the item of this key, which must be in the tree. */
struct weiri_tree *weiri_tree_remove(struct weiri_tree_edit *edit, struct weiri_tree *tree, weiri_tree_compare *compare,
                                     const void *key);
/* Returns the version with `item` in place of the item of this key, which must be in the tree. */
struct weiri_tree *weiri_tree_replace(struct weiri_tree_edit *edit, struct weiri_tree *tree,
                                      weiri_tree_compare *compare, const void *key, void *item);
/* Ends the edit without an effect. */
void weiri_tree_discard(struct weiri_tree_edit *edit);
/*
 * Ends the edit, in the section that read `state` from *current. Returns
 *   1, *status WEIR_OK: `next` has replaced `state`; `state` and the replaced nodes are retired;
 *   1, *status WEIR_RESOURCE_EXHAUSTED: there was no memory (`next` is NULL, or the edit failed),
 *      and nothing has changed;
 *   0: *current was another state, and nothing has changed.
 * If nothing has changed, `next` and the edit's nodes are freed.
 */
bool weiri_tree_publish(struct weiri_tree_edit *edit, struct weiri_scope *scope,
                        _Atomic(struct weiri_retired *) *current, struct weiri_retired *state,
                        struct weiri_retired *next, enum weir_status *status);

/*
 * Retires every node of a version from which no later version was made; frees them if `scope` is
 * NULL. Calls each(), if that is not NULL, for each item.
 */
void weiri_tree_end(struct weiri_tree *tree, struct weiri_scope *scope, void (*each)(void *context, void *item),
                    void *context);

#endif
