/*
 * values.c - pairs of put and take, and counts of the values inside; see values.h.
 *
 * Source. Henzinger, Sezgin and Vafeiadis (CONCUR 2013) give these patterns: a value was never put,
 * was taken twice, or was taken before its put; or a take returned "empty" although at every moment
 * some value was certainly inside. Together with the pattern of order in fifo.c they are complete
 * for a queue, as these authors and Bouajjani, Emmi, Enea and Hamza (ICALP 2015) show. The bounds
 * count the values that are certainly inside and possibly inside at each moment. We know of no
 * publication of these bounds.
 */
#include "history/values.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

uint32_t history_take_returned(const struct history_values *values, uint32_t value)
{
	uint32_t take = values->value[value].take;

	return take == HISTORY_NO_OP ? values->order.events : values->order.returned[take];
}

uint32_t history_take_called(const struct history_values *values, uint32_t value)
{
	uint32_t take = values->value[value].take;

	return take == HISTORY_NO_OP ? values->order.events : values->order.called[take];
}

/* -- pairing ----------------------------------------------------------------------------------- */

/* Open addressing; a slot holds a value's index + 1. */
struct table {
	uint32_t *slot;
	size_t mask;
};

static uint64_t scatter(uint64_t value)
{
	value *= UINT64_C(0x9e3779b97f4a7c15);
	return value ^ value >> 29;
}

static uint32_t *find_slot(const struct table *table, const struct history *history,
                           const struct history_values *values, uint64_t value)
{
	size_t place = (size_t)scatter(value) & table->mask;

	while (table->slot[place] != 0 && history->op[values->value[table->slot[place] - 1].put].argument != value)
		place = (place + 1) & table->mask;
	return &table->slot[place];
}

static enum history_verdict pair_puts(const struct table *table, const struct history *history,
                                      struct history_values *values, struct history_finding *finding)
{
	for (uint32_t i = 0; i < history->count; i++) {
		const struct history_op *op = &history->op[i];
		uint32_t *slot;

		if (op->kind < HISTORY_PUT || op->kind > HISTORY_TAKE_EMPTY)
			return history_malformed(finding, i, "it is not an operation of a collection");
		if (op->kind != HISTORY_PUT)
			continue;
		slot = find_slot(table, history, values, op->argument);
		if (*slot != 0) {
			(void)history_violated(finding, "put twice", "value %" PRIu64 " was put in twice", op->argument);
			history_witness(finding, values->value[*slot - 1].put);
			history_witness(finding, i);
			return HISTORY_VIOLATED;
		}
		values->value[values->count++] = (struct history_value){i, HISTORY_NO_OP};
		*slot = values->count;
	}
	return HISTORY_HOLDS;
}

static enum history_verdict pair_take(struct history_values *values, uint32_t *slot, uint32_t take, uint64_t result,
                                      struct history_finding *finding)
{
	struct history_value *value = *slot == 0 ? NULL : &values->value[*slot - 1];

	if (value == NULL) {
		(void)history_violated(finding, "never put", "value %" PRIu64 " came out, but never went in", result);
	} else if (value->take != HISTORY_NO_OP) {
		(void)history_violated(finding, "taken twice", "value %" PRIu64 " came out twice", result);
		history_witness(finding, value->put);
		history_witness(finding, value->take);
	} else if (values->order.returned[take] < values->order.called[value->put]) {
		(void)history_violated(finding, "taken early", "value %" PRIu64 " came out before it went in", result);
		history_witness(finding, value->put);
	} else {
		value->take = take;
		return HISTORY_HOLDS;
	}
	history_witness(finding, take);
	return HISTORY_VIOLATED;
}

static enum history_verdict pair_all(const struct table *table, const struct history *history,
                                     struct history_values *values, struct history_finding *finding)
{
	enum history_verdict verdict = pair_puts(table, history, values, finding);

	for (uint32_t i = 0; verdict == HISTORY_HOLDS && i < history->count; i++) {
		uint64_t result = history->op[i].result;

		if (history->op[i].kind == HISTORY_TAKE)
			verdict = pair_take(values, find_slot(table, history, values, result), i, result, finding);
	}
	return verdict;
}

enum history_verdict history_values_init(struct history_values *values, const struct history *history,
                                         struct history_finding *finding)
{
	struct table table = {.mask = 15};
	enum history_verdict verdict;

	memset(values, 0, sizeof(*values));
	verdict = history_order_init(&values->order, history, finding);
	if (verdict != HISTORY_HOLDS)
		return verdict;
	while (table.mask < 2 * history->count)
		table.mask = 2 * table.mask + 1;
	table.slot = calloc(table.mask + 1, sizeof(*table.slot));
	values->value = malloc((history->count + 1) * sizeof(*values->value));
	if (table.slot == NULL || values->value == NULL)
		verdict = history_no_memory(finding);
	else
		verdict = pair_all(&table, history, values, finding);
	free(table.slot);
	return verdict;
}

void history_values_fini(struct history_values *values)
{
	history_order_fini(&values->order);
	free(values->value);
}

/* -- bounds ------------------------------------------------------------------------------------ */

struct inside {
	struct history_counts surely, possibly;
};

static int count_inside(struct inside *inside, const struct history_values *values)
{
	const struct history_order *order = &values->order;

	if (!history_counts_init(&inside->surely, order->events) || !history_counts_init(&inside->possibly, order->events))
		return 0;
	for (uint32_t i = 0; i < values->count; i++) {
		uint32_t put = values->value[i].put;

		history_counts_add(&inside->surely, order->returned[put], history_take_called(values, i));
		history_counts_add(&inside->possibly, order->called[put], history_take_returned(values, i));
	}
	history_counts_finish(&inside->surely);
	history_counts_finish(&inside->possibly);
	return 1;
}

/* Finds the values that are certainly inside in the gap. */
static void witness_inside(const struct history_values *values, uint32_t gap, struct history_finding *finding)
{
	for (uint32_t i = 0; i < values->count && finding->witnesses < HISTORY_WITNESSES; i++) {
		uint32_t put = values->value[i].put;

		if (values->order.returned[put] <= gap && gap < history_take_called(values, i))
			history_witness(finding, put);
	}
}

static enum history_verdict check_empty(const struct inside *inside, const struct history_values *values, uint32_t op,
                                        uint64_t stays, struct history_finding *finding)
{
	uint32_t from = values->order.called[op], to = values->order.returned[op];
	int32_t least = history_counts_least(&inside->surely, from, to);

	if ((uint64_t)least <= stays)
		return HISTORY_HOLDS;
	(void)history_violated(finding, "empty",
	                       "a take returned \"empty\", but the number of values inside was at least %" PRId32, least);
	history_witness(finding, op);
	witness_inside(values, from, finding);
	witness_inside(values, to - 1, finding);
	return HISTORY_VIOLATED;
}

static enum history_verdict check_full(const struct inside *inside, const struct history_values *values, uint32_t op,
                                       uint64_t capacity, struct history_finding *finding)
{
	int32_t most = history_counts_most(&inside->possibly, values->order.called[op], values->order.returned[op]);

	if (capacity != 0 && (uint64_t)most >= capacity)
		return HISTORY_HOLDS;
	(void)history_violated(finding, "full",
	                       "a put returned \"full\", but the capacity is %" PRIu64
	                       " and the number of values inside was at most %" PRId32,
	                       capacity, most);
	history_witness(finding, op);
	return HISTORY_VIOLATED;
}

static enum history_verdict check_stays(const struct inside *inside, const struct history_values *values, uint32_t op,
                                        uint64_t stays, struct history_finding *finding)
{
	int32_t most = history_counts_most(&inside->possibly, values->order.called[op], values->order.returned[op]);
	if ((uint64_t)most > stays)
		return HISTORY_HOLDS;
	(void)history_violated(finding, "stays",
	                       "a take left too few values: the number inside was at most %" PRId32 ", but %" PRIu64
	                       " must stay",
	                       most, stays);
	history_witness(finding, op);
	return HISTORY_VIOLATED;
}

static enum history_verdict over_capacity(const struct history_values *values, uint32_t gap, uint64_t capacity,
                                          struct history_finding *finding)
{
	(void)history_violated(finding, "capacity", "the number of values inside exceeded %" PRIu64, capacity);
	witness_inside(values, gap, finding);
	return HISTORY_VIOLATED;
}

/*
 * If the put and the take of a value overlap, the value is inside at some moment of the overlap, in
 * every order. At that moment there must be room for it in addition to the values that are
 * certainly inside.
 */
static enum history_verdict check_capacity(const struct inside *inside, const struct history_values *values,
                                           uint64_t capacity, struct history_finding *finding)
{
	const struct history_order *order = &values->order;

	for (uint32_t i = 0; i < values->count; i++) {
		uint32_t put = values->value[i].put, called = order->called[put], returned = order->returned[put];
		uint32_t take_called = history_take_called(values, i), take_returned = history_take_returned(values, i);
		uint32_t from = called > take_called ? called : take_called;
		uint32_t to = returned < take_returned ? returned : take_returned;

		if (returned < take_called && (uint64_t)history_counts_most(&inside->surely, returned, returned + 1) > capacity)
			return over_capacity(values, returned, capacity, finding);
		if (returned > take_called && (uint64_t)history_counts_least(&inside->surely, from, to) + 1 > capacity) {
			(void)over_capacity(values, from, capacity, finding);
			history_witness(finding, put);
			return HISTORY_VIOLATED;
		}
	}
	return HISTORY_HOLDS;
}

static enum history_verdict check_answer(uint16_t kind, const struct inside *inside,
                                         const struct history_values *values, uint32_t op,
                                         const struct history_bounds *bounds, struct history_finding *finding)
{
	switch (kind) {
	case HISTORY_TAKE_EMPTY: return check_empty(inside, values, op, bounds->stays, finding);
	case HISTORY_PUT_FULL: return check_full(inside, values, op, bounds->capacity, finding);
	default: return check_stays(inside, values, op, bounds->stays, finding);
	}
}

static enum history_verdict check_answers(const struct history *history, uint16_t kind, const struct inside *inside,
                                          const struct history_values *values, const struct history_bounds *bounds,
                                          struct history_finding *finding)
{
	enum history_verdict verdict = HISTORY_HOLDS;

	for (uint32_t i = 0; verdict == HISTORY_HOLDS && i < history->count; i++) {
		if (history->op[i].kind == kind)
			verdict = check_answer(kind, inside, values, i, bounds, finding);
	}
	return verdict;
}

/*
 * Checks results that are wrong because too many values are inside before results that are wrong
 * because too few are. history_units_of_values() relies on this order.
 */
static enum history_verdict check_bounds(const struct history *history, const struct inside *inside,
                                         const struct history_values *values, const struct history_bounds *bounds,
                                         struct history_finding *finding)
{
	enum history_verdict verdict = check_answers(history, HISTORY_TAKE_EMPTY, inside, values, bounds, finding);

	if (verdict == HISTORY_HOLDS && bounds->capacity != 0)
		verdict = check_capacity(inside, values, bounds->capacity, finding);
	if (verdict == HISTORY_HOLDS)
		verdict = check_answers(history, HISTORY_PUT_FULL, inside, values, bounds, finding);
	if (verdict == HISTORY_HOLDS && bounds->stays != 0)
		verdict = check_answers(history, HISTORY_TAKE, inside, values, bounds, finding);
	return verdict;
}

enum history_verdict history_check_counts(const struct history *history, const struct history_values *values,
                                          const struct history_bounds *bounds, struct history_finding *finding)
{
	struct inside inside = {{0}, {0}};
	enum history_verdict verdict;

	if (count_inside(&inside, values))
		verdict = check_bounds(history, &inside, values, bounds, finding);
	else
		verdict = history_no_memory(finding);
	history_counts_fini(&inside.surely);
	history_counts_fini(&inside.possibly);
	return verdict;
}
