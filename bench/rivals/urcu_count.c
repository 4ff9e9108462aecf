/*
 * urcu_count.c - liburcu-bp's section, inlined, around taking a reference: the reference lets the
 * value outlive the section.
 *
 * The writer waits for a grace period per 256 values and then frees them, as a careful user would.
 */
#define _LGPL_SOURCE
#include <stdatomic.h>
#include <stdlib.h>
#include <urcu-bp.h>

#include "rivals.h"
#include "urcu_thread.h"

struct counted {
	_Atomic(long) references;
	_Alignas(64) uint64_t words[];
};

struct cell {
	struct counted *current;
	struct counted *retired[256];
	size_t bytes;
	unsigned waiting;
};

static void release(struct counted *value)
{
	if (atomic_fetch_sub_explicit(&value->references, 1, memory_order_acq_rel) == 1)
		free(value);
}

static void drain(struct cell *cell)
{
	synchronize_rcu();
	while (cell->waiting != 0)
		release(cell->retired[--cell->waiting]);
}

static void replace(void *self, uint64_t value)
{
	struct cell *cell = self;
	struct counted *next = aligned_alloc(64, 64 + (cell->bytes + 63) / 64 * 64), *old;

	if (next == NULL)
		exit(3);
	for (size_t i = 0; i < cell->bytes / sizeof(uint64_t); i++)
		next->words[i] = value;
	atomic_init(&next->references, 1);
	old = rcu_xchg_pointer(&cell->current, next);
	if (old != NULL)
		cell->retired[cell->waiting++] = old;
	if (cell->waiting == 256)
		drain(cell);
}

static void *create(size_t bytes)
{
	struct cell *cell = calloc(1, sizeof(*cell));

	if (cell == NULL)
		exit(3);
	cell->bytes = bytes;
	replace(cell, 0);
	return cell;
}

static void destroy(void *self)
{
	struct cell *cell = self;

	drain(cell);
	release(cell->current);
	free(cell);
}

static struct counted *retain(struct cell *cell)
{
	struct counted *value;

	rcu_read_lock();
	value = rcu_dereference(cell->current);
	(void)atomic_fetch_add_explicit(&value->references, 1, memory_order_relaxed);
	rcu_read_unlock();
	return value;
}

static uint64_t read_many(void *self, uint64_t count)
{
	uint64_t sum = 0;

	for (uint64_t i = 0; i < count; i++) {
		struct counted *value = retain(self);

		sum += value->words[0];
		release(value);
	}
	return sum;
}

static uint64_t scan_many(void *self, uint64_t count)
{
	struct cell *cell = self;
	uint64_t torn = 0;

	for (uint64_t i = 0; i < count; i++) {
		struct counted *value = retain(cell);

		torn += (uint64_t)bench_torn(value->words, cell->bytes);
		release(value);
	}
	return torn;
}

const struct read_contender urcu_count_read_contender = {
	.about = {.name = "liburcu-bp + shared reference count", .version = "liburcu " WEIR_BENCH_URCU_VERSION},
	.create = create,
	.destroy = destroy,
	.thread_begin = thread_begin,
	.thread_end = thread_end,
	.read_many = read_many,
	.scan_many = scan_many,
	.write = replace,
};
