/*
 * openmp.c - tasks of OpenMP (libgomp) whose order comes from `depend`.
 *
 * There is no graph to keep: each run makes its tasks again, as programs do. One thread makes them,
 * all run them.
 */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rivals.h"

enum { MOST_NODES = 1000, BUFFER_FLOATS = 1 << 18 };

struct tasks {
	enum bench_dataflow kind;
	unsigned nodes, threads;
	uint64_t ran;
	float value;
	float *buffer;
	uint64_t marks[MOST_NODES];
};

static void *create(enum bench_dataflow kind, unsigned nodes, unsigned threads)
{
	struct tasks *t = calloc(1, sizeof(*t));

	if (t == NULL)
		exit(3);
	t->kind = kind;
	t->nodes = nodes;
	t->threads = threads;
	t->buffer = calloc(BUFFER_FLOATS, sizeof(float));
	if (t->buffer == NULL)
		exit(3);
	return t;
}

static void destroy(void *self)
{
	struct tasks *t = self;

	free(t->buffer);
	free(t);
}

static void add_one(float values[], size_t count)
{
	for (size_t i = 0; i < count; i++)
		values[i] += 1;
}

static void make_chain(struct tasks *t)
{
	for (unsigned i = 0; i < t->nodes; i++) {
#pragma omp task depend(inout : t->value) firstprivate(i)
		t->marks[i]++;
	}
}

static void make_row(struct tasks *t)
{
	for (unsigned i = 0; i < t->nodes; i++) {
#pragma omp task depend(inout : t->marks[i]) firstprivate(i)
		t->marks[i]++;
	}
}

static void make_additions(struct tasks *t)
{
	size_t count = t->kind == BENCH_ADDS ? 1 : BUFFER_FLOATS;
	float *values = t->kind == BENCH_ADDS ? &t->value : t->buffer;

	(void)memset(values, 0, count * sizeof(float));
	for (unsigned i = 0; i < t->nodes; i++) {
#pragma omp task depend(inout : values[0])
		add_one(values, count);
	}
#pragma omp taskwait
	t->ran += (uint64_t)values[count - 1];
}

static void run(void *self)
{
	struct tasks *t = self;

#pragma omp parallel num_threads(t->threads)
#pragma omp single
	{
		if (t->kind == BENCH_WIDE)
			make_row(t);
		else if (t->kind == BENCH_ADDS || t->kind == BENCH_BUFFERS)
			make_additions(t);
		else
			make_chain(t);
	}
}

static uint64_t ran(void *self)
{
	struct tasks *t = self;
	uint64_t sum = t->ran;

	for (unsigned i = 0; i < t->nodes; i++)
		sum += t->marks[i];
	return sum;
}

static uint64_t bytes(void *self)
{
	(void)self;
	return BUFFER_FLOATS * sizeof(float);
}

#define TASKS(kind_) \
	{ \
		.about = {.name = "libgomp depend", \
		          .version = WEIR_BENCH_OPENMP_VERSION, \
		          .lacks = "makes its tasks again in each run"}, \
		.kind = (kind_), .create = create, .destroy = destroy, .run = run, .ran = ran, \
		.most_bytes = (kind_) == BENCH_BUFFERS ? bytes : NULL \
	}

const struct dataflow_contender gomp_chain_contender = TASKS(BENCH_CHAIN);
const struct dataflow_contender gomp_wide_contender = TASKS(BENCH_WIDE);
const struct dataflow_contender gomp_one_contender = TASKS(BENCH_ONE);
const struct dataflow_contender gomp_kernel_contender = TASKS(BENCH_KERNEL);
const struct dataflow_contender gomp_adds_contender = TASKS(BENCH_ADDS);
const struct dataflow_contender gomp_buffers_contender = TASKS(BENCH_BUFFERS);
