/*
 * snapshot.c - several variables at one instant. Why that is one instant stands at the head of version.h.
 *
 * The handles are claimed inside the section that protects the versions, so no claim needs to be checked: the collector reads a
 * record's interval before its slots (collect.c), and finds the version in one or the other.
 *
 * Progress: lock-free. The walk down a chain passes one version for each write that ended since the clock was read; a
 * snapshot never starts again.
 */
#include "base/error.h"
#include "var/hold.h"

/* In a section: the newest version of var that was committed at `now` or before. */
static struct weiri_version *version_at(struct weiri_record *record, weir_var *var, uint64_t now)
{
	struct weiri_version *version;
	uint64_t stamp;

	weiri_section_read(record, &var->head, &version); /* [S, P1] */
	for (;;) {
		stamp = weiri_version_settle(version);
		/* NONE: undecided, so its stamp will be above `now`. ABORTED is above everything. */
		if (stamp != WEIRI_STAMP_NONE && stamp <= now)
			return version;
		version = version->base;
	}
}

/* A free snapshot slot at or after *next, or NULL. */
static struct weiri_slot *find_snapshot_slot(struct weiri_record *record, size_t *next)
{
	while (*next < WEIRI_SNAPSHOT_SLOTS) {
		size_t i = (*next)++;

		/* [P1 acquire] see weiri_slot_find(). */
		if (weiri_load_acquire(&record->snapshot_slots[i].object) != NULL)
			continue;
		/* [relaxed] own field; [release] pairs with snapshot_slots_used(). */
		if (weiri_load_relaxed(&record->snapshot_used) <= i)
			weiri_store_release(&record->snapshot_used, (uint32_t)i + 1);
		return &record->snapshot_slots[i];
	}
	return NULL;
}

static void hold(struct weiri_record *record, struct weiri_version *version, size_t *next_slot, weir_read *read)
{
	struct weiri_slot *slot = find_snapshot_slot(record, next_slot);

	if (slot == NULL) {
		weiri_hold_by_reference(record, read, version);
		return;
	}
	weiri_slot_claim(slot, version);
	weiri_hold_by_slot(read, version, slot);
}

/* Fills reads[]; returns the first variable without a value, or count. */
static size_t take(struct weiri_record *record, weir_var *const vars[], size_t count, weir_read reads[])
{
	uint64_t outer = weiri_section_enter(record);
	size_t next_slot = 0, missing = count;
	uint64_t now;

	/* [S] linearization. Read like a pointer: the reservation must reach the era of this moment, because what `now` lets us visit
	 * was born before it, and may be retired before we come to it (version.h, Memory). */
	weiri_section_read(record, &weiri_clock, &now);
	for (size_t i = 0; i < count; i++) {
		hold(record, version_at(record, vars[i], now), &next_slot, &reads[i]);
		if (reads[i].tensor == NULL && missing == count)
			missing = i;
	}
	weiri_section_leave(record, outer);
	return missing;
}

enum weir_status weir_var_snapshot(weir_var *const vars[], size_t count, weir_read reads[], weir_error *error)
{
	struct weiri_record *record;
	size_t missing;

	if (count == 0)
		return WEIR_OK;
	if (vars == NULL || reads == NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "snapshot: %s is NULL", vars == NULL ? "vars" : "reads");
	for (size_t i = 0; i < count; i++) {
		if (vars[i] == NULL)
			return weiri_fail(error, WEIR_INVALID_ARGUMENT, "snapshot: variable %zu is NULL", i);
	}
	record = weiri_record_get();
	if (record == NULL)
		return weiri_fail(error, WEIR_RESOURCE_EXHAUSTED, "snapshot: no memory for this thread's record");
	missing = take(record, vars, count, reads);
	if (missing == count)
		return WEIR_OK;
	weir_read_release_many(reads, count);
	return weiri_fail(error, WEIR_FAILED_PRECONDITION, "snapshot: variable \"%s\" is not initialized", vars[missing]->name);
}
