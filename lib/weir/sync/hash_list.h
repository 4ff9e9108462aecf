/*
 * hash_list.h - a lock-free set of nodes with keys: a list in hash order, and entry points into it.
 *
 * Algorithm. Split-ordered lists (Shalev and Shavit, JACM 2006) over Michael's list (SPAA 2002,
 * after Harris, DISC 2001), protected by the library's sections. All nodes are in one list, sorted
 * by the reversed bits of their hashes. So if there are 2^b buckets, each of them is a run of the
 * list. A bucket splits in two when one more mark is inserted in its middle; no node is ever moved.
 * The mark of a bucket is a link of the list that is never removed.
 * Two differences from the paper. A mark is not an object of its own: it lies in the table of
 * marks, so a look-up goes from the table straight to the first item of its bucket. And one thread
 * makes the mark of a bucket, the thread that claimed it. Other threads do not help: until the mark
 * is linked, they start at the nearest mark to the left. So a call that makes a mark, also a
 * look-up, allocates nothing. A thread stopped while it makes a mark costs the others the walk
 * through one bucket more; if the list grows by many doublings afterwards, the buckets that were
 * split from this one are reached by long walks.
 *
 * States of a mark, in its order
 *   0                        nobody has used the bucket
 *   reversed bucket          claimed by a thread that links it
 *   reversed bucket, SHOWN   linked: walks start here
 *
 * Invariants
 *   H1  nodes are sorted by (order, key), marks among them, and no two nodes that are not removed
 *       have the same key
 *   H2  a link with REMOVED never changes again
 *   H3  a node is unlinked once, by the CAS on its predecessor's link, which must be without
 *       REMOVED; the thread of that CAS drops the list's reference to the node
 *   H4  a walk continues only through a link that was without REMOVED when it was last read, or
 *       that is the new value of the walk's own CAS. Then the node of the link was linked, and so
 *       is its successor. So a section that reserved before protects the successor (list.h, L3)
 *   H5  a bucket's mark is linked, once, before it is SHOWN, and is never removed
 * Pairs
 *   P1  insert (CAS) -> walk: the node's fields
 *   P2  show -> start of a walk: the mark's link; grow -> start: the segment of marks
 *   S   links are read by weiri_section_read() and unlinked by a seq_cst CAS, as reclaim/section.h
 *       requires (I1 there)
 * Linearization. Insert: the CAS of the predecessor's link. Remove: the CAS that sets REMOVED in
 *   the node's own link. Found: the read of the node's link without REMOVED. Not found: the read of
 *   the link without REMOVED that leads from a smaller key to a larger one or to the end.
 * Progress: lock-free; a walk restarts only when another thread's insert, removal or unlinking
 *   succeeded. Inserts allocate when the number of buckets doubles, a segment of the table; without
 *   memory they continue with the marks that exist.
 * Memory: 16 bytes for each bucket; at most twice as many buckets as there have been nodes at once.
 * Cost of a look-up, with one item in the bucket: the mark and the item, a line of the cache each.
 * Checked: tests/test_named_store.c, stress/model/check_named_store.c, weir-stress "named_store",
 *   "named_store_stopped", "history_store".
 */
#ifndef WEIRI_SYNC_HASH_LIST_H
#define WEIRI_SYNC_HASH_LIST_H

#include <weir/alloc.h>

#include "reclaim/scope.h"

/* What walks look at: the part that marks and items have in common. */
struct weiri_hash_link {
	_Atomic(uintptr_t) next; /* bit 0: removed */
	/*
	 * Of an item: the reversed hash, with the low 3 bits set. Of a mark: see States. Once linked it
	 * is constant, but for SHOWN.
	 */
	_Atomic(uint64_t) order;
};

struct weiri_hash_node {
	struct weiri_retired retired; /* its reclaim() drops the list's reference */
	struct weiri_hash_link link;
};

/*
 * Returns less than, equal to or greater than 0 if `key` is before, equal to or after the node's
 * key. Called for equal hashes only.
 */
typedef int weiri_hash_compare(const void *key, struct weiri_hash_node *node);

enum { WEIRI_HASH_MOST_BITS = 24 };

struct weiri_hash_list {
	struct weiri_hash_link first; /* the mark of bucket 0, to which no state applies: it is always linked */
	weiri_hash_compare *compare;  /* constant, as the next */
	weir_allocator allocator;
	_Atomic(uint32_t) bits; /* there are 2^bits buckets; changes when their number doubles */
	_Atomic(struct weiri_hash_link *) marks[WEIRI_HASH_MOST_BITS + 1]; /* [k]: buckets 2^(k-1) .. 2^k - 1 */
	/* Inserts and removals. */
	_Alignas(WEIRI_APART) _Atomic(size_t) count; /* signed in effect: a removal may be counted before its insert */
};

void weiri_hash_list_init(struct weiri_hash_list *list, weiri_hash_compare *compare, const weir_allocator *allocator);
/*
 * Frees the marks, and gives each node that was not removed to end(). No other thread may be using
 * the list.
 */
void weiri_hash_list_fini(struct weiri_hash_list *list, void (*end)(struct weiri_hash_node *node));

/*
 * Called before the insert. ended() is called once, after the node was removed and when no section
 * can see it any more.
 */
void weiri_hash_node_init(struct weiri_hash_node *node, uint64_t hash, size_t bytes,
                          void (*ended)(struct weiri_retired *retired));
/* Returns the hash of the node, but for its 3 highest bits, which no call needs. */
uint64_t weiri_hash_of_node(const struct weiri_hash_node *node);

/*
 * The calls below run in `scope`. A returned node may be removed at any time; its memory and fields
 * stay until the scope ends. find() returns NULL if there is no node with the key.
 */
struct weiri_hash_node *weiri_hash_list_find(struct weiri_scope *scope, struct weiri_hash_list *list, uint64_t hash,
                                             const void *key);
/*
 * Returns NULL if it inserted `node`, whose key is `key`. Otherwise returns the node with that key
 * that is in the list already.
 */
struct weiri_hash_node *weiri_hash_list_insert(struct weiri_scope *scope, struct weiri_hash_list *list,
                                               struct weiri_hash_node *node, uint64_t hash, const void *key);
/* Returns true if this call removed the node, false if another call had removed it. */
bool weiri_hash_list_remove(struct weiri_scope *scope, struct weiri_hash_list *list, struct weiri_hash_node *node,
                            uint64_t hash, const void *key);
/* Returns the first node after `key` in the list's own order; the first node if `key` is NULL. */
struct weiri_hash_node *weiri_hash_list_after(struct weiri_scope *scope, struct weiri_hash_list *list, uint64_t hash,
                                              const void *key);

/* Returns the number of nodes in the list; approximate while inserts and removals run. */
size_t weiri_hash_list_count(const struct weiri_hash_list *list);

#endif
