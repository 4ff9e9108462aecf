/*
 * gradient.h - what the gradient rules of ops have in common: nodes that take their shape from another
 * value. So a rule need not know shapes when it builds its nodes.
 *
 * A rule is called with an error that is not NULL. So calls can be chained with ||, and the status is
 * error->code.
 */
#ifndef WEIRI_GRADIENT_H
#define WEIRI_GRADIENT_H

#include <weir/flow/op_array.h>
#include <weir/flow/op_math.h>

#include "graph/node.h"

/*
 * As weir_gradients(), with the gradients by the outputs instead of 1. For an x on which no output
 * depends, outs[j] is zeros. The message does not name the call.
 */
enum weir_status weiri_gradients_from(weir_graph *graph, const weir_output outputs[], const weir_output of_outputs[],
                                      size_t output_count, const weir_output xs[], size_t count, weir_output outs[],
                                      weir_error *error);

/* Sums g over the leading dims that `like`, whose dims are its last ones or which is a scalar, lacks. */
enum weir_status weiri_gradient_sum_like(weir_graph *graph, weir_output g, weir_output like, weir_output *out,
                                         weir_error *error);
enum { WEIRI_EVERY_AXIS = -1 };
/* Repeats g, which lacks the axis, along that axis of `like`; `mean`: and divides it by the dim. */
enum weir_status weiri_gradient_repeat_like(weir_graph *graph, weir_output g, weir_output like, int axis, bool mean,
                                            weir_output *out, weir_error *error);
/* A view of g with the shape of `like`. */
enum weir_status weiri_gradient_reshape_like(weir_graph *graph, weir_output g, weir_output like, weir_output *out,
                                             weir_error *error);
/* A tensor like `like` whose elements are all `value`. */
enum weir_status weiri_gradient_fill_like(weir_graph *graph, weir_output like, double value, weir_output *out,
                                          weir_error *error);
/* Multiplies row i of g, as many as `factors` has elements, by factors[i]. */
enum weir_status weiri_gradient_scale_rows(weir_graph *graph, weir_output g, weir_output factors, weir_output *out,
                                           weir_error *error);
/* A view [n, m] of g, which is [n, ...]. */
enum weir_status weiri_gradient_flatten_rows(weir_graph *graph, weir_output g, weir_output *out, weir_error *error);
/* The gradient of what passes its first input on. */
enum weir_status weiri_gradient_pass(const weir_node *node, const struct weir_gradient_request *request,
                                     weir_output into[], weir_error *error);
/* The gradient of what does not change when its inputs change a little: 0. */
enum weir_status weiri_gradient_zero(const weir_node *node, const struct weir_gradient_request *request,
                                     weir_output into[], weir_error *error);

#endif
