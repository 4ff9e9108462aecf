/*
 * park.c - spin-then-sleep on a futex word.
 *
 * Pair P1 change -> wait: what the changing thread wrote before. That thread is the caller of
 * weiri_park_wake(); the change is its access to the word before that call. No wake-up is lost:
 * Linux compares the word again, under the lock that a wake takes, before it puts the thread to
 * sleep.
 */
#include "sync/park.h"

#include <weir/time.h>

#include "base/compiler.h"
#include "base/futex.h"
#include "reclaim/interrupt.h"

static bool changed(_Atomic(uint32_t) *word, uint32_t expected)
{
	/* [P1 acquire] pairs with the release by which the caller's partner changed the word. */
	return weiri_load_acquire(word) != expected;
}

static bool changed_while_spinning(_Atomic(uint32_t) *word, uint32_t expected)
{
	for (int i = 0; i < WEIRI_PARK_SPINS; i++) {
		if (changed(word, expected))
			return true;
		weiri_pause();
	}
	return false;
}

/* Whether the thread's interrupt may end the wait. */
enum ends { BY_WORD_OR_DEADLINE, BY_INTERRUPT_TOO };

static WEIRI_COLD enum weiri_park_result sleep_until_changed(_Atomic(uint32_t) *word, uint32_t expected,
                                                             uint64_t deadline_ns, enum ends ends)
{
	uint64_t until_ns = ends == BY_INTERRUPT_TOO ? weiri_interrupt_until(deadline_ns) : deadline_ns;
	enum weiri_park_result result = WEIRI_PARK_WOKEN;

	while (!changed(word, expected)) {
		enum weiri_futex_end end;

		if (result != WEIRI_PARK_WOKEN)
			return result;
		end = weiri_futex_wait(word, expected, until_ns);
		if (end == WEIRI_FUTEX_LATE)
			result = WEIRI_PARK_TIMEOUT;
		else if (end == WEIRI_FUTEX_SIGNALLED && ends == BY_INTERRUPT_TOO && weiri_interrupt_ends_wait())
			result = WEIRI_PARK_INTERRUPTED;
	}
	return WEIRI_PARK_WOKEN;
}

static enum weiri_park_result wait_for_change(_Atomic(uint32_t) *word, uint32_t expected, uint64_t deadline_ns,
                                              enum ends ends)
{
	if (deadline_ns == 0)
		return changed(word, expected) ? WEIRI_PARK_WOKEN : WEIRI_PARK_TIMEOUT;
	if (changed_while_spinning(word, expected))
		return WEIRI_PARK_WOKEN;
	return sleep_until_changed(word, expected, deadline_ns, ends);
}

static enum weiri_park_result wait_marked(_Atomic(uint32_t) *word, uint32_t expected, uint32_t asleep,
                                          uint64_t deadline_ns, enum ends ends)
{
	enum weiri_park_result result;
	uint32_t seen = expected;

	if (deadline_ns == 0)
		return changed(word, expected) ? WEIRI_PARK_WOKEN : WEIRI_PARK_TIMEOUT;
	if (changed_while_spinning(word, expected))
		return WEIRI_PARK_WOKEN;
	/*
	 * [relaxed] the mark carries nothing. If the CAS fails, here or below, the word has changed,
	 * and sleep_until_changed() looks at it with acquire.
	 */
	if (!weiri_cas_relaxed(word, &seen, asleep))
		return sleep_until_changed(word, expected, deadline_ns, ends);
	result = sleep_until_changed(word, asleep, deadline_ns, ends);
	if (result == WEIRI_PARK_WOKEN)
		return WEIRI_PARK_WOKEN;
	seen = asleep;
	if (weiri_cas_relaxed(word, &seen, expected))
		return result;
	return sleep_until_changed(word, asleep, deadline_ns, ends);
}

enum weiri_park_result weiri_park_wait(_Atomic(uint32_t) *word, uint32_t expected, uint64_t deadline_ns)
{
	return wait_for_change(word, expected, deadline_ns, BY_WORD_OR_DEADLINE);
}

enum weiri_park_result weiri_park_interruptible(_Atomic(uint32_t) *word, uint32_t expected, uint64_t deadline_ns)
{
	return wait_for_change(word, expected, deadline_ns, BY_INTERRUPT_TOO);
}

enum weiri_park_result weiri_park_wait_marked(_Atomic(uint32_t) *word, uint32_t expected, uint32_t asleep,
                                              uint64_t deadline_ns)
{
	return wait_marked(word, expected, asleep, deadline_ns, BY_WORD_OR_DEADLINE);
}

enum weiri_park_result weiri_park_interruptible_marked(_Atomic(uint32_t) *word, uint32_t expected, uint32_t asleep,
                                                       uint64_t deadline_ns)
{
	return wait_marked(word, expected, asleep, deadline_ns, BY_INTERRUPT_TOO);
}

void weiri_park_wake(_Atomic(uint32_t) *word, int count)
{
	weiri_futex_wake(word, count);
}
