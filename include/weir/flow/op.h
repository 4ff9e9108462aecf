/*
 * op.h - the operations a graph is made of.
 *
 * Each call adds one node to a graph and gives its outputs. `name` is copied and must be new in the
 * graph; NULL generates one. Calls can be chained with ||, because WEIR_OK is 0 and a failed call
 * leaves its outputs untouched:
 *     if (weir_op_matmul(g, NULL, x, w, 0, &xw, &e) ||
 *         weir_op_add(g, "logits", xw, b, &logits, &e))
 *             fail(&e);
 *
 * | call      | threads | progress             | blocks on | allocates | signal-safe |
 * |-----------|---------|----------------------|-----------|-----------|-------------|
 * | weir_op_* | any     | allocator, lock-free | allocator | yes       | no          |
 *
 * What an op does when it runs:
 * | ops                      | progress                        | waits for                        |
 * |--------------------------|---------------------------------|----------------------------------|
 * | math, identity, cast     | allocator                       | nothing                          |
 * | comparisons, logic, select, assert | allocator             | nothing                          |
 * | matmul                   | allocator; CBLAS may lock inside | nothing                         |
 * | read, snapshot           | as weir_var_read, _snapshot     | nothing                          |
 * | gather                   | as weir_var_gather              | nothing                          |
 * | assign*, scatter, commit | as weir_var_*                   | the budget, up to the deadline   |
 * | enqueue*, dequeue*       | as weir_tensor_queue_start_*    | room or items, holding no thread |
 * | print                    | the writer's                    | the writer                       |
 * | critical_section    | lock-free except for the wait | the execution inside, holding no thread |
 * | kernel                   | the kernel's                    | the kernel's                     |
 *
 * Common errors of the builders: WEIR_INVALID_ARGUMENT if the graph, out or a resource is NULL, an
 * input is not an output of this graph, or a dtype or shape cannot fit (the message names the op,
 * what was expected and what was given). WEIR_ALREADY_EXISTS (name). WEIR_UNIMPLEMENTED if there is
 * no such op for this dtype. WEIR_RESOURCE_EXHAUSTED. The same checks are repeated at run time on
 * the actual tensors.
 *
 * Variables, queues and contexts are borrowed: they must outlive every session of the graph.
 */
#ifndef WEIR_OP_H
#define WEIR_OP_H

#include <stddef.h>
#include <stdint.h>
#include <weir/cancel.h>
#include <weir/critical_section.h>
#include <weir/flow/graph.h>
#include <weir/scatter.h>
#include <weir/status.h>
#include <weir/tensor.h>
#include <weir/flow/tensor_queue.h>
#include <weir/var.h>

WEIR_BEGIN_DECLS

/* --- Values --- */

/*
 * A value that a run must feed if it needs the value. shape may have unknown dims; NULL: any.
 * @since 0.1
 */
WEIR_API enum weir_status weir_op_placeholder(weir_graph *graph, const char *name,
                                              enum weir_dtype dtype, const weir_shape *shape,
                                              weir_output *out, weir_error *error);
/* The constant `value`; the graph takes a reference. @since 0.1 */
WEIR_API enum weir_status weir_op_constant(weir_graph *graph, const char *name, weir_tensor *value,
                                           weir_output *out, weir_error *error);
/* The input itself; a node that control edges can be attached to. @since 0.1 */
WEIR_API enum weir_status weir_op_identity(weir_graph *graph, const char *name, weir_output x,
                                           weir_output *out, weir_error *error);
/* Does nothing, after its control inputs. Use it to group nodes under one name. @since 0.1 */
WEIR_API enum weir_status weir_op_no_op(weir_graph *graph, const char *name, weir_node **out,
                                        weir_error *error);

/* --- Variables --- */

/*
 * Reads `var` at some instant during the step, after the control inputs. Output 0 is the value,
 * output 1 (weir_node_output()) its version number, an i64 scalar. The step fails with
 * WEIR_FAILED_PRECONDITION while the variable is not initialized.
 * @since 0.1
 */
WEIR_API enum weir_status weir_op_read(weir_graph *graph, const char *name, weir_var *var,
                                       weir_output *out, weir_error *error);

/*
 * Publishes `value`, or the current value plus or minus `delta`, as one atomic update. Output 0 is
 * the very value that was published, not a later read; output 1 is its version number, an i64
 * scalar. Errors as for weir_var_assign(), _assign_add() and _assign_sub().
 * @since 0.1
 */
WEIR_API enum weir_status weir_op_assign(weir_graph *graph, const char *name, weir_var *var,
                                         weir_output value, weir_output *out, weir_error *error);
WEIR_API enum weir_status weir_op_assign_add(weir_graph *graph, const char *name, weir_var *var,
                                             weir_output delta, weir_output *out,
                                             weir_error *error);
WEIR_API enum weir_status weir_op_assign_sub(weir_graph *graph, const char *name, weir_var *var,
                                             weir_output delta, weir_output *out,
                                             weir_error *error);

/*
 * Changes rows by number, as weir_var_scatter(): scatter_update, _add, _sub, _mul, _div, _min or
 * _max, depending on `how`. indices are i32 or i64 of any shape; updates are [indices..., row...]
 * of the variable's dtype, or a scalar. Output 0 is the whole value that was published, output 1
 * its version number, an i64 scalar. A bad index fails the step, and nothing is published.
 * @since 0.1
 */
WEIR_API enum weir_status weir_op_scatter(weir_graph *graph, const char *name, weir_var *var,
                                          enum weir_scatter how, weir_output indices,
                                          weir_output updates, weir_output *out, weir_error *error);

/*
 * Gives the rows that `indices` name, all of one version: [indices..., row...]. See
 * weir_var_gather().
 * @since 0.1
 */
WEIR_API enum weir_status weir_op_gather(weir_graph *graph, const char *name, weir_var *var,
                                         weir_output indices, weir_output *out, weir_error *error);

/*
 * Reads `count` variables at one instant (weir_var_snapshot()); count is 1 ..
 * WEIR_COMMIT_MAX_PARTS. outs[0 .. count-1] are the values. outs[count] are the version numbers,
 * i64 [count], as weir_op_commit() takes them. outs has room for count + 1.
 * @since 0.1
 */
WEIR_API enum weir_status weir_op_snapshot(weir_graph *graph, const char *name,
                                           weir_var *const vars[], size_t count, weir_output outs[],
                                           weir_error *error);

/*
 * Publishes values[i] as the next versions of vars[i], all at one instant, if each variable still
 * has the number in `versions` (i64 [count]). Otherwise the step fails with WEIR_ABORTED and
 * nothing is published: run it again. *out is the published numbers, i64 [count]. No variable may
 * occur twice.
 * @since 0.1
 */
WEIR_API enum weir_status weir_op_commit(weir_graph *graph, const char *name,
                                         weir_var *const vars[], const weir_output values[],
                                         size_t count, weir_output versions, weir_output *out,
                                         weir_error *error);

/* --- Queues --- */

/*
 * The calls for enqueues and dequeues end with the same parameters: the tuple, its length, and
 * `node`. *node (may be NULL) is the new node, for use as a target or in control edges.
 */
/*
 * Enqueues one tensor per component; waits for room. Errors as for weir_tensor_queue_enqueue().
 * @since 0.1
 */
WEIR_API enum weir_status weir_op_enqueue(weir_graph *graph, const char *name,
                                          weir_tensor_queue *queue, const weir_output tuple[],
                                          size_t count, weir_node **node, weir_error *error);
/* Enqueues the rows of tensors [n, shape...] one by one as room appears. @since 0.1 */
WEIR_API enum weir_status weir_op_enqueue_many(weir_graph *graph, const char *name,
                                               weir_tensor_queue *queue, const weir_output tuple[],
                                               size_t count, weir_node **node, weir_error *error);

/*
 * Dequeues a tuple into outs[0 .. count-1], one output per component; waits for an item. Errors as
 * weir_tensor_queue_dequeue().
 * @since 0.1
 */
WEIR_API enum weir_status weir_op_dequeue(weir_graph *graph, const char *name,
                                          weir_tensor_queue *queue, weir_output outs[],
                                          size_t count, weir_node **node, weir_error *error);
/* Dequeues `n` (i32 or i64 scalar) items, all or none, stacked to [n, shape...]. @since 0.1 */
WEIR_API enum weir_status weir_op_dequeue_many(weir_graph *graph, const char *name,
                                               weir_tensor_queue *queue, weir_output n,
                                               weir_output outs[], size_t count, weir_node **node,
                                               weir_error *error);

/*
 * Like weir_op_dequeue_many(), but from a closed queue takes what remains, 1 .. n items.
 * @since 0.1
 */
WEIR_API enum weir_status weir_op_dequeue_up_to(weir_graph *graph, const char *name,
                                                weir_tensor_queue *queue, weir_output n,
                                                weir_output outs[], size_t count, weir_node **node,
                                                weir_error *error);
/* The number of stored items at that moment, an i64 scalar. @since 0.1 */
WEIR_API enum weir_status weir_op_queue_size(weir_graph *graph, const char *name,
                                             weir_tensor_queue *queue, weir_output *out,
                                             weir_error *error);

/* Whether the queue is closed at that moment, a bool scalar; it may still hold items. @since 0.1 */
WEIR_API enum weir_status weir_op_queue_is_closed(weir_graph *graph, const char *name,
                                                  weir_tensor_queue *queue, weir_output *out,
                                                  weir_error *error);

/*
 * Closes the queue, as weir_tensor_queue_close(). `cause` (may be NULL) is copied; later messages
 * have it and the name of the node. The op never waits, and fails only if there is no memory for
 * its thread's record.
 * @since 0.1
 */
WEIR_API enum weir_status weir_op_queue_close(weir_graph *graph, const char *name,
                                              weir_tensor_queue *queue, enum weir_close_mode mode,
                                              const weir_error *cause, weir_node **node,
                                              weir_error *error);

/*
 * The ops above on one queue of `list`, which `index` (i32 or i64 scalar) chooses in each step. An
 * index out of range fails the step with WEIR_INVALID_ARGUMENT. The specs of the outputs are what
 * all queues of the list have in common. The list is borrowed like a queue.
 * @since 0.1
 */
WEIR_API enum weir_status weir_op_enqueue_at(weir_graph *graph, const char *name,
                                             weir_tensor_queue_list *list, weir_output index,
                                             const weir_output tuple[], size_t count,
                                             weir_node **node, weir_error *error);
WEIR_API enum weir_status weir_op_enqueue_many_at(weir_graph *graph, const char *name,
                                                  weir_tensor_queue_list *list, weir_output index,
                                                  const weir_output tuple[], size_t count,
                                                  weir_node **node, weir_error *error);
WEIR_API enum weir_status weir_op_dequeue_at(weir_graph *graph, const char *name,
                                             weir_tensor_queue_list *list, weir_output index,
                                             weir_output outs[], size_t count, weir_node **node,
                                             weir_error *error);
WEIR_API enum weir_status weir_op_dequeue_many_at(weir_graph *graph, const char *name,
                                                  weir_tensor_queue_list *list, weir_output index,
                                                  weir_output n, weir_output outs[], size_t count,
                                                  weir_node **node, weir_error *error);
WEIR_API enum weir_status weir_op_dequeue_up_to_at(weir_graph *graph, const char *name,
                                                   weir_tensor_queue_list *list, weir_output index,
                                                   weir_output n, weir_output outs[], size_t count,
                                                   weir_node **node, weir_error *error);

/* --- Critical sections --- */

/* flags: other critical sections may use the same variables and queues */
enum weir_section_flags { WEIR_SECTION_SHARES_RESOURCES = 1 };

/*
 * Runs the nodes of `body` in `section`. Of all executions that use that section, at most one is
 * inside at a time: those of each step of this graph, of other graphs, and of
 * weir_critical_section_execute(). The body runs as one: a step that needs one of its nodes runs
 * all of them. Its inputs from outside, and the nodes that must end before it, are computed before
 * the section is entered. Waiting for the section holds no thread. The section is left when all
 * nodes of the body have succeeded, failed, or been skipped because the step ends. outs[i] is
 * results[i], an output of the body, once the section is left. *node (may be NULL) stands for the
 * whole: use it as a target or for control edges. Nodes that must run before *node run before the
 * section is entered. Nodes that must run after *node start when the section has been left. With a
 * name, the graph gets the nodes "NAME" and "NAME/enter".
 *
 * Errors:
 * - WEIR_INVALID_ARGUMENT if there is no body; a node is already in a critical section, be it this
 *   one (it would wait for itself; two sections of one shared name count as one) or another
 *   (sections do not nest in a graph); a node outside must run after one node of the body and
 *   before another; a result is not an output of the body; another section of the graph uses the
 *   same variable or queue, unless both have WEIR_SECTION_SHARES_RESOURCES; a flag is unknown; the
 *   name exceeds 249 bytes; or the body contains a placeholder.
 * - WEIR_FAILED_PRECONDITION if a node of the body has been part of a run.
 * - WEIR_RESOURCE_EXHAUSTED. Some nodes of the body may then be tied to the unfinished section;
 *   these nodes do not run any more (WEIR_FAILED_PRECONDITION), the others do.
 *
 * Limits. Of kernels, Weir knows only the uses that they declare, and of other graphs nothing. A
 * kernel inside the section gets an error from weir_critical_section_execute() on the same section.
 * A kernel outside that waits there holds a worker, which the body may need (see
 * weir_critical_section_start()).
 *
 * Called by one thread at a time, like weir_graph_add_control(). That call refuses edges from
 * outside to single nodes of a body (let them end at *node), and from "NAME/enter" to the outside.
 * @since 0.1
 */
WEIR_API enum weir_status weir_op_critical_section(weir_graph *graph, const char *name,
                                                   weir_critical_section *section, uint32_t flags,
                                                   weir_node *const body[], size_t body_count,
                                                   const weir_output results[], size_t result_count,
                                                   weir_output outs[], weir_node **node,
                                                   weir_error *error);

/* --- Math: i32, i64, f32, f64 --- */

/*
 * Element by element; integers wrap around. Both inputs have one dtype. The shapes are equal, or
 * one is a scalar, or one equals the last dims of the other and is repeated along the rest (a bias
 * [m] added to rows [n,m]).
 * @since 0.1
 */
WEIR_API enum weir_status weir_op_add(weir_graph *graph, const char *name, weir_output a,
                                      weir_output b, weir_output *out, weir_error *error);
WEIR_API enum weir_status weir_op_sub(weir_graph *graph, const char *name, weir_output a,
                                      weir_output b, weir_output *out, weir_error *error);
WEIR_API enum weir_status weir_op_mul(weir_graph *graph, const char *name, weir_output a,
                                      weir_output b, weir_output *out, weir_error *error);
/* x * x. @since 0.1 */
WEIR_API enum weir_status weir_op_square(weir_graph *graph, const char *name, weir_output x,
                                         weir_output *out, weir_error *error);

/* --- Comparisons and logic --- */

/*
 * Element by element, as bool; operands of i32, i64, f32 or f64, repeated as those of
 * weir_op_add(). A NaN is not_equal to everything, itself included, and no other comparison with it
 * holds.
 * @since 0.1
 */
WEIR_API enum weir_status weir_op_equal(weir_graph *graph, const char *name, weir_output a,
                                        weir_output b, weir_output *out, weir_error *error);
WEIR_API enum weir_status weir_op_not_equal(weir_graph *graph, const char *name, weir_output a,
                                            weir_output b, weir_output *out, weir_error *error);
WEIR_API enum weir_status weir_op_less(weir_graph *graph, const char *name, weir_output a,
                                       weir_output b, weir_output *out, weir_error *error);
WEIR_API enum weir_status weir_op_less_equal(weir_graph *graph, const char *name, weir_output a,
                                             weir_output b, weir_output *out, weir_error *error);
WEIR_API enum weir_status weir_op_greater(weir_graph *graph, const char *name, weir_output a,
                                          weir_output b, weir_output *out, weir_error *error);
WEIR_API enum weir_status weir_op_greater_equal(weir_graph *graph, const char *name, weir_output a,
                                                weir_output b, weir_output *out, weir_error *error);

/* On bool, repeated as the operands of weir_op_add(). Both operands are computed. @since 0.1 */
WEIR_API enum weir_status weir_op_and(weir_graph *graph, const char *name, weir_output a,
                                      weir_output b, weir_output *out, weir_error *error);
WEIR_API enum weir_status weir_op_or(weir_graph *graph, const char *name, weir_output a,
                                     weir_output b, weir_output *out, weir_error *error);
/* @since 0.1 */
WEIR_API enum weir_status weir_op_not(weir_graph *graph, const char *name, weir_output x,
                                      weir_output *out, weir_error *error);

/*
 * a where `condition` (bool) holds, else b. a and b have one dtype and shape. The condition has
 * their shape and selects elements, or is a scalar and selects one of the two, without a copy. Both
 * are computed. Strings (WEIR_BYTES) need a scalar.
 * @since 0.1
 */
WEIR_API enum weir_status weir_op_select(weir_graph *graph, const char *name, weir_output condition,
                                         weir_output a, weir_output b, weir_output *out,
                                         weir_error *error);

/* --- Products, sums, conversions --- */

enum weir_matmul_flags { WEIR_MATMUL_TRANSPOSE_A = 1, WEIR_MATMUL_TRANSPOSE_B = 2 };
/* [n,k] x [k,m] = [n,m], f32 or f64, after the transpositions that `flags` request. @since 0.1 */
WEIR_API enum weir_status weir_op_matmul(weir_graph *graph, const char *name, weir_output a,
                                         weir_output b, uint32_t flags, weir_output *out,
                                         weir_error *error);

/* The sum of all elements, a scalar; 0 if there are none. f32 is summed in double. @since 0.1 */
WEIR_API enum weir_status weir_op_reduce_sum(weir_graph *graph, const char *name, weir_output x,
                                             weir_output *out, weir_error *error);
/* The sum along one axis, which is removed; 0 <= axis < rank. @since 0.1 */
WEIR_API enum weir_status weir_op_reduce_sum_axis(weir_graph *graph, const char *name,
                                                  weir_output x, uint32_t axis, weir_output *out,
                                                  weir_error *error);
/* Means of f32 and f64; NaN if there are no elements. @since 0.1 */
WEIR_API enum weir_status weir_op_reduce_mean(weir_graph *graph, const char *name, weir_output x,
                                              weir_output *out, weir_error *error);
WEIR_API enum weir_status weir_op_reduce_mean_axis(weir_graph *graph, const char *name,
                                                   weir_output x, uint32_t axis, weir_output *out,
                                                   weir_error *error);

/*
 * The index of the largest element along the last axis, which is removed, as i64. The first of
 * equal elements counts; a NaN is larger than all other values.
 * @since 0.1
 */
WEIR_API enum weir_status weir_op_argmax(weir_graph *graph, const char *name, weir_output x,
                                         weir_output *out, weir_error *error);

/*
 * Conversion to another dtype: from and to any of bool, u8, u16, u32, u64, i8, i16, i32, i64, f32,
 * f64. To integers: towards zero, saturating, NaN becomes 0. To bool: not zero.
 * @since 0.1
 */
WEIR_API enum weir_status weir_op_cast(weir_graph *graph, const char *name, weir_output x,
                                       enum weir_dtype dtype, weir_output *out, weir_error *error);

/*
 * logits are [n,c] (f32 or f64), labels [n] (i32 or i64, each in [0,c)). *loss [n] is -log
 * softmax(logits)[label] of each row. *gradient [n,c] (may be NULL) is d loss[i] / d logits[i],
 * that is softmax minus one-hot; divide by n for the gradient of the mean loss. Computed without
 * overflow. Errors: WEIR_INVALID_ARGUMENT if a label is out of range.
 * @since 0.1
 */
WEIR_API enum weir_status weir_op_softmax_cross_entropy(weir_graph *graph, const char *name,
                                                        weir_output logits, weir_output labels,
                                                        weir_output *loss, weir_output *gradient,
                                                        weir_error *error);

/* --- Values for people --- */

enum weir_print_limits { WEIR_PRINT_LINE_SIZE = 2048, WEIR_ASSERT_MAX_VALUES = 16 };

struct weir_print_options {
	size_t struct_size;   /* WEIR_PRINT_OPTIONS_INIT sets it */
	weir_write_fn *write; /* must not be NULL */
	void *context;        /* of write */
	const char *message;  /* copied; NULL: none */
	size_t elements;      /* at most so many of each tensor are shown; 0: 8 */
};
#define WEIR_PRINT_OPTIONS_INIT WEIR_STRUCT_SIZE(struct weir_print_options)

/*
 * Writes a line: the message, then dtype, shape and elements of each input, such as
 * "loss: f32 [2,2] [[1 2] [3 4]]". A line is one call of the writer. What exceeds
 * WEIR_PRINT_LINE_SIZE bytes is cut. It counts as user code, as a kernel does; it must not destroy
 * the session. A writer that fails fails the step. *node (may be NULL) is the node, for use as a
 * target or in control edges.
 * @since 0.1
 */
WEIR_API enum weir_status weir_op_print(weir_graph *graph, const char *name,
                                        const struct weir_print_options *options,
                                        const weir_output inputs[], size_t count, weir_node **node,
                                        weir_error *error);

/*
 * Fails the step with WEIR_INVALID_ARGUMENT unless each element of `condition` (bool) is true. The
 * error has `message` (copied; may be NULL), and the first elements of the `count` (0 ..
 * WEIR_ASSERT_MAX_VALUES) values, as far as it has room. *node as above.
 * @since 0.1
 */
WEIR_API enum weir_status weir_op_assert(weir_graph *graph, const char *name, weir_output condition,
                                         const char *message, const weir_output values[],
                                         size_t count, weir_node **node, weir_error *error);

WEIR_END_DECLS

#endif
