/*
 * libc_clock.h - the clock of the C library, for a program that defines clock_gettime(2) itself.
 */
#ifndef LIBC_CLOCK_H
#define LIBC_CLOCK_H

#include <dlfcn.h>
#include <time.h>

#include "base/atomic.h"

static inline int libc_clock_gettime(clockid_t clock, struct timespec *time)
{
	static _Atomic(void *) found;
	/* MemorySanitizer does not see what the library stores: it must be initialised before. */
	struct timespec now = {0};
	int (*there)(clockid_t, struct timespec *);
	int result;

	if (weiri_load_relaxed(&found) == NULL)
		weiri_store_relaxed(&found, dlsym(RTLD_NEXT, "clock_gettime"));
	*(void **)&there = weiri_load_relaxed(&found);
	result = there(clock, &now);
	*time = now;
	return result;
}

#endif
