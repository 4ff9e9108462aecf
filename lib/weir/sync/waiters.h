/*
 * waiters.h - a list of waiters, and how a thread that changes what they wait for learns that there
 * is one.
 *
 * Waiter                                        Notifier
 *   append to list; post();                       change;
 *   look; if it fails: sleep                      if (posted()) while (look()) serve the list;
 *
 * Algorithm. The two sides meet as in Dekker's algorithm: one must see the other. After a time
 * without waiters the fence is on the waiter, as in the eventcount, and a notifier runs a compiler
 * barrier and loads one word. But the waiter's fence, membarrier(2), interrupts every processor
 * that runs a thread of the process, which takes some microseconds, and a thread that waited once
 * soon waits again. So the first waiter posts the word and runs membarrier once. While the word
 * stays posted, the fence is on the notifiers: a notifier sees that the word is posted, and does a
 * read-modify-write of it before it looks at the list. A further waiter does the same and no more.
 * A look that finds the list empty clears the post, if it is the PATIENCE-th look or a later one
 * since the last post; looks that found a waiter count.
 *
 * Source. The asymmetric Dekker pattern is that of membarrier(2) and of biased locks; we know of no
 * publication that moves the fence back to the notifiers while waits are frequent.
 *
 * The word: POSTED; FENCED (the poster has run membarrier since its post); an epoch, which each
 * post and each clearing advances; the number of looks since the last post.
 *
 * Invariants
 *   W1  the word changes by read-modify-writes only
 *   W2  POSTED is cleared only by the CAS of a notifier that found the list empty after its own
 *       read-modify-write, and only if no post has followed that
 *   W3  FENCED is set only by a waiter whose post has stood since before its heavy fence; it is
 *       cleared together with POSTED
 * Pairs
 *   F1  notifier: change, light fence, word (posted);
 *       waiter that finds the word not fenced: append, post, heavy fence, look
 *   P1  look -> post: the change of a notifier whose look came first. P2  post -> look: the node
 *   P3  note_fence -> post: the heavy fence precedes the look of each waiter that finds the word
 *       fenced
 *
 * No change is missed. Take a notifier N, and a waiter A whose look missed N's change. If A ran the
 *   fence itself: by F1, N saw A's post or a later word. If A found the word fenced by a waiter B:
 *   suppose N had loaded a word from before B's post. Then N's change precedes B's fence (F1), and
 *   by P3 A's look would have seen it. So N saw a word from B's post on, and that word was posted
 *   until A's post (W3).
 * Thus the word that N saw was posted, or it came after A's post was cleared, and then A had left
 * the list (W2). If it was posted, N goes on to its read-modify-write. By P1 that does not precede
 * A's post, so it follows it, and by P2 N sees A's node, unless A has left the list.
 *
 * Progress: posted and look are wait-free. post is lock-free: a CAS fails only after another
 *   thread's change; and it runs membarrier(2) if no waiter has fenced the word.
 * Checked: tests/test_waiters.c (plain, TSan, ASan); stress/model/check_waiters.c, also with the
 *   symmetric fence.
 */
#ifndef WEIRI_SYNC_WAITERS_H
#define WEIRI_SYNC_WAITERS_H

#include "base/asymmetric.h"
#include "sync/list.h"

struct weiri_waiters {
	struct weiri_list list;
	_Atomic(uint64_t) word;
};

#define WEIRI_WAITERS_POSTED UINT64_C(1)
#define WEIRI_WAITERS_FENCED UINT64_C(2)

/* Not shared yet. */
void weiri_waiters_init(struct weiri_waiters *waiters);
/*
 * By a waiter that is on the list, before it looks whether it must wait. 0: the heavy fence failed,
 * so a notifier may miss the waiter.
 */
int weiri_waiters_post(struct weiri_waiters *waiters);

/* After a change. 1: there may be a waiter, and weiri_waiters_look() tells. */
static inline int weiri_waiters_posted(const struct weiri_waiters *waiters)
{
	weiri_fence_light(); /* F1 */
	/* [relaxed] carries nothing; its place after the caller's change is kept by F1. */
	return (weiri_load_relaxed(&waiters->word) & WEIRI_WAITERS_POSTED) != 0;
}

/* After a change. 1: there is a waiter on the list, or was at some moment of the call. */
int weiri_waiters_look(struct weiri_waiters *waiters);

#endif
