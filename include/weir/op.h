/*
 * op.h - the operations a graph is made of.
 *
 * Each call adds one node to a graph and hands out its outputs. `name` is copied and must be new in the graph; NULL generates
 * one. Calls chain with ||, because WEIR_OK is 0 and a failed call leaves its outputs untouched:
 *     if (weir_op_matmul(g, NULL, x, w, 0, &xw, &e) || weir_op_add(g, "logits", xw, b, &logits, &e)) fail(&e);
 *
 * | call      | threads | progress             | blocks on | allocates | signal-safe |
 * |-----------|---------|----------------------|-----------|-----------|-------------|
 * | weir_op_* | any     | allocator, lock-free | allocator | yes       | no          |
 *
 * What an op does when it runs:
 * | ops                             | progress                       | waits for                          |
 * |---------------------------------|--------------------------------|------------------------------------|
 * | math, identity, cast            | allocator                      | nothing                            |
 * | matmul                          | allocator; CBLAS may lock inside | nothing                          |
 * | read, snapshot                  | as weir_var_read, _snapshot    | nothing                            |
 * | gather                          | as weir_var_gather             | nothing                            |
 * | assign*, scatter, commit        | as weir_var_*                  | the retire budget, to the deadline |
 * | enqueue*, dequeue*              | as weir_tensor_queue_start_*   | room or items, holding no thread   |
 * | critical_section                | lock-free but for the wait     | who is inside, holding no thread   |
 * | kernel                          | the kernel's                   | the kernel's                       |
 *
 * Common errors of the builders: WEIR_INVALID_ARGUMENT (NULL graph, out or resource; an input that is no output of this graph; a
 * dtype or shape that cannot fit: the message names op, expected and got), WEIR_ALREADY_EXISTS (name),
 * WEIR_UNIMPLEMENTED (no such op for this dtype), WEIR_RESOURCE_EXHAUSTED. The same checks are repeated at run time on actual
 * tensors. Variables, queues and contexts are borrowed: they must outlive every session of the graph.
 */
#ifndef WEIR_OP_H
#define WEIR_OP_H

#include <stddef.h>
#include <stdint.h>
#include <weir/cancel.h>
#include <weir/critical_section.h>
#include <weir/graph.h>
#include <weir/scatter.h>
#include <weir/status.h>
#include <weir/tensor.h>
#include <weir/tensor_queue.h>
#include <weir/var.h>

WEIR_BEGIN_DECLS

/* --- Values --- */

/* A value that every run must feed if it needs it. shape may have unknown dims; NULL: any. @since 0.1 */
WEIR_API enum weir_status weir_op_placeholder(weir_graph *graph, const char *name, enum weir_dtype dtype,
                                              const weir_shape *shape, weir_output *out, weir_error *error);
/* `value`; the graph takes a reference. @since 0.1 */
WEIR_API enum weir_status weir_op_constant(weir_graph *graph, const char *name, weir_tensor *value, weir_output *out,
                                           weir_error *error);
/* Its input; a place to hang control edges on. @since 0.1 */
WEIR_API enum weir_status weir_op_identity(weir_graph *graph, const char *name, weir_output x, weir_output *out,
                                           weir_error *error);
/* Nothing, after its control inputs: a group of nodes under one name. @since 0.1 */
WEIR_API enum weir_status weir_op_no_op(weir_graph *graph, const char *name, weir_node **out, weir_error *error);

/* --- Variables --- */

/*
 * The value of `var` at some instant during the step, after the control inputs: output 0. Output 1 (weir_node_output) is its
 * version, i64 scalar. Fails with WEIR_FAILED_PRECONDITION while the variable is not initialized. @since 0.1
 */
WEIR_API enum weir_status weir_op_read(weir_graph *graph, const char *name, weir_var *var, weir_output *out,
                                       weir_error *error);
/*
 * Publishes `value`, or the current value plus or minus `delta` as one atomic update. Output 0 is the very value that was
 * published, not a later read; output 1 its version, i64 scalar. Errors as weir_var_assign, _assign_add, _assign_sub.
 * @since 0.1
 */
WEIR_API enum weir_status weir_op_assign(weir_graph *graph, const char *name, weir_var *var, weir_output value,
                                         weir_output *out, weir_error *error);
WEIR_API enum weir_status weir_op_assign_add(weir_graph *graph, const char *name, weir_var *var, weir_output delta,
                                             weir_output *out, weir_error *error);
WEIR_API enum weir_status weir_op_assign_sub(weir_graph *graph, const char *name, weir_var *var, weir_output delta,
                                             weir_output *out, weir_error *error);
/*
 * Rows by number, as weir_var_scatter(), which see: scatter_update, _add, _sub, _mul, _div, _min or _max, as `how` says.
 * indices: i32 or i64 of any shape; updates: [indices..., row...] of the variable's dtype, or a scalar. Output 0 is the whole
 * value that was published, output 1 its version, i64 scalar. A bad index fails the step, and nothing is published. @since 0.1
 */
WEIR_API enum weir_status weir_op_scatter(weir_graph *graph, const char *name, weir_var *var, enum weir_scatter how,
                                          weir_output indices, weir_output updates, weir_output *out,
                                          weir_error *error);
/* The rows that `indices` name, all of one version: [indices..., row...]; as weir_var_gather(). @since 0.1 */
WEIR_API enum weir_status weir_op_gather(weir_graph *graph, const char *name, weir_var *var, weir_output indices,
                                         weir_output *out, weir_error *error);
/*
 * All `count` variables at one instant (weir_var_snapshot). outs[0 .. count-1] are the values, outs[count] the versions,
 * i64 [count]: what weir_op_commit takes. outs has room for count + 1. count 1 .. WEIR_COMMIT_MAX_PARTS. @since 0.1
 */
WEIR_API enum weir_status weir_op_snapshot(weir_graph *graph, const char *name, weir_var *const vars[], size_t count,
                                           weir_output outs[], weir_error *error);
/*
 * values[i] become the next versions of vars[i], all at one instant, if each variable still has the number in `versions`
 * (i64 [count]); else the step fails with WEIR_ABORTED and nothing is published: run it again. *out: the numbers published,
 * i64 [count]. No variable twice. @since 0.1
 */
WEIR_API enum weir_status weir_op_commit(weir_graph *graph, const char *name, weir_var *const vars[],
                                         const weir_output values[], size_t count, weir_output versions,
                                         weir_output *out, weir_error *error);

/* --- Queues --- */

/* Waits for room. Fails as weir_tensor_queue_enqueue; one tensor per component. @since 0.1 */
WEIR_API enum weir_status weir_op_enqueue(weir_graph *graph, const char *name, weir_tensor_queue *queue,
                                          const weir_output tuple[], size_t count, weir_node **out, weir_error *error);
/* The rows of tensors [n, shape...], one by one as room appears. @since 0.1 */
WEIR_API enum weir_status weir_op_enqueue_many(weir_graph *graph, const char *name, weir_tensor_queue *queue,
                                               const weir_output tuple[], size_t count, weir_node **out,
                                               weir_error *error);
/* Waits for an item. outs[0 .. count-1], one per component. Fails as weir_tensor_queue_dequeue. @since 0.1 */
WEIR_API enum weir_status weir_op_dequeue(weir_graph *graph, const char *name, weir_tensor_queue *queue,
                                          weir_output outs[], size_t count, weir_error *error);
/* `n` (i32 or i64 scalar) items stacked to [n, shape...]; all of them or none. @since 0.1 */
WEIR_API enum weir_status weir_op_dequeue_many(weir_graph *graph, const char *name, weir_tensor_queue *queue,
                                               weir_output n, weir_output outs[], size_t count, weir_error *error);
/* The same, but once the queue is closed what is left, 1 .. n items. @since 0.1 */
WEIR_API enum weir_status weir_op_dequeue_up_to(weir_graph *graph, const char *name, weir_tensor_queue *queue,
                                                weir_output n, weir_output outs[], size_t count, weir_error *error);
/* i64 scalar: items stored at that moment. @since 0.1 */
WEIR_API enum weir_status weir_op_queue_size(weir_graph *graph, const char *name, weir_tensor_queue *queue,
                                             weir_output *out, weir_error *error);
/* Closes the queue; never waits, and fails only for want of memory for its thread's record. @since 0.1 */
WEIR_API enum weir_status weir_op_queue_close(weir_graph *graph, const char *name, weir_tensor_queue *queue,
                                              enum weir_close_mode mode, weir_node **out, weir_error *error);

/*
 * The same on the queue of `list` that `index` (i32 or i64 scalar) chooses in each step; one that is out of range fails the
 * step with WEIR_INVALID_ARGUMENT. What is known of outputs is what all queues of the list have in common. The list is borrowed
 * like a queue. @since 0.1
 */
WEIR_API enum weir_status weir_op_enqueue_at(weir_graph *graph, const char *name, weir_tensor_queue_list *list,
                                             weir_output index, const weir_output tuple[], size_t count,
                                             weir_node **out, weir_error *error);
WEIR_API enum weir_status weir_op_enqueue_many_at(weir_graph *graph, const char *name, weir_tensor_queue_list *list,
                                                  weir_output index, const weir_output tuple[], size_t count,
                                                  weir_node **out, weir_error *error);
WEIR_API enum weir_status weir_op_dequeue_at(weir_graph *graph, const char *name, weir_tensor_queue_list *list,
                                             weir_output index, weir_output outs[], size_t count, weir_error *error);
WEIR_API enum weir_status weir_op_dequeue_many_at(weir_graph *graph, const char *name, weir_tensor_queue_list *list,
                                                  weir_output index, weir_output n, weir_output outs[], size_t count,
                                                  weir_error *error);
WEIR_API enum weir_status weir_op_dequeue_up_to_at(weir_graph *graph, const char *name, weir_tensor_queue_list *list,
                                                   weir_output index, weir_output n, weir_output outs[], size_t count,
                                                   weir_error *error);

/* --- Critical sections --- */

enum { WEIR_SECTION_SHARES_RESOURCES = 1 }; /* flags: other sections may use the same variables and queues */

/*
 * The nodes of `body` run in `section`: in each step at most one at a time of all that use that section, in this graph, in
 * others, and by weir_critical_section_execute(). They run as one: a step that needs one of them runs all. Whatever they take
 * from outside (inputs, and nodes that are to end before them) is there before the section is entered; waiting for that holds
 * no thread. It is left when they all have ended, well or badly, or been passed over as the step ends. outs[i] is results[i],
 * an output of the body, once the section is left. *node (may be NULL) stands for the whole: as a target, or to hang control
 * edges on. With a name the graph gets "NAME" and "NAME/enter".
 *
 * WEIR_INVALID_ARGUMENT: no body; a node that is in a section already, of this one (it would wait for itself; so it is with two
 * of the same shared name) or another (sections do not nest in a graph); a node outside which runs after one of the body and
 * before another; a result that is no output of the body; a variable or queue that another section of the graph uses too,
 * unless both have WEIR_SECTION_SHARES_RESOURCES; unknown flags; a name longer than 249 bytes; a placeholder in the body.
 * WEIR_FAILED_PRECONDITION: a node of the body has been part of a run. After WEIR_RESOURCE_EXHAUSTED some of them may be tied
 * to what was not finished: they do not run any more (WEIR_FAILED_PRECONDITION), the others do. What the contexts of kernels
 * share, and other graphs use, is not known here. A kernel inside is refused by weir_critical_section_execute() on the same
 * section; one outside that waits there holds a worker, of which the body may want one to end (see
 * weir_critical_section_start()). Called by one thread at a time, as weir_graph_add_control(), which refuses edges that lead
 * into a body from outside, and from "NAME/enter" to outside. @since 0.1
 */
WEIR_API enum weir_status weir_op_critical_section(weir_graph *graph, const char *name, weir_critical_section *section,
                                                   uint32_t flags, weir_node *const body[], size_t body_count,
                                                   const weir_output results[], size_t result_count, weir_output outs[],
                                                   weir_node **node, weir_error *error);

/* --- Math: i32, i64, f32, f64 --- */

/*
 * Element by element; integers wrap. Both of one dtype. The shapes are equal, or one is a scalar, or one equals the last
 * dims of the other and is repeated along the rest (a bias [m] added to rows [n,m]). @since 0.1
 */
WEIR_API enum weir_status weir_op_add(weir_graph *graph, const char *name, weir_output a, weir_output b,
                                      weir_output *out, weir_error *error);
WEIR_API enum weir_status weir_op_sub(weir_graph *graph, const char *name, weir_output a, weir_output b,
                                      weir_output *out, weir_error *error);
WEIR_API enum weir_status weir_op_mul(weir_graph *graph, const char *name, weir_output a, weir_output b,
                                      weir_output *out, weir_error *error);
/* x * x. @since 0.1 */
WEIR_API enum weir_status weir_op_square(weir_graph *graph, const char *name, weir_output x, weir_output *out,
                                         weir_error *error);

enum { WEIR_MATMUL_TRANSPOSE_A = 1, WEIR_MATMUL_TRANSPOSE_B = 2 };
/* [n,k] x [k,m] = [n,m], f32 or f64, after the transpositions that `flags` ask for. @since 0.1 */
WEIR_API enum weir_status weir_op_matmul(weir_graph *graph, const char *name, weir_output a, weir_output b,
                                         uint32_t flags, weir_output *out, weir_error *error);

/* The sum of all elements, a scalar; 0 of none. f32 is summed in double. @since 0.1 */
WEIR_API enum weir_status weir_op_reduce_sum(weir_graph *graph, const char *name, weir_output x, weir_output *out,
                                             weir_error *error);
/* The sum along one axis, which goes; 0 <= axis < rank. @since 0.1 */
WEIR_API enum weir_status weir_op_reduce_sum_axis(weir_graph *graph, const char *name, weir_output x, uint32_t axis,
                                                  weir_output *out, weir_error *error);
/* Means: f32 and f64 only; NaN of no elements. @since 0.1 */
WEIR_API enum weir_status weir_op_reduce_mean(weir_graph *graph, const char *name, weir_output x, weir_output *out,
                                              weir_error *error);
WEIR_API enum weir_status weir_op_reduce_mean_axis(weir_graph *graph, const char *name, weir_output x, uint32_t axis,
                                                   weir_output *out, weir_error *error);
/*
 * The index of the largest element along the last axis (the first of equals; a NaN is larger than all else), i64, without that
 * axis. @since 0.1
 */
WEIR_API enum weir_status weir_op_argmax(weir_graph *graph, const char *name, weir_output x, weir_output *out,
                                         weir_error *error);
/*
 * Another dtype: from and to any of bool, u8, i8, i16, i32, i64, f32, f64. To integers: towards zero, saturating, NaN is 0;
 * to bool: not zero. @since 0.1
 */
WEIR_API enum weir_status weir_op_cast(weir_graph *graph, const char *name, weir_output x, enum weir_dtype dtype,
                                       weir_output *out, weir_error *error);
/*
 * logits [n,c] (f32 or f64), labels [n] (i32 or i64, each in [0,c)): *loss [n] is -log softmax(logits)[label] of each row,
 * *gradient [n,c] (may be NULL) d loss[i] / d logits[i], that is softmax minus one-hot; divide by n for the gradient of
 * the mean loss. Computed without overflow. A label out of range: WEIR_INVALID_ARGUMENT. @since 0.1
 */
WEIR_API enum weir_status weir_op_softmax_cross_entropy(weir_graph *graph, const char *name, weir_output logits,
                                                        weir_output labels, weir_output *loss, weir_output *gradient,
                                                        weir_error *error);

/* --- Kernels of your own --- */

struct weir_kernel_call {
	const char *node;           /* the node's name */
	weir_tensor *const *inputs; /* borrowed for the call; retain what is to outlive it */
	size_t input_count;
	/* All NULL. On WEIR_OK each must be set, and the references become the step's; on failure those that are set are released. */
	weir_tensor **outputs;
	size_t output_count;
	weir_cancel *cancel;  /* never NULL: fires when the step is to end; poll it in long computations */
	uint64_t deadline_ns; /* of the step, or WEIR_NO_DEADLINE */
};
/* Runs on a worker of the session's pool, several steps at once. Any status but WEIR_OK fails the step with it. */
typedef enum weir_status weir_kernel_fn(void *context, const struct weir_kernel_call *call, weir_error *error);

struct weir_output_type {
	enum weir_dtype dtype;
	const weir_shape *shape; /* may have unknown dims; NULL: any */
};
enum { WEIR_KERNEL_MAX_OUTPUTS = 64 };
/*
 * A node that calls fn(context, ...). Its outputs are checked against `types` (copied): a kernel that breaks its word fails the
 * step with WEIR_INVALID_ARGUMENT. Each step calls it at most once, and only when one of its outputs or the node is asked for.
 * outs has room for output_count (0 .. WEIR_KERNEL_MAX_OUTPUTS); *node (may be NULL) is the node. @since 0.1
 */
WEIR_API enum weir_status weir_op_kernel(weir_graph *graph, const char *name, weir_kernel_fn *fn, void *context,
                                         const weir_output inputs[], size_t input_count,
                                         const struct weir_output_type types[], size_t output_count, weir_output outs[],
                                         weir_node **node, weir_error *error);

WEIR_END_DECLS

#endif
