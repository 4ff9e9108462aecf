/*
 * math.c - the common part of all math ops: builds their nodes, allocates their outputs and runs
 * them.
 */
#include "graph/node.h"

#include <string.h>

#include "base/error.h"

enum weir_status weiri_math_build(weir_graph *graph, const struct weiri_op *op, const char *name,
                                  const weir_output inputs[], size_t input_count, const void *attribute,
                                  size_t attribute_size, size_t output_count, weir_output *first, weir_error *error)
{
	struct weiri_node_request request;
	enum weir_status status;
	weir_node *node;

	if (first == NULL)
		return weiri_node_fail(error, WEIR_INVALID_ARGUMENT, op, name, "out is NULL");
	(void)memset(&request, 0, sizeof(request));
	request.op = op;
	request.name = name;
	request.inputs = inputs;
	request.input_count = input_count;
	request.output_count = output_count;
	request.attribute = attribute;
	request.attribute_size = attribute_size;
	status = weiri_node_build(graph, &request, &node, error);
	if (status == WEIR_OK) {
		first->node = node;
		first->index = 0;
	}
	return status;
}

static enum weir_status create_outputs(const struct weiri_call *call, const struct weiri_spec specs[],
                                       weir_tensor_builder *builders[])
{
	for (uint32_t i = 0; i < call->node->output_count; i++) {
		enum weir_status status;
		char text[WEIRI_SPEC_TEXT_SIZE];

		/*
		 * If no output is wanted, the op runs only to check its inputs. It still gets its first
		 * output, because it must write somewhere.
		 */
		if (!weiri_call_wants(call, i) && (call->wanted != 0 || i != 0))
			continue;
		status = weir_tensor_builder_create(specs[i].dtype, &specs[i].shape, call->allocator, &builders[i], NULL);
		if (status != WEIR_OK)
			return weiri_fail(call->error, status, "output %u, %s, cannot be made: %s", i,
			                  weiri_spec_text(&specs[i], text),
			                  status == WEIR_RESOURCE_EXHAUSTED ? "no memory" : "its size overflows");
	}
	return WEIR_OK;
}

enum weir_status weiri_math_run(const struct weiri_call *call)
{
	struct weiri_spec inputs[WEIRI_MATH_MAX_INPUTS];
	struct weiri_spec outputs[WEIRI_MATH_MAX_OUTPUTS];
	weir_tensor_builder *builders[WEIRI_MATH_MAX_OUTPUTS] = {NULL, NULL};
	void *data[WEIRI_MATH_MAX_OUTPUTS];
	const weir_node *node = call->node;
	enum weir_status status;

	for (uint32_t i = 0; i < node->input_count; i++)
		inputs[i] = weiri_spec_of_tensor(call->inputs[i]);
	status = node->op->infer(node->attribute, inputs, outputs, call->error);
	if (status == WEIR_OK)
		status = create_outputs(call, outputs, builders);
	if (status == WEIR_OK) {
		for (uint32_t i = 0; i < WEIRI_MATH_MAX_OUTPUTS; i++)
			data[i] = weir_tensor_builder_data(builders[i]);
		status = node->op->compute(call, data);
	}
	for (uint32_t i = 0; i < WEIRI_MATH_MAX_OUTPUTS; i++) {
		if (status == WEIR_OK && builders[i] != NULL)
			status = weir_tensor_builder_finish(builders[i], &call->outputs[i]);
		else
			weir_tensor_builder_discard(builders[i]);
	}
	return status;
}

enum weir_status weiri_float_check(enum weir_dtype dtype, weir_error *error)
{
	if (dtype == WEIR_F32 || dtype == WEIR_F64)
		return WEIR_OK;
	return weiri_fail(error, WEIR_UNIMPLEMENTED, "expected f32 or f64, got %s", weir_dtype_name(dtype));
}

enum weir_status weiri_numeric_check(enum weir_dtype dtype, weir_error *error)
{
	if (dtype == WEIR_I32 || dtype == WEIR_I64 || weiri_float_check(dtype, NULL) == WEIR_OK)
		return WEIR_OK;
	return weiri_fail(error, WEIR_UNIMPLEMENTED, "expected i32, i64, f32 or f64, got %s", weir_dtype_name(dtype));
}

enum weir_status weiri_i64_tensor(const uint64_t values[], size_t count, const weir_allocator *allocator,
                                  weir_tensor **out, weir_error *error)
{
	weir_shape shape;
	weir_tensor_builder *builder;

	(void)memset(&shape, 0, sizeof(shape));
	shape.rank = count != 0 ? 1 : 0;
	shape.dims[0] = (int64_t)count;
	if (weir_tensor_builder_create(WEIR_I64, &shape, allocator, &builder, NULL) != WEIR_OK)
		return weiri_fail(error, WEIR_RESOURCE_EXHAUSTED, "no memory");
	(void)memcpy(weir_tensor_builder_data(builder), values, (count != 0 ? count : 1) * sizeof(int64_t));
	return weir_tensor_builder_finish(builder, out);
}
