/*
 * moodycamel.cc - moodycamel's ConcurrentQueue and its blocking form. Each producer has a queue of
 * its own, so values of different producers are not in order, and the whole is not linearizable.
 */
#include <concurrentqueue/blockingconcurrentqueue.h>
#include <concurrentqueue/concurrentqueue.h>

#include "ring.hh"

namespace
{

const char version[] = "moodycamel " WEIR_BENCH_MOODYCAMEL_VERSION;
const char lacks[] = "order of values of different producers";

struct trying {
	explicit trying(size_t capacity) : queue(capacity)
	{
	}

	bool enqueue(uint64_t value)
	{
		return queue.enqueue(value);
	}

	bool dequeue(uint64_t &value)
	{
		return queue.try_dequeue(value);
	}

	moodycamel::ConcurrentQueue<uint64_t> queue;
};

struct waiting {
	explicit waiting(size_t capacity) : queue(capacity)
	{
	}

	void enqueue(uint64_t value)
	{
		queue.enqueue(value);
	}

	void dequeue(uint64_t &value)
	{
		queue.wait_dequeue(value);
	}

	moodycamel::BlockingConcurrentQueue<uint64_t> queue;
};

} // namespace

extern "C" {
const ring_contender moodycamel_ring_contender =
	bench::ring<trying>({"moodycamel::ConcurrentQueue", version, lacks, 1}, bench::UNBOUNDED);
const queue_contender moodycamel_queue_contender =
	bench::queue<waiting>({"moodycamel::BlockingConcurrentQueue", version, lacks, 0}, bench::UNBOUNDED);
}
