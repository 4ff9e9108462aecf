/*
 * list.h - a lock-free list in arrival order; any thread can remove a node from its middle. For
 * waiters, and for the threads that are announced at a queue.
 *
 * Algorithm. Michael's list (SPAA 2002, after Harris, DISC 2001), protected by the library's
 * sections. A node is removed by marking its own link, and unlinked by the next walk that passes
 * it. Appending walks to the end: O(waiters), which is little beside the wait.
 *
 * Invariants
 *   L1  a marked link never changes again
 *   L2  a node is unlinked once, by the CAS that takes it out of its predecessor's unmarked link;
 *       that thread drops the list's reference to it
 *   L3  a walk continues only through a link that was unmarked when it was last read. The node of
 *       such a link was linked, and so is its successor. A marked link may lead to a node that was
 *       born after the section began, was unlinked and freed. A second read of the link protects
 *       every other read of a section; here it would show the same value
 * Pairs
 *   P1  append -> walk: the node's fields
 *   P2  remove (mark) -> walk: the mark alone; it continues P1 of the successor
 * Linearization: append at the CAS of the last link, remove at the CAS that marks.
 * Progress: lock-free; a walk restarts only when a node was unlinked, appended or removed.
 * Checked: tests/test_list.c (plain, TSan, ASan); stress/model/check_list.c.
 */
#ifndef WEIRI_SYNC_LIST_H
#define WEIRI_SYNC_LIST_H

#include "reclaim/scope.h"

struct weiri_list_node {
	_Atomic(uintptr_t) next;      /* bit 0: removed */
	struct weiri_retired retired; /* its reclaim() drops the list's reference */
};

struct weiri_list {
	_Atomic(uintptr_t) first;
};

/*
 * Called before the node is appended. bytes: the size of its allocation. ended() is called once,
 * after the node was removed and when no section can see it any more.
 */
void weiri_list_node_init(struct weiri_list_node *node, size_t bytes, void (*ended)(struct weiri_retired *retired));

/* The calls below run in `scope`. */
void weiri_list_append(struct weiri_scope *scope, struct weiri_list *list, struct weiri_list_node *node);
/*
 * Returns true if this call removed the node, false if another call had removed it. Walks may pass
 * the node until their scopes end.
 */
bool weiri_list_remove(struct weiri_scope *scope, struct weiri_list *list, struct weiri_list_node *node);
/* Unlinks all removed nodes, even if the removing thread has not unlinked its node yet. */
void weiri_list_sweep(struct weiri_scope *scope, struct weiri_list *list);
/*
 * For a walk within one scope. Returns the node after `node`, or the first node if `node` is NULL.
 * If `node` has been removed, the walk restarts at the first node. So it may come to a node more
 * than once, and callers check the state that they keep in the node. A returned node may already be
 * removed.
 */
struct weiri_list_node *weiri_list_next(struct weiri_scope *scope, struct weiri_list *list,
                                        const struct weiri_list_node *node);

/* Returns true if there may be a node. Needs no section. */
static inline bool weiri_list_occupied(const struct weiri_list *list)
{
	/* [relaxed] not followed; the caller's light fence keeps it after the caller's change. */
	return weiri_load_relaxed(&list->first) != 0;
}

#endif
