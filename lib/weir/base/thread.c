/*
 * thread.c - see thread.h.
 */
#include "base/thread.h"

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

uint32_t weiri_thread_ask(void)
{
	return (uint32_t)gettid();
}

bool weiri_thread_is_gone(uint32_t thread)
{
	int saved_errno = errno;
	/* Signal 0 sends nothing: it only checks whether the thread exists. */
	bool gone = syscall(SYS_tgkill, getpid(), (pid_t)thread, 0) != 0 && errno == ESRCH;

	errno = saved_errno;
	return gone;
}
