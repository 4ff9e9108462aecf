/*
 * stopping.h - workers on one structure, of which one after the other is stopped at a random instruction while the others must go on.
 *
 * Again and again a worker is stopped (stop.h), for ever as far as the others can tell. Before it goes on, the others must complete so
 * many operations of each kind, and of their calls no more than a few may stand still. This is what "lock-free" says. For each
 * operation in which a thread was stopped, the report says how often how many of the others stood still. A *control* goes through the
 * same and must freeze, which shows that the check can fail.
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
	unsigned may_stand;               /* so many of the others may stand still in a call */
	/* One operation; of which kind it was if it completed, else -1. */
	int (*work)(struct stress_thread *self, unsigned worker);
	uint64_t wanted; /* operations of each kind that the others must complete */
};

struct stopping_tally {
	uint64_t stops;
	uint64_t unmoved[STOPPING_KINDS]; /* stops beside which nothing of a kind completed */
};

/* At least `least` stops, and until `until`. */
struct stopping_tally stopping_must_go_on(struct stress_thread *self, const struct stopping *subject, uint64_t least,
                                          uint64_t until);
/* Some stops, and until `until`; one of them at least must freeze a kind for long. */
void stopping_must_freeze(struct stress_thread *self, const struct stopping *subject, uint64_t until);

/* The end of this part of the scenario's time, of `parts` that are left. */
uint64_t stopping_part_end(unsigned parts);

#endif
