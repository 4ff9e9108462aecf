/*
 * guard.h - marks of the calling thread: that it works for an iterator, so that a function of the
 * pipeline cannot wait for its own iterator; and that it runs tasks of the pool inside a call that
 * takes, so that such a task cannot end the iterator under that call.
 */
#ifndef WEIRI_DATA_GUARD_H
#define WEIRI_DATA_GUARD_H

#include <stdbool.h>
#include <weir/dataset.h>

#include "run/mark.h"

struct weiri_guard {
	struct weiri_mark mark; /* of the iterator; on the stack */
};

static inline void weiri_guard_begin(struct weiri_guard *guard, const weir_iterator *iterator)
{
	weiri_mark_begin(&guard->mark, WEIRI_MARK_ITERATOR, iterator);
}

static inline void weiri_guard_end(const struct weiri_guard *guard)
{
	weiri_mark_end(&guard->mark);
}

/* The most calls that run tasks on the stack of a thread, each inside a task of the one before. */
enum { WEIRI_GUARD_MOST_HELPERS = 64 };

/* The thread runs tasks inside a call that takes from the iterator. */
static inline void weiri_guard_begin_helping(struct weiri_guard *guard, const weir_iterator *iterator)
{
	weiri_mark_begin(&guard->mark, WEIRI_MARK_TAKER, iterator);
}

static inline bool weiri_guard_is_helping(const weir_iterator *iterator)
{
	return weiri_mark_of(WEIRI_MARK_TAKER, iterator) != NULL;
}

/* How many marks of a kind this thread has. */
static inline size_t weiri_guard_count(enum weiri_mark_kind kind)
{
	const struct weiri_mark *mark = weiri_marks_mine;
	size_t count = 0;

	for (; mark != NULL; mark = mark->outer)
		count += mark->kind == kind;
	return count;
}

/* Returns true if the calling thread works for this iterator. */
static inline bool weiri_guard_is_inside(const weir_iterator *iterator)
{
	return weiri_mark_of(WEIRI_MARK_ITERATOR, iterator) != NULL;
}

#endif
