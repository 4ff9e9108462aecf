/*
 * tbb.cc - TBB's queues: the bounded queue, once with calls that wait and once with calls that do
 * not; the unbounded queue; and the priority queue.
 */
#include <tbb/concurrent_priority_queue.h>
#include <tbb/concurrent_queue.h>
#include <tbb/enumerable_thread_specific.h>
#include <tbb/version.h>

#include "ring.hh"

namespace
{

const char version[] = "oneTBB " TBB_VERSION_STRING;

struct bounded {
	explicit bounded(size_t capacity)
	{
		queue.set_capacity(static_cast<std::ptrdiff_t>(capacity));
	}

	bool enqueue(uint64_t value)
	{
		return queue.try_push(value);
	}

	bool dequeue(uint64_t &value)
	{
		return queue.try_pop(value);
	}

	tbb::concurrent_bounded_queue<uint64_t> queue;
};

struct waiting {
	explicit waiting(size_t capacity)
	{
		queue.set_capacity(static_cast<std::ptrdiff_t>(capacity));
	}

	void enqueue(uint64_t value)
	{
		queue.push(value);
	}

	void dequeue(uint64_t &value)
	{
		queue.pop(value);
	}

	tbb::concurrent_bounded_queue<uint64_t> queue;
};

struct unbounded {
	explicit unbounded(size_t)
	{
	}

	bool enqueue(uint64_t value)
	{
		queue.push(value);
		return true;
	}

	bool dequeue(uint64_t &value)
	{
		return queue.try_pop(value);
	}

	tbb::concurrent_queue<uint64_t> queue;
};

/* Nodes are vector entries under an aggregator: one thread does the work of all that wait. */
struct by_priority {
	explicit by_priority(size_t capacity) : queue(capacity)
	{
	}

	bool enqueue(uint64_t value)
	{
		queue.push(bench::keyed{bench_key_of(value), value});
		return true;
	}

	bool dequeue(uint64_t &value)
	{
		bench::keyed first;

		if (!queue.try_pop(first))
			return false;
		value = first.value;
		return true;
	}

	tbb::concurrent_priority_queue<bench::keyed, bench::later> queue;
};

/* A number for each thread. The sum is not safe while other threads count or start to count. */
using counts = tbb::enumerable_thread_specific<uint64_t>;

void *counts_create()
{
	return new counts(uint64_t{0});
}

void counts_destroy(void *self)
{
	delete static_cast<counts *>(self);
}

void counts_add_many(void *self, uint64_t count)
{
	counts *all = static_cast<counts *>(self);

	for (uint64_t i = 0; i < count; i++)
		all->local()++;
}

uint64_t counts_read(void *self)
{
	return static_cast<counts *>(self)->combine([](uint64_t a, uint64_t b) { return a + b; });
}

counter_contender counting()
{
	counter_contender c = {};

	c.about = {"tbb::enumerable_thread_specific", version, "cannot be read while threads add", 0};
	c.reads_alone = 1;
	c.create = counts_create;
	c.destroy = counts_destroy;
	c.add_many = counts_add_many;
	c.read = counts_read;
	return c;
}

} // namespace

extern "C" {
const counter_contender tbb_counter_contender = counting();
const ring_contender tbb_ring_contender =
	bench::ring<bounded>({"tbb::concurrent_bounded_queue", version, nullptr, 0}, bench::BOUNDED);
const ring_contender tbb_unbounded_ring_contender =
	bench::ring<unbounded>({"tbb::concurrent_queue", version, nullptr, 0}, bench::UNBOUNDED);
const ring_contender tbb_priority_contender = bench::ring<by_priority>(
	{"tbb::concurrent_priority_queue", version, "equal keys in any order", 0}, bench::UNBOUNDED);
const queue_contender tbb_queue_contender =
	bench::queue<waiting>({"tbb::concurrent_bounded_queue", version, nullptr, 0}, bench::BOUNDED);
}
