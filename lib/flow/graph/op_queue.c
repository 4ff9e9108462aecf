/*
 * op_queue.c - nodes on tensor queues. A node uses one queue; or it has a list of queues, and a
 * scalar chooses one of them in each step.
 *
 * A node that waits starts an asynchronous operation of the queue, and session/wait.c continues the
 * step when that completes. So a full or empty queue holds no thread. With a list, input 0 is the
 * index, and the outputs' specs contain what all queues of the list have in common.
 */
#include <stddef.h>
#include <string.h>

#include "base/error.h"
#include "graph/node.h"
#include "queue/announce.h"
#include "tuples/queue_list.h"
#include "tuples/transfer.h"
#include "tuples/tuple.h"

struct queue_use {
	weir_tensor_queue *queue;
	const weir_tensor_queue_list *list; /* instead of a queue */
	/* Only the attribute of a close has these members; that of other nodes ends before them. */
	enum weir_close_mode mode;
	weir_error cause;
};

static const char *resource(const void *attribute)
{
	const struct queue_use *use = attribute;

	return use->list != NULL ? use->list->name : weir_tensor_queue_name(use->queue);
}

/* Of a dequeue: no queue runner and no other announced thread fills any of its queues. */
static bool is_not_filled(const void *attribute)
{
	const struct queue_use *use = attribute;

	if (use->list == NULL)
		return !weiri_queue_is_fed(use->queue->queue);
	for (size_t i = 0; i < use->list->queue_count; i++) {
		if (weiri_queue_is_fed(use->list->queues[i]->queue))
			return false;
	}
	return true;
}

static bool touches(const weir_node *node, size_t i, struct weiri_resource *described)
{
	const struct queue_use *use = node->attribute;
	weir_tensor_queue *queue;

	if (i >= (use->list != NULL ? use->list->queue_count : 1))
		return false;
	queue = use->list != NULL ? use->list->queues[i] : use->queue;
	*described = (struct weiri_resource){queue, "queue", weir_tensor_queue_name(queue), true};
	return true;
}

static bool reads(const weir_node *node, size_t i, struct weiri_resource *described)
{
	bool more = touches(node, i, described);

	described->writes = false;
	return more;
}

/* --- What a builder is given --- */

struct target {
	struct queue_use use;
	size_t use_size;
	const weir_output *index; /* with a list */
	const struct weiri_component *components;
	size_t count;
};

static struct target target_of(weir_tensor_queue *queue)
{
	struct target target;

	(void)memset(&target, 0, sizeof(target));
	target.use.queue = queue;
	target.use_size = offsetof(struct queue_use, mode);
	if (queue != NULL) {
		target.components = queue->components;
		target.count = queue->count;
	}
	return target;
}

static struct target target_at(const weir_tensor_queue_list *list, const weir_output *index)
{
	struct target target = target_of(NULL);

	target.use.list = list;
	target.index = index;
	if (list != NULL) {
		target.components = list->components;
		target.count = list->count;
	}
	return target;
}

static bool integer_scalar(const struct weiri_spec *spec)
{
	return (spec->dtype == WEIR_I32 || spec->dtype == WEIR_I64) && (!spec->ranked || spec->shape.rank == 0);
}

/* Returns WEIR_OK if `output`, which messages call `what`, is or may be an integer scalar. */
static enum weir_status check_integer(const weir_graph *graph, const struct weiri_op *op, const char *name,
                                      const char *what, weir_output output, weir_error *error)
{
	char text[WEIRI_SPEC_TEXT_SIZE];

	/* weiri_node_build() reports an `output` that is not one of this graph. */
	if (graph == NULL || weiri_output_check(graph, output, what, NULL) != WEIR_OK ||
	    integer_scalar(weiri_output_spec(output)))
		return WEIR_OK;
	return weiri_node_fail(error, WEIR_INVALID_ARGUMENT, op, name, "expected %s as an i32 or i64 scalar, got %s", what,
	                       weiri_spec_text(weiri_output_spec(output), text));
}

/* `inputs` are the inputs after the index. `node` may be NULL. */
static enum weir_status build(weir_graph *graph, const struct weiri_op *op, const char *name,
                              const struct target *target, const weir_output inputs[], size_t input_count,
                              const struct weiri_spec specs[], size_t output_count, weir_node **node, weir_error *error)
{
	weir_output all[WEIR_TENSOR_QUEUE_MAX_COMPONENTS + 1];
	size_t index_count = target->index != NULL ? 1 : 0;
	struct weiri_node_request request;
	enum weir_status status;
	weir_node *built;

	if (target->index != NULL) {
		status = check_integer(graph, op, name, "index", *target->index, error);
		if (status != WEIR_OK)
			return status;
		all[0] = *target->index;
	}
	if (input_count != 0)
		(void)memcpy(all + index_count, inputs, input_count * sizeof(inputs[0]));
	(void)memset(&request, 0, sizeof(request));
	request.op = op;
	request.name = name;
	request.inputs = all;
	request.input_count = index_count + input_count;
	request.specs = specs;
	request.output_count = output_count;
	request.attribute = &target->use;
	request.attribute_size = target->use_size;
	status = weiri_node_build(graph, &request, &built, error);
	if (status == WEIR_OK && node != NULL)
		*node = built;
	return status;
}

/* Checks `count`, the tuple's length, which the caller of every op on a tuple must state. */
static enum weir_status check_count(const struct weiri_op *op, const char *name, const struct target *target,
                                    const void *array, const char *what, size_t count, weir_error *error)
{
	if (target->components == NULL)
		return weiri_node_fail(error, WEIR_INVALID_ARGUMENT, op, name, "%s is NULL",
		                       target->index != NULL ? "list" : "queue");
	if (array == NULL)
		return weiri_node_fail(error, WEIR_INVALID_ARGUMENT, op, name, "%s is NULL", what);
	if (count != target->count)
		return weiri_node_fail(error, WEIR_INVALID_ARGUMENT, op, name, "queue \"%s\" expects %zu component%s, got %zu",
		                       resource(&target->use), target->count, WEIRI_S(target->count), count);
	return WEIR_OK;
}

/* Returns the spec of a component of one item; or, if `batched`, of a batch of items. */
static struct weiri_spec component_spec(const struct weiri_component *component, bool batched)
{
	struct weiri_spec spec = weiri_spec_of(component->dtype, component->has_shape ? &component->shape : NULL);

	if (!batched || !spec.ranked)
		return spec;
	/* A shape has room for one more dim: the queue was created only with ranks that leave it. */
	spec.shape.rank++;
	spec.shape.dims[0] = -1;
	(void)memcpy(&spec.shape.dims[1], component->shape.dims, component->shape.rank * sizeof(int64_t));
	return spec;
}

/* --- When it runs --- */

static enum weir_status read_integer(const struct weiri_call *call, const weir_tensor *input, const char *what,
                                     int64_t *value)
{
	struct weiri_spec got = weiri_spec_of_tensor(input);
	char text[WEIRI_SPEC_TEXT_SIZE];

	if (!integer_scalar(&got))
		return weiri_fail(call->error, WEIR_INVALID_ARGUMENT, "expected %s as an i32 or i64 scalar, got %s", what,
		                  weiri_spec_text(&got, text));
	*value =
		got.dtype == WEIR_I32 ? *(const int32_t *)weir_tensor_data(input) : *(const int64_t *)weir_tensor_data(input);
	return WEIR_OK;
}

/* Sets *queue to the queue that this step uses, and *inputs to the inputs after the index. */
static enum weir_status choose(const struct weiri_call *call, weir_tensor_queue **queue, weir_tensor *const **inputs)
{
	const struct queue_use *use = call->node->attribute;
	enum weir_status status;
	int64_t index;

	*inputs = call->inputs;
	*queue = use->queue;
	if (use->list == NULL)
		return WEIR_OK;
	status = read_integer(call, call->inputs[0], "index", &index);
	(*inputs)++;
	return status == WEIR_OK ? weir_tensor_queue_list_at(use->list, index, queue, call->error) : status;
}

/* --- Enqueue --- */

static enum weir_status start_enqueue(const struct weiri_call *call, weir_tensor_queue_done_fn *done, void *context,
                                      weir_pending **operation)
{
	weir_tensor *const *tuple;
	weir_tensor_queue *queue;
	enum weir_status status = choose(call, &queue, &tuple);

	return status == WEIR_OK ? weiri_tensor_queue_start_enqueue(queue, tuple, queue->count, false, call->trace, done,
	                                                            context, operation, call->error)
	                         : status;
}

static enum weir_status start_enqueue_many(const struct weiri_call *call, weir_tensor_queue_done_fn *done,
                                           void *context, weir_pending **operation)
{
	weir_tensor *const *tuple;
	weir_tensor_queue *queue;
	enum weir_status status = choose(call, &queue, &tuple);

	return status == WEIR_OK ? weiri_tensor_queue_start_enqueue(queue, tuple, queue->count, true, call->trace, done,
	                                                            context, operation, call->error)
	                         : status;
}

static bool attempt_enqueue(const struct weiri_call *call)
{
	weir_tensor *const *tuple;
	weir_tensor_queue *queue;

	return choose(call, &queue, &tuple) == WEIR_OK && weiri_tensor_queue_attempt_enqueue(queue, tuple, call->trace);
}

static const struct weiri_op enqueue_op = {.name = "enqueue",
                                           .traits = WEIRI_OP_WAITS,
                                           .start = start_enqueue,
                                           .attempt = attempt_enqueue,
                                           .resource = resource,
                                           .touches = touches};
static const struct weiri_op enqueue_many_op = {.name = "enqueue_many",
                                                .traits = WEIRI_OP_WAITS,
                                                .start = start_enqueue_many,
                                                .resource = resource,
                                                .touches = touches};

static enum weir_status check_tuple(const weir_graph *graph, const struct weiri_op *op, const char *name,
                                    const struct target *target, const weir_output tuple[], weir_error *error)
{
	for (size_t i = 0; i < target->count; i++) {
		struct weiri_spec expected = component_spec(&target->components[i], op == &enqueue_many_op);
		char text_expected[WEIRI_SPEC_TEXT_SIZE];
		char text_got[WEIRI_SPEC_TEXT_SIZE];

		/* weiri_node_build() reports an output that is not one of this graph. */
		if (weiri_output_check(graph, tuple[i], "input", NULL) != WEIR_OK)
			return WEIR_OK;
		if (!weiri_spec_compatible(&expected, weiri_output_spec(tuple[i])))
			return weiri_node_fail(error, WEIR_INVALID_ARGUMENT, op, name,
			                       "queue \"%s\" expects %s as component %zu (%s), got %s", resource(&target->use),
			                       weiri_spec_text(&expected, text_expected), i, target->components[i].name,
			                       weiri_spec_text(weiri_output_spec(tuple[i]), text_got));
	}
	return WEIR_OK;
}

static enum weir_status build_enqueue(weir_graph *graph, const struct weiri_op *op, const char *name,
                                      struct target target, const weir_output tuple[], size_t count, weir_node **node,
                                      weir_error *error)
{
	enum weir_status status = check_count(op, name, &target, tuple, "tuple", count, error);

	if (status == WEIR_OK)
		status = check_tuple(graph, op, name, &target, tuple, error);
	return status == WEIR_OK ? build(graph, op, name, &target, tuple, count, NULL, 0, node, error) : status;
}

enum weir_status weir_op_enqueue(weir_graph *graph, const char *name, weir_tensor_queue *queue,
                                 const weir_output tuple[], size_t count, weir_node **node, weir_error *error)
{
	return build_enqueue(graph, &enqueue_op, name, target_of(queue), tuple, count, node, error);
}

enum weir_status weir_op_enqueue_at(weir_graph *graph, const char *name, weir_tensor_queue_list *list,
                                    weir_output index, const weir_output tuple[], size_t count, weir_node **node,
                                    weir_error *error)
{
	return build_enqueue(graph, &enqueue_op, name, target_at(list, &index), tuple, count, node, error);
}

enum weir_status weir_op_enqueue_many(weir_graph *graph, const char *name, weir_tensor_queue *queue,
                                      const weir_output tuple[], size_t count, weir_node **node, weir_error *error)
{
	return build_enqueue(graph, &enqueue_many_op, name, target_of(queue), tuple, count, node, error);
}

enum weir_status weir_op_enqueue_many_at(weir_graph *graph, const char *name, weir_tensor_queue_list *list,
                                         weir_output index, const weir_output tuple[], size_t count, weir_node **node,
                                         weir_error *error)
{
	return build_enqueue(graph, &enqueue_many_op, name, target_at(list, &index), tuple, count, node, error);
}

/* --- Dequeue --- */

static enum weir_status start_dequeue(const struct weiri_call *call, weir_tensor_queue_done_fn *done, void *context,
                                      weir_pending **operation)
{
	weir_tensor *const *none;
	weir_tensor_queue *queue;
	enum weir_status status = choose(call, &queue, &none);

	return status == WEIR_OK
	           ? weiri_tensor_queue_start_dequeue(queue, call->trace, done, context, operation, call->error)
	           : status;
}

static enum weir_status start_batch(const struct weiri_call *call, enum weir_queue_op_kind kind,
                                    weir_tensor_queue_done_fn *done, void *context, weir_pending **operation)
{
	weir_tensor *const *n;
	weir_tensor_queue *queue;
	int64_t count;
	enum weir_status status = choose(call, &queue, &n);

	if (status == WEIR_OK)
		status = read_integer(call, n[0], "n", &count);
	if (status != WEIR_OK)
		return status;
	if (count < 0)
		return weiri_fail(call->error, WEIR_INVALID_ARGUMENT, "the batch size is %lld, must be at least 0",
		                  (long long)count);
	return weiri_tensor_queue_start_batch(queue, kind, (size_t)count, call->trace, done, context, operation,
	                                      call->error);
}

static enum weir_status start_dequeue_many(const struct weiri_call *call, weir_tensor_queue_done_fn *done,
                                           void *context, weir_pending **operation)
{
	return start_batch(call, WEIR_QUEUE_OP_DEQUEUE_MANY, done, context, operation);
}

static enum weir_status start_dequeue_up_to(const struct weiri_call *call, weir_tensor_queue_done_fn *done,
                                            void *context, weir_pending **operation)
{
	return start_batch(call, WEIR_QUEUE_OP_DEQUEUE_UP_TO, done, context, operation);
}

static bool attempt_dequeue(const struct weiri_call *call)
{
	weir_tensor *const *none;
	weir_tensor_queue *queue;

	return choose(call, &queue, &none) == WEIR_OK &&
	       weiri_tensor_queue_attempt_dequeue(queue, call->outputs, call->trace);
}

static const struct weiri_op dequeue_op = {.name = "dequeue",
                                           .traits = WEIRI_OP_WAITS,
                                           .start = start_dequeue,
                                           .attempt = attempt_dequeue,
                                           .resource = resource,
                                           .touches = touches,
                                           .starves = is_not_filled};
static const struct weiri_op dequeue_many_op = {.name = "dequeue_many",
                                                .traits = WEIRI_OP_WAITS,
                                                .start = start_dequeue_many,
                                                .resource = resource,
                                                .touches = touches,
                                                .starves = is_not_filled};
static const struct weiri_op dequeue_up_to_op = {.name = "dequeue_up_to",
                                                 .traits = WEIRI_OP_WAITS,
                                                 .start = start_dequeue_up_to,
                                                 .resource = resource,
                                                 .touches = touches,
                                                 .starves = is_not_filled};

/*
 * Checks that the queue can make batches, and that n may be an integer. With a list, only the run
 * of the node knows the queue, which then reports that it cannot.
 */
static enum weir_status check_batch(const weir_graph *graph, const struct weiri_op *op, const char *name,
                                    const struct target *target, weir_output n, weir_error *error)
{
	if (target->use.queue != NULL && !target->use.queue->batches)
		return weiri_node_fail(error, WEIR_INVALID_ARGUMENT, op, name,
		                       "batches of queue \"%s\" need specified shapes, without unknown dims unless it pads",
		                       resource(&target->use));
	return check_integer(graph, op, name, "n", n, error);
}

/* If n is NULL, the node dequeues one tuple. */
static enum weir_status build_dequeue(weir_graph *graph, const struct weiri_op *op, const char *name,
                                      struct target target, const weir_output *n, weir_output outs[], size_t count,
                                      weir_node **node, weir_error *error)
{
	enum weir_status status = check_count(op, name, &target, outs, "outs", count, error);
	struct weiri_spec specs[WEIR_TENSOR_QUEUE_MAX_COMPONENTS];
	weir_node *built;

	if (status == WEIR_OK && n != NULL)
		status = check_batch(graph, op, name, &target, *n, error);
	if (status != WEIR_OK)
		return status;
	for (size_t i = 0; i < count; i++)
		specs[i] = component_spec(&target.components[i], n != NULL);
	status = build(graph, op, name, &target, n, n != NULL ? 1 : 0, specs, count, &built, error);
	for (size_t i = 0; status == WEIR_OK && i < count; i++)
		outs[i] = (weir_output){built, (uint32_t)i};
	if (status == WEIR_OK && node != NULL)
		*node = built;
	return status;
}

enum weir_status weir_op_dequeue(weir_graph *graph, const char *name, weir_tensor_queue *queue, weir_output outs[],
                                 size_t count, weir_node **node, weir_error *error)
{
	return build_dequeue(graph, &dequeue_op, name, target_of(queue), NULL, outs, count, node, error);
}

enum weir_status weir_op_dequeue_at(weir_graph *graph, const char *name, weir_tensor_queue_list *list,
                                    weir_output index, weir_output outs[], size_t count, weir_node **node,
                                    weir_error *error)
{
	return build_dequeue(graph, &dequeue_op, name, target_at(list, &index), NULL, outs, count, node, error);
}

enum weir_status weir_op_dequeue_many(weir_graph *graph, const char *name, weir_tensor_queue *queue, weir_output n,
                                      weir_output outs[], size_t count, weir_node **node, weir_error *error)
{
	return build_dequeue(graph, &dequeue_many_op, name, target_of(queue), &n, outs, count, node, error);
}

enum weir_status weir_op_dequeue_many_at(weir_graph *graph, const char *name, weir_tensor_queue_list *list,
                                         weir_output index, weir_output n, weir_output outs[], size_t count,
                                         weir_node **node, weir_error *error)
{
	return build_dequeue(graph, &dequeue_many_op, name, target_at(list, &index), &n, outs, count, node, error);
}

enum weir_status weir_op_dequeue_up_to(weir_graph *graph, const char *name, weir_tensor_queue *queue, weir_output n,
                                       weir_output outs[], size_t count, weir_node **node, weir_error *error)
{
	return build_dequeue(graph, &dequeue_up_to_op, name, target_of(queue), &n, outs, count, node, error);
}

enum weir_status weir_op_dequeue_up_to_at(weir_graph *graph, const char *name, weir_tensor_queue_list *list,
                                          weir_output index, weir_output n, weir_output outs[], size_t count,
                                          weir_node **node, weir_error *error)
{
	return build_dequeue(graph, &dequeue_up_to_op, name, target_at(list, &index), &n, outs, count, node, error);
}

/* --- Size and close --- */

static enum weir_status run_size(const struct weiri_call *call)
{
	const struct queue_use *use = call->node->attribute;
	uint64_t size = weir_tensor_queue_size_approx(use->queue);

	return weiri_i64_tensor(&size, 0, call->allocator, &call->outputs[0], call->error);
}

static const struct weiri_op size_op = {.name = "queue_size", .run = run_size, .touches = reads};

/* Builds a node that tells something of the queue, as a scalar. */
static enum weir_status build_question(weir_graph *graph, const struct weiri_op *op, const char *name,
                                       weir_tensor_queue *queue, enum weir_dtype dtype, weir_output *out,
                                       weir_error *error)
{
	struct weiri_spec spec = weiri_spec_scalar(dtype);
	struct target target = target_of(queue);
	enum weir_status status;
	weir_node *node;

	if (queue == NULL || out == NULL)
		return weiri_node_fail(error, WEIR_INVALID_ARGUMENT, op, name, "%s is NULL", queue == NULL ? "queue" : "out");
	status = build(graph, op, name, &target, NULL, 0, &spec, 1, &node, error);
	if (status == WEIR_OK) {
		out->node = node;
		out->index = 0;
	}
	return status;
}

enum weir_status weir_op_queue_size(weir_graph *graph, const char *name, weir_tensor_queue *queue, weir_output *out,
                                    weir_error *error)
{
	return build_question(graph, &size_op, name, queue, WEIR_I64, out, error);
}

static enum weir_status run_is_closed(const struct weiri_call *call)
{
	const struct queue_use *use = call->node->attribute;
	uint8_t closed = weir_tensor_queue_closed(use->queue);

	if (weir_tensor_copy_of(WEIR_BOOL, &weir_shape_scalar, &closed, call->allocator, &call->outputs[0]) != WEIR_OK)
		return weiri_fail(call->error, WEIR_RESOURCE_EXHAUSTED, "no memory");
	return WEIR_OK;
}

static const struct weiri_op is_closed_op = {.name = "queue_is_closed", .run = run_is_closed, .touches = reads};

enum weir_status weir_op_queue_is_closed(weir_graph *graph, const char *name, weir_tensor_queue *queue,
                                         weir_output *out, weir_error *error)
{
	return build_question(graph, &is_closed_op, name, queue, WEIR_BOOL, out, error);
}

static enum weir_status run_close(const struct weiri_call *call)
{
	const struct queue_use *use = call->node->attribute;
	const char *name = weir_node_name(call->node);
	weir_error cause;

	if (weiri_is_cause(&use->cause))
		(void)weiri_fail(&cause, use->cause.code, "node \"%s\": %s", name, use->cause.message);
	else
		(void)weiri_fail(&cause, WEIR_CANCELLED, "node \"%s\" closed it", name);
	return weir_tensor_queue_close(use->queue, use->mode, &cause);
}

static const struct weiri_op close_op = {.name = "queue_close", .run = run_close, .touches = touches};

enum weir_status weir_op_queue_close(weir_graph *graph, const char *name, weir_tensor_queue *queue,
                                     enum weir_close_mode mode, const weir_error *cause, weir_node **node,
                                     weir_error *error)
{
	struct target target = target_of(queue);

	if (queue == NULL)
		return weiri_node_fail(error, WEIR_INVALID_ARGUMENT, &close_op, name, "queue is NULL");
	if (mode != WEIR_CLOSE_DRAIN && mode != WEIR_CLOSE_CANCEL)
		return weiri_node_fail(error, WEIR_INVALID_ARGUMENT, &close_op, name, "%d is not a close mode", (int)mode);
	target.use.mode = mode;
	if (cause != NULL)
		target.use.cause = weiri_error_kept(cause);
	target.use_size = sizeof(target.use);
	return build(graph, &close_op, name, &target, NULL, 0, NULL, 0, node, error);
}
