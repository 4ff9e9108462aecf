/*
 * parts.c - frames, and the ops of which they are parts: calls, cases, loops and maps.
 *
 * Each frame ended once. A part began after its op and ended before it, and ran the body that the
 * graph names for it. (a) across frames: the parts of an op are
 *
 *     call    one frame
 *     case    one frame, of the branch that was chosen
 *     loop    tests 0 to n and iterations 0 to n - 1, one after the other: test 0, iteration 0, test 1.
 *             Each test but the last said that its iteration runs
 *     map     one frame for each row
 *
 * An op that succeeded has all of them; one that did not has no others.
 *
 * (d) across frames: a body got what its op passed, or what the iteration before gave; the op made
 * what its last body gave. What the rows of a map got and gave is not compared: a row is a part of a
 * tensor.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "checker.h"

/* An op, and its parts in the order of their numbers; a test comes before the iteration of its number. */
struct whole {
	const struct trace_event *event;
	const struct trace_node *node;
	const struct trace_frame *const *parts;
	size_t count;
	char text[TRACE_TEXT_SIZE];
};

static const char *const kinds[] = {[WEIRI_TRACE_STEP] = "run",      [WEIRI_TRACE_CALL] = "call",
                                    [WEIRI_TRACE_BRANCH] = "branch", [WEIRI_TRACE_ITERATION] = "iteration",
                                    [WEIRI_TRACE_ROW] = "row",       [WEIRI_TRACE_TEST] = "test"};

static const char *kind_name(uint32_t kind)
{
	return kind < sizeof(kinds) / sizeof(kinds[0]) ? kinds[kind] : "part";
}

/* -- each frame -------------------------------------------------------------------------------- */

static void check_frame(struct checker *c, const struct trace_frame *frame)
{
	if (frame->plan == TRACE_NONE)
		trace_fault(c, "frame %" PRIu64 " is of plan %" PRIu64 ", which the trace does not have", frame->number,
		            frame->plan_number);
	if (frame->ends != 1)
		trace_fault(c, "frame %" PRIu64 " %s", frame->number, frame->ends == 0 ? "has not ended" : "ended twice");
	if (frame->part_of_number == 0 && frame->kind != WEIRI_TRACE_STEP)
		trace_fault(c, "frame %" PRIu64 " is a %s of no op", frame->number, kind_name(frame->kind));
	if (frame->part_of_number != 0 && frame->part_of == TRACE_NONE)
		trace_fault(c, "frame %" PRIu64 " is part of event %" PRIu64 ", which the trace does not have", frame->number,
		            frame->part_of_number);
}

/* Which of the functions of the op the part must run. */
static uint64_t function_of(const struct trace_frame *part)
{
	return part->kind == WEIRI_TRACE_BRANCH ? part->iteration : part->kind == WEIRI_TRACE_ITERATION;
}

static void check_times(struct checker *c, const struct whole *w, const struct trace_frame *part)
{
	if (part->begin_ns < w->event->start_ns)
		trace_fault(c, "frame %" PRIu64 " began before the op that it is part of", part->number);
	if (part->ends != 0 && w->event->ends != 0 && part->end_ns > w->event->end_ns)
		trace_fault(c, "frame %" PRIu64 " ended after the op that it is part of", part->number);
	if (w->event->ends != 0 && w->event->status == WEIR_OK && part->ends != 0 && !part->complete)
		trace_fault(c, "%s succeeded, and %s %" PRIu64 " of it did not", w->text, kind_name(part->kind),
		            part->iteration);
}

static void check_part(struct checker *c, const struct whole *w, const struct trace_frame *part)
{
	uint32_t expected = trace_parts_of(w->node);
	uint64_t function = function_of(part);

	if (part->kind != expected && !(part->kind == WEIRI_TRACE_TEST && expected == WEIRI_TRACE_ITERATION))
		trace_fault(c, "%s made a frame that is a %s", w->text, kind_name(part->kind));
	else if (function >= w->node->body_count)
		trace_fault(c, "%s ran function %" PRIu64 ", and has %zu", w->text, function, w->node->body_count);
	else if (w->node->bodies[function] != 0 && w->node->bodies[function] != part->plan_number)
		trace_fault(c, "%s ran plan %" PRIu64 " as its %s %" PRIu64 ", expected plan %" PRIu64, w->text,
		            part->plan_number, kind_name(part->kind), part->iteration, w->node->bodies[function]);
	check_times(c, w, part);
}

/* -- how many ---------------------------------------------------------------------------------- */

static void check_branches(struct checker *c, const struct whole *w)
{
	for (size_t i = 0; i < w->count; i++) {
		const struct trace_effect *chosen = trace_find_effect(c->trace, w->event, WEIRI_TRACE_CHOOSE, 0);

		if (chosen == NULL || chosen->number != w->parts[i]->iteration)
			trace_fault(c, "branch %" PRIu64 " of %s ran and was not chosen", w->parts[i]->iteration, w->text);
	}
}

/* Returns whether test `number` said that the iteration runs. */
static bool passed_test(const struct checker *c, const struct whole *w, uint64_t number)
{
	const struct trace_effect *tested = trace_find_effect(c->trace, w->event, WEIRI_TRACE_TESTED, number);

	return tested != NULL && tested->number == 1;
}

static void check_turns(struct checker *c, const struct whole *w)
{
	for (size_t i = 0; i < w->count; i++) {
		const struct trace_frame *part = w->parts[i], *before = i != 0 ? w->parts[i - 1] : NULL;
		uint32_t kind = i % 2 == 0 ? WEIRI_TRACE_TEST : WEIRI_TRACE_ITERATION;

		if (part->kind != kind || part->iteration != i / 2) {
			trace_fault(c, "%s has %s %" PRIu64 " in place of %s %zu", w->text, kind_name(part->kind), part->iteration,
			            kind_name(kind), i / 2);
			return;
		}
		if (kind == WEIRI_TRACE_ITERATION && !passed_test(c, w, i / 2))
			trace_fault(c, "iteration %zu of %s ran, and the test did not say so", i / 2, w->text);
		if (before != NULL && (before->ends == 0 || before->end_ns > part->begin_ns))
			trace_fault(c, "%s %" PRIu64 " of %s began before %s %" PRIu64 " had ended", kind_name(part->kind),
			            part->iteration, w->text, kind_name(before->kind), before->iteration);
	}
}

static void check_rows(struct checker *c, const struct whole *w)
{
	const struct trace_effect *rows = trace_find_effect(c->trace, w->event, WEIRI_TRACE_ROWS, 0);

	for (size_t i = 0; i < w->count; i++) {
		if (rows == NULL || w->parts[i]->iteration >= rows->number)
			trace_fault(c, "row %" PRIu64 " of %s ran, and there is no such row", w->parts[i]->iteration, w->text);
	}
}

/* Returns how many parts the op has if it succeeded. */
static uint64_t expected_count(const struct checker *c, const struct whole *w)
{
	const struct trace_effect *rows = trace_find_effect(c->trace, w->event, WEIRI_TRACE_ROWS, 0);
	uint64_t tests = 0;

	switch (trace_parts_of(w->node)) {
	case WEIRI_TRACE_ROW: return rows != NULL ? rows->number : 0;
	case WEIRI_TRACE_ITERATION:
		while (tests < w->count && passed_test(c, w, tests))
			tests++;
		return 2 * tests + 1;
	default: return 1;
	}
}

static void check_count(struct checker *c, const struct whole *w)
{
	for (size_t i = 1; i < w->count; i++) {
		if (w->parts[i]->kind == w->parts[i - 1]->kind && w->parts[i]->iteration == w->parts[i - 1]->iteration) {
			trace_fault(c, "%s made two frames of number %" PRIu64, w->text, w->parts[i]->iteration);
			return;
		}
	}
	switch (trace_parts_of(w->node)) {
	case WEIRI_TRACE_BRANCH: check_branches(c, w); break;
	case WEIRI_TRACE_ITERATION: check_turns(c, w); break;
	case WEIRI_TRACE_ROW: check_rows(c, w); break;
	default: break;
	}
	if (w->event->ends != 0 && w->event->status == WEIR_OK && w->count != expected_count(c, w))
		trace_fault(c, "%s succeeded with %zu frames, expected %" PRIu64, w->text, w->count, expected_count(c, w));
}

/* -- (d) --------------------------------------------------------------------------------------- */

static const struct trace_value *find_value(const struct trace *trace, const struct trace_frame *frame, uint32_t kind,
                                            uint64_t which)
{
	for (size_t i = 0; i < frame->value_count; i++) {
		const struct trace_value *value = &trace->values[frame->first_value + i];

		if (value->kind == kind && value->which == which)
			return value;
	}
	return NULL;
}

/* Sets *sum to that of tensor `which` for the next part: from the last iteration, or from the op if there is none. */
static bool find_source(const struct checker *c, const struct whole *w, const struct trace_frame *last, uint64_t which,
                        uint64_t *sum)
{
	const struct trace_effect *passed = trace_find_effect(c->trace, w->event, WEIRI_TRACE_PASSED, which);
	const struct trace_value *gave = last != NULL ? find_value(c->trace, last, WEIRI_TRACE_GAVE, which) : NULL;

	if (last != NULL ? gave == NULL : passed == NULL)
		return false;
	*sum = gave != NULL ? gave->sum : passed->number;
	return true;
}

static void check_got(struct checker *c, const struct whole *w, const struct trace_frame *last,
                      const struct trace_frame *part)
{
	for (size_t i = 0; i < part->value_count; i++) {
		const struct trace_value *got = &c->trace->values[part->first_value + i];
		uint64_t sum;

		if (got->kind == WEIRI_TRACE_GOT && find_source(c, w, last, got->which, &sum) && sum != got->sum)
			trace_fault(c, "%s %" PRIu64 " of %s got another value as tensor %" PRIu64 " than %s",
			            kind_name(part->kind), part->iteration, w->text, got->which,
			            last != NULL ? "the iteration before gave" : "was passed to it");
	}
}

/* The outputs of the op are what its last body gave, or, of a loop without iterations, what was passed to it. */
static void check_made(struct checker *c, const struct whole *w, const struct trace_frame *last)
{
	for (size_t i = 0; i < w->event->effect_count; i++) {
		const struct trace_effect *made = &c->trace->effects[w->event->first_effect + i];
		uint64_t sum;

		if (made->kind == WEIRI_TRACE_MADE && find_source(c, w, last, made->object, &sum) && sum != made->number)
			trace_fault(c, "%s made another output %" PRIu64 " than its function gave", w->text, made->object);
	}
}

static void check_values(struct checker *c, const struct whole *w)
{
	const struct trace_frame *last = NULL;

	if (trace_parts_of(w->node) == WEIRI_TRACE_ROW)
		return;
	for (size_t i = 0; i < w->count; i++) {
		check_got(c, w, last, w->parts[i]);
		if (w->parts[i]->kind != WEIRI_TRACE_TEST)
			last = w->parts[i];
	}
	check_made(c, w, last);
}

/* -- ops --------------------------------------------------------------------------------------- */

static int by_part(const void *a, const void *b)
{
	const struct trace_frame *x = *(const struct trace_frame *const *)a, *y = *(const struct trace_frame *const *)b;

	if (x->part_of != y->part_of)
		return x->part_of < y->part_of ? -1 : 1;
	if (x->iteration != y->iteration)
		return x->iteration < y->iteration ? -1 : 1;
	if (x->kind != y->kind)
		return x->kind == WEIRI_TRACE_TEST ? -1 : y->kind == WEIRI_TRACE_TEST ? 1 : x->kind < y->kind ? -1 : 1;
	return x->number < y->number ? -1 : x->number > y->number;
}

static void check_op(struct checker *c, const struct trace_event *event, const struct trace_frame *const parts[],
                     size_t count)
{
	struct whole w = {.event = event, .node = trace_node_of(c->trace, event), .parts = parts, .count = count};

	if (w.node == NULL)
		return; /* reported elsewhere */
	(void)trace_describe(c->trace, event, w.text);
	for (size_t i = 0; i < count; i++)
		check_part(c, &w, parts[i]);
	if (trace_parts_of(w.node) == WEIRI_TRACE_STEP)
		return;
	check_count(c, &w);
	check_values(c, &w);
}

void trace_check_parts(struct checker *c)
{
	const struct trace *trace = c->trace;
	const struct trace_frame **frames = malloc((trace->frame_count + 1) * sizeof(*frames));
	size_t at = 0;

	if (frames == NULL) {
		c->no_memory = true;
		return;
	}
	for (size_t i = 0; i < trace->frame_count; i++) {
		check_frame(c, &trace->frames[i]);
		frames[i] = &trace->frames[i];
	}
	/* Frames that are parts of nothing come last. */
	qsort(frames, trace->frame_count, sizeof(*frames), by_part);
	for (size_t i = 0; i < trace->event_count; i++) {
		size_t from = at;

		while (at < trace->frame_count && frames[at]->part_of == i)
			at++;
		check_op(c, &trace->events[i], frames + from, at - from);
	}
	free(frames);
}
