/*
 * call_build.c - what all nodes that run functions have in common when they are built: their
 * arguments are checked, the bodies for them are found or built, and the node gets the tensors as
 * inputs.
 */
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "graph/layout.h"
#include "session/child.h"

/* The memory of one request. */
struct work {
	struct weiri_calls *calls;
	size_t calls_bytes;
	struct weiri_given *given;
	weir_output *inputs;
	struct weiri_spec *specs; /* of the outputs */
	void *block;
	size_t bytes;
};

#define refuse(r, code, ...) weiri_node_fail((r)->error, (code), (r)->op, (r)->name, __VA_ARGS__)

bool weiri_spec_implies(const struct weiri_spec *from, const struct weiri_spec *to)
{
	if (from->dtype != to->dtype || (to->ranked && (!from->ranked || from->shape.rank != to->shape.rank)))
		return false;
	for (uint32_t i = 0; to->ranked && i < to->shape.rank; i++) {
		if (to->shape.dims[i] >= 0 && from->shape.dims[i] != to->shape.dims[i])
			return false;
	}
	return true;
}

bool weiri_calls_touch(const weir_node *node, size_t i, struct weiri_resource *resource)
{
	const struct weiri_calls *calls = weiri_calls_of(node);

	for (uint32_t b = 0; b < calls->body_count; b++) {
		if (i < calls->bodies[b]->resource_count) {
			*resource = calls->bodies[b]->resources[i];
			return true;
		}
		i -= calls->bodies[b]->resource_count;
	}
	return false;
}

void weiri_calls_drop(void *attribute)
{
	const struct weiri_calls *calls = attribute;

	for (uint32_t b = 0; b < calls->body_count; b++) {
		weir_function *function = calls->bodies[b]->function;

		weiri_function_leave(function);
		if (calls->owns)
			(void)weir_function_destroy(function, NULL);
	}
}

/* -- arguments --------------------------------------------------------------------------------- */

/* The bodies of all functions get the same tensors, at the same places. */
static enum weir_status check_kinds(const struct weiri_call_request *r, const weir_function *f)
{
	const weir_function *first = r->functions[0];

	for (size_t i = 0; i < r->count; i++) {
		if (f->parameters[i].kind != first->parameters[i].kind)
			return refuse(r, WEIR_INVALID_ARGUMENT,
			              "parameter \"%s\" of \"%s\" and parameter \"%s\" of \"%s\" are of different kinds",
			              first->parameters[i].name, first->name, f->parameters[i].name, f->name);
	}
	return WEIR_OK;
}

static enum weir_status check_request(const struct weiri_call_request *r, const weir_output outs[])
{
	enum weir_status status = WEIR_OK;

	if (r->graph == NULL || r->functions == NULL || r->function_count == 0)
		return refuse(r, WEIR_INVALID_ARGUMENT, "%s", r->graph == NULL ? "graph is NULL" : "there are no functions");
	for (size_t i = 0; i < r->function_count; i++) {
		if (r->functions[i] == NULL)
			return refuse(r, WEIR_INVALID_ARGUMENT, "function %zu is NULL", i);
	}
	if (r->arguments == NULL && r->count > 0)
		return refuse(r, WEIR_INVALID_ARGUMENT, "arguments is NULL");
	for (size_t i = 0; status == WEIR_OK && i < r->function_count; i++) {
		const weir_function *f = r->functions[i];

		if (f->parameter_count != r->count)
			return refuse(
				r, WEIR_INVALID_ARGUMENT, "\"%s\" has %zu parameter%s, %zu of them tensors; got %zu argument%s",
				f->name, f->parameter_count, WEIRI_S(f->parameter_count), f->tensor_count, r->count, WEIRI_S(r->count));
		status = check_kinds(r, f);
		if (status != WEIR_OK || (outs == NULL && f->result_count > 0 && f != r->functions[r->function_count - 1]))
			continue;
		if (outs == NULL && f->result_count > 0)
			return refuse(r, WEIR_INVALID_ARGUMENT, "outs is NULL");
	}
	return status;
}

/* Sets *spec to that of a row of a tensor. Returns false if the tensor has no rows. */
static bool row_of(struct weiri_spec *spec)
{
	if (!spec->ranked)
		return true;
	if (spec->shape.rank == 0)
		return false;
	spec->shape.rank--;
	memmove(spec->shape.dims, spec->shape.dims + 1, spec->shape.rank * sizeof(spec->shape.dims[0]));
	spec->shape.dims[spec->shape.rank] = 0;
	return true;
}

/* What an argument without an output has. */
static const char *what_is_given(const struct weir_argument *argument)
{
	return argument->var != NULL      ? "a variable (weir_op_read() makes an output of it)"
	       : argument->queue != NULL  ? "a queue"
	       : argument->tensor != NULL ? "a tensor (weir_op_constant() makes an output of it)"
	                                  : "NULL";
}

/* Describes argument i, which is tensor `tensor`, as the bodies get it. */
static enum weir_status describe_tensor(const struct weiri_call_request *r, size_t i, size_t tensor,
                                        struct weiri_given *given)
{
	weir_output output = r->arguments[i].output;
	const char *parameter = r->functions[0]->parameters[i].name;
	weir_error inner;
	enum weir_status status = weiri_output_check(r->graph, output, parameter, &inner);
	bool whole = tensor + r->whole >= r->functions[0]->tensor_count;

	if (output.node == NULL)
		return refuse(r, WEIR_INVALID_ARGUMENT, "parameter \"%s\" of \"%s\" must be an output, got %s", parameter,
		              r->functions[0]->name, what_is_given(&r->arguments[i]));
	if (status != WEIR_OK)
		return refuse(r, status, "%s", inner.message);
	given->spec = *weiri_output_spec(output);
	if (r->rows && !whole && !row_of(&given->spec))
		return refuse(r, WEIR_INVALID_ARGUMENT, "parameter \"%s\" gets rows, and \"%s\" is a scalar", parameter,
		              output.node->name);
	return WEIR_OK;
}

static enum weir_status read_arguments(const struct weiri_call_request *r, const weir_function *f, struct work *work)
{
	enum weir_status status = WEIR_OK;
	size_t tensor = 0;
	size_t first_input = r->selector != NULL ? 1 : 0;
	weir_error inner;

	for (size_t i = 0; status == WEIR_OK && i < r->count; i++) {
		struct weiri_given *given = &work->given[i];

		(void)memset(given, 0, sizeof(*given));
		if (f->parameters[i].kind == WEIR_PARAMETER_QUEUE) {
			given->object = r->arguments[i].queue;
		} else if (f->parameters[i].kind == WEIR_PARAMETER_VAR) {
			given->object = r->arguments[i].var;
			if (r->arguments[i].var != NULL)
				given->spec = weiri_spec_of(weir_var_dtype(r->arguments[i].var), weir_var_shape(r->arguments[i].var));
		} else {
			status = describe_tensor(r, i, tensor, given);
			work->inputs[first_input + tensor++] = r->arguments[i].output;
		}
		if (status != WEIR_OK)
			return status;
		status = weiri_parameter_check(f, i, given, &inner);
		if (status != WEIR_OK)
			return refuse(r, status, "%s", inner.message);
	}
	return status;
}

static enum weir_status find_bodies(const struct weiri_call_request *r, struct work *work)
{
	enum weir_status status = WEIR_OK;

	if (r->selector != NULL)
		work->inputs[0] = *r->selector;
	for (size_t b = 0; status == WEIR_OK && b < r->function_count; b++) {
		struct weiri_body *body = NULL;
		weir_error inner;

		status = read_arguments(r, r->functions[b], work);
		if (status != WEIR_OK)
			return status;
		status = weiri_function_body(r->functions[b], r->graph, work->given, &body, &inner);
		if (status != WEIR_OK)
			return refuse(r, status, "%s", inner.message);
		work->calls->bodies[b] = body;
		for (size_t i = 0; i < body->plan->feed_count; i++) {
			struct weiri_spec from = *weiri_output_spec(work->inputs[(r->selector != NULL ? 1 : 0) + i]);

			if (r->rows && i + r->whole < body->plan->feed_count)
				(void)row_of(&from);
			work->calls->check |= !weiri_spec_implies(&from, weiri_body_tensor(body, i));
		}
	}
	work->calls->body_count = (uint32_t)r->function_count;
	return status;
}

/* -- building ---------------------------------------------------------------------------------- */

static bool allocate(const struct weiri_call_request *r, struct work *work)
{
	struct weiri_layout layout = {0};
	size_t at_calls, at_given, at_inputs, at_specs;

	work->calls_bytes = offsetof(struct weiri_calls, bodies) + r->function_count * sizeof(struct weiri_body *);
	at_calls = weiri_layout_add(&layout, 1, work->calls_bytes);
	at_given = weiri_layout_add(&layout, r->count, sizeof(struct weiri_given));
	at_inputs = weiri_layout_add(&layout, r->count + 1, sizeof(weir_output));
	/* A loop has as many outputs as tensors, other nodes as many as results. */
	at_specs = weiri_layout_add(&layout, r->functions[0]->tensor_count + r->functions[0]->result_count,
	                            sizeof(struct weiri_spec));
	work->bytes = layout.size;
	work->block = weiri_allocate_zeroed(&r->graph->allocator, work->bytes, WEIRI_LAYOUT_ALIGNMENT);
	if (work->block == NULL)
		return false;
	work->calls = weiri_layout_at(work->block, at_calls);
	work->given = weiri_layout_at(work->block, at_given);
	work->inputs = weiri_layout_at(work->block, at_inputs);
	work->specs = weiri_layout_at(work->block, at_specs);
	return true;
}

static enum weir_status build(const struct weiri_call_request *r, weiri_call_specs_fn *specs, struct work *work,
                              size_t *output_count, weir_node **out)
{
	struct weiri_node_request request = {.op = r->op, .name = r->name, .inputs = work->inputs, .specs = work->specs};
	enum weir_status status = find_bodies(r, work);

	work->calls->limit = r->limit;
	work->calls->whole = r->whole;
	if (status == WEIR_OK)
		status = specs(r, work->calls, work->specs, output_count);
	if (status != WEIR_OK)
		return status;
	request.input_count = r->functions[0]->tensor_count + (r->selector != NULL ? 1 : 0);
	request.output_count = *output_count;
	request.attribute = work->calls;
	request.attribute_size = work->calls_bytes;
	for (uint32_t b = 0; b < work->calls->body_count; b++)
		weiri_function_enter(work->calls->bodies[b]->function);
	status = weiri_node_build(r->graph, &request, out, r->error);
	if (status != WEIR_OK)
		weiri_calls_drop(work->calls);
	return status;
}

enum weir_status weiri_call_build(const struct weiri_call_request *r, weiri_call_specs_fn *specs, weir_output outs[],
                                  weir_node **node)
{
	enum weir_status status = check_request(r, outs);
	size_t output_count = 0;
	struct work work;
	weir_node *built;

	if (status != WEIR_OK)
		return status;
	if (!allocate(r, &work))
		return refuse(r, WEIR_RESOURCE_EXHAUSTED, "no memory");
	status = build(r, specs, &work, &output_count, &built);
	weiri_release(&r->graph->allocator, work.block, work.bytes, WEIRI_LAYOUT_ALIGNMENT);
	for (size_t i = 0; status == WEIR_OK && i < output_count; i++)
		outs[i] = (weir_output){built, (uint32_t)i};
	if (status == WEIR_OK && node != NULL)
		*node = built;
	return status;
}
