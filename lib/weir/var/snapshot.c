/*
 * snapshot.c - reading several variables at one instant. version.h says why it is one instant.
 *
 * The handles are claimed inside the section that protects the versions, so no claim needs a check.
 * The collector reads a record's interval before its slots (collect.c), and finds the version in
 * one or the other.
 *
 * Whether to advance the clock first. A snapshot that finds a version newer than its clock must
 * advance the clock and start again. Where writers are busy, most snapshots would. So after such a
 * snapshot, the thread's next AHEAD snapshots advance the clock at once. Where nothing changes,
 * snapshots write nothing that threads share.
 *
 * Progress: lock-free. The walk down a chain passes one version for each write that ended since the
 * clock was read. The snapshot starts again once to advance the clock. It starts again further only
 * if, since the clock was read, a collection began and a write followed it. This happens once in
 * hundreds of small writes (COLLECT_BYTES).
 */
#include "base/error.h"
#include "var/hold.h"

/* The instant of a snapshot, and the reservation that protects the walk back to it. */
struct instant {
	uint64_t now;      /* T of version.h */
	uint64_t ended;    /* writes that ended before the snapshot have stamps of at most this */
	uint64_t reserved; /* the last era that was reserved when the clock was read: H of version.h */
};

/* How many snapshots advance the clock at once after one that had to start again. */
enum { AHEAD = 16 };

/* Called in a section. Chooses the instant, and advances the clock to it if that is due at once. */
static struct instant choose_instant(struct weiri_record *record)
{
	uint32_t ahead = weiri_load_relaxed(&record->snapshots_ahead); /* [relaxed] own field */
	struct instant instant;

	/*
	 * [S] Linearization point, unless the clock is advanced. The clock is read like a pointer, so
	 * that the reservation reaches the era of this moment.
	 */
	weiri_section_read_reserved(record, &weiri_clock, &instant.now, &instant.reserved);
	instant.ended = instant.now + 1;
	if (ahead != 0) {
		weiri_store_relaxed(&record->snapshots_ahead, ahead - 1); /* [relaxed] own field */
		/* Not to what the clock shows afterwards: the reservation is that of the read above. */
		weiri_clock_advance(instant.now++); /* [S] before the heads are read */
	}
	return instant;
}

/* NONE: undecided, so its stamp will be later. ABORTED is later than every stamp. */
static inline bool is_included(uint64_t stamp, const struct instant *instant)
{
	return stamp != WEIRI_STAMP_NONE && stamp <= instant->now;
}

/* The walk of version_at() from a version that the snapshot does not include. */
static WEIRI_NOINLINE struct weiri_version *walk_back(struct weiri_record *record, struct weiri_version *version,
                                                      uint64_t stamp, const struct instant *instant)
{
	do {
		if (stamp == instant->ended) {
			weiri_store_relaxed(&record->snapshots_ahead, AHEAD); /* [relaxed] own field */
			return NULL;
		}
		if (version->base_birth > instant->reserved)
			return NULL;
		version = version->base;
		stamp = weiri_version_resolve(version);
	} while (!is_included(stamp, instant));
	return version;
}

/*
 * Called in a section. Returns the newest version of `var` that was committed at the instant.
 * Returns NULL if a version may have been committed before the snapshot began and yet has a later
 * stamp, or if the walk would enter memory that may have been freed. *reserved is the last era that
 * was reserved at some time before this call.
 */
static inline struct weiri_version *version_at(struct weiri_record *record, weir_var *var,
                                               const struct instant *instant, uint64_t *reserved)
{
	struct weiri_version *version;
	uint64_t stamp;

	weiri_section_read_after(record, &var->head, &version, reserved); /* [S, P1] */
	stamp = weiri_version_resolve(version);
	return WEIRI_LIKELY(is_included(stamp, instant)) ? version : walk_back(record, version, stamp, instant);
}

/* The next slot is occupied, or was never used. */
static WEIRI_NOINLINE void hold_anywhere(struct weiri_record *record, struct weiri_version *version,
                                         struct weiri_slot **next, weir_read *read)
{
	size_t at = (size_t)(*next - record->snapshot_slots);

	weiri_hold_by_snapshot_slot(record, version, &at, read);
	*next = &record->snapshot_slots[at];
}

enum outcome { TAKEN, TORN, MISSING };

/*
 * Fills reads[] as far as possible, and sets *taken to their number. If a variable has no value, that is number
 * *taken.
 */
static enum outcome take(struct weiri_record *record, weir_var *const vars[], size_t count, weir_read reads[],
                         size_t *taken)
{
	uint64_t outer = weiri_section_enter(record);
	struct instant instant = choose_instant(record);
	uint64_t reserved = weiri_section_reserved(record);
	struct weiri_slot *next = record->snapshot_slots;
	/* [relaxed] own field. It may grow during the loop; then hold_anywhere() does the rest. */
	const struct weiri_slot *used = next + weiri_load_relaxed(&record->snapshot_used);
	enum outcome outcome = TAKEN;
	size_t i = 0;

	for (; i < count; i++) {
		struct weiri_version *version = version_at(record, vars[i], &instant, &reserved);

		if (WEIRI_UNLIKELY(version == NULL)) {
			outcome = TORN;
			break;
		}
		if (WEIRI_UNLIKELY(version->shown == NULL)) {
			outcome = MISSING;
			break;
		}
		if (WEIRI_LIKELY(next < used && weiri_slot_is_free(next))) {
			weiri_slot_claim(next, version);
			weiri_hold_by_slot(&reads[i], version, next++);
		} else {
			hold_anywhere(record, version, &next, &reads[i]);
		}
	}
	weiri_section_leave(record, outer);
	*taken = i;
	return outcome;
}

enum weir_status weir_var_snapshot(weir_var *const vars[], size_t count, weir_read reads[], weir_error *error)
{
	struct weiri_record *record;
	enum outcome outcome;
	size_t taken;

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
	while ((outcome = take(record, vars, count, reads, &taken)) != TAKEN) {
		weir_read_release_many(reads, taken);
		if (outcome == MISSING)
			return weiri_fail(error, WEIR_FAILED_PRECONDITION, "snapshot: variable \"%s\" is not initialized",
			                  vars[taken]->name);
	}
	return WEIR_OK;
}
