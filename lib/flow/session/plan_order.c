/*
 * plan_order.c - puts the nodes of a plan into an order in which they can run, and joins them to
 * units.
 *
 * Edges are collected without repetition: a node that takes a value twice, or waits for a node of
 * which it also takes a value, has one edge. Kahn's algorithm (1962) sorts the nodes. A cycle can
 * come only from control edges that two threads added at the same time, which weir/flow/graph.h does
 * not allow. It is found here, because a run of it would never end. Then the chains are numbered,
 * first those that begin with a node without predecessors. Every pass is linear in nodes and edges.
 *
 * With late feeds, each input that is fed is one more arrival, and a value may be fetched while the
 * rest of the run waits for feeds. So a unit begins with a node that is fed, and ends with one that
 * is fetched.
 */
#include "session/plan_compiler.h"

#include <string.h>

#include "base/assert.h"
#include "base/error.h"
#include "base/memory.h"
#include "graph/layout.h"

static size_t most_edges(const struct weiri_compiler *c)
{
	size_t edges = 0;

	for (size_t i = 0; i < c->nodes.count; i++) {
		edges += c->nodes.nodes[i]->input_count;
		for (struct weiri_published *link = weiri_published_first(&c->nodes.nodes[i]->controls); link != NULL;
		     link = link->next)
			edges++;
	}
	return edges;
}

static enum weir_status allocate(struct weiri_compiler *c)
{
	struct weiri_order *o = &c->order;
	size_t nodes = c->nodes.count, edges = most_edges(c);
	uint32_t **const parts[] = {&o->numbers, &o->collected, &o->unit_firsts, &o->unit_of,    &o->arrivals,
	                            &o->starts,  &o->scratch,   &o->late_feeds,  &o->is_fetched, &o->successors};
	const size_t counts[] = {nodes, nodes, nodes, nodes, nodes, nodes + 1, nodes, nodes, nodes, edges};
	enum { PARTS = sizeof(counts) / sizeof(counts[0]) };
	struct weiri_layout layout = {0};
	size_t at[PARTS];

	if (nodes > WEIRI_PLAN_MOST || edges > WEIRI_PLAN_MOST)
		return weiri_fail(c->error, WEIR_RESOURCE_EXHAUSTED, "the plan has too many nodes or edges");
	for (size_t i = 0; i < PARTS; i++)
		at[i] = weiri_layout_add(&layout, counts[i], sizeof(uint32_t));
	o->block = weiri_allocate_zeroed(c->allocator, layout.size, WEIRI_LAYOUT_ALIGNMENT);
	o->bytes = layout.size;
	if (o->block == NULL)
		return weiri_compiler_no_memory(c);
	for (size_t i = 0; i < PARTS; i++)
		*parts[i] = weiri_layout_at(o->block, at[i]);
	return WEIR_OK;
}

void weiri_order_free(struct weiri_compiler *c)
{
	weiri_release(c->allocator, c->order.block, c->order.bytes, WEIRI_LAYOUT_ALIGNMENT);
}

/* -- edges ------------------------------------------------------------------------------------- */

typedef void edge_fn(struct weiri_order *order, uint32_t from, uint32_t to);

/*
 * Calls fn for the edge from `node`, unless there is none, because nothing runs for `node`, or it
 * was the last edge into `to` that scratch[] tells of.
 */
static void on_edge(struct weiri_compiler *c, const weir_node *node, uint32_t to, edge_fn *fn)
{
	uint32_t from;

	if (!weiri_node_map_find(&c->nodes, node, &from) || weiri_needs_no_run(node) || c->order.scratch[from] == to + 1)
		return;
	c->order.scratch[from] = to + 1;
	fn(&c->order, from, to);
}

static void for_each_edge(struct weiri_compiler *c, edge_fn *fn)
{
	(void)memset(c->order.scratch, 0, c->nodes.count * sizeof(c->order.scratch[0]));
	for (uint32_t to = 0; to < c->nodes.count; to++) {
		const weir_node *node = c->nodes.nodes[to];
		uint32_t feed;

		for (uint32_t i = 0; i < node->input_count; i++) {
			if (!weiri_compiler_is_fed(c, node->inputs[i], &feed))
				on_edge(c, node->inputs[i].node, to, fn);
		}
		for (struct weiri_published *link = weiri_published_first(&node->controls); link != NULL; link = link->next)
			on_edge(c, weiri_control_of(link)->before, to, fn);
	}
}

/* starts[from + 1] counts, until set_starts() sums up. */
static void count_edge(struct weiri_order *order, uint32_t from, uint32_t to)
{
	order->starts[from + 1]++;
	order->arrivals[to]++;
	order->edge_count++;
}

/* unit_of[from] counts the edges that are stored already. */
static void store_edge(struct weiri_order *order, uint32_t from, uint32_t to)
{
	order->successors[order->starts[from] + order->unit_of[from]++] = to;
}

static void find_edges(struct weiri_compiler *c)
{
	for_each_edge(c, count_edge);
	for (size_t i = 0; i < c->nodes.count; i++)
		c->order.starts[i + 1] += c->order.starts[i];
	for_each_edge(c, store_edge);
}

/* Fills late_feeds[] and is_fetched[]. */
static void find_late_ends(struct weiri_compiler *c)
{
	struct weiri_order *o = &c->order;
	uint32_t number;

	for (uint32_t i = 0; i < c->nodes.count; i++) {
		const weir_node *node = c->nodes.nodes[i];

		for (uint32_t input = 0; input < node->input_count; input++)
			o->late_feeds[i] += weiri_compiler_is_fed(c, node->inputs[input], &number) ? 1 : 0;
	}
	for (size_t i = 0; i < c->signature->fetch_count; i++) {
		if (!weiri_compiler_is_fed(c, c->signature->fetches[i], &number) &&
		    weiri_node_map_find(&c->nodes, c->signature->fetches[i].node, &number))
			o->is_fetched[number] = 1;
	}
}

/* -- order ------------------------------------------------------------------------------------- */

/* Stores the collected numbers of the nodes that run in `sorted`, each after its predecessors. */
static enum weir_status sort(struct weiri_compiler *c, uint32_t sorted[])
{
	struct weiri_order *o = &c->order;
	uint32_t *left = o->scratch;
	uint32_t found = 0;

	(void)memcpy(left, o->arrivals, c->nodes.count * sizeof(left[0]));
	for (uint32_t i = 0; i < c->nodes.count; i++) {
		if (left[i] == 0 && !weiri_needs_no_run(c->nodes.nodes[i]))
			sorted[found++] = i;
	}
	for (uint32_t at = 0; at < found; at++) {
		for (uint32_t i = o->starts[sorted[at]]; i < o->starts[sorted[at] + 1]; i++) {
			if (--left[o->successors[i]] == 0)
				sorted[found++] = o->successors[i];
		}
	}
	for (uint32_t i = 0; i < c->nodes.count; i++) {
		if (left[i] != 0)
			return weiri_fail(c->error, WEIR_INVALID_ARGUMENT, "\"%s\" is part of a cycle of control edges",
			                  c->nodes.nodes[i]->name);
	}
	o->node_count = found;
	return WEIR_OK;
}

/* Sets *next and returns true if `node` has one successor, and is its only predecessor. */
static bool continues(const struct weiri_compiler *c, uint32_t node, uint32_t *next)
{
	const struct weiri_order *o = &c->order;

	if ((c->flags & WEIRI_PLAN_SEPARATE) != 0 || o->is_fetched[node] != 0 || o->starts[node + 1] - o->starts[node] != 1)
		return false;
	*next = o->successors[o->starts[node]];
	return o->arrivals[*next] + o->late_feeds[*next] == 1;
}

/* Numbers the nodes of the unit that begins with `node`, from `number` on. Returns the next number. */
static uint32_t number_unit(struct weiri_compiler *c, uint32_t node, uint32_t number)
{
	struct weiri_order *o = &c->order;
	uint32_t next = node;

	o->unit_firsts[o->unit_count++] = number;
	do {
		node = next;
		o->collected[number] = node;
		o->numbers[node] = number++;
	} while (continues(c, node, &next));
	return number;
}

/* Marks in scratch[] each node that is not the first of its unit. */
static void mark_continuations(struct weiri_compiler *c, const uint32_t sorted[])
{
	uint32_t next;

	(void)memset(c->order.scratch, 0, c->nodes.count * sizeof(c->order.scratch[0]));
	for (uint32_t i = 0; i < c->order.node_count; i++) {
		if (continues(c, sorted[i], &next))
			c->order.scratch[next] = 1;
	}
}

static void number_nodes(struct weiri_compiler *c, const uint32_t sorted[])
{
	struct weiri_order *o = &c->order;
	uint32_t number = 0;

	mark_continuations(c, sorted);
	for (uint32_t i = 0; i < o->node_count; i++) {
		if (o->arrivals[sorted[i]] + o->late_feeds[sorted[i]] == 0)
			number = number_unit(c, sorted[i], number);
	}
	o->root_count = o->unit_count;
	for (uint32_t i = 0; i < o->node_count; i++) {
		if (o->arrivals[sorted[i]] + o->late_feeds[sorted[i]] != 0 && o->scratch[sorted[i]] == 0)
			number = number_unit(c, sorted[i], number);
	}
	for (uint32_t i = 0; i < c->nodes.count; i++) {
		if (weiri_needs_no_run(c->nodes.nodes[i]))
			o->numbers[i] = o->constant_count++;
	}
}

enum weir_status weiri_order_nodes(struct weiri_compiler *c)
{
	struct weiri_order *o = &c->order;
	enum weir_status status = allocate(c);

	if (status != WEIR_OK)
		return status;
	find_edges(c);
	if ((c->flags & WEIRI_PLAN_LATE) != 0)
		find_late_ends(c);
	/* The list of sorted nodes lies where unit_of is filled at the end. */
	status = sort(c, o->unit_of);
	if (status != WEIR_OK)
		return status;
	number_nodes(c, o->unit_of);
	for (uint32_t unit = 0; unit < o->unit_count; unit++) {
		uint32_t end = unit + 1 < o->unit_count ? o->unit_firsts[unit + 1] : o->node_count;

		for (uint32_t number = o->unit_firsts[unit]; number < end; number++)
			o->unit_of[number] = unit;
	}
	return WEIR_OK;
}

void weiri_order_straight(struct weiri_compiler *c)
{
	struct weiri_plan *plan = c->plan;
	/* What order_nodes() had in these is not needed any more. */
	uint32_t *left = c->order.arrivals, *ready = c->order.scratch;
	uint32_t ready_count = 0, found = 0, roots = plan->root_count;

	for (uint32_t i = 0; i < plan->unit_count; i++)
		left[i] = plan->units[i].count != WEIRI_NO_COUNT ? plan->counts[plan->units[i].count] : 1;
	while (ready_count != 0 || roots != 0) {
		uint32_t unit = ready_count != 0 ? ready[--ready_count] : --roots;

		plan->straight[found++] = unit;
		for (uint32_t s = 0; s < plan->units[unit].successor_count; s++) {
			uint32_t successor = plan->successors[plan->units[unit].successors + s];

			if (--left[successor] == 0)
				ready[ready_count++] = successor;
		}
	}
	WEIR_ASSERT1(L3, found == plan->unit_count);
}

void weiri_order_connect(struct weiri_compiler *c)
{
	const struct weiri_order *o = &c->order;
	struct weiri_plan *plan = c->plan;
	uint32_t stored = 0;

	for (uint32_t i = 0; i < o->unit_count; i++) {
		struct weiri_unit *unit = &plan->units[i];
		uint32_t last, arrivals;

		unit->first = o->unit_firsts[i];
		unit->end = i + 1 < o->unit_count ? o->unit_firsts[i + 1] : o->node_count;
		unit->successors = stored;
		unit->count = WEIRI_NO_COUNT;
		arrivals = o->arrivals[o->collected[unit->first]] + o->late_feeds[o->collected[unit->first]];
		if (arrivals > 1) {
			unit->count = plan->count_count++;
			plan->counts[unit->count] = arrivals;
		}
		/* Only the last node of a unit has successors elsewhere, and these are first in their units. */
		last = o->collected[unit->end - 1];
		for (uint32_t s = o->starts[last]; s < o->starts[last + 1]; s++) {
			WEIR_ASSERT2(L1, o->numbers[o->successors[s]] >= unit->end);
			plan->successors[stored++] = o->unit_of[o->numbers[o->successors[s]]];
		}
		unit->successor_count = stored - unit->successors;
	}
}
