/*
 * op_call.c - call, case and cond: a node that runs one body, the only one or a chosen one.
 *
 * The inputs of the node pass to the child frame, and the results of the child to the outputs of the
 * node. So a value that only the call uses can be written in place by the body.
 */
#include "session/child.h"

#include "base/error.h"

enum { SELECTOR = 0 };

/* Returns which body is to run; SIZE_MAX if there is none. */
static size_t choose(const weir_node *node, const weir_tensor *selector)
{
	const void *data;
	int64_t index;

	data = weir_tensor_data(selector);
	switch (weir_tensor_dtype(selector)) {
	case WEIR_BOOL: return *(const bool *)data ? 0 : 1;
	case WEIR_I32: index = *(const int32_t *)data; break;
	default: index = *(const int64_t *)data; break;
	}
	return index >= 0 && index < weiri_calls_of(node)->body_count ? (size_t)index : SIZE_MAX;
}

/* Takes references to the inputs of the call, as far as the node is not their last use. */
static bool begin_body(const struct weiri_site *site, const struct weiri_call *call, size_t which, uint32_t first)
{
	const struct weiri_calls *calls = weiri_calls_of(call->node);
	struct weiri_body *body = calls->bodies[which];
	weir_tensor **outputs = call->outputs; /* the child may be run with the same `call` */
	struct weiri_frame *child;

	if (calls->check && !weiri_site_accepts(site, body, call->inputs + first))
		return true;
	child = weiri_child_create_only(site, body);
	if (child == NULL)
		return weiri_site_failed(site, WEIR_RESOURCE_EXHAUSTED, "no memory for a frame of \"%s\"",
		                         body->function->name);
	weiri_frame_begin_passing(child, call, first);
	weiri_child_begun(child, call->node->op->inner->parts, which);
	if (!weiri_site_run(site, child))
		return false;
	(void)weiri_child_take_results(child, outputs);
	weiri_child_destroy(child);
	return true;
}

static bool begin_call(const struct weiri_site *site, const struct weiri_call *call)
{
	return begin_body(site, call, 0, 0);
}

static bool begin_case(const struct weiri_site *site, const struct weiri_call *call)
{
	const struct weiri_calls *calls = weiri_calls_of(call->node);
	const weir_tensor *selector = call->inputs[SELECTOR];
	size_t chosen;

	if (weir_tensor_element_count(selector) != 1)
		return weiri_site_failed(site, WEIR_INVALID_ARGUMENT, "the index must be a scalar");
	chosen = choose(call->node, selector);
	if (chosen != SIZE_MAX) {
		weiri_site_tell(site, WEIRI_TRACE_CHOOSE, 0, chosen);
		return begin_body(site, call, chosen, SELECTOR + 1);
	}
	return weiri_site_failed(site, WEIR_INVALID_ARGUMENT, "the index is out of range: there are %u function%s",
	                         calls->body_count, WEIRI_S(calls->body_count));
}

static bool child_ended(const struct weiri_site *site, struct weiri_frame *child)
{
	struct weiri_frame *parent = site->frame;

	(void)weiri_child_take_results(child, parent->values + parent->plan->nodes[site->index].outputs);
	weiri_child_destroy(child);
	return true;
}

const struct weiri_inner weiri_call_inner = {
	.parts = WEIRI_TRACE_CALL, .stays = true, .has_one_child = true, .begin = begin_call, .child_ended = child_ended};
static const struct weiri_inner case_inner = {
	.parts = WEIRI_TRACE_BRANCH, .stays = true, .has_one_child = true, .begin = begin_case, .child_ended = child_ended};
static const struct weiri_op call_op = {.name = "call",
                                        .traits = WEIRI_OP_CALLS,
                                        .drop = weiri_calls_drop,
                                        .touches = weiri_calls_touch,
                                        .inner = &weiri_call_inner,
                                        .gradient = weiri_call_gradient};
static const struct weiri_op case_op = {.name = "case",
                                        .traits = WEIRI_OP_CALLS,
                                        .drop = weiri_calls_drop,
                                        .touches = weiri_calls_touch,
                                        .inner = &case_inner};
static const struct weiri_op cond_op = {.name = "cond",
                                        .traits = WEIRI_OP_CALLS,
                                        .drop = weiri_calls_drop,
                                        .touches = weiri_calls_touch,
                                        .inner = &case_inner};

/* -- building ---------------------------------------------------------------------------------- */

#define refuse(r, code, ...) weiri_node_fail((r)->error, (code), (r)->op, (r)->name, __VA_ARGS__)

/* Keeps in *spec what it has in common with `other`. Returns false if the dtypes differ. */
static bool join_specs(struct weiri_spec *spec, const struct weiri_spec *other)
{
	if (spec->dtype != other->dtype)
		return false;
	spec->ranked = spec->ranked && other->ranked && spec->shape.rank == other->shape.rank;
	for (uint32_t i = 0; spec->ranked && i < spec->shape.rank; i++) {
		if (spec->shape.dims[i] != other->shape.dims[i])
			spec->shape.dims[i] = -1;
	}
	return true;
}

enum weir_status weiri_call_specs(const struct weiri_call_request *r, struct weiri_calls *calls,
                                  struct weiri_spec specs[], size_t *count)
{
	const struct weiri_body *first = calls->bodies[0];

	*count = first->plan->fetch_count;
	for (size_t i = 0; i < *count; i++)
		specs[i] = *weiri_body_result(first, i);
	for (uint32_t b = 1; b < calls->body_count; b++) {
		const struct weiri_body *body = calls->bodies[b];

		if (body->plan->fetch_count != *count)
			return refuse(r, WEIR_INVALID_ARGUMENT, "\"%s\" has %zu result%s, and \"%s\" has %zu",
			              first->function->name, *count, WEIRI_S(*count), body->function->name,
			              body->plan->fetch_count);
		for (size_t i = 0; i < *count; i++) {
			char text_first[WEIRI_SPEC_TEXT_SIZE];
			char text_other[WEIRI_SPEC_TEXT_SIZE];

			if (!join_specs(&specs[i], weiri_body_result(body, i)))
				return refuse(r, WEIR_INVALID_ARGUMENT, "result %zu of \"%s\" is %s, and of \"%s\" %s", i,
				              first->function->name, weiri_spec_text(weiri_body_result(first, i), text_first),
				              body->function->name, weiri_spec_text(weiri_body_result(body, i), text_other));
		}
	}
	return WEIR_OK;
}

enum weir_status weir_op_call(weir_graph *graph, const char *name, weir_function *function,
                              const struct weir_argument arguments[], size_t count, weir_output outs[],
                              weir_node **node, weir_error *error)
{
	struct weiri_call_request request = {.graph = graph,
	                                     .op = &call_op,
	                                     .name = name,
	                                     .functions = &function,
	                                     .function_count = 1,
	                                     .arguments = arguments,
	                                     .count = count,
	                                     .error = error};

	return weiri_call_build(&request, weiri_call_specs, outs, node);
}

static enum weir_status check_selector(const struct weiri_call_request *r, bool boolean)
{
	const struct weiri_spec *spec;
	const char *what = boolean ? "predicate" : "index";
	char text[WEIRI_SPEC_TEXT_SIZE];
	weir_error inner;
	enum weir_status status;

	if (r->graph == NULL)
		return refuse(r, WEIR_INVALID_ARGUMENT, "graph is NULL");
	status = weiri_output_check(r->graph, *r->selector, what, &inner);
	if (status != WEIR_OK)
		return refuse(r, status, "%s", inner.message);
	spec = weiri_output_spec(*r->selector);
	if ((boolean ? spec->dtype == WEIR_BOOL : spec->dtype == WEIR_I32 || spec->dtype == WEIR_I64) &&
	    (!spec->ranked || spec->shape.rank == 0))
		return WEIR_OK;
	return refuse(r, WEIR_INVALID_ARGUMENT, "%s must be %s scalar, got %s", what, boolean ? "a bool" : "an i32 or i64",
	              weiri_spec_text(spec, text));
}

enum weir_status weir_op_case(weir_graph *graph, const char *name, weir_output index, weir_function *const functions[],
                              size_t function_count, const struct weir_argument arguments[], size_t count,
                              weir_output outs[], weir_node **node, weir_error *error)
{
	struct weiri_call_request request = {.graph = graph,
	                                     .op = &case_op,
	                                     .name = name,
	                                     .selector = &index,
	                                     .functions = functions,
	                                     .function_count = function_count,
	                                     .arguments = arguments,
	                                     .count = count,
	                                     .error = error};
	enum weir_status status = check_selector(&request, false);

	return status == WEIR_OK ? weiri_call_build(&request, weiri_call_specs, outs, node) : status;
}

enum weir_status weir_op_cond(weir_graph *graph, const char *name, weir_output predicate, weir_function *then,
                              weir_function *otherwise, const struct weir_argument arguments[], size_t count,
                              weir_output outs[], weir_node **node, weir_error *error)
{
	weir_function *const functions[] = {then, otherwise};
	struct weiri_call_request request = {.graph = graph,
	                                     .op = &cond_op,
	                                     .name = name,
	                                     .selector = &predicate,
	                                     .functions = functions,
	                                     .function_count = 2,
	                                     .arguments = arguments,
	                                     .count = count,
	                                     .error = error};
	enum weir_status status = check_selector(&request, true);

	return status == WEIR_OK ? weiri_call_build(&request, weiri_call_specs, outs, node) : status;
}
