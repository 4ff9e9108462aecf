/*
 * urcu.h - what the three liburcu-bp readers share: a pointer to the value, replaced by one writer at a time.
 *
 * The writer frees after a grace period for each 256 values, as a careful user would.
 */
#ifndef WEIR_BENCH_URCU_H
#define WEIR_BENCH_URCU_H

#include "rivals.h"

struct urcu_value {
	struct shared_value value;
	_Atomic(long) references;
};

struct urcu_cell {
	struct urcu_value *current;
	struct urcu_value *retired[256];
	unsigned waiting;
};

void *urcu_create(void);
void urcu_destroy(void *self);
void urcu_thread_begin(void *self);
void urcu_thread_end(void *self);
void urcu_write(void *self, uint64_t value);
void urcu_release(struct urcu_value *value);

#endif
