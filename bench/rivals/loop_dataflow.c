/*
 * loop_dataflow.c - plain loops that are compared with graphs: one over an array, and those that show
 * what several threads cost on this machine whatever runs on them.
 *
 * The work of "a loop" is private to its thread, so more threads than processors cost it only what the
 * system takes to switch between them. "A loop, shared counts" also writes what any runtime must that
 * gives the runs of one graph to several threads, and keeps the memory of a run for the next: a count of
 * those inside, up and down, and the place of the spare memory.
 */
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "rivals.h"

enum { BUFFER_FLOATS = 1 << 18, ADDITIONS = 8 * 8 /* take about as long as a run of 8 nodes */ };

/* -- one array --------------------------------------------------------------------------------- */

struct array {
	uint64_t ran;
	unsigned nodes;
	float values[BUFFER_FLOATS];
};

static void *array_create(enum bench_dataflow kind, unsigned nodes, unsigned threads)
{
	struct array *array = calloc(1, sizeof(*array));

	(void)kind, (void)threads;
	if (array == NULL)
		exit(3);
	array->nodes = nodes;
	return array;
}

static __attribute__((noinline)) void add_one(float values[], size_t count)
{
	for (size_t i = 0; i < count; i++)
		values[i] += 1;
}

static void array_run(void *self)
{
	struct array *array = self;

	(void)memset(array->values, 0, sizeof(array->values));
	for (unsigned i = 0; i < array->nodes; i++)
		add_one(array->values, BUFFER_FLOATS);
	array->ran += (uint64_t)array->values[BUFFER_FLOATS - 1];
}

static uint64_t array_ran(void *self)
{
	return ((struct array *)self)->ran;
}

static uint64_t array_bytes(void *self)
{
	(void)self;
	return BUFFER_FLOATS * sizeof(float);
}

const struct dataflow_contender loop_buffers_contender = {
	.about = {.name = "a loop over one array", .lacks = "no graph"},
	.kind = BENCH_BUFFERS,
	.create = array_create,
	.destroy = free,
	.run = array_run,
	.ran = array_ran,
	.most_bytes = array_bytes,
};

/* -- several threads --------------------------------------------------------------------------- */

struct shared {
	_Alignas(64) _Atomic(uint64_t) inside;
	_Alignas(64) _Atomic(void *) spare;
};

static void *shared_create(enum bench_dataflow kind, unsigned nodes, unsigned threads)
{
	struct shared *shared = aligned_alloc(64, sizeof(*shared));

	(void)kind, (void)nodes, (void)threads;
	if (shared == NULL)
		exit(3);
	(void)memset(shared, 0, sizeof(*shared));
	return shared;
}

static void shared_destroy(void *self)
{
	struct shared *shared = self;

	free(atomic_load_explicit(&shared->spare, memory_order_relaxed));
	free(shared);
}

static void add_alone(void *self)
{
	volatile float value = 0;

	(void)self;
	for (int i = 0; i < ADDITIONS; i++)
		value += 1;
	if (value != ADDITIONS)
		exit(3);
}

static void add_and_count(void *self)
{
	struct shared *shared = self;
	void *none = NULL, *memory;

	(void)atomic_fetch_add_explicit(&shared->inside, 1, memory_order_relaxed);
	memory = atomic_exchange_explicit(&shared->spare, NULL, memory_order_acquire);
	if (memory == NULL)
		memory = malloc(1024);
	if (memory == NULL)
		exit(3);
	add_alone(memory);
	if (!atomic_compare_exchange_strong_explicit(&shared->spare, &none, memory, memory_order_release,
	                                             memory_order_relaxed))
		free(memory);
	(void)atomic_fetch_sub_explicit(&shared->inside, 1, memory_order_acq_rel);
}

const struct dataflow_contender loop_steps_contender = {
	.about = {.name = "a loop", .lacks = "no graph, nothing shared", .lock_free = 1},
	.kind = BENCH_STEPS,
	.create = shared_create,
	.destroy = shared_destroy,
	.run = add_alone,
};

const struct dataflow_contender loop_counted_steps_contender = {
	.about = {.name = "a loop, shared counts", .lacks = "no graph"},
	.kind = BENCH_STEPS,
	.create = shared_create,
	.destroy = shared_destroy,
	.run = add_and_count,
};
