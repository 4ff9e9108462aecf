/*
 * traffic.h - rounds of calls on one queue. The queue scenarios shape them: the threads and their
 * calls, how calls are ended, the kind of queue.
 *
 * Producers enqueue numbered items, and consumers dequeue them. Each call is drawn anew: try,
 * blocking or asynchronous, for one item or several, with deadlines, and with tokens that other
 * threads fire. At a random moment the queue is closed. A number that was not enqueued is tried
 * again, so an item that was enqueued although its call reported otherwise is dequeued twice.
 * Checked in every round:
 *
 *   loss, duplicate   each number that a call accepted is dequeued exactly once, or is dropped
 *                     exactly once when the queue is destroyed
 *   outcome           each call ends with a status that it may have: CANCELLED needs a close or a
 *                     token that fired, DEADLINE_EXCEEDED a deadline that has passed, OUT_OF_RANGE
 *                     a close; each asynchronous call has one completion
 *   publication       what a producer wrote to plain memory before its enqueue is what the consumer
 *                     reads there
 *   end               after a single dequeue returned WEIR_OUT_OF_RANGE nothing is enqueued or
 *                     dequeued
 *
 * Checked if the header guarantees it:
 *
 *   order             of one producer's items, to one consumer, and within one batch
 *   capacity          from bounds on what was enqueued and dequeued; likewise "full" and "empty"
 *   minimum           items that a shuffle queue keeps back while it is open
 */
#ifndef STRESS_TRAFFIC_H
#define STRESS_TRAFFIC_H

#include "harness.h"

#include <weir/queue.h>

enum {
	TRAFFIC_TRY = 1,
	TRAFFIC_WAIT = 2,
	TRAFFIC_ASYNC = 4,
	TRAFFIC_ENQUEUE_MANY = 8, /* also several at a time */
	TRAFFIC_DEQUEUE_MANY = 16 /* also batches, dequeue_many and dequeue_up_to */
};

struct traffic {
	enum weir_queue_order order;
	unsigned calls;           /* a set of TRAFFIC_* */
	unsigned token_one_in;    /* calls with a token that other threads may fire; 0: none */
	unsigned deadline_one_in; /* calls with a near deadline; 0: none */
	/* threads that close, each with its own mode and moment; at least 1 */
	unsigned closers;
	uint64_t round_ns; /* the close comes within this time */
	int may_leave;     /* consumers may leave before the end, and the rest is dropped */
	int one_consumer;  /* 1: there is only one consumer */
};

/* Runs rounds until the scenario's time is up. */
void stress_traffic(const struct traffic *traffic);

#endif
