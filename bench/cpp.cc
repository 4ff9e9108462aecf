/*
 * cpp.cc - what weir.hpp costs beside the same calls in C, and beside std::atomic<std::shared_ptr>.
 *
 * Prints nanoseconds of one read: by a view and its span, by the C calls that these make, and (C++20)
 * by a shared_ptr; for one thread, and for two threads beside a writer that replaces the value every
 * millisecond. The ways take turns for ROUNDS rounds, and the least counts.
 *
 *     weir-cpp [MILLISECONDS [ROUNDS]]
 *     weir-cpp view|calls READS      only reads, so that valgrind --tool=lackey can count instructions
 */
#include <weir/weir.hpp>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

namespace
{

enum { WORDS = 64, BATCH = 256, MOST_READERS = 2 };

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

/* Returns nanoseconds of a read in each of `readers` threads. */
template <class Way> double measure(unsigned readers, unsigned milliseconds)
{
	Way way;
	std::atomic<bool> stop{false};
	std::atomic<std::uint64_t> reads{0}, sink{0};
	std::thread threads[MOST_READERS];
	const auto begun = std::chrono::steady_clock::now();

	for (unsigned i = 0; i < readers; i++) {
		threads[i] = std::thread([&] {
			std::uint64_t sum = 0, count = 0;

			for (; !stop.load(std::memory_order_relaxed); count += BATCH) {
				for (int k = 0; k < BATCH; k++)
					sum += way.read();
			}
			reads += count;
			sink += sum;
		});
	}
	for (unsigned i = 0; i < milliseconds; i++) {
		std::this_thread::sleep_for(std::chrono::milliseconds(1));
		if (readers > 1)
			way.write(i + 2);
	}
	stop = true;
	for (unsigned i = 0; i < readers; i++)
		threads[i].join();
	const std::chrono::duration<double, std::nano> elapsed = std::chrono::steady_clock::now() - begun;
	if (sink < reads)
		std::exit(1); /* each word is at least 1 */
	return elapsed.count() * readers / static_cast<double>(reads.load());
}

/* For a count of instructions: the difference of two runs, for each read more. */
template <class Way> int only_read(unsigned long count)
{
	const Way way;
	std::uint64_t sum = 0;

	for (unsigned long i = 0; i < count; i++)
		sum += way.read();
	return sum == count ? 0 : 1;
}

} // namespace

int main(int argc, char **argv)
{
	if (argc > 2 && std::strcmp(argv[1], "view") == 0)
		return only_read<by_view>(std::strtoul(argv[2], nullptr, 10));
	if (argc > 2 && std::strcmp(argv[1], "calls") == 0)
		return only_read<by_c_calls>(std::strtoul(argv[2], nullptr, 10));

	const unsigned milliseconds = argc > 1 ? static_cast<unsigned>(std::strtoul(argv[1], nullptr, 10)) : 200;
	const unsigned rounds = argc > 2 ? static_cast<unsigned>(std::strtoul(argv[2], nullptr, 10)) : 7;

	for (unsigned readers = 1; readers <= MOST_READERS; readers++) {
		double view = 1e9, calls = 1e9;
#if defined(__cpp_lib_atomic_shared_ptr)
		double pointer = 1e9;
#endif

		for (unsigned i = 0; i < rounds; i++) {
			view = std::min(view, measure<by_view>(readers, milliseconds));
			calls = std::min(calls, measure<by_c_calls>(readers, milliseconds));
#if defined(__cpp_lib_atomic_shared_ptr)
			pointer = std::min(pointer, measure<by_shared_ptr>(readers, milliseconds));
#endif
		}
		std::printf("%u reader%s: view %.2f ns, the C calls %.2f ns (%+.2f)", readers,
		            readers > 1 ? "s beside a writer" : "", view, calls, view - calls);
#if defined(__cpp_lib_atomic_shared_ptr)
		std::printf(", std::atomic<std::shared_ptr> %.2f ns (%.1f times)", pointer, pointer / view);
#endif
		std::printf("\n");
	}
	return 0;
}
