/*
 * burst_values.h - bursts on structures that values go into and come out of: how large those are, how their histories are judged, and
 * which refusals are left out where a structure makes no promise about them.
 */
#ifndef STRESS_BURST_VALUES_H
#define STRESS_BURST_VALUES_H

#include "burst.h"

/* 1 to 40, most of the time at most 4. */
uint64_t burst_draw_capacity(struct stress_thread *self);

/* `burst` says what is done; it is judged by `bounds`, which set_up may change. */
void burst_run_fifo(struct burst burst, struct history_bounds *bounds);
void burst_run_multiset(struct burst burst, struct history_bounds *bounds);

/*
 * Drops the operations of the `weak` kinds that overlap one of the `strong` kinds (bits, 1 << kind), which itself stays: their
 * refusals are exact only where none of those is under way.
 */
void burst_drop_weak(struct history *history, uint32_t weak, uint32_t strong);

#endif
