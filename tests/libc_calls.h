/*
 * libc_calls.h - the calls of the C library, for a program that defines clock_gettime(2) or syscall(2)
 * itself.
 */
#ifndef LIBC_CALLS_H
#define LIBC_CALLS_H

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

static inline long libc_syscall(long number, const long a[6])
{
	static _Atomic(void *) found;
	long (*there)(long, ...);

	if (weiri_load_relaxed(&found) == NULL)
		weiri_store_relaxed(&found, dlsym(RTLD_NEXT, "syscall"));
	*(void **)&there = weiri_load_relaxed(&found);
	return there(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

#endif
