/*
 * function.h - functions, their bodies, and the nodes that run them.
 */
#ifndef WEIRI_FUNCTION_H
#define WEIRI_FUNCTION_H

#include <weir/flow/function.h>

#include "graph/node.h"
#include "run/countdown.h"
#include "run/published.h"
#include "session/plan.h"

struct weiri_parameter {
	const char *name;
	enum weir_parameter_kind kind;
	struct weiri_spec spec; /* dtype 0: any */
};

struct weir_function {
	weir_allocator allocator;
	size_t bytes;
	const char *name;
	weir_function_fn *build;
	void *context;
	size_t max_bodies;
	bool own_worker;              /* WEIR_FUNCTION_OWN_WORKER */
	struct weiri_countdown users; /* the owner, nodes, and runs */
	struct weiri_published_list bodies;
	size_t parameter_count, tensor_count, result_count;
	struct weiri_parameter *parameters;
};

/*
 * What one argument of a signature is: a tensor of this spec, of which only dtype and rank count; or
 * the object.
 */
struct weiri_given {
	struct weiri_spec spec;
	const void *object;
};

/* A function for one signature. Immutable. */
struct weiri_body {
	struct weiri_published link; /* in function->bodies */
	weir_function *function;
	size_t bytes;
	weir_graph *graph;
	struct weiri_plan *plan;          /* the feeds are the tensors, the fetches are the results */
	struct weiri_given *given;        /* by parameter */
	struct weiri_resource *resources; /* what its nodes read and write; each object once */
	size_t resource_count;
};

/* The parameter that feed `feed` of the plan is. */
const struct weiri_parameter *weiri_body_parameter(const struct weiri_body *body, size_t feed);
/* Returns the spec of result i, or of tensor i as the body expects it. */
static inline const struct weiri_spec *weiri_body_result(const struct weiri_body *body, size_t i)
{
	return weiri_output_spec(body->plan->fetches[i]);
}
static inline const struct weiri_spec *weiri_body_tensor(const struct weiri_body *body, size_t i)
{
	return weiri_output_spec(body->plan->feeds[i]);
}

/*
 * Sets *out to the body for the signature given[0 .. parameter_count-1], which is built if there is
 * none. `caller` is the graph that calls the function, or NULL. The message does not name the call.
 */
enum weir_status weiri_function_body(weir_function *function, weir_graph *caller, const struct weiri_given given[],
                                     struct weiri_body **out, weir_error *error);
/* Checks an argument against its parameter, and refuses it with both in the message. */
enum weir_status weiri_parameter_check(const weir_function *function, size_t i, const struct weiri_given *given,
                                       weir_error *error);
/* A node or run begins, or ends, to use the function. */
static inline void weiri_function_enter(weir_function *function)
{
	weiri_countdown_join(&function->users);
}
static inline void weiri_function_leave(weir_function *function)
{
	(void)weiri_countdown_arrive(&function->users);
}

/* --- effects.c --- */

/* The nodes of a body that run whether or not a result needs them, and what the nodes that run use. */
struct weiri_effects {
	weir_allocator allocator;
	weir_node **must_run;
	size_t must_run_count;
	struct weiri_resource *resources;
	size_t resource_count;
	size_t node_count; /* room in both arrays */
	size_t resource_room;
};

/*
 * Adds the automatic control edges of a body. weiri_effects_fini() frees *effects, also after a
 * failure.
 */
enum weir_status weiri_effects_order(weir_graph *body, const weir_output results[], size_t result_count,
                                     struct weiri_effects *effects, weir_error *error);
void weiri_effects_fini(struct weiri_effects *effects);

/* --- Nodes that run functions: with WEIRI_OP_CALLS --- */

/* Their attribute. */
struct weiri_calls {
	uint64_t limit; /* of iterations; of rows at once */
	uint32_t whole; /* of a map: so many of the last inputs go whole to each row */
	bool check;     /* an input, or what goes from iteration to iteration, may not fit the body */
	bool owns;      /* the function, which goes with the node */
	uint32_t body_count;
	struct weiri_body *bodies[];
};

static inline const struct weiri_calls *weiri_calls_of(const weir_node *node)
{
	return node->attribute;
}

/* Where a node is that runs functions: in which frame, and what the thread that runs it knows. */
struct weiri_site {
	struct weiri_frame *frame;
	uint32_t unit, index; /* of the plan */
	int32_t *credit;      /* see execute.c */
	bool on_worker;
	struct weiri_runner *runner; /* of this thread, which begins the node; or NULL */
	bool is_straight;            /* the thread runs the frame straight (plan.h) */
};

struct weiri_inner {
	enum weiri_trace_frame_kind parts; /* what its frames are to it, in a trace */
	bool stays;                        /* the thread that begins the node runs its children, one after the other */
	bool has_one_child;                /* from begin() to its end */
	/* Bytes of the node's state in the frame; NULL: none. */
	size_t (*state_size)(const weir_node *node);
	/*
	 * Begins the node. Returns true if it has ended, with success or failure; false if a child goes
	 * on, and then the step may have been freed.
	 */
	bool (*begin)(const struct weiri_site *site, const struct weiri_call *call);
	/* A child of the node has ended on this thread. Returns as begin(). */
	bool (*child_ended)(const struct weiri_site *site, struct weiri_frame *child);
};

#endif
