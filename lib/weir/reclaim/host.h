/*
 * host.h - readers in sections that Weir does not see: those of a flavour of liburcu (lib/urcu).
 *
 * Algorithm. A host stands for all sections of such readers at one time. It has a record that
 * belongs to no thread, with a section that is always open and reserves every era from lo on. So
 * collectors keep for it what they keep for the section of a stalled thread, by the same code: they
 * pin it, skip it while lo is the same, and report it as a stall. Only the host moves lo:
 *   1. it begins an era E (weiri_era_begin())
 *   2. it waits for a grace period: all foreign sections that were open in between have ended
 *   3. it advances lo to E
 * Step 2 is not Weir's. It may last for ever, and the budget then refuses writers.
 *
 * Invariants
 *   U1  an object that died before lo cannot be reached by a foreign section that is open now
 *   U2  lo only grows while the host is open
 * Why U1 holds. Let the object have died in an era before E. Then it was unlinked before step 1:
 *   the thread that retired it read the era after the unlinking, and read less than E; all three are
 *   seq_cst. A foreign section that was open at step 1 has ended at step 3. One that began later
 *   began after step 1, and so does not find the object.
 *   As for any section, what is reached must have been born no later than hi; hi is the last era.
 *   The opening: the host's program attaches before its readers begin, so their reads come after
 *   the store of lo. A collector that misses lo has run its heavy fence before those reads, and
 *   frees only what was unlinked before the fence (F1 of section.h).
 * Pairs
 *   P1  advance(lo) -> scan(collector): the grace period, and with it the accesses of the sections
 *       that have ended, comes before the free
 *   P2  set_wanted -> after_collection: what the host prepared
 * I2 of section.h says that lo is constant inside a section. It needs this of threads, which nest
 * sections. Collectors compare lo with the lo that they noted (I7 of collect.c) and never rely on
 * its staying.
 * Progress: wait-free, apart from the lending of a record and the CAS of lo, which fails only if
 * another thread has moved it.
 * Fork: the child has the parent's hosts. The sections of the parent's other threads are over; the
 * next grace period, which the child's program provides, moves lo.
 * Checked: stress/model/check_host.c, tests/test_urcu.c, stress scenario urcu.
 */
#ifndef WEIRI_RECLAIM_HOST_H
#define WEIRI_RECLAIM_HOST_H

#include "reclaim/collect.h"

/*
 * Returns the record of a new host, or NULL if there is no memory. From here on nothing that dies
 * is freed before the host advances.
 */
WEIRI_SHARED struct weiri_record *weiri_host_open(void);
/*
 * A grace period has ended that began after weiri_era_begin() returned `era`. Wakes writers that
 * wait for memory. Lock-free.
 */
WEIRI_SHARED void weiri_host_advance(struct weiri_record *record, uint64_t era);
/* No foreign section can reach anything any more. */
WEIRI_SHARED void weiri_host_close(struct weiri_record *record);

/*
 * wanted() is called after each collection from now on, on the thread that has collected, outside
 * of sections and collections: a grace period may now be of use. It must not block. NULL ends this;
 * calls that are under way may still be running.
 */
typedef void weiri_host_wanted(void);
WEIRI_SHARED void weiri_host_set_wanted(weiri_host_wanted *wanted);
/* Called by collect() at its end. */
void weiri_host_after_collection(void);

#endif
