/*
 * window.h - elements that are worked on ahead of their taking: the one mechanism behind parallel
 * maps, prefetches and parallel interleaves. See window.c.
 */
#ifndef WEIRI_DATA_WINDOW_H
#define WEIRI_DATA_WINDOW_H

#include "data/stage.h"

struct weiri_window;

/* What is done to each element, in place: parts[] holds the inputs, and then the outputs. */
typedef enum weir_status weiri_work_fn(const weir_dataset *dataset, weir_tensor *parts[], weir_error *error);

struct weiri_window_plan {
	weir_dataset *input; /* what is read ahead */
	size_t at_once;      /* calls of `work` that run at a time; without work: elements ahead */
	weiri_work_fn *work; /* NULL: nothing; the reading itself is what runs ahead */
	bool is_unordered;   /* elements come as they are ready */
	uint64_t pass;       /* of the input: see struct weiri_stage */
};

/*
 * Opens a window for a stage whose iterator has a pool. The caller polls and closes it with the turn
 * of the stage's consumer. Polls as weiri_stage_poll().
 */
enum weir_status weiri_window_open(struct weiri_stage *stage, const struct weiri_window_plan *plan,
                                   struct weiri_window **out, weir_error *error);
enum weir_status weiri_window_poll(struct weiri_window *window, weir_tensor *parts[], weir_error *error);
/* Summons a helper, which else the first poll does. With the turn of the consumer. */
void weiri_window_begin(struct weiri_window *window);
/* Accepts NULL. Work that has begun ends by itself; no further work begins. Waits for nothing. */
void weiri_window_close(struct weiri_window *window);

#if defined(WEIRI_UNDER_MODEL)
/* Whether consumers hurry, and elements pass (window_cost.h): under the model nothing is measured. */
extern bool weiri_window_hurries, weiri_window_passes;
/* Elements that a filler without work reads in a row, before it leaves its turn free. */
extern size_t weiri_window_run;
#endif

#endif
