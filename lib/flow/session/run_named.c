/*
 * run_named.c - weir_session_run_named: looks names up, then runs.
 */
#include "base/error.h"
#include "base/memory.h"
#include "graph/layout.h"
#include "session/session.h"

struct names {
	const struct weir_named_feed *feeds;
	size_t feed_count;
	const char *const *fetches;
	size_t fetch_count;
	const char *const *targets;
	size_t target_count;
};

/* The arguments for weir_session_run(): one allocation, which begins with this struct. */
struct resolved {
	struct weir_feed *feeds;
	weir_output *fetches;
	weir_node **targets;
	size_t bytes;
};

static enum weir_status check_arguments(const weir_session *session, const struct names *names, weir_error *error)
{
	const char *missing = NULL;

	if (session == NULL)
		missing = "session";
	else if (names->feeds == NULL && names->feed_count > 0)
		missing = "feeds";
	else if (names->fetches == NULL && names->fetch_count > 0)
		missing = "fetches";
	else if (names->targets == NULL && names->target_count > 0)
		missing = "targets";
	return missing == NULL ? WEIR_OK
	                       : weiri_fail(error, WEIR_INVALID_ARGUMENT, "weir_session_run_named: %s is NULL", missing);
}

static struct resolved *allocate_resolved(const weir_allocator *allocator, const struct names *names)
{
	struct weiri_layout layout = {0};
	size_t at_head = weiri_layout_add(&layout, 1, sizeof(struct resolved));
	size_t at_feeds = weiri_layout_add(&layout, names->feed_count, sizeof(struct weir_feed));
	size_t at_fetches = weiri_layout_add(&layout, names->fetch_count, sizeof(weir_output));
	size_t at_targets = weiri_layout_add(&layout, names->target_count, sizeof(weir_node *));
	void *block = weiri_allocate(allocator, layout.size, WEIRI_LAYOUT_ALIGNMENT);
	struct resolved *resolved;

	if (block == NULL)
		return NULL;
	resolved = weiri_layout_at(block, at_head);
	resolved->feeds = weiri_layout_at(block, at_feeds);
	resolved->fetches = weiri_layout_at(block, at_fetches);
	resolved->targets = weiri_layout_at(block, at_targets);
	resolved->bytes = layout.size;
	return resolved;
}

static enum weir_status refuse(weir_error *error, enum weir_status status, const char *what, size_t i, const char *why)
{
	return weiri_fail(error, status, "weir_session_run_named: %s %zu: %s", what, i, why);
}

static enum weir_status resolve_output(weir_graph *graph, const char *what, size_t i, const char *name,
                                       weir_output *out, weir_error *error)
{
	weir_error inner;
	enum weir_status status;

	if (name == NULL)
		return refuse(error, WEIR_INVALID_ARGUMENT, what, i, "the name is NULL");
	status = weiri_graph_output(graph, name, out, &inner);
	return status == WEIR_OK ? WEIR_OK : refuse(error, status, what, i, inner.message);
}

static enum weir_status resolve_target(weir_graph *graph, size_t i, const char *name, weir_node **out,
                                       weir_error *error)
{
	if (name == NULL)
		return refuse(error, WEIR_INVALID_ARGUMENT, "target", i, "the name is NULL");
	if (weir_graph_find(graph, name, out, NULL) == WEIR_OK)
		return WEIR_OK;
	return weiri_fail(error, WEIR_NOT_FOUND, "weir_session_run_named: target %zu: the graph has no node \"%s\"", i,
	                  name);
}

static enum weir_status resolve(weir_graph *graph, const struct names *names, struct resolved *resolved,
                                weir_error *error)
{
	enum weir_status status = WEIR_OK;

	for (size_t i = 0; status == WEIR_OK && i < names->feed_count; i++) {
		resolved->feeds[i].value = names->feeds[i].value;
		status = resolve_output(graph, "feed", i, names->feeds[i].name, &resolved->feeds[i].output, error);
	}
	for (size_t i = 0; status == WEIR_OK && i < names->fetch_count; i++)
		status = resolve_output(graph, "fetch", i, names->fetches[i], &resolved->fetches[i], error);
	for (size_t i = 0; status == WEIR_OK && i < names->target_count; i++)
		status = resolve_target(graph, i, names->targets[i], &resolved->targets[i], error);
	return status;
}

static enum weir_status run_resolved(weir_session *session, const struct names *names, weir_tensor *results[],
                                     uint64_t deadline_ns, weir_cancel *cancel, weir_error *error)
{
	struct resolved *resolved = allocate_resolved(&session->allocator, names);
	enum weir_status status;

	if (resolved == NULL)
		return weiri_fail(error, WEIR_RESOURCE_EXHAUSTED, "weir_session_run_named: no memory");
	status = resolve(session->graph, names, resolved, error);
	if (status == WEIR_OK)
		status = weir_session_run(session, resolved->feeds, names->feed_count, resolved->fetches, names->fetch_count,
		                          results, resolved->targets, names->target_count, deadline_ns, cancel, error);
	weiri_release(&session->allocator, resolved, resolved->bytes, WEIRI_LAYOUT_ALIGNMENT);
	return status;
}

enum weir_status weir_session_run_named(weir_session *session, const struct weir_named_feed feeds[], size_t feed_count,
                                        const char *const fetches[], size_t fetch_count, weir_tensor *results[],
                                        const char *const targets[], size_t target_count, uint64_t deadline_ns,
                                        weir_cancel *cancel, weir_error *error)
{
	struct names names = {feeds, feed_count, fetches, fetch_count, targets, target_count};
	enum weir_status status = check_arguments(session, &names, error);

	if (status != WEIR_OK)
		return status;
	/* A call inside the gate keeps the session from being destroyed, and so the graph too. */
	if (!weiri_gate_enter(&session->gate))
		return weiri_session_refuse(session, "weir_session_run_named", error);
	status = run_resolved(session, &names, results, deadline_ns, cancel, error);
	weiri_gate_leave(&session->gate);
	return status;
}
