/*
 * ledger.h - numbered items that producers enqueue into a structure and consumers dequeue: each
 * once, in order, with the memory that was written before; and bounds on the number of items
 * inside.
 *
 * Each thread counts on a line of its own what it may have moved and what it has certainly moved.
 * The first count is raised before a call by all that the call could move, and the second is raised
 * after the call. So "certainly in" minus "possibly out" is never above the number of items that
 * were inside at some moment, and "possibly in" minus "certainly out" is never below it.
 */
#ifndef STRESS_LEDGER_H
#define STRESS_LEDGER_H

#include "harness.h"

enum { LEDGER_SIDE = 16, LEDGER_NUMBER_BITS = 24 };

/* The page of one thread. */
struct ledger_page {
	unsigned index;
	WEIRI_ALIGNED_APART _Atomic(uint64_t) most;
	_Atomic(uint64_t) least;
	/*
	 * Producer: numbers 0 .. count-1 were enqueued. Consumer: log[0 .. count-1] is what it
	 * dequeued, in order.
	 */
	uint64_t count;
	uint64_t *log;
	uint64_t *payload;          /* producer: what a consumer of number i finds at [i] */
	uint64_t last[LEDGER_SIDE]; /* consumer: by producer, the last number it took, from 1 */
};

struct ledger {
	unsigned producers, consumers;
	uint64_t limit; /* numbers of one producer */
	struct ledger_page producer[LEDGER_SIDE], consumer[LEDGER_SIDE];
};

/* Opens that many pages, at most LEDGER_SIDE. Closing frees them. */
void ledger_open(struct ledger *ledger, unsigned producers, unsigned consumers, uint64_t limit);
void ledger_close(struct ledger *ledger);

/*
 * Makes the producer's next item after `ahead` other items, and writes its memory. It counts as
 * enqueued when `count` exceeds its number.
 */
uint64_t ledger_make(struct ledger_page *producer, uint64_t ahead);
/*
 * The consumer dequeued the item. Checks that a producer made it and that its memory is right. If
 * `ordered` is set, also checks that it follows last[].
 */
void ledger_take(struct ledger *ledger, struct ledger_page *consumer, uint64_t last[], int ordered, uint64_t item);
/* The item was never dequeued and is dropped. */
void ledger_drop(struct ledger *ledger, uint64_t item);
/* Checks, after all threads have ended, that each item that was enqueued was dequeued once. */
void ledger_check_each_once(const struct ledger *ledger);

void ledger_about_to_move(struct ledger_page *page, uint64_t wanted);
void ledger_has_moved(struct ledger_page *page, uint64_t wanted, uint64_t moved);
/*
 * Bounds on what was enqueued and dequeued. The caller chooses the order of two calls, which
 * decides what their difference means.
 */
uint64_t ledger_most_in(const struct ledger *ledger);
uint64_t ledger_least_in(const struct ledger *ledger);
uint64_t ledger_most_out(const struct ledger *ledger);
uint64_t ledger_least_out(const struct ledger *ledger);

#endif
