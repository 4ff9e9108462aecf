/*
 * plan.h - all that will be measured, and what came out.
 */
#ifndef WEIR_BENCH_PLAN_H
#define WEIR_BENCH_PLAN_H

#include "options.h"
#include "statistics.h"
#include "suite.h"

/* One contender in one workload. */
struct bench_cell {
	const struct bench_workload *workload;
	const struct bench_about *about;
	const void *contender;
	unsigned count;     /* of samples */
	unsigned disturbed; /* of them, though repeated */
	unsigned repeated;  /* runs thrown away because they were disturbed */
	double values[BENCH_MAX_REPEAT], beside[BENCH_MAX_REPEAT], others[BENCH_MAX_REPEAT];
	double events[BENCH_MAX_REPEAT]; /* per operation (events.h) */
	uint64_t switches[BENCH_MAX_REPEAT];
	struct bench_histogram *ticks; /* all repetitions; NULL: no latencies */
	struct bench_series series;    /* the last repetition's */
	char wrong[160];               /* not empty: no figure */
};

/* A workload and its cells, ours first. */
struct bench_table {
	struct bench_workload workload; /* first: what a suite holds leads back to its table */
	struct bench_cell *cells;
	unsigned count;
	struct bench_table *next;
};

struct bench_plan {
	const struct bench_options *options;
	struct bench_table *first, **last;
	unsigned tables, cells;
};

/* 1 when the options name it, its group, or none at all. */
int bench_suite_wanted(const struct bench_options *options, const struct bench_suite *suite);
void bench_plan_make(struct bench_plan *plan, const struct bench_options *options);
void bench_plan_free(struct bench_plan *plan);
/* 1 when at least one cell was WRONG. */
int bench_plan_wrong(const struct bench_plan *plan);

/* Measures everything; each table is printed when it is complete. run.c */
void bench_run(struct bench_plan *plan);

/* Weir's own rows; the first of them is what others are compared with. */
int bench_is_ours(const struct bench_about *about);
/* How many times better Weir's first row is than `cell`; NaN when there is no such number, as of a row in which nothing was done. */
struct bench_interval bench_advantage(const struct bench_table *table, const struct bench_cell *cell);
int bench_oversubscribed(const struct bench_workload *workload);
double bench_cell_quantile(const struct bench_cell *cell, double q);

#endif
