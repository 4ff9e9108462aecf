/*
 * admit.c - see admit.h.
 */
#include "reclaim/admit.h"

#include <limits.h>
#include <weir/reclaim.h>
#include <weir/time.h>

#include "base/futex.h"
#include "base/probe.h"
#include "reclaim/interrupt.h"
#include "reclaim/magazine.h"
#include "reclaim/settle.h"

enum {
	PAUSE_SHARE = 8, /* a pause is 1/8 of the time that a wait for memory has lasted */
	LONGEST_PAUSE_NS = 10000000,
	LOOK_SOON_NS = 1000000, /* if nobody has promised to wake */
};

static _Alignas(WEIRI_APART) _Atomic(uint32_t) memory_waiters; /* threads inside wait_while() */
static _Atomic(uint32_t) memory_freed;                         /* futex word: changes when a waiter should look again */

/* -- waking ------------------------------------------------------------------------------------ */

static void wake_all(void)
{
	weiri_fetch_add_release(&memory_freed, 1u); /* [W1 release] pairs with wait_until_signalled() */
	weiri_futex_wake(&memory_freed, INT_MAX);
}

WEIRI_COLD void weiri_wake_memory_waiters(struct weiri_record *record)
{
	/* [relaxed] Cleared before the wake-up: a poke that comes later belongs to a later scan. */
	weiri_store_relaxed(&record->poke, 0u);
	wake_all();
}

void weiri_memory_freed(void)
{
	/* F1: a waiter counts itself, runs the heavy fence, and collects once more before it sleeps. */
	weiri_fence_light();
	/* [relaxed] the fence orders it; a waiter that was missed looks again without a wake-up. */
	if (weiri_load_relaxed(&memory_waiters) != 0)
		wake_all();
}

/* -- waiting ----------------------------------------------------------------------------------- */

static void poke_everybody(void)
{
	for (struct weiri_record *record = weiri_record_first(); record != NULL; record = record->next)
		/* [relaxed] A flag; the era that begins after it carries it to the heavy fence (F1). */
		weiri_store_relaxed(&record->poke, 1u);
}

/* The end of a section wakes no waiter, so a waiter looks again after this time. */
uint64_t weiri_reclaim_look_again_ns = 1000000;

/*
 * The pause between two looks of a wait that began at since_ns: a share of the time that it has
 * lasted. A look may find nothing, since readers that clear other slots wake the waiter too. With
 * the pause, the looks take a small share of the waiting time, however many threads wake the
 * waiter, unless one look takes longer than LONGEST_PAUSE_NS. A wake-up is noticed correspondingly
 * later.
 */
static uint64_t pause_ns(uint64_t since_ns)
{
	uint64_t pause = (weir_now_ns() - since_ns) / PAUSE_SHARE;

	return pause < LONGEST_PAUSE_NS ? pause : LONGEST_PAUSE_NS;
}

/* Sleeps until that time; a cleared slot does not end the sleep, but a signal does. */
static enum weiri_futex_end rest_until(uint64_t until_ns)
{
	_Atomic(uint32_t) not_woken = 0;

	return weiri_futex_wait(&not_woken, 0, until_ns);
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/*
 * Sleeps after a look that found nothing, for look_again_ns at least if it is not woken; `seen` is what
 * memory_freed was before the look. Returns true if a signal ended the sleep.
 */
static bool sleep_after_look(uint64_t since_ns, uint32_t seen, uint64_t look_again_ns, uint64_t deadline_ns)
{
	uint64_t pause = pause_ns(since_ns);
	uint64_t listen = pause > look_again_ns ? pause : look_again_ns;

	if (pause != 0 && rest_until(earlier(weir_deadline_in(pause), deadline_ns)) == WEIRI_FUTEX_SIGNALLED)
		return true;
	return weiri_futex_wait(&memory_freed, seen, earlier(weir_deadline_in(listen), deadline_ns)) ==
	       WEIRI_FUTEX_SIGNALLED;
}

typedef bool condition(void);

/* One look: collects if the condition holds. Returns true if it does not hold, or no longer. */
static bool ended(condition *holds, struct weiri_record *record)
{
	if (!holds())
		return true;
	if (weiri_collect_for_all(record) && holds())
		(void)weiri_collect_for_all(record);
	return !holds();
}

/*
 * Collects and sleeps while the condition holds, until the deadline, or until a signal comes.
 * Returns true if the condition ended.
 */
static WEIRI_COLD bool wait_until_signalled(condition *holds, struct weiri_record *record, uint64_t since,
                                            uint64_t deadline_ns, bool *signalled)
{
	bool done = ended(holds, record), will_hear;

	/*
	 * [relaxed] Counted before the heavy fence, F1. A release function may end the thread: `waits`
	 * tells vacate() what to clean up. It is set after the count and cleared before. So a thread that
	 * ends in between leaves the count too high, which costs wake-ups; too low, it would lose some.
	 */
	weiri_fetch_add_relaxed(&memory_waiters, 1u);
	weiri_store_relaxed(&record->waits, 1u);
	while (!done && !*signalled && weir_now_ns() < deadline_ns) {
		/*
		 * [W1 acquire] Pairs with wake_all(). The heavy fence separates this read from the look below. If
		 * a change of memory_freed was seen here, everything before that change is seen there.
		 */
		uint32_t seen = weiri_load_acquire(&memory_freed);

		poke_everybody();
		/*
		 * F1: if a thread frees an object or clears a slot without having seen this waiter, the
		 * look below sees what that thread did. The fence of the collection is not enough: a
		 * collection that finds nothing to take, because another collector holds everything, runs
		 * no fence. If there is none now, the timeout makes the waiter look again.
		 */
		will_hear = weiri_settle_to_wait(weiri_era_begin());
		done = ended(holds, record);
		if (!done) {
			*signalled =
				sleep_after_look(since, seen, will_hear ? weiri_reclaim_look_again_ns : LOOK_SOON_NS, deadline_ns);
			done = !holds(); /* nor is it refused if another thread made room while it slept */
		}
	}
	weiri_store_relaxed(&record->waits, 0u);
	weiri_fetch_sub_relaxed(&memory_waiters, 1u);
	return done;
}

/*
 * Collects and sleeps while the condition holds, until the deadline, or until the thread's
 * interrupt ends the wait. Returns true if the condition ended.
 */
static WEIRI_COLD bool wait_while(condition *holds, struct weiri_record *record, uint64_t deadline_ns)
{
	struct weiri_interrupt *interrupt = &record->own->interrupt;
	uint64_t since = weir_now_ns();
	bool done, signalled;

	WEIRI_PROBE1(memory_block, deadline_ns);
	interrupt->ended_wait = false;
	do {
		signalled = false;
		done = wait_until_signalled(holds, record, since, deadline_ns, &signalled);
		if (!done && signalled)
			interrupt->ended_wait = weiri_interrupt_ends_wait();
	} while (signalled && !done && !interrupt->ended_wait);
	WEIRI_PROBE1(memory_wake, done);
	return done;
}

static bool over_budget(void)
{
	return (int64_t)weiri_retired_bytes() > weiri_budget_room();
}

/* Returns true if the owner, which calls this, has a read section open. */
static bool is_reading(const struct weiri_record *record)
{
	return weiri_load_relaxed(&record->read_sections) != 0; /* [relaxed] own field */
}

enum weir_status weiri_reclaim_admit_over(struct weiri_record *record, uint64_t deadline_ns)
{
	/*
	 * A release function that a collection of this thread has called may write. If that write
	 * waited, it would wait for its own thread. So would a write in a read section, which may itself
	 * hold what exceeds the budget.
	 */
	if (is_reading(record))
		deadline_ns = 0;
	if (weiri_is_collecting(record) || !over_budget())
		return WEIR_OK;
	weiri_magazine_end(record); /* what it keeps counts */
	if (wait_while(over_budget, record, deadline_ns))
		return WEIR_OK;
	return record->own->interrupt.ended_wait ? WEIR_CANCELLED : WEIR_RESOURCE_EXHAUSTED;
}

/* -- flush ------------------------------------------------------------------------------------- */

/* Returns true if no thread collects; *sum changes with every collection. */
static bool collections_at_rest(uint64_t *sum)
{
	*sum = 0;
	for (struct weiri_record *record = weiri_record_first(); record != NULL; record = record->next) {
		/* [P4 acquire] Pairs with the end of collect_and_hear(). */
		uint64_t collecting = weiri_load_acquire(&record->collecting);

		if (collecting % 2 != 0)
			return false;
		*sum += collecting;
	}
	return true;
}

static bool no_stack_has_any(void)
{
	for (struct weiri_record *record = weiri_record_first(); record != NULL; record = record->next) {
		for (size_t i = 0; i < WEIRI_STACKS; i++) {
			/*
			 * [P3 acquire] If a collector emptied the stack, collections_at_rest() sees it at work.
			 */
			if (weiri_load_acquire(&record->retired[i]) != NULL)
				return false;
			/* [P3 acquire] the same. */
			if (weiri_load_acquire(&record->pinned[i]) != NULL)
				return false;
		}
	}
	return true;
}

/*
 * Returns false only if it is certain that no object is retired. Empty stacks prove nothing while a
 * collector holds their objects. So, as with a seqlock, no collector may have been at work before,
 * during or after the look at the stacks.
 */
static bool anything_retired(void)
{
	uint64_t before, after;

	return !collections_at_rest(&before) || !no_stack_has_any() || !collections_at_rest(&after) || before != after;
}

enum weir_status weir_reclaim_flush(uint64_t deadline_ns)
{
	struct weiri_record *record = weiri_record_get();

	if (record == NULL)
		return WEIR_RESOURCE_EXHAUSTED;
	if (weiri_is_collecting(record) || is_reading(record))
		return WEIR_FAILED_PRECONDITION;
	if (wait_while(anything_retired, record, deadline_ns))
		return WEIR_OK;
	return record->own->interrupt.ended_wait ? WEIR_CANCELLED : WEIR_DEADLINE_EXCEEDED;
}

/* -- waits that ended in the middle ------------------------------------------------------------ */

void weiri_wait_abandoned(struct weiri_record *record)
{
	/* [relaxed] the caller owns the record; a count. */
	if (weiri_load_relaxed(&record->waits) != 0) {
		weiri_store_relaxed(&record->waits, 0u);
		weiri_fetch_sub_relaxed(&memory_waiters, 1u);
	}
}

void weiri_waits_after_fork(const struct weiri_record *mine)
{
	/* [relaxed] The only thread. The fork may have happened in a reclaim function that was called by a waiting writer. */
	weiri_store_relaxed(&memory_waiters, mine != NULL ? weiri_load_relaxed(&mine->waits) : 0u);
}
