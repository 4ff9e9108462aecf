/*
 * locks_variable.c - shared values under a mutex or a reader-writer lock, and the lower bound: a
 * plain acquire load that takes no reference.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "rivals.h"

struct cell {
	pthread_mutex_t mutex;
	pthread_rwlock_t rwlock;
	size_t count; /* number of words */
	_Alignas(64) _Atomic(uint64_t) word;
	_Alignas(64) uint64_t words[];
};

static void *create(size_t bytes)
{
	struct cell *cell = aligned_alloc(64, (sizeof(*cell) + bytes + 63) / 64 * 64);

	if (cell == NULL)
		exit(3);
	cell->count = bytes / sizeof(uint64_t);
	for (size_t i = 0; i < cell->count; i++)
		cell->words[i] = 0;
	atomic_init(&cell->word, 0);
	(void)pthread_mutex_init(&cell->mutex, NULL);
	(void)pthread_rwlock_init(&cell->rwlock, NULL);
	return cell;
}

static void set(struct cell *cell, uint64_t value)
{
	for (size_t i = 0; i < cell->count; i++)
		cell->words[i] = value;
}

/* -- reads ------------------------------------------------------------------------------------- */

static uint64_t acquire_read_many(void *self, uint64_t count)
{
	struct cell *cell = self;
	uint64_t sum = 0;

	for (uint64_t i = 0; i < count; i++)
		sum += atomic_load_explicit(&cell->word, memory_order_acquire);
	return sum;
}

static void acquire_write(void *self, uint64_t value)
{
	atomic_store_explicit(&((struct cell *)self)->word, value, memory_order_release);
}

const struct read_contender acquire_read_contender = {
	.about = {.name = "acquire load (floor)", .lacks = "one word; takes no reference", .lock_free = 1},
	.create = create,
	.destroy = free,
	.read_many = acquire_read_many,
	.write = acquire_write,
};

static uint64_t mutex_read_many(void *self, uint64_t count)
{
	struct cell *cell = self;
	uint64_t sum = 0;

	for (uint64_t i = 0; i < count; i++) {
		(void)pthread_mutex_lock(&cell->mutex);
		sum += cell->words[0];
		(void)pthread_mutex_unlock(&cell->mutex);
	}
	return sum;
}

static uint64_t mutex_scan_many(void *self, uint64_t count)
{
	struct cell *cell = self;
	uint64_t torn = 0;

	for (uint64_t i = 0; i < count; i++) {
		(void)pthread_mutex_lock(&cell->mutex);
		torn += (uint64_t)bench_torn(cell->words, cell->count * sizeof(uint64_t));
		(void)pthread_mutex_unlock(&cell->mutex);
	}
	return torn;
}

static void mutex_write(void *self, uint64_t value)
{
	struct cell *cell = self;

	(void)pthread_mutex_lock(&cell->mutex);
	set(cell, value);
	(void)pthread_mutex_unlock(&cell->mutex);
}

const struct read_contender mutex_read_contender = {
	.about = {.name = "mutex", .lacks = "takes no reference"},
	.create = create,
	.destroy = free,
	.read_many = mutex_read_many,
	.scan_many = mutex_scan_many,
	.write = mutex_write,
};

static uint64_t rwlock_read_many(void *self, uint64_t count)
{
	struct cell *cell = self;
	uint64_t sum = 0;

	for (uint64_t i = 0; i < count; i++) {
		(void)pthread_rwlock_rdlock(&cell->rwlock);
		sum += cell->words[0];
		(void)pthread_rwlock_unlock(&cell->rwlock);
	}
	return sum;
}

static uint64_t rwlock_scan_many(void *self, uint64_t count)
{
	struct cell *cell = self;
	uint64_t torn = 0;

	for (uint64_t i = 0; i < count; i++) {
		(void)pthread_rwlock_rdlock(&cell->rwlock);
		torn += (uint64_t)bench_torn(cell->words, cell->count * sizeof(uint64_t));
		(void)pthread_rwlock_unlock(&cell->rwlock);
	}
	return torn;
}

static void rwlock_write(void *self, uint64_t value)
{
	struct cell *cell = self;

	(void)pthread_rwlock_wrlock(&cell->rwlock);
	set(cell, value);
	(void)pthread_rwlock_unlock(&cell->rwlock);
}

const struct read_contender rwlock_read_contender = {
	.about = {.name = "rwlock", .lacks = "takes no reference"},
	.create = create,
	.destroy = free,
	.read_many = rwlock_read_many,
	.scan_many = rwlock_scan_many,
	.write = rwlock_write,
};

/* -- updates and snapshots --------------------------------------------------------------------- */

static void *update_create(void)
{
	return create(sizeof(struct shared_value));
}

static void update_many(void *self, uint64_t count)
{
	struct cell *cell = self;

	for (uint64_t i = 0; i < count; i++) {
		(void)pthread_mutex_lock(&cell->mutex);
		for (size_t w = 0; w < cell->count; w++)
			cell->words[w]++;
		(void)pthread_mutex_unlock(&cell->mutex);
	}
}

static uint64_t update_value(void *self)
{
	return ((struct cell *)self)->words[0];
}

/* Copies the value out. */
static const uint64_t *update_keep(void *self, struct bench_kept *place)
{
	struct cell *cell = self;

	(void)pthread_mutex_lock(&cell->mutex);
	memcpy(place->words, cell->words, sizeof(place->words));
	(void)pthread_mutex_unlock(&cell->mutex);
	return place->words;
}

static void update_drop(struct bench_kept *place)
{
	(void)place;
}

const struct update_contender mutex_update_contender = {
	.about = {.name = "mutex", .lacks = "readers cannot keep an old value, but by a copy"},
	.create = update_create,
	.destroy = free,
	.update_many = update_many,
	.value = update_value,
	.keep = update_keep,
	.drop = update_drop,
};

/* One word for each variable. */
static void *snapshot_create(size_t variables)
{
	return create(variables * sizeof(uint64_t));
}

const struct snapshot_contender mutex_snapshot_contender = {
	.about = {.name = "mutex", .lacks = "takes no reference"},
	.create = snapshot_create,
	.destroy = free,
	.take_many = mutex_scan_many,
	.commit = mutex_write,
};
