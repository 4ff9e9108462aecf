/*
 * read.c - taking and releasing a handle on the newest version.
 *
 * Algorithm. Claim a hazard slot for the version at the head, and read the head again. If the head
 * is unchanged, the claim came before the version was retired, so the collector sees the claim
 * (section.h, F1), or an announcement that stands for it: so the read then compares the era with the
 * one that this thread has announced (announce.h). If they differ, it announces the era, with a
 * fence, and reads the head once more. These are hazard pointers (Michael 2004), but without a
 * store-load fence in each read, and without a loop. After one failure, or without a free slot, the read uses a section and a
 * reference of the tensor instead.
 *
 * Progress: wait-free. The largest numbers of atomic accesses follow. They include fences, and
 * three accesses to wake a writer.
 *   to the last read of the head     `picking` 3, slots 8, head, claim, head, era 2,           20
 *                                    announcement 3, head
 *   head has moved: clear the slot   store, fence, poke, waking 3                               6
 *   or it is unresolved               stamp 2, slots 7 (15 in both searches), claim,            31
 *                                    `picking` 2, head, era 2, announcement 3, head;
 *                                    clear both slots 12
 *   then in a section                enter 8, head 3 + 4r, version and its cell 6,      21 + 4r
 *                                    count 2, retain 1, leave 1
 * So a read takes at most 72 + 4r, with r as in weiri_section_read(). There the slack doubles, so r
 * rounds take 2^(r-1) collections. stress/model/check_var.c compares these numbers with what it
 * counts.
 *
 * A signal handler may read. If `picking` is set, the interrupted thread is choosing a slot, and
 * the handler uses a reference. The handler must not free. If its reference turns out to be the
 * last, it leaves the value to the next collection.
 *
 * weir_var_version() takes 18 + 4r: enter 8, the head 3 + 4r, resolving 6, leave 1.
 * weir_var_try_read_newer() takes that and then a read: 90 + 8r.
 *
 * Linearization: the last read of the head. On the slow path: the read of the head or, if the
 * version there was undecided, the read of its cell.
 */
#include "var/hold.h"

#include "base/error.h"

static WEIRI_NOINLINE enum weir_status fail_uninitialized(struct weiri_slot *slot)
{
	weiri_slot_clear(slot);
	return WEIR_FAILED_PRECONDITION;
}

/* `slot` was claimed for `version`, which was still the newest afterwards. */
static inline enum weir_status give(weir_read *read, const struct weiri_version *version, struct weiri_slot *slot)
{
	if (WEIRI_UNLIKELY(version->shown == NULL))
		return fail_uninitialized(slot);
	weiri_hold_by_slot(read, version, slot);
	return WEIR_OK;
}

void weiri_hold(struct weiri_record *record, struct weiri_version *version, weir_read *read)
{
	struct weiri_slot *slot;

	weiri_store_relaxed(&record->picking, 1u); /* [relaxed] for this thread's signal handlers */
	weiri_compiler_barrier();
	slot = weiri_slot_find(record);
	if (slot != NULL) {
		weiri_slot_claim(slot, version);
		weiri_hold_by_slot(read, version, slot);
	} else {
		weiri_hold_by_reference(record, read, version);
	}
	weiri_compiler_barrier();
	weiri_store_relaxed(&record->picking, 0u);
}

static WEIRI_NOINLINE enum weir_status read_in_section(weir_var *var, weir_read *read, struct weiri_record *record)
{
	uint64_t outer = weiri_section_enter(record);
	weir_read result;

	weiri_hold_by_reference(record, &result, weiri_newest(record, var));
	weiri_section_leave(record, outer);
	if (result.tensor == NULL)
		return WEIR_FAILED_PRECONDITION;
	*read = result;
	return WEIR_OK;
}

/*
 * Claims a slot for the base of `head`, which is aborted. While an aborted version is at the head,
 * its base is the newest version. The caller's slot still holds `head` meanwhile. Otherwise its
 * memory could come back as another head, and the last load would prove nothing. Returns NULL if no
 * slot is free or the head has moved.
 */
static struct weiri_slot *claim_base(struct weiri_record *record, weir_var *var, struct weiri_version *head)
{
	struct weiri_slot *second;

	weiri_store_relaxed(&record->picking, 1u); /* [relaxed] see weir_var_read() */
	weiri_compiler_barrier();
	second = weiri_slot_find(record);
	if (second != NULL)
		weiri_slot_claim(second, head->base);
	weiri_compiler_barrier();
	weiri_store_relaxed(&record->picking, 0u);
	/*
	 * [relaxed] The read took effect at the load in weir_var_read(), which acquired everything
	 * behind the head. This load only shows that the base was not retired before the claim: F1 of
	 * section.h.
	 */
	if (second == NULL || (weiri_load_relaxed(&var->head) == head &&
	                       (weiri_slot_counts(record) || weiri_load_relaxed(&var->head) == head)))
		return second;
	weiri_slot_clear(second);
	return NULL;
}

/* `slot` was claimed and counts for `head`, which was still the head afterwards. */
static WEIRI_NOINLINE enum weir_status read_unresolved(weir_var *var, weir_read *read, struct weiri_record *record,
                                                       struct weiri_version *head, struct weiri_slot *slot)
{
	struct weiri_slot *second = NULL;
	struct weiri_version *base = head->base;

	/*
	 * [relaxed] The stamp orders nothing here: `base` is constant and was acquired with the head.
	 */
	if (weiri_load_relaxed(&head->stamp) == WEIRI_STAMP_ABORTED)
		second = claim_base(record, var, head);
	weiri_slot_clear(slot);
	if (second == NULL)
		return read_in_section(var, read, record);
	return give(read, base, second);
}

/*
 * What is rare before a slot is looked for: the thread's first call, an argument that is NULL, or a
 * signal handler that has interrupted the choice of a slot.
 */
static WEIRI_NOINLINE enum weir_status read_otherwise(weir_var *var, weir_read *read)
{
	struct weiri_record *record;

	if (var == NULL || read == NULL)
		return WEIR_INVALID_ARGUMENT;
	record = weiri_record_get();
	return record != NULL ? read_in_section(var, read, record) : WEIR_RESOURCE_EXHAUSTED;
}

/* The head moved before the claim of the slot. */
static WEIRI_NOINLINE enum weir_status read_again(weir_var *var, weir_read *read, struct weiri_record *record,
                                                  struct weiri_slot *slot)
{
	weiri_slot_clear(slot);
	return read_in_section(var, read, record);
}

/*
 * A collection has begun. The slot was claimed for `head`, and counts once the thread has announced
 * the era.
 */
static WEIRI_NOINLINE enum weir_status read_in_another_era(weir_var *var, weir_read *read, struct weiri_record *record,
                                                           struct weiri_version *head, struct weiri_slot *slot)
{
	(void)weiri_slot_counts(record);
	/* [S, P1] As in read_by_slot(): the linearization point in this case. */
	if (weiri_load_seq_cst(&var->head) != head)
		return read_again(var, read, record, slot);
	/* [P2 acquire] As in read_by_slot(). */
	if (!weiri_stamp_is_committed(weiri_load_acquire(&head->stamp)))
		return read_unresolved(var, read, record, head, slot);
	return give(read, head, slot);
}

/* Returns `version`. Its stamp and what follows are then near the address in the register: shorter code. */
static WEIRI_ALWAYS_INLINE struct weiri_version *by_stamp(struct weiri_version *version)
{
	char *stamp = (char *)version + offsetof(struct weiri_version, stamp);

	WEIRI_KEEP(stamp);
	return WEIRI_CONTAINER_OF(stamp, struct weiri_version, stamp);
}

/*
 * Reads with a free slot; `picking` is set. Every branch that is not taken in the common case ends
 * in a call that returns for this function, so that the common case saves no registers.
 */
static WEIRI_ALWAYS_INLINE enum weir_status read_by_slot(weir_var *var, weir_read *read, struct weiri_record *record,
                                                         struct weiri_slot *slot)
{
	/* [relaxed] not dereferenced before the second read. */
	struct weiri_version *head = weiri_load_relaxed(&var->head);

	weiri_slot_claim(slot, head);
	weiri_compiler_barrier();
	weiri_store_relaxed(&record->picking, 0u);
	/* [S, P1] If the head is unchanged, the claim came in time. Linearization point. */
	if (WEIRI_UNLIKELY(weiri_load_seq_cst(&var->head) != head))
		return read_again(var, read, record, slot);
	/* [relaxed] As in weiri_slot_counts(). */
	if (WEIRI_UNLIKELY(!weiri_is_announced(record, weiri_load_relaxed(&weiri_era))))
		return read_in_another_era(var, read, record, head, slot);
	head = by_stamp(head);
	/* [P2 acquire] A stamped version may be returned: a later snapshot includes it. */
	if (WEIRI_UNLIKELY(!weiri_stamp_is_committed(weiri_load_acquire(&head->stamp))))
		return read_unresolved(var, read, record, head, slot);
	return give(read, head, slot);
}

/* The first slot is occupied; `picking` is set. */
static WEIRI_NOINLINE enum weir_status read_by_another_slot(weir_var *var, weir_read *read, struct weiri_record *record)
{
	struct weiri_slot *slot = weiri_slot_find_from(record, 1);

	if (WEIRI_LIKELY(slot != NULL))
		return read_by_slot(var, read, record, slot);
	weiri_store_relaxed(&record->picking, 0u);
	return read_in_section(var, read, record);
}

/*
 * This and weir_read_release() keep to two lines and one line of code on x86-64, from the begin of a line on. Each
 * line more costs a cycle (docs/profiling.md). So each branch to what is rare is short: its target is a jump behind
 * the function, and no branch of four bytes into the cold part of the library. Conditions of one target
 * stand alone, since gcc computes them all where they are one.
 */
WEIRI_AT_LINE enum weir_status weir_var_read(weir_var *var, weir_read *read)
{
	struct weiri_record *record = weiri_record_mine;

	if (WEIRI_UNLIKELY(record == NULL))
		return read_otherwise(var, read);
	if (WEIRI_UNLIKELY(var == NULL))
		return read_otherwise(var, read);
	if (WEIRI_UNLIKELY(read == NULL))
		return read_otherwise(var, read);
	/* [relaxed] Only this thread and its signal handlers access it. */
	if (WEIRI_UNLIKELY(weiri_load_relaxed(&record->picking)))
		return read_otherwise(var, read);
	weiri_store_relaxed(&record->picking, 1u);
	weiri_compiler_barrier();
	if (WEIRI_UNLIKELY(!weiri_slot_is_free(&record->slots[0])))
		return read_by_another_slot(var, read, record);
	return read_by_slot(var, read, record, &record->slots[0]);
}

/* The handle has no slot. */
static WEIRI_NOINLINE void release_reference(weir_read *read)
{
	weiri_value_release_later(weiri_hold_value_of(read)); /* the caller may be a signal handler */
	weiri_hold_clear(read, NULL);
}

WEIRI_AT_LINE void weir_read_release(weir_read *read)
{
	struct weiri_slot *slot;
	void *none = NULL;

	if (WEIRI_UNLIKELY(read == NULL))
		return;
	if (WEIRI_UNLIKELY(!weiri_hold_has_slot(read))) {
		release_reference(read);
		return;
	}
	slot = weiri_hold_slot_of(read);
	WEIRI_KEEP(none);
	weiri_hold_clear(read, none);
	weiri_slot_drop_by(slot, none);
	weiri_look_for_memory_waiters(weiri_record_of(slot));
}

/*
 * Handles of one snapshot have slots of one record. So the writers that wait are looked for once, and
 * not for each handle.
 */
void weir_read_release_many(weir_read reads[], size_t count)
{
	struct weiri_record *last = NULL;

	for (size_t i = 0; reads != NULL && i < count; i++) {
		struct weiri_slot *slot = weiri_hold_slot_of(&reads[i]);
		struct weiri_record *record = weiri_record_of(slot);

		if (WEIRI_UNLIKELY(!weiri_hold_has_slot(&reads[i]))) {
			release_reference(&reads[i]);
			continue;
		}
		if (WEIRI_UNLIKELY(record != last)) {
			if (last != NULL)
				weiri_look_for_memory_waiters(last);
			last = record;
		}
		weiri_hold_clear(&reads[i], NULL);
		weiri_slot_drop(slot);
	}
	if (last != NULL)
		weiri_look_for_memory_waiters(last);
}

/* Returns the number of the newest version. */
static uint64_t look(struct weiri_record *record, weir_var *var)
{
	uint64_t outer = weiri_section_enter(record);
	uint64_t number = weiri_newest(record, var)->number;

	weiri_section_leave(record, outer);
	return number;
}

uint64_t weir_var_version(weir_var *var)
{
	struct weiri_record *record = weiri_record_get();

	return var != NULL && record != NULL ? look(record, var) : 0;
}

/*
 * Compares numbers before it takes a handle, because a thread that polls mostly finds nothing new.
 */
enum weir_status weir_var_try_read_newer(weir_var *var, uint64_t version, weir_read *read)
{
	struct weiri_record *record;

	if (var == NULL || read == NULL)
		return WEIR_INVALID_ARGUMENT;
	record = weiri_record_get();
	if (record == NULL)
		return WEIR_RESOURCE_EXHAUSTED;
	/*
	 * Numbers only grow, and a number above `version` is not 0. So the read that follows finds a
	 * version that is newer too and has a value.
	 */
	return look(record, var) > version ? weir_var_read(var, read) : WEIR_WOULD_BLOCK;
}
