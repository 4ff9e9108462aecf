/*
 * traffic.h - rounds of calls on one queue, which the queue scenarios shape: who calls what, how calls are ended, how the queue is.
 *
 * Producers put numbered items in, consumers take them out, each by a call drawn for every turn: try, blocking or asynchronous, of
 * one item or several; with deadlines and tokens that others fire. At a random moment the queue is closed. A number that did not go in
 * is tried again, so an item that went in though its call said otherwise comes out twice. What is checked, in every round:
 *   loss, duplicate   each number that a call accepted comes out exactly once, or is dropped exactly once when the queue is destroyed
 *   outcome           each call ends with a status that it may have: CANCELLED needs a close or a token that fired,
 *                     DEADLINE_EXCEEDED a deadline that has passed, OUT_OF_RANGE a close; one completion for each asynchronous call
 *   publication       what a producer wrote to plain memory before its enqueue is what the consumer reads there
 *   end               after a single dequeue said WEIR_OUT_OF_RANGE nothing goes in or comes out
 * and where the header promises it:
 *   order             of one producer's items, to one consumer, and within one batch
 *   capacity          from bounds of what went in and came out ; "full" and "empty" likewise
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
	unsigned calls;           /* TRAFFIC_* */
	unsigned token_one_in;    /* calls with a token that others may fire; 0: none */
	unsigned deadline_one_in; /* calls with a deadline near at hand; 0: none */
	unsigned closers;         /* threads that close, with modes and at moments of their own; at least 1 */
	uint64_t round_ns;        /* the close comes within this */
	int may_leave;            /* consumers may leave before the end: the rest is dropped */
	int one_consumer;         /* 1: no more than one */
};

/* Rounds until the scenario's time is up. */
void stress_traffic(const struct traffic *traffic);

#endif
