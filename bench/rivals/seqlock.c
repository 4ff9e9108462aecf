/*
 * seqlock.c - a sequence lock: a reader copies the value and then checks that no writer changed it
 * meanwhile; readers write nothing. The words are relaxed atomics, because a reader may copy them
 * while they change (Boehm, 2012).
 */
#include <stdatomic.h>
#include <stdlib.h>

#include "rivals.h"

enum { MOST_WORDS = 8192 };

struct cell {
	_Alignas(64) _Atomic(uint64_t) sequence; /* odd while a writer is at work */
	size_t words;
	_Alignas(64) _Atomic(uint64_t) value[];
};

static void *create(size_t bytes)
{
	struct cell *cell = aligned_alloc(64, sizeof(*cell) + (bytes + 63) / 64 * 64);

	if (cell == NULL || bytes > MOST_WORDS * sizeof(uint64_t))
		exit(3);
	atomic_init(&cell->sequence, 0);
	cell->words = bytes / sizeof(uint64_t);
	for (size_t i = 0; i < cell->words; i++)
		atomic_init(&cell->value[i], 0);
	return cell;
}

static inline void copy(struct cell *cell, uint64_t *out)
{
	for (;;) {
		uint64_t before = atomic_load_explicit(&cell->sequence, memory_order_acquire);

		if (before & 1)
			continue;
		for (size_t i = 0; i < cell->words; i++)
			out[i] = atomic_load_explicit(&cell->value[i], memory_order_relaxed);
		atomic_thread_fence(memory_order_acquire);
		if (atomic_load_explicit(&cell->sequence, memory_order_relaxed) == before)
			return;
	}
}

static uint64_t read_many(void *self, uint64_t count)
{
	uint64_t out[MOST_WORDS], sum = 0;

	for (uint64_t i = 0; i < count; i++) {
		copy(self, out);
		sum += out[0];
	}
	return sum;
}

static uint64_t scan_many(void *self, uint64_t count)
{
	struct cell *cell = self;
	uint64_t out[MOST_WORDS], torn = 0;

	for (uint64_t i = 0; i < count; i++) {
		copy(cell, out);
		torn += (uint64_t)bench_torn(out, cell->words * sizeof(uint64_t));
	}
	return torn;
}

static void replace(void *self, uint64_t value)
{
	struct cell *cell = self;
	uint64_t sequence = atomic_load_explicit(&cell->sequence, memory_order_relaxed);

	atomic_store_explicit(&cell->sequence, sequence + 1, memory_order_relaxed);
	atomic_thread_fence(memory_order_release);
	for (size_t i = 0; i < cell->words; i++)
		atomic_store_explicit(&cell->value[i], value, memory_order_relaxed);
	atomic_store_explicit(&cell->sequence, sequence + 2, memory_order_release);
}

const struct read_contender seqlock_read_contender = {
	.about = {.name = "seqlock", .lacks = "copies the value; readers wait for a writer"},
	.create = create,
	.destroy = free,
	.read_many = read_many,
	.scan_many = scan_many,
	.write = replace,
};

/* -- several words of one instant -------------------------------------------------------------- */

static void *snapshot_create(size_t variables)
{
	return create(variables * sizeof(uint64_t));
}

const struct snapshot_contender seqlock_snapshot_contender = {
	.about = {.name = "seqlock", .lacks = "one writer; readers wait for it and take no reference"},
	.create = snapshot_create,
	.destroy = free,
	.take_many = scan_many,
	.commit = replace,
};
