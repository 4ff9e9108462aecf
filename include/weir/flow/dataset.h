/*
 * dataset.h - datasets and graphs: nodes that take from an iterator, and maps by functions.
 *
 * Use weir_op_next() where a step takes its input itself, and weir_dataset_map_function() where the
 * elements of a dataset are computed by ops. A loop of your own that takes from an iterator
 * (weir/dataset.h) and feeds a step needs neither.
 *
 * | call             | threads | progress              | blocks on | allocates | signal-safe |
 * |------------------|---------|-----------------------|-----------|-----------|-------------|
 * | weir_op_next     | any     | allocator, lock-free  | allocator | yes       | no          |
 * | weir_dataset_map_function | any | allocator        | allocator | yes       | no          |
 */
#ifndef WEIR_FLOW_DATASET_H
#define WEIR_FLOW_DATASET_H

#include <stddef.h>
#include <weir/dataset.h>
#include <weir/flow/function.h>
#include <weir/flow/graph.h>
#include <weir/flow/session.h>
#include <weir/status.h>

WEIR_BEGIN_DECLS

/*
 * A node that takes the next element of the iterator in each step: outs[0 .. count-1], one output
 * for each component, of its dtype and of any shape. `count` is the width of the dataset. A step
 * that waits for the element holds no thread. A step whose caller waits without deadline and token
 * takes part in the work of windows as weir_iterator_next() does, another one as
 * weir_iterator_start_next(). The graph borrows the iterator. Errors when it is built:
 * WEIR_INVALID_ARGUMENT (NULL, count), and those of all ops (weir/flow/op.h). In a step: as
 * weir_iterator_next(); the end fails the step with WEIR_OUT_OF_RANGE. A step that is cancelled
 * while it waits loses no element; a step that fails later has taken its element.
 * In a function it is a write of the iterator (weir/flow/function.h).
 * @since 0.1
 */
WEIR_API enum weir_status weir_op_next(weir_graph *graph, const char *name, weir_iterator *iterator,
                                       weir_output outs[], size_t count, weir_node **node,
                                       weir_error *error);

/*
 * weir_dataset_map() by a function of ops: each component of an element is an argument of
 * `function`, which has only tensor parameters, and its results are the components of the new
 * element. The function runs on the thread that maps, as weir_function_run() with
 * WEIR_RUN_ON_CALLER; `session` decides its memory and its trace. Both must outlive the dataset and
 * its iterators. Options: at_once, UNORDERED, dtypes and width (0: those of the input). Errors also:
 * WEIR_INVALID_ARGUMENT if parameters and components, or results and width, differ in number, a
 * parameter is no tensor or has another dtype than its component, or `dispose` is set. For a whole
 * batch of rows in one call see weir_op_map().
 * @since 0.1
 */
WEIR_API enum weir_status weir_dataset_map_function(weir_dataset *input, weir_function *function,
                                                    weir_session *session,
                                                    const struct weir_dataset_options *options,
                                                    weir_dataset **out, weir_error *error);

WEIR_END_DECLS

#endif
