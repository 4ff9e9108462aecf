/*
 * order.c - whether there is one order of all ops that explains what they saw.
 *
 * The ops are the vertices of a graph, and an edge says that one took effect before the other:
 *
 *     it saw the end of the other, which it depends on
 *     it read a version that the other published
 *     it read a version, and the other published a later one
 *     it published a version, and the other the next one
 *     it put an item, and the other took it
 *     it entered a critical section, and the other left it after that entry; or it left the section,
 *     and the other entered next
 *     it ended before the other started
 *     it is part of the other, which ended later; or the other is part of it, and it began before
 *
 * There is such an order if and only if the graph has no cycle: then any topological order is one,
 * and in it each read sees the latest write. "Ended before" relates nearly all pairs of ops. So time
 * is a chain of vertices of its own, one for each end, and an op has an edge into the chain and one
 * out of it. Of versions, too, only neighbours are connected.
 *
 * An op that has parts, such as a call, has a second vertex, for its beginning.
 *
 * The strongly connected components (Tarjan, 1972) have all cycles. From each op of a component a
 * breadth-first search finds the shortest cycle through it, in which vertices of time count nothing.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trace.h"

enum reason {
	SAW,
	READ_FROM,
	OVERWRITTEN,
	NEXT_VERSION,
	SAME_VERSION,
	ITEM,
	SECTION,
	ENDED_BEFORE,
	STARTED_AFTER,
	TIME,
	PART
};

struct edge {
	uint32_t from, to;
	uint32_t reason;
	uint64_t what; /* the version or item */
	uint64_t object;
};

struct graph {
	const struct trace *trace;
	struct edge *edges;
	size_t edge_count, edge_room;
	uint32_t *starts; /* by vertex: its first edge, once they are sorted; one more ends the last */
	uint32_t *begins; /* by event: the vertex of its beginning */
	uint32_t vertex_count;
	uint32_t first_time; /* vertices from here on are of time */
	bool no_memory;
};

static void add_edge(struct graph *g, size_t from, size_t to, enum reason reason, uint64_t object, uint64_t what)
{
	if (g->edge_count == g->edge_room) {
		size_t room = g->edge_room != 0 ? g->edge_room * 2 : 256;
		struct edge *more = realloc(g->edges, room * sizeof(*more));

		if (more == NULL) {
			g->no_memory = true;
			return;
		}
		g->edges = more;
		g->edge_room = room;
	}
	g->edges[g->edge_count++] = (struct edge){(uint32_t)from, (uint32_t)to, reason, what, object};
}

/* -- edges ------------------------------------------------------------------------------------- */

static void add_dependencies(struct graph *g)
{
	const struct trace *trace = g->trace;

	for (size_t i = 0; i < trace->event_count; i++) {
		for (size_t d = 0; d < trace->events[i].seen_count; d++) {
			size_t seen = trace_find_event(trace, trace->events[i].seen[d]);

			if (seen != TRACE_NONE)
				add_edge(g, seen, g->begins[i], SAW, 0, 0);
		}
	}
}

/* Gives each event with parts a vertex for its beginning. */
static void add_parts(struct graph *g)
{
	const struct trace *trace = g->trace;

	for (size_t i = 0; i < trace->event_count; i++)
		g->begins[i] = (uint32_t)i;
	for (size_t i = 0; i < trace->frame_count; i++) {
		size_t outer = trace->frames[i].part_of;

		if (outer == TRACE_NONE || g->begins[outer] != outer)
			continue;
		g->begins[outer] = g->vertex_count++;
		add_edge(g, g->begins[outer], outer, PART, 0, 0);
	}
	for (size_t i = 0; i < trace->event_count; i++) {
		size_t frame = trace->events[i].frame;
		size_t outer = frame != TRACE_NONE ? trace->frames[frame].part_of : TRACE_NONE;

		if (outer == TRACE_NONE || outer == i)
			continue;
		add_edge(g, g->begins[outer], g->begins[i], PART, 0, 0);
		add_edge(g, i, outer, PART, 0, 0);
	}
}

static int compare(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

/* By object and version; the one that publishes comes before those that read. */
static int by_version(const void *a, const void *b)
{
	const struct trace_effect *x = *(const struct trace_effect *const *)a, *y = *(const struct trace_effect *const *)b;

	if (x->object != y->object)
		return compare(x->object, y->object);
	if (x->number != y->number)
		return compare(x->number, y->number);
	return -compare(x->kind, y->kind);
}

/* Puts pointers to the effects of two kinds into a new array. Returns NULL if there is no memory. */
static const struct trace_effect **effects_of(struct graph *g, uint32_t kind, uint32_t other, size_t *count)
{
	const struct trace_effect **effects = malloc((g->trace->effect_count + 1) * sizeof(*effects));

	*count = 0;
	g->no_memory |= effects == NULL;
	for (size_t i = 0; effects != NULL && i < g->trace->effect_count; i++) {
		const struct trace_effect *effect = &g->trace->effects[i];

		if ((effect->kind == kind || effect->kind == other) && effect->event != TRACE_NONE)
			effects[(*count)++] = effect;
	}
	return effects;
}

static void relate_versions(struct graph *g, const struct trace_effect *write, const struct trace_effect *effect)
{
	if (write->event == effect->event)
		return;
	if (effect->kind == WEIRI_TRACE_READ)
		add_edge(g, write->event, effect->event, READ_FROM, write->object, write->number);
	else
		add_edge(g, write->event, effect->event, write->number == effect->number ? SAME_VERSION : NEXT_VERSION,
		         write->object, effect->number);
	/* Two events cannot publish one version. */
	if (effect->kind == WEIRI_TRACE_PUBLISH && write->number == effect->number)
		add_edge(g, effect->event, write->event, SAME_VERSION, write->object, effect->number);
}

static void add_versions(struct graph *g)
{
	size_t count, reads = 0;
	const struct trace_effect **effects = effects_of(g, WEIRI_TRACE_READ, WEIRI_TRACE_PUBLISH, &count);
	const struct trace_effect *write = NULL;

	if (count != 0)
		qsort(effects, count, sizeof(*effects), by_version);
	for (size_t i = 0; i < count; i++) {
		if (i == 0 || effects[i]->object != effects[i - 1]->object) {
			write = NULL;
			reads = i;
		}
		if (write != NULL)
			relate_versions(g, write, effects[i]);
		if (effects[i]->kind != WEIRI_TRACE_PUBLISH)
			continue;
		/* Those that read since the last write read an earlier version than this one. */
		for (size_t r = reads; r < i; r++) {
			if (effects[r]->kind == WEIRI_TRACE_READ && effects[r]->event != effects[i]->event)
				add_edge(g, effects[r]->event, effects[i]->event, OVERWRITTEN, effects[i]->object, effects[r]->number);
		}
		write = effects[i];
		reads = i + 1;
	}
	free(effects);
}

static int by_item(const void *a, const void *b)
{
	const struct trace_effect *x = *(const struct trace_effect *const *)a, *y = *(const struct trace_effect *const *)b;

	return x->number != y->number ? compare(x->number, y->number) : compare(x->kind, y->kind);
}

static void add_items(struct graph *g)
{
	size_t count;
	const struct trace_effect **effects = effects_of(g, WEIRI_TRACE_PUT, WEIRI_TRACE_TAKE, &count);

	if (count != 0)
		qsort(effects, count, sizeof(*effects), by_item);
	for (size_t i = 1; i < count; i++) {
		if (effects[i]->number != 0 && effects[i - 1]->number == effects[i]->number &&
		    effects[i - 1]->kind == WEIRI_TRACE_PUT && effects[i]->kind == WEIRI_TRACE_TAKE)
			add_edge(g, effects[i - 1]->event, effects[i]->event, ITEM, effects[i]->object, effects[i]->number);
	}
	free(effects);
}

/* By section and entry; the one that enters comes before the one that leaves. */
static int by_entry(const void *a, const void *b)
{
	const struct trace_effect *x = *(const struct trace_effect *const *)a, *y = *(const struct trace_effect *const *)b;

	if (x->object != y->object)
		return compare(x->object, y->object);
	return x->number != y->number ? compare(x->number, y->number) : compare(x->kind, y->kind);
}

static void add_sections(struct graph *g)
{
	size_t count;
	const struct trace_effect **effects = effects_of(g, WEIRI_TRACE_ENTERED, WEIRI_TRACE_LEFT, &count);

	if (count != 0)
		qsort(effects, count, sizeof(*effects), by_entry);
	for (size_t i = 1; i < count; i++) {
		const struct trace_effect *before = effects[i - 1], *effect = effects[i];

		if (before->object != effect->object || before->event == effect->event)
			continue;
		add_edge(g, before->event, effect->event, SECTION, effect->object, effect->number);
		/* Two executions cannot be inside at the same time: each entry but the first comes after a leave. */
		if (effect->kind == WEIRI_TRACE_ENTERED && before->kind == WEIRI_TRACE_ENTERED)
			add_edge(g, effect->event, before->event, SECTION, effect->object, before->number);
	}
	free(effects);
}

static int by_time(const void *a, const void *b)
{
	return compare(*(const uint64_t *)a, *(const uint64_t *)b);
}

/* Returns how many of the sorted times are before `time`. */
static size_t count_before(const uint64_t times[], size_t count, uint64_t time)
{
	size_t low = 0, high = count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (times[middle] < time)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static void add_time(struct graph *g)
{
	const struct trace *trace = g->trace;
	uint64_t *times = malloc((trace->event_count + 1) * sizeof(*times));
	size_t count = 0;

	g->first_time = g->vertex_count;
	g->no_memory |= times == NULL;
	for (size_t i = 0; times != NULL && i < trace->event_count; i++) {
		if (trace->events[i].ends != 0)
			times[count++] = trace->events[i].end_ns;
	}
	if (count != 0)
		qsort(times, count, sizeof(*times), by_time);
	g->vertex_count += (uint32_t)count;
	for (size_t i = 1; i < count; i++)
		add_edge(g, g->first_time + i - 1, g->first_time + i, TIME, 0, 0);
	for (size_t i = 0; times != NULL && i < trace->event_count; i++) {
		size_t before = count_before(times, count, trace->events[i].start_ns);

		if (before != 0)
			add_edge(g, g->first_time + before - 1, g->begins[i], STARTED_AFTER, 0, 0);
		if (trace->events[i].ends != 0)
			add_edge(g, i, g->first_time + count_before(times, count, trace->events[i].end_ns), ENDED_BEFORE, 0, 0);
	}
	free(times);
}

/* Sorts the edges by the vertex from which they lead. */
static void index_edges(struct graph *g)
{
	struct edge *sorted = malloc((g->edge_count + 1) * sizeof(*sorted));

	g->starts = calloc((size_t)g->vertex_count + 2, sizeof(*g->starts));
	if (g->starts == NULL || sorted == NULL) {
		g->no_memory = true;
		free(sorted);
		return;
	}
	for (size_t i = 0; i < g->edge_count; i++)
		g->starts[g->edges[i].from + 2]++;
	for (uint32_t v = 1; v < g->vertex_count + 2; v++)
		g->starts[v] += g->starts[v - 1];
	for (size_t i = 0; i < g->edge_count; i++)
		sorted[g->starts[g->edges[i].from + 1]++] = g->edges[i];
	free(g->edges);
	g->edges = sorted;
}

/* -- cycles ------------------------------------------------------------------------------------ */

struct search {
	uint32_t *number; /* Tarjan's index plus 1; 0: not visited */
	uint32_t *low;    /* then: the component */
	uint32_t *stack, *path, *next;
	bool *on_stack;
	uint32_t *size; /* by component */
	uint32_t component_count;
};

static void close_component(struct search *s, uint32_t vertex, uint32_t *stacked)
{
	uint32_t member;

	do {
		member = s->stack[--*stacked];
		s->on_stack[member] = false;
		s->low[member] = s->component_count;
		s->size[s->component_count]++;
	} while (member != vertex);
	s->component_count++;
}

/* Finds the component of each vertex that `root` reaches; without recursion. */
static void visit(const struct graph *g, struct search *s, uint32_t root, uint32_t *visited)
{
	uint32_t depth = 0, stacked = 0;

	s->path[depth++] = root;
	s->next[root] = g->starts[root];
	s->number[root] = s->low[root] = ++*visited;
	s->stack[stacked++] = root;
	s->on_stack[root] = true;
	while (depth != 0) {
		uint32_t vertex = s->path[depth - 1];

		if (s->next[vertex] == g->starts[vertex + 1]) {
			uint32_t low = s->low[vertex];

			depth--;
			if (low == s->number[vertex])
				close_component(s, vertex, &stacked);
			else if (s->low[s->path[depth - 1]] > low)
				s->low[s->path[depth - 1]] = low;
			continue;
		}
		uint32_t to = g->edges[s->next[vertex]++].to;

		if (s->number[to] == 0) {
			s->number[to] = s->low[to] = ++*visited;
			s->next[to] = g->starts[to];
			s->stack[stacked++] = to;
			s->on_stack[to] = true;
			s->path[depth++] = to;
		} else if (s->on_stack[to] && s->number[to] < s->low[vertex]) {
			s->low[vertex] = s->number[to];
		}
	}
}

static bool is_op(const struct graph *g, uint32_t vertex)
{
	return vertex < g->trace->event_count;
}

/*
 * Finds the shortest cycle through `root` in its component: in `from`, the edge over which each
 * vertex was reached. Returns how many ops it has; SIZE_MAX if that is not less than `limit`. A
 * vertex that counts nothing goes to the front of the line.
 */
static size_t search_cycle(const struct graph *g, const struct search *s, uint32_t root, size_t limit, uint32_t from[],
                           uint32_t line[], uint32_t cost[])
{
	/* The line grows at both ends, and no vertex enters it more than twice. */
	size_t front = 2u * g->vertex_count + 2, back = front;

	(void)memset(cost, 0xff, g->vertex_count * sizeof(cost[0]));
	line[back++] = root;
	cost[root] = 0;
	while (front != back) {
		uint32_t vertex = line[front++];

		if (cost[vertex] >= limit)
			return SIZE_MAX;
		for (uint32_t e = g->starts[vertex]; e < g->starts[vertex + 1]; e++) {
			uint32_t to = g->edges[e].to;
			uint32_t more = cost[vertex] + is_op(g, to);

			if (s->low[to] != s->low[root])
				continue;
			if (to == root) {
				from[root] = e;
				return more;
			}
			if (cost[to] <= more)
				continue;
			cost[to] = more;
			from[to] = e;
			if (is_op(g, to))
				line[back++] = to;
			else
				line[--front] = to;
		}
	}
	return SIZE_MAX;
}

static const char *name_of(const struct trace *trace, uint64_t object)
{
	const struct trace_object *found = trace_object_of(trace, object);

	return found != NULL ? found->name : "?";
}

/* Writes how the op relates to the next one of the cycle. */
static void describe_edge(const struct graph *g, const struct edge *edge, char text[], size_t size)
{
	const char *name = name_of(g->trace, edge->object);

	switch ((enum reason)edge->reason) {
	case SAW: (void)snprintf(text, size, "was seen to have ended by"); return;
	case READ_FROM:
		(void)snprintf(text, size, "published version %" PRIu64 " of \"%s\", which or a later one was read by",
		               edge->what, name);
		return;
	case OVERWRITTEN:
		(void)snprintf(text, size, "read version %" PRIu64 " of \"%s\", before the one that was published by",
		               edge->what, name);
		return;
	case NEXT_VERSION:
		(void)snprintf(text, size, "published the version of \"%s\" before %" PRIu64 ", which was published by", name,
		               edge->what);
		return;
	case SAME_VERSION:
		(void)snprintf(text, size, "published version %" PRIu64 " of \"%s\", as did", edge->what, name);
		return;
	case ITEM: (void)snprintf(text, size, "put item %" PRIx64 " into \"%s\", for", edge->what, name); return;
	case SECTION: (void)snprintf(text, size, "was in section \"%s\" before, or together with,", name); return;
	case PART: (void)snprintf(text, size, "contains, or is part of,"); return;
	case ENDED_BEFORE:
	case STARTED_AFTER:
	case TIME: break;
	}
	(void)snprintf(text, size, "ended before the start of");
}

static void print_cycle(const struct graph *g, uint32_t root, const uint32_t from[], uint32_t line[],
                        trace_report_fn *report, void *context)
{
	char text[TRACE_TEXT_SIZE], why[TRACE_TEXT_SIZE], out[2 * TRACE_TEXT_SIZE + 8];
	size_t count = 0;
	uint32_t vertex = root;

	do {
		line[count++] = from[vertex];
		vertex = g->edges[from[vertex]].from;
	} while (vertex != root);
	report(context, "no order explains what these ops saw:");
	while (count-- > 0) {
		const struct edge *edge = &g->edges[line[count]];

		if (edge->from >= g->first_time || (!is_op(g, edge->from) && edge->reason == PART))
			continue;
		/* The beginning of an op with parts is not an op of its own. */
		if (!is_op(g, edge->from))
			continue;
		(void)trace_describe(g->trace, &g->trace->events[edge->from], text);
		describe_edge(g, edge, why, sizeof(why));
		(void)snprintf(out, sizeof(out), "  %s %s", text, why);
		report(context, out);
	}
	(void)trace_describe(g->trace, &g->trace->events[is_op(g, root) ? root : 0], text);
	(void)snprintf(out, sizeof(out), "  %s", text);
	report(context, out);
}

/* Prints the shortest cycle of all. Returns 1, or SIZE_MAX without memory. */
static size_t report_cycle(const struct graph *g, const struct search *s, trace_report_fn *report, void *context)
{
	enum { MOST_TRIED = 512 };
	uint32_t *from = malloc((size_t)g->vertex_count * sizeof(*from)),
			 *best = malloc((size_t)g->vertex_count * sizeof(*best));
	uint32_t *line = malloc((4 * (size_t)g->vertex_count + 4) * sizeof(*line));
	uint32_t *cost = malloc((size_t)g->vertex_count * sizeof(*cost));
	size_t limit = SIZE_MAX, tried = 0;
	uint32_t root = 0;

	if (from != NULL && best != NULL && line != NULL && cost != NULL) {
		for (uint32_t v = 0; v < g->trace->event_count && tried < MOST_TRIED; v++) {
			size_t length;

			if (s->size[s->low[v]] < 2)
				continue;
			tried++;
			length = search_cycle(g, s, v, limit, from, line, cost);
			if (length >= limit)
				continue;
			limit = length;
			root = v;
			(void)memcpy(best, from, g->vertex_count * sizeof(*best));
		}
	}
	if (limit != SIZE_MAX)
		print_cycle(g, root, best, line, report, context);
	free(from);
	free(best);
	free(line);
	free(cost);
	return limit != SIZE_MAX ? 1 : SIZE_MAX;
}

static size_t find_cycles(const struct graph *g, trace_report_fn *report, void *context)
{
	size_t n = (size_t)g->vertex_count + 1, faults = 0;
	uint32_t *block = calloc(6 * n, sizeof(*block));
	struct search s = {.on_stack = calloc(n, sizeof(bool))};
	uint32_t visited = 0;

	if (block == NULL || s.on_stack == NULL) {
		free(block);
		free(s.on_stack);
		return SIZE_MAX;
	}
	s.number = block;
	s.low = block + n;
	s.stack = block + 2 * n;
	s.path = block + 3 * n;
	s.next = block + 4 * n;
	s.size = block + 5 * n;
	for (uint32_t v = 0; v < g->vertex_count; v++) {
		if (s.number[v] == 0)
			visit(g, &s, v, &visited);
	}
	if (s.component_count != g->vertex_count)
		faults = report_cycle(g, &s, report, context);
	free(block);
	free(s.on_stack);
	return faults;
}

size_t trace_check_order(const struct trace *trace, trace_report_fn *report, void *context)
{
	struct graph g = {.trace = trace, .vertex_count = (uint32_t)trace->event_count};
	size_t faults = SIZE_MAX;

	if (trace->event_count == 0)
		return 0;
	if (trace->word_count > UINT32_MAX / 8)
		return SIZE_MAX;
	g.begins = malloc(trace->event_count * sizeof(*g.begins));
	g.no_memory = g.begins == NULL;
	if (!g.no_memory)
		add_parts(&g);
	if (!g.no_memory)
		add_dependencies(&g);
	if (!g.no_memory)
		add_versions(&g);
	if (!g.no_memory)
		add_items(&g);
	if (!g.no_memory)
		add_sections(&g);
	if (!g.no_memory)
		add_time(&g);
	if (!g.no_memory)
		index_edges(&g);
	if (!g.no_memory)
		faults = find_cycles(&g, report, context);
	free(g.begins);
	free(g.edges);
	free(g.starts);
	return faults;
}
