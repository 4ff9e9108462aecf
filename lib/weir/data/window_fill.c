/*
 * window_fill.c - see window_fill.h.
 */
#include "data/window_fill.h"

#include <weir/time.h>

#include "data/window_slots.h"
#include "data/window_undone.h"

void weiri_window_put(struct weiri_window *window, struct weiri_window_slot *slot, enum weir_status status)
{
	slot->status = status;
	slot->ordinal = window->read++;
	window->seen--;
	window->used++;
	weiri_store_relaxed(&window->gauge->read, window->read); /* [relaxed] see struct weiri_gauge */
	if (window->work != NULL)
		weiri_store_release(&window->filled, window->read); /* [P5 release] pairs with claim() */
	else
		weiri_window_finish(window, slot);
}

/* Reads one element into a slot. Returns WEIR_WOULD_BLOCK if there is none now. */
static enum weir_status fill_one(struct weiri_window *window)
{
	struct weiri_window_slot *slot = weiri_window_slot_of(window, window->read);
	enum weir_status status = weiri_window_poll_input(window, slot);

	if (status != WEIR_WOULD_BLOCK)
		weiri_window_put(window, slot, status);
	return status;
}

void weiri_window_retire(struct weiri_window *window)
{
	struct weiri_guard guard;

	weiri_guard_begin(&guard, window->reading->iterator);
	weiri_stage_close(window->input);
	weiri_guard_end(&guard);
	window->input = NULL;
	weiri_window_release(window);
}

/*
 * Reads up to `most` elements, and then leaves the turn. The caller has a reference of its own.
 * Returns the number of elements.
 */
static size_t read_some(struct weiri_window *window, size_t most)
{
	enum weir_status status = WEIR_OK;
	size_t count = 0;

	/* A turn that cannot be left was seized or resumed: look at `closed`, and go on. */
	while (!weiri_window_is_closed(window) && status != WEIR_OUT_OF_RANGE) {
		bool is_enough = count >= most;

		status = !is_enough && weiri_window_has_room(window) ? fill_one(window) : WEIR_WOULD_BLOCK;
		if (status != WEIR_WOULD_BLOCK)
			count++;
		else if (weiri_window_leave_turn(window, !is_enough))
			return count;
		else if (is_enough)
			most++;
	}
	weiri_window_retire(window);
	return count;
}

static size_t most_to_read(const struct weiri_window *window, enum weiri_help help)
{
	if (weiri_window_is_short(window))
		return window->size;
	return window->work == NULL && help == WEIRI_HELP_ALWAYS ? weiri_window_run_length() : 1;
}

void weiri_window_fill(struct weiri_window *window, enum weiri_help help)
{
	bool is_timed = weiri_window_is_sample(window, window->fillings++);
	uint64_t began_ns = is_timed ? weir_now_ns() : 0;
	size_t count;

	/* [relaxed] see weiri_window_help() and struct weiri_gauge */
	weiri_store_relaxed(&window->as_consumer.help, (uint32_t)help);
	weiri_store_relaxed(&window->gauge->stuck, 0u);
	count = read_some(window, most_to_read(window, help));
	if (is_timed && count != 0)
		weiri_window_note(&window->fill_ns, began_ns, count);
}

/* -- the filler as the consumer of the stages below -------------------------------------------- */

static struct weiri_window *window_of(struct weiri_consumer *consumer)
{
	return WEIRI_CONTAINER_OF(consumer, struct weiri_window, as_consumer);
}

static void wake_filler(struct weiri_consumer *consumer)
{
	struct weiri_window *window = window_of(consumer);

	if (weiri_turn_resume(&window->turn))
		weiri_window_summon(window);
}

static void retain_filler(struct weiri_consumer *consumer)
{
	weiri_window_retain(window_of(consumer));
}

static void release_filler(struct weiri_consumer *consumer)
{
	weiri_window_release(window_of(consumer));
}

const struct weiri_consumer weiri_window_filler = {wake_filler, retain_filler, release_filler, 0, WEIRI_HELP_NEVER};
