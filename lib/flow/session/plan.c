/*
 * plan.c - from "these fetches and targets, given these feeds" to a numbered plan.
 *
 * Collect: a worklist from fetches and targets through inputs and control edges, cut at feeds.
 * Number: each collected node becomes a constant slot or a plan node. Connect: edges are counted,
 * so that each node's successors get a range of one array, and then filled in. A cycle can come
 * only from control edges that two threads added at the same time, which weir/flow/graph.h does not
 * allow. It is found here, because a run of it would never end.
 */
#include "session/plan.h"

#include <string.h>

#include "base/assert.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/memory.h"
#include "graph/layout.h"
#include "graph/node_map.h"
#include "graph/section.h"
#include "session/step.h"

/* What a collected node became. */
struct place {
	bool is_constant;
	uint32_t number; /* of the constant or of the plan node */
};

struct compiler {
	weir_graph *graph;
	const struct weiri_signature *signature;
	struct weiri_node_map nodes;
	struct place *places; /* one for each of nodes */
	struct weiri_plan *plan;
	size_t edge_count;
	weir_error *error;
};

static bool fed_slot(const struct weiri_signature *signature, weir_output output, uint32_t *slot)
{
	for (size_t i = 0; i < signature->feed_count; i++) {
		if (signature->feeds[i].output.node == output.node && signature->feeds[i].output.index == output.index) {
			*slot = (uint32_t)i;
			return true;
		}
	}
	return false;
}

static const struct weiri_control *control_of(struct weiri_published *link)
{
	return WEIRI_CONTAINER_OF(link, struct weiri_control, link);
}

static enum weir_status check_signature(const struct compiler *c)
{
	const struct weiri_signature *s = c->signature;
	enum weir_status status = WEIR_OK;

	for (size_t i = 0; status == WEIR_OK && i < s->feed_count; i++) {
		uint32_t slot;

		status = weiri_output_check(c->graph, s->feeds[i].output, "a feed", c->error);
		if (status == WEIR_OK && fed_slot(s, s->feeds[i].output, &slot) && slot != i)
			return weiri_fail(c->error, WEIR_INVALID_ARGUMENT, "output %u of \"%s\" is fed twice",
			                  s->feeds[i].output.index, s->feeds[i].output.node->name);
		if (status == WEIR_OK && (s->feeds[i].output.node->op->traits & WEIRI_OP_ENTERS) != 0)
			return weiri_fail(c->error, WEIR_INVALID_ARGUMENT, "\"%s\", which enters a critical section, is fed",
			                  s->feeds[i].output.node->name);
	}
	for (size_t i = 0; status == WEIR_OK && i < s->fetch_count; i++)
		status = weiri_output_check(c->graph, s->fetches[i], "a fetch", c->error);
	for (size_t i = 0; status == WEIR_OK && i < s->target_count; i++) {
		if (s->targets[i] == NULL)
			return weiri_fail(c->error, WEIR_INVALID_ARGUMENT, "target %zu is NULL", i);
		if (s->targets[i]->graph != c->graph)
			return weiri_fail(c->error, WEIR_INVALID_ARGUMENT, "target %zu, \"%s\", belongs to another graph", i,
			                  s->targets[i]->name);
	}
	return status;
}

/* --- Collect --- */

static enum weir_status visit(struct compiler *c, weir_node *node)
{
	weir_output output;
	uint32_t slot;

	output.node = node;
	output.index = 0;
	if (node->op->traits & WEIRI_OP_PLACEHOLDER) {
		char text[WEIRI_SPEC_TEXT_SIZE];

		if (fed_slot(c->signature, output, &slot))
			return WEIR_OK;
		return weiri_fail(c->error, WEIR_INVALID_ARGUMENT, "placeholder \"%s\" (%s) is needed and was not fed",
		                  node->name, weiri_spec_text(&node->specs[0], text));
	}
	if (!weiri_node_map_add(&c->nodes, node))
		return weiri_fail(c->error, WEIR_RESOURCE_EXHAUSTED, "no memory for a plan");
	return WEIR_OK;
}

static enum weir_status visit_output(struct compiler *c, weir_output output)
{
	uint32_t slot;

	return fed_slot(c->signature, output, &slot) ? WEIR_OK : visit(c, output.node);
}

/* A plan that enters a critical section also leaves it. */
static enum weir_status visit_exit(struct compiler *c, const weir_node *entrance)
{
	weir_node *exit = weiri_section_exit(entrance);

	WEIR_ASSERT1(op_section B1, exit == NULL || weiri_section_entrance(exit) == entrance);
	if (exit == NULL)
		return weiri_fail(c->error, WEIR_FAILED_PRECONDITION, "\"%s\" is not finished", entrance->name);
	return visit(c, exit);
}

static enum weir_status visit_ancestors(struct compiler *c, weir_node *node)
{
	enum weir_status status = WEIR_OK;

	for (uint32_t i = 0; status == WEIR_OK && i < node->input_count; i++)
		status = visit_output(c, node->inputs[i]);
	for (struct weiri_published *link = weiri_published_seal(&node->controls); status == WEIR_OK && link != NULL;
	     link = link->next)
		status = visit(c, control_of(link)->before);
	if (status == WEIR_OK && (node->op->traits & WEIRI_OP_ENTERS) != 0)
		status = visit_exit(c, node);
	return status;
}

static enum weir_status collect(struct compiler *c)
{
	enum weir_status status = WEIR_OK;

	for (size_t i = 0; status == WEIR_OK && i < c->signature->fetch_count; i++)
		status = visit_output(c, c->signature->fetches[i]);
	for (size_t i = 0; status == WEIR_OK && i < c->signature->target_count; i++)
		status = visit(c, c->signature->targets[i]);
	for (size_t i = 0; status == WEIR_OK && i < c->nodes.count; i++)
		status = visit_ancestors(c, c->nodes.nodes[i]);
	return status;
}

/* --- Number --- */

/* collect() sealed the lists, so they cannot change any more. */
static struct weiri_published *controls_of(const weir_node *node)
{
	return weiri_published_first(&node->controls);
}

static bool needs_no_run(const weir_node *node)
{
	return (node->op->traits & WEIRI_OP_CONSTANT) != 0 && controls_of(node) == NULL;
}

static size_t control_count(const weir_node *node)
{
	size_t count = 0;

	for (struct weiri_published *link = controls_of(node); link != NULL; link = link->next)
		count++;
	return count;
}

struct counts {
	size_t nodes, constants, inputs, outputs, edges, holds, waits;
	bool has_user_code;
};

static struct counts number_nodes(struct compiler *c)
{
	struct counts counts;

	(void)memset(&counts, 0, sizeof(counts));
	for (size_t i = 0; i < c->nodes.count; i++) {
		const weir_node *node = c->nodes.nodes[i];

		c->places[i].is_constant = needs_no_run(node);
		c->places[i].number = (uint32_t)(c->places[i].is_constant ? counts.constants++ : counts.nodes++);
		if (c->places[i].is_constant)
			continue;
		counts.inputs += node->input_count;
		counts.outputs += node->output_count;
		counts.edges += node->input_count + control_count(node);
		counts.holds += node->hold_count;
		counts.waits += (node->op->traits & WEIRI_OP_WAITS) != 0;
		counts.has_user_code |= (node->op->traits & WEIRI_OP_USER) != 0;
	}
	return counts;
}

static void lay_out_step(struct weiri_plan *plan)
{
	struct weiri_layout layout = {0};

	(void)weiri_layout_add(&layout, 1, sizeof(struct weiri_step));
	plan->step.values = weiri_layout_add(&layout, plan->slot_count, sizeof(weir_tensor *));
	plan->step.inputs = weiri_layout_add(&layout, plan->input_count, sizeof(weir_tensor *));
	plan->step.holds = weiri_layout_add(&layout, plan->hold_count, sizeof(weir_read));
	plan->step.nodes = weiri_layout_add(&layout, plan->node_count, sizeof(struct weiri_step_node));
	plan->step.waits = weiri_layout_add(&layout, plan->wait_count, sizeof(struct weiri_wait));
	plan->step.size = layout.size;
}

static struct weiri_plan *allocate_plan(const weir_allocator *allocator, const struct weiri_signature *s,
                                        const struct counts *counts)
{
	struct weiri_layout layout = {0};
	size_t at_plan = weiri_layout_add(&layout, 1, sizeof(struct weiri_plan));
	size_t at_feeds = weiri_layout_add(&layout, s->feed_count, sizeof(weir_output));
	size_t at_fetches = weiri_layout_add(&layout, s->fetch_count, sizeof(weir_output));
	size_t at_targets = weiri_layout_add(&layout, s->target_count, sizeof(weir_node *));
	size_t at_nodes = weiri_layout_add(&layout, counts->nodes, sizeof(struct weiri_plan_node));
	size_t at_successors = weiri_layout_add(&layout, counts->edges, sizeof(uint32_t));
	size_t at_inputs = weiri_layout_add(&layout, counts->inputs, sizeof(uint32_t));
	size_t at_fetch_slots = weiri_layout_add(&layout, s->fetch_count, sizeof(uint32_t));
	size_t at_constants = weiri_layout_add(&layout, counts->constants, sizeof(weir_tensor *));
	char *block = weiri_allocate_zeroed(allocator, layout.size, WEIRI_LAYOUT_ALIGNMENT);
	struct weiri_plan *plan;

	if (block == NULL)
		return NULL;
	plan = weiri_layout_at(block, at_plan);
	plan->bytes = layout.size;
	plan->feeds = weiri_layout_at(block, at_feeds);
	plan->fetches = weiri_layout_at(block, at_fetches);
	plan->targets = weiri_layout_at(block, at_targets);
	plan->nodes = weiri_layout_at(block, at_nodes);
	plan->successors = weiri_layout_at(block, at_successors);
	plan->input_slots = weiri_layout_at(block, at_inputs);
	plan->fetch_slots = weiri_layout_at(block, at_fetch_slots);
	plan->constants = weiri_layout_at(block, at_constants);
	return plan;
}

static void copy_key(struct weiri_plan *plan, const struct weiri_signature *s)
{
	plan->hash = s->hash;
	plan->feed_count = s->feed_count;
	plan->fetch_count = s->fetch_count;
	plan->target_count = s->target_count;
	for (size_t i = 0; i < s->feed_count; i++)
		plan->feeds[i] = s->feeds[i].output;
	for (size_t i = 0; i < s->fetch_count; i++)
		plan->fetches[i] = s->fetches[i];
	for (size_t i = 0; i < s->target_count; i++)
		plan->targets[i] = s->targets[i];
}

/* --- Connect --- */

static const struct place *place_of(const struct compiler *c, const weir_node *node)
{
	uint32_t number;

	return weiri_node_map_find(&c->nodes, node, &number) ? &c->places[number] : NULL;
}

static uint32_t slot_of(const struct compiler *c, weir_output output)
{
	const struct weiri_plan *plan = c->plan;
	const struct place *place;
	uint32_t slot;

	if (fed_slot(c->signature, output, &slot))
		return slot;
	place = place_of(c, output.node);
	if (place->is_constant)
		return (uint32_t)plan->feed_count + place->number;
	return plan->nodes[place->number].outputs + output.index;
}

static void want(struct compiler *c, weir_output output)
{
	const struct place *place = place_of(c, output.node);
	uint32_t slot;

	if (output.index < 64 && place != NULL && !place->is_constant && !fed_slot(c->signature, output, &slot))
		c->plan->nodes[place->number].wanted |= UINT64_C(1) << output.index;
}

/*
 * Sets *number to the plan node at which an edge from `node` starts. Returns false if there is no
 * edge, because nothing runs for `node`.
 */
static bool starts_an_edge(const struct compiler *c, const weir_node *node, uint32_t *number)
{
	const struct place *place = place_of(c, node);

	if (place == NULL || place->is_constant)
		return false;
	*number = place->number;
	return true;
}

typedef void edge_fn(struct compiler *c, struct weiri_plan_node *from, uint32_t to);

static void for_each_edge(struct compiler *c, edge_fn *fn)
{
	for (uint32_t to = 0; to < c->plan->node_count; to++) {
		const weir_node *node = c->plan->nodes[to].node;
		uint32_t from;
		uint32_t slot;

		for (uint32_t i = 0; i < node->input_count; i++) {
			if (!fed_slot(c->signature, node->inputs[i], &slot) && starts_an_edge(c, node->inputs[i].node, &from))
				fn(c, &c->plan->nodes[from], to);
		}
		for (struct weiri_published *link = controls_of(node); link != NULL; link = link->next) {
			if (starts_an_edge(c, control_of(link)->before, &from))
				fn(c, &c->plan->nodes[from], to);
		}
	}
}

static void count_edge(struct compiler *c, struct weiri_plan_node *from, uint32_t to)
{
	from->successor_count++;
	c->plan->nodes[to].pending++;
}

/* connect_nodes() has set successor_count to 0; it counts again, up to the same number. */
static void fill_edge(struct compiler *c, struct weiri_plan_node *from, uint32_t to)
{
	c->plan->successors[from->successors + from->successor_count++] = to;
}

static void connect_nodes(struct compiler *c)
{
	struct weiri_plan *plan = c->plan;
	uint32_t at = 0;

	for_each_edge(c, count_edge);
	for (uint32_t i = 0; i < plan->node_count; i++) {
		plan->nodes[i].successors = at;
		at += plan->nodes[i].successor_count;
		plan->nodes[i].successor_count = 0;
	}
	for_each_edge(c, fill_edge);
}

/* The critical section that user code of the node must not enter again; NULL: none. */
static const weir_critical_section *section_of(const weir_node *node)
{
	const weir_node *entrance = (node->op->traits & WEIRI_OP_USER) != 0 ? weiri_section_entrance(node) : NULL;

	return entrance != NULL ? weiri_section_of(entrance) : NULL;
}

static void place_nodes(struct compiler *c)
{
	struct weiri_plan *plan = c->plan;
	uint32_t input = 0;
	uint32_t slot = (uint32_t)plan->feed_count + plan->constant_count;
	uint32_t hold = 0;
	uint32_t wait = 0;

	for (size_t i = 0; i < c->nodes.count; i++) {
		const weir_node *node = c->nodes.nodes[i];
		struct weiri_plan_node *p;

		if (c->places[i].is_constant) {
			plan->constants[c->places[i].number] = *(weir_tensor *const *)node->attribute;
			continue;
		}
		p = &plan->nodes[c->places[i].number];
		p->node = node;
		p->inputs = input;
		p->outputs = slot;
		p->holds = hold;
		p->wait = wait;
		p->within = section_of(node);
		input += node->input_count;
		slot += node->output_count;
		hold += node->hold_count;
		wait += (node->op->traits & WEIRI_OP_WAITS) != 0;
	}
	plan->input_count = input;
	plan->slot_count = slot;
	plan->hold_count = hold;
	plan->wait_count = wait;
}

static void resolve_slots(struct compiler *c)
{
	struct weiri_plan *plan = c->plan;

	for (uint32_t n = 0; n < plan->node_count; n++) {
		const weir_node *node = plan->nodes[n].node;

		for (uint32_t i = 0; i < node->input_count; i++) {
			plan->input_slots[plan->nodes[n].inputs + i] = slot_of(c, node->inputs[i]);
			want(c, node->inputs[i]);
		}
	}
	for (size_t i = 0; i < plan->fetch_count; i++) {
		plan->fetch_slots[i] = slot_of(c, plan->fetches[i]);
		want(c, plan->fetches[i]);
	}
}

/* Kahn's algorithm. It uses `pending` and restores it. `order` has room for all nodes. */
static enum weir_status check_order(struct compiler *c, uint32_t order[])
{
	struct weiri_plan *plan = c->plan;
	uint32_t found = 0;

	for (uint32_t i = 0; i < plan->node_count; i++) {
		if (plan->nodes[i].pending == 0)
			order[found++] = i;
	}
	for (uint32_t at = 0; at < found; at++) {
		const struct weiri_plan_node *p = &plan->nodes[order[at]];

		for (uint32_t i = 0; i < p->successor_count; i++) {
			uint32_t next = plan->successors[p->successors + i];

			if (--plan->nodes[next].pending == 0)
				order[found++] = next;
		}
	}
	for (uint32_t i = 0; i < plan->node_count; i++) {
		if (found < plan->node_count && plan->nodes[i].pending != 0)
			return weiri_fail(c->error, WEIR_INVALID_ARGUMENT, "\"%s\" is part of a cycle of control edges",
			                  plan->nodes[i].node->name);
		plan->nodes[i].pending = 0;
	}
	for (uint32_t i = 0; i < plan->node_count; i++) {
		for (uint32_t s = 0; s < plan->nodes[i].successor_count; s++)
			plan->nodes[plan->successors[plan->nodes[i].successors + s]].pending++;
	}
	return WEIR_OK;
}

static enum weir_status check_cycle(struct compiler *c)
{
	const weir_allocator *allocator = &c->nodes.allocator;
	size_t size = (c->plan->node_count + 1u) * sizeof(uint32_t);
	uint32_t *order = weiri_allocate(allocator, size, _Alignof(uint32_t));
	enum weir_status status;

	if (order == NULL)
		return weiri_fail(c->error, WEIR_RESOURCE_EXHAUSTED, "no memory for a plan");
	status = check_order(c, order);
	weiri_release(allocator, order, size, _Alignof(uint32_t));
	return status;
}

/* The nodes are collected and c->places exists. */
static enum weir_status make_plan(struct compiler *c)
{
	const weir_allocator *allocator = &c->nodes.allocator;
	struct counts counts = number_nodes(c);

	/* Numbers in a plan have 32 bits. */
	if (c->signature->feed_count + counts.constants + counts.outputs > INT32_MAX || counts.edges > INT32_MAX)
		return weiri_fail(c->error, WEIR_RESOURCE_EXHAUSTED, "the plan has too many values or edges");
	c->plan = allocate_plan(allocator, c->signature, &counts);
	if (c->plan == NULL)
		return weiri_fail(c->error, WEIR_RESOURCE_EXHAUSTED, "no memory for a plan");
	c->plan->node_count = (uint32_t)counts.nodes;
	c->plan->constant_count = (uint32_t)counts.constants;
	c->plan->has_user_code = counts.has_user_code;
	copy_key(c->plan, c->signature);
	place_nodes(c);
	resolve_slots(c);
	connect_nodes(c);
	lay_out_step(c->plan);
	return check_cycle(c);
}

enum weir_status weiri_plan_compile(weir_graph *graph, const weir_allocator *allocator,
                                    const struct weiri_signature *signature, struct weiri_plan **out, weir_error *error)
{
	struct compiler c;
	enum weir_status status;

	(void)memset(&c, 0, sizeof(c));
	c.graph = graph;
	c.signature = signature;
	c.error = error;
	weiri_node_map_init(&c.nodes, allocator);
	status = check_signature(&c);
	if (status == WEIR_OK)
		status = collect(&c);
	if (status == WEIR_OK) {
		size_t size = (c.nodes.count + 1) * sizeof(struct place);

		c.places = weiri_allocate(allocator, size, _Alignof(struct place));
		status = c.places != NULL ? make_plan(&c) : weiri_fail(error, WEIR_RESOURCE_EXHAUSTED, "no memory for a plan");
		weiri_release(allocator, c.places, size, _Alignof(struct place));
	}
	weiri_node_map_fini(&c.nodes);
	if (status == WEIR_OK)
		*out = c.plan;
	else
		weiri_plan_free(c.plan, allocator);
	return status;
}

void weiri_plan_free(struct weiri_plan *plan, const weir_allocator *allocator)
{
	if (plan != NULL)
		weiri_release(allocator, plan, plan->bytes, WEIRI_LAYOUT_ALIGNMENT);
}

/* --- Look up --- */

static uint64_t mix(uint64_t hash, uint64_t value)
{
	hash = (hash ^ value) * UINT64_C(0x9E3779B97F4A7C15);
	return hash ^ hash >> 29;
}

static uint64_t mix_output(uint64_t hash, weir_output output)
{
	return mix(hash, (uint64_t)(uintptr_t)output.node + output.index);
}

uint64_t weiri_signature_hash(const struct weiri_signature *signature)
{
	uint64_t hash = mix(mix(signature->feed_count, signature->fetch_count), signature->target_count);

	for (size_t i = 0; i < signature->feed_count; i++)
		hash = mix_output(hash, signature->feeds[i].output);
	for (size_t i = 0; i < signature->fetch_count; i++)
		hash = mix_output(hash, signature->fetches[i]);
	for (size_t i = 0; i < signature->target_count; i++)
		hash = mix(hash, (uint64_t)(uintptr_t)signature->targets[i]);
	return hash;
}

static bool same_output(weir_output a, weir_output b)
{
	return a.node == b.node && a.index == b.index;
}

bool weiri_plan_matches(const struct weiri_plan *plan, const struct weiri_signature *signature)
{
	if (plan->hash != signature->hash || plan->feed_count != signature->feed_count ||
	    plan->fetch_count != signature->fetch_count || plan->target_count != signature->target_count)
		return false;
	for (size_t i = 0; i < plan->feed_count; i++) {
		if (!same_output(plan->feeds[i], signature->feeds[i].output))
			return false;
	}
	for (size_t i = 0; i < plan->fetch_count; i++) {
		if (!same_output(plan->fetches[i], signature->fetches[i]))
			return false;
	}
	for (size_t i = 0; i < plan->target_count; i++) {
		if (plan->targets[i] != signature->targets[i])
			return false;
	}
	return true;
}
