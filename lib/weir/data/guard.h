/*
 * guard.h - marks of the calling thread: that it works for an iterator, so that a function of the
 * pipeline cannot wait for its own iterator; and that it runs a completion of the iterator, which
 * cannot end the iterator under the call in which it runs.
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

/* The thread runs a completion of an operation of the iterator. */
static inline void weiri_guard_begin_telling(struct weiri_guard *guard, const weir_iterator *iterator)
{
	weiri_mark_begin(&guard->mark, WEIRI_MARK_TAKER, iterator);
}

static inline bool weiri_guard_is_telling(const weir_iterator *iterator)
{
	return weiri_mark_of(WEIRI_MARK_TAKER, iterator) != NULL;
}

/* Returns true if the calling thread works for this iterator. */
static inline bool weiri_guard_is_inside(const weir_iterator *iterator)
{
	return weiri_mark_of(WEIRI_MARK_ITERATOR, iterator) != NULL;
}

#endif
