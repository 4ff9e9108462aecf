/*
 * ready_fd.h - a level-triggered file descriptor: readable exactly while a condition holds, for
 * poll and epoll.
 *
 * The condition lives elsewhere, in atomics that any thread changes. A thread that has changed it,
 * so that it may have begun or ceased to hold, runs a seq_cst fence and then calls
 * weiri_ready_fd_settle(), which makes the descriptor agree. The settling thread looks at the
 * condition itself. While the descriptor agrees, a settle writes nothing.
 *
 * Algorithm. The descriptor is a counting eventfd. A word says how it should stand:
 *
 *   DARK      the condition does not hold
 *   LIGHTING  it holds; a thread is about to add to the count
 *   LIT       it holds, and the count is at least 1
 *
 *   DARK, LIGHTING -> LIGHTING   by a thread that found that the condition holds. It then adds to
 *                                the count, and makes the word LIT by CAS. A thread that finds
 *                                LIGHTING does not rely on the thread that set it: it does the same
 *   LIT, LIGHTING -> CHECK       by a thread that found that the condition does not hold. CHECK is
 *                                a bit beside the state
 *   CHECK -> no CHECK            by a thread that found that the condition holds
 *   CHECK -> DARK                by a thread that set CHECK or found it, and looked once more: the
 *                                condition still did not hold. The thread then takes one from the
 *                                count
 *
 * Every change of the word gives it a new version, so a CAS succeeds only if nothing has changed.
 * The upper part of the version grows each time the word becomes DARK (and after 1,024 other
 * changes). A thread that lights makes the word LIT even if others have changed it meanwhile, as long
 * as it did not become DARK.
 *
 * The word also counts. An add that backs no LIT is `spare`: it was made or promised, and must be
 * taken before the descriptor is unreadable. A thread that is about to take is a `taker`. A thread
 * that finds the word DARK with spare adds makes itself the taker of one of them. If the count is 0
 * at that moment, the thread that promised the add has not made it yet; the add becomes spare again,
 * and a later settle takes it, at the latest that of the thread that makes it. So a thread that is
 * stopped anywhere while it lights the descriptor leaves nothing that other threads cannot take back.
 *
 * A taker may be late: the descriptor may be LIT again when it takes. So a thread that lights adds
 * one for itself and one for each taker. Of these all but one are spare when the word is LIT.
 *
 * Source. We know of no publication of a lock-free level-triggered eventfd. That a thread announces
 * its intention to clear a flag, looks again, and clears it only if nobody objected, is how
 * eventcounts and epoch-based "is it still idle" checks work; see sync/waiters.h.
 *
 * Invariants
 *   B1  while the word is LIT, the adds that are promised and not made are at most the spare ones.
 *       While it is DARK or LIGHTING, they are at most the spare ones and the takers together
 *   B2  while the word is LIT, the count is at least 1. For the count is what was added and not
 *       taken: 1, the spare adds and those of the takers, less the promised ones. By B1 it is at
 *       least 1 and the takers
 *   B3  when every thread that changed the condition has settled since, word, count and condition
 *       agree, and while the word is DARK no add is spare
 *   B4  the word becomes DARK only if the condition did not hold at some moment while this CHECK
 *       stood
 * Why B1 holds. Let s be the spare adds, t the takers, and p the promised adds. A thread that
 *   lights adds 1 + t: s and p grow by 1 + t. When it makes the word LIT, its own 1 + t are made, and
 *   no spare add was taken since, for that happens in the dark only. So p is at most what s + t was
 *   before, and that is s - 1 now: the add that backs LIT is not spare any more. (Other threads that
 *   light meanwhile add as much to s as to p.) A taker that finds the count above 0 takes an add that
 *   was made: p stays, t falls by one, and the count, s + t - p while DARK, was at least 1. A taker
 *   that finds 0 turns into a spare add. It cannot find 0 while the word is LIT (B2). LIT -> DARK
 *   makes a taker of the add that backed LIT; LIGHTING -> DARK and a thread that takes a spare add
 *   make a taker of a spare one.
 * Why B3 holds. [F1] Let N be a thread that changed the condition, ran its fence, and loaded the
 *   word; let D be one that changed the word, or found CHECK, ran its fence, and looked. In the order
 *   of fences either N is first, and D's look sees N's change; or D is first, and N loads D's word or a later
 *   one. N makes the condition true: if N loads LIT, no CHECK was set before (D's look would see the
 *   change), so the word stays LIT until a look after N's change finds otherwise. N makes it false:
 *   if N loads DARK or LIGHTING while D lights, D looks after it has lit, sees the change, and makes
 *   the word DARK again. A spare add that was made is taken by F2.
 * Pairs
 *   F1  change of the condition, fence, load of the word <-> change of the word, fence, look; both
 *       sides in settle
 *   F2  add to the count, fence, load of the word <-> CAS that makes an add spare again, fence, look
 *       at the count. The taker found 0, so the add was promised and not made. Either the taker now
 *       finds it made, and takes once more; or the thread that made it finds it spare
 *   P1  CAS of the word -> load: what the thread added to the count or took from it before
 * Linearization: a settle at its last load or CAS of the word; what a poller sees at Linux's access
 *   to the count.
 * Readable for nothing. The descriptor can be readable although the condition does not hold while
 *   the call that ended the condition is under way; and while a taker is stopped between its CAS and
 *   its system call. A settle that finds the condition false ends every other case. So a poller that
 *   finds nothing settles, and then sleeps, even if threads are stopped while they light.
 * Late. It is unreadable although the condition holds only while the very call that made the
 *   condition true is under way, if each thread that changes the condition settles itself. (A watch
 *   is settled by its claimer: var/watch.c.)
 * Progress: lock-free. A CAS fails only if another thread changed the word; a call lights at most
 *   once between two moments at which the word became DARK. Undisturbed, a settle makes 2 CAS and a
 *   system call to light the descriptor; to make it dark 3 CAS and a system call, and 2 and one more
 *   for each spare add.
 * Memory: a word and a descriptor. The version has 45 bits, of which 35 count the dark. No
 *   further thread lights the descriptor while the spare adds and twice the takers exceed 1,022: 1,000
 *   threads that are stopped while they light it, or 62, of which 31 are takers. If 63 takers are
 *   stopped, it stays readable.
 * Checked: stress/model/check_readiness.c, check_watch.c, tests/test_ready_fd.c,
 *   tests/test_queue_readiness.c.
 */
#ifndef WEIRI_SYNC_READY_FD_H
#define WEIRI_SYNC_READY_FD_H

#include <stdint.h>

#include "base/atomic.h"
#include "base/compiler.h"
#include "base/eventfd.h"

/* The parts of the word. */
#define WEIRI_READY_FD_LIT UINT64_C(2)
#define WEIRI_READY_FD_STATE UINT64_C(3)
#define WEIRI_READY_FD_CHECK UINT64_C(4)
#define WEIRI_READY_FD_TAKER UINT64_C(8)
#define WEIRI_READY_FD_SPARE UINT64_C(0x200)
#define WEIRI_READY_FD_VERSION UINT64_C(0x80000)

struct weiri_ready_fd {
	_Atomic(uint64_t) word;
	struct weiri_eventfd event; /* constant */
};

/* Returns true if the condition holds at some moment of the call. */
typedef bool weiri_ready_fd_look_fn(void *context);

/* The descriptor begins DARK. event.fd is -1 if the system has no more descriptors. */
void weiri_ready_fd_init(struct weiri_ready_fd *ready_fd);
void weiri_ready_fd_fini(struct weiri_ready_fd *ready_fd);

/*
 * Called after a change of the condition and a seq_cst fence. A thread that has changed nothing since
 * its last settle needs no fence.
 */
void weiri_ready_fd_settle(struct weiri_ready_fd *ready_fd, weiri_ready_fd_look_fn *look, void *context);

/*
 * Called like a settle, after a change that cannot have made the condition false. Returns true if
 * the descriptor is lit and no thread checks it: then a settle would do nothing.
 */
static inline bool weiri_ready_fd_is_lit(const struct weiri_ready_fd *ready_fd)
{
	/* [relaxed, F1] the fence of the caller precedes it; it carries nothing. */
	uint64_t word = weiri_load_relaxed(&ready_fd->word);

	return (word & (WEIRI_READY_FD_STATE | WEIRI_READY_FD_CHECK)) == WEIRI_READY_FD_LIT;
}

/* A settle after a change that cannot have made the condition false: it looks only if it must. */
static inline void weiri_ready_fd_raise(struct weiri_ready_fd *ready_fd, weiri_ready_fd_look_fn *look, void *context)
{
	if (WEIRI_UNLIKELY(!weiri_ready_fd_is_lit(ready_fd)))
		weiri_ready_fd_settle(ready_fd, look, context);
}

/* Returns true if the descriptor is dark and nothing is left to take. */
static inline bool weiri_ready_fd_is_dark(const struct weiri_ready_fd *ready_fd)
{
	/* [relaxed] a look; the caller found the condition false, and the next call looks again. */
	return (weiri_load_relaxed(&ready_fd->word) &
	        (WEIRI_READY_FD_VERSION - WEIRI_READY_FD_SPARE + WEIRI_READY_FD_STATE)) == 0;
}

#endif
