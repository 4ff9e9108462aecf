/*
 * gate.h - counts the users of an object, can be closed, and tells when the last user has left.
 *
 * A user of a shared object enters the gate before, and leaves it after. The owner closes the gate,
 * waits until it is drained, and may then free the object and the gate. Entering a closed gate
 * fails. (The Windows kernel calls this rundown protection.) An owner that keeps the object may
 * change it once the gate is drained, and open the gate again.
 *
 * | word            | meaning                         | next                                    |
 * |-----------------|---------------------------------|-----------------------------------------|
 * | 2n              | open, n inside                  | 2n+2 enter, 2n-2 leave, 2n+1 close      |
 * | 2n+1, n > 0     | closed, n inside                | 2n-1 leave                              |
 * | 1               | closed and empty, reached once  | none; then `drained` is set; 0 open     |
 *
 * Pairs
 *   P1  leave, close -> the step to `closed and empty`: what the users did inside, and what the
 *       closer did before the close
 *   P2  drained -> wait: the same data, for the owner
 *   P3  open -> enter: what the owner did while the gate was closed
 *
 * | call              | progress                            | blocks on             |
 * |-------------------|-------------------------------------|-----------------------|
 * | enter             | lock-free                           | nothing               |
 * | leave, close      | wait-free, the last one wakes       | nothing               |
 * | open              | wait-free                           | nothing               |
 * | is_drained        | wait-free                           | nothing               |
 * | wait              | blocking                            | the users inside      |
 */
#ifndef WEIRI_GATE_H
#define WEIRI_GATE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/atomic.h"

struct weiri_gate {
	_Atomic(uint32_t) word;
	_Atomic(uint32_t) drained;
};

WEIRI_SHARED void weiri_gate_init(struct weiri_gate *gate);
/* Returns true if the caller is inside; false: the gate is closed. */
WEIRI_SHARED bool weiri_gate_enter(struct weiri_gate *gate);
/* Does not access the gate once wait() may have returned. */
WEIRI_SHARED void weiri_gate_leave(struct weiri_gate *gate);
/*
 * Idempotent. Returns true for the first call. Does not access the gate once wait() may have
 * returned.
 */
WEIRI_SHARED bool weiri_gate_close(struct weiri_gate *gate);
/* Returns true once the gate is closed and empty; the owner may then free it. */
static inline bool weiri_gate_is_drained(const struct weiri_gate *gate)
{
	/* [P2 acquire] pairs with the last leave or the close. */
	return weiri_load_acquire(&gate->drained) != 0;
}
/* Waits until the gate is empty. The caller has closed it before. */
WEIRI_SHARED void weiri_gate_wait(struct weiri_gate *gate);
/* The same, until the deadline at the latest. */
WEIRI_SHARED void weiri_gate_wait_until(struct weiri_gate *gate, uint64_t deadline_ns);
/*
 * Opens the gate again. Called by its owner after a wait; no other thread closes the gate or waits
 * for it meanwhile.
 */
WEIRI_SHARED void weiri_gate_open(struct weiri_gate *gate);

#endif
