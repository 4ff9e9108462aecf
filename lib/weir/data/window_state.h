/*
 * window_state.h - what a window consists of, and who holds it. window.c has the algorithm; W and P below
 * are its invariants and pairs.
 */
#ifndef WEIRI_DATA_WINDOW_STATE_H
#define WEIRI_DATA_WINDOW_STATE_H

#include "base/compiler.h"
#include "data/turn.h"
#include "data/window.h"
#include "run/worker.h"

enum weiri_slot_state { WEIRI_SLOT_EMPTY, WEIRI_SLOT_AWAITED, WEIRI_SLOT_DONE };

enum { WEIRI_WINDOW_MOST_HELPERS = 32, WEIRI_WINDOW_UNKNOWN_NS = 1000000000 };

struct weiri_window_slot {
	_Atomic(uint32_t) state; /* of an ordered window */
	/* The owner by W1. */
	enum weir_status status;
	weir_tensor **parts;
	struct weiri_window_slot *next; /* in the stack of finished slots */
	uint64_t ordinal;               /* how many elements were read before it */
	weir_error error;
};

struct weiri_window_helper {
	weir_task task;
	struct weiri_window *window; /* constant */
};

struct weiri_window {
	/* Constant. */
	weir_pool *pool;
	const struct weiri_reading *reading;
	struct weiri_consumer *consumer; /* a reference */
	weir_dataset *dataset;           /* a reference, for `work` and messages */
	weiri_work_fn *work;
	size_t size, at_once, width, bytes; /* at_once: how many calls of `work` run at a time */
	size_t helper_count, most_beside;   /* most_beside: helpers beside a consumer that works, too */
	bool is_unordered;
	bool is_known; /* what is read and done ahead is of known length: weiri_dataset_is_known() */
	struct weiri_window_slot *slots;
	_Atomic(size_t) *freed; /* unordered: the index of the slot that the n-th take freed, at n % size */
	struct weiri_window_helper *helpers;
	struct weiri_gauge *gauge;
	struct weiri_gauge own_gauge; /* if the iterator has none left */
	/* Shared. */
	WEIRI_ALIGNED_APART struct weiri_turn turn; /* of the filler */
	_Atomic(size_t) room;                       /* free slots, less those that the filler has filled since it looked */
	_Atomic(size_t) references;
	_Atomic(uint32_t) closed, idle;                                   /* idle: a bit for each helper that rests */
	_Atomic(uint32_t) fill_ns, work_ns;                               /* [relaxed] estimates */
	_Atomic(uint32_t) running;                                        /* [relaxed] helpers that run; a hint */
	_Atomic(uint32_t) hurries;                                        /* [relaxed] see window_cost.h; a hint */
	_Atomic(uint32_t) waits;                                          /* the consumer, or is about to: window_take.c */
	WEIRI_ALIGNED_APART _Atomic(struct weiri_window_slot *) finished; /* unordered: a stack, or the awaited one */
	WEIRI_ALIGNED_APART _Atomic(uint64_t) begun;                      /* elements that were claimed */
	_Atomic(uint64_t) worked;                                         /* of these, those whose work has ended */
	/* Filler. */
	WEIRI_ALIGNED_APART struct weiri_consumer as_consumer; /* of the stages below */
	_Atomic(uint64_t) filled;                              /* elements that may be claimed */
	struct weiri_stage *input;
	size_t seen, used;       /* of the room that it saw: left, and filled since */
	uint64_t read, fillings; /* elements; times that the turn was taken */
	/* Consumer. */
	WEIRI_ALIGNED_APART uint64_t taken;
	size_t owed;                     /* free slots to be reported */
	struct weiri_window_slot *ready; /* unordered: taken off the stack, oldest first */
	bool has_end;                    /* unordered: the end was met, behind `end_at` elements */
	uint64_t end_at;
	uint64_t left_ns; /* when it took an element; 0: it is not measured how long it is away */
	size_t returns;   /* how often it was measured, window_cost.c */
	double away_ns;   /* in the mean */
};

static inline void weiri_window_retain(struct weiri_window *window)
{
	/* [relaxed] the caller has a reference */
	(void)weiri_fetch_add_relaxed(&window->references, (size_t)1);
}

/* Frees the window if this was the last reference. */
void weiri_window_release(struct weiri_window *window);

static inline bool weiri_window_is_closed(const struct weiri_window *window)
{
	return weiri_load_relaxed(&window->closed) != 0; /* [relaxed] P3 brings it */
}

/* Nobody takes elements any more. */
static inline bool weiri_window_is_over(const struct weiri_window *window)
{
	/* [relaxed] hints */
	return weiri_window_is_closed(window) || weiri_load_relaxed(&window->consumer->over) != 0;
}

#endif
