/*
 * options.h - the command line of weir-bench.
 */
#ifndef WEIR_BENCH_OPTIONS_H
#define WEIR_BENCH_OPTIONS_H

#include <stddef.h>

enum { BENCH_MAX_THREADS = 64, BENCH_MAX_REPEAT = 64 };

/* Exit codes. */
enum { BENCH_FINE = 0, BENCH_WRONG = 1, BENCH_USAGE = 2, BENCH_CANNOT = 3, BENCH_SLOWER = 4 };

enum bench_pin { BENCH_PIN_NONE, BENCH_PIN_COMPACT, BENCH_PIN_SPREAD };

/*
 * The numbers of producers and consumers, or of readers and writers. plain: it was given as one
 * number.
 */
struct bench_shape {
	unsigned left, right;
	int plain;
};

struct bench_shapes {
	unsigned count;
	struct bench_shape shape[16];
};

struct bench_sizes {
	unsigned count;
	size_t size[16];
};

struct bench_options {
	const char *suites[16];      /* names of suites or groups, ended by NULL; none: all suites */
	const char *filter;          /* a part of "suite/workload"; NULL: all */
	const char *rivals;          /* NULL or "all"; "none"; or parts of names, separated by commas */
	struct bench_shapes threads; /* empty: those of the suite */
	struct bench_sizes capacities, batches;
	unsigned repeat, duration_ms;
	enum bench_pin pin;
	int list, explain;
	const char *count; /* NULL: cache misses, if they can be counted */
	const char *json, *csv, *baseline;
	double slower; /* 0.1: 10 %; negative: not given */
};

/* Ends the program with a message when the command line is wrong. */
void bench_read_options(int argc, char **argv, struct bench_options *options);
/* Returns 1 when a contender of this name takes part. */
int bench_rival_wanted(const struct bench_options *options, const char *name);

#endif
