/*
 * stop.c - see stop.h.
 */
#include "stop.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <time.h>
#include <weir/time.h>

#include "base/futex.h"

enum { STOP = SIGUSR1 };

/*
 * The number of this stop, from 1. The handler reports that it has reached the stop, and then waits
 * for its release.
 */
static _Atomic(uint32_t) asked, reached, released;

static void stand_still(int signal_number)
{
	int saved_errno = errno;
	/* [acquire] pairs with stress_stop(). */
	uint32_t stop = weiri_load_acquire(&asked), seen;

	(void)signal_number;
	weiri_store_release(&reached, stop); /* [release] pairs with stress_stop() */
	weiri_futex_wake(&reached, 1);
	/*
	 * [acquire] pairs with stress_stop_release(). Later stops may have been released before this
	 * load.
	 */
	while ((seen = weiri_load_acquire(&released)) < stop)
		(void)weiri_futex_wait(&released, seen, WEIR_NO_DEADLINE);
	errno = saved_errno;
}

void stress_stop_prepare(void)
{
	struct sigaction action = {.sa_handler = stand_still, .sa_flags = SA_RESTART};

	STRESS_CHECK(sigaction(STOP, &action, NULL) == 0, "cannot install the signal handler");
}

void stress_stop(struct stress_thread *victim)
{
	/* [relaxed] this thread writes it. */
	uint32_t stop = weiri_load_relaxed(&asked) + 1;

	weiri_store_release(&asked, stop); /* [release] pairs with the handler */
	STRESS_CHECK(pthread_kill(victim->thread, STOP) == 0, "cannot send a signal");
	while (weiri_load_acquire(&reached) != stop) /* [acquire] pairs with the handler */
		(void)weiri_futex_wait(&reached, stop - 1, WEIR_NO_DEADLINE);
}

void stress_stop_release(void)
{
	/* [release] pairs with the handler */
	weiri_store_release(&released, weiri_load_relaxed(&asked));
	weiri_futex_wake(&released, INT_MAX);
}

void stress_stop_here(void)
{
	static const struct timespec no_time = {0, 0};

	if (STRESS_TSAN)
		(void)nanosleep(&no_time, NULL);
}
