/*
 * published_tree.h - a set of items with keys that only grows, read by any number of threads while
 * it grows.
 *
 * For items that are found by a name and stay as long as there are readers. Items embed the branch
 * as a member. Each item is a leaf and may become the root of a subtree: two bits of the hash
 * choose one of its four places. A key's path through the tree is fixed by its hash, and the item
 * is in the first place on the path that was free. So nothing is ever moved, and neither the tree
 * nor an insert allocates. The depth grows with the logarithm of the number of items. Items whose
 * hashes are equal form a chain.
 *
 * Source. A hash trie of four places at each node (Wellons, "An easy-to-implement, arena-friendly
 * hash map", 2023, which also suggests the compare-and-swap).
 *
 * Invariants
 *   T1  a place is written once, by the CAS that fills it
 *   T2  no two items have equal keys: an insert compares its key with every item on its path
 * Pairs
 *   P1  insert -> find, insert: the item, whose fields were written before
 * Linearization. Insert: the CAS. Found: the load of the place with the item. Not found: the load
 *   of the free place; by T1 no item with that key was in the tree at that moment.
 * Progress: find is wait-free in a tree that has stopped growing, else lock-free; a CAS of an insert
 *   fails only because another insert succeeded there.
 * Checked: tests/test_published.c, stress/model/check_published.c.
 */
#ifndef WEIRI_PUBLISHED_TREE_H
#define WEIRI_PUBLISHED_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/atomic.h"

enum { WEIRI_BRANCH_PLACES = 4, WEIRI_BRANCH_BITS = 2 };

struct weiri_branch {
	_Atomic(struct weiri_branch *) places[WEIRI_BRANCH_PLACES];
	uint64_t hash; /* written before the insert, then never */
};

struct weiri_published_tree {
	_Atomic(struct weiri_branch *) root;
};

/* Returns true if the key of `item` is `key`. Called only if their hashes are equal. */
typedef bool weiri_branch_equal(const void *key, const struct weiri_branch *item);

static inline void weiri_published_tree_init(struct weiri_published_tree *tree)
{
	/* [relaxed] not shared yet. */
	weiri_store_relaxed(&tree->root, NULL);
}

static inline void weiri_branch_init(struct weiri_branch *item, uint64_t hash)
{
	item->hash = hash;
	/* [relaxed] not shared yet. */
	for (int i = 0; i < WEIRI_BRANCH_PLACES; i++)
		weiri_store_relaxed(&item->places[i], NULL);
}

/*
 * Walks the path of `hash` from *place, which is the root's. Returns the item with the key. Or returns NULL, and *place
 * is the first place on the path that was free.
 */
static inline struct weiri_branch *weiri_published_tree_walk(_Atomic(struct weiri_branch *) **place, uint64_t hash,
                                                             weiri_branch_equal *equal, const void *key)
{
	struct weiri_branch *item;
	uint64_t rest = hash;

	/* [P1 acquire] pairs with the CAS of an insert. */
	while ((item = weiri_load_acquire(*place)) != NULL) {
		if (item->hash == hash && equal(key, item))
			return item;
		*place = &item->places[rest % WEIRI_BRANCH_PLACES];
		rest >>= WEIRI_BRANCH_BITS;
	}
	return NULL;
}

/* Returns the item with the key, or NULL if the tree has none. */
static inline struct weiri_branch *weiri_published_tree_find(struct weiri_published_tree *tree, uint64_t hash,
                                                             weiri_branch_equal *equal, const void *key)
{
	_Atomic(struct weiri_branch *) *place = &tree->root;

	return weiri_published_tree_walk(&place, hash, equal, key);
}

/*
 * Returns NULL if it inserted `item`, which weiri_branch_init() prepared and whose key is `key`.
 * Otherwise returns the item with that key that is in the tree already, and `item` is still the
 * caller's.
 */
static inline struct weiri_branch *weiri_published_tree_insert(struct weiri_published_tree *tree,
                                                               struct weiri_branch *item, weiri_branch_equal *equal,
                                                               const void *key)
{
	_Atomic(struct weiri_branch *) *place;
	struct weiri_branch *found;
	struct weiri_branch *expected;

	do {
		place = &tree->root;
		found = weiri_published_tree_walk(&place, item->hash, equal, key);
		if (found != NULL)
			return found;
		expected = NULL;
		/* [P1 release] pairs with the loads of the walks. T1: the place was free. */
	} while (!weiri_cas_release(place, &expected, item));
	return NULL;
}

#endif
