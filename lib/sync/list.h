/*
 * list.h - a lock-free list in arrival order, from whose middle anybody can take a node out: waiters, and hooks of a token.
 *
 * Algorithm. Michael's list (SPAA 2002, after Harris, DISC 2001) on the library's sections: a node is removed by marking its own
 * link, and unlinked by whoever walks past. Appending walks to the end: O(waiters), which is little beside the wait.
 *
 * Invariants
 *   L1  a marked link never changes again
 *   L2  a node is unlinked once, by the CAS that takes it out of its predecessor's unmarked link; that thread drops the list's hold on it
 *   L3  a walk goes on only through a link that was unmarked when it was read for good: such a link's node was linked, and so is its
 *       successor. A marked link may lead to a node that was born after the section, unlinked and freed: reading it again, which is
 *       what protects every other read of a section, shows the same
 * Pairs: P1 append -> walk: the node's fields. P2 remove(mark) -> walk: the mark alone, which carries P1 of the successor on.
 * Linearization: append at the CAS of the last link, remove at the CAS that marks.
 * Progress: lock-free; a walk starts again only when a node was unlinked, appended or removed.
 * Checked: tests/test_list.c (plain, TSan, ASan); stress/model/check_list.c.
 */
#ifndef WEIRI_SYNC_LIST_H
#define WEIRI_SYNC_LIST_H

#include "reclaim/scope.h"

struct weiri_list_node {
	_Atomic(uintptr_t) next;      /* bit 0: removed */
	struct weiri_retired retired; /* reclaim() is the end of the list's hold; set by weiri_list_node_init */
};

struct weiri_list {
	_Atomic(uintptr_t) first;
};

/* Before the node is appended; bytes: what was allocated for it, and is released then. ended() is called once, after it was removed and no section can see it any more. */
void weiri_list_node_init(struct weiri_list_node *node, size_t bytes, void (*ended)(struct weiri_retired *retired));

/* All in `scope`. */
void weiri_list_append(struct weiri_scope *scope, struct weiri_list *list, struct weiri_list_node *node);
/* 1 when this call removed it, 0 when another had. The node may be walked over until the scope of every walker ends. */
int weiri_list_remove(struct weiri_scope *scope, struct weiri_list *list, struct weiri_list_node *node);
/* Unlinks what was removed, though its remover has not come to it. */
void weiri_list_sweep(struct weiri_scope *scope, struct weiri_list *list);
/*
 * The node after `node` (the first for NULL). When `node` has been removed it is the first again: a walk may come to a node more than once,
 * and callers look at the state that they keep. A node that is found may be removed by then. For a walk within one scope.
 */
struct weiri_list_node *weiri_list_next(struct weiri_scope *scope, struct weiri_list *list,
                                        const struct weiri_list_node *node);

/* 1 when there may be a node. No section needed. */
static inline int weiri_list_occupied(const struct weiri_list *list)
{
	/* [relaxed] not followed; its place after the caller's change is kept by the caller's light fence. */
	return weiri_load_relaxed(&list->first) != 0;
}

#endif
