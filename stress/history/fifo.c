/*
 * fifo.c - histories of queues: the patterns of values.c, and a pattern of order.
 *
 * The order is violated if a was put before b (its put returned before b's put was called), b was
 * taken, and a was taken later (its take was called after b's take had returned) or never. One walk
 * along the events finds this. Of the values whose put has returned, the walk remembers the one
 * whose take is called last. When the walk comes to the call of a put, the take of that put's value
 * must not return before the remembered take is called.
 */
#include "history/values.h"

#include <inttypes.h>
#include <stdlib.h>

static enum history_verdict out_of_order(const struct history *history, const struct history_values *values,
                                         uint32_t first, uint32_t second, struct history_finding *finding)
{
	const struct history_value *a = &values->value[first], *b = &values->value[second];
	uint64_t early = history->op[a->put].argument, late = history->op[b->put].argument;

	if (a->take == HISTORY_NO_OP)
		(void)history_violated(finding, "order",
		                       "%" PRIu64 " went in before %" PRIu64 " and did not come out, although the latter did",
		                       early, late);
	else
		(void)history_violated(finding, "order", "%" PRIu64 " went in before %" PRIu64 " and came out after it", early,
		                       late);
	history_witness(finding, a->put);
	history_witness(finding, b->put);
	history_witness(finding, b->take);
	if (a->take != HISTORY_NO_OP)
		history_witness(finding, a->take);
	return HISTORY_VIOLATED;
}

/* value_of[op]: the index of the value that the operation put. */
static enum history_verdict check_order(const struct history *history, const struct history_values *values,
                                        const uint32_t value_of[], struct history_finding *finding)
{
	uint32_t latest = 0, latest_value = HISTORY_NO_OP;

	for (uint32_t e = 0; e < values->order.events; e++) {
		uint32_t op = values->order.event[e] / 2, value = value_of[op];

		if (history->op[op].kind != HISTORY_PUT)
			continue;
		if ((values->order.event[e] & 1) != 0) {
			if (latest_value == HISTORY_NO_OP || history_take_called(values, value) > latest) {
				latest = history_take_called(values, value);
				latest_value = value;
			}
		} else if (values->value[value].take != HISTORY_NO_OP && latest_value != HISTORY_NO_OP &&
		           history_take_returned(values, value) < latest) {
			return out_of_order(history, values, latest_value, value, finding);
		}
	}
	return HISTORY_HOLDS;
}

static enum history_verdict check_values(const struct history *history, const struct history_values *values,
                                         const struct history_bounds *bounds, struct history_finding *finding)
{
	uint32_t *value_of = malloc((history->count + 1) * sizeof(*value_of));
	enum history_verdict verdict;

	if (value_of == NULL)
		return history_no_memory(finding);
	for (uint32_t i = 0; i < values->count; i++)
		value_of[values->value[i].put] = i;
	verdict = check_order(history, values, value_of, finding);
	free(value_of);
	return verdict == HISTORY_HOLDS ? history_check_counts(history, values, bounds, finding) : verdict;
}

enum history_verdict history_check_fifo(const struct history *history, const struct history_bounds *bounds,
                                        struct history_finding *finding)
{
	struct history_values values;
	enum history_verdict verdict = history_values_init(&values, history, finding);

	if (verdict == HISTORY_HOLDS)
		verdict = check_values(history, &values, bounds, finding);
	history_values_fini(&values);
	return verdict;
}
