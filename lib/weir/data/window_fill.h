/*
 * window_fill.h - the filler: it reads elements of the stages below into free slots.
 *
 * For the thread that has the filler's turn.
 */
#ifndef WEIRI_DATA_WINDOW_FILL_H
#define WEIRI_DATA_WINDOW_FILL_H

#include "base/assert.h"
#include "data/guard.h"
#include "data/window_state.h"

/* The filler as the consumer of the stages below. */
extern const struct weiri_consumer weiri_window_filler;

/* Returns true if there is a free slot. */
static inline bool weiri_window_has_room(struct weiri_window *window)
{
	if (window->seen != 0)
		return true;
	/* [P2 acquire, release for W3] pairs with report(). A read-modify-write even if nothing was used. */
	window->seen = weiri_fetch_sub_acq_rel(&window->room, window->used) - window->used;
	window->used = 0;
	WEIR_ASSERT1(W2, window->seen <= window->size);
	return window->seen != 0;
}

/* Polls the stages below into a slot. */
static inline enum weir_status weiri_window_poll_input(struct weiri_window *window, struct weiri_window_slot *slot)
{
	struct weiri_guard guard;
	enum weir_status status;

	weiri_guard_begin(&guard, window->reading->iterator);
	status = weiri_stage_poll(window->input, slot->parts, &slot->error);
	weiri_guard_end(&guard);
	return status;
}

/* The slot has an element, an error or the end. */
void weiri_window_put(struct weiri_window *window, struct weiri_window_slot *slot, enum weir_status status);
/* Reads what is to be read now, and leaves the turn. The caller has a reference of its own. */
void weiri_window_fill(struct weiri_window *window, enum weiri_help help);

/* The filler leaves the turn. Returns false if it must look again. */
static inline bool weiri_window_leave_turn(struct weiri_window *window, bool is_stuck)
{
	weiri_store_relaxed(&window->gauge->stuck, (uint32_t)is_stuck); /* [relaxed] see struct weiri_gauge */
	return is_stuck ? weiri_turn_stick(&window->turn) : weiri_turn_yield(&window->turn);
}

/* The filler has no more to do. It keeps the turn, so that nobody takes it again. */
void weiri_window_retire(struct weiri_window *window);

#endif
