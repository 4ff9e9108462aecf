/*
 * inbox.c - rings that grow by adding a larger one, and a chain for the day without memory.
 *
 * Why not one intrusive stack: popping single tasks from it would read the next pointer of a task that another thread has run and
 * freed (ABA and worse), and taking it as a whole lets a thread that is stopped right then strand every task in it. Here that can happen
 * only to tasks submitted while there was no memory.
 *
 * Invariant I1: rings[i] != NULL implies rings[j] != NULL for j < i.
 * Pairs
 *   P1  publish_ring -> ring_at: the ring's contents
 *   P2  push_chain -> take_chain: the tasks in the chain and what was written before their put
 * What is written before a put into a ring is carried by the ring (weir/ring.h).
 * Linearization: put at the ring's enqueue or at the CAS on the chain; take at the ring's dequeue or at the exchange.
 * Progress: put fails a CAS on the chain only because another succeeded; a ring that is published by another thread is used.
 * Checked: tests/test_pool.c (plain, TSan, ASan); stress/model/check_inbox.c.
 */
#include "run/inbox.h"

#include "base/compiler.h"

static weir_ring *ring_at(struct weiri_inbox *inbox, unsigned index)
{
	/* [P1 acquire] pairs with publish_ring(). */
	return weiri_load_acquire(&inbox->rings[index]);
}

/* Creates ring `index` unless another thread is first. Returns the one that is there, or NULL without memory. */
static WEIRI_COLD weir_ring *publish_ring(struct weiri_inbox *inbox, unsigned index)
{
	const struct weir_ring_options options = {.struct_size = sizeof(options), .allocator = inbox->allocator};
	weir_ring *expected = NULL;
	weir_ring *ring;

	if (weir_ring_create((size_t)WEIRI_INBOX_FIRST_CAPACITY << (2 * index), &options, &ring) != WEIR_OK)
		return NULL;
	/* [P1 release] pairs with ring_at(); a failed CAS acquires the winner's ring. */
	if (weiri_cas_release_or_acquire(&inbox->rings[index], &expected, ring))
		return ring;
	weir_ring_destroy(ring);
	return expected;
}

/* [first .. last] linked by next, in front of what is there. */
static void push_chain(struct weiri_inbox *inbox, weir_task *first, weir_task *last)
{
	/* [relaxed] its value goes into last->next and is followed only by a taker, who acquires it. */
	weir_task *head = weiri_load_relaxed(&inbox->chain);

	do {
		last->next = head;
		/* [P2 release] pairs with take_chain(). No ABA: nobody removes single tasks. */
	} while (!weiri_cas_release(&inbox->chain, &head, first));
}

/* One task of the chain; the others go into rings where there is room by now, else back. */
static WEIRI_COLD weir_task *take_chain(struct weiri_inbox *inbox, int *moved)
{
	/* [P2 acquire] pairs with push_chain(): all tasks of the chain, each CAS having continued the release sequence. */
	weir_task *task = weiri_exchange_acquire(&inbox->chain, NULL);
	weir_task *rest = task != NULL ? task->next : NULL;

	while (rest != NULL) {
		weir_task *next = rest->next;

		weiri_inbox_put(inbox, rest);
		*moved = 1;
		rest = next;
	}
	return task;
}

int weiri_inbox_init(struct weiri_inbox *inbox, const weir_allocator *allocator)
{
	inbox->allocator = allocator;
	/* [relaxed] not shared yet. */
	weiri_store_relaxed(&inbox->chain, NULL);
	for (unsigned i = 0; i < WEIRI_INBOX_RINGS; i++)
		weiri_store_relaxed(&inbox->rings[i], NULL);
	return publish_ring(inbox, 0) != NULL;
}

void weiri_inbox_fini(struct weiri_inbox *inbox)
{
	for (unsigned i = 0; i < WEIRI_INBOX_RINGS; i++)
		weir_ring_destroy(ring_at(inbox, i));
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
	unsigned count = 1; /* the first is there from init on */

	while (count < WEIRI_INBOX_RINGS && ring_at(inbox, count) != NULL)
		count++;
	return count;
}

weir_task *weiri_inbox_take(struct weiri_inbox *inbox, unsigned turn, int *moved)
{
	unsigned rings = count_rings(inbox);
	unsigned first = turn % rings;

	for (unsigned i = 0; i < rings; i++) {
		unsigned index = first + i < rings ? first + i : first + i - rings;
		uint64_t value;

		if (weir_ring_try_dequeue(ring_at(inbox, index), &value) == WEIR_OK)
			return (weir_task *)(uintptr_t)value;
	}
	/* [relaxed] the exchange acquires. A put that ended before this call, or before its caller's fence, is seen. */
	return WEIRI_LIKELY(weiri_load_relaxed(&inbox->chain) == NULL) ? NULL : take_chain(inbox, moved);
}
