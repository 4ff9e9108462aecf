/*
 * function.c - functions, and the bodies that they have for signatures.
 *
 * A function has a list of bodies that only grows. A thread that needs a body and finds none builds
 * one. If another thread was first, the push fails, and the thread discards its own body.
 *
 * Who frees what. A body has its own graph and plan, and stays until the function is destroyed. A
 * node that runs a body counts as a user of the function until its graph is destroyed, and a graph
 * stays as long as a session of it. So user code that outlives its run, and keeps its step inside
 * the gate of the session, keeps each body alive whose frame it is in. A run without a graph
 * (weir_function_run) counts as a user until its step is freed. Frames are of the function's
 * allocator, because the spare frame of a body stays when a session goes.
 *
 * Recursion. While a body is built, its graph knows the function and the graph from which it was
 * called. A call of a function that is in this chain would not end. A body that is complete calls
 * only bodies that were complete before it, so this check suffices.
 */
#include "session/function.h"

#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/options.h"
#include "graph/layout.h"

enum { DEFAULT_MAX_BODIES = 64 };

/* -- creating ---------------------------------------------------------------------------------- */

static enum weir_status check_parameter(const struct weir_parameter *p, size_t i, weir_error *error)
{
	if (p->name == NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "weir_function_create: parameter %zu has no name", i);
	if (p->kind != WEIR_PARAMETER_TENSOR && p->kind != WEIR_PARAMETER_VAR && p->kind != WEIR_PARAMETER_QUEUE)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "weir_function_create: parameter \"%s\": %d is not a kind",
		                  p->name, (int)p->kind);
	if (p->dtype != 0 && weir_dtype_size(p->dtype) == 0)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "weir_function_create: parameter \"%s\": %d is not a dtype",
		                  p->name, (int)p->dtype);
	if (p->shape != NULL && !weiri_partial_shape_ok(p->shape))
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "weir_function_create: parameter \"%s\": rank %u is above %d",
		                  p->name, p->shape->rank, WEIR_MAX_RANK);
	return WEIR_OK;
}

static enum weir_status check_options(const struct weir_function_options *o, weir_error *error)
{
	enum weir_status status = WEIR_OK;

	if (o->build == NULL || (o->parameters == NULL && o->parameter_count > 0))
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "weir_function_create: %s is NULL",
		                  o->build == NULL ? "build" : "parameters");
	if (o->parameter_count > WEIR_FUNCTION_MAX_PARAMETERS || o->result_count > WEIR_FUNCTION_MAX_RESULTS)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT,
		                  "weir_function_create: %zu parameters and %zu results; at most %d and %d are possible",
		                  o->parameter_count, o->result_count, WEIR_FUNCTION_MAX_PARAMETERS, WEIR_FUNCTION_MAX_RESULTS);
	for (size_t i = 0; status == WEIR_OK && i < o->parameter_count; i++)
		status = check_parameter(&o->parameters[i], i, error);
	return status;
}

static char *copy_name(char *to, const char *name)
{
	(void)memcpy(to, name, strlen(name) + 1);
	return to;
}

static weir_function *allocate(const struct weir_function_options *o, const char *name)
{
	weir_allocator allocator = weiri_allocator_or_default(o->allocator);
	struct weiri_layout layout = {0};
	size_t at = weiri_layout_add(&layout, 1, sizeof(weir_function));
	size_t at_parameters = weiri_layout_add(&layout, o->parameter_count, sizeof(struct weiri_parameter));
	size_t at_name = weiri_layout_add(&layout, 1, strlen(name) + 1);
	size_t at_names = layout.size;
	weir_function *function;
	void *block;

	for (size_t i = 0; i < o->parameter_count; i++)
		(void)weiri_layout_add(&layout, 1, strlen(o->parameters[i].name) + 1);
	block = weiri_allocate_zeroed(&allocator, layout.size, WEIRI_LAYOUT_ALIGNMENT);
	if (block == NULL)
		return NULL;
	function = weiri_layout_at(block, at);
	function->allocator = allocator;
	function->bytes = layout.size;
	function->parameters = weiri_layout_at(block, at_parameters);
	function->name = copy_name(weiri_layout_at(block, at_name), name);
	layout.size = at_names;
	for (size_t i = 0; i < o->parameter_count; i++)
		function->parameters[i].name =
			copy_name(weiri_layout_at(block, weiri_layout_add(&layout, 1, strlen(o->parameters[i].name) + 1)),
		              o->parameters[i].name);
	return function;
}

enum weir_status weir_function_create(const struct weir_function_options *options, weir_function **out,
                                      weir_error *error)
{
	struct weir_function_options o;
	enum weir_status status;
	weir_function *function;

	if (options == NULL || out == NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "weir_function_create: %s is NULL",
		                  options == NULL ? "options" : "out");
	status = weiri_options_read("weir_function_create", options, &o, sizeof(o), error);
	if (status == WEIR_OK)
		status = weiri_options_flags("weir_function_create", o.flags, WEIR_FUNCTION_OWN_WORKER, error);
	if (status == WEIR_OK)
		status = check_options(&o, error);
	if (status != WEIR_OK)
		return status;
	function = allocate(&o, o.name != NULL ? o.name : "function");
	if (function == NULL)
		return weiri_fail(error, WEIR_RESOURCE_EXHAUSTED, "weir_function_create: no memory");
	function->build = o.build;
	function->context = o.context;
	function->max_bodies = o.max_bodies != 0 ? o.max_bodies : DEFAULT_MAX_BODIES;
	function->own_worker = (o.flags & WEIR_FUNCTION_OWN_WORKER) != 0;
	function->parameter_count = o.parameter_count;
	function->result_count = o.result_count;
	for (size_t i = 0; i < o.parameter_count; i++) {
		function->parameters[i].kind = o.parameters[i].kind;
		function->parameters[i].spec = weiri_spec_of(o.parameters[i].dtype, o.parameters[i].shape);
		function->tensor_count += o.parameters[i].kind == WEIR_PARAMETER_TENSOR;
	}
	weiri_countdown_init(&function->users, 1);
	weiri_published_init(&function->bodies);
	*out = function;
	return WEIR_OK;
}

/* -- bodies ------------------------------------------------------------------------------------ */

static struct weiri_body *body_of(struct weiri_published *link)
{
	return link != NULL ? WEIRI_CONTAINER_OF(link, struct weiri_body, link) : NULL;
}

static void free_body(struct weiri_body *body)
{
	const weir_allocator *allocator = &body->function->allocator;

	weiri_plan_free(body->plan, allocator);
	(void)weir_graph_destroy(body->graph, NULL);
	weiri_release(allocator, body->resources, (body->resource_count + 1) * sizeof(body->resources[0]),
	              _Alignof(struct weiri_resource));
	weiri_release(allocator, body, body->bytes, WEIRI_LAYOUT_ALIGNMENT);
}

enum weir_status weir_function_destroy(weir_function *function, weir_error *error)
{
	struct weiri_published *next;
	weir_allocator allocator;

	if (function == NULL)
		return WEIR_OK;
	if (!weiri_countdown_arrive(&function->users)) {
		weiri_countdown_join(&function->users);
		return weiri_fail(error, WEIR_FAILED_PRECONDITION,
		                  "weir_function_destroy: a graph or a run still uses function \"%s\"", function->name);
	}
	for (struct weiri_published *link = weiri_published_first(&function->bodies); link != NULL; link = next) {
		next = link->next;
		free_body(body_of(link));
	}
	allocator = function->allocator;
	weiri_release(&allocator, function, function->bytes, WEIRI_LAYOUT_ALIGNMENT);
	return WEIR_OK;
}

static size_t count_bodies(struct weiri_published *link)
{
	size_t count = 0;

	for (; link != NULL; link = link->next)
		count++;
	return count;
}

size_t weir_function_body_count(const weir_function *function)
{
	return function != NULL ? count_bodies(weiri_published_first(&function->bodies)) : 0;
}

const struct weiri_parameter *weiri_body_parameter(const struct weiri_body *body, size_t feed)
{
	const struct weiri_parameter *p = body->function->parameters;

	for (;; p++) {
		if (p->kind == WEIR_PARAMETER_TENSOR && feed-- == 0)
			return p;
	}
}

enum weir_status weiri_parameter_check(const weir_function *function, size_t i, const struct weiri_given *given,
                                       weir_error *error)
{
	const struct weiri_parameter *p = &function->parameters[i];
	char text_expected[WEIRI_SPEC_TEXT_SIZE];
	char text_got[WEIRI_SPEC_TEXT_SIZE];

	if (p->kind != WEIR_PARAMETER_TENSOR && given->object == NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "parameter \"%s\" of \"%s\" must be a %s, got NULL", p->name,
		                  function->name, p->kind == WEIR_PARAMETER_VAR ? "variable" : "queue");
	if (p->kind == WEIR_PARAMETER_QUEUE)
		return WEIR_OK;
	if ((p->spec.dtype == 0 || p->spec.dtype == given->spec.dtype) &&
	    (!p->spec.ranked || !given->spec.ranked ||
	     weiri_spec_compatible(&(struct weiri_spec){given->spec.dtype, true, p->spec.shape}, &given->spec)))
		return WEIR_OK;
	return weiri_fail(error, WEIR_INVALID_ARGUMENT, "parameter \"%s\" of \"%s\" must be %s, got %s", p->name,
	                  function->name, weiri_spec_text(&p->spec, text_expected),
	                  weiri_spec_text(&given->spec, text_got));
}

/* Returns what a body knows of a tensor: its dtype and rank, and the dims that the parameter states. */
static struct weiri_spec expected_spec(const struct weiri_parameter *p, const struct weiri_spec *given)
{
	struct weiri_spec spec = p->spec;

	if (!spec.ranked) {
		spec.ranked = given->ranked;
		spec.shape.rank = given->shape.rank;
		for (uint32_t i = 0; i < spec.shape.rank; i++)
			spec.shape.dims[i] = -1;
	}
	spec.dtype = given->dtype;
	return spec;
}

static bool matches(const struct weiri_body *body, const struct weiri_given given[])
{
	const weir_function *f = body->function;

	for (size_t i = 0; i < f->parameter_count; i++) {
		struct weiri_spec spec;

		if (body->given[i].object != given[i].object)
			return false;
		if (f->parameters[i].kind != WEIR_PARAMETER_TENSOR)
			continue;
		spec = expected_spec(&f->parameters[i], &given[i].spec);
		if (spec.dtype != body->given[i].spec.dtype || spec.ranked != body->given[i].spec.ranked ||
		    (spec.ranked && spec.shape.rank != body->given[i].spec.shape.rank))
			return false;
	}
	return true;
}

static struct weiri_body *find(struct weiri_published *from, const struct weiri_published *until,
                               const struct weiri_given given[])
{
	for (struct weiri_published *link = from; link != until; link = link->next) {
		if (matches(body_of(link), given))
			return body_of(link);
	}
	return NULL;
}

/* -- building a body --------------------------------------------------------------------------- */

static enum weir_status no_memory(const weir_function *function, weir_error *error)
{
	return weiri_fail(error, WEIR_RESOURCE_EXHAUSTED, "no memory for function \"%s\"", function->name);
}

static struct weiri_body *allocate_body(weir_function *function)
{
	struct weiri_layout layout = {0};
	size_t at = weiri_layout_add(&layout, 1, sizeof(struct weiri_body));
	size_t at_given = weiri_layout_add(&layout, function->parameter_count, sizeof(struct weiri_given));
	void *block = weiri_allocate_zeroed(&function->allocator, layout.size, WEIRI_LAYOUT_ALIGNMENT);
	struct weiri_body *body;

	if (block == NULL)
		return NULL;
	body = weiri_layout_at(block, at);
	body->function = function;
	body->bytes = layout.size;
	body->given = weiri_layout_at(block, at_given);
	return body;
}

/* The arguments and results of one call of the callback. */
struct trace {
	struct weir_argument *arguments;
	weir_output *results;
	weir_output *feeds;
	void *block;
	size_t bytes;
};

static bool allocate_trace(const weir_function *function, struct trace *trace)
{
	struct weiri_layout layout = {0};
	size_t at_arguments = weiri_layout_add(&layout, function->parameter_count, sizeof(struct weir_argument));
	size_t at_results = weiri_layout_add(&layout, function->result_count, sizeof(weir_output));
	size_t at_feeds = weiri_layout_add(&layout, function->tensor_count, sizeof(weir_output));

	trace->bytes = layout.size + 1;
	trace->block = weiri_allocate_zeroed(&function->allocator, trace->bytes, WEIRI_LAYOUT_ALIGNMENT);
	if (trace->block == NULL)
		return false;
	trace->arguments = weiri_layout_at(trace->block, at_arguments);
	trace->results = weiri_layout_at(trace->block, at_results);
	trace->feeds = weiri_layout_at(trace->block, at_feeds);
	return true;
}

static enum weir_status make_arguments(struct weiri_body *body, const struct weiri_given given[], struct trace *trace,
                                       weir_error *error)
{
	const weir_function *f = body->function;
	enum weir_status status = WEIR_OK;
	size_t feed = 0;

	for (size_t i = 0; status == WEIR_OK && i < f->parameter_count; i++) {
		const struct weiri_parameter *p = &f->parameters[i];
		struct weir_argument *argument = &trace->arguments[i];

		body->given[i] = given[i];
		if (p->kind == WEIR_PARAMETER_VAR)
			argument->var = (weir_var *)(uintptr_t)given[i].object;
		if (p->kind == WEIR_PARAMETER_QUEUE)
			argument->queue = (weir_tensor_queue *)(uintptr_t)given[i].object;
		if (p->kind != WEIR_PARAMETER_TENSOR)
			continue;
		body->given[i].spec = expected_spec(p, &given[i].spec);
		status = weir_op_placeholder(body->graph, p->name[0] != '\0' ? p->name : NULL, body->given[i].spec.dtype,
		                             body->given[i].spec.ranked ? &body->given[i].spec.shape : NULL, &argument->output,
		                             error);
		trace->feeds[feed++] = argument->output;
	}
	return status;
}

static enum weir_status call_builder(const struct weiri_body *body, struct trace *trace, weir_error *error)
{
	const weir_function *f = body->function;
	weir_error why = {WEIR_OK, ""};
	enum weir_status status = f->build(f->context, body->graph, trace->arguments, trace->results, &why);
	char what[32];

	if (status != WEIR_OK)
		return weiri_fail(error, status, "function \"%s\" was not built: %s", f->name,
		                  why.message[0] != '\0' ? why.message : weir_status_name(status));
	for (size_t i = 0; status == WEIR_OK && i < f->result_count; i++) {
		weir_error inner;

		(void)snprintf(what, sizeof(what), "result %zu", i);
		status = weiri_output_check(body->graph, trace->results[i], what, &inner);
		if (status != WEIR_OK)
			return weiri_fail(error, status, "function \"%s\": %s", f->name, inner.message);
	}
	return status;
}

/* Moves what is known of the effects to the body. */
static enum weir_status take_resources(struct weiri_body *body, const struct weiri_effects *effects, weir_error *error)
{
	size_t bytes = (effects->resource_count + 1) * sizeof(body->resources[0]);

	body->resources = weiri_allocate_zeroed(&body->function->allocator, bytes, _Alignof(struct weiri_resource));
	if (body->resources == NULL)
		return no_memory(body->function, error);
	body->resource_count = effects->resource_count;
	if (effects->resource_count != 0)
		(void)memcpy(body->resources, effects->resources, bytes - sizeof(body->resources[0]));
	return WEIR_OK;
}

static enum weir_status compile(struct weiri_body *body, const struct trace *trace, weir_error *error)
{
	const weir_function *f = body->function;
	struct weiri_effects effects;
	enum weir_status status = weiri_effects_order(body->graph, trace->results, f->result_count, &effects, error);
	struct weiri_signature signature = {.feeds = trace->feeds,
	                                    .feed_stride = sizeof(weir_output),
	                                    .feed_count = f->tensor_count,
	                                    .fetches = trace->results,
	                                    .fetch_count = f->result_count,
	                                    .targets = effects.must_run,
	                                    .target_count = effects.must_run_count};

	if (status == WEIR_OK)
		status = take_resources(body, &effects, error);
	if (status == WEIR_OK)
		status = weiri_plan_compile(body->graph, &f->allocator, &signature, WEIRI_PLAN_OWNS_FEEDS, &body->plan, error);
	weiri_effects_fini(&effects);
	if (status == WEIR_OK) {
		body->plan->kept = true;
		body->plan->function = body->function;
	}
	return status;
}

static enum weir_status fill_body(struct weiri_body *body, weir_graph *caller, const struct weiri_given given[],
                                  weir_error *error)
{
	struct weir_graph_options options = {WEIR_GRAPH_OPTIONS_INIT, .allocator = &body->function->allocator};
	enum weir_status status = weir_graph_create(&options, &body->graph, NULL);
	struct trace trace = {0};
	weir_error inner = {WEIR_OK, ""};

	if (status != WEIR_OK || !allocate_trace(body->function, &trace))
		return no_memory(body->function, error);
	body->graph->function = body->function;
	body->graph->caller = caller;
	status = make_arguments(body, given, &trace, error);
	if (status == WEIR_OK)
		status = call_builder(body, &trace, error);
	body->graph->complete = true;
	body->graph->caller = NULL;
	if (status == WEIR_OK) {
		status = compile(body, &trace, &inner);
		if (status != WEIR_OK)
			(void)weiri_fail(error, status, "function \"%s\": %s", body->function->name, inner.message);
	}
	weiri_release(&body->function->allocator, trace.block, trace.bytes, WEIRI_LAYOUT_ALIGNMENT);
	return status;
}

/* Refuses a function that would be part of its own body. */
static enum weir_status check_recursion(const weir_function *function, const weir_graph *caller, weir_error *error)
{
	char way[WEIR_ERROR_MESSAGE_SIZE];
	size_t used;

	(void)snprintf(way, sizeof(way), "\"%s\"", function->name);
	for (const weir_graph *graph = caller; graph != NULL; graph = graph->caller) {
		const weir_function *outer = graph->function;

		if (outer == NULL)
			return WEIR_OK;
		used = strlen(way);
		(void)snprintf(way + used, sizeof(way) - used, ", which \"%s\" calls", outer->name);
		if (outer == function)
			return weiri_fail(error, WEIR_INVALID_ARGUMENT,
			                  "function \"%s\" would call itself, and recursion is not possible: %s", function->name,
			                  way);
	}
	return WEIR_OK;
}

static enum weir_status refuse_more(const weir_function *function, weir_error *error)
{
	return weiri_fail(error, WEIR_RESOURCE_EXHAUSTED, "function \"%s\" has bodies for %zu signatures, the most allowed",
	                  function->name, function->max_bodies);
}

/* Adds the body; or frees it, and takes the one of a thread that was first. */
static enum weir_status publish(struct weiri_body *body, const struct weiri_published *looked_at,
                                struct weiri_body **out, weir_error *error)
{
	weir_function *function = body->function;
	struct weiri_published *first;

	do {
		first = weiri_published_first(&function->bodies);
		*out = find(first, looked_at, body->given);
		if (*out == NULL && count_bodies(first) < function->max_bodies)
			continue;
		free_body(body);
		return *out != NULL ? WEIR_OK : refuse_more(function, error);
	} while (!weiri_published_push_after(&function->bodies, &body->link, first));
	*out = body;
	return WEIR_OK;
}

enum weir_status weiri_function_body(weir_function *function, weir_graph *caller, const struct weiri_given given[],
                                     struct weiri_body **out, weir_error *error)
{
	struct weiri_published *first = weiri_published_first(&function->bodies);
	enum weir_status status = check_recursion(function, caller, error);
	struct weiri_body *body;

	if (status != WEIR_OK)
		return status;
	*out = find(first, NULL, given);
	if (*out != NULL)
		return WEIR_OK;
	if (count_bodies(first) >= function->max_bodies)
		return refuse_more(function, error);
	body = allocate_body(function);
	if (body == NULL)
		return no_memory(function, error);
	status = fill_body(body, caller, given, error);
	if (status == WEIR_OK)
		return publish(body, first, out, error);
	free_body(body);
	return status;
}

enum weir_status weir_graph_exempt(weir_node *node, weir_error *error)
{
	if (node == NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "weir_graph_exempt: node is NULL");
	if (node->graph->complete)
		return weiri_fail(error, WEIR_FAILED_PRECONDITION, "weir_graph_exempt: the body of \"%s\" is complete",
		                  node->name);
	node->exempt = true;
	return WEIR_OK;
}
