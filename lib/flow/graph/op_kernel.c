/*
 * op_kernel.c - nodes that call a user's function.
 */
#include "graph/node.h"

#include <string.h>

#include "base/compiler.h"
#include "base/error.h"

struct kernel {
	weir_kernel_fn *fn;
	void *context;
};

/*
 * The number of kernels on this thread's stack. It may be above 1: a kernel may run a session, and
 * a thread that helps a session may run another kernel.
 */
static WEIRI_TLS int kernel_depth;

bool weiri_inside_kernel(void)
{
	return kernel_depth != 0;
}

static enum weir_status check_outputs(const struct weiri_call *call)
{
	const weir_node *node = call->node;

	for (uint32_t i = 0; i < node->output_count; i++) {
		struct weiri_spec got;
		char text_expected[WEIRI_SPEC_TEXT_SIZE];
		char text_got[WEIRI_SPEC_TEXT_SIZE];

		if (call->outputs[i] == NULL)
			return weiri_fail(call->error, WEIR_INVALID_ARGUMENT, "the kernel did not set output %u", i);
		got = weiri_spec_of_tensor(call->outputs[i]);
		if (!weiri_spec_compatible(&node->specs[i], &got))
			return weiri_fail(call->error, WEIR_INVALID_ARGUMENT, "the kernel promised %s as output %u, and gave %s",
			                  weiri_spec_text(&node->specs[i], text_expected), i, weiri_spec_text(&got, text_got));
	}
	return WEIR_OK;
}

static enum weir_status run(const struct weiri_call *call)
{
	const struct kernel *kernel = call->node->attribute;
	struct weir_kernel_call user;
	enum weir_status status;

	user.node = call->node->name;
	user.inputs = call->inputs;
	user.input_count = call->node->input_count;
	user.outputs = call->outputs;
	user.output_count = call->node->output_count;
	user.cancel = call->token;
	user.deadline_ns = call->deadline_ns;
	kernel_depth++;
	status = kernel->fn(kernel->context, &user, call->error);
	kernel_depth--;
	return status == WEIR_OK ? check_outputs(call) : status;
}

static const struct weiri_op kernel_op = {.name = "kernel", .traits = WEIRI_OP_USER | WEIRI_OP_HEAVY, .run = run};

static enum weir_status check_types(const char *name, const struct weir_output_type types[], size_t count,
                                    struct weiri_spec specs[], weir_error *error)
{
	for (size_t i = 0; i < count; i++) {
		if (weir_dtype_size(types[i].dtype) == 0)
			return weiri_node_fail(error, WEIR_INVALID_ARGUMENT, &kernel_op, name, "output %zu: %d is not a dtype", i,
			                       (int)types[i].dtype);
		if (types[i].shape != NULL && !weiri_partial_shape_ok(types[i].shape))
			return weiri_node_fail(error, WEIR_INVALID_ARGUMENT, &kernel_op, name, "output %zu: rank %u is above %d", i,
			                       types[i].shape->rank, WEIR_MAX_RANK);
		specs[i] = weiri_spec_of(types[i].dtype, types[i].shape);
	}
	return WEIR_OK;
}

enum weir_status weir_op_kernel(weir_graph *graph, const char *name, weir_kernel_fn *fn, void *context,
                                const weir_output inputs[], size_t input_count, const struct weir_output_type types[],
                                size_t output_count, weir_output outs[], weir_node **node, weir_error *error)
{
	struct weiri_node_request request;
	struct weiri_spec specs[WEIR_KERNEL_MAX_OUTPUTS];
	struct kernel kernel;
	enum weir_status status;
	weir_node *built;

	if (fn == NULL)
		return weiri_node_fail(error, WEIR_INVALID_ARGUMENT, &kernel_op, name, "fn is NULL");
	if (output_count > WEIR_KERNEL_MAX_OUTPUTS)
		return weiri_node_fail(error, WEIR_INVALID_ARGUMENT, &kernel_op, name, "%zu output%s; at most %d are possible",
		                       output_count, WEIRI_S(output_count), WEIR_KERNEL_MAX_OUTPUTS);
	if (output_count > 0 && (types == NULL || outs == NULL))
		return weiri_node_fail(error, WEIR_INVALID_ARGUMENT, &kernel_op, name, "%s is NULL",
		                       types == NULL ? "types" : "outs");
	status = check_types(name, types, output_count, specs, error);
	if (status != WEIR_OK)
		return status;
	(void)memset(&kernel, 0, sizeof(kernel));
	kernel.fn = fn;
	kernel.context = context;
	(void)memset(&request, 0, sizeof(request));
	request.op = &kernel_op;
	request.name = name;
	request.inputs = inputs;
	request.input_count = input_count;
	request.specs = specs;
	request.output_count = output_count;
	request.attribute = &kernel;
	request.attribute_size = sizeof(kernel);
	status = weiri_node_build(graph, &request, &built, error);
	for (size_t i = 0; status == WEIR_OK && i < output_count; i++) {
		outs[i].node = built;
		outs[i].index = (uint32_t)i;
	}
	if (status == WEIR_OK && node != NULL)
		*node = built;
	return status;
}
