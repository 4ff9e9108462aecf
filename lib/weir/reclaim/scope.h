/*
 * scope.h - a section together with the objects unlinked in it. They are retired after the section
 * ends, because retiring may collect and so run user code.
 */
#ifndef WEIRI_RECLAIM_SCOPE_H
#define WEIRI_RECLAIM_SCOPE_H

#include "reclaim/collect.h"

struct weiri_scope {
	struct weiri_record *record;
	uint64_t outer;
	struct weiri_retired *garbage;
};

static inline struct weiri_scope weiri_scope_enter(struct weiri_record *record)
{
	return (struct weiri_scope){record, weiri_section_enter(record), NULL};
}

/*
 * Retires the object later, in weiri_scope_leave(). New sections must not be able to reach it any
 * more.
 */
static inline void weiri_scope_retire(struct weiri_scope *scope, struct weiri_retired *object)
{
	object->next = scope->garbage;
	scope->garbage = object;
}

static inline void weiri_scope_leave(struct weiri_scope *scope)
{
	weiri_section_leave(scope->record, scope->outer);
	if (scope->garbage == NULL)
		return;
	if (scope->garbage->next == NULL)
		weiri_retire(scope->record, scope->garbage);
	else
		weiri_retire_list(scope->record, scope->garbage);
}

#endif
