/*
 * values.h - what collections have in common: each value's put and take, and bounds on how many are inside.
 */
#ifndef HISTORY_VALUES_H
#define HISTORY_VALUES_H

#include "history/order.h"

#define HISTORY_NO_OP UINT32_MAX

struct history_value {
	uint32_t put, take; /* operations; take may be HISTORY_NO_OP */
};

struct history_values {
	struct history_order order;
	struct history_value *value;
	uint32_t count;
};

/*
 * Pairs puts with takes. HISTORY_VIOLATED: "put twice", "taken twice", "never put", "taken early". history_values_fini
 * in any case.
 */
enum history_verdict history_values_init(struct history_values *values, const struct history *history,
                                         struct history_finding *finding);
void history_values_fini(struct history_values *values);

/*
 * Whether at each answer that tells how full the collection is, it may have been that full: "empty", "full",
 * "capacity", "stays". Surely inside: from the return of the put to the call of the take. Possibly inside: from the
 * call to the return.
 */
enum history_verdict history_check_counts(const struct history *history, const struct history_values *values,
                                          const struct history_bounds *bounds, struct history_finding *finding);

/* First event after the value's take, and first event of it; the end when it was never taken. */
uint32_t history_take_returned(const struct history_values *values, uint32_t value);
uint32_t history_take_called(const struct history_values *values, uint32_t value);

#endif
