/*
 * values.h - the common part of collections: each value's put and take, and bounds on how many
 * values are inside.
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
 * Pairs puts with takes. HISTORY_VIOLATED: "put twice", "taken twice", "never put", "taken early".
 * history_values_fini() must be called in any case.
 */
enum history_verdict history_values_init(struct history_values *values, const struct history *history,
                                         struct history_finding *finding);
void history_values_fini(struct history_values *values);

/*
 * Checks each result that tells how full the collection is. The collection must possibly have been
 * that full at some moment of the call. Patterns: "empty", "full", "capacity", "stays". A value is
 * certainly inside from the return of the put to the call of the take. It is possibly inside from
 * the call of the put to the return of the take.
 */
enum history_verdict history_check_counts(const struct history *history, const struct history_values *values,
                                          const struct history_bounds *bounds, struct history_finding *finding);

/*
 * Return the number of the return and of the call of the value's take, or of the end if the value
 * was never taken.
 */
uint32_t history_take_returned(const struct history_values *values, uint32_t value);
uint32_t history_take_called(const struct history_values *values, uint32_t value);

#endif
