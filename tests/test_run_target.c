/*
 * test_run_target.c - queue runners whose step runs a node of a graph.
 */
#include <weir/coordinator.h>
#include <weir/queue_runner.h>

#include "failing_allocator.h"
#include "graph_kit.h"

static enum weir_status join(weir_coordinator *coordinator, weir_error *error)
{
	return weir_coordinator_join(coordinator, weir_deadline_in(KIT_PATIENCE_NS), WEIR_COORDINATOR_GRACE_NS, 0, error);
}

/* A graph that moves squares from one queue to another, and a queue runner that runs it. */
struct line {
	weir_graph *graph;
	weir_session *session;
	weir_tensor_queue *from, *to;
	struct weir_session_target move;
	weir_queue_runner *runner;
};

static void open_line(struct line *line, size_t capacity, size_t threads)
{
	struct weir_queue_runner_step step = {weir_session_run_target, &line->move, "move"};
	struct weir_queue_runner_options options = {WEIR_QUEUE_RUNNER_OPTIONS_INIT, .steps = &step, .step_count = 1,
	                                            .threads_per_step = threads};
	weir_output taken, square;

	line->graph = kit_graph();
	line->from = kit_queue("from", 100, WEIR_F32, &weir_shape_scalar);
	line->to = kit_queue("to", capacity, WEIR_F32, &weir_shape_scalar);
	cr_assert_eq(weir_op_dequeue(line->graph, "take", line->from, &taken, 1, NULL, NULL), WEIR_OK);
	cr_assert_eq(weir_op_square(line->graph, NULL, taken, &square, NULL), WEIR_OK);
	cr_assert_eq(weir_op_enqueue(line->graph, "put", line->to, &square, 1, &line->move.target, NULL), WEIR_OK);
	line->session = kit_session(line->graph, 1);
	line->move.session = line->session;
	weir_tensor_queue_bind_runner(line->to, &options);
	cr_assert_eq(weir_queue_runner_create(&options, &line->runner, NULL), WEIR_OK);
}

static void start(struct line *line, weir_coordinator *coordinator)
{
	weir_error error;

	cr_assert_eq(weir_queue_runner_start(line->runner, coordinator, &error), WEIR_OK, "%s", error.message);
}

static void put(struct line *line, int count)
{
	for (int i = 1; i <= count; i++) {
		weir_tensor *value = kit_f32((float)i);

		cr_assert_eq(weir_tensor_queue_enqueue(line->from, &value, 1, weir_deadline_in(KIT_PATIENCE_NS), NULL, NULL),
		             WEIR_OK);
		weir_tensor_release(value);
	}
}

/* Returns the next item, or 0 if the status is not WEIR_OK. */
static float take(struct line *line, enum weir_status *status)
{
	weir_tensor *value = NULL;
	float number = 0;

	*status = weir_tensor_queue_dequeue(line->to, &value, 1, weir_deadline_in(KIT_PATIENCE_NS), NULL, NULL);
	if (*status == WEIR_OK)
		number = kit_f32_at(value, 0);
	weir_tensor_release(value);
	return number;
}

static void close_line(struct line *line)
{
	cr_assert_eq(weir_queue_runner_join(line->runner, weir_deadline_in(KIT_PATIENCE_NS)), WEIR_OK);
	cr_assert_eq(weir_queue_runner_destroy(line->runner, NULL), WEIR_OK);
	kit_end(line->session, line->graph);
	kit_queue_end(line->from);
	kit_queue_end(line->to);
}

Test(run_target, the_end_of_the_input_closes_the_queue_that_the_node_fills)
{
	for (size_t threads = 1; threads <= 3; threads += 2) {
		struct line line;
		enum weir_status status = WEIR_OK;
		float sum = 0;
		int count = 0;

		open_line(&line, 2, threads);
		start(&line, NULL);
		put(&line, 10);
		cr_assert_eq(weir_tensor_queue_close(line.from, WEIR_CLOSE_DRAIN, NULL), WEIR_OK);
		while (status == WEIR_OK) {
			sum += take(&line, &status);
			count += status == WEIR_OK;
		}
		cr_expect_eq(status, WEIR_OUT_OF_RANGE);
		cr_expect_eq(count, 10);
		cr_expect_eq(sum, 385.0f);
		cr_expect_eq(weir_queue_runner_error_count(line.runner), 0);
		close_line(&line);
	}
}

static int one_waits(void *context)
{
	struct line *line = context;

	return weir_tensor_queue_size_approx(line->from) == 0 && weir_tensor_queue_size_approx(line->to) == 1;
}

Test(run_target, a_stop_ends_a_step_that_waits_for_room)
{
	weir_coordinator *coordinator = NULL;
	enum weir_status status;
	struct line line;
	weir_error error;

	open_line(&line, 1, 1);
	cr_assert_eq(weir_coordinator_create(NULL, &coordinator, NULL), WEIR_OK);
	start(&line, coordinator);
	put(&line, 2);
	kit_wait_for(one_waits, &line, "a step that waits for room");
	cr_assert_eq(weir_coordinator_request_stop(coordinator, NULL), WEIR_OK);
	cr_expect_eq(join(coordinator, &error), WEIR_OK, "%s", error.message);
	cr_expect_eq(take(&line, &status), 1.0f);
	(void)take(&line, &status);
	cr_expect_eq(status, WEIR_OUT_OF_RANGE);
	close_line(&line);
	cr_assert_eq(weir_coordinator_destroy(coordinator, NULL), WEIR_OK);
}

/* A step may be under way when the session closes, or not. */
Test(run_target, a_session_that_closes_is_the_end_of_the_input)
{
	for (int before = 0; before <= 1; before++) {
		weir_coordinator *coordinator = NULL;
		struct line line;
		weir_error error;

		open_line(&line, 1, 1);
		cr_assert_eq(weir_coordinator_create(NULL, &coordinator, NULL), WEIR_OK);
		if (before)
			cr_assert_eq(weir_session_close(line.session, NULL), WEIR_OK);
		start(&line, coordinator);
		if (!before) {
			put(&line, 2);
			kit_wait_for(one_waits, &line, "a step that waits for room");
			cr_assert_eq(weir_session_close(line.session, NULL), WEIR_OK);
		}
		cr_expect_eq(join(coordinator, &error), WEIR_OK, "%s", error.message);
		cr_expect_not(weir_coordinator_should_stop(coordinator));
		cr_expect(weir_tensor_queue_closed(line.to));
		close_line(&line);
		cr_assert_eq(weir_coordinator_destroy(coordinator, NULL), WEIR_OK);
	}
}

Test(run_target, an_error_of_the_node_stops_the_coordinator_with_its_name)
{
	weir_coordinator *coordinator = NULL;
	weir_shape pair = kit_shape(1, 2);
	struct line line;
	weir_error error;
	weir_output x;

	open_line(&line, 1, 1);
	x = kit_placeholder(line.graph, "x", WEIR_F32, pair);
	cr_assert_eq(weir_op_square(line.graph, "square", x, &x, NULL), WEIR_OK);
	line.move.target = x.node;
	cr_assert_eq(weir_coordinator_create(NULL, &coordinator, NULL), WEIR_OK);
	start(&line, coordinator);
	cr_expect_eq(join(coordinator, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_not_null(strstr(error.message, "placeholder \"x\""), "%s", error.message);
	close_line(&line);
	cr_assert_eq(weir_coordinator_destroy(coordinator, NULL), WEIR_OK);
}

Test(run_target, a_precondition_that_fails_in_an_open_session_stays_an_error)
{
	struct weir_var_options options = {WEIR_VAR_OPTIONS_INIT, .name = "v", .dtype = WEIR_F32,
	                                   .shape = &weir_shape_scalar};
	struct weir_session_target what;
	weir_graph *graph = kit_graph();
	weir_var *var = NULL;
	weir_output read;
	weir_error error;

	cr_assert_eq(weir_var_create(NULL, &options, &var, NULL), WEIR_OK);
	cr_assert_eq(weir_op_read(graph, "read", var, &read, NULL), WEIR_OK);
	what = (struct weir_session_target){kit_session(graph, 0), read.node};
	cr_expect_eq(weir_session_run_target(&what, NULL, &error), WEIR_FAILED_PRECONDITION);
	cr_expect_not_null(strstr(error.message, "\"read\""), "%s", error.message);
	cr_assert_eq(weir_session_close(what.session, NULL), WEIR_OK);
	cr_expect_eq(weir_session_run_target(&what, NULL, &error), WEIR_CANCELLED);
	kit_end(what.session, graph);
	weir_var_destroy(var, NULL);
}

Test(run_target, what_is_missing_is_named)
{
	struct line line;
	struct weir_session_target no_session, no_target;
	weir_error error;

	open_line(&line, 1, 1);
	no_session = no_target = line.move;
	no_session.session = NULL;
	no_target.target = NULL;
	cr_expect_eq(weir_session_run_target(NULL, NULL, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_str_eq(error.message, "weir_session_run_target: session_target is NULL");
	cr_expect_eq(weir_session_run_target(&no_session, NULL, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_str_eq(error.message, "weir_session_run_target: session is NULL");
	cr_expect_eq(weir_session_run_target(&no_target, NULL, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_str_eq(error.message, "weir_session_run_target: target is NULL");
	close_line(&line);
}

/* -- weir_queue_runner_from_nodes --------------------------------------------------------------- */

/* Two nodes fill one queue, each on two threads; each moves what its own queue has. */
Test(run_target, a_runner_from_nodes_runs_each_and_closes_the_queue_at_the_end)
{
	enum { NODES = 2, ITEMS = 20 };
	weir_graph *graph = kit_graph();
	weir_tensor_queue *to = kit_queue("to", 3, WEIR_F32, &weir_shape_scalar), *from[NODES];
	weir_queue_runner *runner = NULL;
	weir_error error = {WEIR_OK, ""};
	enum weir_status status = WEIR_OK;
	weir_node *nodes[NODES];
	weir_session *session;
	float sum = 0;
	int count = 0;

	for (int i = 0; i < NODES; i++) {
		weir_output taken;

		from[i] = kit_queue("from", ITEMS, WEIR_F32, &weir_shape_scalar);
		cr_assert_eq(weir_op_dequeue(graph, NULL, from[i], &taken, 1, NULL, NULL), WEIR_OK);
		cr_assert_eq(weir_op_enqueue(graph, i == 0 ? "left" : "right", to, &taken, 1, &nodes[i], NULL), WEIR_OK);
	}
	session = kit_session(graph, 1);
	cr_assert_eq(weir_queue_runner_from_nodes(session, nodes, NODES, 2, to, NULL, &runner, &error), WEIR_OK, "%s",
	             error.message);
	cr_assert_eq(weir_queue_runner_start(runner, NULL, &error), WEIR_OK, "%s", error.message);
	cr_expect_eq(weir_queue_runner_running_count(runner), 2 * NODES);
	for (int i = 0; i < NODES * ITEMS; i++) {
		weir_tensor *value = kit_f32((float)i);

		cr_assert_eq(
			weir_tensor_queue_enqueue(from[i % NODES], &value, 1, weir_deadline_in(KIT_PATIENCE_NS), NULL, NULL),
			WEIR_OK);
		weir_tensor_release(value);
	}
	for (int i = 0; i < NODES; i++)
		cr_assert_eq(weir_tensor_queue_close(from[i], WEIR_CLOSE_DRAIN, NULL), WEIR_OK);
	while (status == WEIR_OK) {
		weir_tensor *value = NULL;

		status = weir_tensor_queue_dequeue(to, &value, 1, weir_deadline_in(KIT_PATIENCE_NS), NULL, NULL);
		sum += status == WEIR_OK ? kit_f32_at(value, 0) : 0;
		count += status == WEIR_OK;
		weir_tensor_release(value);
	}
	cr_expect_eq(status, WEIR_OUT_OF_RANGE);
	cr_expect_eq(count, NODES * ITEMS);
	cr_expect_eq(sum, (float)(NODES * ITEMS * (NODES * ITEMS - 1) / 2));
	cr_assert_eq(weir_queue_runner_join(runner, weir_deadline_in(KIT_PATIENCE_NS)), WEIR_OK);
	cr_expect_eq(weir_queue_runner_error_count(runner), 0);
	cr_assert_eq(weir_queue_runner_destroy(runner, NULL), WEIR_OK);
	kit_end(session, graph);
	for (int i = 0; i < NODES; i++)
		kit_queue_end(from[i]);
	kit_queue_end(to);
}

Test(run_target, a_stop_of_a_runner_from_nodes_cancels_its_queue)
{
	weir_tensor_queue *queue = kit_queue("full", 1, WEIR_F32, &weir_shape_scalar);
	weir_coordinator *coordinator = NULL;
	weir_queue_runner *runner = NULL;
	weir_graph *graph = kit_graph();
	weir_output one = kit_constant(graph, kit_f32(1));
	weir_session *session;
	weir_error error;
	weir_node *put;

	cr_assert_eq(weir_op_enqueue(graph, "put", queue, &one, 1, &put, NULL), WEIR_OK);
	session = kit_session(graph, 1);
	cr_assert_eq(weir_coordinator_create(NULL, &coordinator, NULL), WEIR_OK);
	cr_assert_eq(weir_queue_runner_from_nodes(session, &put, 1, 0, queue, NULL, &runner, NULL), WEIR_OK);
	cr_assert_eq(weir_queue_runner_start(runner, coordinator, NULL), WEIR_OK);
	cr_expect_eq(weir_coordinator_join(coordinator, 0, 0, 0, &error), WEIR_DEADLINE_EXCEEDED);
	cr_expect_not_null(strstr(error.message, "full-put"), "its thread has the names of queue and node: %s",
	                   error.message);
	cr_assert_eq(weir_coordinator_request_stop(coordinator, NULL), WEIR_OK);
	cr_expect_eq(join(coordinator, &error), WEIR_OK, "%s", error.message);
	cr_expect(weir_tensor_queue_closed(queue));
	cr_assert_eq(weir_queue_runner_destroy(runner, NULL), WEIR_OK);
	cr_assert_eq(weir_coordinator_destroy(coordinator, NULL), WEIR_OK);
	kit_end(session, graph);
	kit_queue_end(queue);
}

static weir_queue_runner *no_runner;

static void expect_no_runner(weir_session *session, weir_node *const nodes[], size_t count, weir_tensor_queue *queue,
                             const struct weir_queue_runner_options *options, const char *message)
{
	weir_error error = {WEIR_OK, ""};

	cr_expect_eq(weir_queue_runner_from_nodes(session, nodes, count, 1, queue, options, &no_runner, &error),
	             WEIR_INVALID_ARGUMENT);
	cr_expect_not_null(strstr(error.message, message), "%s", error.message);
	cr_expect_null(no_runner);
}

Test(run_target, a_runner_from_nodes_refuses_what_it_cannot_run)
{
	struct weir_queue_runner_step step = {weir_session_run_target, NULL, NULL};
	struct weir_queue_runner_options steps = {WEIR_QUEUE_RUNNER_OPTIONS_INIT, .steps = &step, .step_count = 1};
	struct weir_queue_runner_options bound = {WEIR_QUEUE_RUNNER_OPTIONS_INIT};
	struct weir_queue_runner_options flags = {WEIR_QUEUE_RUNNER_OPTIONS_INIT, .flags = 64};
	weir_tensor_queue *queue = kit_queue("q", 1, WEIR_F32, &weir_shape_scalar);
	weir_graph *graph = kit_graph(), *other = kit_graph();
	weir_node *nodes[3] = {kit_constant(graph, kit_f32(1)).node, NULL, kit_constant(other, kit_f32(1)).node};
	weir_session *session = kit_session(graph, 0);

	weir_tensor_queue_bind_runner(queue, &bound);
	expect_no_runner(NULL, nodes, 1, queue, NULL, "session is NULL");
	expect_no_runner(session, NULL, 1, queue, NULL, "nodes is NULL");
	expect_no_runner(session, nodes, 1, NULL, NULL, "queue is NULL");
	expect_no_runner(session, nodes, 0, queue, NULL, "0 nodes, expected 1 to 1024");
	expect_no_runner(session, nodes, 2, queue, NULL, "node 1 is NULL");
	expect_no_runner(session, &nodes[2], 1, queue, NULL, "is of another graph than the session");
	expect_no_runner(session, nodes, 1, queue, &steps, "the nodes are its steps");
	expect_no_runner(session, nodes, 1, queue, &bound, "the queue decides how it is closed");
	expect_no_runner(session, nodes, 1, queue, &flags, "unknown flags");
	cr_expect_eq(weir_queue_runner_from_nodes(session, nodes, 1, WEIR_QUEUE_RUNNER_MAX_THREADS + 1, queue, NULL,
	                                          &no_runner, NULL),
	             WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_queue_runner_from_nodes(session, nodes, 1, 1, queue, NULL, NULL, NULL), WEIR_INVALID_ARGUMENT);
	kit_end(session, graph);
	cr_assert_eq(weir_graph_destroy(other, NULL), WEIR_OK);
	kit_queue_end(queue);
}

struct runner_parts {
	weir_session *session;
	weir_node *node;
	weir_tensor_queue *queue;
};

static enum weir_status make_a_runner(const weir_allocator *allocator, void *context)
{
	const struct runner_parts *parts = context;
	struct weir_queue_runner_options options = {WEIR_QUEUE_RUNNER_OPTIONS_INIT, .allocator = allocator};
	weir_queue_runner *runner = NULL;
	enum weir_status status =
		weir_queue_runner_from_nodes(parts->session, &parts->node, 1, 2, parts->queue, &options, &runner, NULL);

	cr_assert_eq(weir_queue_runner_destroy(runner, NULL), WEIR_OK);
	return status;
}

Test(run_target, a_runner_from_nodes_survives_every_allocation_failing)
{
	struct runner_parts parts = {.queue = kit_queue("q", 1, WEIR_F32, &weir_shape_scalar)};
	weir_graph *graph = kit_graph();

	parts.node = kit_constant(graph, kit_f32(1)).node;
	parts.session = kit_session(graph, 0);
	cr_expect_eq(fail_each_allocation(make_a_runner, &parts), 5, "its nodes, and what any runner allocates");
	kit_end(parts.session, graph);
	kit_queue_end(parts.queue);
}
