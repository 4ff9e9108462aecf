/*
 * mark.c - see mark.h.
 */
#include "run/mark.h"

WEIRI_TLS struct weiri_mark *weiri_marks_mine;

void weiri_mark_enter(struct weiri_mark *mark, enum weiri_mark_kind kind, const void *of)
{
	weiri_mark_begin(mark, kind, of);
}

void weiri_mark_leave(const struct weiri_mark *mark)
{
	weiri_mark_end(mark);
}

struct weiri_mark *weiri_mark_find(enum weiri_mark_kind kind, const void *of)
{
	return weiri_mark_of(kind, of);
}
