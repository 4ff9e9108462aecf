/*
 * control.c - control edges between existing nodes, and the cycles that they must not close.
 *
 * A node is newer than its inputs, so every data edge leads from an older to a newer node. A cycle
 * needs an edge from a newer to an older node, and only a control edge can be one. The graph is
 * searched only if it has, or gets, such an edge.
 */
#include "graph/node.h"

#include "base/compiler.h"
#include "base/error.h"
#include "base/memory.h"
#include "graph/node_map.h"
#include "graph/section.h"

static bool add_ancestors_of(struct weiri_node_map *seen, const weir_node *node)
{
	for (uint32_t i = 0; i < node->input_count; i++) {
		if (!weiri_node_map_add(seen, node->inputs[i].node))
			return false;
	}
	for (struct weiri_published *link = weiri_published_first(&node->controls); link != NULL; link = link->next) {
		if (!weiri_node_map_add(seen, weiri_control_of(link)->before))
			return false;
	}
	return true;
}

bool weiri_node_map_add_ancestors(struct weiri_node_map *seen)
{
	bool ok = true;

	for (size_t i = 0; ok && i < seen->count; i++)
		ok = add_ancestors_of(seen, seen->nodes[i]);
	return ok;
}

/*
 * Sets *answer to 1 if `node` is `ancestor` or runs after it, otherwise to 0. Returns false if
 * there is no memory.
 */
static bool runs_after(weir_node *node, const weir_node *ancestor, bool *answer)
{
	struct weiri_node_map seen;
	uint32_t number;
	bool ok;

	weiri_node_map_init(&seen, &node->graph->allocator);
	ok = weiri_node_map_add(&seen, node) && weiri_node_map_add_ancestors(&seen);
	*answer = weiri_node_map_find(&seen, ancestor, &number);
	weiri_node_map_fini(&seen);
	return ok;
}

static enum weir_status check_cycle(weir_graph *graph, weir_node *before, weir_node *after, weir_error *error)
{
	bool cycle = before == after;

	if (before->id < after->id && graph->backward_controls == 0)
		return WEIR_OK;
	if (!cycle && !runs_after(before, after, &cycle))
		return weiri_fail(error, WEIR_RESOURCE_EXHAUSTED, "weir_graph_add_control: no memory");
	if (cycle)
		return weiri_fail(
			error, WEIR_INVALID_ARGUMENT,
			"weir_graph_add_control: \"%s\" before \"%s\" would close a cycle: \"%s\" already runs after \"%s\"",
			before->name, after->name, before->name, after->name);
	return WEIR_OK;
}

enum weir_status weiri_control_push(weir_graph *graph, weir_node *before, weir_node *after, weir_error *error)
{
	struct weiri_control *control = weiri_allocate(&graph->allocator, sizeof(*control), _Alignof(struct weiri_control));
	struct weiri_published *first = weiri_published_first(&after->controls);

	if (control == NULL)
		return weiri_fail(error, WEIR_RESOURCE_EXHAUSTED, "weir_graph_add_control: no memory");
	control->before = before;
	control->entrance = first != NULL ? weiri_control_of(first)->entrance : NULL;
	if ((before->op->traits & WEIRI_OP_ENTERS) != 0)
		control->entrance = before;
	/* No other thread pushes, so the push fails only if a plan has sealed the list. */
	if (!weiri_published_push_after(&after->controls, &control->link, first)) {
		weiri_release(&graph->allocator, control, sizeof(*control), _Alignof(struct weiri_control));
		return weiri_fail(error, WEIR_FAILED_PRECONDITION,
		                  "weir_graph_add_control: \"%s\" has already been part of a run", after->name);
	}
	if (before->id > after->id)
		graph->backward_controls++;
	return WEIR_OK;
}

/*
 * A node that runs in a critical section may wait only for nodes of its own body. Every value that
 * the body takes from outside must exist before the section is entered.
 */
static enum weir_status check_section(const weir_node *before, const weir_node *after, weir_error *error)
{
	const weir_node *entrance = weiri_section_entrance(after);

	/* An edge from an entrance marks a node of its body. Only weir_op_critical_section adds one. */
	if ((before->op->traits & WEIRI_OP_ENTERS) != 0 && before != entrance)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT,
		                  "weir_graph_add_control: \"%s\" enters a critical section, and \"%s\" is not part of it",
		                  before->name, after->name);
	if (entrance == NULL || before == entrance || weiri_section_entrance(before) == entrance)
		return WEIR_OK;
	return weiri_fail(error, WEIR_INVALID_ARGUMENT,
	                  "weir_graph_add_control: \"%s\" runs in critical section \"%s\", which would wait inside for "
	                  "\"%s\"; end the edge at the section's own node",
	                  after->name, weir_critical_section_name(weiri_section_of(entrance)), before->name);
}

/*
 * Returns the node at which an edge to `after` ends. A node that must run before a section must run
 * before its entrance. So an edge from outside to an exit ends at the entrance.
 */
static weir_node *end_of_edge(const weir_node *before, weir_node *after)
{
	weir_node *entrance = (after->op->traits & WEIRI_OP_LEAVES) != 0 ? weiri_section_entrance(after) : NULL;

	if (entrance == NULL || before == entrance || weiri_section_entrance(before) == entrance)
		return after;
	return entrance;
}

static bool has_edge(const weir_node *before, const weir_node *after)
{
	struct weiri_published *link = weiri_published_first(&after->controls);

	while (link != NULL && weiri_control_of(link)->before != before)
		link = link->next;
	return link != NULL;
}

enum weir_status weir_graph_add_control(weir_graph *graph, weir_node *before, weir_node *after, weir_error *error)
{
	enum weir_status status;
	weir_error late;

	if (graph == NULL || before == NULL || after == NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "weir_graph_add_control: NULL argument");
	if (before->graph != graph || after->graph != graph)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "weir_graph_add_control: \"%s\" belongs to another graph",
		                  before->graph != graph ? before->name : after->name);
	after = end_of_edge(before, after);
	status = check_section(before, after, error);
	if (status == WEIR_OK)
		status = check_cycle(graph, before, after, error);
	if (status != WEIR_OK)
		return status;
	/*
	 * The plan ignores an edge that occurs twice (session/plan_order.c). Only an edge that would come
	 * too late is worth a search.
	 */
	if (weiri_published_sealed(&after->controls) && has_edge(before, after))
		return WEIR_OK;
	status = weiri_control_push(graph, before, after, &late);
	if (status == WEIR_FAILED_PRECONDITION && has_edge(before, after))
		return WEIR_OK; /* a first run came in between */
	if (status != WEIR_OK && error != NULL)
		*error = late;
	return status;
}
