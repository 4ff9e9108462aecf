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
 * stamp, or if the walk would enter memory that may have been freed.
 */
static struct weiri_version *version_at(struct weiri_record *record, weir_var *var, const struct instant *instant)
{
	struct weiri_version *version;
	uint64_t stamp;

	weiri_section_read(record, &var->head, &version); /* [S, P1] */
	stamp = weiri_version_resolve(version);
	return WEIRI_LIKELY(is_included(stamp, instant)) ? version : walk_back(record, version, stamp, instant);
}

/* Fills reads[] as far as possible; returns true if it filled all of them. */
static bool take(struct weiri_record *record, weir_var *const vars[], size_t count, weir_read reads[], size_t *taken)
{
	uint64_t outer = weiri_section_enter(record);
	struct instant instant = choose_instant(record);
	size_t next_slot = 0;

	for (*taken = 0; *taken < count; ++*taken) {
		struct weiri_version *version = version_at(record, vars[*taken], &instant);

		if (version == NULL)
			break;
		weiri_hold_by_snapshot_slot(record, version, &next_slot, &reads[*taken]);
	}
	weiri_section_leave(record, outer);
	return *taken == count;
}

/* Returns the index of the first variable without a value, or `count` if each has one. */
static size_t find_missing(const weir_read reads[], size_t count)
{
	size_t i = 0;

	while (i < count && reads[i].data != NULL)
		i++;
	return i;
}

enum weir_status weir_var_snapshot(weir_var *const vars[], size_t count, weir_read reads[], weir_error *error)
{
	struct weiri_record *record;
	size_t taken, missing;

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
	while (!take(record, vars, count, reads, &taken))
		weir_read_release_many(reads, taken);
	missing = find_missing(reads, count);
	if (missing == count)
		return WEIR_OK;
	weir_read_release_many(reads, count);
	return weiri_fail(error, WEIR_FAILED_PRECONDITION, "snapshot: variable \"%s\" is not initialized",
	                  vars[missing]->name);
}
