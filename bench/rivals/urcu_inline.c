/*
 * urcu_inline.c - liburcu-bp with its read side inlined: the fastest it can be.
 */
#define _LGPL_SOURCE
#include <urcu-bp.h>

#include "urcu.h"

static uint64_t read_many(void *self, uint64_t count)
{
	struct urcu_cell *cell = self;
	uint64_t sum = 0;

	for (uint64_t i = 0; i < count; i++) {
		rcu_read_lock();
		sum += rcu_dereference(cell->current)->value.words[0];
		rcu_read_unlock();
	}
	return sum;
}

const struct read_contender urcu_inline_read_contender = {"liburcu-bp section (inlined)",
                                                          "liburcu",
                                                          0,
                                                          urcu_create,
                                                          urcu_destroy,
                                                          urcu_thread_begin,
                                                          urcu_thread_end,
                                                          read_many,
                                                          urcu_write};
