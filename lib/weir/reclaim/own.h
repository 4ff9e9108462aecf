/*
 * own.h - what a thread keeps between its calls, and during them, for itself alone.
 *
 * These are thread-local variables in all but name. The space for real ones comes from a small
 * reserve of the loader, for which all objects in a process compete (base/compiler.h). So these lie
 * in memory of their own, which the thread finds through its record, and gets and passes on with
 * it. No other thread reads or writes them, so they need no atomics, but for those that say so. A
 * thread without a record has none.
 */
#ifndef WEIRI_RECLAIM_OWN_H
#define WEIRI_RECLAIM_OWN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <weir/thread.h>

#include "base/atomic.h"

struct weiri_delivery;
struct weiri_retired;
struct weiri_visit;

/* What a thread keeps for delivery (sync/delivery.h). */
struct weiri_deliveries {
	struct weiri_delivery *first, *last; /* due; last: while there is a first */
	struct weiri_visit *visits;
	bool under_way; /* a completion runs, or completions are held back */
	bool has_lost;  /* the thread ends, and some visits are gone: what they had claimed stays claimed */
};

/* What a thread has drawn, for the multi queue that it used last (ring/multi_queue.c). */
struct weiri_drawn {
	uint64_t queue; /* its number; 0: none */
	uint64_t random;
	uint32_t put_lane, take_lanes[2];
	size_t puts_left, takes_left;
};

/* What weir_thread_set_interrupt() set, and what it said last (reclaim/interrupt.h). */
struct weiri_interrupt {
	weir_thread_interrupt_fn *fn; /* NULL: none */
	void *context;
	bool ended_wait; /* it ended the last wait for memory */
};

struct weiri_own {
	/* The era of its last collection that scanned; 0: none yet. Atomic for the reason in record.h. */
	_Atomic(uint64_t) last_era;
	/*
	 * The objects that a collection on this thread holds: `rest` it has not examined yet, `kept` it
	 * will put back. Read by a thread that finds the collection abandoned, hence atomic.
	 */
	_Atomic(struct weiri_retired *) rest;
	_Atomic(struct weiri_retired *) kept;
	struct weiri_deliveries deliveries;
	struct weiri_drawn drawn;
	struct weiri_interrupt interrupt;
	uint64_t places;         /* the state of the generator of a select (queue/select.c) */
	uint32_t helper;         /* the state of the generator of a helper of pools (run/worker.c) */
	uint64_t yields_from_ns; /* before it, waits do without a yield (sync/yield.h) */
	uint32_t skip;           /* how many further descriptors are settled without a yield (queue/calls.c) */
	uint32_t unlooked;       /* how many further waits do without looks (run/critical_section.c, data/iterator.c) */
	/*
	 * How many of its requests have not ended (var/give_way.c). Atomic, because a coroutine may end its
	 * request on another thread.
	 */
	_Atomic(uint32_t) ways_asked;
	bool tells_of_stalls; /* the callback runs (reclaim/stall.c) */
	bool is_era_begun;    /* ahead of the next collection (reclaim/collect.c) */
};

#endif
