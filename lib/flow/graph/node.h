/*
 * node.h - nodes and the graph that owns them, as seen by the builders of ops and by the compiler
 * of plans.
 *
 * A published node never changes, except for its list of control edges. The list grows until the
 * first plan that contains the node seals it.
 */
#ifndef WEIRI_NODE_H
#define WEIRI_NODE_H

#include <stddef.h>
#include <stdint.h>
#include <weir/flow/graph.h>

#include "base/compiler.h"
#include "graph/op.h"
#include "graph/spec.h"
#include "run/countdown.h"
#include "run/published.h"
#include "run/published_tree.h"

struct weiri_control {
	struct weiri_published link; /* in after->controls */
	weir_node *before;
	/* of the critical section whose body has `after`, as far as the edges up to this one tell; or NULL */
	weir_node *entrance;
};

struct weir_node {
	struct weiri_branch by_name;
	struct weiri_published link; /* in the list of all nodes */
	weir_graph *graph;
	const struct weiri_op *op;
	const char *kind; /* the name of the op, or of the user's kernel */
	const char *name;
	uint64_t id; /* larger than that of every input */
	size_t bytes;
	weir_output *inputs;
	struct weiri_spec *specs; /* of the outputs */
	void *attribute;          /* what the op was built with; the op knows its type */
	size_t attribute_size;
	uint32_t input_count;
	uint32_t output_count;
	uint32_t hold_count; /* handles on variables that a run of it needs */
	/* every dim of inputs and outputs is known: a run infers nothing, because a value fits its output's spec */
	bool specs_known;
	/* bit i: input i has the dtype and the shape of output 0, and specs_known; a run may write over it */
	uint64_t like_output;
	bool exempt; /* from automatic control edges; see weir/flow/function.h */
	struct weiri_published_list controls;
};

struct weir_function;

struct weir_graph {
	weir_allocator allocator;
	/* Of the body of a function; otherwise NULL. `caller` is NULL, too, once the body is complete. */
	const struct weir_function *function;
	const weir_graph *caller;
	bool complete; /* no more nodes are accepted */
	struct weiri_serial ids;
	struct weiri_countdown users; /* the owner, and each session */
	uint64_t backward_controls;   /* edges to an older node; only one thread at a time adds edges */
	struct weiri_published_tree names;
	struct weiri_published_list nodes; /* all, the newest first */
};

/* What the builder of an op asks for: the node to make. */
struct weiri_node_request {
	const struct weiri_op *op;
	const char *kind; /* borrowed; NULL: the name of the op */
	const char *name; /* NULL: generate one */
	const weir_output *inputs;
	size_t input_count;
	const struct weiri_spec *specs; /* of the outputs; ignored when op->infer computes them */
	size_t output_count;
	const void *attribute; /* copied */
	size_t attribute_size;
	size_t hold_count;
};

enum { WEIRI_NODE_MAX_INPUTS = 1 << 16 };

/*
 * Checks the inputs, infers the outputs and publishes the node. On failure no node exists, and the
 * caller still owns the references that the attribute holds.
 */
enum weir_status weiri_node_build(weir_graph *graph, const struct weiri_node_request *request, weir_node **out,
                                  weir_error *error);
/* Makes those checks of weiri_node_build() that concern the graph and the inputs. */
enum weir_status weiri_node_check(weir_graph *graph, const struct weiri_node_request *request, weir_error *error);
static inline struct weiri_control *weiri_control_of(struct weiri_published *link)
{
	return link != NULL ? WEIRI_CONTAINER_OF(link, struct weiri_control, link) : NULL;
}

/*
 * Adds an edge; the caller has checked that it closes no cycle. Fails with WEIR_RESOURCE_EXHAUSTED,
 * or with WEIR_FAILED_PRECONDITION if `after` has been part of a run.
 */
enum weir_status weiri_control_push(weir_graph *graph, weir_node *before, weir_node *after, weir_error *error);
struct weiri_node_map;
/*
 * Adds every node from which a data edge or control edge leads to a node in the map, and all
 * ancestors of these. Returns false if there is no memory.
 */
bool weiri_node_map_add_ancestors(struct weiri_node_map *seen);
/* As weiri_fail, with the message `op "name": message`; without the name if `name` is NULL. */
#define weiri_node_fail(error, code, ...) (weiri_node_describe((error), (code), __VA_ARGS__), (enum weir_status)(code))
void weiri_node_describe(weir_error *error, enum weir_status code, const struct weiri_op *op, const char *name,
                         const char *format, ...) WEIR_PRINTF(5, 6);

/* As weir_graph_find_output(), with a message that does not name the call. */
enum weir_status weiri_graph_output(weir_graph *graph, const char *name, weir_output *out, weir_error *error);
/* Returns WEIR_OK if `output` belongs to `graph`. `what` names the output in the message. */
enum weir_status weiri_output_check(const weir_graph *graph, weir_output output, const char *what, weir_error *error);
static inline const struct weiri_spec *weiri_output_spec(weir_output output)
{
	return &output.node->specs[output.index];
}

#endif
