/*
 * eventfd.c - replaces lib/weir/base/eventfd.c: it keeps the counts in words that the checker sees,
 * and a poller sleeps while a count is 0.
 *
 * Linux changes the count of a descriptor under a lock, and a poll reads the count under the same
 * lock. Here the count is one word that changes by read-modify-writes. Like threads.c, this file is
 * compiled into the library under test.
 */
#include "model/eventfd.h"

#include <limits.h>
#include <weir/time.h>

#include "base/atomic.h"
#include "base/eventfd.h"
#include "base/futex.h"
#include "sync/park.h"

enum { MOST = 4 };

static _Atomic(uint32_t) counts[MOST];
static _Atomic(int) made;

struct weiri_eventfd weiri_eventfd_open(void)
{
	int number = weiri_fetch_add_relaxed(&made, 1); /* [relaxed] a number */

	return (struct weiri_eventfd){number < MOST ? number : -1, 0};
}

void weiri_eventfd_close(struct weiri_eventfd event)
{
	(void)event;
}

bool weiri_eventfd_is_ours(const struct weiri_eventfd *event)
{
	return event->forks == 0;
}

void weiri_eventfd_add(struct weiri_eventfd event, uint64_t count)
{
	/*
	 * [acq_rel] stands for the lock of Linux. The wake is a separate step here: if a thread is
	 * stopped before it, the next thread that adds wakes the poller.
	 */
	(void)weiri_fetch_add_acq_rel(&counts[event.fd], (uint32_t)count);
	weiri_futex_wake(&counts[event.fd], INT_MAX);
}

bool weiri_eventfd_take(struct weiri_eventfd event)
{
	/*
	 * [acq_rel] stands for the lock of Linux. A read-modify-write sees the newest count; a load may
	 * see an older one.
	 */
	uint32_t before = weiri_fetch_add_acq_rel(&counts[event.fd], 0u);

	/* [acq_rel] as above */
	while (before != 0 && !weiri_cas_acq_rel(&counts[event.fd], &before, before - 1))
		;
	return before != 0;
}

bool weiri_eventfd_is_readable(struct weiri_eventfd event)
{
	/* [acq_rel] as in weiri_eventfd_take(). */
	return weiri_fetch_add_acq_rel(&counts[event.fd], 0u) != 0;
}

void weiri_eventfd_after_fork(void)
{
}

unsigned weiri_model_eventfd_count(int fd)
{
	/* [acquire] stands for the lock of Linux. */
	return weiri_load_acquire(&counts[fd]);
}

void weiri_model_poll(int fd)
{
	(void)weiri_park_wait(&counts[fd], 0, WEIR_NO_DEADLINE);
}
