/*
 * delivery.c - see delivery.h.
 */
#include "sync/delivery.h"

#include <pthread.h>

#include "base/assert.h"
#include "reclaim/record.h"
#include "sync/pending.h"

/* Does what the thread's calls still had to do for other operations, the innermost call first. */
static void abandon_visits(void)
{
	struct weiri_deliveries *mine = weiri_deliveries_mine();

	while (mine->visits != NULL) {
		const struct weiri_visit *visit = mine->visits;

		mine->visits = visit->outer; /* first: what is served here may end the thread once more */
		if (visit->object != NULL && visit->serve != NULL)
			weiri_pending_pump(weiri_record_mine, (void *)(uintptr_t)visit->object, visit->serve);
	}
}

/*
 * Cleanup handler, for a completion that ends the thread: tells what is due, then abandons the
 * visits.
 */
static void tell_at_the_end(void *outer)
{
	weiri_visits_cut(outer);
	if (weiri_record_mine != NULL)
		weiri_section_abandon(weiri_record_mine); /* D4: an allocator may have ended the thread in one */
	weiri_deliver_rest();
	weiri_deliveries_mine()->under_way = false;
	abandon_visits();
}

/* The list is this thread's own: D1. */
static WEIRI_UNSEEN void assert_not_due(const struct weiri_deliveries *mine, const struct weiri_delivery *delivery)
{
	for (const struct weiri_delivery *due = mine->first; due != NULL; due = due->next) {
		WEIR_ASSERT3(D2, due != delivery);
		WEIR_ASSERT3(D1, due->next != NULL || due == mine->last);
	}
}

static WEIRI_UNSEEN void assert_outside_sections(void)
{
	const struct weiri_record *mine = weiri_record_mine;

	WEIR_ASSERT2(D4, mine == NULL || weiri_peek(&mine->lo) == 0 || weiri_peek(&mine->read_sections) != 0);
}

static void tell_all(void)
{
	struct weiri_deliveries *mine = weiri_deliveries_mine();

	while (mine->first != NULL) {
		struct weiri_delivery *delivery = mine->first;

		WEIR_ASSERT_LOOK(assert_outside_sections());
		mine->first = delivery->next; /* D2 */
		delivery->tell(delivery);
	}
}

void weiri_deliver_rest(void)
{
	bool outer = weiri_deliveries_mine()->under_way;

	weiri_deliveries_mine()->under_way = true;
	pthread_cleanup_push(tell_at_the_end, weiri_deliveries_mine()->visits);
	tell_all();
	pthread_cleanup_pop(0);
	weiri_deliveries_mine()->under_way = outer;
}

bool weiri_deliver(struct weiri_delivery *delivery, weiri_tell_fn *tell)
{
	struct weiri_deliveries *mine = weiri_deliveries_mine();

	WEIR_ASSERT_WALK(assert_not_due(mine, delivery));
	WEIR_ASSERT2(D3, mine->under_way || mine->first == NULL);
	*delivery = (struct weiri_delivery){NULL, tell};
	if (mine->first == NULL)
		mine->first = delivery;
	else
		mine->last->next = delivery;
	mine->last = delivery;
	if (mine->under_way)
		return false;
	weiri_deliver_rest();
	return true;
}
