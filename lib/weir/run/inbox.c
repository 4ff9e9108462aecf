/*
 * inbox.c - an unbounded queue of tasks: rings that are added as the backlog grows, and a chain for
 * tasks that arrive while there is no memory.
 *
 * Why not one intrusive stack. A thread that pops a single task would read the next pointer of a
 * task that another thread may have run and freed meanwhile. It would also have the ABA problem. A
 * thread that takes the whole stack, and then stalls, strands every task in it. Here this can
 * happen only to tasks that were submitted while there was no memory.
 *
 * Source. A queue of linked rings is known from LCRQ (Morrison and Afek, PPoPP 2013). There only
 * the last ring accepts items, and a ring is closed when it is full. Here rings grow geometrically,
 * stay until fini, and all accept items. The price is that the order is FIFO only within one ring.
 *
 * Invariant I1: rings[i] != NULL implies rings[j] != NULL for j < i.
 * Pairs
 *   P1  publish_ring -> ring_at: the ring's contents
 *   P2  push_chain -> take_chain: the tasks in the chain and what was written before their put
 * A ring carries what a thread wrote before its put to the thread that takes the task
 * (weir/ring.h).
 * Linearization: put at the ring's enqueue or at the CAS on the chain; take at the ring's dequeue
 *   or at the exchange.
 * Progress: put fails a CAS on the chain only if another CAS succeeded. If another thread publishes
 *   a ring first, put uses that ring.
 * Checked: tests/test_pool.c (plain, TSan, ASan); stress/model/check_inbox.c.
 */
#include "run/inbox.h"

#include "base/assert.h"
#include "base/compiler.h"
#include "ring/ring.h"
#include "run/handoff.h"

enum { CHAIN_TURN = 1024 }; /* a look in so many begins at the chain */

static weir_ring *ring_at(struct weiri_inbox *inbox, unsigned index)
{
	/* [P1 acquire] pairs with publish_ring(). */
	return weiri_load_acquire(&inbox->rings[index]);
}

/*
 * Creates ring `index` unless another thread has done so. Returns the published ring, or NULL if
 * there is no memory.
 */
static WEIRI_COLD weir_ring *publish_ring(struct weiri_inbox *inbox, unsigned index)
{
	const struct weir_ring_options options = {WEIR_RING_OPTIONS_INIT, .allocator = inbox->allocator};
	weir_ring *expected = NULL;
	weir_ring *ring;

	if (weir_ring_create((size_t)WEIRI_INBOX_FIRST_CAPACITY << (2 * index), &options, &ring, NULL) != WEIR_OK)
		return NULL;
	/* [P1 release] pairs with ring_at(); a failed CAS acquires the winner's ring. */
	if (weiri_cas_release_or_acquire(&inbox->rings[index], &expected, ring))
		return ring;
	(void)weir_ring_destroy(ring, NULL);
	return expected;
}

/* Pushes [first .. last], which are linked by next, in front of the chain. */
static void push_chain(struct weiri_inbox *inbox, weir_task *first, weir_task *last)
{
	/* [relaxed] the value goes into last->next, which only a taker follows, after an acquire. */
	weir_task *head = weiri_load_relaxed(&inbox->chain);

	do {
		last->next = head;
		/* [P2 release] pairs with take_chain(). No ABA: no thread removes single tasks. */
	} while (!weiri_cas_release(&inbox->chain, &head, first));
}

/*
 * Returns the oldest task of the chain, so that none is passed over for ever. The other tasks go into
 * rings if there is room now, else back onto the chain, in the same order.
 */
static WEIRI_COLD weir_task *take_chain(struct weiri_inbox *inbox, bool *moved)
{
	/*
	 * [P2 acquire] pairs with push_chain(), for all tasks of the chain: each CAS continued the
	 * release sequence.
	 */
	weir_task *task = weiri_oldest_first(weiri_exchange_acquire(&inbox->chain, NULL));
	weir_task *rest = task != NULL ? task->next : NULL;

	while (rest != NULL) {
		weir_task *next = rest->next;

		weiri_inbox_put(inbox, rest);
		*moved = true;
		rest = next;
	}
	return task;
}

bool weiri_inbox_init(struct weiri_inbox *inbox, const weir_allocator *allocator)
{
	inbox->allocator = allocator;
	/* [relaxed] not shared yet. */
	weiri_store_relaxed(&inbox->chain, NULL);
	for (unsigned i = 0; i < WEIRI_INBOX_RINGS; i++)
		weiri_store_relaxed(&inbox->rings[i], NULL);
	return publish_ring(inbox, 0) != NULL;
}

static WEIRI_UNSEEN void assert_no_gap(const struct weiri_inbox *inbox)
{
	for (unsigned i = 1; i < WEIRI_INBOX_RINGS; i++)
		WEIR_ASSERT3(I1, weiri_peek(&inbox->rings[i]) == NULL || weiri_peek(&inbox->rings[i - 1]) != NULL);
}

void weiri_inbox_fini(struct weiri_inbox *inbox)
{
	WEIR_ASSERT_WALK(assert_no_gap(inbox));
	for (unsigned i = 0; i < WEIRI_INBOX_RINGS; i++)
		(void)weir_ring_destroy(ring_at(inbox, i), NULL);
}

void weiri_inbox_put(struct weiri_inbox *inbox, weir_task *task)
{
	for (unsigned i = 0; i < WEIRI_INBOX_RINGS; i++) {
		weir_ring *ring = ring_at(inbox, i);

		if (ring == NULL)
			ring = publish_ring(inbox, i);
		if (ring == NULL)
			break;
		if (weir_ring_try_enqueue(ring, (uint64_t)(uintptr_t)task) == WEIR_OK)
			return;
	}
	push_chain(inbox, task, task);
}

static unsigned count_rings(struct weiri_inbox *inbox)
{
	unsigned count = 1; /* the first exists from init on */

	while (count < WEIRI_INBOX_RINGS && ring_at(inbox, count) != NULL)
		count++;
	return count;
}

/* Returns a task, or NULL if the chain is empty. */
static weir_task *look_at_chain(struct weiri_inbox *inbox, bool *moved)
{
	/*
	 * [relaxed] the exchange acquires. This load sees each put that ended before this call, or
	 * before the fence of the caller.
	 */
	return WEIRI_LIKELY(weiri_load_relaxed(&inbox->chain) == NULL) ? NULL : take_chain(inbox, moved);
}

weir_task *weiri_inbox_take(struct weiri_inbox *inbox, unsigned turn, bool *moved)
{
	unsigned rings = count_rings(inbox);
	unsigned places =
		rings + 1; /* the last is the chain: it has its turn, too, but seldom, for a look may move all of it */
	unsigned first = turn % CHAIN_TURN == CHAIN_TURN - 1 ? rings : turn % rings;

	for (unsigned i = 0; i < places; i++) {
		unsigned index = first + i < places ? first + i : first + i - places;
		weir_task *task;
		uint64_t value;

		if (index < rings) {
			if (weir_ring_try_dequeue(ring_at(inbox, index), &value) == WEIR_OK)
				return (weir_task *)(uintptr_t)value;
		} else if ((task = look_at_chain(inbox, moved)) != NULL) {
			return task;
		}
	}
	return NULL;
}

bool weiri_inbox_has_task(struct weiri_inbox *inbox)
{
	unsigned rings = count_rings(inbox);

	for (unsigned i = 0; i < rings; i++) {
		const weir_ring *ring = ring_at(inbox, i);

		if (weiri_ring_ops_of(ring)->has_value(ring))
			return true;
	}
	/* [relaxed] a look; a take acquires. */
	return weiri_load_relaxed(&inbox->chain) != NULL;
}
