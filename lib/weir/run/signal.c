/*
 * signal.c - a counter to sleep on, with one bit that tells whether a thread sleeps.
 */
#include "run/signal.h"

#include <limits.h>

enum { SLEEPER = 1, ONE_RAISE = 2 };

uint32_t weiri_signal_now(struct weiri_signal *signal)
{
	/* [P1 acquire] pairs with weiri_signal_raise(). */
	return weiri_load_acquire(&signal->word) & ~(uint32_t)SLEEPER;
}

void weiri_signal_raise(struct weiri_signal *signal)
{
	/* [relaxed] only the CAS decides. */
	uint32_t word = weiri_load_relaxed(&signal->word);

	/* [P1 release] pairs with weiri_signal_now() and the park in weiri_signal_wait(). */
	while (!weiri_cas_release(&signal->word, &word, (word & ~(uint32_t)SLEEPER) + ONE_RAISE))
		;
	if (word & SLEEPER)
		weiri_park_wake(&signal->word, INT_MAX);
}

enum weiri_park_result weiri_signal_wait(struct weiri_signal *signal, uint32_t seen, uint64_t deadline_ns)
{
	uint32_t word = seen;

	/*
	 * [relaxed] the bit only says that a thread sleeps. If the CAS fails, it found one of two
	 * things. Either the bit is set already, by another sleeper or by an earlier wait that timed
	 * out. Or there was a raise, which the park detects at once.
	 */
	(void)weiri_cas_relaxed(&signal->word, &word, seen | SLEEPER);
	/* Only a raise changes this word. [P1 acquire] in the park: pairs with weiri_signal_raise(). */
	return weiri_park_interruptible(&signal->word, seen | SLEEPER, deadline_ns);
}
