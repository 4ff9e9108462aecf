/*
 * atomic_queue.cc - atomic_queue's bounded queues with a capacity chosen at run time. An operation
 * reserves a slot by an index and then waits for the slot.
 *
 * AtomicQueueB holds atomic elements; one value of an element means "empty". AtomicQueueB2 holds
 * elements of any type, with a byte of state for each, and has at least 4096 slots. The capacity is
 * rounded up to a power of two, so it is not exact.
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
