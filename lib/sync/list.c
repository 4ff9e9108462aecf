/*
 * list.c - see list.h.
 */
#include "sync/list.h"

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

/*
 * Walks from the start to the end, unlinking removed nodes. Returns the last link, which was unmarked.
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
		/* [seq_cst] L2. The link was unmarked when `here` was read, or this fails. Before the era in which it dies: I1, section.h. */
		if (!weiri_cas_seq_cst(link, &here, next & ~REMOVED))
			goto restart;
		weiri_scope_retire(scope, &node->retired);
		here = next & ~REMOVED;
	}
	return link;
}

void weiri_list_append(struct weiri_scope *scope, struct weiri_list *list, struct weiri_list_node *node)
{
	uintptr_t end;

	do {
		end = 0;
		/* [seq_cst, P1 release] seq_cst: whoever appends and then reads a flag is seen by whoever sets it and then walks. */
	} while (!weiri_cas_seq_cst(walk(scope, list), &end, (uintptr_t)node));
}

int weiri_list_remove(struct weiri_scope *scope, struct weiri_list *list, struct weiri_list_node *node)
{
	/* [relaxed] the CAS decides. */
	uintptr_t next = weiri_load_relaxed(&node->next);

	do {
		if ((next & REMOVED) != 0)
			return 0;
		/* [relaxed, P2] linearization of the removal. Who meets the mark learns nothing else from it: the successor was published by
		 * its append, whose release sequence this continues; and the node's end waits for our section, and acquires that we left it. */
	} while (!weiri_cas_relaxed(&node->next, &next, next | REMOVED));
	(void)walk(scope, list);
	return 1;
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
		/* L3. Its remover may have been stopped before it unlinked it: without our help we would meet it for ever. */
		(void)walk(scope, list);
	}
	weiri_section_read(scope->record, &list->first, &link); /* [P1] */
	return node_of(link);
}
