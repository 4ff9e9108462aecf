/*
 * signal.h - threads wait until another thread signals that a condition may have changed. Usually
 * one waits; several may, and a raise wakes all of them.
 *
 * The waiter reads the signal, checks its condition, and waits for the signal to change, so it
 * misses no raise:
 *
 *     seen = weiri_signal_now(&s); if (condition) ...; else weiri_signal_wait(&s, seen, deadline);
 *
 * A thread that is stalled inside a raise, between its change and its wake-up, leaves the sleepers asleep
 * until their deadline, because the next raise no longer sees that they sleep. So a signal serves only those
 * that wait for the same work, such as the callers of one step: a thread that is stalled in that work holds
 * them up anyway. It cannot count its sleepers beside the word, as a waiter may free the signal that it sees
 * raised.
 *
 * Pairs
 *   P1  raise -> now, wait: what the raiser did before (the condition that it made true)
 *
 * | call               | progress                                          | blocks on         |
 * |--------------------|---------------------------------------------------|-------------------|
 * | weiri_signal_raise | lock-free; a system call only if a thread sleeps  | nothing           |
 * | weiri_signal_wait  | blocking                                          | a raise, deadline |
 */
#ifndef WEIRI_SIGNAL_H
#define WEIRI_SIGNAL_H

#include <stdint.h>

#include "base/compiler.h"
#include "base/atomic.h"
#include "sync/park.h"

struct weiri_signal {
	_Atomic(uint32_t) word; /* bit 0: a thread sleeps; the other bits count the raises */
};

static inline void weiri_signal_init(struct weiri_signal *signal)
{
	/* [relaxed] not shared yet. */
	weiri_store_relaxed(&signal->word, 0);
}

/* Returns the value to pass to weiri_signal_wait(). */
WEIRI_SHARED uint32_t weiri_signal_now(struct weiri_signal *signal);
/*
 * Accesses no memory of the signal once the waiter can see the change, so the waiter may free it.
 */
WEIRI_SHARED void weiri_signal_raise(struct weiri_signal *signal);
/*
 * Waits until the signal is raised after `seen` was read, until deadline_ns (absolute), or until the
 * thread is interrupted.
 */
WEIRI_SHARED enum weiri_park_result weiri_signal_wait(struct weiri_signal *signal, uint32_t seen, uint64_t deadline_ns);

#endif
