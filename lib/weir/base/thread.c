/*
 * thread.c - see thread.h.
 */
#include "base/thread.h"

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

WEIRI_TLS uint32_t weiri_thread_mine;

uint32_t weiri_thread_ask(void)
{
	weiri_thread_mine = (uint32_t)gettid();
	return weiri_thread_mine;
}

bool weiri_thread_is_gone(uint32_t thread)
{
	int saved_errno = errno;
	/* Signal 0 sends nothing: it only checks whether the thread exists. */
	bool gone = syscall(SYS_tgkill, getpid(), (pid_t)thread, 0) != 0 && errno == ESRCH;

	errno = saved_errno;
	return gone;
}

void weiri_thread_after_fork(void)
{
	weiri_thread_mine = 0;
}
