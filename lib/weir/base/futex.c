/*
 * futex.c - futex(2) with absolute deadlines, by FUTEX_WAIT_BITSET. (FUTEX_WAIT takes a length of
 * time.)
 */
#include "base/futex.h"

#include <errno.h>
#include <linux/futex.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <weir/time.h>

#include "base/probe.h"

static enum weiri_futex_end wait_by(int operation, _Atomic(uint32_t) *word, uint32_t expected, uint64_t deadline_ns)
{
	struct timespec until = {(time_t)(deadline_ns / 1000000000u), (long)(deadline_ns % 1000000000u)};
	int saved_errno = errno;
	bool timed_out, signalled;
	long result;

	WEIRI_PROBE1(futex_wait, word);
	result = syscall(SYS_futex, word, operation, expected, deadline_ns == WEIR_NO_DEADLINE ? NULL : &until, NULL,
	                 FUTEX_BITSET_MATCH_ANY);
	timed_out = result != 0 && errno == ETIMEDOUT;
	signalled = result != 0 && errno == EINTR;
	errno = saved_errno;
	return timed_out ? WEIRI_FUTEX_LATE : signalled ? WEIRI_FUTEX_SIGNALLED : WEIRI_FUTEX_AWAKE;
}

static void wake_by(int operation, _Atomic(uint32_t) *word, int count)
{
	int saved_errno = errno;

	WEIRI_PROBE2(futex_wake, word, count);
	(void)syscall(SYS_futex, word, operation, count, NULL, NULL, 0);
	errno = saved_errno;
}

enum weiri_futex_end weiri_futex_wait(_Atomic(uint32_t) *word, uint32_t expected, uint64_t deadline_ns)
{
	return wait_by(FUTEX_WAIT_BITSET_PRIVATE, word, expected, deadline_ns);
}

void weiri_futex_wake(_Atomic(uint32_t) *word, int count)
{
	wake_by(FUTEX_WAKE_PRIVATE, word, count);
}

enum weiri_futex_end weiri_futex_wait_shared(_Atomic(uint32_t) *word, uint32_t expected, uint64_t deadline_ns)
{
	return wait_by(FUTEX_WAIT_BITSET, word, expected, deadline_ns);
}

void weiri_futex_wake_shared(_Atomic(uint32_t) *word, int count)
{
	wake_by(FUTEX_WAKE, word, count);
}
