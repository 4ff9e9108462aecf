/*
 * futex.c - futex(2) with absolute deadlines, by FUTEX_WAIT_BITSET. (FUTEX_WAIT takes a length of
 * time.)
 */
#include "base/futex.h"

#include <errno.h>
#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <weir/time.h>

#include "base/probe.h"

bool weiri_futex_wait(_Atomic(uint32_t) *word, uint32_t expected, uint64_t deadline_ns)
{
	struct timespec until = {(time_t)(deadline_ns / 1000000000u), (long)(deadline_ns % 1000000000u)};
	int saved_errno = errno;
	bool timed_out;
	long result;

	WEIRI_PROBE1(futex_wait, word);
	result = syscall(SYS_futex, word, FUTEX_WAIT_BITSET_PRIVATE, expected,
	                 deadline_ns == WEIR_NO_DEADLINE ? NULL : &until, NULL, FUTEX_BITSET_MATCH_ANY);
	timed_out = result != 0 && errno == ETIMEDOUT;
	errno = saved_errno;
	return !timed_out;
}

void weiri_futex_wake(_Atomic(uint32_t) *word, int count)
{
	int saved_errno = errno;

	WEIRI_PROBE2(futex_wake, word, count);
	(void)syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, count, NULL, NULL, 0);
	errno = saved_errno;
}
