/*
 * file_limit.c - see file_limit.h.
 */
#include "base/file_limit.h"

#include <errno.h>

#include "base/uncancelled.h"

static sigset_t only_limit(void)
{
	sigset_t limit;

	(void)sigemptyset(&limit);
	(void)sigaddset(&limit, SIGXFSZ);
	return limit;
}

void weiri_file_limit_begin(struct weiri_file_limit *limit)
{
	sigset_t signals = only_limit(), pending;

	(void)sigemptyset(&pending);
	(void)pthread_sigmask(SIG_BLOCK, &signals, &limit->before);
	(void)sigpending(&pending);
	limit->was_pending = sigismember(&pending, SIGXFSZ) != 0;
}

void weiri_file_limit_end(const struct weiri_file_limit *limit, bool failed)
{
	sigset_t signals = only_limit();
	int reason = errno;

	if (failed && reason == EFBIG && !limit->was_pending)
		weiri_take_pending_signal(&signals);
	(void)pthread_sigmask(SIG_SETMASK, &limit->before, NULL);
	errno = reason;
}
