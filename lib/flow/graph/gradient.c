/*
 * gradient.c - weir_gradients: adds the nodes of gradients to a graph, by reverse accumulation.
 *
 * The nodes that a loss needs are sorted by their ids, so that each is after its inputs. Going up, an
 * output *varies* if it is one of the xs, or if it is a float and an input of its node varies. Going
 * down, each node with a varying input whose outputs have gradients is asked for those of its inputs;
 * what several nodes contribute to one output is added. All nodes that use an output come after the
 * node that makes it. So when a node is asked, the gradients of its outputs are complete.
 *
 * Source: reverse accumulation (Speelpenning 1980; Griewank and Walther, Evaluating Derivatives, 2008).
 */
#include "graph/gradient.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/sort.h"
#include "graph/layout.h"
#include "graph/node_map.h"

/* What is known of one output. */
struct part {
	bool varies, reaches; /* depends on an x; a loss depends on it */
	weir_output gradient; /* without a node: none yet */
};

struct walk {
	weir_graph *graph;
	struct weiri_node_map map; /* the nodes that the losses need */
	weir_node **order;         /* the same by id */
	size_t *first;             /* by number of the node: where its outputs begin in `parts` */
	struct part *parts;
	/* for one node at a time */
	weir_output *outputs, *of_outputs, *into;
	bool *needed;
	void *block;
	size_t bytes;
	weir_error *error;
};

static enum weir_status no_memory(const struct walk *w)
{
	return weiri_fail(w->error, WEIR_RESOURCE_EXHAUSTED, "no memory");
}

static struct part *parts_of(const struct walk *w, const weir_node *node)
{
	uint32_t number = 0;

	return weiri_node_map_find(&w->map, node, &number) ? &w->parts[w->first[number]] : NULL;
}

static struct part *part_of(const struct walk *w, weir_output output)
{
	struct part *parts = parts_of(w, output.node);

	return parts != NULL ? &parts[output.index] : NULL;
}

static bool is_float(weir_output output)
{
	enum weir_dtype dtype = weiri_output_spec(output)->dtype;

	return dtype == WEIR_F32 || dtype == WEIR_F64;
}

/* -- going up -------------------------------------------------------------------------------------- */

/* Adds what the nodes in the map need, by data edges. */
static bool add_needed(struct walk *w)
{
	bool ok = true;

	for (size_t n = 0; ok && n < w->map.count; n++) {
		weir_node *node = w->map.nodes[n];

		for (uint32_t i = 0; ok && i < node->input_count; i++)
			ok = weiri_node_map_add(&w->map, node->inputs[i].node);
	}
	return ok;
}

static int by_id(const void *a, const void *b)
{
	uint64_t left = (*(weir_node *const *)a)->id, right = (*(weir_node *const *)b)->id;

	return (left > right) - (left < right);
}

static bool allocate(struct walk *w)
{
	struct weiri_layout layout = {0};
	size_t outputs = 0, most_outputs = 0, most_inputs = 0;
	size_t at_order, at_first, at_parts, at_outputs, at_of_outputs, at_into, at_needed;

	for (size_t n = 0; n < w->map.count; n++) {
		const weir_node *node = w->map.nodes[n];

		outputs += node->output_count;
		if (node->output_count > most_outputs)
			most_outputs = node->output_count;
		if (node->input_count > most_inputs)
			most_inputs = node->input_count;
	}
	at_order = weiri_layout_add(&layout, w->map.count, sizeof(weir_node *));
	at_first = weiri_layout_add(&layout, w->map.count, sizeof(size_t));
	at_parts = weiri_layout_add(&layout, outputs, sizeof(struct part));
	at_outputs = weiri_layout_add(&layout, most_outputs, sizeof(weir_output));
	at_of_outputs = weiri_layout_add(&layout, most_outputs, sizeof(weir_output));
	at_into = weiri_layout_add(&layout, most_inputs, sizeof(weir_output));
	at_needed = weiri_layout_add(&layout, most_inputs, sizeof(bool));
	w->bytes = layout.size;
	w->block = weiri_allocate_zeroed(&w->graph->allocator, w->bytes, WEIRI_LAYOUT_ALIGNMENT);
	if (w->block == NULL)
		return false;
	w->order = weiri_layout_at(w->block, at_order);
	w->first = weiri_layout_at(w->block, at_first);
	w->parts = weiri_layout_at(w->block, at_parts);
	w->outputs = weiri_layout_at(w->block, at_outputs);
	w->of_outputs = weiri_layout_at(w->block, at_of_outputs);
	w->into = weiri_layout_at(w->block, at_into);
	w->needed = weiri_layout_at(w->block, at_needed);
	return true;
}

static void sort(struct walk *w)
{
	size_t outputs = 0;

	for (size_t n = 0; n < w->map.count; n++) {
		w->order[n] = w->map.nodes[n];
		w->first[n] = outputs;
		outputs += w->map.nodes[n]->output_count;
	}
	weiri_sort(w->order, w->map.count, sizeof(w->order[0]), by_id);
}

static bool varies(const struct walk *w, weir_output output)
{
	const struct part *part = part_of(w, output);

	return part != NULL && part->varies;
}

static void find_varying(struct walk *w)
{
	for (size_t n = 0; n < w->map.count; n++) {
		const weir_node *node = w->order[n];
		struct part *parts = parts_of(w, node);
		bool any = false;

		for (uint32_t i = 0; !any && i < node->input_count; i++)
			any = varies(w, node->inputs[i]);
		for (uint32_t i = 0; any && parts != NULL && i < node->output_count; i++)
			parts[i].varies |= is_float((weir_output){(weir_node *)(uintptr_t)node, i});
	}
}

/* -- going down ------------------------------------------------------------------------------------ */

static enum weir_status contribute(struct walk *w, struct part *part, weir_output gradient)
{
	if (part->gradient.node == NULL) {
		part->gradient = gradient;
		return WEIR_OK;
	}
	return weir_op_add(w->graph, NULL, part->gradient, gradient, &part->gradient, w->error);
}

/* Returns WEIR_OK if `gradient` can be the gradient by `input`. */
static enum weir_status check_gradient(const struct walk *w, const weir_node *node, uint32_t i)
{
	enum weir_status status = weiri_output_check(w->graph, w->into[i], "the gradient", w->error);
	char text_expected[WEIRI_SPEC_TEXT_SIZE];
	char text_got[WEIRI_SPEC_TEXT_SIZE];

	if (status != WEIR_OK || weiri_spec_compatible(weiri_output_spec(node->inputs[i]), weiri_output_spec(w->into[i])))
		return status;
	return weiri_fail(w->error, WEIR_INVALID_ARGUMENT,
	                  "the rule of %s \"%s\" gave %s as the gradient by input %u, which is %s", node->kind, node->name,
	                  weiri_spec_text(weiri_output_spec(w->into[i]), text_got), i,
	                  weiri_spec_text(weiri_output_spec(node->inputs[i]), text_expected));
}

/*
 * Prepares outputs[], of_outputs[], into[] and needed[], and marks what a loss depends on. Returns true
 * if the node must be asked for gradients.
 */
static bool prepare(struct walk *w, weir_node *node)
{
	const struct part *parts = parts_of(w, node);
	bool reaches = false, any = false, wanted = false;

	for (uint32_t i = 0; i < node->output_count; i++) {
		w->outputs[i] = (weir_output){node, i};
		w->of_outputs[i] = parts[i].gradient;
		reaches |= parts[i].reaches && parts[i].varies;
		any |= parts[i].gradient.node != NULL;
	}
	for (uint32_t i = 0; reaches && i < node->input_count; i++) {
		w->into[i].node = NULL;
		w->needed[i] = varies(w, node->inputs[i]);
		part_of(w, node->inputs[i])->reaches |= w->needed[i];
		wanted |= w->needed[i];
	}
	return any && wanted;
}

static enum weir_status ask(struct walk *w, weir_node *node)
{
	struct weir_gradient_request request = {.graph = w->graph,
	                                        .inputs = node->inputs,
	                                        .input_count = node->input_count,
	                                        .needed = w->needed,
	                                        .outputs = w->outputs,
	                                        .of_outputs = w->of_outputs,
	                                        .output_count = node->output_count};
	enum weir_status status;

	if (!prepare(w, node))
		return WEIR_OK;
	if (node->op->gradient == NULL)
		return weiri_fail(w->error, WEIR_UNIMPLEMENTED, "%s \"%s\" has no gradient", node->kind, node->name);
	status = node->op->gradient(node, &request, w->into, w->error);
	for (uint32_t i = 0; status == WEIR_OK && i < node->input_count; i++) {
		struct part *part = part_of(w, node->inputs[i]);

		if (!w->needed[i] || w->into[i].node == NULL)
			continue;
		status = check_gradient(w, node, i);
		if (status == WEIR_OK)
			status = contribute(w, part, w->into[i]);
	}
	return status;
}

/* -- the call -------------------------------------------------------------------------------------- */

static enum weir_status begin(struct walk *w, const weir_output losses[], size_t loss_count, const weir_output xs[],
                              size_t count)
{
	bool ok = true;

	for (size_t i = 0; ok && i < loss_count; i++)
		ok = weiri_node_map_add(&w->map, losses[i].node);
	if (!ok || !add_needed(w) || !allocate(w))
		return no_memory(w);
	sort(w);
	for (size_t i = 0; i < count; i++) {
		struct part *part = part_of(w, xs[i]);

		if (part != NULL)
			part->varies = true;
	}
	find_varying(w);
	return WEIR_OK;
}

/* Begins with the gradients by the losses that were given. By its elements, that of a sum is 1. */
static enum weir_status add_first(struct walk *w, const weir_output losses[], const weir_output of_losses[],
                                  size_t loss_count)
{
	enum weir_status status = WEIR_OK;

	for (size_t i = 0; status == WEIR_OK && i < loss_count; i++) {
		struct part *part = part_of(w, losses[i]);
		weir_output first;

		part->reaches = true;
		if (!part->varies)
			continue;
		if (of_losses != NULL)
			first = of_losses[i];
		else
			status = weiri_gradient_fill_like(w->graph, losses[i], 1, &first, w->error);
		if (status == WEIR_OK)
			status = contribute(w, part, first);
	}
	return status;
}

/* Makes sure that x has a gradient. */
static enum weir_status complete(struct walk *w, size_t j, weir_output x)
{
	struct part *part = part_of(w, x);

	if (part == NULL || !part->reaches)
		return weiri_fail(w->error, WEIR_INVALID_ARGUMENT,
		                  "no loss depends on x %zu, \"%s\", through values of f32 or f64", j, x.node->name);
	return part->gradient.node != NULL ? WEIR_OK : weiri_gradient_fill_like(w->graph, x, 0, &part->gradient, w->error);
}

static enum weir_status go_down(struct walk *w)
{
	enum weir_status status = WEIR_OK;

	for (size_t n = w->map.count; status == WEIR_OK && n-- > 0;)
		status = ask(w, w->order[n]);
	return status;
}

static void begin_walk(struct walk *w, weir_graph *graph, weir_error *error)
{
	(void)memset(w, 0, sizeof(*w));
	w->graph = graph;
	w->error = error;
	weiri_node_map_init(&w->map, &graph->allocator);
}

static void end_walk(struct walk *w)
{
	weiri_release(&w->graph->allocator, w->block, w->bytes, WEIRI_LAYOUT_ALIGNMENT);
	weiri_node_map_fini(&w->map);
}

enum weir_status weiri_gradients_from(weir_graph *graph, const weir_output outputs[], const weir_output of_outputs[],
                                      size_t output_count, const weir_output xs[], size_t count, weir_output outs[],
                                      weir_error *error)
{
	enum weir_status status;
	struct walk w;

	begin_walk(&w, graph, error);
	status = begin(&w, outputs, output_count, xs, count);
	if (status == WEIR_OK)
		status = add_first(&w, outputs, of_outputs, output_count);
	if (status == WEIR_OK)
		status = go_down(&w);
	for (size_t j = 0; status == WEIR_OK && j < count; j++) {
		const struct part *part = part_of(&w, xs[j]);

		if (part != NULL && part->gradient.node != NULL)
			outs[j] = part->gradient;
		else
			status = weiri_gradient_fill_like(graph, xs[j], 0, &outs[j], error);
	}
	end_walk(&w);
	return status;
}

static enum weir_status check_outputs(const weir_graph *graph, const weir_output outputs[], size_t count,
                                      const char *which, weir_error *error)
{
	enum weir_status status = WEIR_OK;

	if (outputs == NULL || count == 0)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "there is no %s", which);
	for (size_t i = 0; status == WEIR_OK && i < count; i++) {
		char what[32];

		(void)snprintf(what, sizeof(what), "%s %zu", which, i);
		status = weiri_output_check(graph, outputs[i], what, error);
		if (status == WEIR_OK && !is_float(outputs[i]))
			return weiri_fail(error, WEIR_UNIMPLEMENTED, "%s, \"%s\", must be f32 or f64, and is %s", what,
			                  outputs[i].node->name, weir_dtype_name(weiri_output_spec(outputs[i])->dtype));
	}
	return status;
}

enum weir_status weir_gradients(weir_graph *graph, const weir_output losses[], size_t loss_count,
                                const weir_output xs[], size_t count, weir_output outs[], weir_error *error)
{
	weir_error inner = {WEIR_OK, ""};
	enum weir_status status;
	struct walk w;

	if (graph == NULL || outs == NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "weir_gradients: %s is NULL", graph == NULL ? "graph" : "outs");
	status = check_outputs(graph, losses, loss_count, "loss", &inner);
	if (status == WEIR_OK)
		status = check_outputs(graph, xs, count, "x", &inner);
	if (status != WEIR_OK)
		return weiri_fail(error, status, "weir_gradients: %s", inner.message);
	begin_walk(&w, graph, &inner);
	status = begin(&w, losses, loss_count, xs, count);
	if (status == WEIR_OK)
		status = add_first(&w, losses, NULL, loss_count);
	if (status == WEIR_OK)
		status = go_down(&w);
	for (size_t j = 0; status == WEIR_OK && j < count; j++)
		status = complete(&w, j, xs[j]);
	for (size_t j = 0; status == WEIR_OK && j < count; j++)
		outs[j] = part_of(&w, xs[j])->gradient;
	end_walk(&w);
	return status == WEIR_OK ? WEIR_OK : weiri_fail(error, status, "weir_gradients: %s", inner.message);
}

/* -- simple rules ---------------------------------------------------------------------------------- */

enum weir_status weiri_gradient_pass(const weir_node *node, const struct weir_gradient_request *request,
                                     weir_output into[], weir_error *error)
{
	(void)node;
	(void)error;
	into[0] = request->of_outputs[0];
	return WEIR_OK;
}

enum weir_status weiri_gradient_zero(const weir_node *node, const struct weir_gradient_request *request,
                                     weir_output into[], weir_error *error)
{
	(void)node;
	(void)request;
	(void)into;
	(void)error;
	return WEIR_OK;
}
