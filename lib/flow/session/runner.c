/*
 * runner.c - weir_queue_runner_from_nodes: a queue runner whose steps run nodes.
 *
 * The runner owns one block: the steps, which are read when it is created, and their contexts.
 */
#include "session/runner.h"

#include <stddef.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/options.h"
#include "run/runner_queue.h"
#include "session/session.h"

static enum weir_status check_nodes(const char *call, const weir_session *session, weir_node *const nodes[],
                                    size_t count, weir_error *error)
{
	for (size_t i = 0; i < count; i++) {
		if (nodes[i] == NULL)
			return weiri_fail(error, WEIR_INVALID_ARGUMENT, "%s: node %zu is NULL", call, i);
		if (nodes[i]->graph != session->graph)
			return weiri_fail(error, WEIR_INVALID_ARGUMENT, "%s: node \"%s\" is of another graph than the session",
			                  call, nodes[i]->name);
	}
	return WEIR_OK;
}

/* Reads the options. Those that the nodes and the queue decide must be 0. */
static enum weir_status check_options(const char *call, const struct weir_queue_runner_options *given,
                                      struct weir_queue_runner_options *options, weir_error *error)
{
	enum weir_status status = weiri_options_read(call, given, options, sizeof(*options), error);

	if (status != WEIR_OK)
		return status;
	if (options->steps != NULL || options->step_count != 0 || options->threads_per_step != 0)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "%s: the nodes are its steps, and options have others", call);
	if (options->close != NULL || options->cancel != NULL || options->queue != NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "%s: the queue decides how it is closed, and options do it too",
		                  call);
	return WEIR_OK;
}

static enum weir_status check_arguments(const char *call, const weir_session *session, weir_node *const nodes[],
                                        size_t count, const weir_tensor_queue *queue, weir_error *error)
{
	const char *missing = session == NULL ? "session" : nodes == NULL ? "nodes" : queue == NULL ? "queue" : NULL;

	if (missing != NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "%s: %s is NULL", call, missing);
	if (count == 0 || count > WEIR_QUEUE_RUNNER_MAX_THREADS)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "%s: %zu nodes, expected 1 to %d", call, count,
		                  WEIR_QUEUE_RUNNER_MAX_THREADS);
	return check_nodes(call, session, nodes, count, error);
}

/* Creates the runner with `count` steps at the end of the block that it is to own. */
static enum weir_status create(weir_session *session, weir_node *const nodes[], size_t count, void *block, size_t size,
                               struct weir_queue_runner_options *options, weir_queue_runner **out, weir_error *error)
{
	struct weir_session_target *targets = block;
	struct weir_queue_runner_step *steps = (struct weir_queue_runner_step *)(void *)(targets + count);

	for (size_t i = 0; i < count; i++) {
		targets[i] = (struct weir_session_target){session, nodes[i]};
		steps[i] = (struct weir_queue_runner_step){weir_session_run_target, &targets[i], nodes[i]->name};
	}
	options->steps = steps;
	options->step_count = count;
	return weiri_queue_runner_create_keeping(options, block, size, out, error);
}

enum weir_status weiri_node_runner_create(const char *call, weir_session *session, weir_node *const nodes[],
                                          size_t count, size_t threads, weir_tensor_queue *queue,
                                          const struct weir_queue_runner_options *given, bool cancels,
                                          weir_queue_runner **out, weir_error *error)
{
	struct weir_queue_runner_options options;
	enum weir_status status = check_arguments(call, session, nodes, count, queue, error);
	weir_allocator allocator;
	size_t size;
	void *block;

	if (status == WEIR_OK)
		status = check_options(call, given, &options, error);
	if (status != WEIR_OK)
		return status;
	allocator = weiri_allocator_or_default(options.allocator);
	size = count * (sizeof(struct weir_session_target) + sizeof(struct weir_queue_runner_step));
	block = weiri_allocate(&allocator, size, _Alignof(max_align_t));
	if (block == NULL)
		return weiri_fail(error, WEIR_RESOURCE_EXHAUSTED, "%s: no memory", call);
	weir_tensor_queue_bind_runner(queue, &options);
	if (!cancels)
		options.cancel = NULL;
	options.threads_per_step = threads;
	status = create(session, nodes, count, block, size, &options, out, error);
	if (status != WEIR_OK)
		weiri_release(&allocator, block, size, _Alignof(max_align_t));
	return status;
}

enum weir_status weir_queue_runner_from_nodes(weir_session *session, weir_node *const nodes[], size_t count,
                                              size_t threads, weir_tensor_queue *queue,
                                              const struct weir_queue_runner_options *options, weir_queue_runner **out,
                                              weir_error *error)
{
	return weiri_node_runner_create("weir_queue_runner_from_nodes", session, nodes, count, threads, queue, options,
	                                true, out, error);
}
