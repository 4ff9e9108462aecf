/*
 * graph.h - computations described once, to be run many times by a session.
 *
 * A graph is a set of nodes; each node is one operation (weir/op.h) with inputs that are outputs of other nodes. Nothing runs
 * while a graph is built; weir/session.h runs it. Use it when several threads run the same steps over shared variables and
 * queues. Not for a single computation on one thread: call weir/var.h and weir/tensor_queue.h directly.
 *
 * | call                     | threads | progress                  | blocks on | allocates | signal-safe |
 * |--------------------------|---------|---------------------------|-----------|-----------|-------------|
 * | weir_graph_create        | any     | allocator                 | allocator | yes       | no          |
 * | weir_graph_destroy       | one, last | wait-free + releases    | nothing   | no        | no          |
 * | weir_graph_find, _node_count | any | lock-free                 | nothing   | no        | no          |
 * | weir_graph_add_control   | one (1) | allocator, lock-free      | allocator | yes       | no          |
 * | weir_node_*, weir_output_* | any   | wait-free                 | nothing   | no        | yes         |
 *
 * (1) At a time, per graph. Everything else may be called from any number of threads at once, also while sessions run the
 * graph: a run sees the nodes it asked for and their ancestors, which never change once they have run.
 *
 * Errors are found as early as possible: a dtype or shape that cannot fit is refused when the node is built, with a message that
 * names the op, what it expected and what it got. What is only known at run time (fed shapes) is checked then.
 */
#ifndef WEIR_GRAPH_H
#define WEIR_GRAPH_H

#include <stddef.h>
#include <stdint.h>
#include <weir/alloc.h>
#include <weir/status.h>
#include <weir/tensor.h>

WEIR_BEGIN_DECLS

typedef struct weir_graph weir_graph;
typedef struct weir_node weir_node;

/* One output of a node: what later nodes take as input, and what a run feeds or fetches. Plain data; owns nothing. */
typedef struct weir_output {
	weir_node *node;
	uint32_t index;
} weir_output;

struct weir_graph_options {
	size_t struct_size;              /* sizeof(struct weir_graph_options) */
	uint32_t flags;                  /* must be 0 */
	const weir_allocator *allocator; /* NULL: the default one; serves the nodes */
};

/*
 * An empty graph. options may be NULL. WEIR_INVALID_ARGUMENT (out NULL, bad struct_size, unknown flag),
 * WEIR_RESOURCE_EXHAUSTED.
 * @since 0.1
 */
WEIR_API enum weir_status weir_graph_create(const struct weir_graph_options *options, weir_graph **out,
                                            weir_error *error);
/*
 * Frees the graph and its nodes, and drops its references to constants. Variables, queues and kernel contexts are not touched;
 * they must have outlived the sessions. WEIR_FAILED_PRECONDITION, and nothing happens, while a session of this graph
 * exists. NULL: WEIR_OK.
 * @since 0.1
 */
WEIR_API enum weir_status weir_graph_destroy(weir_graph *graph, weir_error *error);

/*
 * The node of that name. Names are unique in a graph; a node built without a name has a generated one (op and number).
 * WEIR_NOT_FOUND (the message has the name), WEIR_INVALID_ARGUMENT (NULL).
 * @since 0.1
 */
WEIR_API enum weir_status weir_graph_find(weir_graph *graph, const char *name, weir_node **out, weir_error *error);
/* The number of nodes built so far; 0 for NULL. @since 0.1 */
WEIR_API size_t weir_graph_node_count(const weir_graph *graph);

/*
 * In every run that includes `after`, `before` runs too and `after` starts only when it has ended well. The same edge
 * twice is one edge. WEIR_INVALID_ARGUMENT: NULL, nodes of another graph, or a cycle would arise (the message names its nodes),
 * or `after` runs in a critical section that `before` is not part of (weir/op.h).
 * WEIR_FAILED_PRECONDITION: `after` has already been part of a run. WEIR_RESOURCE_EXHAUSTED. Takes as long as the list of edges
 * into `after`; once some edge leads to an older node, as long as a walk through all that `before` depends on.
 * @since 0.1
 */
WEIR_API enum weir_status weir_graph_add_control(weir_graph *graph, weir_node *before, weir_node *after,
                                                 weir_error *error);

/* The name; lives as long as the graph. NULL for NULL. @since 0.1 */
WEIR_API const char *weir_node_name(const weir_node *node);
/* The kind of operation, such as "matmul"; static. NULL for NULL. @since 0.1 */
WEIR_API const char *weir_node_op(const weir_node *node);
/* @since 0.1 */
WEIR_API uint32_t weir_node_output_count(const weir_node *node);
/* Output `index` of the node. WEIR_INVALID_ARGUMENT (NULL), WEIR_OUT_OF_RANGE (no such output). @since 0.1 */
WEIR_API enum weir_status weir_node_output(weir_node *node, uint32_t index, weir_output *out, weir_error *error);

/*
 * What is known of an output before it runs. *dtype is 0 where it is not known, *shape gets negative dims where they are not
 * known; either may be NULL. WEIR_INVALID_ARGUMENT (no such output); WEIR_NOT_FOUND when not even the rank is known (*dtype is
 * set, *shape is not).
 * @since 0.1
 */
WEIR_API enum weir_status weir_output_spec(weir_output output, enum weir_dtype *dtype, weir_shape *shape,
                                           weir_error *error);

WEIR_END_DECLS

#endif
