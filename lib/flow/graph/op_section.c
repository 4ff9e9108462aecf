/*
 * op_section.c - nodes that run in a critical section.
 *
 * The body of a section is a set of existing nodes. Two nodes are added around it. The entrance
 * enters the section; it waits as a dequeue does (wait.c), so it holds no thread. The exit leaves
 * the section and passes on the results of the body. Edges:
 *
 *     inputs of the body from outside -> entrance -> each node of the body -> exit
 *
 * Invariants
 *   B1  a plan that has a node of a body has the entrance of that body, by a control edge. A plan
 *       that has an entrance has its exit (plan.c), and so the whole body
 *   B2  in a step that entered, the exit runs once, after each node of the body has ended or was
 *       skipped, even if the step fails or stops (execute.c). The entrance's output, which cannot
 *       be fed, tells the exit that the step has entered, and nothing else
 *   B3  no body waits for a node that waits for the body's section: all inputs from outside exist
 *       before the entrance runs, no node is in two bodies, and control.c refuses later edges into
 *       a body. A step that is inside a section waits for no other section
 */
#include "graph/section.h"

#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "base/error.h"
#include "base/memory.h"
#include "graph/node_map.h"
#include "run/critical_section.h"

enum { ENTERED = 0, LONGEST_NAME = 256 };

struct entrance {
	weir_critical_section *section;
	weir_tensor *output; /* the entrance's output, in every step that has entered */
	uint32_t flags;
	struct weiri_published_list left_by; /* the exit, once there is one */
	struct weiri_published link;         /* in left_by */
	weir_node *exit;
};

static struct entrance *entrance_of(const weir_node *node)
{
	return node->attribute;
}

/* -- what other files use ---------------------------------------------------------------------- */

weir_node *weiri_section_entrance(const weir_node *node)
{
	struct weiri_published *link = weiri_published_first(&node->controls);

	if ((node->op->traits & WEIRI_OP_LEAVES) != 0)
		return node->inputs[ENTERED].node;
	return link != NULL ? weiri_control_of(link)->entrance : NULL;
}

weir_node *weiri_section_exit(const weir_node *entrance)
{
	return weiri_published_seal(&entrance_of(entrance)->left_by) != NULL ? entrance_of(entrance)->exit : NULL;
}

weir_critical_section *weiri_section_of(const weir_node *entrance)
{
	return entrance_of(entrance)->section;
}

/* -- running ----------------------------------------------------------------------------------- */

/* The state between a start and its completion. */
struct entering {
	void *room; /* of weiri_critical_section_start_enter() */
	const weir_node *entrance;
	weir_tensor_queue_done_fn *done;
	void *context;
	weir_allocator allocator;
	struct weiri_trace_point point; /* of the entrance, if it is recorded */
};

static void entered(void *context, enum weir_status status, const weir_error *error, void **items, size_t count)
{
	struct entering *entering = context, copy = *entering;
	const struct entrance *entrance = entrance_of(copy.entrance);
	weir_tensor *output = status == WEIR_OK ? weir_tensor_retain(entrance->output) : NULL;
	weir_error why;

	(void)items;
	weiri_release(&copy.allocator, entering, sizeof(*entering), _Alignof(struct entering));
	if (status != WEIR_OK)
		(void)weiri_fail(&why, status, "critical section \"%s\" was not entered",
		                 weir_critical_section_name(entrance->section));
	else if (WEIRI_UNLIKELY(copy.point.set != NULL))
		weiri_trace_effect(&copy.point, WEIRI_TRACE_ENTERED, entrance->section,
		                   weiri_critical_section_entry(entrance->section, true));
	copy.done(copy.context, status, status != WEIR_OK ? &why : error, &output, count);
}

static enum weir_status start_enter(const struct weiri_call *call, weir_tensor_queue_done_fn *done, void *context,
                                    weir_pending **operation)
{
	weir_critical_section *section = weiri_section_of(call->node);
	struct entering *entering = weiri_allocate(call->allocator, sizeof(*entering), _Alignof(struct entering));
	enum weir_status status;

	if (entering == NULL)
		return weiri_fail(call->error, WEIR_RESOURCE_EXHAUSTED, "critical section \"%s\": no memory to enter",
		                  weir_critical_section_name(section));
	*entering = (struct entering){NULL, call->node, done, context, *call->allocator, {NULL, 0}};
	if (WEIRI_UNLIKELY(call->trace != NULL))
		entering->point = *call->trace;
	status = weiri_critical_section_start_enter(section, &entering->room, entered, entering, operation, call->error);
	if (status != WEIR_OK)
		weiri_release(call->allocator, entering, sizeof(*entering), _Alignof(struct entering));
	return status;
}

/* The exit also runs in a step that stops. Then results of the body may be missing. */
static enum weir_status run_leave(const struct weiri_call *call)
{
	if (call->inputs[ENTERED] != NULL) { /* B2 */
		weir_critical_section *section = weiri_section_of(call->node->inputs[ENTERED].node);

		if (WEIRI_UNLIKELY(call->trace != NULL))
			weiri_trace_effect(call->trace, WEIRI_TRACE_LEFT, section, weiri_critical_section_entry(section, false));
		weiri_critical_section_leave(section);
	}
	for (uint32_t i = 0; i < call->node->output_count; i++)
		call->outputs[i] = weiri_call_pass(call, 1 + i);
	return WEIR_OK;
}

static void drop_output(void *attribute)
{
	weir_tensor_release(((const struct entrance *)attribute)->output);
}

static const char *section_name(const void *attribute)
{
	return weir_critical_section_name(((const struct entrance *)attribute)->section);
}

const char weiri_section_kind[] = "critical section";

/* Executions of one section have an order, as writes have. */
static bool touches_section(const weir_node *node, size_t i, struct weiri_resource *resource)
{
	if (i != 0)
		return false;
	*resource =
		(struct weiri_resource){weiri_section_of(node), weiri_section_kind, section_name(node->attribute), true};
	return true;
}

static const struct weiri_op enter_op = {.name = "critical_section_enter",
                                         .traits = WEIRI_OP_WAITS | WEIRI_OP_ENTERS,
                                         .start = start_enter,
                                         .drop = drop_output,
                                         .resource = section_name,
                                         .resource_kind = weiri_section_kind,
                                         .touches = touches_section};
static const struct weiri_op leave_op = {.name = "critical_section", .traits = WEIRI_OP_LEAVES, .run = run_leave};

/* -- what a body must satisfy ------------------------------------------------------------------ */

struct building {
	weir_graph *graph;
	const char *name;
	weir_critical_section *section;
	uint32_t flags;
	struct weiri_node_map body; /* the nodes of the body */
	/*
	 * The nodes outside that must end before the body, and all ancestors of these. First come the
	 * control_count nodes from which a control edge leads into the body.
	 */
	struct weiri_node_map outside;
	size_t control_count;
	weir_output *taken; /* the outputs that the body takes from outside; one may occur twice */
	size_t taken_count, taken_room;
	weir_node *entrance, *exit;
	weir_error *error;
};

#define refuse(b, code, ...) weiri_node_fail((b)->error, (code), &leave_op, (b)->name, __VA_ARGS__)

static enum weir_status no_memory(const struct building *b)
{
	return refuse(b, WEIR_RESOURCE_EXHAUSTED, "no memory");
}

static bool in_body(const struct building *b, const weir_node *node)
{
	uint32_t number;

	return weiri_node_map_find(&b->body, node, &number);
}

static bool touches(const weir_node *node, size_t i, struct weiri_resource *resource)
{
	return node->op->touches != NULL && node->op->touches(node, i, resource);
}

/* A node that calls a function must not enter a section in there. */
static enum weir_status check_call(const struct building *b, const weir_node *node)
{
	struct weiri_resource resource;

	if ((node->op->traits & WEIRI_OP_CALLS) == 0)
		return WEIR_OK;
	for (size_t i = 0; touches(node, i, &resource); i++) {
		if (resource.kind == weiri_section_kind)
			return refuse(b, WEIR_INVALID_ARGUMENT,
			              "\"%s\" enters critical section \"%s\": sections do not nest in a graph", node->name,
			              resource.name);
	}
	return WEIR_OK;
}

static enum weir_status check_node(struct building *b, weir_node *node, size_t i)
{
	enum weir_status status;

	const weir_node *entrance;

	if (node == NULL)
		return refuse(b, WEIR_INVALID_ARGUMENT, "node %zu of the body is NULL", i);
	if (node->graph != b->graph)
		return refuse(b, WEIR_INVALID_ARGUMENT, "\"%s\" belongs to another graph", node->name);
	if ((node->op->traits & WEIRI_OP_PLACEHOLDER) != 0)
		return refuse(b, WEIR_INVALID_ARGUMENT, "placeholder \"%s\" cannot run inside", node->name);
	entrance = (node->op->traits & WEIRI_OP_ENTERS) != 0 ? node : weiri_section_entrance(node);
	if (entrance != NULL && weiri_section_of(entrance) == b->section)
		return refuse(b, WEIR_INVALID_ARGUMENT,
		              "\"%s\" already belongs to critical section \"%s\": it would wait for itself", node->name,
		              weir_critical_section_name(b->section));
	if (entrance != NULL)
		return refuse(b, WEIR_INVALID_ARGUMENT,
		              "\"%s\" belongs to critical section \"%s\": sections do not nest in a graph", node->name,
		              weir_critical_section_name(weiri_section_of(entrance)));
	if (weiri_published_sealed(&node->controls))
		return refuse(b, WEIR_FAILED_PRECONDITION, "\"%s\" has already been part of a run", node->name);
	status = check_call(b, node);
	return status == WEIR_OK && !weiri_node_map_add(&b->body, node) ? no_memory(b) : status;
}

static enum weir_status take_body(struct building *b, weir_node *const body[], size_t count)
{
	enum weir_status status = WEIR_OK;

	if (body == NULL || count == 0)
		return refuse(b, WEIR_INVALID_ARGUMENT, "the body has no nodes");
	for (size_t i = 0; status == WEIR_OK && i < count; i++) {
		status = check_node(b, body[i], i);
		if (status == WEIR_OK)
			b->taken_room += body[i]->input_count;
	}
	return status;
}

/*
 * Finds the nodes outside from which control edges lead into the body. Returns false without
 * memory.
 */
static bool find_controls(struct building *b)
{
	bool ok = true;

	for (size_t n = 0; n < b->body.count; n++) {
		for (struct weiri_published *link = weiri_published_first(&b->body.nodes[n]->controls); ok && link != NULL;
		     link = link->next) {
			if (!in_body(b, weiri_control_of(link)->before))
				ok = weiri_node_map_add(&b->outside, weiri_control_of(link)->before);
		}
	}
	b->control_count = b->outside.count;
	return ok;
}

/* The room is for at least one output, because an allocation of size 0 is not possible. */
static size_t taken_size(const struct building *b)
{
	return (b->taken_room + 1) * sizeof(weir_output);
}

/*
 * Finds the outputs that the body takes from outside, and the nodes to which they belong. Returns
 * false if there is no memory.
 */
static bool find_taken(struct building *b)
{
	bool ok = true;

	b->taken = weiri_allocate(&b->graph->allocator, taken_size(b), _Alignof(weir_output));
	if (b->taken == NULL)
		return false;
	for (size_t n = 0; n < b->body.count; n++) {
		const weir_node *node = b->body.nodes[n];

		for (uint32_t i = 0; ok && i < node->input_count; i++) {
			if (in_body(b, node->inputs[i].node))
				continue;
			b->taken[b->taken_count++] = node->inputs[i];
			ok = weiri_node_map_add(&b->outside, node->inputs[i].node);
		}
	}
	return ok;
}

/* Checks B3: a node outside that must end before the body must not run after a node of the body. */
static enum weir_status check_outside(struct building *b)
{
	if (!find_controls(b) || !find_taken(b) || !weiri_node_map_add_ancestors(&b->outside))
		return no_memory(b);
	for (size_t n = 0; n < b->body.count; n++) {
		uint32_t number;

		if (weiri_node_map_find(&b->outside, b->body.nodes[n], &number))
			return refuse(b, WEIR_INVALID_ARGUMENT,
			              "a node outside that must end before the body runs after \"%s\", which is inside",
			              b->body.nodes[n]->name);
	}
	return WEIR_OK;
}

static enum weir_status check_results(const struct building *b, const weir_output results[], size_t count,
                                      const weir_output outs[])
{
	if (count != 0 && (results == NULL || outs == NULL))
		return refuse(b, WEIR_INVALID_ARGUMENT, "%s is NULL", results == NULL ? "results" : "outs");
	for (size_t i = 0; i < count; i++) {
		if (weiri_output_check(b->graph, results[i], "a result", NULL) != WEIR_OK || !in_body(b, results[i].node))
			return refuse(b, WEIR_INVALID_ARGUMENT, "result %zu is not an output of the body", i);
	}
	return WEIR_OK;
}

/* -- resources --------------------------------------------------------------------------------- */

static bool body_touches(const weir_node *exit, const void *object)
{
	struct weiri_resource other;

	for (struct weiri_published *link = weiri_published_first(&exit->controls); link != NULL; link = link->next) {
		for (size_t i = 0; touches(weiri_control_of(link)->before, i, &other); i++) {
			if (object != NULL && other.object == object)
				return true;
		}
	}
	return false;
}

/*
 * Checks that this body and the body of the other entrance use no resource in common, unless both
 * sections share resources or are the same section.
 */
static enum weir_status check_claim(const struct building *b, const weir_node *entrance)
{
	const struct entrance *other = entrance_of(entrance);
	struct weiri_resource mine;

	if (other->section == b->section || other->exit == NULL ||
	    (b->flags & other->flags & WEIR_SECTION_SHARES_RESOURCES) != 0)
		return WEIR_OK;
	for (size_t n = 0; n < b->body.count; n++) {
		for (size_t i = 0; touches(b->body.nodes[n], i, &mine); i++) {
			if (body_touches(other->exit, mine.object))
				return refuse(
					b, WEIR_INVALID_ARGUMENT,
					"%s \"%s\" is also used in critical section \"%s\" (by \"%s\"), and at least one of the two does "
					"not share its resources",
					mine.kind, mine.name, weir_critical_section_name(other->section), other->exit->name);
		}
	}
	return WEIR_OK;
}

static enum weir_status check_claims(const struct building *b)
{
	enum weir_status status = WEIR_OK;

	for (struct weiri_published *link = weiri_published_first(&b->graph->nodes); status == WEIR_OK && link != NULL;
	     link = link->next) {
		weir_node *node = WEIRI_CONTAINER_OF(link, weir_node, link);

		if (node->op == &enter_op)
			status = check_claim(b, node);
	}
	return status;
}

/* -- building ---------------------------------------------------------------------------------- */

static enum weir_status build_entrance(struct building *b)
{
	struct entrance entrance = {.section = b->section, .flags = b->flags};
	struct weiri_spec output = weiri_spec_scalar(WEIR_I32);
	enum weir_status status = weir_tensor_scalar_i32(1, &entrance.output);
	char name[LONGEST_NAME];
	struct weiri_node_request request = {
		.op = &enter_op,
		.inputs = b->taken,
		.input_count = b->taken_count,
		.specs = &output,
		.output_count = 1,
		.attribute = &entrance,
		.attribute_size = sizeof(entrance),
	};

	if (status != WEIR_OK)
		return no_memory(b);
	if (b->name != NULL) {
		(void)snprintf(name, sizeof(name), "%s/enter", b->name);
		request.name = name;
	}
	status = weiri_node_build(b->graph, &request, &b->entrance, b->error);
	if (status != WEIR_OK)
		weir_tensor_release(entrance.output);
	return status;
}

static enum weir_status build_exit(struct building *b, const weir_output results[], size_t count)
{
	size_t inputs_size = (count + 1) * sizeof(weir_output), specs_size = (count + 1) * sizeof(struct weiri_spec);
	weir_output *inputs = weiri_allocate(&b->graph->allocator, inputs_size, _Alignof(weir_output));
	struct weiri_spec *specs = weiri_allocate(&b->graph->allocator, specs_size, _Alignof(struct weiri_spec));
	struct weiri_node_request request = {
		.op = &leave_op,
		.name = b->name,
		.inputs = inputs,
		.input_count = count + 1,
		.specs = specs,
		.output_count = count,
	};
	enum weir_status status = inputs != NULL && specs != NULL ? WEIR_OK : no_memory(b);

	if (status == WEIR_OK) {
		inputs[ENTERED] = (weir_output){b->entrance, 0};
		for (size_t i = 0; i < count; i++) {
			inputs[1 + i] = results[i];
			specs[i] = *weiri_output_spec(results[i]);
		}
		status = weiri_node_build(b->graph, &request, &b->exit, b->error);
	}
	weiri_release(&b->graph->allocator, inputs, inputs_size, _Alignof(weir_output));
	weiri_release(&b->graph->allocator, specs, specs_size, _Alignof(struct weiri_spec));
	return status;
}

/*
 * Adds the control edges. Only those of the last loop lead to existing nodes, so an earlier failure
 * leaves these nodes as they were. A failure in the last loop leaves an entrance without an exit.
 * No plan can contain such an entrance, so no plan has a part of the body inside and a part outside
 * (B1).
 */
static enum weir_status tie(struct building *b)
{
	struct entrance *entrance = entrance_of(b->entrance);
	enum weir_status status = WEIR_OK;

	for (size_t i = 0; status == WEIR_OK && i < b->control_count; i++)
		status = weiri_control_push(b->graph, b->outside.nodes[i], b->entrance, b->error);
	for (size_t i = 0; status == WEIR_OK && i < b->body.count; i++)
		status = weiri_control_push(b->graph, b->body.nodes[i], b->exit, b->error);
	for (size_t i = 0; status == WEIR_OK && i < b->body.count; i++)
		status = weiri_control_push(b->graph, b->entrance, b->body.nodes[i], b->error);
	if (status != WEIR_OK)
		return status;
	entrance->exit = b->exit;
	if (!weiri_published_push_after(&entrance->left_by, &entrance->link, NULL))
		return refuse(b, WEIR_FAILED_PRECONDITION, "a run used its entrance before it was built");
	return WEIR_OK;
}

static enum weir_status check_arguments(const struct building *b)
{
	if (b->graph == NULL || b->section == NULL)
		return refuse(b, WEIR_INVALID_ARGUMENT, "%s is NULL", b->graph == NULL ? "graph" : "section");
	if ((b->flags & ~(uint32_t)WEIR_SECTION_SHARES_RESOURCES) != 0)
		return refuse(b, WEIR_INVALID_ARGUMENT, "unknown flags 0x%x", b->flags);
	if (b->name != NULL && strlen(b->name) + sizeof("/enter") > LONGEST_NAME)
		return refuse(b, WEIR_INVALID_ARGUMENT, "the name is longer than %d bytes",
		              LONGEST_NAME - (int)sizeof("/enter"));
	if (b->name != NULL && weir_graph_find(b->graph, b->name, &(weir_node *){NULL}, NULL) == WEIR_OK)
		return refuse(b, WEIR_ALREADY_EXISTS, "the graph has a node of that name");
	return WEIR_OK;
}

static enum weir_status build(struct building *b, weir_node *const body[], size_t body_count,
                              const weir_output results[], size_t result_count, weir_output outs[])
{
	enum weir_status status = take_body(b, body, body_count);

	if (status == WEIR_OK)
		status = check_results(b, results, result_count, outs);
	if (status == WEIR_OK)
		status = check_outside(b);
	if (status == WEIR_OK)
		status = check_claims(b);
	if (status == WEIR_OK)
		status = build_entrance(b);
	if (status == WEIR_OK)
		status = build_exit(b, results, result_count);
	return status == WEIR_OK ? tie(b) : status;
}

enum weir_status weir_op_critical_section(weir_graph *graph, const char *name, weir_critical_section *section,
                                          uint32_t flags, weir_node *const body[], size_t body_count,
                                          const weir_output results[], size_t result_count, weir_output outs[],
                                          weir_node **node, weir_error *error)
{
	struct building b = {.graph = graph, .name = name, .section = section, .flags = flags, .error = error};
	enum weir_status status = check_arguments(&b);

	if (status != WEIR_OK)
		return status;
	weiri_node_map_init(&b.body, &graph->allocator);
	weiri_node_map_init(&b.outside, &graph->allocator);
	status = build(&b, body, body_count, results, result_count, outs);
	weiri_release(&graph->allocator, b.taken, taken_size(&b), _Alignof(weir_output));
	weiri_node_map_fini(&b.outside);
	weiri_node_map_fini(&b.body);
	for (size_t i = 0; status == WEIR_OK && i < result_count; i++)
		outs[i] = (weir_output){b.exit, (uint32_t)i};
	if (status == WEIR_OK && node != NULL)
		*node = b.exit;
	return status;
}
