/*
 * plan.h - everything that will be measured, and its results.
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
	unsigned count;     /* of samples; 0: nothing moved in any run, and the cell has no figure */
	unsigned disturbed; /* samples that are disturbed although they were repeated */
	unsigned repeated;  /* runs that were discarded because they were disturbed */
	double values[BENCH_MAX_REPEAT], beside[BENCH_MAX_REPEAT], others[BENCH_MAX_REPEAT];
	double events[BENCH_MAX_REPEAT]; /* per operation (events.h) */
	uint64_t switches[BENCH_MAX_REPEAT];
	struct bench_histogram *ticks; /* over all repetitions; NULL: no latencies */
	struct bench_series series;    /* of the last repetition */
	char wrong[160];               /* if it is not empty, the cell has no figure */
};

/* A workload and its cells; ours come first. */
struct bench_table {
	struct bench_workload workload; /* first: a pointer to the workload is a pointer to its table */
	struct bench_cell *cells;
	unsigned count;
	struct bench_table *next;
};

struct bench_plan {
	const struct bench_options *options;
	struct bench_table *first, **last;
	unsigned tables, cells;
};

/* Returns 1 when the options name the suite, its group, or no suite at all. */
int bench_suite_wanted(const struct bench_options *options, const struct bench_suite *suite);
void bench_plan_make(struct bench_plan *plan, const struct bench_options *options);
void bench_plan_free(struct bench_plan *plan);
/* Returns 1 when at least one cell is WRONG. */
int bench_plan_wrong(const struct bench_plan *plan);

/* Measures everything, and prints each table when it is complete (run.c). */
void bench_run(struct bench_plan *plan);

/* Returns 1 for Weir's own rows. The others are compared with the first of them. */
int bench_is_ours(const struct bench_about *about);
/*
 * How many times better Weir's first row is than `cell`. NaN when there is no such number, for
 * instance because a row completed no operation.
 */
struct bench_interval bench_advantage(const struct bench_table *table, const struct bench_cell *cell);
int bench_oversubscribed(const struct bench_workload *workload);
double bench_cell_quantile(const struct bench_cell *cell, double q);

#endif
