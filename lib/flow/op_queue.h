/*
 * op_queue.h - what the ops on one queue and those on one of several share.
 */
#ifndef WEIRI_OP_QUEUE_H
#define WEIRI_OP_QUEUE_H

#include "flow/op.h"
#include "queue/components.h"

/* What one item's component is; with `batched`, rows of them. */
struct weiri_spec weiri_queue_component_spec(const struct weiri_component *component, int batched);
/* WEIR_INVALID_ARGUMENT unless the outputs may be a tuple of these components. */
enum weir_status weiri_queue_tuple_check(const weir_graph *graph, const struct weiri_op *op, const char *name,
                                         const char *queue, const struct weiri_component components[], size_t count,
                                         int batched, const weir_output tuple[], weir_error *error);
/* WEIR_INVALID_ARGUMENT unless the output may be an i32 or i64 scalar: `what`, in messages. */
enum weir_status weiri_integer_output_check(const weir_graph *graph, const struct weiri_op *op, const char *name,
                                            const char *what, weir_output output, weir_error *error);
/* The same of input i when the op runs, and its value. */
enum weir_status weiri_integer_input(const struct weiri_call *call, size_t i, const char *what, int64_t *value);

#endif
