/*
 * eventcount.h - sleep until a thread reports that a condition may have changed. The report costs
 * next to nothing while no thread sleeps.
 *
 * Waiter                                        Notifier
 *   if (condition) return;                        make the condition true;
 *   key = weiri_eventcount_prepare(&e);           weiri_eventcount_notify(&e, 1);
 *   if (condition) { weiri_eventcount_cancel(&e); return; }
 *   weiri_eventcount_wait(&e, key, deadline);
 *   look at the condition again
 *
 * The condition lives in the caller's own atomics, which also carry the caller's data; it is read
 * with acquire and made true with release. The eventcount ensures only that a waiter whose second
 * look missed the change is woken.
 *
 * notify(n) wakes n waiters. It is right only if n waiters suffice: all wait for the same thing,
 * and a woken waiter that leaves without a look passes the wake-up on with notify(1). Otherwise use
 * notify_all.
 *
 * | call               | progress                                           | blocks on            |
 * |--------------------|----------------------------------------------------|----------------------|
 * | notify, notify_all | wait-free; without waiters a compiler barrier and a load | nothing        |
 * | prepare, cancel    | wait-free + membarrier(2)                          | nothing              |
 * | wait               | blocking                                           | a notify, a deadline |
 */
#ifndef WEIRI_EVENTCOUNT_H
#define WEIRI_EVENTCOUNT_H

#include <limits.h>
#include <stdint.h>

#include "base/asymmetric.h"
#include "base/atomic.h"
#include "base/compiler.h"
#include "sync/park.h"

struct weiri_eventcount {
	_Atomic(uint32_t) epoch;   /* notifiers that saw a waiter; waiters sleep on it */
	_Atomic(uint32_t) waiters; /* between prepare and the end of wait or cancel */
};

struct weiri_eventcount_key {
	uint32_t epoch;
	bool blind; /* the heavy fence failed: a notifier may miss this waiter, so it must not sleep long */
};

void weiri_eventcount_init(struct weiri_eventcount *event);

/* Announces a waiter. Exactly one weiri_eventcount_wait or weiri_eventcount_cancel must follow. */
struct weiri_eventcount_key weiri_eventcount_prepare(struct weiri_eventcount *event);
void weiri_eventcount_cancel(struct weiri_eventcount *event);
/*
 * Returns WEIRI_PARK_WOKEN if there was a notify since prepare, or a spurious wake-up. Returns
 * WEIRI_PARK_TIMEOUT if the deadline passed without a notify.
 */
enum weiri_park_result weiri_eventcount_wait(struct weiri_eventcount *event, struct weiri_eventcount_key key,
                                             uint64_t deadline_ns);

/* The part of notify that runs when a thread waits. */
void weiri_eventcount_wake(struct weiri_eventcount *event, int count);

static inline void weiri_eventcount_notify(struct weiri_eventcount *event, int count)
{
	/*
	 * [light fence F1] between the caller's change and the look for waiters: Dekker's pattern, with
	 * prepare().
	 */
	weiri_fence_light();
	/* [relaxed] carries nothing; F1 keeps it after the caller's store. */
	if (WEIRI_UNLIKELY(weiri_load_relaxed(&event->waiters) != 0))
		weiri_eventcount_wake(event, count);
}

static inline void weiri_eventcount_notify_all(struct weiri_eventcount *event)
{
	weiri_eventcount_notify(event, INT_MAX);
}

#endif
