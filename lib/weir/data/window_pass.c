/*
 * window_pass.c - see window_pass.h.
 */
#include "data/window_pass.h"

#include <weir/time.h>

#include "base/assert.h"
#include "data/window_cost.h"
#include "data/window_fill.h"
#include "data/window_work.h"

/* With both turns. The element of a slot is given; the slot is free as before, and its number is used up. */
static enum weir_status give_passed(struct weiri_window *window, struct weiri_window_slot *slot, weir_tensor *parts[],
                                    weir_error *error)
{
	size_t width = window->dataset->width;
	uint64_t next = slot->ordinal + 1;

	/* [relaxed] each element before was taken, and its call is counted before the finish that the take acquired */
	WEIR_ASSERT1(W7, weiri_load_relaxed(&window->worked) == slot->ordinal);
	if (slot->status == WEIR_OK)
		weiri_parts_move(parts, slot->parts, width);
	else
		*error = slot->error;
	window->read = window->taken = next;
	/* [relaxed] nobody works; `filled` publishes both */
	weiri_store_relaxed(&window->begun, next);
	weiri_store_relaxed(&window->worked, next);
	weiri_store_release(&window->filled, next); /* [P5 release] pairs with claim(): its claim of this element fails */
	/* [relaxed] see struct weiri_gauge */
	weiri_store_relaxed(&window->gauge->read, next);
	weiri_store_relaxed(&window->gauge->taken, next);
	return slot->status;
}

/* With both turns, while nothing is under way. Returns WEIR_WOULD_BLOCK if nothing passed, also at the end. */
static enum weir_status pass_one(struct weiri_window *window, weir_tensor *parts[], weir_error *error)
{
	struct weiri_window_slot *slot = &window->slots[window->read % window->size];
	bool is_timed = weiri_window_is_sample(window, window->read);
	uint64_t began_ns = is_timed ? weir_now_ns() : 0;
	enum weir_status status;

	do {
		status = weiri_window_poll_input(window, slot);
	} while (status == WEIR_WOULD_BLOCK && !weiri_window_leave_turn(window, true));
	if (status == WEIR_WOULD_BLOCK)
		return WEIR_WOULD_BLOCK; /* the turn is stuck, and the slot not this thread's any more */
	if (status == WEIR_OUT_OF_RANGE) {
		weiri_window_put(window, slot, status);
		weiri_window_retire(window);
		return WEIR_WOULD_BLOCK;
	}
	if (is_timed)
		weiri_window_note(&window->fill_ns, began_ns, 1);
	slot->status = status;
	slot->ordinal = window->read;
	if (status == WEIR_OK)
		weiri_window_call_work(window, slot);
	status = give_passed(window, slot, parts, error);
	weiri_turn_give(&window->turn);
	return status;
}

enum weir_status weiri_window_pass(struct weiri_window *window, weir_tensor *parts[], weir_error *error)
{
	if (!weiri_window_lets_pass(window) || !weiri_window_may_help(window) || !weiri_turn_take(&window->turn))
		return WEIR_WOULD_BLOCK;
	if (window->read == window->taken && weiri_window_has_room(window)) {
		/* [relaxed] see struct weiri_gauge */
		weiri_store_relaxed(&window->gauge->stuck, 0u);
		weiri_store_relaxed(&window->gauge->asleep, 0u);
		/* [relaxed] see weiri_window_help() */
		weiri_store_relaxed(&window->as_consumer.help, (uint32_t)weiri_window_help(window));
		return pass_one(window, parts, error);
	}
	weiri_turn_give(&window->turn);
	return WEIR_WOULD_BLOCK;
}
