/*
 * store.c - histories as arrays that grow; see history.h.
 */
#include "history/order.h"

#include <stdlib.h>
#include <string.h>

static const size_t most_places = INT32_MAX;

void history_init(struct history *history)
{
	memset(history, 0, sizeof(*history));
}

void history_fini(struct history *history)
{
	free(history->op);
	free(history->part);
	history_init(history);
}

/* Makes room for `more` elements after the first `count`. */
static int make_room(void **items, size_t *room, size_t count, size_t more, size_t size)
{
	size_t wanted = *room == 0 ? 64 : *room;
	void *larger;

	if (more <= *room - count)
		return 1;
	if (more > most_places - count)
		return 0;
	while (wanted < count + more)
		wanted *= 2;
	larger = realloc(*items, wanted * size);
	if (larger == NULL)
		return 0;
	*items = larger;
	*room = wanted;
	return 1;
}

int history_add(struct history *history, const struct history_op *op, const struct history_part parts[])
{
	void *ops = history->op, *all_parts = history->part;
	int enough = make_room(&ops, &history->room, history->count, 1, sizeof(*op));

	history->op = ops;
	if (enough && op->parts != 0)
		enough = make_room(&all_parts, &history->part_room, history->part_count, op->parts, sizeof(*parts));
	history->part = all_parts;
	if (!enough)
		return 0;
	if (op->parts != 0)
		memcpy(&history->part[history->part_count], parts, op->parts * sizeof(*parts));
	history->op[history->count] = *op;
	history->op[history->count++].part = (uint32_t)history->part_count;
	history->part_count += op->parts;
	return 1;
}

int history_add_part(struct history *history, const struct history_part *part)
{
	void *parts = history->part;
	int enough = make_room(&parts, &history->part_room, history->part_count, 1, sizeof(*part));

	history->part = parts;
	if (!enough)
		return 0;
	history->part[history->part_count++] = *part;
	history->op[history->count - 1].parts++;
	return 1;
}

static int by_call(const void *left, const void *right)
{
	const struct history_op *a = left, *b = right;

	if (a->called != b->called)
		return a->called < b->called ? -1 : 1;
	if (a->returned != b->returned)
		return a->returned < b->returned ? -1 : 1;
	return (a->thread > b->thread) - (a->thread < b->thread);
}

void history_sort(struct history *history)
{
	if (history->count > 1)
		qsort(history->op, history->count, sizeof(*history->op), by_call);
}
