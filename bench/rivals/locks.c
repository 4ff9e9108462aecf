/*
 * locks.c - what a mutex or a reader-writer lock gives, and the floor: a plain acquire load that retains nothing.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "rivals.h"

struct ring {
	pthread_mutex_t mutex;
	size_t capacity, head, count;
	uint64_t values[];
};

static void *ring_create(size_t capacity)
{
	struct ring *ring = malloc(sizeof(*ring) + capacity * sizeof(uint64_t));

	if (ring == NULL)
		exit(3);
	*ring = (struct ring){.capacity = capacity};
	(void)pthread_mutex_init(&ring->mutex, NULL);
	return ring;
}

static int ring_enqueue(void *self, uint64_t value)
{
	struct ring *ring = self;
	int room;
	size_t at;

	(void)pthread_mutex_lock(&ring->mutex);
	room = ring->count < ring->capacity;
	if (room) {
		at = ring->head + ring->count++;
		ring->values[at < ring->capacity ? at : at - ring->capacity] = value;
	}
	(void)pthread_mutex_unlock(&ring->mutex);
	return room;
}

static int ring_dequeue(void *self, uint64_t *value)
{
	struct ring *ring = self;
	int some;

	(void)pthread_mutex_lock(&ring->mutex);
	some = ring->count != 0;
	if (some) {
		*value = ring->values[ring->head];
		ring->head = ring->head + 1 < ring->capacity ? ring->head + 1 : 0;
		ring->count--;
	}
	(void)pthread_mutex_unlock(&ring->mutex);
	return some;
}

static uint64_t ring_pairs(void *self, uint64_t count)
{
	return bench_pairs(self, count, ring_enqueue, ring_dequeue);
}

const struct ring_contender mutex_ring_contender = {"mutex ring", "pthread",    0,         ring_create, free,
                                                    ring_enqueue, ring_dequeue, ring_pairs};

struct cell {
	pthread_mutex_t mutex;
	pthread_rwlock_t rwlock;
	_Alignas(64) struct shared_value value;
	_Alignas(64) _Atomic(uint64_t) word;
};

static void *cell_create(void)
{
	struct cell *cell = aligned_alloc(64, (sizeof(*cell) + 63) / 64 * 64);

	if (cell == NULL)
		exit(3);
	cell->value = (struct shared_value){{0}};
	atomic_init(&cell->word, 0);
	(void)pthread_mutex_init(&cell->mutex, NULL);
	(void)pthread_rwlock_init(&cell->rwlock, NULL);
	return cell;
}

static void nothing(void *self)
{
	(void)self;
}

static void set(struct cell *cell, uint64_t value)
{
	for (int i = 0; i < 8; i++)
		cell->value.words[i] = value;
}

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
	"one word by acquire load (floor)", "", 0, cell_create, free, nothing, nothing, acquire_read_many, acquire_write};

static uint64_t mutex_read_many(void *self, uint64_t count)
{
	struct cell *cell = self;
	uint64_t sum = 0;

	for (uint64_t i = 0; i < count; i++) {
		(void)pthread_mutex_lock(&cell->mutex);
		sum += cell->value.words[0];
		(void)pthread_mutex_unlock(&cell->mutex);
	}
	return sum;
}

static void mutex_write(void *self, uint64_t value)
{
	struct cell *cell = self;

	(void)pthread_mutex_lock(&cell->mutex);
	set(cell, value);
	(void)pthread_mutex_unlock(&cell->mutex);
}

const struct read_contender mutex_read_contender = {"mutex", "pthread",       0,          cell_create, free, nothing,
                                                    nothing, mutex_read_many, mutex_write};

static uint64_t rwlock_read_many(void *self, uint64_t count)
{
	struct cell *cell = self;
	uint64_t sum = 0;

	for (uint64_t i = 0; i < count; i++) {
		(void)pthread_rwlock_rdlock(&cell->rwlock);
		sum += cell->value.words[0];
		(void)pthread_rwlock_unlock(&cell->rwlock);
	}
	return sum;
}

static void rwlock_write(void *self, uint64_t value)
{
	struct cell *cell = self;

	(void)pthread_rwlock_wrlock(&cell->rwlock);
	set(cell, value);
	(void)pthread_rwlock_unlock(&cell->rwlock);
}

const struct read_contender rwlock_read_contender = {
	"rwlock", "pthread", 0, cell_create, free, nothing, nothing, rwlock_read_many, rwlock_write};
