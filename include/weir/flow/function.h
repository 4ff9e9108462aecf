/*
 * function.h - parts of a graph that are built once and called, chosen, repeated, or mapped over rows.
 *
 * A function is described by a callback that builds its body. Ops call it (weir_op_call), choose one
 * of several (weir_op_case, weir_op_cond), repeat it (weir_op_while) or run it for each row of its
 * inputs (weir_op_map). weir_function_run() runs it alone. Only what is chosen runs. For a part
 * that occurs once and always runs, plain nodes are simpler.
 *
 * | call             | threads   | progress             | blocks on    | allocates | signal-safe |
 * |------------------|-----------|----------------------|--------------|-----------|-------------|
 * | weir_function_create | any   | allocator            | allocator    | yes       | no          |
 * | weir_function_destroy | one, last | wait-free + releases | nothing | no        | no          |
 * | weir_function_body_count | any | wait-free         | nothing      | no        | yes         |
 * | weir_function_run | any      | lock-free (1)        | its ops (2)  | yes (3)   | no          |
 * | weir_op_call, _case, _cond, _while, _map | any | lock-free + build (4) | build (4) | yes | no |
 * | weir_graph_exempt | one (5)  | wait-free            | nothing      | no        | no          |
 *
 * (1) As weir_session_run(), and (4) for a new signature.
 * (2) Up to the deadline.
 * (3) As weir_session_run().
 * (4) The callback that builds the body, for a new signature.
 * (5) The thread that builds the graph.
 *
 * Signatures. The body is built once for each signature: the dtypes and ranks of the tensors (dims
 * stay open, except those that the parameter states), and which variables and queues are given. So
 * two parameters may be the same variable, and this is known when edges are made. If two threads
 * need a new signature at the same time, both may call the callback; one of the bodies is used. The
 * variables and queues are borrowed until the function is destroyed.
 *
 * Order in a body. Control edges are added to a body when it has been built, from what its nodes
 * read and write, in the order in which they were built:
 *  - a write of a variable or queue runs after the last write of it, and after the reads since;
 *  - a read runs after the last write; reads have no order among themselves;
 *  - stateful kernels and the ops that print or assert run in the order in which they were built;
 *  - a call, case, while or map reads and writes what its bodies do; a critical section, what the
 *    nodes in it do;
 *  - enqueues, dequeues and closes are writes of the queue.
 * Nodes that write or are stateful run always, before the call has ended; reads and all other nodes
 * only if something that runs uses them. weir_graph_exempt() takes a node out of all this. Edges of
 * weir_graph_add_control() come first: an automatic edge that contradicts one is left out. Graphs
 * that are not bodies get no edges.
 *
 * Messages name the way to a node: `train/loop/assign_add "w": ...` is the node "w", in the body of
 * "loop", in the body of "train".
 */
#ifndef WEIR_FUNCTION_H
#define WEIR_FUNCTION_H

#include <stddef.h>
#include <stdint.h>
#include <weir/alloc.h>
#include <weir/cancel.h>
#include <weir/flow/callable.h>
#include <weir/flow/graph.h>
#include <weir/flow/session.h>
#include <weir/flow/tensor_queue.h>
#include <weir/status.h>
#include <weir/tensor.h>
#include <weir/var.h>

WEIR_BEGIN_DECLS

typedef struct weir_function weir_function;

enum weir_parameter_kind {
	WEIR_PARAMETER_TENSOR = 0,
	WEIR_PARAMETER_VAR = 1,
	WEIR_PARAMETER_QUEUE = 2
};

/* A struct of resources is several parameters. */
struct weir_parameter {
	const char *name; /* copied; not NULL */
	enum weir_parameter_kind kind;
	enum weir_dtype dtype;   /* of a tensor or variable; 0: any */
	const weir_shape *shape; /* of a tensor or variable, may have unknown dims; NULL: any; copied */
};

/*
 * Of an argument, the member that the kind of its parameter and the call name: a tensor is given as
 * `output` to the ops below, and as `tensor` to weir_function_run(). The callback gets it as
 * `output`, an output of the body.
 */
struct weir_argument {
	weir_output output;
	weir_tensor *tensor;
	weir_var *var;
	weir_tensor_queue *queue;
};

/*
 * Adds the nodes of the body to `body`, which belongs to the function and is complete when the
 * callback returns, and sets results[0 .. result_count-1] to outputs of it. Any status except
 * WEIR_OK fails the call that needed the body, with the callback's message, and the body is
 * discarded. The callback must not add a call of the function to its own body.
 */
typedef enum weir_status weir_function_fn(void *context, weir_graph *body,
                                          const struct weir_argument arguments[],
                                          weir_output results[], weir_error *error);

struct weir_function_options {
	size_t struct_size;      /* WEIR_FUNCTION_OPTIONS_INIT sets it */
	const char *name;        /* for messages; copied; NULL: "function" */
	weir_function_fn *build; /* needed */
	void *context;           /* of build; borrowed until the function is destroyed */
	const struct weir_parameter *parameters; /* copied */
	size_t parameter_count;
	size_t result_count;
	size_t max_bodies;               /* at most, one for each signature; 0: 64 */
	const weir_allocator *allocator; /* for bodies and frames; NULL: the default allocator */
	uint32_t flags;
};
#define WEIR_FUNCTION_OPTIONS_INIT WEIR_STRUCT_SIZE(struct weir_function_options)
/*
 * WEIR_FUNCTION_OWN_WORKER: a node that runs the function goes to a worker of the pool, if there is
 * one and other nodes are ready. For a body that takes long beside other work; an op or kernel that
 * takes long goes to a worker by itself.
 */
enum weir_function_flags { WEIR_FUNCTION_OWN_WORKER = 1 };
enum weir_function_limits { WEIR_FUNCTION_MAX_PARAMETERS = 64, WEIR_FUNCTION_MAX_RESULTS = 64 };

/*
 * Creates a function. Nothing is built yet. Errors: WEIR_INVALID_ARGUMENT if an argument or `build`
 * is NULL, struct_size is wrong, a flag is unknown, a parameter has no name, an unknown kind or
 * dtype or a bad shape, or there are too many parameters or results. WEIR_RESOURCE_EXHAUSTED.
 * @since 0.1
 */
WEIR_API enum weir_status weir_function_create(const struct weir_function_options *options,
                                               weir_function **out, weir_error *error);

/*
 * Frees the function and its bodies. Accepts NULL. Errors: WEIR_FAILED_PRECONDITION, and nothing
 * happens, while a graph has a node that uses it (another function's body too), or a run of it is
 * under way, also in the background.
 * @since 0.1
 */
WEIR_API enum weir_status weir_function_destroy(weir_function *function, weir_error *error);

/* The number of signatures for which a body was built; 0 for NULL. @since 0.1 */
WEIR_API size_t weir_function_body_count(const weir_function *function);

/*
 * Errors of this call and of the ops below: WEIR_INVALID_ARGUMENT if an argument is NULL, does not
 * fit its parameter (the message has the function, the parameter, what was expected and what was
 * given), or is of another graph; if the function would call itself. WEIR_RESOURCE_EXHAUSTED if
 * there is no memory, or max_bodies bodies exist. The status of the callback. And what a run of
 * its body reports: a result that is missing or of another graph, a placeholder that is not a
 * parameter (both WEIR_INVALID_ARGUMENT).
 */
/*
 * Runs the function once, as weir_callable_run() runs a callable of the session. The arguments stay
 * the caller's; results[i] is a reference that the caller releases; on any failure none is written.
 * cancel and options may be NULL. The graph of the session is not used.
 * @since 0.1
 */
WEIR_API enum weir_status weir_function_run(weir_function *function, weir_session *session,
                                            const struct weir_argument arguments[],
                                            weir_tensor *results[], uint64_t deadline_ns,
                                            weir_cancel *cancel,
                                            const struct weir_run_options *options,
                                            weir_error *error);

/*
 * Calls the function with arguments[0 .. count-1], one for each parameter. outs has room for its
 * results; *node (may be NULL) is the node. The outputs exist when all nodes of the body that must
 * run have ended.
 * @since 0.1
 */
WEIR_API enum weir_status weir_op_call(weir_graph *graph, const char *name, weir_function *function,
                                       const struct weir_argument arguments[], size_t count,
                                       weir_output outs[], weir_node **node, weir_error *error);

/*
 * Calls functions[index], where index is an i32 or i64 scalar. The functions have the same number of
 * parameters, of the same kinds, and of results; the results of all have the same dtypes, and what
 * they have in common is known of the outputs. In a step, an index out of range fails the step with
 * WEIR_INVALID_ARGUMENT.
 * @since 0.1
 */
WEIR_API enum weir_status weir_op_case(weir_graph *graph, const char *name, weir_output index,
                                       weir_function *const functions[], size_t function_count,
                                       const struct weir_argument arguments[], size_t count,
                                       weir_output outs[], weir_node **node, weir_error *error);
/*
 * As weir_op_case(), with a bool scalar: if it is true, `then` is called, otherwise `otherwise`.
 * @since 0.1
 */
WEIR_API enum weir_status weir_op_cond(weir_graph *graph, const char *name, weir_output predicate,
                                       weir_function *then, weir_function *otherwise,
                                       const struct weir_argument arguments[], size_t count,
                                       weir_output outs[], weir_node **node, weir_error *error);

struct weir_while_options {
	size_t struct_size;      /* WEIR_WHILE_OPTIONS_INIT sets it */
	uint64_t max_iterations; /* a loop that would run more often fails the step; 0: no limit */
};
#define WEIR_WHILE_OPTIONS_INIT WEIR_STRUCT_SIZE(struct weir_while_options)

/*
 * While `condition` returns true, calls `body` and takes its results for the tensors of the next
 * call, one iteration after the other. Both have the same number of parameters, of the same kinds.
 * The condition has one result, a bool scalar; the body has one result for each tensor parameter, of
 * the same dtype and rank. The outputs are the last values of the tensors; outs has room for them.
 * options may be NULL. A loop that does not end is ended by the deadline or the token of the run.
 *
 * Errors also: WEIR_INVALID_ARGUMENT if the results do not fit. In a step, WEIR_RESOURCE_EXHAUSTED
 * after max_iterations.
 * @since 0.1
 */
WEIR_API enum weir_status weir_op_while(weir_graph *graph, const char *name,
                                        weir_function *condition, weir_function *body,
                                        const struct weir_argument arguments[], size_t count,
                                        const struct weir_while_options *options,
                                        weir_output outs[], weir_node **node, weir_error *error);

struct weir_map_options {
	size_t struct_size; /* WEIR_MAP_OPTIONS_INIT sets it */
	uint32_t at_once;   /* rows that run at the same time, at most; 0: 8 */
	uint32_t whole;     /* so many of the last tensor arguments go whole to each row */
};
#define WEIR_MAP_OPTIONS_INIT WEIR_STRUCT_SIZE(struct weir_map_options)

/*
 * Calls the function once for each row. The tensors are [n, shape...], with one n, and each call
 * gets row i of them; variables and queues, and the tensors that options->whole counts, go to each
 * call. Output j is result j of all rows, in the order of the rows: [n, shape...]; outs has room for
 * them. Rows run in any order, and at the same time if that pays: writes of different rows have no
 * order. options may be NULL.
 *
 * Errors also: WEIR_INVALID_ARGUMENT if no tensor has rows; in a step, if the numbers of rows
 * differ, or results of rows differ in shape. With no rows, unknown dims of a result are 0.
 * @since 0.1
 */
WEIR_API enum weir_status weir_op_map(weir_graph *graph, const char *name, weir_function *function,
                                      const struct weir_argument rows[], size_t count,
                                      const struct weir_map_options *options, weir_output outs[],
                                      weir_node **node, weir_error *error);

/*
 * In the body of a function: the node gets no automatic control edges, and runs only if something
 * that runs uses it. Errors: WEIR_INVALID_ARGUMENT (NULL). WEIR_FAILED_PRECONDITION if the body is
 * complete.
 * @since 0.1
 */
WEIR_API enum weir_status weir_graph_exempt(weir_node *node, weir_error *error);

WEIR_END_DECLS

#endif
