/*
 * stop.h - stopping a thread at a random instruction, for as long as one likes.
 *
 * A signal handler sleeps on a futex, so the thread stops wherever it was, inside a call or between two, and holds what it holds. Under
 * ThreadSanitizer signals are delivered at calls of the C library only: its own runtime locks inside every atomic, and a thread
 * stopped there would stop everybody.
 */
#ifndef STRESS_STOP_H
#define STRESS_STOP_H

#include "harness.h"

/* Once per scenario, before the rest. */
void stress_stop_prepare(void);
/* Returns when the thread stands still. One thread at a time. */
void stress_stop(struct stress_thread *victim);
void stress_stop_release(void);

/* A thread that may be stopped calls this now and then; ThreadSanitizer delivers signals here. */
void stress_stop_here(void);

#endif
