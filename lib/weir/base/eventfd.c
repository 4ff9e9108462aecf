/*
 * eventfd.c - see eventfd.h. The eventfd is a semaphore, so that a take subtracts one and does not
 * reset the count.
 *
 * read(2), write(2), ppoll(2) and close(2) are called by syscall(2), which unlike the functions of
 * these names is not a cancellation point: a cancelled thread must not end here, inside a section.
 */
#include "base/eventfd.h"

#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/atomic.h"

static _Atomic(uint32_t) forks;

struct weiri_eventfd weiri_eventfd_open(void)
{
	int saved_errno = errno;
	/* [relaxed] changes only in the child of a fork, while it has one thread. */
	struct weiri_eventfd event = {eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK | EFD_SEMAPHORE), weiri_load_relaxed(&forks)};

	errno = saved_errno;
	return event;
}

void weiri_eventfd_close(struct weiri_eventfd event)
{
	int saved_errno = errno;

	if (event.fd >= 0)
		(void)syscall(SYS_close, event.fd);
	errno = saved_errno;
}

bool weiri_eventfd_is_ours(const struct weiri_eventfd *event)
{
	return event->forks == weiri_load_relaxed(&forks); /* [relaxed] as above */
}

void weiri_eventfd_add(struct weiri_eventfd event, uint64_t count)
{
	int saved_errno = errno;
	long written = weiri_eventfd_is_ours(&event) ? syscall(SYS_write, event.fd, &count, sizeof(count)) : 0;

	(void)written; /* fails only at 2^64 - 1 */
	errno = saved_errno;
}

bool weiri_eventfd_take(struct weiri_eventfd event)
{
	uint64_t one;
	int saved_errno = errno;
	bool taken = !weiri_eventfd_is_ours(&event) || syscall(SYS_read, event.fd, &one, sizeof(one)) >= 0;

	errno = saved_errno;
	return taken;
}

bool weiri_eventfd_is_readable(struct weiri_eventfd event)
{
	const struct timespec now = {0, 0};
	struct pollfd entry = {event.fd, POLLIN, 0};
	int saved_errno = errno;
	bool readable = syscall(SYS_ppoll, &entry, 1, &now, NULL, 0) == 1;

	errno = saved_errno;
	return readable;
}

void weiri_eventfd_after_fork(void)
{
	(void)weiri_fetch_add_relaxed(&forks, 1u); /* [relaxed] the only thread */
}
