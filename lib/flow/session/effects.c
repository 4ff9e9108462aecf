/*
 * effects.c - the automatic control edges of a body, from what its nodes read and write.
 *
 * The nodes are visited in the order in which they were built. For each object the last write is
 * known, and the reads since. A critical section counts as one node, at the place of its exit: an
 * edge to it ends at the entrance.
 *
 * An edge makes its first node run. So only nodes that run anyway get edges: those that write, the
 * results, and what these need. A read that nobody uses stays out.
 *
 * An edge of the user may contradict an automatic one. Then the two nodes have an order already.
 */
#include "session/function.h"

#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "graph/layout.h"
#include "graph/node_map.h"
#include "graph/section.h"

#define NONE UINT32_MAX

/* What was seen of an object. */
struct history {
	weir_node *written; /* the node after which the last write has ended; or NULL */
	uint32_t reads;     /* the first of the reads since, in the walk's list; or NONE */
};

struct read {
	weir_node *node;
	uint32_t next;
};

/* A node, or a critical section with all its nodes. */
struct item {
	weir_node *first, *last; /* edges end at the first, and begin at the last */
};

struct walk {
	weir_graph *graph;
	struct weiri_effects *effects;
	struct weiri_node_map running; /* nodes that run */
	struct weiri_node_map objects; /* objects in place of nodes */
	weir_node **order;             /* all nodes, as they were built */
	size_t count;
	struct history *histories; /* by object */
	struct read *reads;
	size_t read_count, room; /* in histories and reads */
	weir_error *error;
};

/* Stands for effects that no object names. */
static const char nameless = 0;

static enum weir_status no_memory(const struct walk *w)
{
	return weiri_fail(w->error, WEIR_RESOURCE_EXHAUSTED, "no memory for control edges");
}

/* -- what nodes touch -------------------------------------------------------------------------- */

static bool touches(const weir_node *node, size_t i, struct weiri_resource *resource)
{
	return node->op->touches != NULL && node->op->touches(node, i, resource);
}

static bool writes(const weir_node *node)
{
	struct weiri_resource resource;

	for (size_t i = 0; touches(node, i, &resource); i++) {
		if (resource.writes)
			return true;
	}
	return false;
}

/* A critical section runs always, because its nodes may exclude those of others. */
static bool must_run(const weir_node *node)
{
	return !node->exempt && ((node->op->traits & WEIRI_OP_LEAVES) != 0 || writes(node));
}

typedef enum weir_status visit_fn(struct walk *w, const struct item *item, const struct weiri_resource *resource);

static enum weir_status visit_node(struct walk *w, const struct item *item, const weir_node *node, visit_fn *visit)
{
	enum weir_status status = WEIR_OK;
	struct weiri_resource resource;

	for (size_t i = 0; status == WEIR_OK && touches(node, i, &resource); i++)
		status = visit(w, item, &resource);
	return status;
}

static enum weir_status visit_section(struct walk *w, weir_node *exit, visit_fn *visit)
{
	struct item item = {weiri_section_entrance(exit), exit};
	enum weir_status status = visit_node(w, &item, item.first, visit);

	for (struct weiri_published *link = weiri_published_first(&exit->controls); status == WEIR_OK && link != NULL;
	     link = link->next)
		status = visit_node(w, &item, weiri_control_of(link)->before, visit);
	return status;
}

/* Calls visit() for each object of each item, in the order of the items. */
static enum weir_status for_each(struct walk *w, visit_fn *visit)
{
	enum weir_status status = WEIR_OK;

	for (size_t i = 0; status == WEIR_OK && i < w->count; i++) {
		weir_node *node = w->order[i];
		uint32_t number;

		if (node->exempt || !weiri_node_map_find(&w->running, node, &number))
			continue;
		if ((node->op->traits & WEIRI_OP_LEAVES) != 0)
			status = visit_section(w, node, visit);
		else if ((node->op->traits & WEIRI_OP_ENTERS) == 0 && weiri_section_entrance(node) == NULL)
			status = visit_node(w, &(struct item){node, node}, node, visit);
	}
	return status;
}

/* -- edges ------------------------------------------------------------------------------------- */

static enum weir_status add_edge(struct walk *w, weir_node *before, weir_node *after)
{
	enum weir_status status;

	if (before == NULL || before == after)
		return WEIR_OK;
	status = weir_graph_add_control(w->graph, before, after, w->error);
	/* Between nodes of one body, only a cycle is refused like this: the nodes have an order. */
	return status == WEIR_INVALID_ARGUMENT ? WEIR_OK : status;
}

static struct history *history_of(struct walk *w, const struct weiri_resource *resource)
{
	const void *key = resource->object != NULL ? resource->object : &nameless;
	uint32_t number = 0;

	(void)weiri_node_map_find(&w->objects, (const weir_node *)key, &number);
	return &w->histories[number];
}

static enum weir_status order(struct walk *w, const struct item *item, const struct weiri_resource *resource)
{
	struct history *history = history_of(w, resource);
	enum weir_status status = WEIR_OK;

	if (history->written != item->last)
		status = add_edge(w, history->written, item->first);
	if (!resource->writes) {
		w->reads[w->read_count] = (struct read){item->last, history->reads};
		history->reads = (uint32_t)w->read_count++;
		return status;
	}
	for (uint32_t i = history->reads; status == WEIR_OK && i != NONE; i = w->reads[i].next) {
		if (w->reads[i].node != item->last)
			status = add_edge(w, w->reads[i].node, item->first);
	}
	history->reads = NONE;
	history->written = item->last;
	return status;
}

/* -- collecting -------------------------------------------------------------------------------- */

static enum weir_status count_object(struct walk *w, const struct item *item, const struct weiri_resource *resource)
{
	const void *key = resource->object != NULL ? resource->object : &nameless;

	(void)item;
	w->room++;
	return weiri_node_map_add(&w->objects, (weir_node *)(uintptr_t)key) ? WEIR_OK : no_memory(w);
}

static enum weir_status note_object(struct walk *w, const struct item *item, const struct weiri_resource *resource)
{
	struct weiri_resource *noted = &w->effects->resources[history_of(w, resource) - w->histories];

	(void)item;
	resource = resource->writes || noted->kind == NULL ? resource : noted;
	*noted = *resource;
	return WEIR_OK;
}

static void *array(struct walk *w, size_t count, size_t size)
{
	return weiri_allocate_zeroed(&w->graph->allocator, (count + 1) * size, WEIRI_LAYOUT_ALIGNMENT);
}

static void free_array(const weir_allocator *allocator, void *at, size_t count, size_t size)
{
	weiri_release(allocator, at, (count + 1) * size, WEIRI_LAYOUT_ALIGNMENT);
}

/* The list of nodes has the newest first. */
static enum weir_status take_order(struct walk *w)
{
	size_t at;

	w->count = weir_graph_node_count(w->graph);
	w->order = array(w, w->count, sizeof(weir_node *));
	w->effects->must_run = array(w, w->count, sizeof(weir_node *));
	w->effects->node_count = w->count;
	if (w->order == NULL || w->effects->must_run == NULL)
		return no_memory(w);
	at = w->count;
	for (struct weiri_published *link = weiri_published_first(&w->graph->nodes); link != NULL && at > 0;
	     link = link->next)
		w->order[--at] = WEIRI_CONTAINER_OF(link, weir_node, link);
	return WEIR_OK;
}

static enum weir_status find_running(struct walk *w, const weir_output results[], size_t result_count)
{
	bool ok = true;

	for (size_t i = 0; ok && i < result_count; i++)
		ok = weiri_node_map_add(&w->running, results[i].node);
	for (size_t i = 0; ok && i < w->count; i++) {
		if (!must_run(w->order[i]))
			continue;
		w->effects->must_run[w->effects->must_run_count++] = w->order[i];
		ok = weiri_node_map_add(&w->running, w->order[i]);
	}
	return ok && weiri_node_map_add_ancestors(&w->running) ? WEIR_OK : no_memory(w);
}

static enum weir_status make_room(struct walk *w)
{
	w->histories = array(w, w->objects.count, sizeof(struct history));
	w->reads = array(w, w->room, sizeof(struct read));
	w->effects->resources = array(w, w->objects.count, sizeof(struct weiri_resource));
	w->effects->resource_room = w->objects.count;
	w->effects->resource_count = w->objects.count;
	if (w->histories == NULL || w->reads == NULL || w->effects->resources == NULL)
		return no_memory(w);
	for (size_t i = 0; i < w->objects.count; i++)
		w->histories[i].reads = NONE;
	return WEIR_OK;
}

enum weir_status weiri_effects_order(weir_graph *body, const weir_output results[], size_t result_count,
                                     struct weiri_effects *effects, weir_error *error)
{
	struct walk w = {.graph = body, .effects = effects, .error = error};
	enum weir_status status;

	(void)memset(effects, 0, sizeof(*effects));
	effects->allocator = body->allocator;
	weiri_node_map_init(&w.running, &body->allocator);
	weiri_node_map_init(&w.objects, &body->allocator);
	status = take_order(&w);
	if (status == WEIR_OK)
		status = find_running(&w, results, result_count);
	if (status == WEIR_OK)
		status = for_each(&w, count_object);
	if (status == WEIR_OK)
		status = make_room(&w);
	if (status == WEIR_OK)
		status = for_each(&w, note_object);
	if (status == WEIR_OK)
		status = for_each(&w, order);
	free_array(&body->allocator, w.order, w.count, sizeof(weir_node *));
	free_array(&body->allocator, w.histories, w.objects.count, sizeof(struct history));
	free_array(&body->allocator, w.reads, w.room, sizeof(struct read));
	weiri_node_map_fini(&w.objects);
	weiri_node_map_fini(&w.running);
	return status;
}

void weiri_effects_fini(struct weiri_effects *effects)
{
	free_array(&effects->allocator, effects->must_run, effects->node_count, sizeof(weir_node *));
	free_array(&effects->allocator, effects->resources, effects->resource_room, sizeof(struct weiri_resource));
}
