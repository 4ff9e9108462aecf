/*
 * stall.c - see stall.h.
 *
 * Progress: lock-free; a search waits for no thread. One CAS decides which thread makes a search
 * that is due.
 * Checked: tests/test_stalls.c, stress/model/check_stalls.c.
 */
#include "reclaim/stall.h"

#include <weir/time.h>

#include "base/compiler.h"
#include "reclaim/eras.h"

struct look {
	uint64_t limit_ns, now_ns;
	weiri_stall_describe *describe;
	struct weiri_stalls *stalls;
};

static void note(struct weiri_stalls *stalls, const struct weiri_stall *stall)
{
	if (stalls->found < WEIRI_MOST_STALLS)
		stalls->stall[stalls->found] = *stall;
	stalls->found++;
}

/*
 * Notes each slot that names the object: a handle is still held there. [relaxed] The words that are
 * read are compared or displayed, and not followed.
 */
static void note_slots(struct look *look, const struct weiri_record *record, const struct weiri_slot slots[],
                       size_t count, const struct weiri_retired *object, struct weiri_stall *stall)
{
	for (size_t i = 0; i < count; i++) {
		if (weiri_load_relaxed(&slots[i].object) != object)
			continue;
		stall->thread = weiri_record_thread(record);
		note(look->stalls, stall);
	}
}

/*
 * Called for each object that a collection could not free. If no slot names the object, a section
 * keeps it, and note_sections() notes that section.
 */
static void note_kept(void *context, struct weiri_retired *object)
{
	struct look *look = context;
	struct weiri_stall stall = {.age_ns = weiri_era_age(object->death, look->now_ns), .bytes = object->bytes};

	if (stall.age_ns < look->limit_ns)
		return;
	look->describe(object, &stall);
	for (const struct weiri_record *record = weiri_load_acquire(&weiri_records); record != NULL;
	     record = record->next) { /* [acquire] pairs with publish() in record.c */
		note_slots(look, record, record->slots, WEIRI_SLOTS, object, &stall);
		note_slots(look, record, record->snapshot_slots, WEIRI_SNAPSHOT_SLOTS, object, &stall);
	}
}

static void note_sections(struct look *look)
{
	for (const struct weiri_record *record = weiri_load_acquire(&weiri_records); record != NULL;
	     record = record->next) { /* [acquire] as above */
		uint64_t began = weiri_load_relaxed(&record->lo);
		struct weiri_stall stall = {.is_section = true,
		                            .thread = weiri_record_thread(record),
		                            .read_sections = weiri_load_relaxed(&record->read_sections)};

		if (began == 0)
			continue;
		stall.is_host = stall.thread == WEIRI_RECORD_OF_HOST;
		stall.thread = stall.is_host ? 0 : stall.thread;
		stall.age_ns = weiri_era_age(began, look->now_ns);
		if (stall.age_ns >= look->limit_ns)
			note(look->stalls, &stall);
	}
}

void weiri_stalls_look(struct weiri_record *record, uint64_t limit_ns, weiri_stall_describe *describe,
                       struct weiri_stalls *stalls)
{
	struct look look = {limit_ns, weir_now_ns(), describe, stalls};

	stalls->found = 0;
	weiri_collect_everybodys(record, note_kept, &look);
	note_sections(&look);
}

/* -- searches that are due --------------------------------------------------------------------- */

static _Atomic(uint64_t) limit; /* 0: no search is wanted */
static _Atomic(uint64_t) due_ns;
static _Atomic(weiri_stalls_due *) when_due;

void weiri_stalls_set_due(uint64_t limit_ns, weiri_stalls_due *due)
{
	weiri_store_relaxed(&due_ns, 0u); /* [relaxed] a time */
	weiri_store_relaxed(&when_due, due);
	/* [release] pairs with the acquire below: a limit that is seen has its function. */
	weiri_store_release(&limit, limit_ns);
}

/*
 * The callback may write, and so collect, and may take longer than the limit. On one thread it is
 * not called again while it runs.
 */
void weiri_stalls_after_collection(struct weiri_record *record)
{
	/* [acquire] pairs with set_due(). */
	uint64_t limit_ns = weiri_load_acquire(&limit), due, now;

	if (WEIRI_LIKELY(limit_ns == 0) || record->own->tells_of_stalls)
		return;
	now = weir_now_ns();
	due = weiri_load_relaxed(&due_ns); /* [relaxed] a time; one thread's CAS succeeds */
	if (now < due || !weiri_cas_relaxed(&due_ns, &due, now + limit_ns))
		return;
	record->own->tells_of_stalls = true;
	weiri_load_relaxed (&when_due)(record, limit_ns);
	record->own->tells_of_stalls = false;
}
