/*
 * refuse_membarrier.h - a process in which the kernel refuses membarrier(2) from now on; see
 * sandbox.h.
 */
#ifndef REFUSE_MEMBARRIER_H
#define REFUSE_MEMBARRIER_H

#include <errno.h>
#include <sys/syscall.h>

#include "sandbox.h"

/* 0: it cannot be refused here. */
static inline int refuse_membarrier(void)
{
	return sandbox_refuses(SYS_membarrier, EPERM);
}

#endif
