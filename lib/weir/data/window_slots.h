/*
 * window_slots.h - where the slot of an element is, and that it is finished.
 */
#ifndef WEIRI_DATA_WINDOW_SLOTS_H
#define WEIRI_DATA_WINDOW_SLOTS_H

#include "data/window_state.h"

/* Unordered: the consumer waits for a finished slot. Only its address is used. */
extern struct weiri_window_slot weiri_window_awaited;

/* Returns true if the consumer waits for it. */
static inline bool weiri_window_push_finished(struct weiri_window *window, struct weiri_window_slot *slot)
{
	/* [relaxed] the compare-and-swap orders it */
	struct weiri_window_slot *top = weiri_load_relaxed(&window->finished);

	do {
		slot->next = top == &weiri_window_awaited ? NULL : top;
		/* [P1 acq_rel] pairs with take_finished() */
	} while (!weiri_cas_acq_rel(&window->finished, &top, slot));
	return top == &weiri_window_awaited;
}

/* The caller has a reference to the window. */
static inline void weiri_window_finish(struct weiri_window *window, struct weiri_window_slot *slot)
{
	bool is_awaited;

	if (window->is_unordered) {
		is_awaited = weiri_window_push_finished(window, slot);
	} else {
		/* [P1 acq_rel] pairs with the look of the consumer */
		is_awaited = weiri_exchange_acq_rel(&slot->state, WEIRI_SLOT_DONE) == WEIRI_SLOT_AWAITED;
	}
	if (is_awaited) {
		/*
		 * [P8 acq_rel] keeps the sequence, and acquires the wait that it clears: the wake must find that
		 * wait's turn, which may be a later one than the slot's
		 */
		(void)weiri_exchange_acq_rel(&window->waits, 0u);
		window->consumer->wake(window->consumer);
	}
}

static inline struct weiri_window_slot *weiri_window_slot_of(const struct weiri_window *window, uint64_t n)
{
	size_t turn = (size_t)(n % window->size);

	/* [relaxed] P2 and P5 bring it */
	if (window->is_unordered && n >= window->size)
		turn = weiri_load_relaxed(&window->freed[turn]);
	return &window->slots[turn];
}

#endif
