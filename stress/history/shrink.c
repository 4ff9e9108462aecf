/*
 * shrink.c - finds a smaller history that still fails, by removing units.
 *
 * Delta debugging (Zeller and Hildebrandt, 2002): remove a part of the units, first halves, then
 * ever smaller parts, and keep what still fails. At the end no single unit can be removed. The
 * caller decides what a unit is. The two functions below choose units whose removal makes no
 * correct history fail. The operations that remain of a failure are therefore a reason for it.
 */
#include "history/history.h"

#include <stdlib.h>
#include <string.h>

/* -- units ------------------------------------------------------------------------------------- */

static int has_kind(const struct history *history, enum history_kind kind)
{
	for (size_t i = 0; i < history->count; i++) {
		if (history->op[i].kind == kind)
			return 1;
	}
	return 0;
}

/* Returns the index of a take's put, or `count` if no operation put its value. */
static size_t put_of(const struct history *history, const struct history_op *take)
{
	size_t i = 0;

	while (i < history->count && (history->op[i].kind != HISTORY_PUT || history->op[i].argument != take->result))
		i++;
	return i;
}

/* The put and the take of a value are one unit; any other operation is a unit. */
static void units_by_value(const struct history *history, uint32_t unit[])
{
	for (size_t i = 0; i < history->count; i++) {
		const struct history_op *op = &history->op[i];
		size_t first = op->kind == HISTORY_TAKE ? put_of(history, op) : i;

		unit[i] = (uint32_t)first + 1;
	}
}

/*
 * Values that were possibly inside during `witness` stay. All other values and all other results
 * may be removed. They form one unit, because the removal of a single one achieves little.
 */
static void units_beside(const struct history *history, size_t witness, uint32_t unit[])
{
	const struct history_op *answer = &history->op[witness];

	for (size_t i = 0; i < history->count; i++)
		unit[i] = 1;
	unit[witness] = HISTORY_STAYS;
	for (size_t i = 0; i < history->count; i++) {
		const struct history_op *op = &history->op[i];

		if (op->kind == HISTORY_PUT && op->called <= answer->returned)
			unit[i] = HISTORY_STAYS;
	}
	for (size_t i = 0; i < history->count; i++) {
		const struct history_op *op = &history->op[i];
		size_t put = op->kind == HISTORY_TAKE ? put_of(history, op) : history->count;

		if (put == history->count || unit[put] != HISTORY_STAYS)
			continue;
		if (op->returned < answer->called)
			unit[put] = 1;
		else
			unit[i] = HISTORY_STAYS;
	}
}

void history_units_of_values(const struct history *history, const struct history_bounds *bounds,
                             const struct history_finding *finding, uint32_t unit[])
{
	int too_few = strcmp(finding->pattern, "full") == 0 || strcmp(finding->pattern, "stays") == 0;
	int searched = strcmp(finding->pattern, "none fits") == 0;

	if (too_few && finding->witnesses != 0) {
		units_beside(history, finding->witness[0], unit);
		return;
	}
	units_by_value(history, unit);
	if (!searched || (bounds->stays == 0 && !has_kind(history, HISTORY_PUT_FULL)))
		return;
	for (size_t i = 0; i < history->count; i++) {
		if (history->op[i].kind == HISTORY_PUT || history->op[i].kind == HISTORY_TAKE)
			unit[i] = HISTORY_STAYS;
	}
}

void history_units_of_versions(const struct history *history, uint32_t unit[])
{
	for (size_t i = 0; i < history->count; i++)
		unit[i] = (uint32_t)i + 1;
}

/* -- delta debugging --------------------------------------------------------------------------- */

struct shrinking {
	const struct history *history;
	const uint32_t *unit;
	uint32_t *units; /* the units that are still included */
	size_t count;
	unsigned char *in; /* by unit */
	history_fails_fn *fails;
	void *context;
	int no_memory;
};

static int copy_what_is_in(const struct shrinking *shrinking, struct history *out)
{
	const struct history *history = shrinking->history;

	history_init(out);
	out->partial = history->partial;
	for (size_t i = 0; i < history->count; i++) {
		const struct history_op *op = &history->op[i];

		if (shrinking->unit[i] != HISTORY_STAYS && !shrinking->in[shrinking->unit[i]]) {
			out->partial = 1;
		} else if (!history_add(out, op, &history->part[op->part])) {
			history_fini(out);
			return 0;
		}
	}
	return 1;
}

static int still_fails(struct shrinking *shrinking)
{
	struct history candidate;
	int failing;

	if (!copy_what_is_in(shrinking, &candidate)) {
		shrinking->no_memory = 1;
		return 0;
	}
	failing = shrinking->fails(&candidate, shrinking->context);
	history_fini(&candidate);
	return failing;
}

static void set_in(struct shrinking *shrinking, size_t from, size_t to, unsigned char in)
{
	for (size_t i = from; i < to; i++)
		shrinking->in[shrinking->units[i]] = in;
}

/* Removes what it can in steps of `size` units. Returns 1 if something was removed. */
static int leave_out(struct shrinking *shrinking, size_t size)
{
	int any = 0;

	for (size_t from = 0; from < shrinking->count;) {
		size_t to = size < shrinking->count - from ? from + size : shrinking->count;

		set_in(shrinking, from, to, 0);
		if (still_fails(shrinking)) {
			memmove(&shrinking->units[from], &shrinking->units[to],
			        (shrinking->count - to) * sizeof(*shrinking->units));
			shrinking->count -= to - from;
			any = 1;
		} else {
			set_in(shrinking, from, to, 1);
			from = to;
		}
	}
	return any;
}

static void minimize(struct shrinking *shrinking)
{
	size_t size = shrinking->count;

	while (size > 1) {
		size = (size + 1) / 2;
		(void)leave_out(shrinking, size);
	}
	while (leave_out(shrinking, 1) && !shrinking->no_memory)
		;
}

/* Tries every unit once. */
static void list_units(struct shrinking *shrinking, uint32_t most)
{
	for (size_t i = 0; i < shrinking->history->count; i++)
		shrinking->in[shrinking->unit[i]] = 1;
	for (uint32_t u = 1; u <= most; u++) {
		if (shrinking->in[u])
			shrinking->units[shrinking->count++] = u;
	}
}

int history_shrink(const struct history *history, const uint32_t unit[], history_fails_fn *fails, void *context,
                   struct history *out)
{
	struct shrinking shrinking = {.history = history, .unit = unit, .fails = fails, .context = context};
	uint32_t most = 0;
	int fine = 0;

	for (size_t i = 0; i < history->count; i++)
		most = unit[i] > most ? unit[i] : most;
	history_init(out);
	shrinking.units = calloc((size_t)most + 1, sizeof(*shrinking.units));
	shrinking.in = calloc((size_t)most + 1, 1);
	if (shrinking.units != NULL && shrinking.in != NULL) {
		list_units(&shrinking, most);
		if (still_fails(&shrinking)) {
			minimize(&shrinking);
			fine = !shrinking.no_memory && copy_what_is_in(&shrinking, out);
		}
	}
	free(shrinking.units);
	free(shrinking.in);
	return fine;
}
