/*
 * gradient.h - the gradient of a part of a graph, as more nodes of the graph.
 *
 * weir_gradients() adds the nodes that compute how the sum of some losses changes with some outputs.
 * A run that fetches them computes the forward part once, and uses its values. For the step that
 * changes variables by their gradients see weir/flow/optimizer.h.
 *
 *     if (weir_op_read(graph, NULL, weights, &w, &error) || ... build the loss from w ... ||
 *         weir_gradients(graph, &loss, 1, &w, 1, &gradient, &error))
 *             fail(&error);
 *
 * | call           | threads | progress                     | blocks on     | allocates | signal-safe |
 * |----------------|---------|------------------------------|---------------|-----------|-------------|
 * | weir_gradients | any     | allocator, lock-free + rules (1) | allocator | yes       | no          |
 *
 * (1) The gradient rules of user kernels, and the callbacks that build the bodies of functions.
 *
 * What counts. A gradient goes through outputs of f32 and f64. What is computed from a bool or an
 * integer counts as constant: the condition of a select, the result of a comparison, indices.
 * Equal elements share the gradient of weir_op_reduce_max() and _min(); the first operand gets that of
 * weir_op_maximum() and _minimum(). abs and relu have the gradient 0 at 0.
 *
 * Calls. The gradient of a call is a call of another function, which computes the body of the first
 * one again, as far as the gradient needs its values, and then goes backwards. So memory for the
 * values inside is needed only while this call runs (rematerialization: Griewank 1992; Chen, Xu,
 * Zhang, Guestrin 2016). What is computed again must give the same: if the gradient needs a node of
 * the body that reads a variable, takes from a queue, draws random numbers, is a stateful kernel, or
 * calls a function with such nodes or with effects, it is refused by name. Give such a value to the
 * function as an argument. Nodes of the body that only have effects, such as prints, do not run again.
 */
#ifndef WEIR_GRADIENT_H
#define WEIR_GRADIENT_H

#include <stddef.h>
#include <weir/flow/graph.h>
#include <weir/status.h>

WEIR_BEGIN_DECLS

/*
 * Adds nodes for the gradients: outs[j] is the gradient of the sum of all elements of losses[0 ..
 * loss_count-1] by xs[j], a tensor of the dtype and shape of xs[j]. losses and xs are outputs of the
 * graph, in f32 or f64; an output may occur twice. outs has room for `count`. Nodes that were added
 * before a failure stay, and do not run unless something needs them.
 *
 * Errors: WEIR_INVALID_ARGUMENT if an argument is NULL, loss_count or count is 0, an output is not of
 * this graph, or no loss depends on xs[j] (the message names it). WEIR_UNIMPLEMENTED if a dtype is
 * not f32 or f64, or a node on the way from an xs[j] to a loss has no gradient (the message names
 * it): case, while and map, kernels without a gradient rule, the second output of
 * softmax_cross_entropy. WEIR_RESOURCE_EXHAUSTED. The status of a rule or of a callback.
 * @since 0.1
 */
WEIR_API enum weir_status weir_gradients(weir_graph *graph, const weir_output losses[],
                                         size_t loss_count, const weir_output xs[], size_t count,
                                         weir_output outs[], weir_error *error);

/* What the gradient rule of a node is asked (see weir_kernel_gradient_fn of weir/flow/kernel.h). */
struct weir_gradient_request {
	weir_graph *graph;         /* to which the rule adds nodes */
	const weir_output *inputs; /* of the node */
	size_t input_count;
	const bool *needed;            /* by input: whether the gradient by it is needed */
	const weir_output *outputs;    /* of the node */
	const weir_output *of_outputs; /* the gradients by the outputs; one without a node is 0 */
	size_t output_count;
};

WEIR_END_DECLS

#endif
