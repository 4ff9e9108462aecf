/*
 * clock.h - times of calls and returns that can be compared across threads.
 *
 * Requirements: the time of a call is taken before the operation's first access to memory, the time
 * of its return after its last access, and a smaller time was taken earlier. An interval that is
 * too wide is sound, although it may hide a violation. An interval that is too narrow is not sound,
 * because it may report a false violation.
 *
 *   x86-64   The time stamp counter. Call: rdtscp; lfence. rdtscp waits for all earlier
 *            instructions but lets later ones begin; with the lfence no later one begins before the
 *            counter was read. Return: rdtscp alone. It waits until earlier loads have their
 *            values, and a locked instruction has drained the store buffer by then. Later
 *            instructions may begin early, which can only widen the interval. A plain store may
 *            still be in the store buffer: history_clock_drain() (mfence) waits for it. That is
 *            optional, since the fence also orders two operations that the program itself does not
 *            order, and so can hide a missing order.
 *   arm64    CNTVCT_EL0. Call: isb, mrs, isb (the counter is not read ahead of time, and nothing
 *            later comes before it). Return: dsb ishld waits for loads; then isb, mrs. Draining:
 *            dsb ish. It ticks at 24 MHz to 1 GHz, so short operations may have equal times, which
 *            count as overlap.
 *   others   CLOCK_MONOTONIC between fences.
 *   counter  One shared counter, incremented at each call and return by seq_cst read-modify-writes
 *            between fences. Correct on every machine, but the threads queue for its cache line, so
 *            fewer operations overlap.
 *
 * The counters of several processors agree if the processor guarantees it (invariant TSC) and no
 * software has changed one. Linux checks that at boot. history_clock_best() reads the processor's
 * guarantee and tests it: threads on all processors pass the last value around, which may never
 * decrease. If either fails, it chooses the counter. The test does not detect an offset that is
 * shorter than the time for passing a value from one processor to another (some 100 ns). Such an
 * offset is harmless, because no operation can notice it either.
 */
#ifndef HISTORY_CLOCK_H
#define HISTORY_CLOCK_H

#include <stdatomic.h>
#include <stdint.h>
#include <time.h>

enum history_clock {
	HISTORY_CLOCK_BEST = 0,
	HISTORY_CLOCK_CYCLES = 1,  /* the processor's counter, or CLOCK_MONOTONIC if none is known */
	HISTORY_CLOCK_COUNTER = 2, /* the shared counter */
	HISTORY_CLOCK_SYSTEM = 3   /* CLOCK_MONOTONIC */
};

/* Returns HISTORY_CLOCK_CYCLES or HISTORY_CLOCK_COUNTER. Tests the processors once per process. */
enum history_clock history_clock_best(void);
/* Returns 1 if no two processors were seen to disagree, in `rounds` values per thread. */
int history_clock_agrees(enum history_clock clock, unsigned threads, unsigned rounds);

static inline uint64_t history_clock_system(void)
{
	struct timespec now;

	atomic_thread_fence(memory_order_seq_cst);
	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	atomic_thread_fence(memory_order_seq_cst);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/*
 * [seq_cst] and fences: what one thread did before its ticket is visible to threads that draw a
 * later ticket.
 */
static inline uint64_t history_clock_ticket(_Atomic(uint64_t) *counter)
{
	uint64_t ticket;

	atomic_thread_fence(memory_order_seq_cst);
	ticket = atomic_fetch_add_explicit(counter, 1, memory_order_seq_cst);
	atomic_thread_fence(memory_order_seq_cst);
	return ticket;
}

static inline void history_clock_drain(void)
{
#if defined(__x86_64__)
	__asm__ __volatile__("mfence" ::: "memory");
#elif defined(__aarch64__)
	__asm__ __volatile__("dsb ish" ::: "memory");
#else
	atomic_thread_fence(memory_order_seq_cst);
#endif
}

static inline uint64_t history_clock_cycles_before(void)
{
#if defined(__x86_64__)
	uint32_t low, high, processor;

	__asm__ __volatile__("rdtscp\n\tlfence" : "=a"(low), "=d"(high), "=c"(processor)::"memory");
	return (uint64_t)high << 32 | low;
#elif defined(__aarch64__)
	uint64_t now;

	__asm__ __volatile__("isb\n\tmrs %0, cntvct_el0\n\tisb" : "=r"(now)::"memory");
	return now;
#else
	return history_clock_system();
#endif
}

static inline uint64_t history_clock_cycles_after(void)
{
#if defined(__x86_64__)
	uint32_t low, high, processor;

	__asm__ __volatile__("rdtscp" : "=a"(low), "=d"(high), "=c"(processor)::"memory");
	return (uint64_t)high << 32 | low;
#elif defined(__aarch64__)
	uint64_t now;

	__asm__ __volatile__("dsb ishld\n\tisb\n\tmrs %0, cntvct_el0" : "=r"(now)::"memory");
	return now;
#else
	return history_clock_system();
#endif
}

static inline uint64_t history_clock_before(enum history_clock clock, _Atomic(uint64_t) *counter)
{
	switch (clock) {
	case HISTORY_CLOCK_COUNTER: return history_clock_ticket(counter);
	case HISTORY_CLOCK_SYSTEM: return history_clock_system();
	default: return history_clock_cycles_before();
	}
}

static inline uint64_t history_clock_after(enum history_clock clock, _Atomic(uint64_t) *counter)
{
	switch (clock) {
	case HISTORY_CLOCK_COUNTER: return history_clock_ticket(counter);
	case HISTORY_CLOCK_SYSTEM: return history_clock_system();
	default: return history_clock_cycles_after();
	}
}

#endif
