/*
 * stop.h - stops a thread at a random instruction, for any time.
 *
 * A signal handler sleeps on a futex. The thread therefore stops wherever it was, inside a call or
 * between two calls, and keeps what it holds. Under ThreadSanitizer, signals are delivered only at
 * calls of the C library: its own runtime locks inside every atomic access, and a thread that is
 * stopped there would block all threads.
 */
#ifndef STRESS_STOP_H
#define STRESS_STOP_H

#include "harness.h"

/* Must be called once per scenario, before the other functions. */
void stress_stop_prepare(void);
/* Returns when the thread stands still. One thread at a time. */
void stress_stop(struct stress_thread *victim);
void stress_stop_release(void);

/* A thread that may be stopped calls this regularly. ThreadSanitizer delivers signals here. */
void stress_stop_here(void);

#endif
