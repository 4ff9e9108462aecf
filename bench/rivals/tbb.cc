/*
 * tbb.cc - TBB's concurrent_bounded_queue through its calls that do not wait.
 */
#include <tbb/concurrent_queue.h>
#include <tbb/version.h>

#include "rivals.h"

typedef tbb::concurrent_bounded_queue<uint64_t> queue;

static void *create(size_t capacity)
{
	queue *made = new queue;

	made->set_capacity(static_cast<queue::size_type>(capacity));
	return made;
}

static void destroy(void *self)
{
	delete static_cast<queue *>(self);
}

static int enqueue(void *self, uint64_t value)
{
	return static_cast<queue *>(self)->try_push(value);
}

static int dequeue(void *self, uint64_t *value)
{
	return static_cast<queue *>(self)->try_pop(*value);
}

static uint64_t pairs(void *self, uint64_t count)
{
	return bench_pairs(self, count, enqueue, dequeue);
}

static ring_contender contender()
{
	ring_contender made = {};

	made.about.name = "tbb::concurrent_bounded_queue";
	made.about.version = "oneTBB " TBB_VERSION_STRING;
	made.create = create;
	made.destroy = destroy;
	made.enqueue = enqueue;
	made.dequeue = dequeue;
	made.pairs = pairs;
	return made;
}

extern "C" const ring_contender tbb_ring_contender = contender();
