/*
 * cpp.cc - what weir.hpp costs beside the same calls in C, and beside std::atomic<std::shared_ptr>.
 *
 * Prints nanoseconds of one read: by a view and its span, by the C calls that these make, by a handle alone
 * (weir_var_read() and weir_read_release()), and (C++20) by a shared_ptr.
 *
 * First for one thread beside the main one (in a process with one thread, a shared_ptr counts without atomics).
 * The ways take turns, batch by batch, and the least batch of each counts. So all ways see the same machine,
 * stack and record. Their loops begin at multiples of 64 bytes (bench/meson.build): where a loop of calls lies moves
 * its time by up to 2 ns, which is more than what is to be seen. weir-cost counts the instructions (bench/costs.tsv).
 *
 * Then for two threads, which read all the time, beside a writer that replaces the value every millisecond. The ways
 * take turns for ROUNDS rounds, each for so many milliseconds, and the median counts: the least would be that of a
 * moment in which the machine let only one of the readers run, and a shared_ptr was not contended.
 *
 *     weir-cpp [MILLISECONDS [ROUNDS]]
 */
#include <weir/weir.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <thread>
#include <vector>

namespace
{

constexpr unsigned WORDS = 64, BATCH = 4096, BATCHES_OF_A_ROUND = 50, READERS = 2;

/* The compiler would make a call of one way and not of another. */
#define ALIKE [[gnu::always_inline]]

weir::tensor value_of(std::uint64_t number)
{
	return *weir::tensor::wrap(std::vector<std::uint64_t>(WORDS, number));
}

struct by_view {
	by_view() : var(*weir::var::create(value_of(1)))
	{
	}
	ALIKE std::uint64_t read() const
	{
		const auto now = var.read();

		return (*now->as<std::uint64_t>())[0];
	}
	void write(std::uint64_t number)
	{
		(void)var.assign(value_of(number)).code();
	}
	weir::var var;
};

/* The same questions: is it there, are they such elements, how many, where. */
struct by_c_calls : by_view {
	ALIKE std::uint64_t read() const
	{
		weir_read now;
		std::uint64_t first = 0;

		if (weir_var_read(var.get(), &now) != WEIR_OK)
			return 0;
		if (weir_tensor_dtype(now.tensor) == WEIR_U64 && weir_tensor_element_count(now.tensor) > 0)
			first = *static_cast<const std::uint64_t *>(weir_tensor_data(now.tensor));
		weir_read_release(&now);
		return first;
	}
};

/* What the other figures of a handle are about (docs/benchmarks.md): no look at the value. */
struct by_handle : by_view {
	ALIKE std::uint64_t read() const
	{
		weir_read now;
		std::uint64_t version;

		if (weir_var_read(var.get(), &now) != WEIR_OK)
			return 0;
		version = now.version;
		weir_read_release(&now);
		return version;
	}
};

#if defined(__cpp_lib_atomic_shared_ptr)
struct by_shared_ptr {
	using words = std::vector<std::uint64_t>;

	by_shared_ptr() : current(std::make_shared<const words>(WORDS, 1))
	{
	}
	ALIKE std::uint64_t read() const
	{
		return (*current.load(std::memory_order_acquire))[0];
	}
	void write(std::uint64_t number)
	{
		current.store(std::make_shared<const words>(WORDS, number), std::memory_order_release);
	}
	std::atomic<std::shared_ptr<const words>> current;
};
#endif

using nanoseconds = std::chrono::duration<double, std::nano>;

template <class Way> [[gnu::noinline, gnu::aligned(64)]] std::uint64_t read_batch(const Way &way)
{
	std::uint64_t sum = 0;

	for (unsigned i = 0; i < BATCH; i++)
		sum += way.read();
	return sum;
}

/* Each word, and each version, is at least 1. */
void must_have_read(std::uint64_t sum, std::uint64_t reads)
{
	if (sum < reads)
		std::exit(1);
}

/* A way, and the time of one read in each batch or round. */
template <class Way> struct contender {
	Way way;
	std::vector<double> times;

	void read_alone()
	{
		const auto begun = std::chrono::steady_clock::now();
		const std::uint64_t sum = read_batch(way);
		const nanoseconds elapsed = std::chrono::steady_clock::now() - begun;

		must_have_read(sum, BATCH);
		times.push_back(elapsed.count() / BATCH);
	}
	void read_beside_a_writer(unsigned milliseconds);
	/* The least time, or the median. */
	double at(bool median)
	{
		std::sort(times.begin(), times.end());
		return times.empty() ? 0 : times[median ? times.size() / 2 : 0];
	}
};

template <class Way> void contender<Way>::read_beside_a_writer(unsigned milliseconds)
{
	std::atomic<bool> stop{false};
	std::atomic<std::uint64_t> reads{0}, sums{0};
	std::thread threads[READERS];
	const auto begun = std::chrono::steady_clock::now();

	for (std::thread &thread : threads) {
		thread = std::thread([&] {
			std::uint64_t sum = 0, count = 0;

			for (; !stop.load(std::memory_order_relaxed); count += BATCH)
				sum += read_batch(way);
			reads += count;
			sums += sum;
		});
	}
	for (unsigned i = 0; i < milliseconds; i++) {
		std::this_thread::sleep_for(std::chrono::milliseconds(1));
		way.write(i + 2);
	}
	stop = true;
	for (std::thread &thread : threads)
		thread.join();
	const nanoseconds elapsed = std::chrono::steady_clock::now() - begun;
	must_have_read(sums, reads);
	times.push_back(elapsed.count() * READERS / static_cast<double>(reads.load()));
}

struct contenders {
	contender<by_view> view;
	contender<by_c_calls> calls;
	contender<by_handle> handle;
#if defined(__cpp_lib_atomic_shared_ptr)
	contender<by_shared_ptr> pointer;
#endif

	template <class Turn> void take_turns(Turn &&turn)
	{
		turn(view);
		turn(calls);
		turn(handle);
#if defined(__cpp_lib_atomic_shared_ptr)
		turn(pointer);
#endif
	}
	void print(const char *who, bool median)
	{
		const double seen = view.at(median), by_calls = calls.at(median);

		std::printf("%s: view and span %.2f ns, the same C calls %.2f ns (%+.2f), a handle alone %.2f ns", who, seen,
		            by_calls, seen - by_calls, handle.at(median));
#if defined(__cpp_lib_atomic_shared_ptr)
		std::printf(", std::atomic<std::shared_ptr> %.2f ns (%.1f times the view)", pointer.at(median),
		            pointer.at(median) / seen);
#endif
		std::printf("\n");
	}
};

} // namespace

int main(int argc, char **argv)
{
	const unsigned milliseconds = argc > 1 ? static_cast<unsigned>(std::strtoul(argv[1], nullptr, 10)) : 200;
	const unsigned rounds = argc > 2 ? static_cast<unsigned>(std::strtoul(argv[2], nullptr, 10)) : 7;
	contenders alone, together;

	std::thread([&alone, rounds] {
		for (unsigned i = 0; i < rounds * BATCHES_OF_A_ROUND; i++)
			alone.take_turns([](auto &each) { each.read_alone(); });
	}).join();
	alone.print("1 reader, least", false);
	for (unsigned i = 0; i < rounds; i++)
		together.take_turns([milliseconds](auto &each) { each.read_beside_a_writer(milliseconds); });
	together.print("2 readers beside a writer, median", true);
	return 0;
}
