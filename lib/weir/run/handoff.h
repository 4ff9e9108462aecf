/*
 * handoff.h - tasks that any threads hand to one thread, which runs them.
 *
 * For a thread that wants to run all parts of a computation itself, and waits for those that come
 * from elsewhere. Tasks are linked through their own memory, so nothing is allocated. The taker
 * takes all tasks at once, so no task is ever unlinked alone, and ABA cannot matter.
 *
 * Source. A stack whose owner takes everything is due to Treiber (1986); the taking of the whole is
 * common practice, for example in run/inbox.c.
 *
 * Invariants
 *   H1  a task is in the list of one handoff, or with the thread that put it or took it
 * Pairs
 *   P1  put -> take_all: the task, and what the thread that put it wrote before
 * Linearization: put at the CAS; take_all at the exchange, or at the load that found nothing.
 * Order: the tasks of one take_all come in the order in which they were put.
 * Progress: put is lock-free (a CAS fails only because another put or a take succeeded); take_all is
 *   wait-free but for the tasks that it turns around.
 * Checked: stress/model/check_published.c, tests/test_callable.c.
 */
#ifndef WEIRI_HANDOFF_H
#define WEIRI_HANDOFF_H

#include <stddef.h>
#include <weir/pool.h>

#include "base/atomic.h"

struct weiri_handoff {
	_Atomic(weir_task *) newest;
};

static inline void weiri_handoff_init(struct weiri_handoff *handoff)
{
	/* [relaxed] not shared yet. */
	weiri_store_relaxed(&handoff->newest, NULL);
}

static inline void weiri_handoff_put(struct weiri_handoff *handoff, weir_task *task)
{
	/* [relaxed] only the CAS decides; the task behind is not read. */
	weir_task *newest = weiri_load_relaxed(&handoff->newest);

	do {
		task->next = newest;
		/* [P1 release] pairs with take_all. The tasks behind were put by their own CAS: a release sequence. */
	} while (!weiri_cas_release(&handoff->newest, &newest, task));
}

/* Turns a chain that begins at its newest task round. Returns the oldest, or NULL for NULL. */
static inline weir_task *weiri_oldest_first(weir_task *newest)
{
	weir_task *oldest = NULL;

	while (newest != NULL) {
		weir_task *older = newest->next;

		newest->next = oldest;
		oldest = newest;
		newest = older;
	}
	return oldest;
}

/* Returns the oldest task, from which ->next leads to the later ones; or NULL. */
static inline weir_task *weiri_handoff_take_all(struct weiri_handoff *handoff)
{
	/* [relaxed] a look; the exchange decides. */
	if (weiri_load_relaxed(&handoff->newest) == NULL)
		return NULL;
	/* [P1 acquire] pairs with the puts. */
	return weiri_oldest_first(weiri_exchange_acquire(&handoff->newest, NULL));
}

#endif
