/*
 * check.c - what must hold of each record of a trace by itself, and of those that it names.
 *
 * (a) Each op saw the end of all that it depends on, in its own frame; it ended, and before its
 *     frame did; it ran once in the frame, and only if the run needed it. parts.c: the frames of ops
 *     that run functions.
 * (b) order.c
 * (c) Each item came out at most once, and was put before.
 * (d) In a trace with checksums, a tensor is what it was when it was made, at each use.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checker.h"

void trace_fault(struct checker *c, const char *format, ...)
{
	char line[3 * TRACE_TEXT_SIZE + 256];
	va_list arguments;

	va_start(arguments, format);
	(void)vsnprintf(line, sizeof(line), format, arguments);
	va_end(arguments);
	c->faults++;
	c->report(c->context, line);
}

static const struct trace_node *node_at(const struct trace *trace, const struct trace_event *event, uint32_t index)
{
	struct trace_event other = *event;

	other.node = index;
	return trace_node_of(trace, &other);
}

/* -- (a) --------------------------------------------------------------------------------------- */

static void check_seen(struct checker *c, const struct trace_event *event, const struct trace_node *node, size_t i)
{
	const struct trace *trace = c->trace;
	uint32_t index = (uint32_t)node->dependencies[i];
	const struct trace_node *on = node_at(trace, event, index);
	const char *name = on != NULL ? on->name : "?";
	const struct trace_event *seen;
	char text[TRACE_TEXT_SIZE], other[TRACE_TEXT_SIZE];
	size_t at;

	(void)trace_describe(trace, event, text);
	if (event->seen[i] == 0) {
		if ((node->flags & WEIRI_TRACE_NODE_LEAVES) == 0)
			trace_fault(c, "%s started and had not seen the end of \"%s\"", text, name);
		return;
	}
	at = trace_find_event(trace, event->seen[i]);
	if (at == TRACE_NONE) {
		trace_fault(c, "%s saw as \"%s\" event %" PRIu64 ", which the trace does not have", text, name, event->seen[i]);
		return;
	}
	seen = &trace->events[at];
	if (seen->frame_number != event->frame_number || seen->node != index)
		trace_fault(c, "%s saw as \"%s\" another event: %s", text, name, trace_describe(trace, seen, other));
	else if (seen->ends == 0)
		trace_fault(c, "%s saw \"%s\", which has not ended", text, name);
	else if (seen->status != WEIR_OK && (node->flags & WEIRI_TRACE_NODE_LEAVES) == 0)
		trace_fault(c, "%s ran although \"%s\" had failed", text, name);
}

static void check_times(struct checker *c, const struct trace_event *event)
{
	const struct trace_frame *frame = &c->trace->frames[event->frame];
	char text[TRACE_TEXT_SIZE];

	(void)trace_describe(c->trace, event, text);
	if (event->ends == 0 && frame->ends != 0)
		trace_fault(c, "%s had not ended when its frame did", text);
	if (event->ends > 1)
		trace_fault(c, "%s ended %" PRIu32 " times", text, event->ends);
	if (event->ends != 0 && frame->ends != 0 && event->end_ns > frame->end_ns)
		trace_fault(c, "%s ended after its frame", text);
	if (event->start_ns < frame->begin_ns)
		trace_fault(c, "%s started before its frame", text);
	if (event->ends != 0 && event->end_ns < event->start_ns)
		trace_fault(c, "%s ended before it started", text);
}

static void check_event(struct checker *c, const struct trace_event *event)
{
	const struct trace_node *node = trace_node_of(c->trace, event);

	if (event->frame == TRACE_NONE || node == NULL) {
		trace_fault(c, "event %" PRIu64 " is of frame %" PRIu64 ", node %" PRIu32 ", which the trace does not have",
		            event->number, event->frame_number, event->node);
		return;
	}
	if (event->seen_count != node->dependency_count) {
		char text[TRACE_TEXT_SIZE];

		trace_fault(c, "%s saw %zu events, expected %zu", trace_describe(c->trace, event, text), event->seen_count,
		            node->dependency_count);
		return;
	}
	for (size_t i = 0; i < event->seen_count; i++)
		check_seen(c, event, node, i);
	check_times(c, event);
}

static int by_place(const void *a, const void *b)
{
	const struct trace_event *x = *(const struct trace_event *const *)a, *y = *(const struct trace_event *const *)b;

	if (x->frame != y->frame)
		return x->frame < y->frame ? -1 : 1;
	return x->node < y->node ? -1 : x->node > y->node;
}

/* Each node of a frame ran at most once; of a complete frame, exactly once. */
static void check_once(struct checker *c)
{
	const struct trace *trace = c->trace;
	const struct trace_event **events = malloc((trace->event_count + 1) * sizeof(*events));
	size_t *ran = calloc(trace->frame_count + 1, sizeof(*ran));
	char text[TRACE_TEXT_SIZE];

	if (events == NULL || ran == NULL) {
		c->no_memory = true;
		free(events);
		free(ran);
		return;
	}
	for (size_t i = 0; i < trace->event_count; i++)
		events[i] = &trace->events[i];
	qsort(events, trace->event_count, sizeof(*events), by_place);
	for (size_t i = 0; i < trace->event_count; i++) {
		if (events[i]->frame == TRACE_NONE)
			continue;
		if (i != 0 && by_place(&events[i - 1], &events[i]) == 0)
			trace_fault(c, "%s ran twice", trace_describe(trace, events[i], text));
		else
			ran[events[i]->frame]++;
	}
	for (size_t i = 0; i < trace->frame_count; i++) {
		const struct trace_frame *frame = &trace->frames[i];

		if (frame->plan != TRACE_NONE && frame->complete && ran[i] != trace->plans[frame->plan].node_count)
			trace_fault(c, "frame %" PRIu64 " succeeded, and %zu of its %" PRIu32 " nodes ran", frame->number, ran[i],
			            trace->plans[frame->plan].node_count);
	}
	free(events);
	free(ran);
}

/* Marks what the run needed: the fetches and targets, the ends of sections, and what these depend on. */
static void mark_needed(const struct trace_plan *plan, bool needed[], uint32_t list[])
{
	size_t count = 0;

	for (uint32_t i = 0; i < plan->node_count; i++) {
		needed[i] = (plan->nodes[i].flags & (WEIRI_TRACE_NODE_WANTED | WEIRI_TRACE_NODE_LEAVES)) != 0;
		if (needed[i])
			list[count++] = i;
	}
	while (count != 0) {
		const struct trace_node *node = &plan->nodes[list[--count]];

		for (size_t d = 0; d < node->dependency_count; d++) {
			uint32_t on = (uint32_t)node->dependencies[d];

			if (!needed[on])
				list[count++] = on;
			needed[on] = true;
		}
	}
}

static void check_plan(struct checker *c, const struct trace_plan *plan)
{
	bool *needed = malloc(plan->node_count + 1u);
	uint32_t *list = malloc((plan->node_count + 1u) * sizeof(*list));

	if (needed == NULL || list == NULL) {
		c->no_memory = true;
	} else {
		mark_needed(plan, needed, list);
		for (uint32_t i = 0; i < plan->node_count; i++) {
			if (plan->nodes[i].known && !needed[i])
				trace_fault(c, "plan %" PRIu64 " runs %s \"%s\", which nothing needs", plan->number, plan->nodes[i].op,
				            plan->nodes[i].name);
		}
	}
	free(needed);
	free(list);
}

/* -- (c) --------------------------------------------------------------------------------------- */

static int by_item(const void *a, const void *b)
{
	const struct trace_effect *x = *(const struct trace_effect *const *)a, *y = *(const struct trace_effect *const *)b;

	if (x->number != y->number)
		return x->number < y->number ? -1 : 1;
	return x->kind < y->kind ? -1 : x->kind > y->kind;
}

static const char *who(const struct trace *trace, const struct trace_effect *effect, char text[TRACE_TEXT_SIZE])
{
	if (effect->event == TRACE_NONE)
		return "an event that the trace does not have";
	return trace_describe(trace, &trace->events[effect->event], text);
}

/* `effects` is sorted: the puts of an item, then its takes. */
static void check_item(struct checker *c, const struct trace_effect *const effects[], size_t count)
{
	char text[TRACE_TEXT_SIZE], other[TRACE_TEXT_SIZE];
	size_t puts = 0;

	while (puts < count && effects[puts]->kind == WEIRI_TRACE_PUT)
		puts++;
	if (puts > 1)
		trace_fault(c, "item %" PRIx64 " was put by %s and by %s", effects[0]->number, who(c->trace, effects[0], text),
		            who(c->trace, effects[1], other));
	if (count - puts > 1)
		trace_fault(c, "item %" PRIx64 " came out twice: for %s and for %s", effects[0]->number,
		            who(c->trace, effects[puts], text), who(c->trace, effects[puts + 1], other));
	if (puts == 0)
		trace_fault(c, "item %" PRIx64 " came out for %s, and was not put", effects[0]->number,
		            who(c->trace, effects[0], text));
	else if (puts < count && effects[0]->object != effects[puts]->object)
		trace_fault(c, "item %" PRIx64 " was put by %s and came out of another queue for %s", effects[0]->number,
		            who(c->trace, effects[0], text), who(c->trace, effects[puts], other));
}

static void check_items(struct checker *c)
{
	const struct trace *trace = c->trace;
	const struct trace_effect **effects = malloc((trace->effect_count + 1) * sizeof(*effects));
	size_t count = 0;

	if (effects == NULL) {
		c->no_memory = true;
		return;
	}
	for (size_t i = 0; i < trace->effect_count; i++) {
		const struct trace_effect *effect = &trace->effects[i];

		if ((effect->kind == WEIRI_TRACE_PUT || effect->kind == WEIRI_TRACE_TAKE) && effect->number != 0)
			effects[count++] = effect;
	}
	qsort(effects, count, sizeof(*effects), by_item);
	for (size_t from = 0, to; from < count; from = to) {
		for (to = from + 1; to < count && effects[to]->number == effects[from]->number; to++)
			;
		check_item(c, effects + from, to - from);
	}
	free(effects);
}

/* -- (d) --------------------------------------------------------------------------------------- */

static void check_use(struct checker *c, const struct trace_event *event, const struct trace_effect *used)
{
	const struct trace_node *node = trace_node_of(c->trace, event);
	const struct trace_effect *made = NULL;
	char text[TRACE_TEXT_SIZE], other[TRACE_TEXT_SIZE];
	uint64_t dependency;
	size_t maker;

	if (node == NULL || used->object >= node->dependency_count || used->object >= event->seen_count)
		return; /* reported before */
	dependency = node->dependencies[used->object];
	maker = trace_find_event(c->trace, event->seen[used->object]);
	if (maker == TRACE_NONE)
		return;
	made = trace_find_effect(c->trace, &c->trace->events[maker], WEIRI_TRACE_MADE, dependency >> 32 & 0x7fffffff);
	if (made == NULL || made->number != used->number)
		trace_fault(c, "%s found another value than %s had made as output %" PRIu64,
		            trace_describe(c->trace, event, text), trace_describe(c->trace, &c->trace->events[maker], other),
		            dependency >> 32 & 0x7fffffff);
}

static void check_checksums(struct checker *c)
{
	for (size_t i = 0; i < c->trace->effect_count; i++) {
		const struct trace_effect *effect = &c->trace->effects[i];

		if (effect->kind == WEIRI_TRACE_USED && effect->event != TRACE_NONE)
			check_use(c, &c->trace->events[effect->event], effect);
	}
}

size_t trace_check(const struct trace *trace, trace_report_fn *report, void *context)
{
	struct checker c = {trace, report, context, 0, false};
	size_t cycles;

	if (trace->dropped != 0)
		trace_fault(&c, "%" PRIu64 " records were dropped, so the trace proves nothing", trace->dropped);
	for (size_t i = 0; i < trace->plan_count; i++)
		check_plan(&c, &trace->plans[i]);
	trace_check_parts(&c);
	for (size_t i = 0; i < trace->event_count; i++)
		check_event(&c, &trace->events[i]);
	check_once(&c);
	check_items(&c);
	check_checksums(&c);
	cycles = trace_check_order(trace, report, context);
	return c.no_memory || cycles == SIZE_MAX ? SIZE_MAX : c.faults + cycles;
}
