/*
 * futex.h - the futex(2) calls with which Weir sleeps and wakes: within a process, and between
 * processes.
 */
#ifndef WEIRI_FUTEX_H
#define WEIRI_FUTEX_H

#include <stdint.h>

#include "base/atomic.h"

/* Why a sleep ended. */
enum weiri_futex_end {
	WEIRI_FUTEX_LATE = 0,     /* the deadline has passed */
	WEIRI_FUTEX_AWAKE = 1,    /* woken, or *word differed, or for no reason */
	WEIRI_FUTEX_SIGNALLED = 2 /* a signal handler ran on this thread */
};

/*
 * Sleeps while *word == expected, until woken or until deadline_ns (CLOCK_MONOTONIC, absolute;
 * WEIR_NO_DEADLINE: without limit). May return early for no reason: callers check their condition
 * again.
 */
enum weiri_futex_end weiri_futex_wait(_Atomic(uint32_t) *word, uint32_t expected, uint64_t deadline_ns);

/*
 * Wakes up to `count` threads that sleep on word. Does not access *word, which may already be
 * freed.
 */
void weiri_futex_wake(_Atomic(uint32_t) *word, int count);

/* The same for a word in memory that several processes share; all of them must use these two. */
enum weiri_futex_end weiri_futex_wait_shared(_Atomic(uint32_t) *word, uint32_t expected, uint64_t deadline_ns);
void weiri_futex_wake_shared(_Atomic(uint32_t) *word, int count);

#endif
