/*
 * xenium.cc - xenium's queues. Vyukov's ring is bounded. The other two are linked lists whose nodes
 * xenium reclaims. They use hazard pointers here, the only one of its schemes that bounds the
 * number of retired nodes.
 */
#include <xenium/michael_scott_queue.hpp>
#include <xenium/policy.hpp>
#include <xenium/ramalhete_queue.hpp>
#include <xenium/reclamation/hazard_pointer.hpp>
#include <xenium/vyukov_bounded_queue.hpp>

#include "ring.hh"

namespace
{

const char version[] = "xenium " WEIR_BENCH_XENIUM_VERSION;
using reclaimer = xenium::policy::reclaimer<xenium::reclamation::hazard_pointer<>>;

size_t power_of_two(size_t capacity)
{
	size_t size = 2;

	while (size < capacity)
		size *= 2;
	return size;
}

/*
 * The weak calls do not wait for a call that another thread has begun, so they may report a queue
 * as full or empty although it is not.
 */
struct vyukov {
	explicit vyukov(size_t capacity) : queue(power_of_two(capacity))
	{
	}

	bool enqueue(uint64_t value)
	{
		return queue.try_push_weak(value);
	}

	bool dequeue(uint64_t &value)
	{
		return queue.try_pop_weak(value);
	}

	xenium::vyukov_bounded_queue<uint64_t> queue;
};

struct michael_scott {
	explicit michael_scott(size_t)
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

	xenium::michael_scott_queue<uint64_t, reclaimer> queue;
};

/*
 * The queue holds pointers and uses bits at both ends of them. The value lies between these bits.
 */
struct item;

struct ramalhete {
	enum { SHIFT = 4 };

	explicit ramalhete(size_t)
	{
	}

	bool enqueue(uint64_t value)
	{
		queue.push(reinterpret_cast<item *>(static_cast<uintptr_t>(value << SHIFT)));
		return true;
	}

	bool dequeue(uint64_t &value)
	{
		item *got = nullptr;

		if (!queue.try_pop(got))
			return false;
		value = reinterpret_cast<uintptr_t>(got) >> SHIFT;
		return true;
	}

	xenium::ramalhete_queue<item *, reclaimer> queue;
};

} // namespace

extern "C" {
const ring_contender xenium_vyukov_ring_contender = bench::ring<vyukov>(
	{"xenium::vyukov_bounded_queue (weak)", version, "fails beside a stopped thread", 0}, bench::BOUNDED);
const ring_contender xenium_michael_scott_ring_contender =
	bench::ring<michael_scott>({"xenium::michael_scott_queue", version, nullptr, 1}, bench::UNBOUNDED);
const ring_contender xenium_ramalhete_ring_contender =
	bench::ring<ramalhete>({"xenium::ramalhete_queue", version, nullptr, 1}, bench::UNBOUNDED);
}
