/*
 * graph.h - computations that are described once and run many times by a session.
 *
 * A graph is a set of nodes. Each node performs one op (weir/flow/op.h), whose inputs are outputs
 * of other nodes. Nothing runs while a graph is built; weir/flow/session.h runs it. Use it if
 * several threads run the same steps over shared variables and queues. For a single computation on
 * one thread, call weir/var.h and weir/flow/tensor_queue.h directly.
 *
 * | call                 | threads   | progress             | blocks on | allocates | signal-safe |
 * |----------------------|-----------|----------------------|-----------|-----------|-------------|
 * | weir_graph_create    | any       | allocator            | allocator | yes       | no          |
 * | weir_graph_destroy   | one, last | wait-free + releases | nothing   | no        | no          |
 * | weir_graph_find, _find_output, _node_count | any | lock-free | nothing | no     | no          |
 * | weir_graph_print     | any       | allocator + writes   | the writer | yes      | no          |
 * | weir_graph_add_control | one (1) | allocator, lock-free | allocator | yes       | no          |
 * | weir_node_*, weir_output_* | any | wait-free            | nothing   | no        | yes         |
 *
 * (1) One thread at a time per graph. Any number of threads may make all other calls at once, also
 *     while sessions run the graph: a run uses the nodes that it was asked for and their ancestors,
 *     and these never change once they have been part of a run.
 *
 * Errors are found as early as possible. A dtype or shape that cannot fit is refused when the node
 * is built; the message names the op, what it expected and what it got. Properties known only at
 * run time (fed shapes) are checked then.
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

/*
 * One output of a node: the input of later nodes, and what a run feeds or fetches. Plain data; it
 * owns nothing.
 */
typedef struct weir_output {
	weir_node *node;
	uint32_t index;
} weir_output;

struct weir_graph_options {
	size_t struct_size;              /* WEIR_GRAPH_OPTIONS_INIT sets it */
	uint32_t flags;                  /* must be 0 */
	const weir_allocator *allocator; /* for the nodes; NULL: the default allocator */
};
#define WEIR_GRAPH_OPTIONS_INIT WEIR_STRUCT_SIZE(struct weir_graph_options)

/*
 * Creates an empty graph. options may be NULL. Errors: WEIR_INVALID_ARGUMENT if out is NULL,
 * struct_size is wrong, or a flag is unknown. WEIR_RESOURCE_EXHAUSTED.
 * @since 0.1
 */
WEIR_API enum weir_status weir_graph_create(const struct weir_graph_options *options,
                                            weir_graph **out, weir_error *error);

/*
 * Frees the graph and its nodes, and drops its references to constants. It does not touch
 * variables, queues and kernel contexts, which must have outlived the sessions. Accepts NULL.
 * Errors: WEIR_FAILED_PRECONDITION, and nothing happens, while a session of this graph exists.
 * @since 0.1
 */
WEIR_API enum weir_status weir_graph_destroy(weir_graph *graph, weir_error *error);

/*
 * Gives the node of that name. Names are unique in a graph; a node built without a name has a
 * generated one (op and number). Errors: WEIR_NOT_FOUND (the message has the name),
 * WEIR_INVALID_ARGUMENT (NULL).
 * @since 0.1
 */
WEIR_API enum weir_status weir_graph_find(weir_graph *graph, const char *name, weir_node **out,
                                          weir_error *error);
/*
 * Gives the output that `name` names: "NODE:INDEX", or "NODE" for output 0. A node whose whole name
 * is `name` takes precedence. Errors: WEIR_NOT_FOUND if there is no such node, WEIR_OUT_OF_RANGE if
 * it has no such output (the messages have the name), WEIR_INVALID_ARGUMENT (NULL).
 * @since 0.1
 */
WEIR_API enum weir_status weir_graph_find_output(weir_graph *graph, const char *name,
                                                 weir_output *out, weir_error *error);
/* The number of nodes built so far; 0 for NULL. @since 0.1 */
WEIR_API size_t weir_graph_node_count(const weir_graph *graph);

/*
 * Adds a control edge: in every run that includes `after`, `before` runs too, and `after` starts
 * only when `before` has succeeded. If `after` is the node of a critical section
 * (weir_op_critical_section()), the section is entered only then. An edge that is added again has
 * no effect on runs, and takes the memory of an edge. The call takes constant time, or
 * time linear in the number of edges into `after` once that has been part of a run. Once some edge
 * of the graph leads to an older node, it takes time linear in the number of nodes that `before`
 * depends on.
 *
 * Errors: WEIR_INVALID_ARGUMENT if an argument is NULL, the nodes are of another graph, there would
 * be a cycle (the message names its nodes), or `after` is in the body of a critical section that
 * `before` is not part of: make the section's node run after `before`. WEIR_FAILED_PRECONDITION if
 * `after` has already been part of a run, without this edge. WEIR_RESOURCE_EXHAUSTED.
 * @since 0.1
 */
WEIR_API enum weir_status weir_graph_add_control(weir_graph *graph, weir_node *before,
                                                 weir_node *after, weir_error *error);

/*
 * Writes `size` bytes of text, which are followed by a terminator that is not part of them. Any
 * status except WEIR_OK ends the call that writes, which returns that status. `error` is never NULL;
 * it may explain the status.
 */
typedef enum weir_status weir_write_fn(void *context, const char *text, size_t size,
                                       weir_error *error);

/* TEXT: a line for each node. DOT: a digraph in the language of Graphviz. */
enum weir_graph_format { WEIR_GRAPH_TEXT = 1, WEIR_GRAPH_DOT = 2 };

/*
 * Writes all nodes in the order in which they were built: name, op, inputs, nodes that run before
 * them, variables and queues, and what is known of the outputs. write(context, ...) is called once
 * or several times for each line, on this thread. Nodes that other threads build meanwhile may be
 * missing. Errors: WEIR_INVALID_ARGUMENT if graph or write is NULL or the format is unknown,
 * WEIR_RESOURCE_EXHAUSTED, and the status of a writer that fails.
 * @since 0.1
 */
WEIR_API enum weir_status weir_graph_print(const weir_graph *graph, enum weir_graph_format format,
                                           weir_write_fn *write, void *context, weir_error *error);

/* The name, valid as long as the graph exists; NULL for NULL. @since 0.1 */
WEIR_API const char *weir_node_name(const weir_node *node);
/* The op that the node performs, such as "matmul"; static. NULL for NULL. @since 0.1 */
WEIR_API const char *weir_node_op(const weir_node *node);
/* The number of outputs. @since 0.1 */
WEIR_API size_t weir_node_output_count(const weir_node *node);

/*
 * Gives output `index` of the node. Errors: WEIR_INVALID_ARGUMENT (NULL), WEIR_OUT_OF_RANGE if
 * there is no such output.
 * @since 0.1
 */
WEIR_API enum weir_status weir_node_output(weir_node *node, uint32_t index, weir_output *out,
                                           weir_error *error);

/*
 * Reads what is known of an output before it runs. *dtype is 0 if it is unknown; unknown dims of
 * *shape are negative. Either may be NULL. Errors: WEIR_INVALID_ARGUMENT if there is no such
 * output. WEIR_NOT_FOUND if even the rank is unknown (*dtype is set, *shape is not).
 * @since 0.1
 */
WEIR_API enum weir_status weir_output_spec(weir_output output, enum weir_dtype *dtype,
                                           weir_shape *shape, weir_error *error);

WEIR_END_DECLS

#endif
