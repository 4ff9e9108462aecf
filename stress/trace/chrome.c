/*
 * chrome.c - a trace as JSON for chrome://tracing and Perfetto: a slice for each op, an arrow for
 * each dependency, and the depth of each queue.
 *
 * The format is described in "Trace Event Format" (Google). Times are microseconds. A slice of an op
 * that waited for a queue is on the thread that started it.
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

static void draw_event(struct drawing *d, size_t i)
{
	const struct trace_event *event = &d->trace->events[i];
	const struct trace_node *node = trace_node_of(d->trace, event);
	uint64_t end_ns = event->ends != 0 && event->end_ns > event->start_ns ? event->end_ns : event->start_ns;

	begin(d, "X", event->start_ns, event->thread);
	put(d, ",\"dur\":%.3f,\"cat\":\"", (double)(end_ns - event->start_ns) / 1e3);
	put_name(d, node != NULL ? node->op : "?");
	put(d, "\",\"name\":\"");
	put_name(d, node != NULL ? node->name : "?");
	put(d, "\",\"args\":{\"frame\":%" PRIu64 ",\"status\":%" PRIu32 "}}", event->frame_number, event->status);
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
	put(&d, "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[");
	for (size_t i = 0; i < trace->event_count; i++)
		draw_event(&d, i);
	draw_depths(&d);
	put(&d, "\n]}\n");
}
