/*
 * ready_fd.h - a level-triggered file descriptor: readable exactly while a condition holds, for
 * poll and epoll.
 *
 * The condition lives elsewhere, in atomics that any thread changes. A thread that has changed it,
 * so that it may have begun or ceased to hold, then calls weiri_ready_fd_settle(), which makes the
 * descriptor agree. The settling thread evaluates the condition itself.
 *
 * Algorithm. The descriptor is a counting eventfd. A word says how the descriptor should stand, and
 * each change of the word obliges the thread that made it to one system call:
 *
 *   DARK -> LIGHTING            the condition holds
 *   LIGHTING -> LIT             by a thread that has added one to the count; several threads
 *                               may have, and those whose CAS fails take theirs back
 *   LIT -> DARK                 the condition does not hold; the thread then takes one
 *   DARK -> DARK, LIT -> LIT    the word is right; only its version advances
 *
 * A settle reads the word, evaluates the condition, and ends with a CAS that succeeds only if no
 * other settle ended in between. The version serves the last row: a settle that found nothing to do
 * still makes the CAS fail of a settle that evaluated the condition before it.
 *
 * Source. We know of no publication of a lock-free level-triggered eventfd.
 *
 * Invariants
 *   B1  the count is at least 1 while the word is LIT: each LIGHTING -> LIT left one, each LIT ->
 *       DARK takes one, and a thread whose CAS failed takes back only what it has added
 *   B2  the word agrees with the condition as it was at some moment between the last two changes of
 *       the word that ended a settle
 *   B3  when every thread that changed the condition has settled since, word, count and condition
 *       agree. Let S be the settle that ended last. S's evaluation sees a change whose settle ended
 *       before S read the word (P1). A change whose settle ended later than that, and before S's
 *       CAS, makes that CAS fail. None ended after S
 * Pairs
 *   P1  settle (CAS of the word) -> settle (load): what the first one's caller had changed before
 * Linearization: of a settle, its last CAS. Of what a poller sees, the kernel's count.
 * Spurious readiness. The descriptor can be readable while the condition does not hold in two cases
 *   only: between the change that ended the condition and the end of that change's settle; and
 *   while a thread stands between a CAS and its system call, or has added one too many and not yet
 *   taken it back. By B1 there is no other case, and each such thread accounts for one. Readiness
 *   is late only by a running settle: a thread that finds LIGHTING does not rely on the thread that
 *   made it so.
 * Progress: lock-free. A CAS fails because another settle ended or advanced; a settle that is alone
 *   does at most four.
 * Memory: a word and a descriptor. The version has 62 bits.
 * Checked: stress/model/check_readiness.c, tests/test_queue_readiness.c.
 */
#ifndef WEIRI_SYNC_READY_FD_H
#define WEIRI_SYNC_READY_FD_H

#include <stdint.h>

#include "base/atomic.h"
#include "base/eventfd.h"

struct weiri_ready_fd {
	_Atomic(uint64_t) word;
	struct weiri_eventfd event; /* constant */
};

/* 1 when the condition holds at some moment of the call. */
typedef int weiri_ready_fd_look_fn(void *context);

/* event.fd -1: the system has no more descriptors. Dark. */
void weiri_ready_fd_init(struct weiri_ready_fd *ready_fd);
void weiri_ready_fd_fini(struct weiri_ready_fd *ready_fd);
void weiri_ready_fd_settle(struct weiri_ready_fd *ready_fd, weiri_ready_fd_look_fn *look, void *context);

#endif
