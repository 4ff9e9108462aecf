/*
 * trace.h - how the nodes of a frame are recorded (weir/flow/trace.h).
 *
 * The record of a node says which events the node saw as its inputs. The frame has, for each node,
 * the event of the node once it has ended. The thread that runs a node stores it after the outputs,
 * and the thread that starts a later node reads it before the inputs. Nothing but the order of the
 * plan makes the one come before the other. So a node that starts too early sees no event, or one
 * of an earlier use of the frame's memory, whatever the clocks say.
 *
 * What the node depends on is recorded once for each plan, and belongs to the trace. It is taken from the graph and the
 * feeds, not from the edges of the plan, so a check of the trace is a check of the plan too. The same
 * holds for the bodies that a node may run: the graph names them, and each frame names its plan.
 *
 * An op that computes, and does nothing else, has one short record, which is written when it has ended. What it
 * saw is still read before its inputs. Other ops have a record when they start and one when they end, with
 * records of their effects between.
 *
 * A node that runs functions is recorded as other nodes are. Each activation of a body is a frame of
 * its own in the trace, although loops and maps use the memory of a frame again: it gets a number
 * when it begins, and the events of the activation before are cleared. The frame says of which event
 * it is a part. The thread that starts the node stores this event in `begun`, before it begins the
 * first child; every thread that begins or ends a child does so after that (H1 of child.c).
 */
#ifndef WEIRI_FLOW_TRACE_H
#define WEIRI_FLOW_TRACE_H

#include <weir/flow/trace.h>

#include "graph/op.h"
#include "run/countdown.h"
#include "run/trace_buffer.h"
#include "run/trace_format.h"
#include "session/plan.h"

struct weiri_frame;

enum { WEIRI_TRACE_PLAN_LISTS = 64 };

struct weir_trace {
	weir_allocator allocator;
	uint32_t flags;
	struct weiri_trace_buffers buffers;
	struct weiri_published_list plans[WEIRI_TRACE_PLAN_LISTS]; /* those that were recorded, by their ids */
	struct weiri_serial plan_numbers;
	struct weiri_serial frames;
	struct weiri_countdown users; /* the owner, sessions, and frames */
};

/* A plan as a trace knows it. */
struct weiri_traced_plan {
	struct weiri_published link; /* in the trace */
	uint64_t id;                 /* of the plan, which may be gone */
	uint64_t number;
	size_t bytes;
	uint32_t *starts; /* by node: where its dependencies begin in `nodes`; one more ends the last */
	uint32_t *nodes;
};

/* What a frame that is recorded has in addition. */
struct weiri_frame_trace {
	weir_trace *trace;
	const struct weiri_traced_plan *plan;
	uint64_t number;
	size_t bytes;
	uint64_t *begun;  /* by node that runs functions: the event of its run */
	uint64_t ended[]; /* by node: the event of its run, once that has ended */
};

/*
 * Begins to record a frame of `plan`, of which no node has started: sets frame->trace, or leaves it
 * NULL if there is no memory. `part_of` is the event of the node that made the frame, or 0.
 */
void weiri_trace_frame(weir_trace *trace, struct weiri_frame *frame, struct weiri_plan *plan,
                       enum weiri_trace_frame_kind kind, uint64_t part_of, uint64_t iteration);
/*
 * The same for a child that begins, and has its feeds: it is a part of the run of the node that waits
 * for it. Nothing happens if the parent is not recorded.
 */
void weiri_trace_child(struct weiri_frame *child, enum weiri_trace_frame_kind kind, uint64_t iteration);
/* The child has ended, and has its results if it is complete. Nothing happens if it is not recorded. */
void weiri_trace_child_ended(const struct weiri_frame *child, bool complete);
/* All nodes of the frame have ended or were skipped. */
void weiri_trace_frame_ended(const struct weiri_frame *frame, bool complete);
/* Frees what the frame has for its trace. frame->trace is not NULL. */
void weiri_trace_frame_free(struct weiri_frame *frame);

/*
 * Returns the buffer of this thread, which it may use as long as it runs; or NULL, and then there is
 * no memory. To find it takes time linear in the number of threads, and a thread that has not used
 * Weir before asks the system for its id.
 */
struct weiri_trace_buffer *weiri_trace_writer(const struct weiri_frame *frame);
/* Returns a point for the new event of node `index`, which starts at start_ns. `buffer` may be NULL. */
struct weiri_trace_point weiri_trace_start(const struct weiri_frame *frame, uint32_t index,
                                           struct weiri_trace_buffer *buffer, uint64_t start_ns);
/* The node has ended, and its outputs are stored. Returns the time. `buffer` may be NULL. */
uint64_t weiri_trace_end(const struct weiri_frame *frame, uint32_t index, struct weiri_trace_buffer *buffer,
                         const struct weiri_trace_point *point, enum weir_status status);
/* A run that may get a brief record. */
struct weiri_trace_brief {
	uint64_t start_ns;
	uint32_t seen_count;
	uint64_t seen[WEIRI_TRACE_BRIEF_MOST];
};
/*
 * As weiri_trace_start(), for a node with WEIRI_NODE_COMPUTES. Returns false if the node must be recorded
 * by the other two calls, and then has done nothing.
 */
bool weiri_trace_start_brief(const struct weiri_frame *frame, uint32_t index, const struct weiri_trace_buffer *buffer,
                             uint64_t start_ns, struct weiri_trace_brief *brief);
/* As weiri_trace_end(), after weiri_trace_start_brief(). */
uint64_t weiri_trace_end_brief(const struct weiri_frame *frame, uint32_t index, struct weiri_trace_buffer *buffer,
                               const struct weiri_trace_brief *brief, enum weir_status status);
/*
 * The same for node `index`, which runs functions. It may end on another thread than the one that
 * started it.
 */
void weiri_trace_call_ended(const struct weiri_frame *frame, uint32_t index);
/* Records an effect of node `index`, which runs functions and has not ended. */
void weiri_trace_call_effect(const struct weiri_frame *frame, uint32_t index, enum weiri_trace_effect_kind kind,
                             uint64_t object, uint64_t number);
/* Records checksums of the values that node `index` passes to its parts, if the trace has them. */
void weiri_trace_passed(const struct weiri_frame *frame, uint32_t index);
/* Records checksums of the outputs, if the trace has them, before the node's uses end. */
void weiri_trace_outputs(const struct weiri_frame *frame, uint32_t index, const struct weiri_trace_point *point);
/* Records checksums of the inputs, if the trace has them. With `after`, of those that the node did not take. */
void weiri_trace_inputs(const struct weiri_frame *frame, uint32_t index, const struct weiri_trace_point *point,
                        bool after);

#endif
