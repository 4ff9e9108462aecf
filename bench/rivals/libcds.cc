/*
 * libcds.cc - libcds: Vyukov's bounded ring; two unbounded queues with hazard pointers (Michael and
 * Scott's queue and the basket queue); and Hunt's priority heap, which has a lock per entry.
 *
 * A thread must be attached before it uses a structure with hazard pointers. thread_begin()
 * attaches every thread.
 */
#include <cds/container/basket_queue.h>
#include <cds/container/mspriority_queue.h>
#include <cds/container/msqueue.h>
#include <cds/container/vyukov_mpmc_cycle_queue.h>
#include <cds/gc/hp.h>
#include <cds/init.h>
#include <cds/version.h>

#include "ring.hh"

namespace
{

const char version[] = "libcds " CDS_VERSION_STRING;

/* Runs with the first queue. It is never undone, because libcds cannot be started a second time. */
void start_once()
{
	static const bool started = [] {
		cds::Initialize();
		(void)new cds::gc::HP;
		return true;
	}();

	(void)started;
}

void thread_begin(void *)
{
	cds::threading::Manager::attachThread();
}

void thread_end(void *)
{
	cds::threading::Manager::detachThread();
}

/*
 * The thread that retires a node frees it, so a thread is attached while it creates or destroys a
 * queue.
 */
struct attached {
	attached() : was(cds::threading::Manager::isThreadAttached())
	{
		if (!was)
			cds::threading::Manager::attachThread();
	}

	~attached()
	{
		if (!was)
			cds::threading::Manager::detachThread();
	}

	bool was;
};

template <class Queue> struct calls {
	static void *create(size_t)
	{
		start_once();
		attached guard;
		return new Queue;
	}

	static void destroy(void *self)
	{
		attached guard;
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

template <class Queue> constexpr ring_contender unbounded(const char *name)
{
	ring_contender table{};

	table.about = {name, version, nullptr, 1};
	table.unbounded = 1;
	table.create = calls<Queue>::create;
	table.destroy = calls<Queue>::destroy;
	table.thread_begin = thread_begin;
	table.thread_end = thread_end;
	table.enqueue = calls<Queue>::enqueue;
	table.dequeue = calls<Queue>::dequeue;
	table.pairs = calls<Queue>::pairs;
	return table;
}

struct vyukov {
	explicit vyukov(size_t capacity) : queue(capacity < 2 ? 2 : capacity)
	{
	}

	bool enqueue(uint64_t value)
	{
		return queue.enqueue(value);
	}

	bool dequeue(uint64_t &value)
	{
		return queue.dequeue(value);
	}

	cds::container::VyukovMPMCCycleQueue<uint64_t> queue;
};

struct hunt {
	explicit hunt(size_t capacity) : queue(capacity < 2 ? 2 : capacity)
	{
	}

	bool enqueue(uint64_t value)
	{
		return queue.push(bench::keyed{bench_key_of(value), value});
	}

	bool dequeue(uint64_t &value)
	{
		bench::keyed first;

		if (!queue.pop(first))
			return false;
		value = first.value;
		return true;
	}

	struct traits : cds::container::mspriority_queue::traits {
		typedef bench::later less;
	};
	cds::container::MSPriorityQueue<bench::keyed, traits> queue;
};

} // namespace

extern "C" {
const ring_contender cds_vyukov_ring_contender =
	bench::ring<vyukov>({"cds::VyukovMPMCCycleQueue", version, nullptr, 0}, bench::BOUNDED);
const ring_contender cds_ms_priority_contender =
	bench::ring<hunt>({"cds::MSPriorityQueue", version, "equal keys in any order", 0}, bench::BOUNDED);
const ring_contender cds_ms_ring_contender =
	unbounded<cds::container::MSQueue<cds::gc::HP, uint64_t>>("cds::MSQueue<HP>");
const ring_contender cds_basket_ring_contender =
	unbounded<cds::container::BasketQueue<cds::gc::HP, uint64_t>>("cds::BasketQueue<HP>");
}
