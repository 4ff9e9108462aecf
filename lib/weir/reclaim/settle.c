/*
 * settle.c - see settle.h.
 */
#include "reclaim/settle.h"

#include <weir/time.h>

#include "base/asymmetric.h"
#include "reclaim/announce.h"
#include "reclaim/section.h"

enum {
#if defined(WEIRI_UNDER_MODEL)
	IDLE_ERAS = 2, /* in stress/model there are few collections */
	LOOKS = 1,
#else
	IDLE_ERAS = 4,
	LOOKS = 1000,
#endif
	BURST = 16,
	/* Of the time that a membarrier took. */
	IDLE_FACTOR = 256,
	URGENT_FACTOR = 8
};
/* One that took a second, because the machine stood still, must not end membarriers for minutes. */
static const uint64_t longest_pause_ns = UINT64_C(4000000000);

uint64_t weiri_settle_lost_ns = 10000000;
#if defined(WEIRI_UNDER_MODEL) /* where time passes only with a deadline */
uint64_t weiri_settle_pause_ns = 0;
#else
uint64_t weiri_settle_pause_ns = 1000000;
#endif

/* Of collections of what one thread retired, and of all others: each has turns of its own. */
enum kind { IDLE, URGENT };

static _Alignas(WEIRI_APART) _Atomic(uint64_t) under_way; /* when the leader began, | 1; 0: there is none */
static _Atomic(uint64_t) next_ns[2];                      /* from when on the next turn counts */

/* -- turns ------------------------------------------------------------------------------------- */

/* Returns true if a turn that counts from `next` on may be taken. */
static bool is_due(enum kind kind, uint64_t next, uint64_t now)
{
	return next <= now + (kind == URGENT ? BURST * weiri_settle_pause_ns : 0);
}

static bool may_take_turn(enum kind kind, uint64_t now)
{
	return is_due(kind, weiri_load_relaxed(&next_ns[kind]), now); /* [relaxed] a time */
}

static bool take_turn(enum kind kind, uint64_t now)
{
	uint64_t next = weiri_load_relaxed(&next_ns[kind]); /* [relaxed] a time, here and below */

	while (is_due(kind, next, now)) {
		if (weiri_cas_relaxed(&next_ns[kind], &next, (next > now ? next : now) + weiri_settle_pause_ns))
			return true;
	}
	return false;
}

static uint64_t price_of(uint64_t took_ns, uint64_t factor)
{
	return took_ns < longest_pause_ns / factor ? took_ns * factor : longest_pause_ns;
}

/*
 * The next turn counts from `more` later on, but from the longest pause after `now` at the latest: if leaders count
 * as stopped, several pay at one time.
 */
static void put_off_by(enum kind kind, uint64_t more, uint64_t now)
{
	uint64_t latest = now + longest_pause_ns;
	uint64_t next = weiri_load_relaxed(&next_ns[kind]); /* [relaxed] a time, here and below */

	while (next < latest && !weiri_cas_relaxed(&next_ns[kind], &next, latest - next > more ? next + more : latest))
		;
}

/* The next turn counts from `until` on at the earliest. */
static void put_off_until(enum kind kind, uint64_t until)
{
	uint64_t next = weiri_load_relaxed(&next_ns[kind]); /* [relaxed] a time, here and below */

	while (next < until && !weiri_cas_relaxed(&next_ns[kind], &next, until))
		;
}

/* A membarrier has taken so long, until now: the thread that had the turn pays for it. */
static void pay(enum kind kind, uint64_t now, uint64_t took_ns)
{
	uint64_t price = price_of(took_ns, URGENT_FACTOR);

	if (kind == URGENT && price > weiri_settle_pause_ns)
		put_off_by(URGENT, price - weiri_settle_pause_ns, now);
	put_off_until(IDLE, now + price_of(took_ns, IDLE_FACTOR));
}

/* -- leading ----------------------------------------------------------------------------------- */

static bool someone_leads(uint64_t since, uint64_t now)
{
	return since != 0 && now < since + weiri_settle_lost_ns;
}

/* Returns true if this thread leads from now on. */
static bool begin_to_lead(enum kind kind, uint64_t now)
{
	uint64_t since = weiri_load_relaxed(&under_way); /* [relaxed] a time */

	/* [P3 acquire] One thread's CAS succeeds. */
	return !someone_leads(since, now) && may_take_turn(kind, now) && weiri_cas_acquire(&under_way, &since, now | 1);
}

static void run_membarrier(enum kind kind, uint64_t now)
{
	uint64_t era = weiri_load_acquire(&weiri_era); /* [P1 acquire] pairs with weiri_era_begin() */
	uint64_t ended;

	/* F2 of announce.h. If it is refused, the announcements go on counting. */
	if (weiri_fence_heavy())
		weiri_announcements_settle(era);
	ended = weir_now_ns();
	pay(kind, ended, ended - now);
}

/*
 * Settles the newest era if this is the thread's turn, and nobody leads. Returns true if it has led, or need not:
 * the leader before it may have settled `era` since the caller looked.
 */
static bool lead(enum kind kind, uint64_t era, uint64_t now)
{
	uint64_t mine = now | 1;
	bool is_over = true;

	if (!begin_to_lead(kind, now))
		return false;
	if (weiri_announcements_settled() < era) {
		is_over = take_turn(kind, now);
		if (is_over)
			run_membarrier(kind, now);
	}
	/* [P3 release] pairs with begin_to_lead(). */
	(void)weiri_cas_release(&under_way, &mine, 0u);
	return is_over;
}

/* Returns true if the era is settled. */
static bool share(uint64_t era)
{
	for (int looks = 0; weiri_announcements_settled() < era && looks < LOOKS; looks++) {
		uint64_t now = weir_now_ns();

		if (someone_leads(weiri_load_relaxed(&under_way), now)) /* [relaxed] a time */
			weiri_pause();
		else if (!may_take_turn(URGENT, now) || lead(URGENT, era, now))
			break;
	}
	return weiri_announcements_settled() >= era;
}

void weiri_settle_mine(const struct weiri_record *mine, uint64_t era)
{
	if (weiri_anyone_announced(mine, era, IDLE_ERAS))
		(void)lead(IDLE, era, weir_now_ns());
}

void weiri_settle_all(const struct weiri_record *mine, uint64_t era)
{
	if (weiri_anyone_announced(mine, era, 1))
		(void)share(era);
}

bool weiri_settle_to_wait(uint64_t era)
{
	/* [relaxed] Constant once a thread has a record. Without membarrier it is a fence of this thread. */
	if (!weiri_load_relaxed(&weiri_fence_asymmetric))
		return weiri_fence_heavy();
	return share(era);
}

void weiri_settle_after_fork(void)
{
	/* [relaxed] the only thread, here and below */
	weiri_store_relaxed(&under_way, 0u);
	weiri_store_relaxed(&next_ns[IDLE], 0u);
	weiri_store_relaxed(&next_ns[URGENT], 0u);
}
