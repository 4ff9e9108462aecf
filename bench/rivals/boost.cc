/*
 * boost.cc - boost::lockfree::queue (Michael and Scott's queue), with nodes allocated in advance.
 */
#include <boost/lockfree/queue.hpp>
#include <boost/version.hpp>

#include "ring.hh"

namespace
{

struct ms_queue {
	explicit ms_queue(size_t capacity) : queue(capacity)
	{
	}

	bool enqueue(uint64_t value)
	{
		return queue.bounded_push(value);
	}

	bool dequeue(uint64_t &value)
	{
		return queue.pop(value);
	}

	boost::lockfree::queue<uint64_t> queue;
};

} // namespace

extern "C" const ring_contender boost_ring_contender =
	bench::ring<ms_queue>({"boost::lockfree::queue", "Boost " BOOST_LIB_VERSION, nullptr, 1}, bench::BOUNDED);
