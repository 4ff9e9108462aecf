/*
 * frame.h - one activation of a plan: the values, and the state of its units and waits.
 *
 * A frame is memory that is used again. The root frame of a step lies in the memory of the step. A
 * node that runs a function makes child frames (child.h), each with memory of its own, or in the room
 * that a straight parent has for one child (plan.h). A frame knows its parent, and which node of the
 * parent waits for it.
 *
 * A value goes with its last use. A slot whose value the frame owns holds a reference, or a handle
 * on a version, from the end of the node that makes the value until its last use has ended. If that
 * use is known beforehand, the node takes the value: it may pass the reference on, or write over
 * the elements, if nobody else has a reference. So a chain of elementwise ops needs one buffer.
 * Otherwise a count tells which node was the last, and the thread of that node releases the value.
 *
 * A step that is stopped skips nodes, and so skips uses. What is left is released at its end.
 *
 * Invariants
 *   F1  a value that the frame owns is released, or passed on, once: by the thread that ends its
 *       last use, by the caller that takes the results, or when the frame is emptied. Each of them
 *       clears the slot
 *   F2  a frame that is not in use is empty: no slot that it owns has a value, and no handle is held
 *   F3  a node reads the slots of its inputs before its own uses end, and these come before the end
 *       of the value (L2 of plan.h). The count that tells the last use carries the reads of the
 *       others (P1 of run/countdown.h)
 */
#ifndef WEIRI_FRAME_H
#define WEIRI_FRAME_H

#include <weir/cancel.h>
#include <weir/pool.h>
#include <weir/var.h>

#include "run/countdown.h"
#include "run/trace_buffer.h"
#include "session/plan.h"

struct weiri_step;
struct weiri_frame;
struct weiri_frame_trace;

enum { WEIRI_NO_UNIT = INT32_MAX };

/* Of the memory of a step, or of a child: so the lines that an activation touches are always as many. */
enum { WEIRI_FRAME_ALIGNMENT = 64 };

/* Of a unit that is ready or waits. Not initialized before. */
struct weiri_frame_unit {
	weir_task task;
	struct weiri_frame *frame;
	uint32_t at;   /* the node with which the task begins */
	uint32_t next; /* in the ready list of the thread that made the unit ready */
};

/* An asynchronous operation of a node: on a queue, or to enter a critical section. */
struct weiri_wait {
	weir_task task;
	struct weiri_frame *frame;
	uint32_t unit;
	uint32_t index;                 /* of the plan node */
	struct weiri_countdown parties; /* the start and the completion; the second continues the step */
	struct weiri_countdown users;   /* of `operation`: finish() and the hook */
	struct weiri_latch done;
	weir_pending *operation;
	weir_cancel_hook *hook;
	uint64_t since_ns; /* when the operation began to wait; 0: it did not wait */
	enum weir_status status;
	struct weiri_trace_point point; /* of the event, if the frame is recorded */
	weir_error error;
};

/* The values of the feeds, wherever the caller has them: each `stride` bytes behind the one before. */
struct weiri_fed {
	weir_tensor *const *first;
	size_t stride;
};

static inline weir_tensor *weiri_fed_value(const struct weiri_fed *fed, size_t i)
{
	return *(weir_tensor *const *)(const void *)((const char *)fed->first + i * fed->stride);
}

/* What each activation uses comes first. */
struct weiri_frame {
	struct weiri_step *step;
	struct weiri_plan *plan;
	struct weiri_frame *parent;          /* NULL: the root frame of its step */
	uint32_t unit, index;                /* of the parent's plan: the node that waits for the child */
	const weir_critical_section *within; /* which user code of the frame must not enter; or NULL */
	uint64_t number;                     /* of the iteration or row */
	struct weiri_countdown remaining;    /* units that have not ended */
	struct weiri_countdown users; /* of the memory of a child: its node, and hooks of its waits (H4 of child.c) */
	bool empty;                   /* the owner only: the results were taken, so F2 holds */
	bool in_room;                 /* the memory of a child is the room of its parent */
	weir_tensor **values;
	weir_tensor **inputs;
	weir_read *holds;
	struct weiri_frame_trace *trace; /* NULL: it is not recorded */
	struct weiri_frame *room;        /* of a straight plan with calls: their child, of the last body that was called */
	struct weiri_countdown *counts;
	struct weiri_frame_unit *units;
	struct weiri_wait *waits;
	void *states;
	void *owner; /* of a child: what its node knows of it */
	/* late feeds: by feed, and by node */
	struct weiri_latch *given; /* claimed by the thread that feeds it; set once the value is there */
	struct weiri_latch *told;  /* set when the node has ended, and none of the step has failed */
	struct weiri_latch *taken; /* by fetch: claimed by the call that takes the value */
};

/*
 * Lays the parts of a new frame out in `block`, which is zeroed up to the counts. `layout` is that of
 * the plan's steps or child frames.
 */
void weiri_frame_lay_out(struct weiri_frame *frame, void *block, const struct weiri_step_layout *layout,
                         struct weiri_plan *plan);
/* Prepares an empty frame for a run. The feeds fit their outputs; `fed` is NULL if they come late. */
void weiri_frame_begin(struct weiri_frame *frame, const struct weiri_fed *fed);
/* The same for a frame that owns its feeds: takes them over, as references, and clears values[]. */
void weiri_frame_begin_with(struct weiri_frame *frame, weir_tensor *values[]);
/* The same with inputs first, first + 1, ... of a call, which pass to the frame (weiri_call_pass()). */
void weiri_frame_begin_passing(struct weiri_frame *frame, const struct weiri_call *call, uint32_t first);
/* Makes F2 true. No thread runs nodes of the frame any more. */
void weiri_frame_clear(struct weiri_frame *frame);
/* Moves the fetched values to results[]. Each node has succeeded. */
void weiri_frame_take_results(struct weiri_frame *frame, weir_tensor *results[]);
/* The same as the next one, but for the inputs that the node took. */
void weiri_frame_end_rest(struct weiri_frame *frame, const struct weiri_plan_node *p);
/*
 * Ends the uses of the inputs of a node that has run, whether or not it succeeded, and releases the
 * outputs that no node uses. Tells threads that fetch.
 */
static WEIRI_ALWAYS_INLINE void weiri_frame_node_ended(struct weiri_frame *frame, const struct weiri_plan_node *p)
{
	for (uint64_t taken = p->taken; taken != 0; taken &= taken - 1) {
		uint32_t use = p->inputs + (uint32_t)__builtin_ctzll(taken);

		frame->values[frame->plan->uses[use].slot] = NULL;
		if (frame->inputs[use] != NULL) /* the node did not pass the reference on */
			weir_tensor_release(frame->inputs[use]);
	}
	if (WEIRI_UNLIKELY((p->flags & (WEIRI_NODE_ENDS_USES | WEIRI_NODE_SPILLS | WEIRI_NODE_TELLS)) != 0))
		weiri_frame_end_rest(frame, p);
}

#endif
