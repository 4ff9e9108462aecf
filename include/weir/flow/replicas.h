/*
 * replicas.h - one function on n shards of the input at a time, and the sum of what comes out.
 *
 * weir_op_replicate() calls a function once for each mirror (weir/mirrors.h), with its shard of the
 * input, each call on a thread of its own as far as the pool has threads. weir_op_all_reduce() adds
 * the results up, or averages them, within the graph; and with a transport also across ranks, which
 * run the same graph in threads or processes of their own. A training step is then
 *
 *     weir_op_replicate(g, "forward", loss_and_gradient, mirrors, &batch, 1, out, &calls, &e);
 *     weir_op_all_reduce(g, NULL, WEIR_REDUCE_MEAN, out, n, NULL, gradient, &e);
 *
 * and one commit of all weir_mirrors_vars(). For rows that are mapped and not summed, see
 * weir_op_map(); for one call in a thread of its own, a pool task.
 *
 * | call             | threads   | progress             | blocks on | allocates | signal-safe |
 * |------------------|-----------|----------------------|-----------|-----------|-------------|
 * | weir_op_replicate | one (1)  | lock-free + build (2) | build (2) | yes      | no          |
 * | weir_op_all_reduce | any     | allocator, lock-free | allocator | yes       | no          |
 *
 * (1) As weir_graph_add_control().
 * (2) The callback that builds the body, for a new signature.
 *
 * In a step, an all-reduce with a transport waits for the other ranks, and holds no thread.
 *
 * Commit. What a step does to mirrors should be one node that commits all of them, and nothing else;
 * then a step that fails or is cancelled before that node changes none. With ranks, each commits its
 * own variables: a rank whose reductions have all succeeded must commit (see weir/mpi.h).
 * @since 0.1
 */
#ifndef WEIR_REPLICAS_H
#define WEIR_REPLICAS_H

#include <stddef.h>
#include <weir/flow/function.h>
#include <weir/flow/graph.h>
#include <weir/mirrors.h>
#include <weir/status.h>
#include <weir/transport.h>

WEIR_BEGIN_DECLS

/*
 * Calls `function` once for each of n mirrors. Its variable parameters get the variables of the
 * mirror, in the order of the mirrors' options; its tensor parameters get shards of inputs[0 ..
 * count-1]: rows of the first dim, without a copy. Of b rows, mirror i gets b/n, and one more if i <
 * b mod n. outs has room for n times the results: result j of mirror i is outs[j * n + i]. *node (may
 * be NULL) ends after all calls. With a name, the graph gets the nodes "NAME/0" ... and "NAME". The
 * mirrors are borrowed like variables.
 *
 * Errors: those of weir_op_call(). WEIR_INVALID_ARGUMENT if the function does not have as many
 * variable and tensor parameters, or has a queue as a parameter, or an input is a scalar. After an
 * error the graph may have some of the nodes. In a step, WEIR_INVALID_ARGUMENT if there are fewer
 * rows than mirrors.
 * @since 0.1
 */
WEIR_API enum weir_status weir_op_replicate(weir_graph *graph, const char *name,
                                            weir_function *function, weir_mirrors *mirrors,
                                            const weir_output inputs[], size_t count,
                                            weir_output outs[], weir_node **node,
                                            weir_error *error);

/* WEIR_REDUCE_MEAN: the sum, divided by the number of inputs of all ranks; f32 and f64. */
enum weir_reduce { WEIR_REDUCE_SUM = 1, WEIR_REDUCE_MEAN = 2 };

enum weir_all_reduce_limits { WEIR_ALL_REDUCE_MAX_INPUTS = 64 };

struct weir_all_reduce_options {
	size_t struct_size; /* WEIR_ALL_REDUCE_OPTIONS_INIT sets it */
	/* of this rank; borrowed like a variable; NULL: only the inputs of this graph are added up */
	weir_transport *transport;
};
#define WEIR_ALL_REDUCE_OPTIONS_INIT WEIR_STRUCT_SIZE(struct weir_all_reduce_options)

/*
 * Adds inputs[0 .. n-1] up by pairs, in the fixed order of weir/transport.h; n is 1 ..
 * WEIR_ALL_REDUCE_MAX_INPUTS. The inputs have one dtype (i32, i64, f32 or f64) and shape. With a
 * transport, the sum of each rank goes through it, and the sum of all ranks comes out. outs has room
 * for n outputs: output i is for the mirror of input i, and all are the same tensor. options may be
 * NULL.
 *
 * With a transport, ranks build their nodes of one transport in the same order, with the same names.
 * A node is in one run at a time on each rank; a second run fails with WEIR_FAILED_PRECONDITION. A
 * run that ends early takes its share back, as far as the transport can.
 *
 * Errors: the common ones of weir/flow/op.h. WEIR_INVALID_ARGUMENT for options, n, `how`, or a
 * transport that lacks a function. WEIR_UNIMPLEMENTED for other dtypes, and for means of integers.
 * Those of the transport's `open`. In a step, those of the transport.
 * @since 0.1
 */
WEIR_API enum weir_status weir_op_all_reduce(weir_graph *graph, const char *name,
                                             enum weir_reduce how, const weir_output inputs[],
                                             size_t n,
                                             const struct weir_all_reduce_options *options,
                                             weir_output outs[], weir_error *error);

WEIR_END_DECLS

#endif
