/*
 * hold.h - what a handle (weir_read) holds: a hazard slot, or a reference of the value.
 *
 * weir_read.hold is the slot with WEIRI_HOLD_SLOT added, or the value with WEIRI_HOLD_REFERENCE
 * added. It is NULL in a cleared handle. A weir_read whose `hold` has no tag holds nothing: that of a
 * version (version.h), of which a read section gives the address.
 */
#ifndef WEIRI_VAR_HOLD_H
#define WEIRI_VAR_HOLD_H

#include <stddef.h>
#include <string.h>

#include "var/version.h"

/* Called in a section. Returns the newest committed version. */
static inline struct weiri_version *weiri_newest(struct weiri_record *record, weir_var *var)
{
	struct weiri_version *head;

	weiri_section_read(record, &var->head, &head); /* [S, P1] */
	/* The base of an undecided or aborted version counts instead; it is committed (V2). */
	return weiri_stamp_is_committed(weiri_version_resolve(head)) ? head : head->base;
}

enum { WEIRI_HOLD_SLOT = 1, WEIRI_HOLD_REFERENCE = 2 };

static inline void weiri_hold_by_slot(weir_read *read, const struct weiri_version *version, struct weiri_slot *slot)
{
	*read = (weir_read){.pointer = version->shown, .version = version->number, .hold = (char *)slot + WEIRI_HOLD_SLOT};
}

/*
 * Clears a handle by two stores, of which the second has 16 bytes where the machine has such. `none` is NULL. The
 * barrier keeps gcc from other pairs of words: docs/profiling.md says what these cost.
 */
static inline void weiri_hold_clear(weir_read *read, void *none)
{
	read->pointer = none;
	weiri_compiler_barrier();
	memset((char *)read + offsetof(weir_read, version), 0, sizeof(*read) - offsetof(weir_read, version));
}

static inline bool weiri_hold_has_slot(const weir_read *read)
{
	return ((uintptr_t)read->hold & WEIRI_HOLD_SLOT) != 0;
}

/* Returns the slot of a handle that has one. */
static inline struct weiri_slot *weiri_hold_slot_of(const weir_read *read)
{
	return (struct weiri_slot *)((uintptr_t)read->hold - WEIRI_HOLD_SLOT);
}

/*
 * Returns a handle that has a reference of the value, or a cleared one with the number if there is
 * no value. The caller has a reference, or a section protects one.
 */
static inline weir_read weiri_hold_value(struct weiri_value *value, void *shown, uint64_t number)
{
	if (value == NULL)
		return (weir_read){.version = number};
	weiri_value_retain(value);
	return (weir_read){.pointer = shown, .version = number, .hold = (char *)value + WEIRI_HOLD_REFERENCE};
}

/* Returns the value of which the handle has a reference, or NULL if the handle has none. */
static inline struct weiri_value *weiri_hold_value_of(const weir_read *read)
{
	uintptr_t hold = (uintptr_t)read->hold;

	return (hold & WEIRI_HOLD_REFERENCE) != 0 ? (struct weiri_value *)(hold - WEIRI_HOLD_REFERENCE) : NULL;
}

/* Called in a section that protects `version`. */
static inline void weiri_hold_by_reference(struct weiri_record *record, weir_read *read,
                                           const struct weiri_version *version)
{
	weiri_count(&record->slot_misses, 1);
	*read = weiri_hold_value(version->value, version->shown, version->number);
}

/*
 * Makes a handle on a version that no thread can free meanwhile: the version is not published yet,
 * or the caller's section protects it.
 */
void weiri_hold(struct weiri_record *record, struct weiri_version *version, weir_read *read);
/*
 * Returns a free snapshot slot at or after *next, or NULL if there is none. Moves *next behind the
 * slots that it examined.
 */
static inline struct weiri_slot *weiri_snapshot_slot_find(struct weiri_record *record, size_t *next)
{
	while (*next < WEIRI_SNAPSHOT_SLOTS) {
		size_t i = (*next)++;

		/* [P1 acquire] see weiri_slot_find(). */
		if (weiri_load_acquire(&record->snapshot_slots[i].object) != NULL)
			continue;
		/*
		 * [relaxed] Only this thread writes it. The end of the section releases it to
		 * snapshot_slots_used().
		 */
		if (weiri_load_relaxed(&record->snapshot_used) <= i)
			weiri_store_relaxed(&record->snapshot_used, (uint16_t)(i + 1));
		return &record->snapshot_slots[i];
	}
	return NULL;
}

/*
 * Makes one of many handles. Called in a section that protects `version`. Uses a free snapshot slot
 * at or after *next_slot and advances *next_slot. If no slot is free, the handle gets a reference.
 * Signal handlers must not call this function.
 */
static inline void weiri_hold_by_snapshot_slot(struct weiri_record *record, struct weiri_version *version,
                                               size_t *next_slot, weir_read *read)
{
	struct weiri_slot *slot = weiri_snapshot_slot_find(record, next_slot);

	if (slot == NULL) {
		weiri_hold_by_reference(record, read, version);
		return;
	}
	weiri_slot_claim(slot, version);
	weiri_hold_by_slot(read, version, slot);
}

#endif
