/*
 * beacon.h - a file descriptor that is readable exactly while a condition holds: level-triggered, for poll and epoll.
 *
 * The condition lives elsewhere, in atomics that any thread changes. Whoever has changed it so that it may have begun or ceased to hold
 * calls weiri_beacon_settle() afterwards, which makes the descriptor agree with it. Who settles looks at the condition himself.
 *
 * Algorithm (ours). The descriptor is an eventfd that counts; a word says how it should stand, and each change of the word gives whoever
 * made it one system call to do:
 *
 *   DARK -> LIGHTING    the condition holds
 *   LIGHTING -> LIT     by whoever has added one to the count; several may have, and those whose CAS fails take theirs back
 *   LIT -> DARK         the condition does not hold; whoever changed it takes one
 *   DARK -> DARK, LIT -> LIT    it is right as it is; only the version moves
 *
 * A settle reads the word, looks at the condition, and ends with a CAS that succeeds only if nobody else settled between. The version is why
 * the last row is there: a settle that found nothing to do still makes one fail that looked before it.
 *
 * Invariants
 *   B1  the count is at least 1 while the word is LIT: each LIGHTING -> LIT left one, each LIT -> DARK takes one, and what a loser takes back
 *       it has added before
 *   B2  the word agrees with the condition as it was at some moment between the last two changes of the word that ended a settle
 *   B3  so when each thread that changed the condition has settled since, word, count and condition agree: let S be the settle that ended
 *       last. A change whose settle ended before S read the word is seen by S's look (P1); one whose settle ended between makes S's
 *       CAS fail; none ended later
 * Pairs
 *   P1  settle (CAS of the word) -> settle (load): what its caller had changed before
 * Linearization: of a settle, its last CAS. Of what a poller sees, the kernel's count.
 * Spurious readiness. Between the change that ends the condition and the end of its settle; and while a thread stands between a CAS
 *   and its system call, or has added one too much and not yet taken it back. Nothing else: B1, and each such thread accounts for one.
 *   Readiness is never late but by a settle under way: nobody who finds LIGHTING relies on the thread that is at it.
 * Progress: lock-free. A CAS fails because another settle ended or went on a step; a settle that is alone takes at most four.
 * Memory: a word and a descriptor. The version has 62 bits.
 * Checked: stress/model/check_readiness.c, tests/test_queue_readiness.c.
 */
#ifndef WEIRI_SYNC_BEACON_H
#define WEIRI_SYNC_BEACON_H

#include <stdint.h>

#include "base/atomic.h"
#include "base/eventfd.h"

struct weiri_beacon {
	_Atomic(uint64_t) word;
	struct weiri_eventfd event; /* constant */
};

/* 1 when the condition holds at some moment of the call. */
typedef int weiri_beacon_look_fn(void *context);

/* event.fd -1: the system has no more descriptors. Dark. */
void weiri_beacon_init(struct weiri_beacon *beacon);
void weiri_beacon_fini(struct weiri_beacon *beacon);
void weiri_beacon_settle(struct weiri_beacon *beacon, weiri_beacon_look_fn *look, void *context);

#endif
