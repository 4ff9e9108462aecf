/*
 * weir_priority.c - our priority queues, called as a user calls them: through the shared library.
 */
#include <stdlib.h>
#include <weir/multi_queue.h>
#include <weir/priority_queue.h>

#include "rivals.h"

static void *strict_create(size_t capacity)
{
	weir_priority_queue *queue;

	if (weir_priority_queue_create(capacity, NULL, &queue, NULL) != WEIR_OK)
		exit(3);
	return queue;
}

static void strict_destroy(void *self)
{
	weir_priority_queue_destroy(self, NULL);
}

static int strict_enqueue(void *self, uint64_t value)
{
	return weir_priority_queue_try_enqueue(self, bench_key_of(value), value) == WEIR_OK;
}

static int strict_dequeue(void *self, uint64_t *value)
{
	return weir_priority_queue_try_dequeue(self, NULL, value) == WEIR_OK;
}

static uint64_t strict_pairs(void *self, uint64_t count)
{
	return bench_pairs(self, count, strict_enqueue, strict_dequeue);
}

const struct ring_contender weir_priority_contender = {
	.about = {.name = "weir", .lock_free = 1},
	.create = strict_create,
	.destroy = strict_destroy,
	.enqueue = strict_enqueue,
	.dequeue = strict_dequeue,
	.pairs = strict_pairs,
};

static void *relaxed_create(size_t capacity)
{
	weir_multi_queue *queue;

	if (weir_multi_queue_create(capacity, NULL, &queue, NULL) != WEIR_OK)
		exit(3);
	return queue;
}

static void relaxed_destroy(void *self)
{
	weir_multi_queue_destroy(self, NULL);
}

static int relaxed_enqueue(void *self, uint64_t value)
{
	return weir_multi_queue_try_enqueue(self, bench_key_of(value), value) == WEIR_OK;
}

static int relaxed_dequeue(void *self, uint64_t *value)
{
	return weir_multi_queue_try_dequeue(self, NULL, value) == WEIR_OK;
}

static uint64_t relaxed_pairs(void *self, uint64_t count)
{
	return bench_pairs(self, count, relaxed_enqueue, relaxed_dequeue);
}

const struct ring_contender weir_multi_contender = {
	.about = {.name = "weir multi_queue", .lacks = "only roughly the smallest key first", .lock_free = 1},
	.create = relaxed_create,
	.destroy = relaxed_destroy,
	.enqueue = relaxed_enqueue,
	.dequeue = relaxed_dequeue,
	.pairs = relaxed_pairs,
};
