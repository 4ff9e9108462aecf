/*
 * dataset.c - nodes that take from an iterator, and maps of datasets by functions.
 *
 * A node starts an asynchronous operation of the iterator, and session/wait.c continues the step when
 * that ends, as for queues. A map by a function is a map whose function of the user is ours.
 */
#include <stdalign.h>
#include <string.h>

#include <weir/flow/dataset.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/options.h"
#include "data/attempt.h"
#include "graph/node.h"
#include "session/function.h"

/* -- next -------------------------------------------------------------------------------------- */

struct next_use {
	weir_iterator *iterator;
};

static weir_iterator *iterator_of(const weir_node *node)
{
	return ((const struct next_use *)node->attribute)->iterator;
}

static const char *resource(const void *attribute)
{
	return weir_iterator_name(((const struct next_use *)attribute)->iterator);
}

static bool touches(const weir_node *node, size_t i, struct weiri_resource *described)
{
	if (i > 0)
		return false;
	*described = (struct weiri_resource){iterator_of(node), "iterator", weir_iterator_name(iterator_of(node)), true};
	return true;
}

static enum weir_status start_next(const struct weiri_call *call, weir_tensor_queue_done_fn *done, void *context,
                                   weir_pending **operation)
{
	return weir_iterator_start_next(iterator_of(call->node), done, context, operation, call->error);
}

/* As a call of weir_iterator_next(), the step takes part in the work if it has no limit. */
static bool attempt_next(const struct weiri_call *call)
{
	return weiri_iterator_attempt(iterator_of(call->node), call->may_run_functions, call->outputs);
}

static const struct weiri_op next_op = {.name = "next",
                                        .traits = WEIRI_OP_WAITS | WEIRI_OP_PULLS,
                                        .start = start_next,
                                        .attempt = attempt_next,
                                        .resource = resource,
                                        .resource_kind = "iterator",
                                        .touches = touches};

static enum weir_status check_next(const char *name, const weir_iterator *iterator, const weir_output outs[],
                                   size_t count, weir_error *error)
{
	size_t width = weir_dataset_width(weir_iterator_dataset(iterator));

	if (iterator == NULL || outs == NULL)
		return weiri_node_fail(error, WEIR_INVALID_ARGUMENT, &next_op, name, "%s is NULL",
		                       iterator == NULL ? "iterator" : "outs");
	if (count != width)
		return weiri_node_fail(error, WEIR_INVALID_ARGUMENT, &next_op, name,
		                       "iterator \"%s\" gives %zu component%s, got %zu", weir_iterator_name(iterator), width,
		                       WEIRI_S(width), count);
	return WEIR_OK;
}

enum weir_status weir_op_next(weir_graph *graph, const char *name, weir_iterator *iterator, weir_output outs[],
                              size_t count, weir_node **node, weir_error *error)
{
	enum weir_status status = check_next(name, iterator, outs, count, error);
	struct weiri_spec specs[WEIR_DATASET_MAX_WIDTH];
	struct next_use use = {iterator};
	struct weiri_node_request request = {.op = &next_op,
	                                     .name = name,
	                                     .specs = specs,
	                                     .output_count = count,
	                                     .attribute = &use,
	                                     .attribute_size = sizeof(use)};
	weir_node *built;

	if (status != WEIR_OK)
		return status;
	for (size_t i = 0; i < count; i++)
		specs[i] = weiri_spec_of(weir_dataset_dtype(weir_iterator_dataset(iterator), i), NULL);
	status = weiri_node_build(graph, &request, &built, error);
	for (size_t i = 0; status == WEIR_OK && i < count; i++)
		outs[i] = (weir_output){built, (uint32_t)i};
	if (status == WEIR_OK && node != NULL)
		*node = built;
	return status;
}

/* -- maps -------------------------------------------------------------------------------------- */

struct binding {
	weir_function *function;
	weir_session *session;
	size_t count; /* of arguments and components */
	weir_allocator allocator;
};

static enum weir_status run_function(void *context, weir_tensor *const in[], weir_tensor *out[], weir_error *error)
{
	static const struct weir_run_options on_caller = {WEIR_RUN_OPTIONS_INIT, .flags = WEIR_RUN_ON_CALLER};
	const struct binding *binding = context;
	struct weir_argument arguments[WEIR_DATASET_MAX_WIDTH];

	(void)memset(arguments, 0, sizeof(arguments));
	for (size_t i = 0; i < binding->count; i++)
		arguments[i].tensor = in[i];
	return weir_function_run(binding->function, binding->session, arguments, out, WEIR_NO_DEADLINE, NULL, &on_caller,
	                         error);
}

static void free_binding(void *context)
{
	struct binding *binding = context;
	weir_allocator allocator = binding->allocator;

	weiri_release(&allocator, binding, sizeof(*binding), alignof(struct binding));
}

static enum weir_status check_parameter(const weir_dataset *input, const weir_function *function, size_t i,
                                        weir_error *error)
{
	const struct weiri_parameter *parameter = &function->parameters[i];
	enum weir_dtype dtype = weir_dataset_dtype(input, i);

	if (parameter->kind != WEIR_PARAMETER_TENSOR)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "map: parameter \"%s\" of function \"%s\" is no tensor",
		                  parameter->name, function->name);
	if (parameter->spec.dtype != 0 && parameter->spec.dtype != dtype)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT,
		                  "map: parameter \"%s\" of function \"%s\" is %s, component %zu is %s", parameter->name,
		                  function->name, weir_dtype_name(parameter->spec.dtype), i, weir_dtype_name(dtype));
	return WEIR_OK;
}

static enum weir_status check_function(const weir_dataset *input, const weir_function *function,
                                       const struct weir_dataset_options *options, weir_error *error)
{
	size_t width = options->width != 0 ? options->width : weir_dataset_width(input);
	enum weir_status status = WEIR_OK;

	if (options->dispose != NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "map: dispose is set, but a map by a function has no context");
	if (function->parameter_count != weir_dataset_width(input))
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "map: function \"%s\" has %zu parameter%s, an element has %zu",
		                  function->name, function->parameter_count, WEIRI_S(function->parameter_count),
		                  weir_dataset_width(input));
	if (function->result_count != width)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "map: function \"%s\" has %zu result%s, expected %zu",
		                  function->name, function->result_count, WEIRI_S(function->result_count), width);
	for (size_t i = 0; status == WEIR_OK && i < function->parameter_count; i++)
		status = check_parameter(input, function, i, error);
	return status;
}

enum weir_status weir_dataset_map_function(weir_dataset *input, weir_function *function, weir_session *session,
                                           const struct weir_dataset_options *given, weir_dataset **out,
                                           weir_error *error)
{
	struct weir_dataset_options options;
	enum weir_status status;
	weir_allocator allocator;
	struct binding *binding;

	if (input == NULL || function == NULL || session == NULL || out == NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "map: %s is NULL",
		                  input == NULL      ? "input"
		                  : function == NULL ? "function"
		                  : session == NULL  ? "session"
		                                     : "out");
	status = weiri_options_read("map", given, &options, sizeof(options), error);
	if (status == WEIR_OK)
		status = check_function(input, function, &options, error);
	if (status != WEIR_OK)
		return status;
	allocator = weiri_allocator_or_default(options.allocator);
	binding = weiri_allocate(&allocator, sizeof(*binding), alignof(struct binding));
	if (binding == NULL)
		return weiri_fail(error, WEIR_RESOURCE_EXHAUSTED, "map: no memory");
	*binding = (struct binding){function, session, function->parameter_count, allocator};
	options.struct_size = sizeof(options);
	options.dispose = free_binding;
	status = weir_dataset_map(input, run_function, binding, &options, out, error);
	if (status != WEIR_OK)
		free_binding(binding);
	return status;
}
