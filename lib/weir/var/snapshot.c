/*
 * snapshot.c - reading several variables at one instant. version.h says why it is one instant.
 *
 * Two calls end in the same algorithm. weir_var_snapshot() enters a section, and leaves it when it
 * has claimed a slot for each version. weir_read_section_snapshot() is called in a section that the
 * program has begun (read_section.c), and claims nothing: the section protects the versions as long
 * as it lasts.
 *
 * The handles are claimed inside the section that protects the versions, so no claim needs a check.
 * The collector reads a record's interval before its slots (collect.c), and finds the version in
 * one or the other.
 *
 * In a section of the program. Its lo may be of long ago, and only ages: every version that is
 * included dies after the instant, so after lo (I1 of reclaim/section.h). hi is what the section has
 * reserved so far, for other reads too. It is read before the clock, as H of version.h must be, and
 * raised to the era of that moment if that is later. A head that is shown was born no later than hi
 * when it was read, and a version to which the walk leads no later than H. hi does not fall before
 * the end of the section, except below what a handler raised it to for itself (I2). So the section
 * pins what it would pin if it had peeked at the same moment. A handler may take such a snapshot
 * whatever it interrupts: it stores hi as a peek does, and snapshots_ahead, which is a hint.
 *   Mostly nothing is to be done: the era is reserved, each head has a stamp of at most the clock,
 * and a value. show_at_once() asks only that, and otherwise show() begins anew. It excludes nothing, so
 * its instant lies between the clock and the first head. The instants of what it shows came before the
 * clock had that value (V4). What replaces it was not at its head yet when that was read, so its instant
 * comes later; and so do the instants of all parts of a commit one of which was not there.
 *
 * Whether to advance the clock first. A snapshot that finds a version newer than its clock must
 * advance the clock and start again. Where writers are busy, most snapshots would. So after such a
 * snapshot, the thread's next AHEAD snapshots advance the clock at once. Where nothing changes,
 * snapshots write nothing that threads share.
 *
 * Progress: lock-free. The walk down a chain passes one version for each write that ended since the
 * clock was read. The snapshot starts again once to advance the clock. It starts again further only
 * if, since the clock was read, an era began, and a version that was born in it was replaced. This happens
 * once in hundreds of small writes (COLLECT_BYTES).
 */
#include "base/error.h"
#include "var/hold.h"
#include "var/read_section.h"

/* The instant of a snapshot, and the reservation that protects the walk back to it. */
struct instant {
	uint64_t now;      /* T of version.h */
	uint64_t ended;    /* writes that ended before the snapshot have stamps of at most this */
	uint64_t reserved; /* the last era that was reserved when the clock was read: H of version.h */
};

/* How many snapshots advance the clock at once after one that had to start again. */
enum { AHEAD = 16 };

/* Called in a section. Chooses the instant, and advances the clock to it if that is due at once. */
static WEIRI_ALWAYS_INLINE struct instant choose_instant(struct weiri_record *record)
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

/*
 * NONE, which is 0, becomes the greatest number here: it is undecided, so its stamp will be later.
 * ABORTED is later than every stamp.
 */
static inline bool is_included(uint64_t stamp, uint64_t now)
{
	return stamp - 1 < now;
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
	} while (!is_included(stamp, instant->now));
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
	return WEIRI_LIKELY(is_included(stamp, instant->now)) ? version : walk_back(record, version, stamp, instant);
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

/* `reads` is an array of either kind. */
static WEIRI_ALWAYS_INLINE enum weir_status check(weir_var *const vars[], size_t count, const void *reads,
                                                  weir_error *error)
{
	if (count != 0 && (vars == NULL || reads == NULL))
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "snapshot: %s is NULL", vars == NULL ? "vars" : "reads");
	for (size_t i = 0; i < count; i++) {
		if (vars[i] == NULL)
			return weiri_fail(error, WEIR_INVALID_ARGUMENT, "snapshot: variable %zu is NULL", i);
	}
	return WEIR_OK;
}

static WEIRI_COLD enum weir_status fail_without_value(const weir_var *var, weir_error *error)
{
	return weiri_fail(error, WEIR_FAILED_PRECONDITION, "snapshot: variable \"%s\" is not initialized", var->name);
}

enum weir_status weir_var_snapshot(weir_var *const vars[], size_t count, weir_read reads[], weir_error *error)
{
	struct weiri_record *record;
	enum weir_status status;
	enum outcome outcome;
	size_t taken;

	if (count == 0)
		return WEIR_OK;
	status = check(vars, count, reads, error);
	if (status != WEIR_OK)
		return status;
	record = weiri_record_get();
	if (record == NULL)
		return weiri_fail(error, WEIR_RESOURCE_EXHAUSTED, "snapshot: no memory for this thread's record");
	while ((outcome = take(record, vars, count, reads, &taken)) != TAKEN) {
		weir_read_release_many(reads, taken);
		if (outcome == MISSING)
			return fail_without_value(vars[taken], error);
	}
	return WEIR_OK;
}

/* -- in a section of the program --------------------------------------------------------------- */

/* Called in a section. Fills reads[]; if a variable has no value, *shown is its number. */
static enum outcome show(struct weiri_record *record, weir_var *const vars[], size_t count, const weir_read *reads[],
                         size_t *shown)
{
	struct instant instant = choose_instant(record);
	uint64_t reserved = weiri_section_reserved(record);

	for (size_t i = 0; i < count; i++) {
		struct weiri_version *version = version_at(record, vars[i], &instant, &reserved);

		if (version == NULL)
			return TORN;
		if (version->shown == NULL) {
			*shown = i;
			return MISSING;
		}
		reads[i] = &version->read;
	}
	return TAKEN;
}

static enum weir_status show_or_fail(const weir_read_section *section, weir_var *const vars[], size_t count,
                                     const weir_read *reads[], weir_error *error)
{
	struct weiri_record *record;
	enum outcome outcome;
	size_t shown;
	enum weir_status status;

	if (section == NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "snapshot: section is NULL");
	record = weiri_read_section_record(section);
	if (record == NULL)
		return weiri_fail(error, WEIR_FAILED_PRECONDITION, "snapshot: the section is not open on this thread");
	status = check(vars, count, reads, error);
	if (status != WEIR_OK)
		return status;
	do {
		outcome = show(record, vars, count, reads, &shown);
	} while (outcome == TORN);
	return outcome == MISSING ? fail_without_value(vars[shown], error) : WEIR_OK;
}

/* Whatever is not the common case, from the begin. */
static WEIRI_NOINLINE enum weir_status show_anew(const weir_read_section *section, weir_var *const vars[], size_t count,
                                                 const weir_read *reads[], weir_error *error)
{
	enum weir_status status = show_or_fail(section, vars, count, reads, error);

	for (size_t i = 0; status != WEIR_OK && reads != NULL && i < count; i++)
		reads[i] = NULL;
	return status;
}

/* Called in a section. Fills reads[] and returns true in the common case. */
static WEIRI_ALWAYS_INLINE bool show_at_once(struct weiri_record *record, weir_var *const vars[], size_t count,
                                             const weir_read *reads[])
{
	uint64_t reserved = weiri_section_reserved(record);
	/*
	 * [S] Comes after the CAS that advanced it, which came after the installs of all versions with such stamps. So
	 * the heads below, which are read in that order, have them.
	 */
	uint64_t now = weiri_load_seq_cst(&weiri_clock);
	uint32_t ahead = weiri_load_relaxed(&record->snapshots_ahead); /* [relaxed] own field, here and below */

	WEIR_ASSERT_LOOK(weiri_section_assert_entered(record));
	if (WEIRI_UNLIKELY(ahead != 0)) {
		weiri_store_relaxed(&record->snapshots_ahead, ahead - 1);
		weiri_clock_advance(now++); /* [S] before the heads are read */
	}
	for (size_t i = 0; i < count; i++) {
		struct weiri_version *version;

		if (WEIRI_UNLIKELY(vars[i] == NULL))
			return false;
		version = weiri_load_seq_cst(&vars[i]->head); /* [S, P1] */
		/* [relaxed] as in weiri_section_raise(). It comes before the version is touched. */
		if (WEIRI_UNLIKELY(weiri_load_relaxed(&weiri_era) > reserved))
			return false;
		/* [P2 acquire] as in weiri_version_resolve(). */
		if (WEIRI_UNLIKELY(!is_included(weiri_load_acquire(&version->stamp), now) || version->shown == NULL))
			return false;
		reads[i] = &version->read;
	}
	return true;
}

/* As in read.c, what is rare ends in a call that returns for this function, which so saves no registers. */
enum weir_status weir_read_section_snapshot(const weir_read_section *section, weir_var *const vars[], size_t count,
                                            const weir_read *reads[], weir_error *error)
{
	struct weiri_record *record;

	if (WEIRI_LIKELY(section != NULL && vars != NULL && reads != NULL)) {
		record = weiri_read_section_record(section);
		if (WEIRI_LIKELY(record != NULL && show_at_once(record, vars, count, reads)))
			return WEIR_OK;
	}
	return show_anew(section, vars, count, reads, error);
}
