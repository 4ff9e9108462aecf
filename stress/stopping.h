/*
 * stopping.h - workers on one structure, of which one after the other is stopped at a random
 * instruction while the others must continue.
 *
 * A worker is stopped (stop.h), for ever as far as the other workers can tell. Before it continues,
 * the others must complete a number of operations of each kind, and only a few of their calls may
 * stand still. This is the meaning of "lock-free". For each operation in which a thread was
 * stopped, the report tells how often how many of the others stood still. A *control* goes through
 * the same and must freeze, which shows that the check can fail.
 */
#ifndef STRESS_STOPPING_H
#define STRESS_STOPPING_H

#include "harness.h"

enum { STOPPING_WORKERS = 6, STOPPING_KINDS = 3 };

struct stopping {
	const char *name;
	unsigned workers;                 /* at most STOPPING_WORKERS */
	const char *kind[STOPPING_KINDS]; /* names of the kinds of operations */
	unsigned must;                    /* this many kinds, from the first, must go on */
	unsigned may_stand;               /* this many of the other threads may stand still */
	/* Makes one operation. Returns its kind if it completed, else -1. */
	int (*work)(struct stress_thread *self, unsigned worker);
	uint64_t wanted; /* operations of each kind that the others must complete */
};

struct stopping_tally {
	uint64_t stops;
	uint64_t unmoved[STOPPING_KINDS]; /* stops during which no operation of a kind completed */
};

/* Makes at least `least` stops, and goes on until `until`. */
struct stopping_tally stopping_must_go_on(struct stress_thread *self, const struct stopping *subject, uint64_t least,
                                          uint64_t until);
/* Makes some stops, and goes on until `until`. At least one of them must freeze a kind for long. */
void stopping_must_freeze(struct stress_thread *self, const struct stopping *subject, uint64_t until);

/* The end of this part of the scenario's time, if `parts` are left. */
uint64_t stopping_part_end(unsigned parts);

#endif
