/*
 * ring.hh - makes the table of a queue that is written in C++. The queue is a class with these
 * members:
 *
 *     Class(size_t capacity)
 *     bool enqueue(uint64_t value)
 *     bool dequeue(uint64_t &value)
 */
#ifndef WEIR_BENCH_RING_HH
#define WEIR_BENCH_RING_HH

#include "rivals.h"

namespace bench
{

template <class Queue> struct ring_calls {
	static void *create(size_t capacity)
	{
		return new Queue(capacity);
	}

	static void destroy(void *self)
	{
		delete static_cast<Queue *>(self);
	}

	static int enqueue(void *self, uint64_t value)
	{
		return static_cast<Queue *>(self)->enqueue(value);
	}

	static int dequeue(void *self, uint64_t *value)
	{
		return static_cast<Queue *>(self)->dequeue(*value);
	}

	static uint64_t pairs(void *self, uint64_t count)
	{
		return bench_pairs(self, count, enqueue, dequeue);
	}
};

/*
 * An entry of a priority queue, and the order with which a std::priority_queue returns the smallest
 * key first.
 */
struct keyed {
	int64_t key;
	uint64_t value;
};

struct later {
	bool operator()(const keyed &a, const keyed &b) const
	{
		return a.key > b.key;
	}
};

enum bounds { BOUNDED, UNBOUNDED };

template <class Queue> constexpr ring_contender ring(bench_about about, bounds bounds)
{
	ring_contender table{};

	table.about = about;
	table.unbounded = bounds == UNBOUNDED;
	table.create = ring_calls<Queue>::create;
	table.destroy = ring_calls<Queue>::destroy;
	table.enqueue = ring_calls<Queue>::enqueue;
	table.dequeue = ring_calls<Queue>::dequeue;
	table.pairs = ring_calls<Queue>::pairs;
	return table;
}

/*
 * A queue that waits: Class(capacity), void enqueue(value), void dequeue(value &). It cannot be
 * closed.
 */
template <class Queue> struct queue_calls {
	static void *create(size_t capacity)
	{
		return new Queue(capacity);
	}

	static void destroy(void *self)
	{
		delete static_cast<Queue *>(self);
	}

	static void enqueue(void *self, uint64_t value)
	{
		static_cast<Queue *>(self)->enqueue(value);
	}

	static int dequeue(void *self, uint64_t *value)
	{
		static_cast<Queue *>(self)->dequeue(*value);
		return 1;
	}
};

template <class Queue> constexpr queue_contender queue(bench_about about, bounds bounds)
{
	queue_contender table{};

	table.about = about;
	table.unbounded = bounds == UNBOUNDED;
	table.create = queue_calls<Queue>::create;
	table.destroy = queue_calls<Queue>::destroy;
	table.enqueue = queue_calls<Queue>::enqueue;
	table.dequeue = queue_calls<Queue>::dequeue;
	return table;
}

} // namespace bench

#endif
