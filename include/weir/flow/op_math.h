/*
 * op_math.h - ops that compute element by element, the largest and smallest elements, and softmax.
 *
 * weir/flow/op.h has sums, products, comparisons and conversions; weir/flow/op_array.h has the ops
 * that move elements. The rules that op.h states for builders hold here: names, common errors, and
 * checks that are repeated at run time. Every op here has a gradient (weir/flow/gradient.h), unless
 * it says otherwise.
 *
 * | call      | threads | progress             | blocks on | allocates | signal-safe |
 * |-----------|---------|----------------------|-----------|-----------|-------------|
 * | weir_op_* | any     | allocator, lock-free | allocator | yes       | no          |
 *
 * The dtypes are i32, i64, f32 and f64, or only f32 and f64 where stated; others are refused
 * (WEIR_UNIMPLEMENTED).
 */
#ifndef WEIR_OP_MATH_H
#define WEIR_OP_MATH_H

#include <weir/flow/graph.h>
#include <weir/status.h>

WEIR_BEGIN_DECLS

/* --- Two operands: dtypes and shapes as for weir_op_add() --- */

/*
 * a / b. Integer quotients are truncated towards 0, and wrap around; a divisor of 0 fails the step
 * with WEIR_INVALID_ARGUMENT.
 * @since 0.1
 */
WEIR_API enum weir_status weir_op_div(weir_graph *graph, const char *name, weir_output a,
                                      weir_output b, weir_output *out, weir_error *error);
/*
 * The larger, or smaller, of two elements; NaN if one of them is. The gradient of equal elements goes
 * to a.
 * @since 0.1
 */
WEIR_API enum weir_status weir_op_maximum(weir_graph *graph, const char *name, weir_output a,
                                          weir_output b, weir_output *out, weir_error *error);
WEIR_API enum weir_status weir_op_minimum(weir_graph *graph, const char *name, weir_output a,
                                          weir_output b, weir_output *out, weir_error *error);

/* --- One operand --- */

/* -x, |x| (both wrap around), and -1, 0 or 1 by the sign of x (NaN of a NaN). @since 0.1 */
WEIR_API enum weir_status weir_op_neg(weir_graph *graph, const char *name, weir_output x,
                                      weir_output *out, weir_error *error);
WEIR_API enum weir_status weir_op_abs(weir_graph *graph, const char *name, weir_output x,
                                      weir_output *out, weir_error *error);
WEIR_API enum weir_status weir_op_sign(weir_graph *graph, const char *name, weir_output x,
                                       weir_output *out, weir_error *error);
/* x where it is above 0, else 0; NaN of a NaN. @since 0.1 */
WEIR_API enum weir_status weir_op_relu(weir_graph *graph, const char *name, weir_output x,
                                       weir_output *out, weir_error *error);
/* Of f32 and f64; the natural logarithm. Domain errors give NaN or infinity, as in C. @since 0.1 */
WEIR_API enum weir_status weir_op_exp(weir_graph *graph, const char *name, weir_output x,
                                      weir_output *out, weir_error *error);
WEIR_API enum weir_status weir_op_log(weir_graph *graph, const char *name, weir_output x,
                                      weir_output *out, weir_error *error);
WEIR_API enum weir_status weir_op_sqrt(weir_graph *graph, const char *name, weir_output x,
                                       weir_output *out, weir_error *error);
WEIR_API enum weir_status weir_op_tanh(weir_graph *graph, const char *name, weir_output x,
                                       weir_output *out, weir_error *error);
/* 1 / (1 + exp(-x)), of f32 and f64. @since 0.1 */
WEIR_API enum weir_status weir_op_sigmoid(weir_graph *graph, const char *name, weir_output x,
                                          weir_output *out, weir_error *error);

/* --- Along axes --- */

/*
 * The largest, or smallest, of all elements, a scalar; or those along one axis, which is removed.
 * NaN if there is one. Errors: WEIR_INVALID_ARGUMENT if there are no elements to choose from.
 * @since 0.1
 */
WEIR_API enum weir_status weir_op_reduce_max(weir_graph *graph, const char *name, weir_output x,
                                             weir_output *out, weir_error *error);
WEIR_API enum weir_status weir_op_reduce_max_axis(weir_graph *graph, const char *name,
                                                  weir_output x, uint32_t axis, weir_output *out,
                                                  weir_error *error);
WEIR_API enum weir_status weir_op_reduce_min(weir_graph *graph, const char *name, weir_output x,
                                             weir_output *out, weir_error *error);
WEIR_API enum weir_status weir_op_reduce_min_axis(weir_graph *graph, const char *name,
                                                  weir_output x, uint32_t axis, weir_output *out,
                                                  weir_error *error);

/*
 * exp(x) over the sum of exp(x) along the last axis, of f32 and f64, without overflow. For a loss
 * see weir_op_softmax_cross_entropy().
 * @since 0.1
 */
WEIR_API enum weir_status weir_op_softmax(weir_graph *graph, const char *name, weir_output x,
                                          weir_output *out, weir_error *error);

/*
 * The mean of (a - b) * (a - b) over all elements, a scalar of f32 or f64. a and b pair up as in
 * weir_op_sub(). Several nodes; the name is that of the last.
 * @since 0.1
 */
WEIR_API enum weir_status weir_op_mean_squared_error(weir_graph *graph, const char *name,
                                                     weir_output a, weir_output b, weir_output *out,
                                                     weir_error *error);

WEIR_END_DECLS

#endif
