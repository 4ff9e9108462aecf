/*
 * memory.h - what memory.c keeps of an execution: stores, locations, granules, and what each thread
 * knows of them.
 *
 * Only memory.c changes it; memory_state.c reads it.
 */
#ifndef WEIR_MODEL_MEMORY_H
#define WEIR_MODEL_MEMORY_H

#include "model/engine.h"
#include "model/view.h"

enum { GRAIN = 4, GRANULES = 1 << 14, STORES = 1 << 15, VIEWS = 1 << 13 };

struct store {
	value_t value;
	uint32_t view;     /* 1 + index into views; 0: not a release */
	uint32_t previous; /* index of the previous store to the same location */
	uint32_t number;   /* in the location's history */
	uint32_t node;     /* of the operation, + 1; 0: before the threads */
	uint32_t step;
	uint8_t thread;
};

/*
 * With states merged: the threads that read and wrote a place, plainly and atomically, in any
 * execution so far, as sets.
 */
struct uses {
	uint8_t did[4];
};
enum { PLAIN_READ, PLAIN_WRITE, ATOMIC_READ, ATOMIC_WRITE };

struct location {
	char *address; /* NULL: forgotten */
	uint32_t size;
	uint32_t next;   /* 1 + the next location in the same granule */
	uint32_t last;   /* index into stores */
	uint32_t number; /* of the last store */
	/* when each thread last accessed it atomically, to find races with plain accesses */
	uint32_t atomic_clock[THREADS];
	uint32_t written_clock[THREADS];
	uint64_t key;     /* its name in a state */
	struct uses uses; /* of its granules */
};

/* Four bytes: plain accesses to them, and the locations in them. The struct takes a cache line. */
struct granule {
	_Alignas(64) uintptr_t key;
	uint32_t generation;
	uint16_t location; /* 1 + the first */
	uint16_t users;    /* index into users; 0: none yet */
	uint32_t write_clock;
	uint8_t write_thread, write_mask, written;
	uint8_t readers; /* threads, as a set */
	uint32_t read_clock[THREADS];
	uint8_t read_mask[THREADS];
};
_Static_assert(sizeof(struct granule) == 64, "a cache line");

struct users {
	uintptr_t key; /* of the granule */
	struct uses uses;
};

#pragma GCC visibility push(hidden)
extern struct location memory_locations[LOCATIONS];
extern uint32_t memory_location_count;
extern struct store memory_stores[STORES];
extern struct view memory_views[VIEWS];             /* that stores carry */
extern struct granule memory_granules[GRANULES];    /* by hash of the key */
extern uint32_t memory_used_granules[GRANULES / 2]; /* indices of those of this execution */
extern uint32_t memory_granule_count;
extern struct users memory_users[GRANULES + 1]; /* kept for the whole search; [0]: no thread's */

/*
 * How often in a row each thread has read the same old store of a location. After STALE_READS times
 * it must read a newer one.
 */
enum { STALE_READS = 8 };
struct stale {
	uint32_t number;
	uint8_t times;
};
extern struct stale memory_stale[LOCATIONS][THREADS];

extern struct view memory_now[THREADS]; /* what each thread sees */
/* the views of the stores that its relaxed loads read, for a later acquire fence */
extern struct view memory_pending[THREADS];
extern struct view memory_released[THREADS]; /* its view at its last release fence */
extern int memory_has_released[THREADS];
/* what a seq_cst load or fence must see by the order S; clocks are unused */
extern struct view memory_in_s;
#pragma GCC visibility pop

#endif
