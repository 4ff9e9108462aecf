/*
 * op_value.c - ops that return a value without computing: placeholder, constant, identity, no_op.
 */
#include "graph/node.h"

#include <string.h>

#include "base/error.h"
#include "graph/gradient.h"

static const struct weiri_op placeholder_op = {.name = "placeholder", .traits = WEIRI_OP_PLACEHOLDER};

static enum weir_status build_source(weir_graph *graph, const struct weiri_op *op, const char *name,
                                     const struct weiri_spec *spec, const void *attribute, size_t attribute_size,
                                     weir_output *out, weir_error *error)
{
	struct weiri_node_request request;
	enum weir_status status;
	weir_node *node;

	(void)memset(&request, 0, sizeof(request));
	request.op = op;
	request.name = name;
	request.specs = spec;
	request.output_count = 1;
	request.attribute = attribute;
	request.attribute_size = attribute_size;
	status = weiri_node_build(graph, &request, &node, error);
	if (status == WEIR_OK) {
		out->node = node;
		out->index = 0;
	}
	return status;
}

enum weir_status weir_op_placeholder(weir_graph *graph, const char *name, enum weir_dtype dtype,
                                     const weir_shape *shape, weir_output *out, weir_error *error)
{
	struct weiri_spec spec;

	if (out == NULL)
		return weiri_node_fail(error, WEIR_INVALID_ARGUMENT, &placeholder_op, name, "out is NULL");
	if (weir_dtype_size(dtype) == 0)
		return weiri_node_fail(error, WEIR_INVALID_ARGUMENT, &placeholder_op, name, "%d is not a dtype", (int)dtype);
	if (shape != NULL && !weiri_partial_shape_ok(shape))
		return weiri_node_fail(error, WEIR_INVALID_ARGUMENT, &placeholder_op, name, "rank %u is above %d", shape->rank,
		                       WEIR_MAX_RANK);
	spec = weiri_spec_of(dtype, shape);
	return build_source(graph, &placeholder_op, name, &spec, NULL, 0, out, error);
}

static weir_tensor *constant_of(const void *attribute)
{
	weir_tensor *value;

	(void)memcpy(&value, attribute, sizeof(value));
	return value;
}

static enum weir_status run_constant(const struct weiri_call *call)
{
	call->outputs[0] = weir_tensor_retain(constant_of(call->node->attribute));
	return WEIR_OK;
}

static void drop_constant(void *attribute)
{
	weir_tensor_release(constant_of(attribute));
}

static const struct weiri_op constant_op = {
	.name = "constant", .traits = WEIRI_OP_CONSTANT, .run = run_constant, .drop = drop_constant};

enum weir_status weir_op_constant(weir_graph *graph, const char *name, weir_tensor *value, weir_output *out,
                                  weir_error *error)
{
	struct weiri_spec spec;
	enum weir_status status;

	if (value == NULL || out == NULL)
		return weiri_node_fail(error, WEIR_INVALID_ARGUMENT, &constant_op, name, "%s is NULL",
		                       value == NULL ? "value" : "out");
	spec = weiri_spec_of_tensor(value);
	(void)weir_tensor_retain(value);
	status = build_source(graph, &constant_op, name, &spec, &value, sizeof(value), out, error);
	if (status != WEIR_OK)
		weir_tensor_release(value);
	return status;
}

static enum weir_status infer_identity(const void *attribute, const struct weiri_spec inputs[],
                                       struct weiri_spec outputs[], weir_error *error)
{
	(void)attribute;
	(void)error;
	outputs[0] = inputs[0];
	return WEIR_OK;
}

static enum weir_status run_identity(const struct weiri_call *call)
{
	call->outputs[0] = weiri_call_pass(call, 0);
	return WEIR_OK;
}

static const struct weiri_op identity_op = {
	.name = "identity", .infer = infer_identity, .run = run_identity, .gradient = weiri_gradient_pass};

enum weir_status weir_op_identity(weir_graph *graph, const char *name, weir_output x, weir_output *out,
                                  weir_error *error)
{
	return weiri_math_build(graph, &identity_op, name, &x, 1, NULL, 0, 1, out, error);
}

static enum weir_status run_no_op(const struct weiri_call *call)
{
	(void)call;
	return WEIR_OK;
}

static const struct weiri_op no_op_op = {.name = "no_op", .run = run_no_op};

enum weir_status weir_op_no_op(weir_graph *graph, const char *name, weir_node **out, weir_error *error)
{
	struct weiri_node_request request;

	if (out == NULL)
		return weiri_node_fail(error, WEIR_INVALID_ARGUMENT, &no_op_op, name, "out is NULL");
	(void)memset(&request, 0, sizeof(request));
	request.op = &no_op_op;
	request.name = name;
	return weiri_node_build(graph, &request, out, error);
}
