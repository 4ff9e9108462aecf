/*
 * shared_ptr.cc - C++20's std::atomic<std::shared_ptr>: a read takes a reference. libstdc++ locks a
 * bit of the pointer meanwhile.
 */
#include <atomic>
#include <memory>
#include <new>

#include "reads.hh"

#define STD_TEXT_OF(version) "libstdc++ " #version
#define STD_TEXT(version) STD_TEXT_OF(version)

namespace
{

template <size_t N> struct cell final : bench::reads {
	using value = const bench::words<N>;

	cell() : current(std::make_shared<value>(0))
	{
	}

	uint64_t read_many(uint64_t count) override
	{
		uint64_t sum = 0;

		for (uint64_t i = 0; i < count; i++)
			sum += current.load(std::memory_order_acquire)->word[0];
		return sum;
	}

	uint64_t scan_many(uint64_t count) override
	{
		uint64_t torn = 0;

		for (uint64_t i = 0; i < count; i++)
			torn += current.load(std::memory_order_acquire)->torn();
		return torn;
	}

	void replace(uint64_t value_of_words) override
	{
		current.store(std::make_shared<value>(value_of_words), std::memory_order_release);
	}

	std::atomic<std::shared_ptr<value>> current;
};

} // namespace

extern "C" const read_contender shared_ptr_read_contender =
	bench::read<cell>({"std::atomic<std::shared_ptr>", STD_TEXT(_GLIBCXX_RELEASE), nullptr, 0});

namespace
{

using update_cell = cell<8>;

void *update_create()
{
	return new update_cell;
}

void update_destroy(void *self)
{
	delete static_cast<update_cell *>(self);
}

void update_many(void *self, uint64_t count)
{
	auto &current = static_cast<update_cell *>(self)->current;

	for (uint64_t i = 0; i < count; i++) {
		auto old = current.load(std::memory_order_acquire);
		auto next = std::make_shared<update_cell::value>(old->word[0] + 1);

		while (!current.compare_exchange_weak(old, next, std::memory_order_acq_rel, std::memory_order_acquire))
			next = std::make_shared<update_cell::value>(old->word[0] + 1);
	}
}

uint64_t update_value(void *self)
{
	return static_cast<update_cell *>(self)->current.load(std::memory_order_acquire)->word[0];
}

using kept_value = std::shared_ptr<update_cell::value>;

static_assert(sizeof(kept_value) <= sizeof(bench_kept));

const uint64_t *update_keep(void *self, bench_kept *place)
{
	auto *kept =
		new (place->words) kept_value(static_cast<update_cell *>(self)->current.load(std::memory_order_acquire));

	return (*kept)->word;
}

void update_drop(bench_kept *place)
{
	std::destroy_at(reinterpret_cast<kept_value *>(place->words));
}

} // namespace

extern "C" const update_contender shared_ptr_update_contender = {
	{"std::atomic<std::shared_ptr>", STD_TEXT(_GLIBCXX_RELEASE), nullptr, 0},
	update_create,
	update_destroy,
	nullptr,
	nullptr,
	update_many,
	update_value,
	update_keep,
	update_drop,
};
