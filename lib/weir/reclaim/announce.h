/*
 * announce.h - what a thread tells collectors before it reads without a fence.
 *
 * A section or a claim of a slot is a store, and the reader's next load must not overtake it. If a
 * fence ordered them, each read would cost a fence. If the collector ordered them with
 * membarrier(2), each collection would cost a system call and interrupt all threads. So the reader
 * runs a fence, but only once in an era, and few collections run a membarrier.
 *
 * Algorithm. A thread announces an era E: it stores E in `announced` of its record, and then runs a
 * fence. While the era is still E, its sections and claims need no fence. They may still be
 * invisible to a collector, but the collector sees the announcement. It takes it as a section that
 * reserves the eras from E up to hi. In another era, the thread announces that one first. So a
 * reader runs a fence if an era began between two of its reads (with a collection, or ahead of one), and
 * none if nothing is retired.
 * An announcement outlasts the sections. A thread that does not read for a while therefore holds
 * what lived in the era that it announced last. To free this, a collector *settles* the
 * announcements: it reads the era S, which began after what it wants to free had died, runs
 * membarrier, and stores S in weiri_settled. Afterwards, announcements of earlier eras count no more.
 * For what those threads stored before the membarrier is visible, and after it they find that the era
 * has moved.
 *
 * Source. Hazard eras (Ramalhete and Correia, SPAA 2017): a reader publishes an era, with a fence,
 * only if it has moved since. There the era stays published as long as the read needs it, and each
 * read ends with a store that takes it back. Here, the sections and slots say what is held, the
 * announcement only covers what is not visible yet, and membarrier ends it. We know of no
 * publication of this form.
 *
 * Invariants
 *   N1  `fenced` of a record is 0, or an era that its owner announced; a fence came between the two
 *       stores
 *   N2  weiri_settled only grows, and is at most the era
 * Pairs
 *   P1  announce(E) -> collector that sees E: all sections and claims of the thread before this
 *       announcement, and the end of its accesses
 *   P2  settle -> collector that sees weiri_settled: everything that was visible to the settling
 *       thread after the membarrier
 *   F1  announce <-> collector, Dekker: the announcement, then the fence, then the loads of the
 *       reader; the new era, then the fence, then the scan of the collector
 *   F2  invisible section or claim <-> settle: the membarrier of the collector, Dekker
 * Why nothing that is read is freed. Let a thread store a section or a slot without a fence, after it
 * announced E. It then loads a pointer, and after that an era. If this era is not E, it goes to work
 * as if it had not read: a section raises hi, and a reader of a slot announces, both with a fence;
 * then they load the pointer again. So let the era be E. The object was published before the load,
 * so it was born in E or earlier. It was unlinked after the announcement, which comes after a
 * seq_cst load of E, so it died in E or later. Now consider a collector that begins an era C, and
 * then scans.
 *   C <= E: it does not free what dies in C or later.
 *   C > E, and it sees the announcement of E: it takes it as a section that begins in E, and keeps
 *   the object.
 *   C > E, and it misses the announcement, because its scan came too early. Then F1 says that every
 *   load of the reader after the announcement sees C or a later era, and not E.
 *   It sees a later announcement: then P1 says that it sees the section and the slot, too, if it
 *   looks at them after the announcement.
 *   The announcement of E counts no more, since E < S = weiri_settled. Let the reader have loaded E,
 *   the last time, before the membarrier. Then the store of the section or slot came before it too,
 *   and is visible. If it loaded the era after the membarrier, it found at least S.
 * What is read in a section after hi was raised: hi was stored before a fence, so the collector sees
 * it, or the reader sees that the object was unlinked. The same fence makes lo visible.
 * Signal handlers. A handler may announce between any two instructions. `fenced` is stored after the
 * fence, so a handler that finds it never relies on a fence that the interrupted code has yet to
 * run. The interrupted code looks at `fenced` after its own store: if a handler has announced
 * meanwhile, it announces again. An announcement may so return to an earlier era. Then `fenced` does
 * not match the era, and the next section or claim announces again.
 * Where membarrier is refused from the beginning, each section and claim runs a fence of its own:
 * `fenced` stays 0, `announced` too, and there is nothing to settle. Where it is refused later,
 * nothing is settled any more: each thread that does not read any more holds what lived in one era.
 * Threads that go on reading do without membarrier.
 *
 * When a collector settles: settle.h.
 * Progress: wait-free. An announcement is two stores and a fence.
 * Checked: stress/model/check_reclaim.c, tests/test_announce.c.
 */
#ifndef WEIRI_RECLAIM_ANNOUNCE_H
#define WEIRI_RECLAIM_ANNOUNCE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/compiler.h"
#include "reclaim/record.h"

/*
 * Returns true if the owner, which calls this, has announced the era, so that it may go on without
 * a fence.
 */
static inline bool weiri_is_announced(const struct weiri_record *record, uint64_t era)
{
	weiri_compiler_barrier(); /* after the section or claim was stored, for signal handlers */
	/* [relaxed] own field; see N1. */
	return weiri_load_relaxed(&record->fenced) == era;
}

/*
 * Announces the era, which the owner has loaded from weiri_era. Afterwards, everything that it has
 * stored is visible to every collector whose new era its next loads do not see.
 */
WEIRI_SHARED void weiri_announce(struct weiri_record *record, uint64_t era);

/* The owner is gone, or is to have no announcement. What it stored is visible (P1). */
void weiri_announce_nothing(struct weiri_record *record);

/* Called in the child of a fork for each record: membarrier is registered anew, and nothing is settled. */
void weiri_announce_after_fork(struct weiri_record *record);

/*
 * Returns the era before which announcements count no more. Called after a collector has begun its
 * era, and before it looks at announcements.
 */
uint64_t weiri_announcements_settled(void);

/*
 * Returns the era that the record's owner has announced, or 0 if there is no announcement that
 * counts. `settled` is weiri_announcements_settled(). The collector looks at the section and the
 * slots of the record afterwards: P1.
 */
static inline uint64_t weiri_announced(const struct weiri_record *record, uint64_t settled)
{
	/* [P1 acquire] pairs with weiri_announce(). */
	uint64_t era = weiri_load_acquire(&record->announced);

	return era >= settled ? era : 0;
}

/*
 * Returns true if the owner of another record than `mine` has an announcement that counts, of an era that is
 * `old` eras older than `era`, or more.
 */
bool weiri_anyone_announced(const struct weiri_record *mine, uint64_t era, uint64_t old);

/*
 * Announcements of earlier eras than `era` count no more. The caller has read the era, and then run
 * a membarrier.
 */
void weiri_announcements_settle(uint64_t era);

#endif
