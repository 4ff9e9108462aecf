/*
 * interrupt.h - whether a signal that came while this thread slept ends its wait (weir/thread.h).
 *
 * A sleep says that a signal handler ran on this thread (base/futex.h). A wait that the caller can
 * be told about then asks the thread's interrupt. The wait must hold nothing when it asks: no
 * section, no claim, because the interrupt may call Weir.
 */
#ifndef WEIRI_RECLAIM_INTERRUPT_H
#define WEIRI_RECLAIM_INTERRUPT_H

#include <stdbool.h>
#include <stdint.h>
#include <weir/status.h>

#include "base/compiler.h"

/* What a wait returns that an interrupt ended: WEIR_CANCELLED, with its message. */
WEIRI_SHARED extern const weir_error weiri_interrupt_cause;

/* Asks the interrupt of this thread. Returns true if it ends the wait; false if there is none. */
bool weiri_interrupt_ends_wait(void);

/*
 * Returns the deadline for a sleep of this thread. Linux goes on with a sleep that has no deadline
 * after a handler that was installed with SA_RESTART. It ends one that has a deadline. So a thread
 * with an interrupt never sleeps without one.
 */
uint64_t weiri_interrupt_until(uint64_t deadline_ns);

#endif
