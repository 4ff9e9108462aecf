/*
 * announce.c - see announce.h.
 */
#include "reclaim/announce.h"

#include "base/assert.h"
#include "base/asymmetric.h"
#include "reclaim/section.h"

/* Written by few collections, read by all. */
static _Alignas(WEIRI_APART) _Atomic(uint64_t) weiri_settled;

WEIRI_NOINLINE void weiri_announce(struct weiri_record *record, uint64_t era)
{
	/* [relaxed] Constant once a thread has a record; before, a fence more. */
	if (WEIRI_UNLIKELY(!weiri_load_relaxed(&weiri_fence_asymmetric))) {
		weiri_announce_nothing(record);
		weiri_fence_seq_cst(); /* F1 of section.h */
		return;
	}
	/* [P1 release] pairs with weiri_announced(). */
	weiri_store_release(&record->announced, era);
	weiri_fence_seq_cst(); /* F1 */
	weiri_compiler_barrier();
	weiri_store_relaxed(&record->fenced, era); /* [relaxed] own field; N1 */
}

void weiri_announce_nothing(struct weiri_record *record)
{
	/* First, so that no handler relies on the announcement. [relaxed] own field */
	weiri_store_relaxed(&record->fenced, 0u);
	weiri_compiler_barrier();
	/* [P1 release] pairs with weiri_announced(). */
	weiri_store_release(&record->announced, 0u);
}

void weiri_announce_after_fork(struct weiri_record *record)
{
	/* [relaxed] the only thread, here and below */
	weiri_store_relaxed(&record->fenced, 0u);
	weiri_store_relaxed(&record->announced, 0u);
}

uint64_t weiri_announcements_settled(void)
{
	/* [P2 acquire] pairs with weiri_announcements_settle(). */
	return weiri_load_acquire(&weiri_settled);
}

static WEIRI_UNSEEN void assert_begun(uint64_t era)
{
	WEIR_ASSERT2(N2, era <= weiri_peek(&weiri_era));
}

void weiri_announcements_settle(uint64_t era)
{
	/* [relaxed] compared only. */
	uint64_t before = weiri_load_relaxed(&weiri_settled);

	WEIR_ASSERT_LOOK(assert_begun(era));
	/* N2. [P2 release] pairs with weiri_announcements_settled(). */
	while (before < era && !weiri_cas_release(&weiri_settled, &before, era))
		;
}

bool weiri_anyone_announced(const struct weiri_record *mine, uint64_t era, uint64_t old)
{
	uint64_t settled = weiri_announcements_settled();
	/* [acquire] pairs with publish() in record.c. */
	const struct weiri_record *record = weiri_load_acquire(&weiri_records);

	for (; record != NULL; record = record->next) {
		uint64_t announced = weiri_announced(record, settled);

		if (record != mine && announced != 0 && announced + old <= era)
			return true;
	}
	return false;
}
