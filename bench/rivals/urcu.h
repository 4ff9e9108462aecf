/*
 * urcu.h - what the readers of liburcu-bp share: a pointer to the value, replaced by one writer at a time.
 *
 * The writer frees after a grace period for each 256 values, as a careful user would.
 */
#ifndef WEIR_BENCH_URCU_H
#define WEIR_BENCH_URCU_H

#include "rivals.h"

struct urcu_value {
	_Atomic(long) references;
	_Alignas(64) uint64_t words[];
};

struct urcu_cell {
	struct urcu_value *current;
	struct urcu_value *retired[256];
	size_t bytes;
	unsigned waiting;
};

void *urcu_create(size_t bytes);
void urcu_destroy(void *self);
void urcu_thread_begin(void *self);
void urcu_thread_end(void *self);
void urcu_write(void *self, uint64_t value);
void urcu_release(struct urcu_value *value);

#endif
