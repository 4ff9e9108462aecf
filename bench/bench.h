/*
 * bench.h - what suites and rivals are to the tool.
 *
 * A contender is Weir or a rival, through one small table of functions; the harness code around it is the same for all. To add a
 * rival: write bench/rivals/<name>.c or .cc with a function that returns its table, and name it in contenders.c.
 */
#ifndef WEIR_BENCH_H
#define WEIR_BENCH_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A bounded queue of 64-bit values. enqueue and dequeue return 1, or 0 when full or empty; they never wait. */
struct ring_contender {
	const char *name;
	const char *version;
	int lock_free; /* stopping a thread anywhere stops no other */
	void *(*create)(size_t capacity);
	void (*destroy)(void *self);
	int (*enqueue)(void *self, uint64_t value);
	int (*dequeue)(void *self, uint64_t *value);
	uint64_t (*pairs)(void *self, uint64_t count); /* enqueues and dequeues 0 .. count-1: bench_pairs() */
};

/* The sum of what came out. Compiled into each adapter, so that no contender is called through a pointer here. */
static inline __attribute__((always_inline)) uint64_t bench_pairs(void *self, uint64_t count,
                                                                  int (*enqueue)(void *, uint64_t),
                                                                  int (*dequeue)(void *, uint64_t *))
{
	uint64_t sum = 0, value = 0;

	for (uint64_t i = 0; i < count; i++) {
		if (!enqueue(self, i) || !dequeue(self, &value))
			return UINT64_MAX;
		sum += value;
	}
	return sum;
}

/* A shared value of 64 bytes whose eight words are equal. Loops are the contender's, so that nothing but the read is timed. */
struct read_contender {
	const char *name;
	const char *version;
	int retains; /* the value outlives the read if the reader wants: a handle or a reference */
	void *(*create)(void);
	void (*destroy)(void *self);
	void (*thread_begin)(void *self);
	void (*thread_end)(void *self);
	uint64_t (*read_many)(void *self, uint64_t count); /* the sum of the first words */
	void (*write)(void *self, uint64_t value);
};

extern const struct ring_contender *const bench_rings[];   /* ours first; NULL ends */
extern const struct read_contender *const bench_readers[]; /* ours first; NULL ends */
extern const char *const bench_absent[];                   /* rivals not installed; NULL ends */

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

#ifdef __cplusplus
}
#endif

#endif
