/*
 * suite.h - what a suite is: workloads, the contenders of each, and a function that measures one of them once.
 *
 * A new suite is one file, which plans its workloads, and one line in suites.c. The harness does the rest: order of repetitions,
 * warm-up, disturbed runs, tables, files.
 */
#ifndef WEIR_BENCH_SUITE_H
#define WEIR_BENCH_SUITE_H

#include <stdint.h>

#include "bench.h"
#include "histogram.h"
#include "options.h"

struct bench_workload;

/* Memory over time: points that are equally far apart. */
enum { BENCH_SERIES_POINTS = 64 };
struct bench_series {
	unsigned count;
	double interval_ms;
	double values[BENCH_SERIES_POINTS];
};

/* What one run gave. */
struct bench_sample {
	double value;                  /* in the workload's unit */
	double beside;                 /* in the unit of its `beside` */
	double operations;             /* those that `value` is about, in the window; 0: not known */
	double events;                 /* counted in the window (events.h) */
	struct bench_histogram *ticks; /* nanoseconds of each operation; only where the workload has latencies */
	struct bench_series series;
	uint64_t window_ns, processor_ns; /* how long it was timed; what of processor time this program had meanwhile */
	char wrong[160];                  /* not empty: items were lost or doubled, and there is no figure */
};

typedef void bench_measure_fn(const struct bench_workload *workload, const void *contender,
                              struct bench_sample *sample);

struct bench_workload {
	const char *suite;
	char name[64];
	const char *unit;   /* of the value */
	const char *beside; /* what else is counted, with its unit; NULL: nothing */
	const char *series; /* what is drawn over time, with its unit; NULL: nothing */
	int lower_is_better;
	int latency;          /* the value is the 99th percentile, in ns */
	int never_sleeps;     /* its threads take all the processor time that they can get */
	unsigned left, right; /* threads: producers and consumers, readers and writers */
	unsigned hogs;        /* threads that do nothing but take processor time */
	size_t capacity, batch, bytes, variables;
	uint64_t rate; /* operations a second of each thread on the left; 0: as fast as it can */
	unsigned duration_ms;
	bench_measure_fn *measure;
};

struct bench_plan;

struct bench_suite {
	const char *name;
	const char *group; /* another name, for several of them */
	void (*plan)(struct bench_plan *plan, const struct bench_options *options);
	const char *const (*explain)[2]; /* pairs of a workload and what it is; {NULL, NULL} ends */
};

extern const struct bench_suite *const bench_suites[]; /* suites.c; NULL ends */

/* Plans a workload (copied), or returns NULL when the options leave it out. */
struct bench_workload *bench_plan_workload(struct bench_plan *plan, const struct bench_workload *workload);
/* Has a contender take part in it. */
void bench_plan_contender(struct bench_plan *plan, struct bench_workload *workload, const struct bench_about *about,
                          const void *contender);

#endif
