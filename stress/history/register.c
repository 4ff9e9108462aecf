/*
 * register.c - histories of variables in which each operation touches one variable: versions give
 * the order, and real time must agree.
 *
 * For each variable there is only one order to try: by version, with each write before the
 * operations that read it. It explains the history if no operation returned before an earlier
 * operation in the order was called. The walk goes from the back, so it needs to remember only the
 * earliest return so far. Aborts have no place in the order. For each abort, the version after its
 * `before` must have been written by the time the abort returned. So neither that write nor an
 * operation before it in the order may be called after the abort returned.
 */
#include "history/versions.h"

#include <inttypes.h>
#include <stdlib.h>

static enum history_verdict out_of_order(const struct history_entry *early, const struct history_entry *late,
                                         struct history_finding *finding)
{
	(void)history_violated(finding, "order",
	                       "variable %" PRIu64 ": version %" PRIu64 " was %s after version %" PRIu64 " had been %s",
	                       early->object, early->version, early->reads ? "read" : "published", late->version,
	                       late->reads ? "read" : "published");
	history_witness(finding, late->op);
	history_witness(finding, early->op);
	return HISTORY_VIOLATED;
}

static int same_place(const struct history_entry *a, const struct history_entry *b)
{
	return a->version == b->version && (a->reads != 0) == (b->reads != 0);
}

/*
 * Entries for the base of a write are not needed, because the base follows from the version that
 * the write published.
 */
static enum history_verdict check_real_time(const struct history *history, const struct history_versions *versions,
                                            struct history_finding *finding)
{
	const struct history_entry *earliest = NULL, *of_place = NULL, *last = NULL;

	for (size_t i = versions->count; i-- > 0;) {
		const struct history_entry *entry = &versions->entry[i];

		if (entry->reads == 2)
			continue;
		if (last != NULL && last->object != entry->object)
			earliest = of_place = NULL;
		else if (last != NULL && !same_place(last, entry) &&
		         (earliest == NULL || history->op[of_place->op].returned < history->op[earliest->op].returned))
			earliest = of_place;
		if (last == NULL || last->object != entry->object || !same_place(last, entry) ||
		    history->op[entry->op].returned < history->op[of_place->op].returned)
			of_place = entry;
		if (earliest != NULL && history->op[earliest->op].returned < history->op[entry->op].called)
			return out_of_order(entry, earliest, finding);
		last = entry;
	}
	return HISTORY_HOLDS;
}

/* latest[i]: of the operations on this variable up to entry i, the one that was called last. */
static void find_latest(const struct history *history, const struct history_versions *versions, uint32_t latest[])
{
	for (size_t i = 0; i < versions->count; i++) {
		const struct history_entry *entry = &versions->entry[i];

		latest[i] = entry->op;
		if (i == 0 || entry[-1].object != entry->object)
			continue;
		if (entry->reads == 2 || history->op[latest[i - 1]].called > history->op[entry->op].called)
			latest[i] = latest[i - 1];
	}
}

static enum history_verdict check_abort(const struct history *history, const struct history_versions *versions,
                                        const uint32_t latest[], uint32_t op, struct history_finding *finding)
{
	const struct history_part *part = &history->part[history->op[op].part];
	size_t place = history_versions_behind(versions, part->object, part->before);

	if (place < versions->count && history->op[latest[place]].called <= history->op[op].returned)
		return HISTORY_HOLDS;
	/* The write that aborted it may have been removed. */
	if (history->partial && (place == versions->count || versions->entry[place].reads != 0 ||
	                         versions->entry[place].version != part->before + 1))
		return HISTORY_HOLDS;
	(void)history_violated(finding, place < versions->count ? "order" : "abort",
	                       "variable %" PRIu64 ": aborted although version %" PRIu64 " was not replaced by then",
	                       part->object, part->before);
	history_witness(finding, op);
	if (place < versions->count) {
		history_witness(finding, versions->entry[place].op);
		history_witness(finding, latest[place]);
	}
	return HISTORY_VIOLATED;
}

static enum history_verdict check_aborts(const struct history *history, const struct history_versions *versions,
                                         struct history_finding *finding)
{
	uint32_t *latest = malloc((versions->count + 1) * sizeof(*latest));
	enum history_verdict verdict = HISTORY_HOLDS;

	if (latest == NULL)
		return history_no_memory(finding);
	find_latest(history, versions, latest);
	for (uint32_t i = 0; verdict == HISTORY_HOLDS && i < history->count; i++) {
		if (history->op[i].kind == HISTORY_ABORTED)
			verdict = check_abort(history, versions, latest, i, finding);
	}
	free(latest);
	return verdict;
}

static enum history_verdict check_parts(const struct history *history, struct history_finding *finding)
{
	for (size_t i = 0; i < history->count; i++) {
		if (history->op[i].parts != 1)
			return history_malformed(finding, i, "an operation of a register has one part");
	}
	return HISTORY_HOLDS;
}

enum history_verdict history_check_register(const struct history *history, uint64_t initial,
                                            struct history_finding *finding)
{
	struct history_versions versions = {NULL, 0};
	enum history_verdict verdict = check_parts(history, finding);

	if (verdict == HISTORY_HOLDS)
		verdict = history_versions_init(&versions, history, initial, finding);
	if (verdict == HISTORY_HOLDS)
		verdict = check_real_time(history, &versions, finding);
	if (verdict == HISTORY_HOLDS)
		verdict = check_aborts(history, &versions, finding);
	history_versions_fini(&versions);
	return verdict;
}
