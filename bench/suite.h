/*
 * suite.h - a suite: workloads, the contenders of each, and a function that measures one contender
 * once.
 *
 * A new suite is one file that plans its workloads, and one line in suites.c. The harness does the
 * rest: order of repetitions, warm-up, disturbed runs, tables, files.
 */
#ifndef WEIR_BENCH_SUITE_H
#define WEIR_BENCH_SUITE_H

#include <stdint.h>

#include "bench.h"
#include "histogram.h"
#include "options.h"

struct bench_workload;

/* Memory over time, at equal intervals. */
enum { BENCH_SERIES_POINTS = 64 };
struct bench_series {
	unsigned count;
	double interval_ms;
	double values[BENCH_SERIES_POINTS];
};

/* The result of one run. */
struct bench_sample {
	double value;  /* in the workload's unit */
	double beside; /* in the unit of the workload's `beside` */
	/* the operations that `value` counts, in the window; 0: not known */
	double operations;
	double events; /* counted in the window (events.h) */
	/* nanoseconds of each operation; NULL unless the workload has latencies */
	struct bench_histogram *ticks;
	struct bench_series series;
	/* the length of the window, and the processor time of this program in it */
	uint64_t window_ns, processor_ns;
	/* 1: nothing moved, as can be in a short run on a busy machine, so this run has no figure */
	int idle;
	/* not empty: items were lost or duplicated, and there is no figure */
	char wrong[160];
};

typedef void bench_measure_fn(const struct bench_workload *workload, const void *contender,
                              struct bench_sample *sample);

struct bench_workload {
	const char *suite;
	char name[64];
	const char *unit;   /* the unit of the value */
	const char *beside; /* what else is counted, with its unit; NULL: nothing */
	const char *series; /* what is recorded over time, with its unit; NULL: nothing */
	int lower_is_better;
	int latency;          /* the value is the 99th percentile, in ns */
	int never_sleeps;     /* the threads use all the processor time that they can get */
	unsigned left, right; /* threads: producers and consumers, or readers and writers */
	unsigned hogs;        /* threads that only use processor time */
	size_t capacity, batch, bytes, variables;
	uint64_t rate; /* operations per second of each thread on the left; 0: as fast as it can */
	unsigned duration_ms;
	bench_measure_fn *measure;
};

struct bench_plan;

struct bench_suite {
	const char *name;
	const char *group; /* another name that several suites share */
	void (*plan)(struct bench_plan *plan, const struct bench_options *options);
	/* pairs of a workload and its description; {NULL, NULL} ends */
	const char *const (*explain)[2];
};

extern const struct bench_suite *const bench_suites[]; /* defined in suites.c; NULL ends */

/* Plans a workload, which is copied. Returns NULL when the options leave it out. */
struct bench_workload *bench_plan_workload(struct bench_plan *plan, const struct bench_workload *workload);
/* Adds a contender to a workload. */
void bench_plan_contender(struct bench_plan *plan, struct bench_workload *workload, const struct bench_about *about,
                          const void *contender);

#endif
