/*
 * announce_kit.h - a reader that reads when it is asked, and a membarrier that is slow, or is stopped
 * under way.
 *
 * A program that includes this file defines syscall(2), and clock_gettime(2), whose monotonic clock tests
 * advance.
 */
#ifndef ANNOUNCE_KIT_H
#define ANNOUNCE_KIT_H

#include "reclaim_kit.h"

#include <linux/membarrier.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <time.h>

#include "base/asymmetric.h"
#include "libc_calls.h"
#include "reclaim/announce.h"
#include "reclaim/settle.h"

static _Atomic(uint64_t) slow_ns;                     /* that a membarrier takes at least */
static _Atomic(uint32_t) stop_the_next;               /* 1: the next membarrier sets it to 2, and waits for 3 */
static _Atomic(uint32_t) under_way_now, most_at_once; /* membarriers at one time: now, and the most so far */
static _Atomic(uint32_t) all_stop;                    /* 1: each membarrier waits until this is 0 */

/* The time by the monotonic clock, which then stands still but for tests, and for membarriers of this many ns. 0: it runs. */
static _Atomic(uint64_t) frozen_ns, takes_ns;

int clock_gettime(clockid_t clock, struct timespec *time)
{
	uint64_t frozen = weiri_load_relaxed(&frozen_ns);

	if (clock == CLOCK_MONOTONIC && frozen != 0) {
		*time = (struct timespec){(time_t)(frozen / 1000000000u), (long)(frozen % 1000000000u)};
		return 0;
	}
	return libc_clock_gettime(clock, time);
}

/* The clock stands still from here on, at an odd time. */
static inline void freeze_the_clock(void)
{
	weiri_store_relaxed(&frozen_ns, weir_now_ns() | 1);
}

static inline void advance_the_clock(uint64_t nanoseconds)
{
	weiri_fetch_add_relaxed(&frozen_ns, nanoseconds);
}

long syscall(long number, ...);

/* Counts this membarrier; waits if it is to be stopped. */
static inline void begin_membarrier(void)
{
	uint32_t now = weiri_fetch_add_relaxed(&under_way_now, 1u) + 1, before = weiri_load_relaxed(&most_at_once), one = 1;

	while (before < now && !weiri_cas_relaxed(&most_at_once, &before, now))
		;
	weiri_futex_wake(&under_way_now, 1000);
	wait_until(&all_stop, 0);
	if (!weiri_cas_relaxed(&stop_the_next, &one, 2u))
		return;
	weiri_futex_wake(&stop_the_next, 1000);
	wait_until(&stop_the_next, 3);
}

long syscall(long number, ...)
{
	long arguments[6], result;
	bool is_fence;
	uint64_t until;
	va_list list;

	va_start(list, number);
	for (int i = 0; i < 6; i++)
		arguments[i] = va_arg(list, long);
	va_end(list);
	is_fence = number == SYS_membarrier && arguments[0] == MEMBARRIER_CMD_PRIVATE_EXPEDITED;
	until = is_fence ? weir_deadline_in(weiri_load_relaxed(&slow_ns)) : 0;
	if (is_fence)
		begin_membarrier();
	result = libc_syscall(number, arguments);
	while (weir_now_ns() < until)
		;
	if (is_fence && weiri_load_relaxed(&takes_ns) != 0)
		advance_the_clock(weiri_load_relaxed(&takes_ns));
	if (is_fence)
		weiri_fetch_sub_relaxed(&under_way_now, 1u);
	return result;
}

/* A thread that enters and leaves a section for each word that it gets. */
struct reader {
	_Atomic(uint32_t) asked, done;
	pthread_t thread;
};

enum { END = 1000000 };

static void *read_when_asked(void *context)
{
	struct reader *reader = context;
	struct weiri_record *record = my_record();
	uint32_t done = 0;

	for (;;) {
		uint32_t asked = weiri_load_acquire(&reader->asked);

		if (asked == done)
			(void)weiri_futex_wait(&reader->asked, asked, WEIR_NO_DEADLINE);
		if (asked >= END)
			return NULL;
		for (; done != asked; done++)
			weiri_section_leave(record, weiri_section_enter(record));
		weiri_store_release(&reader->done, done);
		weiri_futex_wake(&reader->done, 1);
	}
}

static void begin(struct reader *reader)
{
	weiri_store_relaxed(&reader->asked, 0u);
	weiri_store_relaxed(&reader->done, 0u);
	reader->thread = start(read_when_asked, reader);
}

static void read_once(struct reader *reader)
{
	uint32_t before = weiri_load_relaxed(&reader->asked);

	advance(&reader->asked);
	wait_until(&reader->done, before + 1);
}

static void end(struct reader *reader)
{
	weiri_store_release(&reader->asked, (uint32_t)END);
	weiri_futex_wake(&reader->asked, 1);
	join(reader->thread);
}

static bool has_membarrier(void)
{
	return weiri_record_get() != NULL && weiri_load_relaxed(&weiri_fence_asymmetric) != 0;
}

static void skip_without_membarrier(void)
{
	if (!has_membarrier())
		cr_skip_test("membarrier is refused here");
}

enum { LOST_NS = 10000000, PAUSE_NS = 1000000 }; /* as in settle.c */

/* From now on no turn has been used, there is one in each pause, and the clock runs. */
static inline void begin_with_pauses_of(uint64_t nanoseconds)
{
	skip_without_membarrier();
	weiri_store_relaxed(&frozen_ns, 0u);
	weiri_settle_pause_ns = nanoseconds;
	weiri_settle_lost_ns = LOST_NS;
	weiri_settle_after_fork();
}

#endif
