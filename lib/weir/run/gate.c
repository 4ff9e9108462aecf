/*
 * gate.c - one word holds the number of users inside and "closed"; the owner sleeps on another
 * word.
 */
#include "run/gate.h"

#include <limits.h>
#include <weir/time.h>

#include "sync/park.h"

enum { CLOSED = 1, ONE_INSIDE = 2 };

void weiri_gate_init(struct weiri_gate *gate)
{
	/* [relaxed] not shared yet. */
	weiri_store_relaxed(&gate->word, 0);
	weiri_store_relaxed(&gate->drained, 0);
}

/* Called by the thread that brought the word to `closed and empty`, which happens once. */
static void drained(struct weiri_gate *gate)
{
	/* [P2 release] pairs with weiri_gate_wait(); from here on the gate may be freed. */
	weiri_store_release(&gate->drained, 1);
	weiri_park_wake(&gate->drained, INT_MAX);
}

bool weiri_gate_enter(struct weiri_gate *gate)
{
	/* [relaxed] only the CAS decides. */
	uint32_t word = weiri_load_relaxed(&gate->word);

	do {
		if (word & CLOSED)
			return false;
		/* [P3 acquire] pairs with open. What the user does inside precedes its leave (P1). */
	} while (!weiri_cas_acquire(&gate->word, &word, word + ONE_INSIDE));
	return true;
}

void weiri_gate_leave(struct weiri_gate *gate)
{
	/*
	 * [P1 acq_rel] releases what the caller did inside; the last to leave acquires what all users
	 * did.
	 */
	if (weiri_fetch_sub_acq_rel(&gate->word, ONE_INSIDE) == (ONE_INSIDE | CLOSED))
		drained(gate);
}

bool weiri_gate_close(struct weiri_gate *gate)
{
	/* [P1 acq_rel] as in leave: closing an empty gate drains it. */
	uint32_t before = weiri_fetch_or_acq_rel(&gate->word, CLOSED);

	if (before == 0)
		drained(gate);
	return (before & CLOSED) == 0;
}

void weiri_gate_wait(struct weiri_gate *gate)
{
	weiri_gate_wait_until(gate, WEIR_NO_DEADLINE);
}

void weiri_gate_wait_until(struct weiri_gate *gate, uint64_t deadline_ns)
{
	/* [P2 acquire] in the park: pairs with drained(). */
	(void)weiri_park_wait(&gate->drained, 0, deadline_ns);
}

void weiri_gate_open(struct weiri_gate *gate)
{
	/* [relaxed] the store below publishes it to the users, of which the last will set it. */
	weiri_store_relaxed(&gate->drained, 0);
	/* [P3 release] pairs with weiri_gate_enter(). */
	weiri_store_release(&gate->word, 0);
}
