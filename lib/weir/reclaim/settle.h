/*
 * settle.h - membarriers that settle announcements (announce.h): shared by the threads that want
 * one, and rationed.
 *
 * Why. The kernel lets one membarrier of this kind run at a time, of all processes together, and
 * each interrupts every processor that runs a thread of its process. On large machines, some take
 * milliseconds, and stall all that call it meanwhile.
 *
 * Algorithm. A membarrier serves every thread that began an era before it began. So the thread that
 * runs it, the *leader*, settles not its own era but the newest, which it reads just before. A thread
 * that comes while one is under way does not run another beside it. When that has ended, either it
 * has settled this thread's era too; or one of those that have come leads the next, which then serves
 * all of them. So the era is the ticket, and a thread waits for two membarriers at most.
 *   * A collection of what one thread retired (weiri_settle_mine) waits for none. It leads if none is
 *     under way, and if a thread announced its era IDLE_ERAS ago or earlier, once in a millisecond
 *     in the whole process.
 *   * A collection on behalf of all threads (weiri_settle_all) leads if any thread has an announcement
 *     that counts. If another leads, it looks for its end LOOKS times. A leader may be stopped, so it
 *     then goes on as if membarrier had been refused.
 *   * A thread that is about to sleep until memory is freed (weiri_settle_to_wait) needs the fence of the
 *     others even if none has announced anything.
 * Turns. The last two have turns of their own: once in a millisecond too, and up to BURST of the turns
 * that were not used remain. So the process settles at most 2,000 times a second, and BURST times more
 * after a rest, whatever is written, flushed or over its budget. After a membarrier that took t ns, the
 * first does without for 256 t, and the last two for 8 t, or for 4 seconds if that is less. If others led
 * meanwhile, because this one counted as stopped, the 8 t of all add up, to 4 seconds at most.
 * Meanwhile, the fences of readers that go on reading do what the membarrier would do (announce.h),
 * and who waits for memory looks again.
 *
 * Invariant: N2 of announce.h; the leader reads the era that it settles before its membarrier.
 * Pairs
 *   P1  era_begin(follower) -> weiri_era(leader): what the follower stored before is visible to each
 *       thread after the leader's membarrier
 *   P2  of announce.h: what was visible to the leader after the membarrier is so to the follower that
 *       sees weiri_settled
 *   P3  end(leader) -> begin(next leader): weiri_settled. A thread that looked before the end may lead
 *       after it, and then finds that it need not
 * Why a shared membarrier is as good as an own one. Follower: store y; begin an era E; ...; see
 * weiri_settled >= E; load x. The leader read an era >= E. All changes of weiri_era are
 * read-modify-writes, so its acquire load synchronizes with the follower's, and y comes before the
 * membarrier. That is a fence between two accesses of each other thread, "store x; load y". If it
 * comes before the load, the load sees y. Else it comes after the store of x, which the leader then
 * sees, and by P2 the follower.
 * A leader that is stopped. `under_way` is the time at which it began. After weiri_settle_lost_ns,
 * others lead as if there were none. Its CAS that ends its turn fails if another leads meanwhile. If
 * it goes on later, it settles the era that it read, which is right at any time (weiri_settled only
 * grows).
 * Progress: wait-free. A thread looks LOOKS times at most, about 50 us.
 * Source: the sequence numbers by which callers of synchronize_rcu() share grace periods (Linux, rcu_seq_snap());
 * here the era is the number, and nobody needs to wait. Turns: the generic cell rate algorithm (ITU-T I.371).
 * Checked: stress/model/check_reclaim.c, tests/test_announce.c, tests/test_settle.c.
 */
#ifndef WEIRI_RECLAIM_SETTLE_H
#define WEIRI_RECLAIM_SETTLE_H

#include <stdbool.h>
#include <stdint.h>

#include "reclaim/record.h"

/*
 * `mine` is the caller's record, whose stores it sees without a fence. `era` is one that the caller has
 * begun. Afterwards the caller asks weiri_announcements_settled().
 */
void weiri_settle_mine(const struct weiri_record *mine, uint64_t era);
void weiri_settle_all(const struct weiri_record *mine, uint64_t era);

/*
 * Returns true if each other thread has run a fence since the caller began the era; false if it is not the
 * caller's turn, or membarrier is refused. Then the caller must not rely on a wake-up.
 */
bool weiri_settle_to_wait(uint64_t era);

/* Called in the child of a fork: no leader is left. */
void weiri_settle_after_fork(void);

/* The time between two turns, and the time after which a leader counts as stopped. Tests change them. */
extern uint64_t weiri_settle_pause_ns, weiri_settle_lost_ns;

#endif
