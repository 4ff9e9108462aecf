/*
 * child.h - child frames, for nodes that run functions; and how such nodes are built.
 */
#ifndef WEIRI_CHILD_H
#define WEIRI_CHILD_H

#include "session/frame.h"
#include "session/function.h"
#include "session/step.h"
#include "session/trace.h"

/* --- child.c --- */

/* Returns an empty child frame for the node of the site, or NULL. */
struct weiri_frame *weiri_child_create(const struct weiri_site *site, const struct weiri_body *body);
/* The same for a node that has no other child, and whose op says so (weiri_inner): in the room of its frame, if that is straight. */
struct weiri_frame *weiri_child_create_only(const struct weiri_site *site, const struct weiri_body *body);
/* Empties the frame, and gives its memory back. Accepts NULL. No thread runs nodes of it. */
void weiri_child_destroy(struct weiri_frame *child);
/* Gives back one use of the memory. The step has not been freed. */
void weiri_child_leave(struct weiri_frame *child);
/*
 * Moves the results of a child that has ended to results[], or leaves these as they are and returns
 * false: a node of the step has failed or was left out, maybe in this frame.
 */
bool weiri_child_take_results(struct weiri_frame *child, weir_tensor *results[]);
/* Records that the child begins, after weiri_frame_begin() or its like, if its parent is recorded. */
static inline void weiri_child_begun(struct weiri_frame *child, enum weiri_trace_frame_kind kind, uint64_t iteration)
{
	if (WEIRI_UNLIKELY(child->parent->trace != NULL))
		weiri_trace_child(child, kind, iteration);
}
/* Tells the trace that the node of the site had this effect. */
static inline void weiri_site_tell(const struct weiri_site *site, enum weiri_trace_effect_kind kind, uint64_t object,
                                   uint64_t number)
{
	if (WEIRI_UNLIKELY(site->frame->trace != NULL))
		weiri_trace_call_effect(site->frame, site->index, kind, object, number);
}
/* Returns the state of the node of the site. */
void *weiri_site_state(const struct weiri_site *site);
/* Fails the node of the site. Returns true: the node has ended. */
bool weiri_site_failed(const struct weiri_site *site, enum weir_status status, const char *format, ...)
	WEIR_PRINTF(3, 4);
/* Fails the node of the site and returns false if values[i], for tensor i of the body, do not fit it. */
bool weiri_site_accepts(const struct weiri_site *site, const struct weiri_body *body, weir_tensor *const values[]);

/* --- call_build.c --- */

struct weiri_call_request {
	weir_graph *graph;
	const struct weiri_op *op;
	const char *name;
	const weir_output *selector; /* input 0, before the tensors; NULL: none */
	weir_function *const *functions;
	size_t function_count;
	const struct weir_argument *arguments;
	size_t count;
	uint64_t limit;
	uint32_t whole; /* of a map; see rows */
	bool rows;      /* the bodies get rows of the tensors, except of the last `whole` */
	weir_error *error;
};

/* What the request makes of its bodies: the specs of the outputs. */
typedef enum weir_status weiri_call_specs_fn(const struct weiri_call_request *request, struct weiri_calls *calls,
                                             struct weiri_spec specs[], size_t *count);

/* Finds the bodies, and builds the node with its outputs. */
enum weir_status weiri_call_build(const struct weiri_call_request *request, weiri_call_specs_fn *specs,
                                  weir_output outs[], weir_node **node);
/* --- op_call.c --- */

/* How a node runs one body: of calls, and of replicas. */
extern const struct weiri_inner weiri_call_inner;
/* The results are what those of all bodies have in common. */
weiri_call_specs_fn weiri_call_specs;

/* The gradient rule of a call: call_gradient.c. */
weiri_gradient_fn weiri_call_gradient;

/* --- call_build.c --- */

/* The touches and drop functions of an op that calls functions. */
bool weiri_calls_touch(const weir_node *node, size_t i, struct weiri_resource *resource);
void weiri_calls_drop(void *attribute);
/* Returns true if every tensor of spec `from` fits `to`. */
bool weiri_spec_implies(const struct weiri_spec *from, const struct weiri_spec *to);

#endif
