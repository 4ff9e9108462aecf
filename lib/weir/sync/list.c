/*
 * list.c - see list.h.
 */
#include "sync/list.h"

#include "base/assert.h"

#define REMOVED ((uintptr_t)1)

static struct weiri_list_node *node_of(uintptr_t link)
{
	return (struct weiri_list_node *)(link & ~REMOVED);
}

void weiri_list_node_init(struct weiri_list_node *node, size_t bytes, void (*ended)(struct weiri_retired *retired))
{
	weiri_store_relaxed(&node->next, 0u); /* [relaxed] not appended yet */
	weiri_retired_init(&node->retired, bytes, ended);
}

/* The caller's section protects the node. */
static WEIRI_UNSEEN void assert_marked(const struct weiri_list_node *node, uintptr_t marked)
{
	WEIR_ASSERT2(L1, weiri_peek(&node->next) == marked);
}

static WEIRI_UNSEEN void assert_unlinked(const struct weiri_list *list, const struct weiri_list_node *node)
{
	const struct weiri_list_node *other = node_of(weiri_peek(&list->first));

	for (; other != NULL; other = node_of(weiri_peek(&other->next)))
		WEIR_ASSERT3(L2, other != node);
}

/*
 * Walks from the start to the end, unlinking removed nodes. Returns the last link, which was
 * unmarked.
 */
static _Atomic(uintptr_t) *walk(struct weiri_scope *scope, struct weiri_list *list)
{
	_Atomic(uintptr_t) *link;
	uintptr_t here;

restart:
	link = &list->first;
	weiri_section_read(scope->record, link, &here);
	while (node_of(here) != NULL) {
		struct weiri_list_node *node = node_of(here);
		uintptr_t next;

		weiri_section_read(scope->record, &node->next, &next); /* [P1, P2] */
		if ((next & REMOVED) == 0) {
			link = &node->next;
			here = next;
			continue;
		}
		/*
		 * [seq_cst] L2. The CAS fails unless the link is still what was read, unmarked. It precedes
		 * the era in which the node dies: I1, section.h.
		 */
		if (!weiri_cas_seq_cst(link, &here, next & ~REMOVED))
			goto restart;
		WEIR_ASSERT_LOOK(assert_marked(node, next));
		WEIR_ASSERT_INSTANT(assert_unlinked(list, node));
		weiri_scope_retire(scope, &node->retired);
		here = next & ~REMOVED;
	}
	return link;
}

void weiri_list_append(struct weiri_scope *scope, struct weiri_list *list, struct weiri_list_node *node)
{
	uintptr_t end;

	WEIR_ASSERT_INSTANT(assert_unlinked(list, node));
	do {
		end = 0;
		/*
		 * [seq_cst, P1 release] seq_cst: one thread appends and then reads a flag; another sets the
		 * flag and then walks. At least one of them sees the write of the other.
		 */
	} while (!weiri_cas_seq_cst(walk(scope, list), &end, (uintptr_t)node));
}

bool weiri_list_remove(struct weiri_scope *scope, struct weiri_list *list, struct weiri_list_node *node)
{
	/* [relaxed] the CAS decides. */
	uintptr_t next = weiri_load_relaxed(&node->next);

	do {
		if ((next & REMOVED) != 0)
			return false;
		/*
		 * [relaxed, P2] linearization point of the removal. A thread that reads the mark learns
		 * nothing else from it. The append of the successor published the link, and this CAS
		 * continues its release sequence. The node is freed after this section has ended.
		 */
	} while (!weiri_cas_relaxed(&node->next, &next, next | REMOVED));
	(void)walk(scope, list);
	return true;
}

void weiri_list_sweep(struct weiri_scope *scope, struct weiri_list *list)
{
	(void)walk(scope, list);
}

struct weiri_list_node *weiri_list_next(struct weiri_scope *scope, struct weiri_list *list,
                                        const struct weiri_list_node *node)
{
	uintptr_t link = 0;

	if (node != NULL) {
		weiri_section_read(scope->record, &node->next, &link); /* [P1, P2] */
		if ((link & REMOVED) == 0)
			return node_of(link);
		/*
		 * L3. The thread that removed the node may have stalled before it unlinked the node.
		 * Without help here, this walk would never get past the node.
		 */
		(void)walk(scope, list);
	}
	weiri_section_read(scope->record, &list->first, &link); /* [P1] */
	return node_of(link);
}
