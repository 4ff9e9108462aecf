/*
 * serial.c - histories of snapshots and transactions: versions and real time give a graph, and the
 * history is strictly serializable exactly if all its operations can be removed in order.
 *
 * X must come before Y in three cases: Y read what X published; Y published the version after one
 * that X published or read; or X returned before Y was called. An abort must come after at least
 * one of several writes, namely those that replaced a version on which it was based. All these
 * rules demand that some operation comes earlier; none forbids that one does. It is therefore never
 * wrong to do next whatever may be done next, and one pass decides (AND/OR precedences: Moehring,
 * Skutella and Stork, SIAM J. Comput. 2004). Real time is not stored as edges. Instead, operations
 * are released in the order of their calls, up to the first return of an operation that is not
 * done.
 *
 * The operations that remain at the end contain a cycle. It is found by following, from each
 * operation, one operation for which it waits. The known order of versions makes the problem easy;
 * without it, the problem is NP-complete (Papadimitriou, JACM 1979).
 */
#include "history/versions.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define NO_OPERATION UINT32_MAX

/* Successors of operation i are to[from[i]] .. to[from[i + 1] - 1]. */
struct edges {
	uint32_t *from, *to;
};

struct graph {
	const struct history *history;
	const struct history_versions *versions;
	uint32_t count;
	struct edges all;  /* each of these predecessors is needed */
	struct edges some; /* one of these is enough */
	uint32_t *waits;   /* predecessors in `all` that are not done yet */
	uint8_t *state;
	uint32_t *by_call, *by_return;
	/* positions in by_call and by_return: everything before them is released, or done */
	uint32_t released, returned;
	uint32_t *ready, readies;
	uint32_t *order, done;
};

enum { RELEASED = 1, NEEDS_ONE = 2, DONE = 4 };

/* -- edges ------------------------------------------------------------------------------------- */

/* The first call counts (`to` is NULL), and the second call fills. */
static void add_edge(struct edges *edges, uint32_t x, uint32_t y)
{
	if (x == y)
		return;
	if (edges->to == NULL)
		edges->from[x + 1]++;
	else
		edges->to[edges->from[x]++] = y;
}

/* Finds the first write after entry i to the same variable, with a larger version. */
static void find_next_writes(const struct history_versions *versions, uint32_t next_write[])
{
	uint32_t behind = NO_OPERATION, of_version = NO_OPERATION;

	for (size_t i = versions->count; i-- > 0;) {
		const struct history_entry *entry = &versions->entry[i];

		if (i + 1 == versions->count || entry[1].object != entry->object)
			behind = of_version = NO_OPERATION;
		else if (entry[1].version != entry->version && of_version != NO_OPERATION) {
			behind = of_version;
			of_version = NO_OPERATION;
		}
		next_write[i] = behind;
		if (entry->reads == 0)
			of_version = entry->op;
	}
}

static void add_version_edges(struct graph *graph, const uint32_t next_write[])
{
	uint32_t written = NO_OPERATION;

	for (size_t i = 0; i < graph->versions->count; i++) {
		const struct history_entry *entry = &graph->versions->entry[i];

		if (i == 0 || entry[-1].object != entry->object)
			written = NO_OPERATION;
		/* Holds even if versions in between were removed. */
		if (written != NO_OPERATION)
			add_edge(&graph->all, written, entry->op);
		if (next_write[i] != NO_OPERATION)
			add_edge(&graph->all, entry->op, next_write[i]);
		if (entry->reads == 0)
			written = entry->op;
	}
}

/* Returns the write that replaced the part's version, or NO_OPERATION. */
static uint32_t overtaker(const struct graph *graph, const struct history_part *part)
{
	size_t place = history_versions_behind(graph->versions, part->object, part->before);
	const struct history_entry *entry = &graph->versions->entry[place];

	if (place < graph->versions->count && entry->reads == 0 && entry->version == part->before + 1)
		return entry->op;
	return NO_OPERATION;
}

/*
 * Adds the edges of one abort. Returns 1 if it needs one of them. In a partial history, the write
 * that aborted it may have been removed.
 */
static int add_edges_of_abort(struct graph *graph, uint32_t abort)
{
	const struct history_op *op = &graph->history->op[abort];
	const struct history_part *part = &graph->history->part[op->part];
	uint32_t known = 0;

	for (uint32_t k = 0; k < op->parts; k++)
		known += overtaker(graph, &part[k]) != NO_OPERATION;
	if (graph->history->partial && known < op->parts)
		return 0;
	for (uint32_t k = 0; k < op->parts; k++) {
		if (overtaker(graph, &part[k]) != NO_OPERATION)
			add_edge(&graph->some, overtaker(graph, &part[k]), abort);
	}
	return known != 0;
}

static enum history_verdict add_abort_edges(struct graph *graph, struct history_finding *finding)
{
	for (uint32_t i = 0; i < graph->count; i++) {
		if (graph->history->op[i].kind != HISTORY_ABORTED)
			continue;
		if (add_edges_of_abort(graph, i)) {
			graph->state[i] |= NEEDS_ONE;
		} else if (!graph->history->partial) {
			(void)history_violated(finding, "abort", "aborted although no version that it named was ever replaced");
			history_witness(finding, i);
			return HISTORY_VIOLATED;
		}
	}
	return HISTORY_HOLDS;
}

/* Called between counting and filling: turns counts into positions, and allocates the arrays. */
static int make_room(struct edges *edges, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		edges->from[i + 1] += edges->from[i];
	edges->to = malloc(((size_t)edges->from[count] + 1) * sizeof(*edges->to));
	return edges->to != NULL;
}

/* Filling has moved each position to the next one. This moves them back. */
static void move_back(struct edges *edges, uint32_t count)
{
	memmove(&edges->from[1], &edges->from[0], count * sizeof(*edges->from));
	edges->from[0] = 0;
}

static enum history_verdict build_edges(struct graph *graph, struct history_finding *finding)
{
	uint32_t *next_write = malloc((graph->versions->count + 1) * sizeof(*next_write));
	enum history_verdict verdict = next_write == NULL ? history_no_memory(finding) : HISTORY_HOLDS;

	if (verdict == HISTORY_HOLDS) {
		find_next_writes(graph->versions, next_write);
		add_version_edges(graph, next_write);
		verdict = add_abort_edges(graph, finding);
	}
	if (verdict == HISTORY_HOLDS && !(make_room(&graph->all, graph->count) && make_room(&graph->some, graph->count)))
		verdict = history_no_memory(finding);
	if (verdict == HISTORY_HOLDS) {
		add_version_edges(graph, next_write);
		verdict = add_abort_edges(graph, finding);
		move_back(&graph->all, graph->count);
		move_back(&graph->some, graph->count);
	}
	free(next_write);
	return verdict;
}

/* -- working off ------------------------------------------------------------------------------- */

static void offer(struct graph *graph, uint32_t op)
{
	if (graph->waits[op] == 0 && (graph->state[op] & (RELEASED | NEEDS_ONE)) == RELEASED)
		graph->ready[graph->readies++] = op;
}

/*
 * Releases all operations that were called no later than the first return of an operation that is
 * not done.
 */
static void release(struct graph *graph)
{
	const struct history_op *ops = graph->history->op;

	while (graph->returned < graph->count && (graph->state[graph->by_return[graph->returned]] & DONE) != 0)
		graph->returned++;
	while (graph->released < graph->count && graph->returned < graph->count &&
	       ops[graph->by_call[graph->released]].called <= ops[graph->by_return[graph->returned]].returned) {
		uint32_t op = graph->by_call[graph->released++];

		graph->state[op] |= RELEASED;
		offer(graph, op);
	}
}

static void work_off(struct graph *graph, uint32_t op)
{
	graph->state[op] |= DONE;
	graph->order[graph->done++] = op;
	for (uint32_t i = graph->all.from[op]; i < graph->all.from[op + 1]; i++) {
		uint32_t next = graph->all.to[i];

		if (--graph->waits[next] == 0)
			offer(graph, next);
	}
	for (uint32_t i = graph->some.from[op]; i < graph->some.from[op + 1]; i++) {
		uint32_t next = graph->some.to[i];

		if ((graph->state[next] & NEEDS_ONE) == 0)
			continue;
		graph->state[next] &= (uint8_t)~NEEDS_ONE;
		offer(graph, next);
	}
}

static void work_off_all(struct graph *graph)
{
	for (uint32_t i = 0; i < graph->all.from[graph->count]; i++)
		graph->waits[graph->all.to[i]]++;
	release(graph);
	while (graph->readies != 0) {
		work_off(graph, graph->ready[--graph->readies]);
		release(graph);
	}
}

/* -- what remains ------------------------------------------------------------------------------ */

static void blame(const struct graph *graph, const struct edges *edges, uint32_t blamed[])
{
	for (uint32_t x = 0; x < graph->count; x++) {
		if ((graph->state[x] & DONE) != 0)
			continue;
		for (uint32_t i = edges->from[x]; i < edges->from[x + 1]; i++)
			blamed[edges->to[i]] = x;
	}
}

/* blamed[i]: an operation for which i waits. */
static enum history_verdict report_cycle(const struct graph *graph, uint32_t blamed[], struct history_finding *finding)
{
	uint32_t slow = graph->by_return[graph->returned], fast = slow, length = 0;

	for (uint32_t i = 0; i < graph->count; i++)
		blamed[i] = NO_OPERATION;
	blame(graph, &graph->some, blamed);
	for (uint32_t i = 0; i < graph->count; i++) {
		if ((graph->state[i] & NEEDS_ONE) == 0 || (graph->state[i] & RELEASED) == 0)
			blamed[i] = graph->by_return[graph->returned];
	}
	blame(graph, &graph->all, blamed);
	do {
		slow = blamed[slow];
		fast = blamed[blamed[fast]];
	} while (slow != fast);
	do {
		fast = blamed[fast];
		length++;
	} while (fast != slow);
	(void)history_violated(finding, "order",
	                       "%" PRIu32 " operations wait for each other in a circle, so there is no order", length);
	do {
		history_witness(finding, fast);
		fast = blamed[fast];
	} while (fast != slow);
	return HISTORY_VIOLATED;
}

/* -- the whole check --------------------------------------------------------------------------- */

struct moment {
	uint64_t time;
	uint32_t op;
};

static int by_time(const void *left, const void *right)
{
	const struct moment *a = left, *b = right;

	if (a->time != b->time)
		return a->time < b->time ? -1 : 1;
	return (a->op > b->op) - (a->op < b->op);
}

static int sort_times(struct graph *graph)
{
	struct moment *moments = malloc(((size_t)graph->count + 1) * sizeof(*moments));

	if (moments == NULL)
		return 0;
	for (int returns = 0; returns <= 1; returns++) {
		uint32_t *out = returns ? graph->by_return : graph->by_call;

		for (uint32_t i = 0; i < graph->count; i++) {
			const struct history_op *op = &graph->history->op[i];

			moments[i] = (struct moment){returns ? op->returned : op->called, i};
		}
		qsort(moments, graph->count, sizeof(*moments), by_time);
		for (uint32_t i = 0; i < graph->count; i++)
			out[i] = moments[i].op;
	}
	free(moments);
	return 1;
}

static void fini_graph(struct graph *graph)
{
	free(graph->all.from);
	free(graph->all.to);
	free(graph->some.from);
	free(graph->some.to);
	free(graph->waits);
	free(graph->state);
	free(graph->by_call);
	free(graph->by_return);
	free(graph->ready);
	free(graph->order);
}

static int init_graph(struct graph *graph, const struct history *history, const struct history_versions *versions)
{
	size_t room = history->count + 2;

	*graph = (struct graph){.history = history, .versions = versions, .count = (uint32_t)history->count};
	graph->all.from = calloc(room, sizeof(uint32_t));
	graph->some.from = calloc(room, sizeof(uint32_t));
	graph->waits = calloc(room, sizeof(uint32_t));
	graph->state = calloc(room, 1);
	graph->by_call = calloc(room, sizeof(uint32_t));
	graph->by_return = calloc(room, sizeof(uint32_t));
	graph->ready = calloc(room, sizeof(uint32_t));
	graph->order = calloc(room, sizeof(uint32_t));
	return graph->all.from != NULL && graph->some.from != NULL && graph->waits != NULL && graph->state != NULL &&
	       graph->by_call != NULL && graph->by_return != NULL && graph->ready != NULL && graph->order != NULL &&
	       sort_times(graph);
}

static enum history_verdict check_graph(const struct history *history, const struct history_versions *versions,
                                        uint32_t order[], struct history_finding *finding)
{
	struct graph graph;
	enum history_verdict verdict =
		init_graph(&graph, history, versions) ? build_edges(&graph, finding) : history_no_memory(finding);

	if (verdict == HISTORY_HOLDS) {
		work_off_all(&graph);
		/* waits[] is no longer needed; report_cycle() reuses it. */
		if (graph.done < graph.count)
			verdict = report_cycle(&graph, graph.waits, finding);
		else if (order != NULL)
			memcpy(order, graph.order, history->count * sizeof(*order));
	}
	fini_graph(&graph);
	return verdict;
}

enum history_verdict history_check_serial(const struct history *history, uint64_t initial, uint32_t order[],
                                          struct history_finding *finding)
{
	struct history_versions versions;
	enum history_verdict verdict = history_versions_init(&versions, history, initial, finding);

	if (verdict == HISTORY_HOLDS)
		verdict = check_graph(history, &versions, order, finding);
	history_versions_fini(&versions);
	return verdict;
}
