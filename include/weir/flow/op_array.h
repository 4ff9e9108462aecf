/*
 * op_array.h - ops that choose, move and make elements: views, parts, rows by number, random numbers.
 *
 * The rules that weir/flow/op.h states for builders hold here: names, common errors, and checks that
 * are repeated at run time. Every op here has a gradient by x (weir/flow/gradient.h), unless it says
 * otherwise.
 *
 * | call      | threads | progress             | blocks on | allocates | signal-safe |
 * |-----------|---------|----------------------|-----------|-----------|-------------|
 * | weir_op_* | any     | allocator, lock-free | allocator | yes       | no          |
 *
 * The dtypes are i32, i64, f32 and f64; others are refused (WEIR_UNIMPLEMENTED). A view shows the
 * elements of x and keeps the memory of x alive (weir/tensor.h).
 */
#ifndef WEIR_OP_ARRAY_H
#define WEIR_OP_ARRAY_H

#include <stddef.h>
#include <stdint.h>
#include <weir/flow/graph.h>
#include <weir/status.h>
#include <weir/tensor.h>

WEIR_BEGIN_DECLS

/*
 * A view of x in another shape with the same elements. One dim may be negative: it follows from the
 * number of elements. Errors: WEIR_INVALID_ARGUMENT if two are, or the numbers of elements differ.
 * @since 0.1
 */
WEIR_API enum weir_status weir_op_reshape(weir_graph *graph, const char *name, weir_output x,
                                          const weir_shape *shape, weir_output *out,
                                          weir_error *error);

/*
 * Rows `begin` to begin + count - 1 of the first axis, a view; `count` WEIR_REST: up to the end.
 * weir_op_slice() does the same along another axis, where it copies. Errors: WEIR_INVALID_ARGUMENT
 * if there is no such axis; WEIR_OUT_OF_RANGE if there are not so many. A dim that is not known before
 * the run is checked in the run, which then fails with WEIR_INVALID_ARGUMENT: there, WEIR_OUT_OF_RANGE
 * tells that the input has ended.
 * @since 0.1
 */
enum weir_rest { WEIR_REST = -1 };
WEIR_API enum weir_status weir_op_rows(weir_graph *graph, const char *name, weir_output x,
                                       int64_t begin, int64_t count, weir_output *out,
                                       weir_error *error);
WEIR_API enum weir_status weir_op_slice(weir_graph *graph, const char *name, weir_output x,
                                        uint32_t axis, int64_t begin, int64_t count,
                                        weir_output *out, weir_error *error);

/*
 * Axis i of the output is axis order[i] of x; `order` has each axis once. NULL: the axes in reverse
 * order, whatever `count` is.
 * @since 0.1
 */
WEIR_API enum weir_status weir_op_transpose(weir_graph *graph, const char *name, weir_output x,
                                            const uint32_t order[], size_t count, weir_output *out,
                                            weir_error *error);

/*
 * xs[0 .. count-1], one behind the other along the axis. They have one dtype, and their other dims
 * are equal. count >= 1.
 * @since 0.1
 */
WEIR_API enum weir_status weir_op_concat(weir_graph *graph, const char *name,
                                         const weir_output xs[], size_t count, uint32_t axis,
                                         weir_output *out, weir_error *error);
/*
 * `count` parts of equal size along the axis, for which outs has room; views along axis 0.
 * @since 0.1
 */
WEIR_API enum weir_status weir_op_split(weir_graph *graph, const char *name, weir_output x,
                                        uint32_t axis, size_t count, weir_output outs[],
                                        weir_error *error);

/*
 * The rows of x that `indices` (i32 or i64, of any shape) name: [indices..., row...]. An index out
 * of range fails the step with WEIR_INVALID_ARGUMENT. For rows of a variable, weir_op_gather() does
 * less.
 * @since 0.1
 */
WEIR_API enum weir_status weir_op_gather_rows(weir_graph *graph, const char *name, weir_output x,
                                              weir_output indices, weir_output *out,
                                              weir_error *error);

/*
 * [indices..., depth]: 1 at the place that the index (i32 or i64) names, else 0; only 0 for an index
 * out of range. Its output counts as constant for gradients. Errors: WEIR_INVALID_ARGUMENT if depth
 * is below 1.
 * @since 0.1
 */
WEIR_API enum weir_status weir_op_one_hot(weir_graph *graph, const char *name, weir_output indices,
                                          int64_t depth, enum weir_dtype dtype, weir_output *out,
                                          weir_error *error);

/*
 * Random numbers, by counter: element i is a function of the seed, the number of the node in its
 * graph, the run's random_step (weir/flow/callable.h), the place of a called function, the iteration
 * or row, and i. So a graph that is built in the same way draws the same numbers again, on any number
 * of threads. The bits are those of Philox4x32-10 (Salmon, Moraes, Dror, Shaw, SC 2011). shape has
 * no unknown dims. No gradient goes through them.
 *
 * uniform: in [low, high), of all four dtypes. The bounds are rounded to the dtype, and for integers
 * high - low is at most 2^53. normal: of f32 and f64, by the method of Box and Muller (1958), with
 * the mean and the standard deviation. Errors: WEIR_INVALID_ARGUMENT if low < high does not hold, or
 * a number is not finite.
 * @since 0.1
 */
WEIR_API enum weir_status weir_op_random_uniform(weir_graph *graph, const char *name,
                                                 enum weir_dtype dtype, const weir_shape *shape,
                                                 double low, double high, uint64_t seed,
                                                 weir_output *out, weir_error *error);
WEIR_API enum weir_status weir_op_random_normal(weir_graph *graph, const char *name,
                                                enum weir_dtype dtype, const weir_shape *shape,
                                                double mean, double deviation, uint64_t seed,
                                                weir_output *out, weir_error *error);

WEIR_END_DECLS

#endif
