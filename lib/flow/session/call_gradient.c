/*
 * call_gradient.c - the gradient of a call: a call of a function that goes backwards.
 *
 * That function has the parameters of the one that was called, and the gradients by the results. Its body
 * is made by the same callback, and by the gradient rules of what that has built. So it computes the
 * values of the first body again, as far as the rules need them.
 *
 * This is right if the values are the same again. Nodes that have effects are therefore exempt: they run
 * only if a gradient needs their outputs, and then the gradient is refused. So is one that needs a value
 * that was read, taken or drawn.
 *
 * The function belongs to the node that calls it. It has one signature, and its body is complete when the
 * node has been built.
 */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "graph/gradient.h"
#include "graph/layout.h"
#include "graph/node_map.h"
#include "session/child.h"

struct backwards {
	const struct weiri_body *body; /* of the call */
	const weir_node *call;
	const struct weir_gradient_request *request;
	weir_function *function; /* that goes backwards */
	size_t parameter_count;  /* of that function */
	size_t needed_count;     /* inputs of the call whose gradients are needed */
	size_t known_count;      /* results of the call whose gradients are given */
};

/* The arrays of one use. */
struct room {
	struct weir_parameter *parameters;
	struct weir_argument *arguments;
	weir_output *results; /* of the first body */
	weir_output *outputs, *of_outputs, *xs;
	void *block;
	size_t bytes;
};

static bool allocate(const struct backwards *b, struct room *room)
{
	const weir_function *f = b->body->function;
	struct weiri_layout layout = {0};
	size_t at_parameters = weiri_layout_add(&layout, b->parameter_count, sizeof(struct weir_parameter));
	size_t at_arguments = weiri_layout_add(&layout, b->parameter_count, sizeof(struct weir_argument));
	size_t at_results = weiri_layout_add(&layout, f->result_count, sizeof(weir_output));
	size_t at_outputs = weiri_layout_add(&layout, b->known_count, sizeof(weir_output));
	size_t at_of_outputs = weiri_layout_add(&layout, b->known_count, sizeof(weir_output));
	size_t at_xs = weiri_layout_add(&layout, b->needed_count, sizeof(weir_output));

	room->bytes = layout.size;
	room->block = weiri_allocate_zeroed(&f->allocator, room->bytes, WEIRI_LAYOUT_ALIGNMENT);
	if (room->block == NULL)
		return false;
	room->parameters = weiri_layout_at(room->block, at_parameters);
	room->arguments = weiri_layout_at(room->block, at_arguments);
	room->results = weiri_layout_at(room->block, at_results);
	room->outputs = weiri_layout_at(room->block, at_outputs);
	room->of_outputs = weiri_layout_at(room->block, at_of_outputs);
	room->xs = weiri_layout_at(room->block, at_xs);
	return true;
}

static void release(const struct backwards *b, struct room *room)
{
	weiri_release(&b->body->function->allocator, room->block, room->bytes, WEIRI_LAYOUT_ALIGNMENT);
}

static enum weir_status no_memory(const struct backwards *b, weir_error *error)
{
	return weiri_fail(error, WEIR_RESOURCE_EXHAUSTED, "no memory for the gradient of \"%s\"", b->call->name);
}

/* -- the body -------------------------------------------------------------------------------------- */

static bool has_effects(const weir_node *node)
{
	struct weiri_resource resource;

	return (node->op->traits & WEIRI_OP_LEAVES) != 0 ||
	       (node->op->touches != NULL && node->op->touches(node, 0, &resource));
}

static bool draws(const weir_node *node)
{
	const struct weiri_calls *calls;
	bool any = (node->op->traits & WEIRI_OP_DRAWS) != 0;

	if ((node->op->traits & WEIRI_OP_CALLS) == 0)
		return any;
	calls = weiri_calls_of(node);
	for (uint32_t i = 0; i < calls->body_count; i++)
		any |= calls->bodies[i]->plan->draws;
	return any;
}

static void exempt_effects(const weir_graph *body)
{
	for (struct weiri_published *link = weiri_published_first(&body->nodes); link != NULL; link = link->next) {
		weir_node *node = WEIRI_CONTAINER_OF(link, weir_node, link);

		node->exempt |= has_effects(node);
	}
}

/* Refuses a gradient that needs a value that would not be the same again. */
static enum weir_status check_repeatable(const struct backwards *b, const weir_graph *body, const weir_output results[],
                                         size_t count, weir_error *error)
{
	struct weiri_node_map needed;
	enum weir_status status = WEIR_OK;
	bool ok = true;

	weiri_node_map_init(&needed, &body->allocator);
	for (size_t i = 0; ok && i < count; i++)
		ok = weiri_node_map_add(&needed, results[i].node);
	if (!ok || !weiri_node_map_add_ancestors(&needed))
		status = no_memory(b, error);
	for (size_t i = 0; status == WEIR_OK && i < needed.count; i++) {
		const weir_node *node = needed.nodes[i];

		if (has_effects(node) || draws(node))
			status =
				weiri_fail(error, WEIR_UNIMPLEMENTED,
			               "the gradient of call \"%s\" would compute %s \"%s\" again, which may then give another "
			               "value: make it an argument of the function",
			               b->call->name, node->kind, node->name);
	}
	weiri_node_map_fini(&needed);
	return status;
}

/* Sets outputs[] and of_outputs[] to the results with gradients, and xs[] to the needed tensors. */
static void choose(const struct backwards *b, const struct weir_argument arguments[], struct room *room)
{
	const weir_function *f = b->body->function;
	size_t known = 0, needed = 0, tensor = 0;

	for (size_t i = 0; i < f->result_count; i++) {
		if (b->request->of_outputs[i].node == NULL)
			continue;
		room->outputs[known] = room->results[i];
		room->of_outputs[known] = arguments[f->parameter_count + known].output;
		known++;
	}
	for (size_t i = 0; i < f->parameter_count; i++) {
		if (f->parameters[i].kind == WEIR_PARAMETER_TENSOR && b->request->needed[tensor++])
			room->xs[needed++] = arguments[i].output;
	}
}

static enum weir_status build_in(const struct backwards *b, struct room *room, weir_graph *body,
                                 const struct weir_argument arguments[], weir_output results[], weir_error *error)
{
	const weir_function *f = b->body->function;
	enum weir_status status = f->build(f->context, body, arguments, room->results, error);

	for (size_t i = 0; status == WEIR_OK && i < f->result_count; i++)
		status = weiri_output_check(body, room->results[i], "a result", error);
	if (status != WEIR_OK)
		return status;
	exempt_effects(body);
	choose(b, arguments, room);
	status = weiri_gradients_from(body, room->outputs, room->of_outputs, b->known_count, room->xs, b->needed_count,
	                              results, error);
	return status == WEIR_OK ? check_repeatable(b, body, results, b->needed_count, error) : status;
}

static enum weir_status build_body(void *context, weir_graph *body, const struct weir_argument arguments[],
                                   weir_output results[], weir_error *error)
{
	const struct backwards *b = context;
	enum weir_status status;
	struct room room;

	if (!allocate(b, &room))
		return no_memory(b, error);
	status = build_in(b, &room, body, arguments, results, error);
	release(b, &room);
	return status;
}

/* -- the call -------------------------------------------------------------------------------------- */

/* Describes the parameters and arguments: those of the call, and the gradients by its results. */
static void describe(const struct backwards *b, struct room *room)
{
	const weir_function *f = b->body->function;
	size_t tensor = 0, at = f->parameter_count;

	for (size_t i = 0; i < f->parameter_count; i++) {
		const struct weiri_parameter *p = &f->parameters[i];

		room->parameters[i] =
			(struct weir_parameter){p->name, p->kind, p->spec.dtype, p->spec.ranked ? &p->spec.shape : NULL};
		if (p->kind == WEIR_PARAMETER_TENSOR)
			room->arguments[i].output = b->request->inputs[tensor++];
		else if (p->kind == WEIR_PARAMETER_VAR)
			room->arguments[i].var = (weir_var *)(uintptr_t)b->body->given[i].object;
		else
			room->arguments[i].queue = (weir_tensor_queue *)(uintptr_t)b->body->given[i].object;
	}
	for (size_t i = 0; i < f->result_count; i++) {
		if (b->request->of_outputs[i].node == NULL)
			continue;
		room->parameters[at] = (struct weir_parameter){.name = ""};
		room->arguments[at++].output = b->request->of_outputs[i];
	}
}

/* Calls the function, with outs[] in the order of the needed inputs. */
static enum weir_status call(struct backwards *b, struct room *room, weir_output outs[], weir_error *error)
{
	const weir_function *f = b->body->function;
	char name[WEIR_ERROR_MESSAGE_SIZE];
	struct weir_function_options options = {WEIR_FUNCTION_OPTIONS_INIT,
	                                        .name = name,
	                                        .build = build_body,
	                                        .context = b,
	                                        .parameters = room->parameters,
	                                        .parameter_count = b->parameter_count,
	                                        .result_count = b->needed_count,
	                                        .max_bodies = 1,
	                                        .allocator = &f->allocator};
	enum weir_status status;
	weir_node *node;

	describe(b, room);
	(void)snprintf(name, sizeof(name), "gradient of %.200s", f->name);
	status = weir_function_create(&options, &b->function, error);
	if (status != WEIR_OK)
		return status;
	status =
		weir_op_call(b->request->graph, NULL, b->function, room->arguments, b->parameter_count, outs, &node, error);
	if (status == WEIR_OK)
		((struct weiri_calls *)node->attribute)->owns = true;
	else
		(void)weir_function_destroy(b->function, NULL);
	return status;
}

enum weir_status weiri_call_gradient(const weir_node *node, const struct weir_gradient_request *request,
                                     weir_output into[], weir_error *error)
{
	struct backwards b = {.body = weiri_calls_of(node)->bodies[0], .call = node, .request = request};
	weir_output outs[WEIR_FUNCTION_MAX_RESULTS];
	size_t needed = 0;
	enum weir_status status;
	struct room room;

	for (size_t i = 0; i < request->input_count; i++)
		b.needed_count += request->needed[i];
	for (size_t i = 0; i < request->output_count; i++)
		b.known_count += request->of_outputs[i].node != NULL;
	b.parameter_count = b.body->function->parameter_count + b.known_count;
	if (!allocate(&b, &room))
		return no_memory(&b, error);
	status = call(&b, &room, outs, error);
	release(&b, &room);
	for (size_t i = 0; status == WEIR_OK && i < request->input_count; i++) {
		if (request->needed[i])
			into[i] = outs[needed++];
	}
	return status;
}
