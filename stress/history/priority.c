/*
 * priority.c - histories of priority queues, from the most urgent key to the least urgent.
 *
 * A take of value b takes effect at a moment when no more urgent value is inside. Moments at which
 * a more urgent value is inside are therefore closed to that take. To close as few moments as
 * possible, each value is put as late and taken as early as the more urgent values allow. Less
 * urgent values have no influence on this, so keys are settled one after the other. For each take,
 * find the earliest open gap. Then close the gaps from the return of its put to that gap for all
 * less urgent values. "Empty" comes last and needs a gap that no value has closed. The result is
 * exact if keys differ, or if values with equal keys may leave in any order.
 *
 * If equal keys leave in FIFO order, b is taken no earlier than any value of its key that was
 * certainly put before b. The search for the gap of its take therefore begins at the latest gap of
 * their takes. This finds every violation among equal keys. The order makes some values stay inside
 * longer. Not all of this longer stay is closed to less urgent values, so a violation between keys
 * that depends on it may be missed.
 *
 * Source. Bouajjani, Enea and Wang (CONCUR 2017) check priority queues by patterns. We know of no
 * publication of this walk.
 */
#include "history/values.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct entry {
	int64_t key;
	uint32_t value, called, returned; /* of its put */
};

struct search {
	const struct history *history;
	const struct history_values *values;
	struct history_free_gaps open;
	struct entry *by_call;   /* by key, then by the put's call */
	struct entry *by_return; /* by key, then by the put's return */
	uint32_t *taken_at;      /* per value: the earliest gap in which its take can be */
	struct history_finding *finding;
};

static int compare(int64_t a_key, int64_t b_key, uint32_t a, uint32_t b)
{
	if (a_key != b_key)
		return a_key < b_key ? -1 : 1;
	return (a > b) - (a < b);
}

static int key_then_call(const void *left, const void *right)
{
	const struct entry *a = left, *b = right;

	return compare(a->key, b->key, a->called, b->called);
}

static int key_then_return(const void *left, const void *right)
{
	const struct entry *a = left, *b = right;

	return compare(a->key, b->key, a->returned, b->returned);
}

static void sort_entries(const struct search *search)
{
	const struct history_values *values = search->values;
	size_t size = sizeof(*search->by_call);

	for (uint32_t i = 0; i < values->count; i++) {
		uint32_t put = values->value[i].put;

		search->by_call[i] = (struct entry){(int64_t)search->history->op[put].result, i, values->order.called[put],
		                                    values->order.returned[put]};
	}
	if (values->count == 0)
		return;
	memcpy(search->by_return, search->by_call, values->count * size);
	qsort(search->by_call, values->count, size, key_then_call);
	qsort(search->by_return, values->count, size, key_then_return);
}

/* Sets the finding for a take that fits in none of its gaps. */
static enum history_verdict not_in_turn(const struct search *search, const struct entry *entry, uint32_t older,
                                        uint32_t start)
{
	const struct history_value *value = &search->values->value[entry->value];
	struct history_finding *finding = search->finding;
	uint32_t last = search->values->order.returned[value->take] - 1;
	uint64_t number = search->history->op[value->put].argument;

	if (start > last) {
		(void)history_violated(finding, "order",
		                       "%" PRIu64 " of key %" PRId64 " came out before an older value with this key", number,
		                       entry->key);
		history_witness(finding, search->values->value[older].put);
		if (search->values->value[older].take != HISTORY_NO_OP)
			history_witness(finding, search->values->value[older].take);
	} else {
		(void)history_violated(finding, "urgent",
		                       "%" PRIu64 " of key %" PRId64 " came out while a smaller key was inside", number,
		                       entry->key);
		history_witness(finding, search->open.taker[start]);
		history_witness(finding, search->open.taker[last]);
	}
	history_witness(finding, value->put);
	history_witness(finding, value->take);
	return HISTORY_VIOLATED;
}

/*
 * older: of the values with the same key that were certainly put before, the value that leaves
 * last. HISTORY_NO_OP: there is none.
 */
static enum history_verdict place_take(struct search *search, const struct entry *entry, uint32_t older)
{
	const struct history_values *values = search->values;
	uint32_t start = history_take_called(values, entry->value), at;

	if (entry->called > start)
		start = entry->called;
	if (older != HISTORY_NO_OP && search->taken_at[older] > start)
		start = search->taken_at[older];
	at = values->value[entry->value].take == HISTORY_NO_OP ? values->order.events
	                                                       : history_first_free(&search->open, start);
	search->taken_at[entry->value] = at;
	if (values->value[entry->value].take != HISTORY_NO_OP && at >= history_take_returned(values, entry->value))
		return not_in_turn(search, entry, older, start);
	return HISTORY_HOLDS;
}

/* Settles all values of one key: by_call[from .. to - 1]. */
static enum history_verdict settle_key(struct search *search, uint32_t from, uint32_t to, enum history_equals equals)
{
	uint32_t older = HISTORY_NO_OP, gone = from;

	for (uint32_t i = from; i < to; i++) {
		const struct entry *entry = &search->by_call[i];
		enum history_verdict verdict;

		for (; equals == HISTORY_EQUALS_FIFO && search->by_return[gone].returned < entry->called; gone++) {
			uint32_t value = search->by_return[gone].value;

			if (older == HISTORY_NO_OP || search->taken_at[value] > search->taken_at[older])
				older = value;
		}
		verdict = place_take(search, entry, older);
		if (verdict != HISTORY_HOLDS)
			return verdict;
	}
	for (uint32_t i = from; i < to; i++) {
		uint32_t value = search->by_call[i].value;

		history_take_gaps(&search->open, search->by_call[i].returned, search->taken_at[value],
		                  search->values->value[value].put);
	}
	return HISTORY_HOLDS;
}

static enum history_verdict settle_empty(struct search *search)
{
	const struct history_order *order = &search->values->order;

	for (uint32_t i = 0; i < search->history->count; i++) {
		if (search->history->op[i].kind != HISTORY_TAKE_EMPTY ||
		    history_first_free(&search->open, order->called[i]) < order->returned[i])
			continue;
		(void)history_violated(search->finding, "empty",
		                       "a take returned \"empty\", but at every moment a value was inside");
		history_witness(search->finding, i);
		history_witness(search->finding, search->open.taker[order->called[i]]);
		return HISTORY_VIOLATED;
	}
	return HISTORY_HOLDS;
}

static enum history_verdict settle(struct search *search, enum history_equals equals)
{
	enum history_verdict verdict = HISTORY_HOLDS;
	uint32_t count = search->values->count;

	sort_entries(search);
	for (uint32_t from = 0, to; verdict == HISTORY_HOLDS && from < count; from = to) {
		for (to = from + 1; to < count && search->by_call[to].key == search->by_call[from].key; to++)
			;
		verdict = settle_key(search, from, to, equals);
	}
	return verdict == HISTORY_HOLDS ? settle_empty(search) : verdict;
}

static enum history_verdict search_order(const struct history *history, const struct history_values *values,
                                         enum history_equals equals, struct history_finding *finding)
{
	struct search search = {.history = history, .values = values, .finding = finding};
	size_t count = (size_t)values->count + 1;
	enum history_verdict verdict;

	search.by_call = malloc(count * sizeof(*search.by_call));
	search.by_return = malloc(count * sizeof(*search.by_return));
	search.taken_at = malloc(count * sizeof(*search.taken_at));
	if (history_free_gaps_init(&search.open, values->order.events) && search.by_call != NULL &&
	    search.by_return != NULL && search.taken_at != NULL)
		verdict = settle(&search, equals);
	else
		verdict = history_no_memory(finding);
	history_free_gaps_fini(&search.open);
	free(search.by_call);
	free(search.by_return);
	free(search.taken_at);
	return verdict;
}

enum history_verdict history_check_priority(const struct history *history, const struct history_bounds *bounds,
                                            enum history_equals equals, struct history_finding *finding)
{
	struct history_values values;
	enum history_verdict verdict = history_values_init(&values, history, finding);

	if (verdict == HISTORY_HOLDS)
		verdict = search_order(history, &values, equals, finding);
	if (verdict == HISTORY_HOLDS)
		verdict = history_check_counts(history, &values, bounds, finding);
	history_values_fini(&values);
	return verdict;
}
