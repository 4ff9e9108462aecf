/*
 * stopping.h - workers on one structure, of which one after the other is stopped at a random
 * instruction while the others must continue.
 *
 * Again and again a worker is stopped (stop.h), permanently as far as the other workers can tell.
 * Before it continues, the others must complete a number of operations of each kind, and only a few
 * of their calls may stand still. This is the meaning of "lock-free". For each operation in which a
 * thread was stopped, the report tells how often how many of the others stood still. A *control*
 * goes through the same and must freeze, which shows that the check can fail.
 */
#ifndef STRESS_STOPPING_H
#define STRESS_STOPPING_H

#include "harness.h"

enum { STOPPING_WORKERS = 6, STOPPING_KINDS = 3 };

struct stopping {
	const char *name;
	unsigned workers;                 /* at most STOPPING_WORKERS */
	const char *kind[STOPPING_KINDS]; /* of operations */
	unsigned must;                    /* the first so many kinds must go on */
	unsigned may_stand;               /* how many of the others may stand still in a call */
	/* One operation; returns its kind if it completed, else -1. */
	int (*work)(struct stress_thread *self, unsigned worker);
	uint64_t wanted; /* operations of each kind that the others must complete */
};

struct stopping_tally {
	uint64_t stops;
	uint64_t unmoved[STOPPING_KINDS]; /* stops during which no operation of a kind completed */
};

/* Runs at least `least` stops, and until `until`. */
struct stopping_tally stopping_must_go_on(struct stress_thread *self, const struct stopping *subject, uint64_t least,
                                          uint64_t until);
/* Runs some stops, and until `until`; at least one of them must freeze a kind for long. */
void stopping_must_freeze(struct stress_thread *self, const struct stopping *subject, uint64_t until);

/* The end of this part of the scenario's time, of `parts` that are left. */
uint64_t stopping_part_end(unsigned parts);

#endif
