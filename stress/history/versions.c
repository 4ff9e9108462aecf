/*
 * versions.c - sorts parts by variable and version, and checks that each version is what one write
 * published; see versions.h.
 */
#include "history/versions.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static int by_version(const void *left, const void *right)
{
	const struct history_entry *a = left, *b = right;

	if (a->object != b->object)
		return a->object < b->object ? -1 : 1;
	if (a->version != b->version)
		return a->version < b->version ? -1 : 1;
	if (a->reads != b->reads)
		return a->reads < b->reads ? -1 : 1;
	return (a->op > b->op) - (a->op < b->op);
}

static enum history_verdict not_based(const struct history_part *part, uint32_t op, struct history_finding *finding)
{
	(void)history_violated(finding, "not based",
	                       "variable %" PRIu64 ": version %" PRIu64 " was published on top of %" PRIu64, part->object,
	                       part->after, part->before);
	history_witness(finding, op);
	return HISTORY_VIOLATED;
}

static enum history_verdict add_part(struct history_versions *versions, const struct history_part *part, uint32_t op,
                                     struct history_finding *finding)
{
	int writes = part->after != HISTORY_NONE;

	if (writes && part->before != HISTORY_NONE && part->after != part->before + 1)
		return not_based(part, op, finding);
	/* The base of a write is a read without a value, because part->value is what it published. */
	if (part->before != HISTORY_NONE && !writes)
		versions->entry[versions->count++] = (struct history_entry){part->object, part->before, part->value, op, 1};
	if (part->before != HISTORY_NONE && writes)
		versions->entry[versions->count++] = (struct history_entry){part->object, part->before, HISTORY_NONE, op, 2};
	if (writes)
		versions->entry[versions->count++] = (struct history_entry){part->object, part->after, part->value, op, 0};
	return HISTORY_HOLDS;
}

static enum history_verdict add_all(struct history_versions *versions, const struct history *history,
                                    struct history_finding *finding)
{
	enum history_verdict verdict = HISTORY_HOLDS;

	for (uint32_t i = 0; i < history->count; i++) {
		const struct history_op *op = &history->op[i];

		if (op->kind < HISTORY_READ || op->kind > HISTORY_ABORTED)
			return history_malformed(finding, i, "it is not an operation of a variable");
		if (op->returned < op->called)
			return history_malformed(finding, i, "its return is before its call");
		for (uint32_t k = 0; k < op->parts && op->kind != HISTORY_ABORTED && verdict == HISTORY_HOLDS; k++)
			verdict = add_part(versions, &history->part[op->part + k], i, finding);
	}
	return verdict;
}

/*
 * Checks that the entry belongs to `current`, the version that the walk has reached, or publishes
 * the next one. `previous` is the entry of the same variable before it, or NULL.
 */
static enum history_verdict check_entry(const struct history_entry *entry, const struct history_entry *previous,
                                        uint64_t current, int partial, struct history_finding *finding)
{
	if (entry->reads == 0 && entry->version <= current)
		(void)history_violated(finding, "version twice",
		                       "variable %" PRIu64 ": version %" PRIu64 " was published although it existed",
		                       entry->object, entry->version);
	else if (partial || (entry->reads == 0 ? entry->version == current + 1 : entry->version == current))
		return HISTORY_HOLDS;
	else
		(void)history_violated(finding, "version missing",
		                       "variable %" PRIu64 ": version %" PRIu64 " was seen, %" PRIu64
		                       " is the last before it that was published",
		                       entry->object, entry->version, current);
	history_witness(finding, entry->op);
	if (previous != NULL)
		history_witness(finding, previous->op);
	return HISTORY_VIOLATED;
}

/* `known` is the first entry of this version that has its value, or NULL. */
static enum history_verdict check_value(const struct history_entry *known, const struct history_entry *entry,
                                        struct history_finding *finding)
{
	if (known == NULL || entry->value == HISTORY_NONE || known->value == entry->value)
		return HISTORY_HOLDS;
	(void)history_violated(finding, "value",
	                       "variable %" PRIu64 ", version %" PRIu64 ": one operation saw %" PRIu64 ", another %" PRIu64,
	                       entry->object, entry->version, known->value, entry->value);
	history_witness(finding, known->op);
	history_witness(finding, entry->op);
	return HISTORY_VIOLATED;
}

static enum history_verdict check_all(const struct history_versions *versions, uint64_t initial, int partial,
                                      struct history_finding *finding)
{
	enum history_verdict verdict = HISTORY_HOLDS;
	const struct history_entry *known = NULL;
	uint64_t current = initial;

	for (size_t i = 0; verdict == HISTORY_HOLDS && i < versions->count; i++) {
		const struct history_entry *entry = &versions->entry[i];
		const struct history_entry *previous = i != 0 && entry[-1].object == entry->object ? &entry[-1] : NULL;

		if (previous == NULL)
			current = initial;
		if (previous == NULL || previous->version != entry->version)
			known = NULL;
		verdict = check_entry(entry, previous, current, partial, finding);
		if (verdict == HISTORY_HOLDS)
			verdict = check_value(known, entry, finding);
		if (known == NULL && entry->value != HISTORY_NONE)
			known = entry;
		current = entry->version > current ? entry->version : current;
	}
	return verdict;
}

enum history_verdict history_versions_init(struct history_versions *versions, const struct history *history,
                                           uint64_t initial, struct history_finding *finding)
{
	enum history_verdict verdict;

	versions->count = 0;
	versions->entry = malloc((2 * history->part_count + 1) * sizeof(*versions->entry));
	if (versions->entry == NULL)
		return history_no_memory(finding);
	verdict = add_all(versions, history, finding);
	if (verdict != HISTORY_HOLDS)
		return verdict;
	qsort(versions->entry, versions->count, sizeof(*versions->entry), by_version);
	return check_all(versions, initial, history->partial, finding);
}

void history_versions_fini(struct history_versions *versions)
{
	free(versions->entry);
}

size_t history_versions_behind(const struct history_versions *versions, uint64_t object, uint64_t version)
{
	size_t low = 0, high = versions->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct history_entry *entry = &versions->entry[middle];

		if (entry->object < object || (entry->object == object && entry->version <= version))
			low = middle + 1;
		else
			high = middle;
	}
	return low < versions->count && versions->entry[low].object == object ? low : versions->count;
}
