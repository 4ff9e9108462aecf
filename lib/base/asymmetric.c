/*
 * asymmetric.c - membarrier(2), or plain fences where it is refused.
 *
 * Why a thread that reads a stale 0 is safe: it runs a full fence, which is at least as strong. Why a thread that reads 1 is
 * safe: the flag is set only after registration succeeded, and from then on every heavy side uses membarrier.
 */
#include "base/asymmetric.h"

#include <errno.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

_Atomic(int) weiri_fence_asymmetric;

static long membarrier(int command)
{
	int saved_errno = errno;
	long result = syscall(SYS_membarrier, command, 0, 0);

	errno = saved_errno;
	return result;
}

static int register_membarrier(void)
{
	return membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0;
}

void weiri_fence_setup(void)
{
	/* [relaxed] the flag carries no data; registering twice is harmless. */
	if (!weiri_load_relaxed(&weiri_fence_asymmetric) && register_membarrier())
		weiri_store_relaxed(&weiri_fence_asymmetric, 1);
}

int weiri_fence_heavy(void)
{
	weiri_fence_setup();
	if (membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) == 0)
		return 1;
	weiri_fence_seq_cst();
	/* [relaxed] set once by setup, on this thread or before it did anything that a heavy side could rely on. */
	return !weiri_load_relaxed(&weiri_fence_asymmetric);
}

void weiri_fence_after_fork(void)
{
	/* [relaxed] the only thread. */
	weiri_store_relaxed(&weiri_fence_asymmetric, register_membarrier());
}
