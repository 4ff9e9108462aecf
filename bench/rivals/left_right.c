/*
 * left_right.c - Left-Right (Ramalhete and Correia, 2013): two copies of the value. A reader counts
 * itself in and out at one of two counters, wait-free. The writer changes the copy that no reader
 * reads. It then waits for the readers of the other copy before it changes that one.
 */
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "published.h"

struct indicator {
	_Alignas(64) _Atomic(uint64_t) readers;
};

struct cell {
	_Alignas(64) _Atomic(unsigned) side;    /* the copy that readers read */
	_Alignas(64) _Atomic(unsigned) version; /* the indicator at which readers arrive */
	struct indicator indicators[2];
	uint64_t *copies[2];
	size_t bytes;
};

static void *create(size_t bytes)
{
	struct cell *cell = aligned_alloc(64, sizeof(*cell));

	if (cell == NULL)
		exit(3);
	atomic_init(&cell->side, 0);
	atomic_init(&cell->version, 0);
	for (int i = 0; i < 2; i++) {
		atomic_init(&cell->indicators[i].readers, 0);
		cell->copies[i] = published_words(bytes, 0);
	}
	cell->bytes = bytes;
	return cell;
}

static void destroy(void *self)
{
	struct cell *cell = self;

	free(cell->copies[0]);
	free(cell->copies[1]);
	free(cell);
}

static inline struct indicator *arrive(struct cell *cell)
{
	struct indicator *indicator = &cell->indicators[atomic_load_explicit(&cell->version, memory_order_acquire)];

	(void)atomic_fetch_add_explicit(&indicator->readers, 1, memory_order_seq_cst);
	return indicator;
}

static inline const uint64_t *now(struct cell *cell)
{
	return cell->copies[atomic_load_explicit(&cell->side, memory_order_seq_cst)];
}

static inline void depart(struct indicator *indicator)
{
	(void)atomic_fetch_sub_explicit(&indicator->readers, 1, memory_order_release);
}

static uint64_t read_many(void *self, uint64_t count)
{
	uint64_t sum = 0;

	for (uint64_t i = 0; i < count; i++) {
		struct indicator *indicator = arrive(self);

		sum += *now(self);
		depart(indicator);
	}
	return sum;
}

static uint64_t scan_many(void *self, uint64_t count)
{
	struct cell *cell = self;
	uint64_t torn = 0;

	for (uint64_t i = 0; i < count; i++) {
		struct indicator *indicator = arrive(cell);

		torn += (uint64_t)bench_torn(now(cell), cell->bytes);
		depart(indicator);
	}
	return torn;
}

static void wait_until_empty(struct indicator *indicator)
{
	while (atomic_load_explicit(&indicator->readers, memory_order_seq_cst) != 0)
		(void)sched_yield();
}

static void set(struct cell *cell, unsigned side, uint64_t value)
{
	for (size_t i = 0; i < cell->bytes / sizeof(uint64_t); i++)
		cell->copies[side][i] = value;
}

static void replace(void *self, uint64_t value)
{
	struct cell *cell = self;
	unsigned side = atomic_load_explicit(&cell->side, memory_order_relaxed);
	unsigned version = atomic_load_explicit(&cell->version, memory_order_relaxed);

	set(cell, !side, value);
	atomic_store_explicit(&cell->side, !side, memory_order_seq_cst);
	/*
	 * Readers that arrived at the other indicator long ago may still read the old side. After them,
	 * the readers of this indicator may.
	 */
	wait_until_empty(&cell->indicators[!version]);
	atomic_store_explicit(&cell->version, !version, memory_order_seq_cst);
	wait_until_empty(&cell->indicators[version]);
	set(cell, side, value);
}

const struct read_contender left_right_read_contender = {
	.about = {.name = "left-right", .lacks = "takes no reference; the writer waits for readers"},
	.create = create,
	.destroy = destroy,
	.read_many = read_many,
	.scan_many = scan_many,
	.write = replace,
};
