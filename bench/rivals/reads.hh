/*
 * reads.hh - makes the table of a shared value that is written in C++. The value is a class
 * template over the number of its words, with these members:
 *
 *     uint64_t read_many(uint64_t count)      the sum of the first words
 *     uint64_t scan_many(uint64_t count)      how many reads saw words that differ
 *     void replace(uint64_t value)            one writer at a time
 *
 * The sizes that the suites use are compiled in. The choice of the size costs a virtual call per
 * loop, not per read.
 */
#ifndef WEIR_BENCH_READS_HH
#define WEIR_BENCH_READS_HH

#include <cstdlib>

#include "rivals.h"

namespace bench
{

template <size_t N> struct words {
	explicit words(uint64_t value)
	{
		for (auto &word : word)
			word = value;
	}

	bool torn() const
	{
		return bench_torn(word, sizeof(word));
	}

	uint64_t word[N];
};

struct reads {
	virtual ~reads() = default;
	virtual uint64_t read_many(uint64_t count) = 0;
	virtual uint64_t scan_many(uint64_t count) = 0;
	virtual void replace(uint64_t value) = 0;
};

template <template <size_t> class Cell> struct read_calls {
	static void *create(size_t bytes)
	{
		switch (bytes / sizeof(uint64_t)) {
		case 8: return static_cast<reads *>(new Cell<8>);
		case 64: return static_cast<reads *>(new Cell<64>);
		case 512: return static_cast<reads *>(new Cell<512>);
		case 8192: return static_cast<reads *>(new Cell<8192>);
		default: std::exit(3);
		}
	}

	static void destroy(void *self)
	{
		delete static_cast<reads *>(self);
	}

	static uint64_t read_many(void *self, uint64_t count)
	{
		return static_cast<reads *>(self)->read_many(count);
	}

	static uint64_t scan_many(void *self, uint64_t count)
	{
		return static_cast<reads *>(self)->scan_many(count);
	}

	static void replace(void *self, uint64_t value)
	{
		static_cast<reads *>(self)->replace(value);
	}
};

template <template <size_t> class Cell> constexpr read_contender read(bench_about about)
{
	read_contender table{};

	table.about = about;
	table.create = read_calls<Cell>::create;
	table.destroy = read_calls<Cell>::destroy;
	table.read_many = read_calls<Cell>::read_many;
	table.scan_many = read_calls<Cell>::scan_many;
	table.write = read_calls<Cell>::replace;
	return table;
}

} // namespace bench

#endif
