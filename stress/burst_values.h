/*
 * burst_values.h - bursts on structures into which values are put and from which they are taken:
 * their capacities, how their histories are judged, and which refusals are left out if a structure
 * guarantees nothing about them.
 */
#ifndef STRESS_BURST_VALUES_H
#define STRESS_BURST_VALUES_H

#include "burst.h"

/* Draws 1 to 40, mostly at most 4. */
uint64_t burst_draw_capacity(struct stress_thread *self);

/* `burst` describes the operations; `bounds`, which set_up may change, judge them. */
void burst_run_fifo(struct burst burst, struct history_bounds *bounds);
void burst_run_multiset(struct burst burst, struct history_bounds *bounds);

/*
 * Drops the operations of the `weak` kinds that overlap an operation of the `strong` kinds, which
 * stays (bits, 1 << kind). Refusals of weak kinds are exact only if no strong operation is under
 * way.
 */
void burst_drop_weak(struct history *history, uint32_t weak, uint32_t strong);

#endif
