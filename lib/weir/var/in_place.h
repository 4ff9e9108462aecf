/*
 * in_place.h - an attempt to update an inline variable, in the common case.
 *
 * Algorithm. The attempt claims a hazard slot for the newest version, as a read does (read.c). It
 * copies the bytes into a new version, and the function changes them there. Then it enters a section
 * and replaces the old version by a CAS of the head. It does not read the head again first: the slot
 * holds the old version, so its address cannot come back, and a CAS that succeeds has replaced the
 * version that the function saw. This is what the general path of update.c does, in one function and
 * without the second read. Every other case goes there: a handle on what is published, a history, no
 * free first slot, a head that moves or has no stamp yet, an exhausted budget.
 *
 * The section. Once the CAS has published the new version, any thread may stamp, replace and retire
 * it. Only the section keeps it until this thread has stamped it, too. If the section was entered for
 * this, its lo and hi are an era that was read after the birth of the version. But a section may have
 * been open already, and eras may have passed since. Then its hi is raised first. On the general path
 * weiri_section_read() does so.
 *
 * The function may end the thread, wait as a coroutine and continue on another thread, or call Weir.
 * So the record is read again after it (weiri_record_get_anew()), and the slot is found by its
 * address.
 *
 * Linearization, progress: those of a write (version.h). A failed CAS means that another succeeded.
 * Checked: tests/test_value.c, stress/model/check_value.c, stress scenario value.
 */
#ifndef WEIRI_VAR_IN_PLACE_H
#define WEIRI_VAR_IN_PLACE_H

#include <limits.h>
#include <weir/value.h>

#include "reclaim/admit.h"
#include "var/box.h"
#include "var/hold.h"
#include "var/install.h"
#include "var/kind.h"

/* Outcomes of an attempt, besides what the function returns: a status, or any number it takes for one, such as -1. */
enum {
	WEIRI_LOST = INT_MIN,     /* another writer came first */
	WEIRI_UNFIT = INT_MIN + 1 /* not the common case; nothing was done */
};

/*
 * What the function of an update in place left is not as it should be, or `status` says so, or there
 * is no record. Discards the version and returns a status. *said is what the function said of a failure.
 */
int weiri_refuse_in_place(const weir_var *var, enum weir_status status, const weir_value *next,
                          struct weiri_version *version, weir_error *said, weir_error *error);

/* There is no memory for a version: returns WEIR_RESOURCE_EXHAUSTED. */
enum weir_status weiri_fail_version(const weir_var *var, weir_error *error);

/* Claims the first slot for the newest version, and returns that version; or NULL if it is not the common case. */
static WEIRI_ALWAYS_INLINE struct weiri_version *weiri_claim_newest(struct weiri_record *record, weir_var *var)
{
	struct weiri_slot *slot = &record->slots[0];
	struct weiri_version *head;

	/* [relaxed] Only this thread and its signal handlers access it. */
	if (WEIRI_UNLIKELY(weiri_load_relaxed(&record->picking)))
		return NULL;
	weiri_store_relaxed(&record->picking, 1u);
	weiri_compiler_barrier();
	if (WEIRI_UNLIKELY(!weiri_slot_is_free(slot))) {
		weiri_store_relaxed(&record->picking, 0u);
		return NULL;
	}
	head = weiri_load_relaxed(&var->head); /* [relaxed] not dereferenced before the second read */
	weiri_slot_claim(slot, head);
	weiri_compiler_barrier();
	weiri_store_relaxed(&record->picking, 0u);
	/* [S, P1] [relaxed] [P2 acquire] As in read_by_slot() of read.c. */
	if (WEIRI_LIKELY(weiri_load_seq_cst(&var->head) == head &&
	                 weiri_is_announced(record, weiri_load_relaxed(&weiri_era)) &&
	                 weiri_stamp_is_committed(weiri_load_acquire(&head->stamp)) && head->shown != NULL))
		return head;
	weiri_slot_clear(slot);
	return NULL;
}

/*
 * Replaces `base`, which a slot holds, by `version`. Returns false if it is not the newest any more.
 * There is no history.
 */
static WEIRI_ALWAYS_INLINE bool weiri_replace_held(struct weiri_record *record, weir_var *var,
                                                   struct weiri_version *base, struct weiri_version *version)
{
	struct weiri_scope scope = weiri_scope_enter(record);
	bool is_replaced;

	if (WEIRI_UNLIKELY(scope.outer != 0)) {
		/* I1 of section.h: the era is read after the birth of the new version, which hi must not precede. */
		uint64_t reserved = weiri_section_reserved(record);

		(void)weiri_section_raise(record, &reserved, 0);
	}
	weiri_version_set_base(version, base);
	is_replaced = weiri_write_replace(&scope, var, base, base, version);
	if (WEIRI_LIKELY(is_replaced))
		(void)weiri_stamp_now(&version->stamp, WEIRI_STAMP_NONE);
	weiri_section_leave(record, scope.outer);
	return is_replaced;
}

/* Returns what the function returned, an error, or one of the outcomes above. */
static WEIRI_ALWAYS_INLINE int weiri_update_in_place(weir_var *var, weir_update_value_fn *fn, void *context,
                                                     weir_error *error)
{
	struct weiri_record *record = weiri_record_mine;
	struct weiri_version *base, *version;
	enum weir_status status;
	weir_read current;
	weir_value next;
	weir_error said;

	if (WEIRI_UNLIKELY(record == NULL || !weiri_reclaim_has_room()))
		return WEIRI_UNFIT;
	base = weiri_claim_newest(record, var);
	if (WEIRI_UNLIKELY(base == NULL))
		return WEIRI_UNFIT;
	weiri_hold_by_slot(&current, base, &record->slots[0]);
	version = weiri_box_of_bytes(record, var, base->shown);
	if (WEIRI_UNLIKELY(version == NULL)) {
		weir_read_release(&current);
		return (int)weiri_fail_version(var, error);
	}
	next = weiri_value_shown(var, version->shown);
	weiri_error_begin(&said);
	status = fn(context, &current, &next, &said);
	record = weiri_record_get_anew();
	if (WEIRI_UNLIKELY(status != WEIR_OK || next.room != version->shown || next.size != var->size ||
	                   next.kind != WEIR_VAR_INLINE || record == NULL)) {
		weir_read_release(&current);
		return weiri_refuse_in_place(var, status, &next, version, &said, error);
	}
	if (WEIRI_UNLIKELY(!weiri_replace_held(record, var, base, version))) {
		weir_read_release(&current);
		weiri_version_discard(version);
		return WEIRI_LOST;
	}
	weiri_slot_clear(weiri_hold_slot_of(&current));
	weiri_retire(record, &base->retired); /* V5: after the stamp */
	weiri_waitable_pump(record, &var->waitable);
	return WEIR_OK;
}

#endif
