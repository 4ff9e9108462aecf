/*
 * window_take.c - the consumer of a window: it takes what is finished, and waits for what is not. With its
 * turn. See window.c.
 */
#include <weir/time.h>

#include "base/assert.h"
#include "data/window.h"
#include "data/window_cost.h"
#include "data/window_pass.h"
#include "data/window_slots.h"
#include "data/window_undone.h"
#include "data/window_work.h"

struct weiri_window_slot weiri_window_awaited;

/* Reports the free slots to the filler. */
static void report(struct weiri_window *window)
{
	size_t owed = window->owed;

	window->owed = 0;
	if (owed == 0)
		return;
	/* [P2 release, acquire for W3] pairs with the filler's has_room(). One that saw room does not need a word. */
	if (weiri_fetch_add_acq_rel(&window->room, owed) == 0)
		(void)weiri_turn_resume(&window->turn);
	weiri_window_summon_for_rest(window);
}

/*
 * The consumer is to wait for what it has marked. Returns false if there is something that it may do
 * itself: a helper that is only summoned may get a worker late.
 */
static bool fall_asleep(struct weiri_window *window)
{
	weiri_store_relaxed(&window->gauge->asleep, 1u); /* [relaxed] see struct weiri_gauge */
	/* [P8 acq_rel] pairs with needs_helper() and weiri_window_finish() */
	(void)weiri_exchange_acq_rel(&window->waits, 1u);
	if (!weiri_window_is_undone(window))
		return true;
	weiri_window_summon(window); /* W6 */
	/* A helper that this summons had rested, and no longer counts as one that runs. */
	return !weiri_window_may_help(window) || !weiri_window_is_undone(window);
}

/* Returns the slot if it is finished, or NULL; it is then awaited. */
static WEIRI_COLD struct weiri_window_slot *look_in_order(struct weiri_window *window, struct weiri_window_slot *slot)
{
	enum weiri_help help = weiri_window_help(window);

	report(window);
	do {
		uint32_t state = WEIRI_SLOT_EMPTY;

		if (weiri_window_may_help(window)) {
			/* [relaxed] a look: the compare-and-swap below acquires what it finds */
			while (weiri_load_relaxed(&slot->state) != WEIRI_SLOT_DONE && weiri_window_do_one(window, help))
				;
			weiri_window_summon_for_rest(window);
		}
		/* [P1 acquire from finish(); release for W3] a read-modify-write, also if it is AWAITED already */
		while (state != WEIRI_SLOT_DONE && !weiri_cas_release_or_acquire(&slot->state, &state, WEIRI_SLOT_AWAITED))
			;
		if (state == WEIRI_SLOT_DONE)
			return slot;
	} while (!fall_asleep(window));
	return NULL;
}

/* Returns the next slot of an ordered window, or NULL if it is not finished; it is then awaited. */
static struct weiri_window_slot *next_in_order(struct weiri_window *window)
{
	struct weiri_window_slot *slot = &window->slots[window->taken % window->size];

	/* [P1 acquire] pairs with weiri_window_finish() */
	return WEIRI_LIKELY(weiri_load_acquire(&slot->state) == WEIRI_SLOT_DONE) ? slot : look_in_order(window, slot);
}

static bool has_finished(const struct weiri_window_slot *top)
{
	return top != NULL && top != &weiri_window_awaited;
}

/* Returns true if there is a finished slot; if not, one is awaited. */
static WEIRI_COLD bool look_for_finished(struct weiri_window *window)
{
	enum weiri_help help = weiri_window_help(window);

	report(window);
	do {
		struct weiri_window_slot *top = NULL;

		/* [relaxed] a look: take_finished() acquires what it finds */
		while (weiri_window_may_help(window) && !has_finished(weiri_load_relaxed(&window->finished)) &&
		       weiri_window_do_one(window, help))
			;
		if (weiri_window_may_help(window))
			weiri_window_summon_for_rest(window); /* W6: it may have ended a call */
		/* [release for W3] as in look_in_order(); take_finished() acquires */
		while (!has_finished(top) && !weiri_cas_release(&window->finished, &top, &weiri_window_awaited))
			;
		if (has_finished(top))
			return true;
	} while (!fall_asleep(window));
	return false;
}

/* Takes all finished slots, and returns the oldest, or NULL if there is none; one is then awaited. */
static struct weiri_window_slot *take_finished(struct weiri_window *window)
{
	/* [relaxed] a look: the exchange acquires what it finds */
	struct weiri_window_slot *top = weiri_load_relaxed(&window->finished), *oldest = NULL;

	if (!has_finished(top) && !look_for_finished(window))
		return NULL;
	/* [P1 acquire] pairs with weiri_window_push_finished() */
	top = weiri_exchange_acquire(&window->finished, NULL);
	while (top != NULL) {
		struct weiri_window_slot *next = top->next;

		top->next = oldest;
		oldest = top;
		top = next;
	}
	return oldest;
}

/* Returns the next slot of an unordered window that is not the end, or NULL. */
static struct weiri_window_slot *next_as_ready(struct weiri_window *window)
{
	for (;;) {
		struct weiri_window_slot *slot;

		if (window->has_end && window->taken == window->end_at)
			return NULL;
		if (window->ready == NULL)
			window->ready = take_finished(window);
		slot = window->ready;
		if (slot == NULL)
			return NULL;
		window->ready = slot->next;
		if (slot->status != WEIR_OUT_OF_RANGE)
			return slot;
		window->has_end = true;
		window->end_at = slot->ordinal;
	}
}

static enum weir_status take(struct weiri_window *window, struct weiri_window_slot *slot, weir_tensor *parts[],
                             weir_error *error)
{
	enum weir_status status = slot->status;

	WEIR_ASSERT1(W4, window->is_unordered || slot->ordinal == window->taken);
	if (status == WEIR_OK)
		weiri_parts_move(parts, slot->parts, window->dataset->width);
	else
		*error = slot->error;
	/* [relaxed] report() hands the slot on; see struct weiri_gauge */
	weiri_store_relaxed(&slot->state, WEIRI_SLOT_EMPTY);
	weiri_store_relaxed(&window->gauge->asleep, 0u);
	if (window->is_unordered)
		weiri_store_relaxed(&window->freed[window->taken % window->size], (size_t)(slot - window->slots));
	weiri_store_relaxed(&window->gauge->taken, ++window->taken);
	window->owed++;
	if (window->owed * 2 >= window->size)
		report(window);
	if (!window->is_unordered && !weiri_window_is_short(window))
		window->left_ns = weir_now_ns();
	return status;
}

enum weir_status weiri_window_poll(struct weiri_window *window, weir_tensor *parts[], weir_error *error)
{
	enum weir_status status = weiri_window_pass(window, parts, error);
	struct weiri_window_slot *slot;

	if (status != WEIR_WOULD_BLOCK)
		return status;

	if (window->left_ns != 0)
		weiri_window_note_return(window);
	slot = window->is_unordered ? next_as_ready(window) : next_in_order(window);
	if (slot == NULL)
		return window->has_end && window->taken == window->end_at ? WEIR_OUT_OF_RANGE : WEIR_WOULD_BLOCK;
	if (slot->status == WEIR_OUT_OF_RANGE)
		return WEIR_OUT_OF_RANGE; /* and the slot stays as it is */
	return take(window, slot, parts, error);
}
