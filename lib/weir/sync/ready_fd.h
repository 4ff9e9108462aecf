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
 *   LIGHTING -> LIT             by a thread that has added one to the count. Several threads
 *                               may add one; a thread whose CAS fails takes its one back
 *   LIT -> DARK                 the condition does not hold; the thread then takes one
 *   DARK -> DARK, LIT -> LIT    the word is right; only its version advances
 *
 * A settle reads the word, evaluates the condition, and ends with a CAS that succeeds only if no
 * other settle ended in between. The version serves the last row: a settle that found nothing to do
 * still advances it, so the CAS of a settle that evaluated the condition earlier fails.
 *
 * Source. We know of no publication of a lock-free level-triggered eventfd.
 *
 * Invariants
 *   B1  the count is at least 1 while the word is LIT: each LIGHTING -> LIT left one, each LIT ->
 *       DARK takes one, and a thread whose CAS failed takes back only what it has added
 *   B2  the word agrees with the condition as it was at some moment between the last two changes of
 *       the word that ended a settle
 *   B3  when every thread that changed the condition has settled since, word, count and condition
 *       agree. Let S be the settle that ended last. If the settle of a change ended before S read
 *       the word, S's evaluation sees the change (P1). If it ended later, but before S's CAS, that
 *       CAS fails. No settle ended after S
 * Pairs
 *   P1  settle (CAS of the word) -> settle (load): what the first one's caller had changed before
 * Linearization: a settle at its last CAS; what a poller sees at Linux's access to the count.
 * Spurious readiness. The descriptor can be readable although the condition does not hold in two
 *   cases only. One lasts from the change that ended the condition to the end of that change's
 *   settle. The other lasts while a thread stands between a CAS and its system call, or has added
 *   one too many and not yet taken it back. By B1 there is no other case, and each such thread
 *   accounts for one. Readiness is late by no more than a running settle: a thread that finds
 *   LIGHTING does not rely on the thread that set it.
 * Progress: lock-free. A CAS fails only if another settle ended or advanced. A settle that no other
 *   one disturbs makes at most four CAS.
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

/* Returns true if the condition holds at some moment of the call. */
typedef bool weiri_ready_fd_look_fn(void *context);

/* The descriptor begins DARK. event.fd is -1 if the system has no more descriptors. */
void weiri_ready_fd_init(struct weiri_ready_fd *ready_fd);
void weiri_ready_fd_fini(struct weiri_ready_fd *ready_fd);
void weiri_ready_fd_settle(struct weiri_ready_fd *ready_fd, weiri_ready_fd_look_fn *look, void *context);

#endif
