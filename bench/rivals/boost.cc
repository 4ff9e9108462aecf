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

extern "C" const ring_contender boost_ring_contender = {
	"boost::lockfree::queue", "Boost " BOOST_LIB_VERSION, 1, create, destroy, enqueue, dequeue, pairs};
