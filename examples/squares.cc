/*
 * squares.cc - weir.hpp: work through a queue of owned objects, and a result that readers see while it
 * changes.
 *
 * Workers take jobs from a queue until it is closed and drained, and add what they found to a variable.
 * A reader takes views of it meanwhile; each is of one version.
 */
#include <weir/weir.hpp>

#include <cstdint>
#include <cstdio>
#include <memory>
#include <thread>
#include <vector>

namespace
{

enum { WORKERS = 3, JOBS = 300 };

struct job {
	std::int64_t number;
};

/* Values: {jobs done, sum of squares}. */
weir::result<weir::tensor> with_square(const weir::tensor &now, std::int64_t number)
{
	const auto before = now.as<std::int64_t>();

	return weir::tensor::copy_of({(*before)[0] + 1, (*before)[1] + number * number});
}

bool work(const weir::queue<job> &jobs, const weir::var &results)
{
	for (;;) {
		const auto next = jobs.get(std::chrono::seconds(60));

		if (!next)
			return next.code() == WEIR_OUT_OF_RANGE; /* closed and drained */
		if (!results.update([&](const weir::tensor &now) { return with_square(now, (*next)->number); }))
			return false;
	}
}

} // namespace

int main()
{
	auto jobs = weir::queue<job>::create({16, "jobs"});
	auto results = weir::var::create(*weir::tensor::copy_of<std::int64_t>({0, 0}));
	std::vector<std::thread> workers;
	bool right[WORKERS] = {};
	std::int64_t expected = 0;

	if (!jobs || !results)
		return 1;
	for (bool &mine : right)
		workers.emplace_back([&mine, &jobs, &results] { mine = work(*jobs, *results); });
	for (std::int64_t number = 1; number <= JOBS; number++) {
		if (!jobs->emplace(job{number}))
			return 1;
		expected += number * number;
		const auto now = results->read();
		if (!now || (*now->as<std::int64_t>())[0] != static_cast<std::int64_t>(now->version()) - 1)
			return 1;
	}
	if (jobs->close() != WEIR_OK)
		return 1;
	for (std::thread &worker : workers)
		worker.join();
	for (const bool mine : right) {
		if (!mine)
			return 1;
	}
	const auto last = results->read();
	const auto found = last->as<std::int64_t>();
	std::printf("%lld jobs, sum of squares %lld\n", static_cast<long long>((*found)[0]),
	            static_cast<long long>((*found)[1]));
	return (*found)[0] == JOBS && (*found)[1] == expected ? 0 : 1;
}
