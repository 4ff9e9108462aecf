/*
 * measure.h - options, suites, cells and their tables.
 */
#ifndef WEIR_BENCH_MEASURE_H
#define WEIR_BENCH_MEASURE_H

#include "bench.h"

struct bench_options {
	const char *suite;    /* NULL: all */
	const char *filter;   /* in "suite/workload"; NULL: all */
	const char *rivals;   /* NULL or "all"; "none"; or names with commas */
	size_t capacity;      /* 0: the suite's */
	unsigned repeat;      /* repetitions of each cell */
	unsigned duration_ms; /* of one repetition */
};

/* One cell of a table: what a contender did in one workload. */
struct bench_cell {
	const char *suite, *workload, *contender, *unit;
	unsigned threads;
	int lower_is_better;
	unsigned count;
	double sample[32];
};

struct bench_suite {
	const char *name;
	const char *explain;
	void (*run)(const struct bench_options *options);
};
extern const struct bench_suite bench_ring_suite, bench_variable_suite, bench_snapshot_suite, bench_memory_suite;

/* measure.c */
struct bench_cell *bench_cell(const char *suite, const char *workload, const char *contender, const char *unit,
                              unsigned threads, int lower_is_better);
void bench_sample(struct bench_cell *cell, double value);
double bench_median(const struct bench_cell *cell);
int bench_wanted(const struct bench_options *options, const char *suite, const char *workload);
int bench_rival_wanted(const struct bench_options *options, const char *name, int is_first);
void bench_progress(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Loses items, or returns what was never put: reported, and the run fails. */
void bench_wrong(const char *format, ...) __attribute__((format(printf, 1, 2)));
unsigned bench_processors(void);
uint64_t bench_now_ns(void);

void bench_print_tables(void);
void bench_describe_machine(char *text, size_t size);
/* 1 on success. */
int bench_write_csv(const char *path);
int bench_write_json(const char *path);
unsigned bench_wrong_count(void);

#endif
