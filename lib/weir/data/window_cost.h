/*
 * window_cost.h - what an element costs, and who therefore works on it: the consumer, helpers, or both. The
 * head of window.c says why.
 */
#ifndef WEIRI_DATA_WINDOW_COST_H
#define WEIRI_DATA_WINDOW_COST_H

#include "data/window_state.h"

enum {
	WEIRI_WINDOW_RUN = 16,         /* elements that a filler without work reads in a row */
	WEIRI_WINDOW_SAMPLE = 8,       /* brief work is measured once in so many times */
	WEIRI_WINDOW_BRIEF_NS = 25000, /* a measurement of each element would cost more than it could tell */
	WEIRI_WINDOW_SHORT_NS = 10000, /* a hand-over to a worker and back costs about as much */
	WEIRI_WINDOW_WORTH_NS = 100000 /* a function that takes longer is not run by a consumer that could wait */
};

static inline enum weiri_help weiri_window_help(const struct weiri_window *window)
{
	/* [relaxed] written by the holder of the turn before it polls; helpers take it as a hint */
	return (enum weiri_help)weiri_load_relaxed(&window->consumer->help);
}

/* The consumer may do what is short. */
static inline bool weiri_window_is_free_to_help(const struct weiri_window *window)
{
	enum weiri_help help = weiri_window_help(window);

	return help == WEIRI_HELP_IF_KNOWN ? window->is_known : help != WEIRI_HELP_NEVER;
}

static inline uint64_t weiri_window_cost_ns(const struct weiri_window *window)
{
	/* [relaxed] estimates */
	return (uint64_t)weiri_load_relaxed(&window->fill_ns) + weiri_load_relaxed(&window->work_ns);
}

/* The consumer alone works through the window in less time than a hand-over takes. */
static inline bool weiri_window_is_short(const struct weiri_window *window)
{
	return weiri_window_cost_ns(window) * window->size < WEIRI_WINDOW_SHORT_NS;
}

#if defined(WEIRI_UNDER_MODEL)
/* stress/model: nothing is measured, so everything is long. */
static inline bool weiri_window_is_sample(const struct weiri_window *window, uint64_t n)
{
	(void)window, (void)n;
	return false;
}

static inline bool weiri_window_is_hurried(const struct weiri_window *window)
{
	return weiri_window_hurries && window->work == NULL;
}

static inline bool weiri_window_is_shared(const struct weiri_window *window)
{
	return weiri_window_hurries && window->work != NULL;
}

static inline bool weiri_window_lets_pass(const struct weiri_window *window)
{
	return weiri_window_passes && window->work != NULL && !window->is_unordered;
}

static inline size_t weiri_window_run_length(void)
{
	return weiri_window_run;
}
#else
static inline bool weiri_window_is_sample(const struct weiri_window *window, uint64_t n)
{
	return n % WEIRI_WINDOW_SAMPLE == 0 || weiri_window_cost_ns(window) >= WEIRI_WINDOW_BRIEF_NS;
}

/*
 * What the consumer does between two polls takes less, for all elements of the window, than a hand-over.
 * It is the mean over WINDOWS windows: a consumer that takes up to 4 windows in a row, and then is away for
 * long, does not hurry. And it may do itself what is undone.
 */
static inline bool weiri_window_comes_back_soon(const struct weiri_window *window)
{
	/* [relaxed] a hint */
	return weiri_load_relaxed(&window->hurries) != 0 && weiri_window_cost_ns(window) < WEIRI_WINDOW_WORTH_NS &&
	       weiri_window_is_free_to_help(window);
}

/* Only the reading runs ahead: a helper would save less than it costs. */
static inline bool weiri_window_is_hurried(const struct weiri_window *window)
{
	return window->work == NULL && weiri_window_comes_back_soon(window);
}

/* The consumer is one of those that work. */
static inline bool weiri_window_is_shared(const struct weiri_window *window)
{
	return window->work != NULL && !window->is_unordered && weiri_window_comes_back_soon(window);
}

/* The consumer alone would fill a slot and empty it. */
static inline bool weiri_window_lets_pass(const struct weiri_window *window)
{
	return window->work != NULL && !window->is_unordered && weiri_window_is_short(window);
}

static inline size_t weiri_window_run_length(void)
{
	return WEIRI_WINDOW_RUN;
}
#endif

/* Adds a sample to a mean: `count` things since began_ns. */
void weiri_window_note(_Atomic(uint32_t) *mean_ns, uint64_t began_ns, uint64_t count);
/* The consumer has come back. */
void weiri_window_note_return(struct weiri_window *window);

/* The consumer does alone what is undone, unless it must not. */
static inline bool weiri_window_is_alone(const struct weiri_window *window)
{
	return weiri_window_is_short(window) || weiri_window_is_hurried(window);
}

/*
 * The consumer would take the turn from a helper that fills in a row, which then rests, and must be
 * woken again. A summoned helper that no worker has begun to run helps nobody.
 */
static inline bool weiri_window_is_left_to_helper(const struct weiri_window *window)
{
	/* [relaxed] a hint */
	return window->work == NULL && !weiri_window_is_alone(window) && weiri_load_relaxed(&window->running) != 0;
}

static inline bool weiri_window_may_help(const struct weiri_window *window)
{
	return weiri_window_help(window) == WEIRI_HELP_ALWAYS ||
	       (weiri_window_is_free_to_help(window) && !window->is_unordered &&
	        weiri_window_cost_ns(window) < WEIRI_WINDOW_WORTH_NS && !weiri_window_is_left_to_helper(window));
}

#endif
