/*
 * announce.c - see announce.h.
 */
#include "reclaim/announce.h"

#include <weir/time.h>

#include "base/assert.h"
#include "base/asymmetric.h"
#include "reclaim/section.h"

enum {
#if defined(WEIRI_UNDER_MODEL)
	IDLE_ERAS = 2, /* in stress/model there are few collections */
#else
	IDLE_ERAS = 4,
#endif
	PAUSE_FACTOR = 256 /* of the time that a membarrier took */
};
/* One that took a second, because the machine stood still, must not end membarriers for minutes. */
static const uint64_t longest_pause_ns = UINT64_C(4000000000);

#if defined(WEIRI_UNDER_MODEL) /* where time passes only with a deadline */
uint64_t weiri_settle_pause_ns = 0;
#else
uint64_t weiri_settle_pause_ns = 1000000;
#endif

/* Written by few collections, read by all. */
static _Alignas(WEIRI_APART) _Atomic(uint64_t) weiri_settled;
static _Atomic(uint64_t) last_turn_ns;

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
	weiri_store_relaxed(&last_turn_ns, 0u);
}

uint64_t weiri_announcements_settled(void)
{
	/* [P2 acquire] pairs with note_settled(). */
	return weiri_load_acquire(&weiri_settled);
}

static WEIRI_UNSEEN void assert_begun(uint64_t era)
{
	WEIR_ASSERT2(N2, era <= weiri_peek(&weiri_era));
}

static void note_settled(uint64_t era)
{
	/* [relaxed] compared only. */
	uint64_t before = weiri_load_relaxed(&weiri_settled);

	WEIR_ASSERT_LOOK(assert_begun(era));
	/* N2. [P2 release] pairs with weiri_announcements_settled(). */
	while (before < era && !weiri_cas_release(&weiri_settled, &before, era))
		;
}

/* Returns true if a thread has an announcement that counts, of an era that is `old` eras old or older. */
static bool anyone_announced(const struct weiri_record *mine, uint64_t era, uint64_t old)
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

/* Returns true if it is this thread's turn. */
static bool take_turn(uint64_t now)
{
	/* [relaxed] A time; one thread's CAS succeeds. */
	uint64_t turn = weiri_load_relaxed(&last_turn_ns);

	return now >= turn + weiri_settle_pause_ns && weiri_cas_relaxed(&last_turn_ns, &turn, now);
}

/* A membarrier has taken from began_ns until now. */
static void rest_after(uint64_t began_ns)
{
	uint64_t now = weir_now_ns(), pause = (now - began_ns) * PAUSE_FACTOR;

	if (pause > longest_pause_ns)
		pause = longest_pause_ns;
	if (pause > weiri_settle_pause_ns)
		weiri_store_relaxed(&last_turn_ns, now + pause - weiri_settle_pause_ns); /* [relaxed] a time */
}

void weiri_announcements_settle(const struct weiri_record *mine, uint64_t era, bool all)
{
	uint64_t now;

	if (!anyone_announced(mine, era, all ? 1 : IDLE_ERAS))
		return;
	now = weir_now_ns();
	if (!all && !take_turn(now))
		return;
	/* F2. If it is refused, the announcements go on counting. */
	if (weiri_fence_heavy())
		note_settled(era);
	rest_after(now);
}
