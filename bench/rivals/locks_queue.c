/*
 * locks_queue.c - bounded queues under a mutex: one that never waits, one that waits on condition
 * variables, and one with random order.
 */
#include <pthread.h>
#include <stdlib.h>

#include "rivals.h"

struct ring {
	pthread_mutex_t mutex;
	pthread_cond_t room, items;
	int closed;
	size_t capacity, head, count;
	uint64_t chance;
	uint64_t values[];
};

static void *create(size_t capacity)
{
	struct ring *ring = malloc(sizeof(*ring) + capacity * sizeof(uint64_t));

	if (ring == NULL)
		exit(3);
	*ring = (struct ring){.capacity = capacity, .chance = 88172645463325252u};
	(void)pthread_mutex_init(&ring->mutex, NULL);
	(void)pthread_cond_init(&ring->room, NULL);
	(void)pthread_cond_init(&ring->items, NULL);
	return ring;
}

static void put(struct ring *ring, uint64_t value)
{
	size_t at = ring->head + ring->count++;

	ring->values[at < ring->capacity ? at : at - ring->capacity] = value;
}

static uint64_t take(struct ring *ring)
{
	uint64_t value = ring->values[ring->head];

	ring->head = ring->head + 1 < ring->capacity ? ring->head + 1 : 0;
	ring->count--;
	return value;
}

/* Swaps a random item (xorshift64) with the oldest, which is taken next. */
static void draw(struct ring *ring)
{
	size_t at;
	uint64_t value;

	ring->chance ^= ring->chance << 13;
	ring->chance ^= ring->chance >> 7;
	ring->chance ^= ring->chance << 17;
	at = ring->head + (size_t)(ring->chance % ring->count);
	at = at < ring->capacity ? at : at - ring->capacity;
	value = ring->values[at];
	ring->values[at] = ring->values[ring->head];
	ring->values[ring->head] = value;
}

static int try_enqueue(void *self, uint64_t value)
{
	struct ring *ring = self;
	int room;

	(void)pthread_mutex_lock(&ring->mutex);
	room = ring->count < ring->capacity;
	if (room)
		put(ring, value);
	(void)pthread_mutex_unlock(&ring->mutex);
	return room;
}

static int try_dequeue(void *self, uint64_t *value)
{
	struct ring *ring = self;
	int some;

	(void)pthread_mutex_lock(&ring->mutex);
	some = ring->count != 0;
	if (some)
		*value = take(ring);
	(void)pthread_mutex_unlock(&ring->mutex);
	return some;
}

static int try_dequeue_shuffled(void *self, uint64_t *value)
{
	struct ring *ring = self;
	int some;

	(void)pthread_mutex_lock(&ring->mutex);
	some = ring->count != 0;
	if (some) {
		draw(ring);
		*value = take(ring);
	}
	(void)pthread_mutex_unlock(&ring->mutex);
	return some;
}

static size_t try_enqueue_many(void *self, const uint64_t *values, size_t count)
{
	struct ring *ring = self;
	size_t done = 0;

	(void)pthread_mutex_lock(&ring->mutex);
	while (done < count && ring->count < ring->capacity)
		put(ring, values[done++]);
	(void)pthread_mutex_unlock(&ring->mutex);
	return done;
}

static size_t try_dequeue_many(void *self, uint64_t *values, size_t count)
{
	struct ring *ring = self;
	size_t done = 0;

	(void)pthread_mutex_lock(&ring->mutex);
	while (done < count && ring->count != 0)
		values[done++] = take(ring);
	(void)pthread_mutex_unlock(&ring->mutex);
	return done;
}

static uint64_t pairs(void *self, uint64_t count)
{
	return bench_pairs(self, count, try_enqueue, try_dequeue);
}

const struct ring_contender mutex_ring_contender = {
	.about = {.name = "mutex ring"},
	.create = create,
	.destroy = free,
	.enqueue = try_enqueue,
	.dequeue = try_dequeue,
	.enqueue_many = try_enqueue_many,
	.dequeue_many = try_dequeue_many,
	.pairs = pairs,
};

static void enqueue(void *self, uint64_t value)
{
	struct ring *ring = self;

	(void)pthread_mutex_lock(&ring->mutex);
	while (ring->count == ring->capacity)
		(void)pthread_cond_wait(&ring->room, &ring->mutex);
	put(ring, value);
	(void)pthread_mutex_unlock(&ring->mutex);
	(void)pthread_cond_signal(&ring->items);
}

static int dequeue_in_order(struct ring *ring, uint64_t *value, int shuffled)
{
	int some;

	(void)pthread_mutex_lock(&ring->mutex);
	while (ring->count == 0 && !ring->closed)
		(void)pthread_cond_wait(&ring->items, &ring->mutex);
	some = ring->count != 0;
	if (some && shuffled)
		draw(ring);
	if (some)
		*value = take(ring);
	(void)pthread_mutex_unlock(&ring->mutex);
	if (some)
		(void)pthread_cond_signal(&ring->room);
	return some;
}

static int dequeue(void *self, uint64_t *value)
{
	return dequeue_in_order(self, value, 0);
}

static int dequeue_shuffled(void *self, uint64_t *value)
{
	return dequeue_in_order(self, value, 1);
}

static void close_queue(void *self)
{
	struct ring *ring = self;

	(void)pthread_mutex_lock(&ring->mutex);
	ring->closed = 1;
	(void)pthread_mutex_unlock(&ring->mutex);
	(void)pthread_cond_broadcast(&ring->items);
}

const struct queue_contender condition_queue_contender = {
	.about = {.name = "mutex + condition variables"},
	.create = create,
	.destroy = free,
	.enqueue = enqueue,
	.dequeue = dequeue,
	.close = close_queue,
};
const struct queue_contender mutex_shuffle_contender = {
	.about = {.name = "mutex + condition variables"},
	.create = create,
	.destroy = free,
	.enqueue = enqueue,
	.dequeue = dequeue_shuffled,
	.close = close_queue,
};
const struct ring_contender mutex_shuffle_try_contender = {
	.about = {.name = "mutex, a random item changes places"},
	.create = create,
	.destroy = free,
	.enqueue = try_enqueue,
	.dequeue = try_dequeue_shuffled,
};
