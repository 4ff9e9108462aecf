/*
 * counters.c - counters: ours, and the usual alternatives.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <weir/metrics.h>

#include "rivals.h"

enum { LINE = 128, CELLS = 64 };

static void *make(size_t size)
{
	void *memory = aligned_alloc(LINE, (size + LINE - 1) / LINE * LINE);

	if (memory == NULL)
		exit(3);
	return memset(memory, 0, size);
}

/* -- ours -------------------------------------------------------------------------------------- */

static void *weir_create(void)
{
	weir_counter *counter;

	if (weir_counter_create(NULL, &counter, NULL) != WEIR_OK)
		exit(3);
	return counter;
}

static void weir_destroy(void *self)
{
	weir_counter_destroy(self, NULL);
}

static void weir_add_many(void *self, uint64_t count)
{
	for (uint64_t i = 0; i < count; i++)
		weir_counter_add(self, 1);
}

static uint64_t weir_read_count(void *self)
{
	return (uint64_t)weir_counter_read(self);
}

const struct counter_contender weir_counter_contender = {
	.about = {.name = "weir_counter", .lock_free = 1},
	.create = weir_create,
	.destroy = weir_destroy,
	.add_many = weir_add_many,
	.read = weir_read_count,
};

static void *histogram_create(void)
{
	weir_histogram *histogram;

	if (weir_histogram_create(NULL, &histogram, NULL) != WEIR_OK)
		exit(3);
	return histogram;
}

static void histogram_destroy(void *self)
{
	weir_histogram_destroy(self, NULL);
}

/* Durations such as latencies from 100 ns to 100 us. */
static void histogram_add_many(void *self, uint64_t count)
{
	for (uint64_t i = 0; i < count; i++)
		weir_histogram_add(self, 100 + i * 97);
}

static uint64_t histogram_read(void *self)
{
	weir_summary *summary;
	uint64_t count;

	if (weir_summary_create(NULL, &summary, NULL) != WEIR_OK || weir_histogram_read(self, summary, NULL) != WEIR_OK)
		exit(3);
	count = weir_summary_count(summary);
	weir_summary_destroy(summary, NULL);
	return count;
}

const struct counter_contender weir_histogram_contender = {
	.about = {.name = "weir_histogram", .lock_free = 1},
	.create = histogram_create,
	.destroy = histogram_destroy,
	.add_many = histogram_add_many,
	.read = histogram_read,
};

/* -- one atomic -------------------------------------------------------------------------------- */

static void *atomic_create(void)
{
	return make(sizeof(_Atomic(uint64_t)));
}

static void atomic_add_many(void *self, uint64_t count)
{
	_Atomic(uint64_t) *total = self;

	for (uint64_t i = 0; i < count; i++)
		(void)atomic_fetch_add_explicit(total, 1, memory_order_relaxed);
}

static uint64_t atomic_read(void *self)
{
	return atomic_load_explicit((_Atomic(uint64_t) *)self, memory_order_relaxed);
}

const struct counter_contender atomic_counter_contender = {
	.about = {.name = "shared atomic", .lock_free = 1},
	.create = atomic_create,
	.destroy = free,
	.add_many = atomic_add_many,
	.read = atomic_read,
};

/* -- cells, as in LongAdder: one per processor, or one per hash of the thread ------------------ */

struct cell {
	_Alignas(LINE) _Atomic(uint64_t) count;
};

static void *cells_create(void)
{
	return make(CELLS * sizeof(struct cell));
}

static uint64_t cells_read(void *self)
{
	struct cell *cells = self;
	uint64_t sum = 0;

	for (size_t i = 0; i < CELLS; i++)
		sum += atomic_load_explicit(&cells[i].count, memory_order_relaxed);
	return sum;
}

static void processor_add_many(void *self, uint64_t count)
{
	struct cell *cells = self;

	for (uint64_t i = 0; i < count; i++)
		(void)atomic_fetch_add_explicit(&cells[(unsigned)sched_getcpu() % CELLS].count, 1, memory_order_relaxed);
}

const struct counter_contender processor_counter_contender = {
	.about = {.name = "atomic per processor", .lock_free = 1},
	.create = cells_create,
	.destroy = free,
	.add_many = processor_add_many,
	.read = cells_read,
};

static void hashed_add_many(void *self, uint64_t count)
{
	static _Thread_local char mine;
	struct cell *cells = self;

	for (uint64_t i = 0; i < count; i++) {
		uint64_t hash = (uint64_t)(uintptr_t)&mine * UINT64_C(0x9E3779B97F4A7C15);

		(void)atomic_fetch_add_explicit(&cells[hash >> 58].count, 1, memory_order_relaxed);
	}
}

const struct counter_contender hashed_counter_contender = {
	.about = {.name = "atomics by thread hash", .lock_free = 1},
	.create = cells_create,
	.destroy = free,
	.add_many = hashed_add_many,
	.read = cells_read,
};

/* -- a lock ------------------------------------------------------------------------------------ */

struct locked {
	pthread_mutex_t mutex;
	uint64_t count;
};

static void *locked_create(void)
{
	struct locked *locked = make(sizeof(*locked));

	(void)pthread_mutex_init(&locked->mutex, NULL);
	return locked;
}

static void locked_destroy(void *self)
{
	struct locked *locked = self;

	(void)pthread_mutex_destroy(&locked->mutex);
	free(locked);
}

static void locked_add_many(void *self, uint64_t count)
{
	struct locked *locked = self;

	for (uint64_t i = 0; i < count; i++) {
		(void)pthread_mutex_lock(&locked->mutex);
		locked->count++;
		(void)pthread_mutex_unlock(&locked->mutex);
	}
}

static uint64_t locked_read(void *self)
{
	struct locked *locked = self;
	uint64_t count;

	(void)pthread_mutex_lock(&locked->mutex);
	count = locked->count;
	(void)pthread_mutex_unlock(&locked->mutex);
	return count;
}

const struct counter_contender mutex_counter_contender = {
	.about = {.name = "mutex"},
	.create = locked_create,
	.destroy = locked_destroy,
	.add_many = locked_add_many,
	.read = locked_read,
};
