/*
 * order.c - the order of calls and returns, and counts along it; see order.h.
 */
#include "history/order.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* -- findings ---------------------------------------------------------------------------------- */

enum history_verdict history_violated(struct history_finding *finding, const char *pattern, const char *format, ...)
{
	va_list arguments;

	finding->pattern = pattern;
	finding->witnesses = 0;
	va_start(arguments, format);
	(void)vsnprintf(finding->what, sizeof(finding->what), format, arguments);
	va_end(arguments);
	return HISTORY_VIOLATED;
}

void history_witness(struct history_finding *finding, size_t place)
{
	for (size_t i = 0; i < finding->witnesses; i++) {
		if (finding->witness[i] == place)
			return;
	}
	if (finding->witnesses < HISTORY_WITNESSES)
		finding->witness[finding->witnesses++] = place;
}

enum history_verdict history_no_memory(struct history_finding *finding)
{
	(void)history_violated(finding, "memory", "there is no memory for the check");
	return HISTORY_UNDECIDED;
}

int history_first_of_object(const struct history *history, size_t part)
{
	size_t first = 0;

	while (history->part[first].object != history->part[part].object)
		first++;
	return first == part;
}

enum history_verdict history_malformed(struct history_finding *finding, size_t place, const char *why)
{
	(void)history_violated(finding, "malformed", "operation %zu: %s", place, why);
	history_witness(finding, place);
	return HISTORY_MALFORMED;
}

/* -- order ------------------------------------------------------------------------------------- */

struct moment {
	uint64_t time;
	uint32_t event; /* operation * 2, + 1 for its return */
};

static int by_time(const void *left, const void *right)
{
	const struct moment *a = left, *b = right;

	if (a->time != b->time)
		return a->time < b->time ? -1 : 1;
	if ((a->event & 1) != (b->event & 1))
		return (a->event & 1) != 0 ? 1 : -1;
	return (a->event > b->event) - (a->event < b->event);
}

static void number_events(struct history_order *order, const struct moment moments[])
{
	for (uint32_t e = 0; e < order->events; e++) {
		uint32_t event = moments[e].event;

		order->event[e] = event;
		if ((event & 1) != 0)
			order->returned[event / 2] = e;
		else
			order->called[event / 2] = e;
	}
}

enum history_verdict history_order_init(struct history_order *order, const struct history *history,
                                        struct history_finding *finding)
{
	size_t count = history->count;
	struct moment *moments = malloc((2 * count + 1) * sizeof(*moments));

	order->events = (uint32_t)(2 * count);
	order->called = malloc((count + 1) * sizeof(*order->called));
	order->returned = malloc((count + 1) * sizeof(*order->returned));
	order->event = malloc((2 * count + 1) * sizeof(*order->event));
	if (moments == NULL || order->called == NULL || order->returned == NULL || order->event == NULL) {
		free(moments);
		return history_no_memory(finding);
	}
	for (size_t i = 0; i < count; i++) {
		const struct history_op *op = &history->op[i];

		if (op->returned < op->called) {
			free(moments);
			return history_malformed(finding, i, "its return is before its call");
		}
		moments[2 * i] = (struct moment){op->called, (uint32_t)(2 * i)};
		moments[2 * i + 1] = (struct moment){op->returned, (uint32_t)(2 * i + 1)};
	}
	qsort(moments, 2 * count, sizeof(*moments), by_time);
	number_events(order, moments);
	free(moments);
	return HISTORY_HOLDS;
}

void history_order_fini(struct history_order *order)
{
	free(order->called);
	free(order->returned);
	free(order->event);
}

/* -- counts ------------------------------------------------------------------------------------ */

int history_counts_init(struct history_counts *counts, uint32_t gaps)
{
	counts->gaps = gaps;
	counts->leaves = 1;
	while (counts->leaves < gaps + 1)
		counts->leaves *= 2;
	counts->least = calloc(2 * (size_t)counts->leaves, sizeof(*counts->least));
	counts->most = calloc(2 * (size_t)counts->leaves, sizeof(*counts->most));
	return counts->least != NULL && counts->most != NULL;
}

void history_counts_fini(struct history_counts *counts)
{
	free(counts->least);
	free(counts->most);
}

void history_counts_add(struct history_counts *counts, uint32_t from, uint32_t to)
{
	if (from >= to)
		return;
	/* The differences are kept in the leaves of one tree until the end. */
	counts->least[counts->leaves + from]++;
	counts->least[counts->leaves + to]--;
}

void history_counts_finish(struct history_counts *counts)
{
	int32_t sum = 0;

	for (uint32_t i = counts->leaves; i < 2 * counts->leaves; i++) {
		sum += counts->least[i];
		counts->least[i] = counts->most[i] = sum;
	}
	for (uint32_t i = counts->leaves - 1; i > 0; i--) {
		size_t child = (size_t)2 * i;
		int32_t low = counts->least[child], high = counts->least[child + 1];

		counts->least[i] = low < high ? low : high;
		low = counts->most[child];
		high = counts->most[child + 1];
		counts->most[i] = low > high ? low : high;
	}
}

int32_t history_counts_least(const struct history_counts *counts, uint32_t from, uint32_t to)
{
	int32_t found = INT32_MAX;
	uint32_t left = counts->leaves + from, right = counts->leaves + to;

	for (; left < right; left /= 2, right /= 2) {
		if ((left & 1) != 0) {
			found = counts->least[left] < found ? counts->least[left] : found;
			left++;
		}
		if ((right & 1) != 0) {
			right--;
			found = counts->least[right] < found ? counts->least[right] : found;
		}
	}
	return found;
}

int32_t history_counts_most(const struct history_counts *counts, uint32_t from, uint32_t to)
{
	int32_t found = INT32_MIN;
	uint32_t left = counts->leaves + from, right = counts->leaves + to;

	for (; left < right; left /= 2, right /= 2) {
		if ((left & 1) != 0) {
			found = counts->most[left] > found ? counts->most[left] : found;
			left++;
		}
		if ((right & 1) != 0) {
			right--;
			found = counts->most[right] > found ? counts->most[right] : found;
		}
	}
	return found;
}

/* -- free gaps --------------------------------------------------------------------------------- */

int history_free_gaps_init(struct history_free_gaps *free_gaps, uint32_t gaps)
{
	free_gaps->gaps = gaps;
	free_gaps->next = malloc(((size_t)gaps + 1) * sizeof(*free_gaps->next));
	free_gaps->taker = malloc(((size_t)gaps + 1) * sizeof(*free_gaps->taker));
	if (free_gaps->next == NULL || free_gaps->taker == NULL)
		return 0;
	for (uint32_t i = 0; i <= gaps; i++)
		free_gaps->next[i] = i;
	return 1;
}

void history_free_gaps_fini(struct history_free_gaps *free_gaps)
{
	free(free_gaps->next);
	free(free_gaps->taker);
}

uint32_t history_first_free(struct history_free_gaps *free_gaps, uint32_t gap)
{
	uint32_t *next = free_gaps->next;

	while (next[gap] != gap) {
		next[gap] = next[next[gap]];
		gap = next[gap];
	}
	return gap;
}

void history_take_gaps(struct history_free_gaps *free_gaps, uint32_t from, uint32_t to, uint32_t taker)
{
	uint32_t gap = from < to ? history_first_free(free_gaps, from) : to;

	for (; gap < to; gap = history_first_free(free_gaps, gap)) {
		free_gaps->taker[gap] = taker;
		free_gaps->next[gap] = gap + 1;
	}
}
