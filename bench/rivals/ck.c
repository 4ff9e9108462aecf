/*
 * ck.c - Concurrency Kit's ck_ring with many producers and consumers. An operation reserves a slot
 * and then writes it; a producer that stops between the two blocks all others.
 */
#include <ck_ring.h>
#include <stdlib.h>

#include "rivals.h"

struct ring {
	ck_ring_t ring;
	ck_ring_buffer_t *buffer;
};

static void *create(size_t capacity)
{
	struct ring *ring = aligned_alloc(64, (sizeof(*ring) + 63) / 64 * 64);
	unsigned size = 2;

	while (size - 1 < capacity)
		size *= 2;
	if (ring == NULL || (ring->buffer = calloc(size, sizeof(*ring->buffer))) == NULL)
		exit(3);
	ck_ring_init(&ring->ring, size);
	return ring;
}

static void destroy(void *self)
{
	struct ring *ring = self;

	free(ring->buffer);
	free(ring);
}

static int enqueue(void *self, uint64_t value)
{
	struct ring *ring = self;

	return ck_ring_enqueue_mpmc(&ring->ring, ring->buffer, (void *)(uintptr_t)value);
}

static int dequeue(void *self, uint64_t *value)
{
	struct ring *ring = self;
	void *item;

	if (!ck_ring_dequeue_mpmc(&ring->ring, ring->buffer, &item))
		return 0;
	*value = (uint64_t)(uintptr_t)item;
	return 1;
}

static uint64_t pairs(void *self, uint64_t count)
{
	return bench_pairs(self, count, enqueue, dequeue);
}

const struct ring_contender ck_ring_contender = {
	.about = {.name = "ck_ring (mpmc)", .version = "Concurrency Kit " CK_VERSION},
	.create = create,
	.destroy = destroy,
	.enqueue = enqueue,
	.dequeue = dequeue,
	.pairs = pairs,
};
