/*
 * plan.c - from "these fetches and targets, given these feeds" to a numbered plan.
 *
 * Collect: a worklist from fetches and targets through inputs and control edges, cut at feeds.
 * Order (plan_order.c): each collected node becomes a constant slot or a plan node. Fill: the nodes
 * get their slots, handles and waits. Last, plan_values.c finds where each value ends.
 */
#include "session/plan_compiler.h"

#include <string.h>

#include "base/assert.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/memory.h"
#include "graph/layout.h"
#include "graph/section.h"
#include "run/countdown.h"
#include "session/function.h"
#include "session/step.h"

static struct weiri_serial plan_ids;

enum weir_status weiri_compiler_no_memory(const struct weiri_compiler *c)
{
	return weiri_fail(c->error, WEIR_RESOURCE_EXHAUSTED, "no memory for a plan");
}

/* --- Feeds --- */

bool weiri_compiler_is_fed(const struct weiri_compiler *c, weir_output output, uint32_t *feed)
{
	const struct weiri_feed_index *index = &c->feeds;
	uint32_t number;

	if (index->count == 0 || !weiri_node_map_find(&index->nodes, output.node, &number))
		return false;
	for (uint32_t i = index->first[number]; i != WEIRI_NO_FEED; i = index->next[i]) {
		if (weiri_signature_feed(c->signature, i).index == output.index) {
			*feed = i;
			return true;
		}
	}
	return false;
}

static enum weir_status add_feed(struct weiri_compiler *c, uint32_t i)
{
	struct weiri_feed_index *index = &c->feeds;
	weir_output output = weiri_signature_feed(c->signature, i);
	enum weir_status status = weiri_output_check(c->graph, output, "a feed", c->error);
	size_t before = index->nodes.count;
	uint32_t number, other;

	if (status != WEIR_OK)
		return status;
	if (weiri_compiler_is_fed(c, output, &other))
		return weiri_fail(c->error, WEIR_INVALID_ARGUMENT, "output %u of \"%s\" is fed twice", output.index,
		                  output.node->name);
	if ((output.node->op->traits & WEIRI_OP_ENTERS) != 0)
		return weiri_fail(c->error, WEIR_INVALID_ARGUMENT, "\"%s\", which enters a critical section, is fed",
		                  output.node->name);
	if (!weiri_node_map_add(&index->nodes, output.node))
		return weiri_compiler_no_memory(c);
	(void)weiri_node_map_find(&index->nodes, output.node, &number);
	if (index->nodes.count != before)
		index->first[number] = WEIRI_NO_FEED;
	index->next[i] = index->first[number];
	index->first[number] = i;
	index->count = i + 1u;
	return WEIR_OK;
}

static size_t feed_index_bytes(const struct weiri_compiler *c)
{
	return c->signature->feed_count * sizeof(uint32_t);
}

static enum weir_status index_feeds(struct weiri_compiler *c)
{
	enum weir_status status = WEIR_OK;

	weiri_node_map_init(&c->feeds.nodes, c->allocator);
	if (c->signature->feed_count == 0)
		return WEIR_OK;
	if (c->signature->feed_count > WEIRI_PLAN_MOST)
		return weiri_fail(c->error, WEIR_RESOURCE_EXHAUSTED, "there are too many feeds");
	c->feeds.first = weiri_allocate(c->allocator, feed_index_bytes(c), _Alignof(uint32_t));
	c->feeds.next = weiri_allocate(c->allocator, feed_index_bytes(c), _Alignof(uint32_t));
	if (c->feeds.first == NULL || c->feeds.next == NULL)
		return weiri_compiler_no_memory(c);
	for (uint32_t i = 0; status == WEIR_OK && i < c->signature->feed_count; i++)
		status = add_feed(c, i);
	return status;
}

static void free_feeds(struct weiri_compiler *c)
{
	weiri_node_map_fini(&c->feeds.nodes);
	weiri_release(c->allocator, c->feeds.first, feed_index_bytes(c), _Alignof(uint32_t));
	weiri_release(c->allocator, c->feeds.next, feed_index_bytes(c), _Alignof(uint32_t));
}

static enum weir_status check_signature(const struct weiri_compiler *c)
{
	const struct weiri_signature *s = c->signature;
	enum weir_status status = WEIR_OK;

	if (c->graph->function == NULL && weiri_published_first(&c->graph->nodes) == NULL)
		return weiri_fail(c->error, WEIR_FAILED_PRECONDITION, "the graph is empty");
	if ((c->flags & WEIRI_PLAN_LATE) != 0 && s->fetch_count == 0 && s->target_count == 0)
		return weiri_fail(c->error, WEIR_INVALID_ARGUMENT, "there are late feeds, and neither fetches nor targets");
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

static enum weir_status visit(struct weiri_compiler *c, weir_node *node)
{
	weir_output output;
	uint32_t feed;

	output.node = node;
	output.index = 0;
	if (node->op->traits & WEIRI_OP_PLACEHOLDER) {
		char text[WEIRI_SPEC_TEXT_SIZE];

		if (weiri_compiler_is_fed(c, output, &feed))
			return WEIR_OK;
		return weiri_fail(c->error, WEIR_INVALID_ARGUMENT, "placeholder \"%s\" (%s) is needed and was not fed",
		                  node->name, weiri_spec_text(&node->specs[0], text));
	}
	if (!weiri_node_map_add(&c->nodes, node))
		return weiri_compiler_no_memory(c);
	return WEIR_OK;
}

static enum weir_status visit_output(struct weiri_compiler *c, weir_output output)
{
	uint32_t feed;

	return weiri_compiler_is_fed(c, output, &feed) ? WEIR_OK : visit(c, output.node);
}

/* A plan that enters a critical section also leaves it. */
static enum weir_status visit_exit(struct weiri_compiler *c, const weir_node *entrance)
{
	weir_node *exit = weiri_section_exit(entrance);

	WEIR_ASSERT1(op_section B1, exit == NULL || weiri_section_entrance(exit) == entrance);
	if (exit == NULL)
		return weiri_fail(c->error, WEIR_FAILED_PRECONDITION, "\"%s\" is not finished", entrance->name);
	return visit(c, exit);
}

static enum weir_status visit_ancestors(struct weiri_compiler *c, weir_node *node)
{
	enum weir_status status = WEIR_OK;

	for (uint32_t i = 0; status == WEIR_OK && i < node->input_count; i++)
		status = visit_output(c, node->inputs[i]);
	for (struct weiri_published *link = weiri_published_seal(&node->controls); status == WEIR_OK && link != NULL;
	     link = link->next)
		status = visit(c, weiri_control_of(link)->before);
	if (status == WEIR_OK && (node->op->traits & WEIRI_OP_ENTERS) != 0)
		status = visit_exit(c, node);
	return status;
}

static enum weir_status collect(struct weiri_compiler *c)
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

/* --- Fill --- */

struct counts {
	size_t inputs, outputs, holds, waits, state_bytes;
	bool has_user_code, may_wait, draws;
};

static weir_node *node_at(const struct weiri_compiler *c, uint32_t number)
{
	return c->nodes.nodes[c->order.collected[number]];
}

static size_t state_size(const weir_node *node)
{
	struct weiri_layout layout = {0};

	if ((node->op->traits & WEIRI_OP_CALLS) != 0 && node->op->inner->state_size != NULL)
		(void)weiri_layout_add(&layout, 1, node->op->inner->state_size(node));
	return layout.size;
}

/* What the bodies of functions may do, the node may do. */
static void count_bodies(const weir_node *node, struct counts *counts)
{
	const struct weiri_calls *calls = weiri_calls_of(node);

	for (uint32_t i = 0; i < calls->body_count; i++) {
		counts->has_user_code |= calls->bodies[i]->plan->has_user_code;
		counts->may_wait |= calls->bodies[i]->plan->may_wait;
		counts->draws |= calls->bodies[i]->plan->draws;
	}
	counts->state_bytes += state_size(node);
}

static struct counts count_parts(const struct weiri_compiler *c)
{
	struct counts counts;

	(void)memset(&counts, 0, sizeof(counts));
	for (uint32_t i = 0; i < c->order.node_count; i++) {
		const weir_node *node = node_at(c, i);

		counts.inputs += node->input_count;
		counts.outputs += node->output_count;
		counts.holds += node->hold_count;
		counts.waits += (node->op->traits & WEIRI_OP_WAITS) != 0;
		counts.has_user_code |= (node->op->traits & WEIRI_OP_USER) != 0;
		counts.draws |= (node->op->traits & WEIRI_OP_DRAWS) != 0;
		if ((node->op->traits & WEIRI_OP_CALLS) != 0)
			count_bodies(node, &counts);
	}
	counts.may_wait |= counts.waits != 0;
	return counts;
}

/* Lays out the memory of a step or a child frame, which begins with `head` bytes. */
static void lay_out(const struct weiri_plan *plan, size_t head, struct weiri_step_layout *out)
{
	struct weiri_layout layout = {0};

	(void)weiri_layout_add(&layout, 1, head);
	out->values = weiri_layout_add(&layout, plan->slot_count, sizeof(weir_tensor *));
	out->holds = weiri_layout_add(&layout, plan->hold_count, sizeof(weir_read));
	out->inputs = weiri_layout_add(&layout, plan->use_count, sizeof(weir_tensor *));
	out->results = weiri_layout_add(&layout, plan->fetch_count, sizeof(weir_tensor *));
	out->counts = weiri_layout_add(&layout, plan->count_count, sizeof(struct weiri_countdown));
	out->given = weiri_layout_add(&layout, plan->late ? plan->feed_count : 0, sizeof(struct weiri_latch));
	out->told = weiri_layout_add(&layout, plan->late ? plan->node_count : 0, sizeof(struct weiri_latch));
	out->taken = weiri_layout_add(&layout, plan->late ? plan->fetch_count : 0, sizeof(struct weiri_latch));
	out->units = weiri_layout_add(&layout, plan->unit_count, sizeof(struct weiri_frame_unit));
	out->waits = weiri_layout_add(&layout, plan->wait_count, sizeof(struct weiri_wait));
	out->states = weiri_layout_add(&layout, plan->state_bytes, 1);
	out->room = weiri_layout_add(&layout, plan->room, 1);
	out->size = layout.size;
}

static struct weiri_plan *allocate_plan(const struct weiri_compiler *c, const struct counts *counts)
{
	const struct weiri_signature *s = c->signature;
	const struct weiri_order *o = &c->order;
	size_t slots = s->feed_count + o->constant_count + counts->outputs;
	struct weiri_layout layout = {0};
	size_t at_plan = weiri_layout_add(&layout, 1, sizeof(struct weiri_plan));
	size_t at_feeds = weiri_layout_add(&layout, s->feed_count, sizeof(weir_output));
	size_t at_fetches = weiri_layout_add(&layout, s->fetch_count, sizeof(weir_output));
	size_t at_targets = weiri_layout_add(&layout, s->target_count, sizeof(weir_node *));
	size_t at_nodes = weiri_layout_add(&layout, o->node_count, sizeof(struct weiri_plan_node));
	size_t at_units = weiri_layout_add(&layout, o->unit_count, sizeof(struct weiri_unit));
	size_t at_straight = weiri_layout_add(&layout, o->unit_count, sizeof(uint32_t));
	size_t at_successors = weiri_layout_add(&layout, o->edge_count, sizeof(uint32_t));
	size_t at_uses = weiri_layout_add(&layout, counts->inputs, sizeof(struct weiri_use));
	size_t at_slots = weiri_layout_add(&layout, slots, sizeof(struct weiri_plan_slot));
	size_t at_counts = weiri_layout_add(&layout, o->unit_count + slots, sizeof(uint32_t));
	size_t at_fetched = weiri_layout_add(&layout, s->fetch_count, sizeof(struct weiri_fetch));
	size_t at_late_starts =
		weiri_layout_add(&layout, (c->flags & WEIRI_PLAN_LATE) != 0 ? s->feed_count + 1 : 0, sizeof(uint32_t));
	size_t at_late_units =
		weiri_layout_add(&layout, (c->flags & WEIRI_PLAN_LATE) != 0 ? counts->inputs : 0, sizeof(uint32_t));
	size_t at_constants = weiri_layout_add(&layout, o->constant_count, sizeof(weir_tensor *));
	char *block = weiri_allocate_zeroed(c->allocator, layout.size, WEIRI_LAYOUT_ALIGNMENT);
	struct weiri_plan *plan;

	if (block == NULL)
		return NULL;
	plan = weiri_layout_at(block, at_plan);
	plan->bytes = layout.size;
	plan->feeds = weiri_layout_at(block, at_feeds);
	plan->fetches = weiri_layout_at(block, at_fetches);
	plan->targets = weiri_layout_at(block, at_targets);
	plan->nodes = weiri_layout_at(block, at_nodes);
	plan->units = weiri_layout_at(block, at_units);
	plan->straight = weiri_layout_at(block, at_straight);
	plan->successors = weiri_layout_at(block, at_successors);
	plan->uses = weiri_layout_at(block, at_uses);
	plan->slots = weiri_layout_at(block, at_slots);
	plan->counts = weiri_layout_at(block, at_counts);
	plan->fetched = weiri_layout_at(block, at_fetched);
	plan->late_starts = weiri_layout_at(block, at_late_starts);
	plan->late_units = weiri_layout_at(block, at_late_units);
	plan->constants = weiri_layout_at(block, at_constants);
	plan->allocator = *c->allocator;
	weiri_spare_init(&plan->spare);
	weiri_spare_init(&plan->spare_child);
	plan->id = weiri_serial_take(&plan_ids);
	return plan;
}

static void copy_key(struct weiri_plan *plan, const struct weiri_signature *s)
{
	plan->hash = s->hash;
	plan->feed_count = s->feed_count;
	plan->fetch_count = s->fetch_count;
	plan->target_count = s->target_count;
	for (size_t i = 0; i < s->feed_count; i++)
		plan->feeds[i] = weiri_signature_feed(s, i);
	for (size_t i = 0; i < s->fetch_count; i++)
		plan->fetches[i] = s->fetches[i];
	for (size_t i = 0; i < s->target_count; i++)
		plan->targets[i] = s->targets[i];
}

/* The critical section that user code of the node must not enter again; NULL: none. */
static const weir_critical_section *section_of(const weir_node *node)
{
	const uint32_t runs_user_code = WEIRI_OP_USER | WEIRI_OP_CALLS | WEIRI_OP_PULLS;
	const weir_node *entrance = (node->op->traits & runs_user_code) != 0 ? weiri_section_entrance(node) : NULL;

	return entrance != NULL ? weiri_section_of(entrance) : NULL;
}

static uint32_t add_weights(uint32_t a, uint32_t b)
{
	return a + b < WEIRI_PLAN_MOST ? a + b : WEIRI_PLAN_MOST;
}

/* Returns the bytes of a tensor; SIZE_MAX if they are not known. */
static size_t bytes_of(const struct weiri_spec *spec)
{
	size_t bytes = weir_dtype_size(spec->dtype);

	if (!weiri_spec_known(spec))
		return SIZE_MAX;
	for (uint32_t i = 0; i < spec->shape.rank; i++) {
		if (!weiri_multiply(bytes, (size_t)spec->shape.dims[i], &bytes))
			return SIZE_MAX;
	}
	return bytes;
}

/* Returns true if a run of an op that passes over its inputs may be worth a hand-over. */
static bool may_be_large(const weir_node *node)
{
	const size_t large = (size_t)WEIRI_WORTH_A_WORKER_NS * WEIRI_BYTES_PER_NS;
	size_t sum = 0;

	for (uint32_t i = 0; node->op->compute != NULL && sum < large && i < node->input_count; i++) {
		size_t bytes = bytes_of(weiri_output_spec(node->inputs[i]));

		sum = bytes < large ? sum + bytes : large;
	}
	return sum >= large;
}

/*
 * An op that computes on small tensors takes some ten nanoseconds, as one that computes nothing.
 * User code and large tensors may take any time.
 */
static uint32_t weight_of(const weir_node *node)
{
	enum { BYTES_OF_ONE = 1024 };
	uint32_t weight = 1;

	if ((node->op->traits & (WEIRI_OP_USER | WEIRI_OP_HEAVY)) != 0)
		return WEIRI_LOOK_WEIGHT;
	if (node->op->compute == NULL && node->op->touches == NULL)
		return weight;
	for (uint32_t i = 0; weight < WEIRI_LOOK_WEIGHT && i < node->input_count + node->output_count; i++) {
		size_t bytes =
			bytes_of(i < node->input_count ? weiri_output_spec(node->inputs[i]) : &node->specs[i - node->input_count]);

		weight += bytes < (size_t)WEIRI_LOOK_WEIGHT * BYTES_OF_ONE ? (uint32_t)bytes / BYTES_OF_ONE : WEIRI_LOOK_WEIGHT;
	}
	return weight < WEIRI_LOOK_WEIGHT ? weight : WEIRI_LOOK_WEIGHT;
}

/* The weight of a node and of what it calls, at most WEIRI_PLAN_MOST. */
static uint32_t total_weight(const weir_node *node, uint32_t weight)
{
	const struct weiri_calls *calls = (node->op->traits & WEIRI_OP_CALLS) != 0 ? weiri_calls_of(node) : NULL;

	for (uint32_t i = 0; calls != NULL && i < calls->body_count; i++)
		weight = add_weights(weight, calls->bodies[i]->plan->weight);
	return weight;
}

static void fill_slots(struct weiri_plan *plan, bool owns_feeds)
{
	uint32_t outside = (uint32_t)plan->feed_count + plan->constant_count;

	for (uint32_t slot = 0; slot < plan->slot_count; slot++) {
		bool fed = slot < plan->feed_count;

		plan->slots[slot].owner = slot >= outside || (fed && owns_feeds) ? WEIRI_OWNER_FRAME : WEIRI_OWNER_OUTSIDE;
		plan->slots[slot].unused = true;
	}
}

/* Traits that follow from the node, and not from its op alone. */
static uint32_t traits_found(const weir_node *node)
{
	const uint32_t more =
		WEIRI_OP_WAITS | WEIRI_OP_USER | WEIRI_OP_ENTERS | WEIRI_OP_LEAVES | WEIRI_OP_CALLS | WEIRI_OP_APART;
	const struct weiri_calls *calls = (node->op->traits & WEIRI_OP_CALLS) != 0 ? weiri_calls_of(node) : NULL;
	uint32_t found = may_be_large(node) ? WEIRI_OP_HEAVY : 0;

	if ((node->op->traits & more) == 0 && node->op->touches == NULL)
		found |= WEIRI_NODE_COMPUTES;
	for (uint32_t i = 0; calls != NULL && i < calls->body_count; i++)
		found |= calls->bodies[i]->function->own_worker ? WEIRI_OP_APART : 0u;
	return found;
}

static void fill_nodes(struct weiri_compiler *c)
{
	struct weiri_plan *plan = c->plan;
	uint32_t slot = (uint32_t)plan->feed_count + plan->constant_count;

	for (uint32_t i = 0; i < plan->node_count; i++) {
		const weir_node *node = node_at(c, i);
		struct weiri_plan_node *p = &plan->nodes[i];

		p->node = node;
		p->run = node->op->run;
		p->flags = node->op->traits | traits_found(node);
		p->weight = weight_of(node);
		p->input_count = node->input_count;
		p->inputs = plan->use_count;
		p->outputs = slot;
		p->holds = plan->hold_count;
		p->wait = plan->wait_count;
		p->within = section_of(node);
		p->state = plan->state_bytes;
		plan->state_bytes += (uint32_t)state_size(node);
		plan->weight = add_weights(plan->weight, total_weight(node, p->weight));
		for (uint32_t hold = 0; hold < node->hold_count; hold++)
			plan->slots[slot + hold].owner = plan->hold_count + hold;
		plan->use_count += node->input_count;
		slot += node->output_count;
		plan->hold_count += node->hold_count;
		plan->wait_count += (node->op->traits & WEIRI_OP_WAITS) != 0;
	}
}

static void fill_constants(struct weiri_compiler *c)
{
	for (uint32_t i = 0; i < c->nodes.count; i++) {
		const weir_node *node = c->nodes.nodes[i];

		if (weiri_needs_no_run(node))
			c->plan->constants[c->order.numbers[i]] = *(weir_tensor *const *)node->attribute;
	}
}

/* Returns the slot of the output, and notes that the output is used. */
static uint32_t use_slot(struct weiri_compiler *c, weir_output output)
{
	struct weiri_plan *plan = c->plan;
	struct weiri_plan_node *p;
	uint32_t number;

	if (weiri_compiler_is_fed(c, output, &number))
		return number;
	(void)weiri_node_map_find(&c->nodes, output.node, &number);
	number = c->order.numbers[number];
	if (weiri_needs_no_run(output.node))
		return (uint32_t)plan->feed_count + number;
	p = &plan->nodes[number];
	if (output.index < 64)
		p->wanted |= UINT64_C(1) << output.index;
	return p->outputs + output.index;
}

static void resolve_uses(struct weiri_compiler *c)
{
	struct weiri_plan *plan = c->plan;

	for (uint32_t n = 0; n < plan->node_count; n++) {
		for (uint32_t i = 0; i < plan->nodes[n].input_count; i++)
			plan->uses[plan->nodes[n].inputs + i].slot = use_slot(c, plan->nodes[n].node->inputs[i]);
	}
	for (size_t i = 0; i < plan->fetch_count; i++)
		plan->fetched[i].slot = use_slot(c, plan->fetches[i]);
}

/* Returns the plan node at whose end the fetch is there. */
static uint32_t node_of_fetch(const struct weiri_compiler *c, size_t i)
{
	uint32_t number;

	if (c->plan->fetched[i].slot < c->plan->feed_count + c->plan->constant_count)
		return WEIRI_NO_NODE;
	(void)weiri_node_map_find(&c->nodes, c->plan->fetches[i].node, &number);
	return c->order.numbers[number];
}

/* Finds which units wait for each feed, and the nodes whose ends are told. */
static void resolve_late(struct weiri_compiler *c)
{
	struct weiri_plan *plan = c->plan;

	/* late_starts[feed] counts; then it is where the list of the feed ends; then where it begins. */
	for (uint32_t i = 0; i < plan->use_count; i++) {
		if (plan->uses[i].slot < plan->feed_count)
			plan->late_starts[plan->uses[i].slot]++;
	}
	for (size_t feed = 1; feed <= plan->feed_count; feed++)
		plan->late_starts[feed] += plan->late_starts[feed - 1];
	for (uint32_t n = plan->node_count; n-- > 0;) {
		for (uint32_t i = 0; i < plan->nodes[n].input_count; i++) {
			uint32_t slot = plan->uses[plan->nodes[n].inputs + i].slot;

			if (slot < plan->feed_count)
				plan->late_units[--plan->late_starts[slot]] = c->order.unit_of[n];
		}
	}
	for (size_t i = 0; i < plan->fetch_count; i++) {
		plan->fetched[i].node = node_of_fetch(c, i);
		if (plan->fetched[i].node != WEIRI_NO_NODE)
			plan->nodes[plan->fetched[i].node].flags |= WEIRI_NODE_TELLS;
	}
}

/* Returns true if the node runs on the thread that begins it, to its end. Notes in *heavy if that depends on the step. */
static bool node_stays(const struct weiri_plan *plan, const struct weiri_plan_node *p, bool *heavy)
{
	const struct weiri_calls *calls = (p->flags & WEIRI_OP_CALLS) != 0 ? weiri_calls_of(p->node) : NULL;
	bool stays = (p->flags & (WEIRI_OP_WAITS | WEIRI_OP_APART)) == 0;

	if ((p->flags & WEIRI_OP_SHORT) == 0) {
		/* Only a thread that has other work hands over an op, unless it does not wait for the step. */
		stays = stays && (p->flags & WEIRI_OP_USER) == 0 && ((p->flags & WEIRI_OP_HEAVY) == 0 || plan->unit_count == 1);
		*heavy |= (p->flags & WEIRI_OP_HEAVY) != 0;
	}
	if (calls == NULL)
		return stays;
	stays = stays && p->node->op->inner->stays;
	for (uint32_t i = 0; stays && i < calls->body_count; i++) {
		stays = calls->bodies[i]->plan->stays;
		*heavy |= calls->bodies[i]->plan->heavy;
	}
	return stays;
}

/*
 * Finds whether the plan is straight, and then the room that its calls need. A larger body has frames
 * of its own, which all plans that call it share: each plan that is kept would keep room for it.
 */
static void find_stays(struct weiri_plan *plan)
{
	enum { MOST_ROOM = 4096 };

	plan->stays = !plan->late;
	for (uint32_t n = 0; plan->stays && n < plan->node_count; n++)
		plan->stays = node_stays(plan, &plan->nodes[n], &plan->heavy);
	for (uint32_t n = 0; plan->stays && n < plan->node_count; n++) {
		const struct weiri_plan_node *p = &plan->nodes[n];
		const struct weiri_calls *calls = (p->flags & WEIRI_OP_CALLS) != 0 ? weiri_calls_of(p->node) : NULL;

		for (uint32_t i = 0; calls != NULL && p->node->op->inner->has_one_child && i < calls->body_count; i++) {
			size_t size = calls->bodies[i]->plan->child.size;

			if (size <= MOST_ROOM && size > plan->room)
				plan->room = size;
		}
	}
}

/* The nodes are collected and ordered. */
static enum weir_status make_plan(struct weiri_compiler *c)
{
	struct counts counts = count_parts(c);
	size_t slots = c->signature->feed_count + c->order.constant_count + counts.outputs;
	struct weiri_plan *plan;
	enum weir_status status;

	/* There are at most as many counts as units and slots. */
	if (slots + c->order.unit_count > WEIRI_PLAN_MOST || counts.inputs > WEIRI_PLAN_MOST ||
	    counts.holds > WEIRI_PLAN_MOST || counts.state_bytes > WEIRI_PLAN_MOST)
		return weiri_fail(c->error, WEIR_RESOURCE_EXHAUSTED, "the plan has too many values");
	plan = allocate_plan(c, &counts);
	if (plan == NULL)
		return weiri_compiler_no_memory(c);
	c->plan = plan;
	plan->node_count = c->order.node_count;
	plan->unit_count = c->order.unit_count;
	plan->root_count = c->order.root_count;
	plan->constant_count = c->order.constant_count;
	plan->slot_count = (uint32_t)slots;
	plan->has_user_code = counts.has_user_code;
	plan->may_wait = counts.may_wait;
	plan->draws = counts.draws;
	plan->late = (c->flags & WEIRI_PLAN_LATE) != 0;
	copy_key(plan, c->signature);
	fill_slots(plan, plan->has_user_code || (c->flags & (WEIRI_PLAN_OWNS_FEEDS | WEIRI_PLAN_LATE)) != 0);
	fill_nodes(c);
	fill_constants(c);
	resolve_uses(c);
	weiri_order_connect(c);
	find_stays(plan);
	if (plan->stays)
		weiri_order_straight(c);
	if (plan->late)
		resolve_late(c);
	status = weiri_find_last_uses(c);
	lay_out(plan, sizeof(struct weiri_step), &plan->step);
	lay_out(plan, sizeof(struct weiri_frame), &plan->child);
	return status;
}

static enum weir_status compile(struct weiri_compiler *c)
{
	enum weir_status status = index_feeds(c);

	if (status == WEIR_OK)
		status = check_signature(c);
	if (status == WEIR_OK)
		status = collect(c);
	if (status == WEIR_OK)
		status = weiri_order_nodes(c);
	return status == WEIR_OK ? make_plan(c) : status;
}

enum weir_status weiri_plan_compile(weir_graph *graph, const weir_allocator *allocator,
                                    const struct weiri_signature *signature, uint32_t flags, struct weiri_plan **out,
                                    weir_error *error)
{
	struct weiri_compiler c;
	enum weir_status status;

	(void)memset(&c, 0, sizeof(c));
	c.graph = graph;
	c.allocator = allocator;
	c.signature = signature;
	c.flags = flags;
	c.error = error;
	weiri_node_map_init(&c.nodes, allocator);
	status = compile(&c);
	weiri_order_free(&c);
	weiri_node_map_fini(&c.nodes);
	free_feeds(&c);
	if (status == WEIR_OK)
		*out = c.plan;
	else
		weiri_plan_free(c.plan, allocator);
	return status;
}

void weiri_plan_free(struct weiri_plan *plan, const weir_allocator *allocator)
{
	if (plan == NULL)
		return;
	weiri_step_free_spare(plan);
	weiri_release(allocator, weiri_spare_take(&plan->spare_child), plan->child.size, WEIRI_FRAME_ALIGNMENT);
	weiri_release(allocator, plan, plan->bytes, WEIRI_LAYOUT_ALIGNMENT);
}
