/*
 * atomic_queue.cc - atomic_queue's bounded queues with a capacity chosen at run time. A slot is reserved by an index, then waited for.
 *
 * One holds atomic elements, of which one value means "nothing here"; the other any element, with a byte of state beside each and at
 * least 4096 slots. Its power of two is not an exact capacity.
 */
#include <atomic_queue/atomic_queue.h>

#include "ring.hh"

namespace
{

const char version[] = "atomic_queue " WEIR_BENCH_ATOMIC_QUEUE_VERSION;

template <class Queue> struct tries {
	explicit tries(size_t capacity) : queue(static_cast<unsigned>(capacity))
	{
	}

	bool enqueue(uint64_t value)
	{
		return queue.try_push(value);
	}

	bool dequeue(uint64_t &value)
	{
		return queue.try_pop(value);
	}

	Queue queue;
};

} // namespace

extern "C" {
const ring_contender atomic_queue_ring_contender = bench::ring<tries<atomic_queue::AtomicQueueB<uint64_t>>>(
	{"atomic_queue::AtomicQueueB", version, nullptr, 0}, bench::BOUNDED);
const ring_contender atomic_queue2_ring_contender = bench::ring<tries<atomic_queue::AtomicQueueB2<uint64_t>>>(
	{"atomic_queue::AtomicQueueB2", version, "a capacity below 4096", 0}, bench::BOUNDED);
}
