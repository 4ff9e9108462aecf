/*
 * waiters.h - a list of those who wait, and how those who change what they wait for find out that somebody is on it.
 *
 * Waiter                                        Notifier
 *   append to list; post();                       change;
 *   look; if it is in vain: sleep                 if (posted()) while (look()) serve the list;
 *
 * Algorithm (ours). The two sides meet like Dekker's: one must see the other. While nobody has waited for long the fence is on the waiter, as in
 * the eventcount: a notifier runs a compiler barrier and loads one word. But the waiter's fence, membarrier(2), interrupts every processor
 * that runs a thread of the process, some microseconds each time, and a thread that waited once soon waits again. So the first who
 * waits posts the word and runs membarrier once; while it stays posted the fence is on the notifiers: each has seen that it is posted,
 * and goes through a read-modify-write of the same word before it looks at the list. Another waiter then does the same and no more.
 * A look that finds nobody takes the post down, if it is the PATIENCE-th or a later one since the last post; those that found somebody count.
 *
 * The word: POSTED; SETTLED, whoever posted has run membarrier since; an epoch, which each post and each end moves; the looks since the last post.
 *
 * Invariants
 *   W1  the word changes by read-modify-writes only
 *   W2  POSTED goes away only by the CAS of a notifier who found the list empty after his read-modify-write, which no post has followed
 *   W3  SETTLED is set only by a waiter whose post has stood since before his heavy fence; it goes with POSTED
 * Pairs
 *   F1  change, light fence, word (posted) <-> F2  append, post, heavy fence, look (of a waiter that found the word not settled)
 *   P1  look -> post: the change of a notifier whose look came first. P2  post -> look: the node
 *   P3  settle -> post: the heavy fence comes before the look of each who finds the word settled
 *
 * No change is missed. Take a notifier N and a waiter A whose look missed N's change.
 *   A ran the fence itself: by F1/F2 N saw the post of A or a later word.
 *   A found it settled, by B: had N loaded a word from before B's post, then N's change came before B's fence (F1/F2), and by P3 A's look would
 *   have seen it. So N saw a word from B's post on, which was posted until A's (W3).
 * Thus N's word was posted, or it is one that came after A's post was taken down: A had left the list by then (W2). If it was posted, N goes on to
 * his read-modify-write. By P1 it does not come before A's post, so it comes after: by P2 N sees the node of A, unless that is gone.
 *
 * Progress: posted, look: wait-free. post: lock-free, a CAS that fails met another's change; and membarrier(2) if nobody has settled.
 * Checked: tests/test_waiters.c (plain, TSan, ASan); stress/model/check_waiters.c, also with the symmetric fence.
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
#define WEIRI_WAITERS_SETTLED UINT64_C(2)

/* Not shared yet. */
void weiri_waiters_init(struct weiri_waiters *waiters);
/* By one who is on the list, before he looks whether he has to wait. 0: the heavy fence failed, so a notifier may overlook him. */
int weiri_waiters_post(struct weiri_waiters *waiters);

/* After a change: 1 when there may be somebody, as weiri_waiters_look() will tell. */
static inline int weiri_waiters_posted(const struct weiri_waiters *waiters)
{
	weiri_fence_light(); /* F1 */
	/* [relaxed] carries nothing; its place after the caller's change is kept by F1. */
	return (weiri_load_relaxed(&waiters->word) & WEIRI_WAITERS_POSTED) != 0;
}

/* After a change: 1 when there is somebody on the list, or was a moment ago. */
int weiri_waiters_look(struct weiri_waiters *waiters);

#endif
