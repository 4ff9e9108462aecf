/*
 * window_undone.h - what is undone in a window, and who is called for it.
 */
#ifndef WEIRI_DATA_WINDOW_UNDONE_H
#define WEIRI_DATA_WINDOW_UNDONE_H

#include "data/window_cost.h"

static inline bool weiri_window_has_unbegun(const struct weiri_window *window)
{
	/* [relaxed] looks: P5 and P6 order what matters */
	return weiri_load_relaxed(&window->begun) < weiri_load_relaxed(&window->filled);
}

/* As many calls run at element `begun` as may: W7. Those that end them look again. */
static inline bool weiri_window_is_at_limit(struct weiri_window *window, uint64_t begun)
{
	int64_t limit = (int64_t)window->at_once;

	/* [relaxed] only a count: an old one shows too many calls. `begun` may be older: too few, and the claim fails */
	if (window->work == NULL || (int64_t)(begun - weiri_load_relaxed(&window->worked)) < limit)
		return false;
	/* [P10 release] pairs with work_on(): a read-modify-write, which the end of a call follows or precedes */
	return (int64_t)(begun - weiri_fetch_or_release(&window->worked, UINT64_C(0))) >= limit;
}

static inline bool weiri_window_is_undone(struct weiri_window *window)
{
	/* [relaxed] as in weiri_window_has_unbegun() */
	return (weiri_turn_is_free(&window->turn) || weiri_window_has_unbegun(window)) &&
	       !weiri_window_is_at_limit(window, weiri_load_relaxed(&window->begun));
}

/* How many helpers are awake while those of `idle` rest, and how many are of use. */
static inline size_t weiri_window_count_awake(const struct weiri_window *window, uint32_t idle)
{
	return window->helper_count - (size_t)__builtin_popcount(idle);
}

static inline size_t weiri_window_most_awake(const struct weiri_window *window)
{
	return weiri_window_is_shared(window) ? window->most_beside : window->helper_count;
}

/* Returns a helper that rested and now does not, or NULL: those that are awake look again. */
struct weiri_window_helper *weiri_window_take_helper(struct weiri_window *window);
/* The caller has a reference, and has left something undone. */
void weiri_window_summon(struct weiri_window *window);

/* What the caller does not do at once is to be done by others, if it is worth a hand-over. */
static inline void weiri_window_summon_for_rest(struct weiri_window *window)
{
	if (weiri_window_is_undone(window) && (!weiri_window_is_alone(window) || !weiri_window_is_free_to_help(window)))
		weiri_window_summon(window);
}

#endif
