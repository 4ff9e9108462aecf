/*
 * refuse_membarrier.h - makes Linux refuse membarrier(2) to this process from now on; see
 * sandbox.h.
 */
#ifndef REFUSE_MEMBARRIER_H
#define REFUSE_MEMBARRIER_H

#include <errno.h>
#include <sys/syscall.h>

#include "sandbox.h"

/* Returns 0 if it cannot be refused here. */
static inline int refuse_membarrier(void)
{
	return sandbox_refuses(SYS_membarrier, EPERM);
}

#endif
