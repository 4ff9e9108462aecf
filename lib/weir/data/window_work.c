/*
 * window_work.c - see window_work.h.
 */
#include "data/window_work.h"

#include <weir/time.h>

#include "base/assert.h"
#include "data/guard.h"
#include "data/window_fill.h"
#include "data/window_slots.h"
#include "data/window_undone.h"

/* Claims the oldest element on which nobody works. Returns NULL if there is none. */
static struct weiri_window_slot *claim(struct weiri_window *window)
{
	/* [relaxed] the compare-and-swap decides */
	uint64_t n = weiri_load_relaxed(&window->begun);

	for (;;) {
		struct weiri_window_slot *slot;

		/* [P5 acquire] pairs with fill_one() */
		if (n >= weiri_load_acquire(&window->filled))
			return NULL;
		if (weiri_window_is_at_limit(window, n))
			return NULL;
		slot = weiri_window_slot_of(window, n); /* before the claim: after it the consumer may write freed[n % size] */
		/* [P7 acq_rel] pairs with itself */
		if (weiri_cas_acq_rel(&window->begun, &n, n + 1)) {
			/* [relaxed] a count; other calls, which were claimed later, may have ended meanwhile */
			WEIR_ASSERT1(W7, (int64_t)(n + 1 - weiri_load_relaxed(&window->worked)) <= (int64_t)window->at_once);
			return slot;
		}
	}
}

void weiri_window_call_work(struct weiri_window *window, struct weiri_window_slot *slot)
{
	bool is_timed = weiri_window_is_sample(window, slot->ordinal);
	uint64_t began_ns = is_timed ? weir_now_ns() : 0;
	struct weiri_guard guard;

	slot->error.message[0] = '\0';
	weiri_guard_begin(&guard, window->reading->iterator);
	slot->status = window->work(window->dataset, slot->parts, &slot->error);
	weiri_guard_end(&guard);
	if (is_timed)
		weiri_window_note(&window->work_ns, began_ns, 1);
}

static void work_on(struct weiri_window *window, struct weiri_window_slot *slot)
{
	if (slot->status == WEIR_OK)
		weiri_window_call_work(window, slot);
	/*
	 * [P10 acquire] pairs with weiri_window_is_at_limit(). Before the finish: once the element is taken, the
	 * next may pass, and sets the count
	 */
	(void)weiri_fetch_add_acquire(&window->worked, UINT64_C(1));
	weiri_window_finish(window, slot);
}

bool weiri_window_do_one(struct weiri_window *window, enum weiri_help help)
{
	struct weiri_window_slot *slot = claim(window);

	if (slot != NULL) {
		weiri_window_summon_for_rest(window);
		work_on(window, slot);
		return true;
	}
	if (!weiri_turn_take(&window->turn))
		return false;
	weiri_window_fill(window, help);
	return true;
}
