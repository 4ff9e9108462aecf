/*
 * math.c - the common part of all math ops: builds their nodes, allocates their outputs and runs
 * them.
 */
#include "graph/node.h"

#include <string.h>

#include "base/error.h"
#include "tensor/object.h"

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

enum weir_status weiri_math_build_binary(weir_graph *graph, const struct weiri_op *op, unsigned which, const char *name,
                                         weir_output a, weir_output b, weir_output *out, weir_error *error)
{
	weir_output inputs[2] = {a, b};

	return weiri_math_build(graph, op, name, inputs, 2, &which, sizeof(which), 1, out, error);
}

static enum weir_status infer_outputs(const struct weiri_call *call, struct weiri_spec outputs[])
{
	struct weiri_spec inputs[WEIRI_MATH_MAX_INPUTS];

	for (uint32_t i = 0; i < call->node->input_count; i++)
		inputs[i] = weiri_spec_of_tensor(call->inputs[i]);
	return call->node->op->infer(call->node->attribute, inputs, outputs, call->error);
}

static enum weir_status create_outputs(const struct weiri_call *call, const struct weiri_spec specs[], void *data[])
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
		status = weiri_tensor_create(specs[i].dtype, &specs[i].shape, 0, call->allocator, &call->outputs[i]);
		if (status != WEIR_OK)
			return weiri_fail(call->error, status, "output %u, %s, cannot be made: %s", i,
			                  weiri_spec_text(&specs[i], text),
			                  status == WEIR_RESOURCE_EXHAUSTED ? "no memory" : "its size overflows");
		data[i] = call->outputs[i]->data;
	}
	return WEIR_OK;
}

static bool has_spec(const weir_tensor *tensor, const struct weiri_spec *spec)
{
	return tensor->dtype == spec->dtype && weir_shape_equal(&tensor->shape, &spec->shape);
}

/*
 * Returns the place of an input over which output 0 may be written, and sets *data: this node is
 * the last use of the input, and nobody else holds it. Returns input_count if there is none.
 */
static uint32_t find_spent_input(const struct weiri_call *call, const struct weiri_spec *output, void **data)
{
	bool known = call->node->specs_known;
	uint64_t candidates = known ? call->taken & call->node->like_output : call->taken;

	for (uint32_t i = 0; candidates >> i != 0; i++) {
		if ((candidates >> i & 1) == 0 || (!known && !has_spec(call->inputs[i], output)))
			continue;
		*data = weiri_tensor_writable(call->inputs[i]);
		if (*data != NULL)
			return i;
	}
	return call->node->input_count;
}

/* If this fails, the frame releases the outputs that exist already. */
enum weir_status weiri_math_run(const struct weiri_call *call)
{
	struct weiri_spec inferred[WEIRI_MATH_MAX_OUTPUTS];
	void *data[WEIRI_MATH_MAX_OUTPUTS] = {NULL, NULL};
	const weir_node *node = call->node;
	const struct weiri_spec *specs = node->specs;
	uint32_t spent = node->input_count;
	enum weir_status status = WEIR_OK;

	if (!node->specs_known) {
		status = infer_outputs(call, inferred);
		specs = inferred;
	}
	if (status == WEIR_OK && call->taken != 0 && (node->op->traits & WEIRI_OP_IN_PLACE) != 0)
		spent = find_spent_input(call, &specs[0], &data[0]);
	if (status == WEIR_OK && spent == node->input_count)
		status = create_outputs(call, specs, data);
	if (status == WEIR_OK)
		status = node->op->compute(call, data);
	if (status == WEIR_OK && spent != node->input_count)
		call->outputs[0] = weiri_call_pass(call, spent);
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
