/*
 * trace.h - traces of weir/flow/trace.h, read back: the tables that the checks and the drawing use.
 *
 * A table refers to another by position. What a file refers to and does not have is TRACE_NONE. A
 * trace that was read is consistent in itself: positions are in range, and texts are terminated. It
 * need not be what a right program records; check.c decides that.
 */
#ifndef WEIRI_TRACE_READ_H
#define WEIRI_TRACE_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <weir/status.h>

#include "run/trace_format.h"

#define TRACE_NONE SIZE_MAX

struct trace_object {
	uint64_t address;
	const char *kind, *name;
};

struct trace_node {
	bool known; /* false: its record is missing */
	uint64_t flags;
	const uint64_t *dependencies; /* as in the file */
	size_t dependency_count;
	const uint64_t *bodies; /* the numbers of the plans of its functions; 0: not known */
	size_t body_count;
	struct trace_object *objects;
	size_t object_count;
	const char *name, *op;
};

struct trace_plan {
	uint64_t number;
	struct trace_node *nodes;
	uint32_t node_count;
};

struct trace_frame {
	uint64_t number;
	uint64_t plan_number, part_of_number;
	size_t plan;    /* position, or TRACE_NONE */
	size_t part_of; /* position of an event, or TRACE_NONE */
	uint64_t iteration;
	uint32_t kind;
	uint32_t thread;
	uint64_t begin_ns, end_ns;
	uint32_t ends; /* how often it ended */
	uint32_t end_thread;
	bool complete;
	size_t first_value, value_count; /* in trace->values */
};

struct trace_event {
	uint64_t number;
	uint64_t frame_number;
	size_t frame;
	uint32_t node;
	uint32_t thread, end_thread;
	uint64_t start_ns, end_ns;
	uint32_t ends;
	uint32_t status;
	const uint64_t *seen;
	size_t seen_count;
	size_t first_effect, effect_count; /* in trace->effects */
};

struct trace_effect {
	uint64_t event_number;
	size_t event;
	uint32_t kind;
	uint64_t object, number;
};

/* The checksum of a value that a frame got or gave. */
struct trace_value {
	uint64_t frame_number;
	uint32_t kind; /* WEIRI_TRACE_GOT or _GAVE */
	uint64_t which, sum;
};

struct trace {
	uint64_t flags, dropped;
	struct trace_plan *plans; /* by number */
	size_t plan_count;
	struct trace_frame *frames; /* by number */
	size_t frame_count;
	struct trace_event *events; /* by number */
	size_t event_count;
	struct trace_effect *effects; /* by event; within one, by kind and object */
	size_t effect_count;
	struct trace_value *values; /* by frame */
	size_t value_count;
	/* private */
	uint64_t *words;
	size_t word_count;
	struct trace_object *objects;
	char *texts;
	uint64_t *brief_seen; /* what brief records say of dependencies, as starts say it */
};

/*
 * Reads a file that lies in memory. Errors: WEIR_DATA_LOSS (the message says at which word, and what
 * is wrong), WEIR_UNIMPLEMENTED (another version), WEIR_RESOURCE_EXHAUSTED.
 */
enum weir_status trace_read(const void *bytes, size_t size, struct trace *out, weir_error *error);
void trace_free(struct trace *trace);

/* Return the position, or TRACE_NONE. */
size_t trace_find_event(const struct trace *trace, uint64_t number);
size_t trace_find_frame(const struct trace *trace, uint64_t number);
/* An effect of the event of this kind, on this object; or NULL. */
const struct trace_effect *trace_find_effect(const struct trace *trace, const struct trace_event *event, uint32_t kind,
                                             uint64_t object);

/* The kind of frames that the node makes; WEIRI_TRACE_STEP: none. */
static inline uint32_t trace_parts_of(const struct trace_node *node)
{
	return (uint32_t)(node->flags >> WEIRI_TRACE_NODE_PARTS_SHIFT & 15);
}

/* The node of an event; NULL if the trace does not know it. */
const struct trace_node *trace_node_of(const struct trace *trace, const struct trace_event *event);
/* The first object of that address that a node names, or NULL. */
const struct trace_object *trace_object_of(const struct trace *trace, uint64_t address);

enum { TRACE_TEXT_SIZE = 256 };
/* Writes `read "train/w" in frame 3, on thread 27604` to text. Returns text. */
const char *trace_describe(const struct trace *trace, const struct trace_event *event, char text[TRACE_TEXT_SIZE]);

/* --- check.c, parts.c, order.c --- */

/* Called with each line of a fault. */
typedef void trace_report_fn(void *context, const char *line);

/* Returns the number of faults. SIZE_MAX if there was no memory. */
size_t trace_check(const struct trace *trace, trace_report_fn *report, void *context);
/* The part of the check that looks for a cycle. */
size_t trace_check_order(const struct trace *trace, trace_report_fn *report, void *context);

/* --- hidden.c --- */

struct trace_hiding {
	size_t ops;
	uint64_t total_ns, hidden_ns; /* of all of them; and beside other ops */
};

/* Adds up the ops of the kind `op`. Returns false if there was no memory. */
bool trace_hidden(const struct trace *trace, const char *op, struct trace_hiding *out);

/* --- chrome.c --- */

typedef void trace_put_fn(void *context, const char *text);
/* Writes the trace as JSON for chrome://tracing and Perfetto. */
void trace_chrome(const struct trace *trace, trace_put_fn *put, void *context);

#endif
