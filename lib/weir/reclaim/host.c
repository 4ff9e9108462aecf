/*
 * host.c - see host.h.
 */
#include "reclaim/host.h"

#include "base/assert.h"

static _Atomic(weiri_host_wanted *) when_wanted;

struct weiri_record *weiri_host_open(void)
{
	struct weiri_record *record = weiri_record_lend();

	if (record == NULL)
		return NULL;
	/* [relaxed] lo publishes it, as in weiri_section_enter(). */
	weiri_store_relaxed(&record->hi, UINT64_MAX);
	/*
	 * [seq_cst] as in weiri_section_enter(): who retires after a foreign read sees this era.
	 * [release] for the collector that reads hi after lo.
	 */
	weiri_store_release(&record->lo, weiri_load_seq_cst(&weiri_era));
	weiri_fence_seq_cst(); /* F1 of section.h */
	return record;
}

void weiri_host_advance(struct weiri_record *record, uint64_t era)
{
	/* [relaxed] compared only. */
	uint64_t lo = weiri_load_relaxed(&record->lo);

	/*
	 * U2. [P1 release] pairs with hold_record(). A read-modify-write continues the release sequence
	 * of the one before, so a collector sees the earlier grace periods, too.
	 */
	while (lo < era && !weiri_cas_release(&record->lo, &lo, era))
		;
	/* F1: a waiter sets poke, runs the heavy fence, and scans again before it sleeps. */
	weiri_fence_light();
	/* [relaxed] a flag; the waiter rescans. */
	if (weiri_load_relaxed(&record->poke) != 0)
		weiri_wake_memory_waiters(record);
}

void weiri_host_close(struct weiri_record *record)
{
	/*
	 * An announcement reserves all up to hi, and the next owner may announce eras for ever without a section. [P1
	 * release] pairs with reserved_by() of collect.c: a collector that sees lo and this hi frees what the host held.
	 */
	weiri_store_release(&record->hi, 0u);
	weiri_record_take_back(record);
}

void weiri_host_set_wanted(weiri_host_wanted *wanted)
{
	/* [P2 release] pairs with weiri_host_after_collection(). */
	weiri_store_release(&when_wanted, wanted);
}

void weiri_host_after_collection(void)
{
	/* [P2 acquire] pairs with weiri_host_set_wanted(). */
	weiri_host_wanted *wanted = weiri_load_acquire(&when_wanted);

	if (WEIRI_UNLIKELY(wanted != NULL))
		wanted();
}
