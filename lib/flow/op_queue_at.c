/*
 * op_queue_at.c - ops on one of several tensor queues, which a scalar chooses in each step.
 *
 * Input 0 is the index; what the op on a single queue takes follows it. What is known of the outputs is what the queues of the list
 * have in common.
 */
#include "flow/op_queue.h"

#include <string.h>

#include "base/error.h"
#include "flow/node.h"
#include "queue/queue_list.h"

static const weir_tensor_queue_list *list_of(const struct weiri_call *call)
{
	return *(weir_tensor_queue_list *const *)call->node->attribute;
}

static const char *resource(const void *attribute)
{
	return (*(weir_tensor_queue_list *const *)attribute)->name;
}

static enum weir_status choose(const struct weiri_call *call, weir_tensor_queue **queue)
{
	int64_t index;
	enum weir_status status = weiri_integer_input(call, 0, "index", &index);

	return status == WEIR_OK ? weir_tensor_queue_list_at(list_of(call), index, queue, call->error) : status;
}

static enum weir_status build(weir_graph *graph, const struct weiri_op *op, const char *name,
                              weir_tensor_queue_list *list, const weir_output inputs[], size_t input_count,
                              const struct weiri_spec specs[], size_t output_count, weir_node **node, weir_error *error)
{
	struct weiri_node_request request;
	enum weir_status status = weiri_integer_output_check(graph, op, name, "index", inputs[0], error);

	if (status != WEIR_OK)
		return status;
	(void)memset(&request, 0, sizeof(request));
	request.op = op;
	request.name = name;
	request.inputs = inputs;
	request.input_count = input_count;
	request.specs = specs;
	request.output_count = output_count;
	request.attribute = &list;
	request.attribute_size = sizeof(list);
	return weiri_node_build(graph, &request, node, error);
}

static enum weir_status check_count(const struct weiri_op *op, const char *name, const weir_tensor_queue_list *list,
                                    const void *array, const char *what, size_t count, weir_error *error)
{
	if (list == NULL)
		return weiri_node_fail(error, WEIR_INVALID_ARGUMENT, op, name, "list is NULL");
	if (array == NULL)
		return weiri_node_fail(error, WEIR_INVALID_ARGUMENT, op, name, "%s is NULL", what);
	if (count != list->count)
		return weiri_node_fail(error, WEIR_INVALID_ARGUMENT, op, name, "queue \"%s\" expects %zu components, got %zu",
		                       list->name, list->count, count);
	return WEIR_OK;
}

/* --- Enqueue --- */

static enum weir_status start_enqueue(const struct weiri_call *call, weir_tensor_queue_done_fn *done, void *context,
                                      weir_queue_op **operation)
{
	weir_tensor_queue *queue;
	enum weir_status status = choose(call, &queue);

	return status == WEIR_OK ? weir_tensor_queue_start_enqueue(queue, call->inputs + 1, list_of(call)->count, done,
	                                                           context, operation, call->error)
	                         : status;
}

static enum weir_status start_enqueue_many(const struct weiri_call *call, weir_tensor_queue_done_fn *done,
                                           void *context, weir_queue_op **operation)
{
	weir_tensor_queue *queue;
	enum weir_status status = choose(call, &queue);

	return status == WEIR_OK ? weir_tensor_queue_start_enqueue_many(queue, call->inputs + 1, list_of(call)->count, done,
	                                                                context, operation, call->error)
	                         : status;
}

static const struct weiri_op enqueue_op = {
	.name = "enqueue_at", .traits = WEIRI_OP_WAITS, .start = start_enqueue, .resource = resource};
static const struct weiri_op enqueue_many_op = {
	.name = "enqueue_many_at", .traits = WEIRI_OP_WAITS, .start = start_enqueue_many, .resource = resource};

static enum weir_status build_enqueue(weir_graph *graph, const struct weiri_op *op, const char *name,
                                      weir_tensor_queue_list *list, weir_output index, const weir_output tuple[],
                                      size_t count, weir_node **out, weir_error *error)
{
	weir_output inputs[WEIR_TENSOR_QUEUE_MAX_COMPONENTS + 1];
	enum weir_status status = check_count(op, name, list, tuple, "tuple", count, error);

	if (status == WEIR_OK && out == NULL)
		status = weiri_node_fail(error, WEIR_INVALID_ARGUMENT, op, name, "out is NULL");
	if (status == WEIR_OK)
		status = weiri_queue_tuple_check(graph, op, name, list->name, list->components, count, op == &enqueue_many_op,
		                                 tuple, error);
	if (status != WEIR_OK)
		return status;
	inputs[0] = index;
	(void)memcpy(inputs + 1, tuple, count * sizeof(tuple[0]));
	return build(graph, op, name, list, inputs, count + 1, NULL, 0, out, error);
}

enum weir_status weir_op_enqueue_at(weir_graph *graph, const char *name, weir_tensor_queue_list *list,
                                    weir_output index, const weir_output tuple[], size_t count, weir_node **out,
                                    weir_error *error)
{
	return build_enqueue(graph, &enqueue_op, name, list, index, tuple, count, out, error);
}

enum weir_status weir_op_enqueue_many_at(weir_graph *graph, const char *name, weir_tensor_queue_list *list,
                                         weir_output index, const weir_output tuple[], size_t count, weir_node **out,
                                         weir_error *error)
{
	return build_enqueue(graph, &enqueue_many_op, name, list, index, tuple, count, out, error);
}

/* --- Dequeue --- */

static enum weir_status start_dequeue(const struct weiri_call *call, weir_tensor_queue_done_fn *done, void *context,
                                      weir_queue_op **operation)
{
	weir_tensor_queue *queue;
	enum weir_status status = choose(call, &queue);

	return status == WEIR_OK ? weir_tensor_queue_start_dequeue(queue, done, context, operation, call->error) : status;
}

static enum weir_status start_batch(const struct weiri_call *call, enum weir_queue_op_kind kind,
                                    weir_tensor_queue_done_fn *done, void *context, weir_queue_op **operation)
{
	weir_tensor_queue *queue;
	enum weir_status status = choose(call, &queue);
	int64_t n;

	if (status == WEIR_OK)
		status = weiri_integer_input(call, 1, "n", &n);
	return status == WEIR_OK
	           ? weir_tensor_queue_start_dequeue_many(queue, kind, n, done, context, operation, call->error)
	           : status;
}

static enum weir_status start_dequeue_many(const struct weiri_call *call, weir_tensor_queue_done_fn *done,
                                           void *context, weir_queue_op **operation)
{
	return start_batch(call, WEIR_QUEUE_OP_DEQUEUE_MANY, done, context, operation);
}

static enum weir_status start_dequeue_up_to(const struct weiri_call *call, weir_tensor_queue_done_fn *done,
                                            void *context, weir_queue_op **operation)
{
	return start_batch(call, WEIR_QUEUE_OP_DEQUEUE_UP_TO, done, context, operation);
}

static const struct weiri_op dequeue_op = {
	.name = "dequeue_at", .traits = WEIRI_OP_WAITS, .start = start_dequeue, .resource = resource};
static const struct weiri_op dequeue_many_op = {
	.name = "dequeue_many_at", .traits = WEIRI_OP_WAITS, .start = start_dequeue_many, .resource = resource};
static const struct weiri_op dequeue_up_to_op = {
	.name = "dequeue_up_to_at", .traits = WEIRI_OP_WAITS, .start = start_dequeue_up_to, .resource = resource};

/* inputs: the index, and n of a batch. */
static enum weir_status build_dequeue(weir_graph *graph, const struct weiri_op *op, const char *name,
                                      weir_tensor_queue_list *list, const weir_output inputs[], size_t input_count,
                                      weir_output outs[], size_t count, weir_error *error)
{
	enum weir_status status = check_count(op, name, list, outs, "outs", count, error);
	struct weiri_spec specs[WEIR_TENSOR_QUEUE_MAX_COMPONENTS];
	weir_node *node;

	if (status == WEIR_OK && input_count == 2)
		status = weiri_integer_output_check(graph, op, name, "n", inputs[1], error);
	if (status != WEIR_OK)
		return status;
	for (size_t i = 0; i < count; i++)
		specs[i] = weiri_queue_component_spec(&list->components[i], input_count == 2);
	status = build(graph, op, name, list, inputs, input_count, specs, count, &node, error);
	for (size_t i = 0; status == WEIR_OK && i < count; i++)
		outs[i] = (weir_output){node, (uint32_t)i};
	return status;
}

enum weir_status weir_op_dequeue_at(weir_graph *graph, const char *name, weir_tensor_queue_list *list,
                                    weir_output index, weir_output outs[], size_t count, weir_error *error)
{
	return build_dequeue(graph, &dequeue_op, name, list, &index, 1, outs, count, error);
}

enum weir_status weir_op_dequeue_many_at(weir_graph *graph, const char *name, weir_tensor_queue_list *list,
                                         weir_output index, weir_output n, weir_output outs[], size_t count,
                                         weir_error *error)
{
	return build_dequeue(graph, &dequeue_many_op, name, list, (weir_output[]){index, n}, 2, outs, count, error);
}

enum weir_status weir_op_dequeue_up_to_at(weir_graph *graph, const char *name, weir_tensor_queue_list *list,
                                          weir_output index, weir_output n, weir_output outs[], size_t count,
                                          weir_error *error)
{
	return build_dequeue(graph, &dequeue_up_to_op, name, list, (weir_output[]){index, n}, 2, outs, count, error);
}
