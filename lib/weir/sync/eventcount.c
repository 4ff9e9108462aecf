/*
 * eventcount.c - the slow side of the eventcount: announce, sleep, wake.
 *
 * Source. A known construction (an epoch on which waiters sleep, and a count of waiters). Here the
 * store-load fence is on the side of the waiter.
 *
 * Invariants
 *   I1  waiters counts the calls between the increment in prepare() and the decrement in wait() or
 *       cancel(), and never wraps
 *   I2  epoch changes only in wake(), before the futex wake
 * Pairs
 *   P1  wake (epoch + 1) -> prepare or wait: the change that made the condition true, and what its
 *       thread did before
 *   F1  notify: condition, light fence, waiters; prepare: waiters, heavy fence, condition (read by
 *       the caller)
 *
 * No wake-up is lost. Take a notifier N, and a waiter W whose second look, after prepare, missed
 * N's change. By F1 N then saw W in `waiters`, and N calls wake(). If W read its key before N's
 * increment, the epoch differs from the key: W does not sleep, or N's futex wake comes after W fell
 * asleep. If W read its key after the increment, by P1 W's second look saw N's change, which
 * contradicts the choice of W. notify(1) can wake a waiter W' that prepared between N's increment
 * and N's futex wake, instead of W. By P1 W' has seen N's change, and sleeps because another thread
 * has used that change up. So there is nothing for W either. The epoch wraps: if exactly a multiple
 * of 2^32 wakes pass while a waiter is stalled between prepare and sleep, that waiter sleeps until
 * the next wake.
 *
 * Progress: notify and cancel are wait-free; prepare is wait-free apart from membarrier(2); wait
 *   blocks. A waiter that is stalled anywhere costs each notifier one useless system call and
 *   nothing else.
 * Checked: tests/test_eventcount.c (plain, TSan, ASan), also with the symmetric fence;
 * stress/model/check_sync.c.
 */
#include "sync/eventcount.h"

#include <weir/time.h>

#include "base/assert.h"

/* How long a waiter sleeps at a time when the heavy fence was refused. */
static const uint64_t blind_sleep_ns = 1000000;

void weiri_eventcount_init(struct weiri_eventcount *event)
{
	/* [relaxed] not shared yet; the caller publishes the object that holds it. */
	weiri_store_relaxed(&event->epoch, 0);
	weiri_store_relaxed(&event->waiters, 0);
}

struct weiri_eventcount_key weiri_eventcount_prepare(struct weiri_eventcount *event)
{
	struct weiri_eventcount_key key;

	/* [relaxed] publishes no data; F1 orders it before what follows. */
	(void)weiri_fetch_add_relaxed(&event->waiters, 1);
	/*
	 * [heavy fence F1] between the announcement and the caller's look at the condition: Dekker's
	 * pattern, with notify().
	 */
	key.blind = !weiri_fence_heavy();
	/*
	 * [P1 acquire] pairs with wake(): a thread that reads the new epoch sees the change that it
	 * announces.
	 */
	key.epoch = weiri_load_acquire(&event->epoch);
	return key;
}

void weiri_eventcount_cancel(struct weiri_eventcount *event)
{
	/*
	 * [relaxed] publishes nothing; a notifier that still sees the old count makes a useless system
	 * call.
	 */
	uint32_t before = weiri_fetch_sub_relaxed(&event->waiters, 1);

	WEIR_ASSERT1(I1, before != 0);
	(void)before;
}

enum weiri_park_result weiri_eventcount_wait(struct weiri_eventcount *event, struct weiri_eventcount_key key,
                                             uint64_t deadline_ns)
{
	uint64_t until = deadline_ns;
	enum weiri_park_result result;

	if (WEIRI_UNLIKELY(key.blind)) {
		uint64_t short_sleep = weir_deadline_in(blind_sleep_ns);

		if (short_sleep < until)
			until = short_sleep;
	}
	/* P1: the acquire is in weiri_park_wait(). */
	result = weiri_park_wait(&event->epoch, key.epoch, until);
	weiri_eventcount_cancel(event);
	return until == deadline_ns ? result : WEIRI_PARK_WOKEN;
}

WEIRI_COLD void weiri_eventcount_wake(struct weiri_eventcount *event, int count)
{
	/*
	 * [P1 release] pairs with prepare() and wait(). It continues the release sequences of earlier
	 * wakes.
	 */
	(void)weiri_fetch_add_release(&event->epoch, 1);
	weiri_park_wake(&event->epoch, count);
}
