/*
 * hidden.c - how much of the time of one kind of op passed beside other ops.
 *
 * An op that waits for other ranks or for a queue holds no thread. What it costs is the part of its
 * time in which nothing else ran. The times of all other ops are joined to intervals that do not
 * overlap, and each op of the kind is compared with them.
 */
#include <stdlib.h>
#include <string.h>

#include "trace.h"

struct interval {
	uint64_t begin, end;
};

static int by_begin(const void *a, const void *b)
{
	const struct interval *x = a, *y = b;

	return x->begin < y->begin ? -1 : x->begin > y->begin;
}

static bool is_kind(const struct trace *trace, const struct trace_event *event, const char *op)
{
	const struct trace_node *node = trace_node_of(trace, event);

	return node != NULL && strcmp(node->op, op) == 0;
}

/* Joins `count` intervals, sorted by their begin. Returns how many are left. */
static size_t join(struct interval intervals[], size_t count)
{
	size_t last = 0;

	if (count == 0)
		return 0;
	for (size_t i = 1; i < count; i++) {
		if (intervals[i].begin > intervals[last].end)
			intervals[++last] = intervals[i];
		else if (intervals[i].end > intervals[last].end)
			intervals[last].end = intervals[i].end;
	}
	return last + 1;
}

/* Returns the first interval that ends after `time`. */
static size_t first_after(const struct interval intervals[], size_t count, uint64_t time)
{
	size_t low = 0, high = count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (intervals[middle].end > time)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

static uint64_t overlap(const struct interval intervals[], size_t count, const struct trace_event *event)
{
	uint64_t sum = 0;

	for (size_t i = first_after(intervals, count, event->start_ns); i < count && intervals[i].begin < event->end_ns;
	     i++) {
		uint64_t begin = intervals[i].begin > event->start_ns ? intervals[i].begin : event->start_ns;
		uint64_t end = intervals[i].end < event->end_ns ? intervals[i].end : event->end_ns;

		sum += end - begin;
	}
	return sum;
}

bool trace_hidden(const struct trace *trace, const char *op, struct trace_hiding *out)
{
	struct interval *others = malloc((trace->event_count + 1) * sizeof(*others));
	size_t count = 0;

	if (others == NULL)
		return false;
	*out = (struct trace_hiding){0};
	for (size_t i = 0; i < trace->event_count; i++) {
		const struct trace_event *event = &trace->events[i];

		if (event->ends != 0 && event->end_ns > event->start_ns && !is_kind(trace, event, op))
			others[count++] = (struct interval){event->start_ns, event->end_ns};
	}
	qsort(others, count, sizeof(*others), by_begin);
	count = join(others, count);
	for (size_t i = 0; i < trace->event_count; i++) {
		const struct trace_event *event = &trace->events[i];

		if (event->ends == 0 || event->end_ns < event->start_ns || !is_kind(trace, event, op))
			continue;
		out->ops++;
		out->total_ns += event->end_ns - event->start_ns;
		out->hidden_ns += overlap(others, count, event);
	}
	free(others);
	return true;
}
