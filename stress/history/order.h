/*
 * order.h - the order of calls and returns, and counts along it: the tools of the fast checkers.
 *
 * All calls and returns of a history are numbered from 0 in time order; at equal times calls come
 * before returns. Gap g is between event g and event g + 1. An operation takes effect in one of the
 * gaps from called to returned - 1, where these are the numbers of its events. Any number of
 * operations take effect in one gap, in any order. The statements "x certainly holds throughout gap
 * g" and "x may hold in gap g" are therefore ranges of gaps, and every question of a checker is a
 * question about ranges.
 */
#ifndef HISTORY_ORDER_H
#define HISTORY_ORDER_H

#include "history/history.h"

/*
 * Operation i is events called[i] and returned[i]. Event e is the return of operation event[e] / 2
 * if event[e] is odd, and its call otherwise.
 */
struct history_order {
	uint32_t events; /* also the number of gaps; the last one is after the end */
	uint32_t *called, *returned, *event;
};

/*
 * Returns HISTORY_HOLDS, or HISTORY_UNDECIDED (no memory) or HISTORY_MALFORMED with the finding
 * set. history_order_fini() must be called in any case.
 */
enum history_verdict history_order_init(struct history_order *order, const struct history *history,
                                        struct history_finding *finding);
void history_order_fini(struct history_order *order);

/* A count per gap. All ranges are added before the first query. */
struct history_counts {
	uint32_t gaps, leaves;
	int32_t *least, *most; /* trees over the gaps, leaves from [leaves] on */
};

int history_counts_init(struct history_counts *counts, uint32_t gaps);
void history_counts_fini(struct history_counts *counts);
/* Adds 1 to gaps from .. to - 1, if from < to. */
void history_counts_add(struct history_counts *counts, uint32_t from, uint32_t to);
/* Must be called after the last add. */
void history_counts_finish(struct history_counts *counts);
/* Return the smallest and the largest count of the gaps from .. to - 1; from < to. */
int32_t history_counts_least(const struct history_counts *counts, uint32_t from, uint32_t to);
int32_t history_counts_most(const struct history_counts *counts, uint32_t from, uint32_t to);

/*
 * A set of gaps, of which ranges are taken. The next free gap is found in nearly constant time
 * (union-find).
 */
struct history_free_gaps {
	uint32_t gaps;
	uint32_t *next;  /* towards the first free gap from here on; [gaps] is always free */
	uint32_t *taker; /* the operation that took the gap */
};

int history_free_gaps_init(struct history_free_gaps *free_gaps, uint32_t gaps);
void history_free_gaps_fini(struct history_free_gaps *free_gaps);
uint32_t history_first_free(struct history_free_gaps *free_gaps, uint32_t gap);
void history_take_gaps(struct history_free_gaps *free_gaps, uint32_t from, uint32_t to, uint32_t taker);

/* Sets the finding and returns HISTORY_VIOLATED. */
enum history_verdict history_violated(struct history_finding *finding, const char *pattern, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
void history_witness(struct history_finding *finding, size_t place);
enum history_verdict history_no_memory(struct history_finding *finding);
/* Returns 1 if no earlier part has the same object. */
int history_first_of_object(const struct history *history, size_t part);
/* Adds a part to the operation that was added last. Returns 0 if there is no memory. */
int history_add_part(struct history *history, const struct history_part *part);
enum history_verdict history_malformed(struct history_finding *finding, size_t place, const char *why);

#endif
