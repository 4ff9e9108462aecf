/*
 * park.h - waiting for a 32-bit word to change: a short spin, then sleep.
 *
 * The wait spins first: a partner that is about to answer does so within a microsecond, and a sleep
 * costs several microseconds. Guarantee: when the wait returns WEIRI_PARK_WOKEN, the caller sees
 * what the thread that changed the word wrote before the change, if that change was a release or
 * stronger. The wake itself orders nothing.
 *
 * | call            | progress                       | blocks on            |
 * |-----------------|--------------------------------|----------------------|
 * | weiri_park_wait, _wait_marked | blocking         | the word, a deadline |
 * | weiri_park_interruptible, _interruptible_marked | blocking | the same, the thread's interrupt |
 * | weiri_park_wake | wait-free + one system call    | nothing              |
 */
#ifndef WEIRI_PARK_H
#define WEIRI_PARK_H

#include <stdint.h>

#include "base/atomic.h"

enum weiri_park_result {
	WEIRI_PARK_WOKEN = 0, /* the word differs from `expected` */
	/* At the last look the word was still `expected`, and */
	WEIRI_PARK_TIMEOUT = 1,    /* the deadline passed */
	WEIRI_PARK_INTERRUPTED = 2 /* the thread's interrupt ended the wait (weir/thread.h) */
};

#if defined(WEIRI_UNDER_MODEL)
/* stress/model: each spin multiplies the executions, and shows no more than one spin does. */
enum { WEIRI_PARK_SPINS = 1 };
#else
enum { WEIRI_PARK_SPINS = 100 };
#endif

/*
 * Returns once *word differs from `expected`, or deadline_ns has passed (absolute; 0: look once;
 * WEIR_NO_DEADLINE: no limit). A wake-up without a change does not end the wait.
 */
enum weiri_park_result weiri_park_wait(_Atomic(uint32_t) *word, uint32_t expected, uint64_t deadline_ns);

/*
 * The same, for the only thread that waits for this word. *word becomes `asleep` before the thread
 * sleeps, and `expected` again after the deadline. So a thread that changes *word from `expected`
 * has no thread to wake.
 */
enum weiri_park_result weiri_park_wait_marked(_Atomic(uint32_t) *word, uint32_t expected, uint32_t asleep,
                                              uint64_t deadline_ns);

/*
 * The same two, for waits that the interrupt of this thread may end. After an interruption *word is
 * as after the deadline. The others return WEIRI_PARK_INTERRUPTED never.
 */
enum weiri_park_result weiri_park_interruptible(_Atomic(uint32_t) *word, uint32_t expected, uint64_t deadline_ns);
enum weiri_park_result weiri_park_interruptible_marked(_Atomic(uint32_t) *word, uint32_t expected, uint32_t asleep,
                                                       uint64_t deadline_ns);

/*
 * Wakes up to `count` sleeping threads. The caller has changed *word before. The call does not read
 * *word, which may already be freed.
 */
void weiri_park_wake(_Atomic(uint32_t) *word, int count);

#endif
