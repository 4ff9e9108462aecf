/*
 * boost.cc - boost::lockfree::queue with its nodes made beforehand: Michael and Scott's queue.
 */
#include <boost/lockfree/queue.hpp>
#include <boost/version.hpp>

#include "rivals.h"

typedef boost::lockfree::queue<uint64_t> queue;

static void *create(size_t capacity)
{
	return new queue(capacity);
}

static void destroy(void *self)
{
	delete static_cast<queue *>(self);
}

static int enqueue(void *self, uint64_t value)
{
	return static_cast<queue *>(self)->bounded_push(value);
}

static int dequeue(void *self, uint64_t *value)
{
	return static_cast<queue *>(self)->pop(*value);
}

static uint64_t pairs(void *self, uint64_t count)
{
	return bench_pairs(self, count, enqueue, dequeue);
}

static ring_contender contender()
{
	ring_contender made = {};

	made.about.name = "boost::lockfree::queue";
	made.about.version = "Boost " BOOST_LIB_VERSION;
	made.about.lock_free = 1;
	made.create = create;
	made.destroy = destroy;
	made.enqueue = enqueue;
	made.dequeue = dequeue;
	made.pairs = pairs;
	return made;
}

extern "C" const ring_contender boost_ring_contender = contender();
