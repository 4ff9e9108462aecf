/*
 * tbb_pipeline.cc - TBB's parallel_pipeline as a contender of the suite `data`. It pushes its results:
 * it runs in a thread of its own, and hands them over through a bounded queue of TBB.
 */
#include <cstdlib>
#include <cstring>
#include <memory>
#include <thread>

#include <tbb/concurrent_queue.h>
#include <tbb/parallel_pipeline.h>
#include <tbb/version.h>

#include "bench.h"
#include "data_work.h"
#include "rivals.h"

namespace
{

struct item {
	uint64_t number;
	float *row;
};

struct pipeline {
	explicit pipeline(data_job what) : job(what)
	{
		results.set_capacity(what == DATA_DIGITS ? DIGIT_AHEAD : WORKERS);
		thread = std::thread([this] { run(); });
	}

	~pipeline()
	{
		item left;

		stops.store(true, std::memory_order_relaxed);
		while (!ended.load(std::memory_order_acquire)) {
			if (results.try_pop(left))
				std::free(left.row);
		}
		thread.join();
		while (results.try_pop(left))
			std::free(left.row);
		while (shuffler.count > 0)
			std::free(shuffler.rows[--shuffler.count]);
		std::free(batch);
	}

	pipeline(const pipeline &) = delete;
	pipeline &operator=(const pipeline &) = delete;

	item work(item one) const
	{
		if (job == DATA_WORK) {
			bench_work_10_us();
			return one;
		}
		one.row = static_cast<float *>(std::malloc(sizeof(float) * DIGIT_PIXELS));
		bench_scale(bench_digits() + one.number % DIGIT_ROWS * DIGIT_PIXELS, one.row);
		return one;
	}

	void collect(item one)
	{
		float *drawn;

		if (job == DATA_WORK) {
			results.push(one);
			return;
		}
		drawn = bench_shuffle(&shuffler, one.row);
		if (drawn == nullptr)
			return;
		if (batch == nullptr)
			batch = static_cast<float *>(std::malloc(sizeof(float) * DIGIT_BATCH * DIGIT_PIXELS));
		std::memcpy(batch + filled++ * DIGIT_PIXELS, drawn, sizeof(float) * DIGIT_PIXELS);
		std::free(drawn);
		if (filled < DIGIT_BATCH)
			return;
		results.push({0, batch});
		batch = nullptr;
		filled = 0;
	}

	void run()
	{
		tbb::parallel_pipeline(
			2 * WORKERS,
			tbb::make_filter<void, item>(tbb::filter_mode::serial_in_order, [this](tbb::flow_control &control) {
				if (stops.load(std::memory_order_relaxed))
					control.stop();
				return item{next++, nullptr};
			}) & tbb::make_filter<item, item>(tbb::filter_mode::parallel, [this](item one) {
				return work(one);
			}) & tbb::make_filter<item, void>(tbb::filter_mode::serial_in_order, [this](item one) { collect(one); }));
		ended.store(true, std::memory_order_release);
	}

	data_job job;
	uint64_t next = 0;
	bench_shuffler shuffler = {};
	float *batch = nullptr;
	size_t filled = 0;
	std::atomic<bool> stops{false}, ended{false};
	tbb::concurrent_bounded_queue<item> results;
	std::thread thread;
};

void *create(data_job job)
{
	bench_work_10_us();
	(void)bench_digits();
	return new pipeline(job);
}

void destroy(void *self)
{
	delete static_cast<pipeline *>(self);
}

unsigned take(void *self, uint64_t *sum)
{
	auto *line = static_cast<pipeline *>(self);
	item one;

	line->results.pop(one);
	*sum += one.number;
	std::free(one.row);
	return line->job == DATA_DIGITS ? DIGIT_BATCH : 1;
}

} // namespace

extern "C" const data_contender tbb_data_contender = {
	{"TBB parallel_pipeline", "oneTBB " TBB_VERSION_STRING, nullptr, 0},
	1u << DATA_WORK | 1u << DATA_DIGITS,
	create,
	destroy,
	take,
};
