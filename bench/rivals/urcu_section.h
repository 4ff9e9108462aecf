/*
 * urcu_section.h - reads inside a section of liburcu-bp; whoever includes it has chosen, by _LGPL_SOURCE, whether liburcu is inlined.
 */
#ifndef WEIR_BENCH_URCU_SECTION_H
#define WEIR_BENCH_URCU_SECTION_H

#include <urcu-bp.h>

#include "urcu.h"

static inline uint64_t urcu_section_read_many(void *self, uint64_t count)
{
	struct urcu_cell *cell = self;
	uint64_t sum = 0;

	for (uint64_t i = 0; i < count; i++) {
		rcu_read_lock();
		sum += rcu_dereference(cell->current)->words[0];
		rcu_read_unlock();
	}
	return sum;
}

static inline uint64_t urcu_section_scan_many(void *self, uint64_t count)
{
	struct urcu_cell *cell = self;
	uint64_t torn = 0;

	for (uint64_t i = 0; i < count; i++) {
		rcu_read_lock();
		torn += (uint64_t)bench_torn(rcu_dereference(cell->current)->words, cell->bytes);
		rcu_read_unlock();
	}
	return torn;
}

#endif
