/*
 * mark.h - what the calling thread is in the middle of: a list of marks on its stack.
 *
 * A function that runs tasks of a pool, or the user's code in a critical section, or the function
 * of a coordinator's thread, puts a mark onto the list as long as it runs. Calls that the user's
 * code makes find it there: a task that submits to its own pool, an execution that would enter its
 * section again, a thread that would join itself. One list for all, because its head is one of the
 * few thread-local variables (base/compiler.h). Calls nest, so marks leave in the reverse order.
 */
#ifndef WEIRI_RUN_MARK_H
#define WEIRI_RUN_MARK_H

#include <stddef.h>

#include "base/compiler.h"

enum weiri_mark_kind {
	WEIRI_MARK_POOL,
	WEIRI_MARK_SECTION,
	WEIRI_MARK_COORDINATOR,
	WEIRI_MARK_GROUP, /* of coordinators (run/coordinator.h) */
	WEIRI_MARK_ITERATOR,
	WEIRI_MARK_TAKER,
	WEIRI_MARK_WAKER, /* of an iterator (data/iterator.c) */
	WEIRI_MARK_MONITORED
};

struct weiri_mark {
	const void *of; /* the pool, section, coordinator, iterator or monitored session */
	enum weiri_mark_kind kind;
	struct weiri_mark *outer;
};

extern WEIRI_TLS struct weiri_mark *weiri_marks_mine;

static inline void weiri_mark_begin(struct weiri_mark *mark, enum weiri_mark_kind kind, const void *of)
{
	*mark = (struct weiri_mark){of, kind, weiri_marks_mine};
	weiri_marks_mine = mark;
}

static inline void weiri_mark_end(const struct weiri_mark *mark)
{
	weiri_marks_mine = mark->outer;
}

/* The same for the dataflow layer, which cannot access the variable. */
WEIRI_SHARED void weiri_mark_enter(struct weiri_mark *mark, enum weiri_mark_kind kind, const void *of);
WEIRI_SHARED void weiri_mark_leave(const struct weiri_mark *mark);
WEIRI_SHARED struct weiri_mark *weiri_mark_find(enum weiri_mark_kind kind, const void *of);

/* Returns the innermost mark of this kind for this object, or NULL. */
static inline struct weiri_mark *weiri_mark_of(enum weiri_mark_kind kind, const void *of)
{
	struct weiri_mark *mark = weiri_marks_mine;

	while (mark != NULL && (mark->kind != kind || mark->of != of))
		mark = mark->outer;
	return mark;
}

#endif
