/*
 * eras.h - how long ago an era ended.
 *
 * Readers take no time: a look at a clock would cost more than the read. What tells how long something has been held is the era in which it
 * began, or was replaced, and that era's time; collections that could not free all note the time as they come by.
 *
 * Algorithm. Time is cut into ticks, on LEVELS levels, a tick of each four times as long as one of the level before. A level has the notes
 * of its last NOTES ticks: the tick's last 16 bits and an era of which a collection knew in that tick, in one word, so that a note is one store. Of
 * two threads' either will do; one by a thread that was stopped long before it may take the place of a newer one, which is then missing.
 *
 * Invariants
 *   E1  the era of a note had begun when its tick ended: the era is read before the clock
 * So an era before it had ended by then, and its age is at least the time since the end of the oldest tick that has a note of a later era.
 * A note that is NOTES x 2^16 ticks old is taken for one of this tick: it only makes that age less, its era being older.
 * Progress: wait-free; a look at the clock and one word, but once in four milliseconds, when it writes a note or some.
 * Precision: what is known is more than half of the truth, when collections come: of an age of 22 ticks of one level, 14 are known by that level, and
 *   no less by the next, whose ticks are 4 of these, and of which two may be missing.
 * Memory: 1.5 KiB in the process.
 * Checked: tests/test_stalls.c, stress/model/check_stalls.c.
 */
#ifndef WEIRI_RECLAIM_ERAS_H
#define WEIRI_RECLAIM_ERAS_H

#include <stdint.h>

/* That the current era has begun by now. */
void weiri_eras_note(void);
/* At least so many nanoseconds ago an era ended; 0: nothing is known. */
uint64_t weiri_era_age(uint64_t era, uint64_t now_ns);

#endif
