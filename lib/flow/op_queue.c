/*
 * op_queue.c - tensor queues as nodes.
 *
 * Those that wait are started and completed by the queue (flow/wait.c turns a completion into the rest of the step), so a full
 * or an empty queue holds no thread.
 */
#include "flow/op_queue.h"

#include <string.h>

#include "base/error.h"
#include "flow/node.h"
#include "queue/tuple.h"

struct queue_use {
	weir_tensor_queue *queue;
	enum weir_close_mode mode; /* of close */
};

static weir_tensor_queue *queue_of(const struct weiri_call *call)
{
	return ((const struct queue_use *)call->node->attribute)->queue;
}

static const char *resource(const void *attribute)
{
	return weir_tensor_queue_name(((const struct queue_use *)attribute)->queue);
}

static enum weir_status build(weir_graph *graph, const struct weiri_op *op, const char *name,
                              const struct queue_use *use, const weir_output inputs[], size_t input_count,
                              const struct weiri_spec specs[], size_t output_count, weir_node **node, weir_error *error)
{
	struct weiri_node_request request;

	(void)memset(&request, 0, sizeof(request));
	request.op = op;
	request.name = name;
	request.inputs = inputs;
	request.input_count = input_count;
	request.specs = specs;
	request.output_count = output_count;
	request.attribute = use;
	request.attribute_size = sizeof(*use);
	return weiri_node_build(graph, &request, node, error);
}

/* The tuple's length, which every call of a queue must state. */
static enum weir_status check_count(const struct weiri_op *op, const char *name, weir_tensor_queue *queue,
                                    const void *array, const char *what, size_t count, weir_error *error)
{
	if (queue == NULL)
		return weiri_node_fail(error, WEIR_INVALID_ARGUMENT, op, name, "queue is NULL");
	if (array == NULL)
		return weiri_node_fail(error, WEIR_INVALID_ARGUMENT, op, name, "%s is NULL", what);
	if (count != weir_tensor_queue_component_count(queue))
		return weiri_node_fail(error, WEIR_INVALID_ARGUMENT, op, name, "queue \"%s\" expects %zu components, got %zu",
		                       weir_tensor_queue_name(queue), weir_tensor_queue_component_count(queue), count);
	return WEIR_OK;
}

struct weiri_spec weiri_queue_component_spec(const struct weiri_component *component, int batched)
{
	struct weiri_spec spec = weiri_spec_of(component->dtype, component->has_shape ? &component->shape : NULL);

	if (!batched || !spec.ranked)
		return spec;
	/* The queue has seen to it that there is one more. */
	spec.shape.rank++;
	spec.shape.dims[0] = -1;
	(void)memcpy(&spec.shape.dims[1], component->shape.dims, component->shape.rank * sizeof(int64_t));
	return spec;
}

static enum weir_status check_shapes_given(const struct weiri_op *op, const char *name, const weir_tensor_queue *queue,
                                           weir_error *error)
{
	if (queue->batches)
		return WEIR_OK;
	return weiri_node_fail(error, WEIR_INVALID_ARGUMENT, op, name,
	                       "batches of queue \"%s\" need specified shapes, without unknown dims unless it pads",
	                       weir_tensor_queue_name(queue));
}

/* --- Enqueue --- */

static enum weir_status start_enqueue(const struct weiri_call *call, weir_tensor_queue_done_fn *done, void *context,
                                      weir_queue_op **operation)
{
	return weir_tensor_queue_start_enqueue(queue_of(call), call->inputs, call->node->input_count, done, context,
	                                       operation, call->error);
}

static enum weir_status start_enqueue_many(const struct weiri_call *call, weir_tensor_queue_done_fn *done,
                                           void *context, weir_queue_op **operation)
{
	return weir_tensor_queue_start_enqueue_many(queue_of(call), call->inputs, call->node->input_count, done, context,
	                                            operation, call->error);
}

static const struct weiri_op enqueue_op = {
	.name = "enqueue", .traits = WEIRI_OP_WAITS, .start = start_enqueue, .resource = resource};
static const struct weiri_op enqueue_many_op = {
	.name = "enqueue_many", .traits = WEIRI_OP_WAITS, .start = start_enqueue_many, .resource = resource};

enum weir_status weiri_queue_tuple_check(const weir_graph *graph, const struct weiri_op *op, const char *name,
                                         const char *queue, const struct weiri_component components[], size_t count,
                                         int batched, const weir_output tuple[], weir_error *error)
{
	for (size_t i = 0; i < count; i++) {
		struct weiri_spec expected = weiri_queue_component_spec(&components[i], batched);
		char text_expected[WEIRI_SPEC_TEXT_SIZE];
		char text_got[WEIRI_SPEC_TEXT_SIZE];

		/* An output that is none is reported by the build itself. */
		if (weiri_output_check(graph, tuple[i], "input", NULL) != WEIR_OK)
			return WEIR_OK;
		if (!weiri_spec_compatible(&expected, weiri_output_spec(tuple[i])))
			return weiri_node_fail(error, WEIR_INVALID_ARGUMENT, op, name,
			                       "queue \"%s\" expects %s as component %zu (%s), got %s", queue,
			                       weiri_spec_text(&expected, text_expected), i, components[i].name,
			                       weiri_spec_text(weiri_output_spec(tuple[i]), text_got));
	}
	return WEIR_OK;
}

static enum weir_status build_enqueue(weir_graph *graph, const struct weiri_op *op, const char *name,
                                      weir_tensor_queue *queue, const weir_output tuple[], size_t count,
                                      weir_node **out, weir_error *error)
{
	enum weir_status status = check_count(op, name, queue, tuple, "tuple", count, error);
	struct queue_use use;

	if (status == WEIR_OK && out == NULL)
		status = weiri_node_fail(error, WEIR_INVALID_ARGUMENT, op, name, "out is NULL");
	if (status == WEIR_OK)
		status = weiri_queue_tuple_check(graph, op, name, weir_tensor_queue_name(queue), queue->components, count,
		                                 op == &enqueue_many_op, tuple, error);
	if (status != WEIR_OK)
		return status;
	(void)memset(&use, 0, sizeof(use));
	use.queue = queue;
	return build(graph, op, name, &use, tuple, count, NULL, 0, out, error);
}

enum weir_status weir_op_enqueue(weir_graph *graph, const char *name, weir_tensor_queue *queue,
                                 const weir_output tuple[], size_t count, weir_node **out, weir_error *error)
{
	return build_enqueue(graph, &enqueue_op, name, queue, tuple, count, out, error);
}

enum weir_status weir_op_enqueue_many(weir_graph *graph, const char *name, weir_tensor_queue *queue,
                                      const weir_output tuple[], size_t count, weir_node **out, weir_error *error)
{
	return build_enqueue(graph, &enqueue_many_op, name, queue, tuple, count, out, error);
}

/* --- Dequeue --- */

static enum weir_status start_dequeue(const struct weiri_call *call, weir_tensor_queue_done_fn *done, void *context,
                                      weir_queue_op **operation)
{
	return weir_tensor_queue_start_dequeue(queue_of(call), done, context, operation, call->error);
}

static int integer_scalar(const struct weiri_spec *spec)
{
	return (spec->dtype == WEIRI_ANY_DTYPE || spec->dtype == WEIR_I32 || spec->dtype == WEIR_I64) &&
	       (!spec->ranked || spec->shape.rank == 0);
}

enum weir_status weiri_integer_output_check(const weir_graph *graph, const struct weiri_op *op, const char *name,
                                            const char *what, weir_output output, weir_error *error)
{
	char text[WEIRI_SPEC_TEXT_SIZE];

	/* An output that is none is reported by the build itself. */
	if (graph == NULL || weiri_output_check(graph, output, what, NULL) != WEIR_OK ||
	    integer_scalar(weiri_output_spec(output)))
		return WEIR_OK;
	return weiri_node_fail(error, WEIR_INVALID_ARGUMENT, op, name, "expected %s as an i32 or i64 scalar, got %s", what,
	                       weiri_spec_text(weiri_output_spec(output), text));
}

enum weir_status weiri_integer_input(const struct weiri_call *call, size_t i, const char *what, int64_t *value)
{
	const weir_tensor *input = call->inputs[i];
	struct weiri_spec got = weiri_spec_of_tensor(input);
	char text[WEIRI_SPEC_TEXT_SIZE];

	if (!integer_scalar(&got))
		return weiri_fail(call->error, WEIR_INVALID_ARGUMENT, "expected %s as an i32 or i64 scalar, got %s", what,
		                  weiri_spec_text(&got, text));
	*value =
		got.dtype == WEIR_I32 ? *(const int32_t *)weir_tensor_data(input) : *(const int64_t *)weir_tensor_data(input);
	return WEIR_OK;
}

static enum weir_status start_batch(const struct weiri_call *call, enum weir_queue_op_kind kind,
                                    weir_tensor_queue_done_fn *done, void *context, weir_queue_op **operation)
{
	int64_t n;
	enum weir_status status = weiri_integer_input(call, 0, "n", &n);

	return status == WEIR_OK
	           ? weir_tensor_queue_start_dequeue_many(queue_of(call), kind, n, done, context, operation, call->error)
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
	.name = "dequeue", .traits = WEIRI_OP_WAITS, .start = start_dequeue, .resource = resource};
static const struct weiri_op dequeue_many_op = {
	.name = "dequeue_many", .traits = WEIRI_OP_WAITS, .start = start_dequeue_many, .resource = resource};
static const struct weiri_op dequeue_up_to_op = {
	.name = "dequeue_up_to", .traits = WEIRI_OP_WAITS, .start = start_dequeue_up_to, .resource = resource};

/* n NULL: one tuple. */
static enum weir_status build_dequeue(weir_graph *graph, const struct weiri_op *op, const char *name,
                                      weir_tensor_queue *queue, const weir_output *n, weir_output outs[], size_t count,
                                      weir_error *error)
{
	enum weir_status status = check_count(op, name, queue, outs, "outs", count, error);
	struct weiri_spec specs[WEIR_TENSOR_QUEUE_MAX_COMPONENTS];
	struct queue_use use;
	weir_node *node;

	if (status == WEIR_OK && n != NULL)
		status = check_shapes_given(op, name, queue, error);
	if (status == WEIR_OK && n != NULL)
		status = weiri_integer_output_check(graph, op, name, "n", *n, error);
	if (status != WEIR_OK)
		return status;
	for (size_t i = 0; i < count; i++)
		specs[i] = weiri_queue_component_spec(&queue->components[i], n != NULL);
	(void)memset(&use, 0, sizeof(use));
	use.queue = queue;
	status = build(graph, op, name, &use, n, n != NULL ? 1 : 0, specs, count, &node, error);
	for (size_t i = 0; status == WEIR_OK && i < count; i++) {
		outs[i].node = node;
		outs[i].index = (uint32_t)i;
	}
	return status;
}

enum weir_status weir_op_dequeue(weir_graph *graph, const char *name, weir_tensor_queue *queue, weir_output outs[],
                                 size_t count, weir_error *error)
{
	return build_dequeue(graph, &dequeue_op, name, queue, NULL, outs, count, error);
}

enum weir_status weir_op_dequeue_many(weir_graph *graph, const char *name, weir_tensor_queue *queue, weir_output n,
                                      weir_output outs[], size_t count, weir_error *error)
{
	return build_dequeue(graph, &dequeue_many_op, name, queue, &n, outs, count, error);
}

enum weir_status weir_op_dequeue_up_to(weir_graph *graph, const char *name, weir_tensor_queue *queue, weir_output n,
                                       weir_output outs[], size_t count, weir_error *error)
{
	return build_dequeue(graph, &dequeue_up_to_op, name, queue, &n, outs, count, error);
}

/* --- Size and close --- */

static enum weir_status run_size(const struct weiri_call *call)
{
	uint64_t size = weir_tensor_queue_size(queue_of(call));

	return weiri_i64_tensor(&size, 0, call->allocator, &call->outputs[0], call->error);
}

static const struct weiri_op size_op = {.name = "queue_size", .run = run_size};

enum weir_status weir_op_queue_size(weir_graph *graph, const char *name, weir_tensor_queue *queue, weir_output *out,
                                    weir_error *error)
{
	struct weiri_spec spec = weiri_spec_scalar(WEIR_I64);
	struct queue_use use;
	enum weir_status status;
	weir_node *node;

	if (queue == NULL || out == NULL)
		return weiri_node_fail(error, WEIR_INVALID_ARGUMENT, &size_op, name, "%s is NULL",
		                       queue == NULL ? "queue" : "out");
	(void)memset(&use, 0, sizeof(use));
	use.queue = queue;
	status = build(graph, &size_op, name, &use, NULL, 0, &spec, 1, &node, error);
	if (status == WEIR_OK) {
		out->node = node;
		out->index = 0;
	}
	return status;
}

static enum weir_status run_close(const struct weiri_call *call)
{
	const struct queue_use *use = call->node->attribute;

	return weir_tensor_queue_close(use->queue, use->mode, NULL);
}

static const struct weiri_op close_op = {.name = "queue_close", .run = run_close};

enum weir_status weir_op_queue_close(weir_graph *graph, const char *name, weir_tensor_queue *queue,
                                     enum weir_close_mode mode, weir_node **out, weir_error *error)
{
	struct queue_use use;

	if (queue == NULL || out == NULL)
		return weiri_node_fail(error, WEIR_INVALID_ARGUMENT, &close_op, name, "%s is NULL",
		                       queue == NULL ? "queue" : "out");
	if (mode != WEIR_CLOSE_DRAIN && mode != WEIR_CLOSE_CANCEL)
		return weiri_node_fail(error, WEIR_INVALID_ARGUMENT, &close_op, name, "%d is no close mode", (int)mode);
	(void)memset(&use, 0, sizeof(use));
	use.queue = queue;
	use.mode = mode;
	return build(graph, &close_op, name, &use, NULL, 0, NULL, 0, out, error);
}
