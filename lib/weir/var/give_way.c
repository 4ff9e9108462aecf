/*
 * give_way.c - see give_way.h.
 */
#include "var/give_way.h"

#include <limits.h>

#include <weir/time.h>

#include "reclaim/collect.h"
#include "sync/park.h"

enum { ASKED = 1 };

unsigned weiri_way_patience = 4;
uint64_t weiri_way_patience_ns = UINT64_C(1000000);

/*
 * A wait in a read section of the program would keep memory, and one in a release function, which a collection of
 * this thread has called, what that collection has taken. Either may be what the slow write waits for.
 */
static bool must_not_wait(void)
{
	const struct weiri_record *record = weiri_record_mine;

	return record != NULL && (weiri_load_relaxed(&record->lo) != 0 || weiri_is_collecting(record)); /* [relaxed] own */
}

static void end(weir_var *var)
{
	/* [relaxed] W1, both */
	if (weiri_load_relaxed(&var->way.asked) == 0)
		return;
	weiri_store_relaxed(&var->way.asked, 0u);
	weiri_park_wake(&var->way.asked, INT_MAX); /* W4 */
}

void weiri_give_way_slowly(weir_var *var, uint64_t deadline_ns)
{
	/* [Y1 acquire] */
	uint32_t asked = weiri_load_acquire(&var->way.asked);
	uint64_t until = weiri_load_relaxed(&var->way.until_ns); /* [relaxed] after the acquire */

	if (asked != ASKED || must_not_wait())
		return;
	if (weiri_park_wait(&var->way.asked, ASKED, until < deadline_ns ? until : deadline_ns) == WEIRI_PARK_WOKEN)
		return;
	/*
	 * Ends a request whose moment has passed, so that the next write need not look at the clock. [relaxed] W1. Another
	 * call may ask right now. Its request then ends, too, and those who wait for it are woken: its own end would wake none.
	 */
	if (weiri_load_relaxed(&var->way.until_ns) == until && (until <= deadline_ns || weir_now_ns() >= until))
		end(var);
}

void weiri_way_ask_again(weir_var *var, uint64_t until_ns)
{
	weiri_store_relaxed(&var->way.until_ns, until_ns); /* [relaxed] released below */
	/* [Y1 release] */
	weiri_store_release(&var->way.asked, (uint32_t)ASKED);
}

struct weiri_own *weiri_way_ask(weir_var *var, uint64_t until_ns)
{
	struct weiri_own *own = weiri_record_get_anew()->own; /* the caller was admitted as a write, so it has one */

	weiri_way_ask_again(var, until_ns);
	(void)weiri_fetch_add_relaxed(&own->ways_asked, 1u); /* [relaxed] W1 and W5, here and below */
	(void)weiri_fetch_add_relaxed(&weiri_ways_asked, 1u);
	return own;
}

/* Counts a request of the thread no more, if one is counted still (W5). */
static void count_less(struct weiri_own *asker)
{
	uint32_t asked = weiri_load_relaxed(&asker->ways_asked);

	while (asked != 0 && !weiri_cas_relaxed(&asker->ways_asked, &asked, asked - 1))
		;
	if (asked != 0)
		(void)weiri_fetch_sub_relaxed(&weiri_ways_asked, 1u);
}

void weiri_way_free(weir_var *var, struct weiri_own *asker)
{
	count_less(asker);
	end(var);
}
