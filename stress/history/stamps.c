/*
 * stamps.c - histories whose operations have stamps, which tell when they took effect. The stamps
 * must explain what was read, and agree with real time.
 *
 * For each variable, in the order of stamps: versions grow by one with each write, and each read
 * sees the last version up to its stamp. Over all variables, from the back: no operation with a
 * larger stamp returned before an operation with a smaller stamp was called. A read of stamp s
 * comes after the writes of stamp s. Writes of one stamp touch different variables.
 */
#include "history/versions.h"

#include <inttypes.h>
#include <stdlib.h>

#define NO_OPERATION UINT32_MAX

struct stamped {
	uint64_t stamp;
	uint32_t reads, op;
};

static int by_stamp(const void *left, const void *right)
{
	const struct stamped *a = left, *b = right;

	if (a->stamp != b->stamp)
		return a->stamp < b->stamp ? -1 : 1;
	if (a->reads != b->reads)
		return a->reads < b->reads ? -1 : 1;
	return (a->op > b->op) - (a->op < b->op);
}

static enum history_verdict disagree(const struct history *history, const struct history_entry *entry, uint32_t other,
                                     struct history_finding *finding)
{
	(void)history_violated(finding, "stamp",
	                       "variable %" PRIu64 ", version %" PRIu64 ": stamp %" PRIu64
	                       " does not fit the neighbour's %" PRIu64,
	                       entry->object, entry->version, history->op[entry->op].result, history->op[other].result);
	history_witness(finding, entry->op);
	history_witness(finding, other);
	return HISTORY_VIOLATED;
}

/*
 * Returns 1 if the stamp is large enough after an operation of stamp `bound`. A read may have the
 * stamp of the write that it sees. A write must have a larger stamp than all operations before it.
 */
static int above(uint64_t bound, uint64_t stamp, uint32_t reads)
{
	return reads != 0 ? bound <= stamp : bound < stamp;
}

/*
 * Entries are sorted by version. A write's stamp is larger than that of the previous write and of
 * all reads of the previous version. A read's stamp is at least that of the write that it sees.
 */
static enum history_verdict check_reads(const struct history *history, const struct history_versions *versions,
                                        struct history_finding *finding)
{
	uint32_t written = NO_OPERATION, highest = NO_OPERATION;

	for (size_t i = 0; i < versions->count; i++) {
		const struct history_entry *entry = &versions->entry[i];
		uint64_t stamp = history->op[entry->op].result;
		uint32_t bound;

		if (i == 0 || entry[-1].object != entry->object)
			written = highest = NO_OPERATION;
		if (entry->reads == 2)
			continue;
		bound = entry->reads == 0 ? highest : written;
		if (bound != NO_OPERATION && bound != entry->op && !above(history->op[bound].result, stamp, entry->reads))
			return disagree(history, entry, bound, finding);
		if (entry->reads == 0)
			written = entry->op;
		if (highest == NO_OPERATION || stamp > history->op[highest].result)
			highest = entry->op;
	}
	return HISTORY_HOLDS;
}

static enum history_verdict out_of_order(uint32_t early, uint32_t late, struct history_finding *finding)
{
	(void)history_violated(finding, "order",
	                       "an operation with a larger stamp returned before one with a smaller stamp was called");
	history_witness(finding, late);
	history_witness(finding, early);
	return HISTORY_VIOLATED;
}

static enum history_verdict check_real_time(const struct history *history, const struct stamped order[], size_t count,
                                            struct history_finding *finding)
{
	uint64_t earliest = UINT64_MAX, of_place = UINT64_MAX;
	uint32_t earliest_op = 0, place_op = 0;

	for (size_t i = count; i-- > 0;) {
		const struct history_op *op = &history->op[order[i].op];

		if (i + 1 < count && (order[i].stamp != order[i + 1].stamp || order[i].reads != order[i + 1].reads) &&
		    of_place < earliest) {
			earliest = of_place;
			earliest_op = place_op;
		}
		if (earliest < op->called)
			return out_of_order(order[i].op, earliest_op, finding);
		if (op->returned < of_place) {
			of_place = op->returned;
			place_op = order[i].op;
		}
	}
	return HISTORY_HOLDS;
}

static enum history_verdict check_order(const struct history *history, struct history_finding *finding)
{
	struct stamped *order = malloc((history->count + 1) * sizeof(*order));
	enum history_verdict verdict;
	size_t count = 0;

	if (order == NULL)
		return history_no_memory(finding);
	for (uint32_t i = 0; i < history->count; i++) {
		if (history->op[i].kind != HISTORY_ABORTED)
			order[count++] = (struct stamped){history->op[i].result, history->op[i].kind == HISTORY_READ, i};
	}
	qsort(order, count, sizeof(*order), by_stamp);
	verdict = check_real_time(history, order, count, finding);
	free(order);
	return verdict;
}

enum history_verdict history_check_stamps(const struct history *history, uint64_t initial,
                                          struct history_finding *finding)
{
	struct history_versions versions;
	enum history_verdict verdict = history_versions_init(&versions, history, initial, finding);

	if (verdict == HISTORY_HOLDS)
		verdict = check_reads(history, &versions, finding);
	if (verdict == HISTORY_HOLDS)
		verdict = check_order(history, finding);
	history_versions_fini(&versions);
	return verdict;
}
