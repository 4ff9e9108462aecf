/*
 * waiters.h - a list of waiters. It tells a thread that changes what they wait for whether there is
 * a waiter.
 *
 * Waiter                                        Notifier
 *   append to list; post();                       change;
 *   look; if it fails: sleep                      if (posted()) while (look()) serve the list;
 *
 * Algorithm. The two sides meet as in Dekker's pattern: at least one must see the other. After a
 * time without waiters the fence is on the side of the waiter, as in the eventcount. A notifier
 * then runs a compiler barrier and loads one word. But the waiter's fence, membarrier(2),
 * interrupts every processor that runs a thread of the process. This takes some microseconds, and a
 * thread that waited once soon waits again. So the first waiter posts the word and runs membarrier
 * once. While the word stays posted, the fence is on the side of the notifiers. A notifier that
 * sees the word posted does a read-modify-write of the word before it looks at the list. A further
 * waiter does a read-modify-write too, and no more. A look that finds the list empty clears the
 * post if at least PATIENCE looks, itself included, were made since the last post. Looks that found
 * a waiter count as well.
 *
 * Source. The asymmetric Dekker pattern is that of membarrier(2) and of biased locks; we know of no
 * publication that moves the fence to the notifiers while waits are frequent.
 *
 * The word: POSTED; FENCED (the poster has run membarrier since its post); FOLLOWED (something that
 * is not on the list follows the changes for good: a descriptor of queue/readiness.c); an epoch,
 * which each post and each clearing advances; the number of looks since the last post.
 *
 * Invariants
 *   W1  the word changes by read-modify-writes only
 *   W2  POSTED is cleared only by the CAS of a notifier that found the list empty after its own
 *       read-modify-write. That CAS succeeds only if no post has followed the read-modify-write
 *   W3  FENCED is set only by a waiter whose post has stood since before its heavy fence; it is
 *       cleared together with POSTED
 *   W4  FOLLOWED is never cleared
 * Pairs
 *   F1  notifier: change, light fence, word (posted);
 *       waiter that finds the word not fenced: append, post, heavy fence, look
 *   P1  look -> post: the change of a notifier whose look came first
 *   P2  post -> look: the waiter's node
 *   P3  note_fence -> post: the heavy fence precedes the look of each waiter that finds the word
 *       fenced
 *
 * No change is missed. Take a notifier N, and a waiter A whose look missed N's change. If A ran the
 *   fence itself, by F1 N saw A's post or a later word. Otherwise A found the word fenced by a
 *   waiter B. Suppose that N had loaded a word from before B's post. Then N's change would precede
 *   B's fence (F1), and by P3 A's look would have seen it. So N saw B's post or a later word, and
 *   from B's post to A's post the word stayed posted (W3).
 * Thus the word that N saw was posted, or it is from after the clearing of A's post. In the second
 * case A had left the list (W2). In the first case N goes on to its read-modify-write. By P1 this
 * does not precede A's post; so it follows A's post, and by P2 N sees A's node, unless A has left
 * the list.
 *
 * Progress: posted and look are wait-free. post is lock-free: its CAS fails only after a change by
 *   another thread. It runs membarrier(2) if no waiter has fenced the word.
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
#define WEIRI_WAITERS_FOLLOWED UINT64_C(4)

/* Not shared yet. */
void weiri_waiters_init(struct weiri_waiters *waiters);
/*
 * Called by a waiter that is on the list, before it checks whether it must wait. Returns false if
 * the heavy fence failed, so that a notifier may miss the waiter.
 */
bool weiri_waiters_post(struct weiri_waiters *waiters);

/*
 * From here on notifiers find FOLLOWED. A notifier that missed it made its change before the next
 * heavy fence that the caller runs (F1).
 */
void weiri_waiters_follow(struct weiri_waiters *waiters);

/* Called after a change. Returns which of POSTED and FOLLOWED are set. */
static inline uint64_t weiri_waiters_flags(const struct weiri_waiters *waiters)
{
	weiri_fence_light(); /* F1 */
	/* [relaxed] carries nothing; F1 keeps it after the caller's change. */
	return weiri_load_relaxed(&waiters->word) & (WEIRI_WAITERS_POSTED | WEIRI_WAITERS_FOLLOWED);
}

/* Called after a change. Returns true if there may be a waiter; weiri_waiters_look() then tells. */
static inline bool weiri_waiters_posted(const struct weiri_waiters *waiters)
{
	return (weiri_waiters_flags(waiters) & WEIRI_WAITERS_POSTED) != 0;
}

/* Called after a change. Returns true if a waiter was on the list at some moment of the call. */
bool weiri_waiters_look(struct weiri_waiters *waiters);

#endif
