/*
 * left_right.c - Left-Right (Ramalhete and Correia, 2013): two copies of the value. A reader counts
 * itself in and out at one of two counters, wait-free. The writer changes the copy that no reader
 * reads. It then waits for the readers of the other copy before it changes that one. Writers exclude
 * each other by a mutex. No library of Debian has it, so it is written here after the paper.
 */
#include <pthread.h>
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

/* Returns the side that readers read after the call; the other one is still to be changed. */
static unsigned toggle(struct cell *cell)
{
	unsigned side = atomic_load_explicit(&cell->side, memory_order_relaxed);
	unsigned version = atomic_load_explicit(&cell->version, memory_order_relaxed);

	atomic_store_explicit(&cell->side, !side, memory_order_seq_cst);
	/*
	 * Readers that arrived at the other indicator long ago may still read the old side. After them,
	 * the readers of this indicator may.
	 */
	wait_until_empty(&cell->indicators[!version]);
	atomic_store_explicit(&cell->version, !version, memory_order_seq_cst);
	wait_until_empty(&cell->indicators[version]);
	return !side;
}

static void replace(void *self, uint64_t value)
{
	struct cell *cell = self;

	set(cell, !atomic_load_explicit(&cell->side, memory_order_relaxed), value);
	set(cell, !toggle(cell), value);
}

const struct read_contender left_right_read_contender = {
	.about = {.name = "left-right", .lacks = "takes no reference; the writer waits for readers"},
	.create = create,
	.destroy = destroy,
	.read_many = read_many,
	.scan_many = scan_many,
	.write = replace,
};

/* -- updates by several writers ---------------------------------------------------------------- */

struct updated {
	struct cell *cell;
	pthread_mutex_t writers;
};

static void *update_create(void)
{
	struct updated *updated = malloc(sizeof(*updated));

	if (updated == NULL)
		exit(3);
	updated->cell = create(sizeof(struct shared_value));
	(void)pthread_mutex_init(&updated->writers, NULL);
	return updated;
}

static void update_destroy(void *self)
{
	struct updated *updated = self;

	destroy(updated->cell);
	(void)pthread_mutex_destroy(&updated->writers);
	free(updated);
}

static void add_one(struct cell *cell, unsigned side)
{
	for (size_t i = 0; i < cell->bytes / sizeof(uint64_t); i++)
		cell->copies[side][i]++;
}

static void update_many(void *self, uint64_t count)
{
	struct updated *updated = self;
	struct cell *cell = updated->cell;

	for (uint64_t i = 0; i < count; i++) {
		(void)pthread_mutex_lock(&updated->writers);
		add_one(cell, !atomic_load_explicit(&cell->side, memory_order_relaxed));
		add_one(cell, !toggle(cell));
		(void)pthread_mutex_unlock(&updated->writers);
	}
}

static uint64_t value(void *self)
{
	return *now(((struct updated *)self)->cell);
}

const struct update_contender left_right_update_contender = {
	.about = {.name = "left-right", .lacks = "keeps no old value; a writer waits for readers"},
	.create = update_create,
	.destroy = update_destroy,
	.update_many = update_many,
	.value = value,
};
