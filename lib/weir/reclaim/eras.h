/*
 * eras.h - how long ago an era ended.
 *
 * Readers take no time stamps: reading a clock would cost more than the read of a variable. So the
 * age of what a reader holds is derived from an era: the era in which its section began, or in
 * which its object was replaced. This file keeps the times of eras. Collections that could not free
 * everything note the time.
 *
 * Algorithm. Time is divided into ticks, on LEVELS levels. A tick of one level is four times as
 * long as a tick of the level before. Each level keeps the notes of its last NOTES ticks. A note is
 * one word, and so one store. It holds the last 16 bits of the tick, and an era that a collection
 * knew in that tick. If two threads write a note of one tick, either note will do. A note by a
 * thread that was stalled for long may overwrite a newer one, which is then missing.
 *
 * Invariants
 *   E1  the era of a note had begun when its tick ended: the era is read before the clock
 * So every earlier era had ended by then. The age of an era is at least the time since the end of
 * the oldest tick whose note has a later era. A note that is 2^16 ticks old is mistaken for one of
 * the current tick. This only lowers the reported age, since the era of the note is older.
 * Progress: wait-free. A note costs one look at the clock and one word; once in four milliseconds,
 * it stores one or more words.
 * Precision: if collections keep coming, the reported age is more than half of the true age. The
 * worst case is an age of 22 ticks of one level. That level reports 14 of them. The next level
 * reports no less: its ticks are four times as long, and it misses at most two of them.
 * Memory: 1.5 KiB for the process.
 * Checked: tests/test_stalls.c, stress/model/check_stalls.c.
 */
#ifndef WEIRI_RECLAIM_ERAS_H
#define WEIRI_RECLAIM_ERAS_H

#include <stdint.h>

/* Notes that the current era has begun by now. */
void weiri_eras_note(void);
/* Returns the nanoseconds that have passed at least since the era ended; 0 if nothing is known. */
uint64_t weiri_era_age(uint64_t era, uint64_t now_ns);

#endif
