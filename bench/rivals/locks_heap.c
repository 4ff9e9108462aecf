/*
 * locks_heap.c - a binary heap in an array under a mutex: the simplest solution. Equal keys leave
 * in any order.
 */
#include <pthread.h>
#include <stdlib.h>

#include "rivals.h"

struct entry {
	int64_t key;
	uint64_t value;
};

struct heap {
	pthread_mutex_t mutex;
	size_t capacity, count;
	struct entry entries[]; /* 1 .. count; the children of i are 2i and 2i + 1 */
};

static void *create(size_t capacity)
{
	struct heap *heap = malloc(sizeof(*heap) + (capacity + 1) * sizeof(struct entry));

	if (heap == NULL)
		exit(3);
	*heap = (struct heap){.capacity = capacity};
	(void)pthread_mutex_init(&heap->mutex, NULL);
	return heap;
}

static void rise(struct heap *heap, struct entry entry)
{
	size_t at = ++heap->count;

	for (; at > 1 && heap->entries[at / 2].key > entry.key; at /= 2)
		heap->entries[at] = heap->entries[at / 2];
	heap->entries[at] = entry;
}

static struct entry remove_first(struct heap *heap)
{
	struct entry first = heap->entries[1], last = heap->entries[heap->count--];
	size_t at = 1, child;

	for (; (child = 2 * at) <= heap->count; at = child) {
		if (child < heap->count && heap->entries[child + 1].key < heap->entries[child].key)
			child++;
		if (heap->entries[child].key >= last.key)
			break;
		heap->entries[at] = heap->entries[child];
	}
	heap->entries[at] = last;
	return first;
}

static int try_enqueue(void *self, uint64_t value)
{
	struct heap *heap = self;
	int room;

	(void)pthread_mutex_lock(&heap->mutex);
	room = heap->count < heap->capacity;
	if (room)
		rise(heap, (struct entry){bench_key_of(value), value});
	(void)pthread_mutex_unlock(&heap->mutex);
	return room;
}

static int try_dequeue(void *self, uint64_t *value)
{
	struct heap *heap = self;
	int some;

	(void)pthread_mutex_lock(&heap->mutex);
	some = heap->count != 0;
	if (some)
		*value = remove_first(heap).value;
	(void)pthread_mutex_unlock(&heap->mutex);
	return some;
}

static uint64_t pairs(void *self, uint64_t count)
{
	return bench_pairs(self, count, try_enqueue, try_dequeue);
}

const struct ring_contender mutex_heap_contender = {
	.about = {.name = "mutex heap", .lacks = "equal keys in any order"},
	.create = create,
	.destroy = free,
	.enqueue = try_enqueue,
	.dequeue = try_dequeue,
	.pairs = pairs,
};
