/*
 * chrome.c - a trace as JSON for chrome://tracing and Perfetto: a slice for each op and each frame,
 * an arrow for each dependency, and the depth of each queue. An op that runs functions contains the
 * slices of its frames, and a frame those of its ops.
 *
 * The format is described in "Trace Event Format" (Google). Times are microseconds.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trace.h"

struct drawing {
	const struct trace *trace;
	trace_put_fn *put;
	void *context;
	uint64_t origin_ns;
	bool any;
};

static void put(const struct drawing *d, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void put(const struct drawing *d, const char *format, ...)
{
	char text[512];
	va_list arguments;

	va_start(arguments, format);
	(void)vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	d->put(d->context, text);
}

/* Text between quotes. Bytes that JSON cannot have are left out. */
static void put_name(const struct drawing *d, const char *name)
{
	for (; *name != '\0'; name++) {
		unsigned char c = (unsigned char)*name;

		if (c == '"' || c == '\\')
			put(d, "\\%c", c);
		else if (c >= 0x20 && c < 0x7f)
			put(d, "%c", c);
		else if (c < 0x20)
			put(d, "\\u%04x", c);
		else
			put(d, "?");
	}
}

static void begin(struct drawing *d, const char *kind, uint64_t time_ns, uint32_t thread)
{
	put(d, "%s\n{\"ph\":\"%s\",\"pid\":1,\"tid\":%" PRIu32 ",\"ts\":%.3f", d->any ? "," : "", kind, thread,
	    (double)(time_ns - d->origin_ns) / 1e3);
	d->any = true;
}

/* -- slices ------------------------------------------------------------------------------------ */

/*
 * What is drawn as a slice: an op, or a frame. The slices of one thread must nest: an op that waited,
 * or ended on another thread, may overlap others in part. Such a slice is drawn by itself, as an
 * event that is no part of a thread's stack.
 */
struct slice {
	uint64_t start_ns, end_ns;
	uint32_t thread, end_thread;
	uint32_t depth;
	bool is_frame, nests;
	size_t of; /* the position of the op or frame */
};

enum { MOST_DEPTH = 64 };

/* In how many frames the frame is. What refers to itself in a circle is cut off. */
static uint32_t depth_of(const struct trace *trace, size_t frame)
{
	uint32_t depth = 0;

	while (depth < MOST_DEPTH && frame != TRACE_NONE && trace->frames[frame].part_of != TRACE_NONE) {
		frame = trace->events[trace->frames[frame].part_of].frame;
		depth++;
	}
	return depth;
}

static uint64_t end_of(uint32_t ends, uint64_t start_ns, uint64_t end_ns)
{
	return ends != 0 && end_ns > start_ns ? end_ns : start_ns;
}

static struct slice slice_of_event(const struct trace *trace, size_t i)
{
	const struct trace_event *event = &trace->events[i];

	return (struct slice){.start_ns = event->start_ns,
	                      .end_ns = end_of(event->ends, event->start_ns, event->end_ns),
	                      .thread = event->thread,
	                      .end_thread = event->ends != 0 ? event->end_thread : event->thread,
	                      .depth = 2 * depth_of(trace, event->frame) + 1,
	                      .of = i};
}

static struct slice slice_of_frame(const struct trace *trace, size_t i)
{
	const struct trace_frame *frame = &trace->frames[i];

	return (struct slice){.start_ns = frame->begin_ns,
	                      .end_ns = end_of(frame->ends, frame->begin_ns, frame->end_ns),
	                      .thread = frame->thread,
	                      .end_thread = frame->ends != 0 ? frame->end_thread : frame->thread,
	                      .depth = 2 * depth_of(trace, i),
	                      .is_frame = true,
	                      .of = i};
}

/* By thread and time; what contains another comes first. */
static int by_thread_and_start(const void *a, const void *b)
{
	const struct slice *x = a, *y = b;

	if (x->thread != y->thread)
		return x->thread < y->thread ? -1 : 1;
	if (x->start_ns != y->start_ns)
		return x->start_ns < y->start_ns ? -1 : 1;
	if (x->end_ns != y->end_ns)
		return x->end_ns > y->end_ns ? -1 : 1;
	return x->depth < y->depth ? -1 : x->depth > y->depth;
}

/* Finds the slices that nest. `ends` has room for all: the ends of those that contain the next one. */
static void find_nesting(struct slice slices[], size_t count, uint64_t ends[])
{
	size_t open = 0;

	for (size_t i = 0; i < count; i++) {
		struct slice *s = &slices[i];

		if (i == 0 || slices[i - 1].thread != s->thread)
			open = 0;
		while (open != 0 && ends[open - 1] <= s->start_ns && ends[open - 1] < s->end_ns)
			open--;
		s->nests = s->end_thread == s->thread && (open == 0 || s->end_ns <= ends[open - 1]);
		if (s->nests)
			ends[open++] = s->end_ns;
	}
}

static void put_op(const struct drawing *d, const struct trace_event *event)
{
	const struct trace_node *node = trace_node_of(d->trace, event);

	put(d, ",\"cat\":\"");
	put_name(d, node != NULL ? node->op : "?");
	put(d, "\",\"name\":\"");
	put_name(d, node != NULL ? node->name : "?");
	put(d, "\",\"args\":{\"frame\":%" PRIu64 ",\"status\":%" PRIu32 "}", event->frame_number, event->status);
}

/* The name of a frame: "iteration 2 of loop", or "run 7". */
static void put_frame(const struct drawing *d, const struct trace_frame *frame)
{
	static const char *const kinds[] = {[WEIRI_TRACE_STEP] = "run",      [WEIRI_TRACE_CALL] = "call",
	                                    [WEIRI_TRACE_BRANCH] = "branch", [WEIRI_TRACE_ITERATION] = "iteration",
	                                    [WEIRI_TRACE_ROW] = "row",       [WEIRI_TRACE_TEST] = "test"};
	const struct trace_node *node =
		frame->part_of != TRACE_NONE ? trace_node_of(d->trace, &d->trace->events[frame->part_of]) : NULL;

	put(d, ",\"cat\":\"frame\",\"name\":\"%s %" PRIu64,
	    frame->kind < sizeof(kinds) / sizeof(kinds[0]) ? kinds[frame->kind] : "frame",
	    node != NULL ? frame->iteration : frame->number);
	if (node != NULL) {
		put(d, " of ");
		put_name(d, node->name);
	}
	put(d, "\",\"args\":{\"frame\":%" PRIu64 ",\"plan\":%" PRIu64 "}", frame->number, frame->plan_number);
}

static void put_slice(const struct drawing *d, const struct slice *s)
{
	if (s->is_frame)
		put_frame(d, &d->trace->frames[s->of]);
	else
		put_op(d, &d->trace->events[s->of]);
}

static void draw_slice(struct drawing *d, const struct slice *s)
{
	if (s->nests) {
		begin(d, "X", s->start_ns, s->thread);
		put(d, ",\"dur\":%.3f", (double)(s->end_ns - s->start_ns) / 1e3);
		put_slice(d, s);
		put(d, "}");
		return;
	}
	begin(d, "b", s->start_ns, s->thread);
	put(d, ",\"id\":\"%c%zu\"", s->is_frame ? 'f' : 'e', s->of);
	put_slice(d, s);
	put(d, "}");
	begin(d, "e", s->end_ns, s->end_thread);
	put(d, ",\"id\":\"%c%zu\"", s->is_frame ? 'f' : 'e', s->of);
	put_slice(d, s);
	put(d, "}");
}

static void draw_slices(struct drawing *d)
{
	const struct trace *trace = d->trace;
	size_t count = 0, most = trace->event_count + trace->frame_count;
	struct slice *slices = malloc((most + 1) * sizeof(*slices));
	uint64_t *ends = malloc((most + 1) * sizeof(*ends));

	if (slices != NULL && ends != NULL) {
		for (size_t i = 0; i < trace->frame_count; i++)
			slices[count++] = slice_of_frame(trace, i);
		for (size_t i = 0; i < trace->event_count; i++)
			slices[count++] = slice_of_event(trace, i);
	}
	if (count != 0) {
		qsort(slices, count, sizeof(*slices), by_thread_and_start);
		find_nesting(slices, count, ends);
	}
	for (size_t i = 0; i < count; i++)
		draw_slice(d, &slices[i]);
	free(slices);
	free(ends);
}

static void draw_arrows(struct drawing *d, size_t i)
{
	const struct trace_event *event = &d->trace->events[i];

	for (size_t s = 0; s < event->seen_count; s++) {
		size_t from = trace_find_event(d->trace, event->seen[s]);

		if (from == TRACE_NONE || d->trace->events[from].ends == 0)
			continue;
		begin(d, "s", d->trace->events[from].start_ns, d->trace->events[from].thread);
		put(d, ",\"cat\":\"edge\",\"name\":\"edge\",\"id\":\"%zu.%zu\"}", i, s);
		begin(d, "f", event->start_ns, event->thread);
		put(d, ",\"bp\":\"e\",\"cat\":\"edge\",\"name\":\"edge\",\"id\":\"%zu.%zu\"}", i, s);
	}
}

/* -- depths of queues -------------------------------------------------------------------------- */

struct change {
	uint64_t queue, time_ns;
	int by;
};

static int by_queue_and_time(const void *a, const void *b)
{
	const struct change *x = a, *y = b;

	if (x->queue != y->queue)
		return x->queue < y->queue ? -1 : 1;
	if (x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? -1 : 1;
	return y->by - x->by;
}

static void draw_depths(struct drawing *d)
{
	const struct trace *trace = d->trace;
	struct change *changes = malloc((trace->effect_count + 1) * sizeof(*changes));
	size_t count = 0;
	int64_t depth = 0;

	for (size_t i = 0; changes != NULL && i < trace->effect_count; i++) {
		const struct trace_effect *effect = &trace->effects[i];
		bool puts = effect->kind == WEIRI_TRACE_PUT;

		if ((!puts && effect->kind != WEIRI_TRACE_TAKE) || effect->event == TRACE_NONE ||
		    trace->events[effect->event].ends == 0 || trace->events[effect->event].status != WEIR_OK)
			continue;
		changes[count++] = (struct change){effect->object, trace->events[effect->event].end_ns, puts ? 1 : -1};
	}
	if (count != 0)
		qsort(changes, count, sizeof(*changes), by_queue_and_time);
	for (size_t i = 0; i < count; i++) {
		const struct trace_object *queue = trace_object_of(trace, changes[i].queue);

		depth = (i == 0 || changes[i].queue != changes[i - 1].queue ? 0 : depth) + changes[i].by;
		begin(d, "C", changes[i].time_ns, 0);
		put(d, ",\"name\":\"queue ");
		put_name(d, queue != NULL ? queue->name : "?");
		put(d, "\",\"args\":{\"items\":%" PRId64 "}}", depth > 0 ? depth : 0);
	}
	free(changes);
}

void trace_chrome(const struct trace *trace, trace_put_fn *to, void *context)
{
	struct drawing d = {trace, to, context, UINT64_MAX, false};

	for (size_t i = 0; i < trace->event_count; i++) {
		if (trace->events[i].start_ns < d.origin_ns)
			d.origin_ns = trace->events[i].start_ns;
	}
	for (size_t i = 0; i < trace->frame_count; i++) {
		if (trace->frames[i].begin_ns < d.origin_ns)
			d.origin_ns = trace->frames[i].begin_ns;
	}
	put(&d, "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[");
	draw_slices(&d);
	for (size_t i = 0; i < trace->event_count; i++)
		draw_arrows(&d, i);
	draw_depths(&d);
	put(&d, "\n]}\n");
}
