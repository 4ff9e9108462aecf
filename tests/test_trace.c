/*
 * test_trace.c - what the runs of sessions record, and that the check finds it right.
 */
#include <pthread.h>
#include <stdio.h>
#include <weir/flow/callable.h>

#include "failing_allocator.h"
#include "graph_kit.h"
#include "reclaim/record.h"
#include "session/trace.h"
#include "trace_kit.h"

static weir_trace *new_trace(uint32_t flags)
{
	struct weir_trace_options options = {WEIR_TRACE_OPTIONS_INIT, .flags = flags};
	weir_trace *trace = NULL;

	cr_assert_eq(weir_trace_create(&options, &trace, NULL), WEIR_OK);
	return trace;
}

static const struct trace_event *event_of(const struct trace *trace, const char *name)
{
	for (size_t i = 0; i < trace->event_count; i++) {
		const struct trace_node *node = trace_node_of(trace, &trace->events[i]);

		if (node != NULL && strcmp(node->name, name) == 0)
			return &trace->events[i];
	}
	cr_assert_fail("no event of \"%s\"", name);
	return NULL;
}

static const struct trace_effect *effect_of(const struct trace *trace, const struct trace_event *event, uint32_t kind)
{
	for (size_t i = 0; i < event->effect_count; i++) {
		if (trace->effects[event->first_effect + i].kind == kind)
			return &trace->effects[event->first_effect + i];
	}
	cr_assert_fail("the event has no effect of kind %u", kind);
	return NULL;
}

Test(trace, an_op_is_recorded_with_what_it_saw_and_did)
{
	weir_graph *graph = kit_graph();
	weir_var *var = kit_var("w", kit_f32(1));
	weir_trace *trace = new_trace(0);
	weir_output read, sum;
	weir_session *session;
	weir_tensor *result;
	struct trace back;

	cr_assert_eq(weir_op_read(graph, "read", var, &read, NULL), WEIR_OK);
	cr_assert_eq(weir_op_assign_add(graph, "add", var, read, &sum, NULL), WEIR_OK);
	session = trace_kit_session(graph, trace, 0, 0);
	result = kit_fetch(session, sum);
	cr_expect_eq(kit_f32_at(result, 0), 2);
	weir_tensor_release(result);
	trace_kit_load(trace, &back);
	cr_assert_eq(back.event_count, 2);
	cr_assert_eq(back.frame_count, 1);
	cr_expect_eq(back.frames[0].complete, true);
	cr_expect_eq(event_of(&back, "add")->seen_count, 1);
	cr_expect_eq(event_of(&back, "add")->seen[0], event_of(&back, "read")->number);
	cr_expect_eq(event_of(&back, "read")->thread, weiri_record_my_thread());
	cr_expect_geq(event_of(&back, "add")->start_ns, event_of(&back, "read")->end_ns);
	cr_expect_eq(effect_of(&back, event_of(&back, "read"), WEIRI_TRACE_READ)->number, 1);
	cr_expect_eq(effect_of(&back, event_of(&back, "add"), WEIRI_TRACE_PUBLISH)->number, 2);
	cr_expect_str_eq(trace_object_of(&back, (uintptr_t)var)->name, "w");
	cr_expect_str_eq(trace_node_of(&back, event_of(&back, "read"))->op, "read");
	trace_free(&back);
	trace_kit_expect_right(trace);
	kit_end(session, graph);
	cr_assert_eq(weir_trace_destroy(trace, NULL), WEIR_OK);
	cr_assert_eq(weir_var_destroy(var, NULL), WEIR_OK);
}

Test(trace, items_are_told_from_one_another)
{
	static const float rows[] = {1, 2, 3};
	weir_graph *graph = kit_graph();
	weir_shape scalar = kit_shape(0);
	weir_tensor_queue *queue = kit_queue("q", 8, WEIR_F32, &scalar);
	weir_trace *trace = new_trace(0);
	weir_output x = kit_constant(graph, kit_tensor(WEIR_F32, kit_shape(1, 3), rows)), one, batch;
	weir_node *put, *take, *many;
	weir_session *session;
	struct trace back;
	weir_error error;

	cr_assert_eq(weir_op_enqueue_many(graph, "put", queue, &x, 1, &put, NULL), WEIR_OK);
	cr_assert_eq(weir_op_dequeue(graph, "take", queue, &one, 1, &take, NULL), WEIR_OK);
	cr_assert_eq(weir_op_dequeue_many(graph, "many", queue, kit_constant(graph, kit_i64(2)), &batch, 1, &many, NULL),
	             WEIR_OK);
	session = trace_kit_session(graph, trace, 1, 0);
	cr_assert_eq(kit_run_target(session, put, NULL), WEIR_OK);
	cr_assert_eq(kit_run_target(session, take, &error), WEIR_OK, "%s", error.message);
	cr_assert_eq(kit_run_target(session, many, NULL), WEIR_OK);
	trace_kit_load(trace, &back);
	cr_expect_eq(event_of(&back, "put")->effect_count, 3);
	cr_expect_eq(event_of(&back, "many")->effect_count, 2);
	cr_expect_eq(effect_of(&back, event_of(&back, "take"), WEIRI_TRACE_TAKE)->number,
	             effect_of(&back, event_of(&back, "put"), WEIRI_TRACE_PUT)->number);
	cr_expect_neq(effect_of(&back, event_of(&back, "many"), WEIRI_TRACE_TAKE)->number,
	              effect_of(&back, event_of(&back, "take"), WEIRI_TRACE_TAKE)->number);
	trace_free(&back);
	trace_kit_expect_right(trace);
	kit_end(session, graph);
	kit_queue_end(queue);
	cr_assert_eq(weir_trace_destroy(trace, NULL), WEIR_OK);
}

/* The id of the second trace is 256 more than that of the first. */
Test(trace, an_item_that_another_trace_knows_is_not_known)
{
	enum { BETWEEN = 255 };
	weir_trace *traces[2] = {new_trace(0), NULL};
	struct kit_line line;
	weir_session *sessions[2];
	struct weir_feed feed;
	struct trace back;

	kit_open_line(&line, kit_queue("q", 4, WEIR_F32, NULL), WEIR_F32, 1);
	for (int i = 0; i < BETWEEN; i++)
		cr_assert_eq(weir_trace_destroy(new_trace(0), NULL), WEIR_OK);
	traces[1] = new_trace(0);
	cr_assert_eq(traces[1]->buffers.id - traces[0]->buffers.id, BETWEEN + 1);
	for (int i = 0; i < 2; i++)
		sessions[i] = trace_kit_session(line.graph, traces[i], 0, 0);
	feed = (struct weir_feed){line.x, kit_f32(3)};
	cr_assert_eq(weir_session_run(sessions[0], &feed, 1, NULL, 0, NULL, &line.put, 1, WEIR_NO_DEADLINE, NULL, NULL),
	             WEIR_OK);
	weir_tensor_release(feed.value);
	cr_expect_eq(kit_fetch_f32(sessions[1], line.taken), 3);
	trace_kit_load(traces[1], &back);
	cr_expect_eq(effect_of(&back, event_of(&back, "take"), WEIRI_TRACE_TAKE)->number, 0);
	trace_free(&back);
	for (int i = 0; i < 2; i++) {
		trace_kit_expect_right(traces[i]);
		cr_assert_eq(weir_session_destroy(sessions[i], NULL), WEIR_OK);
		cr_assert_eq(weir_trace_destroy(traces[i], NULL), WEIR_OK);
	}
	kit_end(line.session, line.graph);
	kit_queue_end(line.queue);
}

Test(trace, an_op_that_waits_ends_on_another_thread)
{
	struct kit_line line;
	weir_trace *trace = new_trace(WEIR_TRACE_CHECKSUMS);
	weir_session *session;
	weir_output twice;
	weir_node *take;
	struct weir_feed feed;
	weir_error error;
	uint64_t soon;

	kit_open_line(&line, kit_queue("q", 1, WEIR_F32, NULL), WEIR_F32, 1);
	cr_assert_eq(weir_op_add(line.graph, "twice", line.taken, line.taken, &twice, NULL), WEIR_OK);
	session = trace_kit_session(line.graph, trace, 2, 0);
	cr_assert_eq(weir_graph_find(line.graph, "take", &take, NULL), WEIR_OK);
	/* The queue is empty: the run ends by its deadline. Then there is an item. */
	soon = weir_deadline_in(2000000);
	cr_expect_eq(weir_session_run(session, NULL, 0, NULL, 0, NULL, &take, 1, soon, NULL, &error),
	             WEIR_DEADLINE_EXCEEDED);
	feed = (struct weir_feed){line.x, kit_f32(3)};
	cr_assert_eq(weir_session_run(session, &feed, 1, NULL, 0, NULL, &line.put, 1, WEIR_NO_DEADLINE, NULL, NULL),
	             WEIR_OK);
	weir_tensor_release(feed.value);
	cr_expect_eq(kit_fetch_f32(session, twice), 6);
	trace_kit_expect_right(trace);
	cr_assert_eq(weir_session_destroy(session, NULL), WEIR_OK);
	kit_end(line.session, line.graph);
	kit_queue_end(line.queue);
	cr_assert_eq(weir_trace_destroy(trace, NULL), WEIR_OK);
}

enum { STEPS = 40, CALLERS = 3 };

struct caller {
	pthread_t thread;
	weir_session *session;
	weir_output fetch;
};

static void *call_often(void *context)
{
	struct caller *caller = context;

	for (int i = 0; i < STEPS; i++) {
		weir_tensor *result = NULL;
		weir_error error;

		if (weir_session_run(caller->session, NULL, 0, &caller->fetch, 1, &result, NULL, 0, WEIR_NO_DEADLINE, NULL,
		                     &error) == WEIR_OK)
			weir_tensor_release(result);
	}
	return NULL;
}

Test(trace, steps_of_many_threads_on_one_variable_have_an_order)
{
	weir_graph *graph = kit_graph();
	weir_var *var = kit_var("w", kit_f32(0));
	weir_trace *trace = new_trace(WEIR_TRACE_CHECKSUMS);
	weir_output one = kit_constant(graph, kit_f32(1)), before, sum, product, after;
	struct caller callers[CALLERS];
	weir_session *session;
	struct trace back;

	cr_assert_eq(weir_op_read(graph, "before", var, &before, NULL), WEIR_OK);
	cr_assert_eq(weir_op_assign_add(graph, "add", var, one, &sum, NULL), WEIR_OK);
	cr_assert_eq(weir_graph_add_control(graph, before.node, sum.node, NULL), WEIR_OK);
	cr_assert_eq(weir_op_mul(graph, "product", sum, before, &product, NULL), WEIR_OK);
	cr_assert_eq(weir_op_read(graph, "after", var, &after, NULL), WEIR_OK);
	cr_assert_eq(weir_graph_add_control(graph, sum.node, after.node, NULL), WEIR_OK);
	cr_assert_eq(weir_op_add(graph, "all", product, after, &after, NULL), WEIR_OK);
	session = trace_kit_session(graph, trace, 2, 7);
	for (int i = 0; i < CALLERS; i++) {
		callers[i].session = session;
		callers[i].fetch = after;
		cr_assert_eq(pthread_create(&callers[i].thread, NULL, call_often, &callers[i]), 0);
	}
	for (int i = 0; i < CALLERS; i++)
		(void)pthread_join(callers[i].thread, NULL);
	cr_expect_eq(kit_var_f32(var, 0), STEPS * CALLERS);
	cr_assert_eq(weir_session_destroy(session, NULL), WEIR_OK);
	trace_kit_load(trace, &back);
	cr_expect_eq(back.frame_count, STEPS * CALLERS);
	cr_expect_eq(back.event_count, 5 * STEPS * CALLERS);
	trace_free(&back);
	trace_kit_expect_right(trace);
	cr_assert_eq(weir_graph_destroy(graph, NULL), WEIR_OK);
	cr_assert_eq(weir_trace_destroy(trace, NULL), WEIR_OK);
	cr_assert_eq(weir_var_destroy(var, NULL), WEIR_OK);
}

Test(trace, a_step_that_fails_or_is_fed_records_what_ran)
{
	weir_graph *graph = kit_graph();
	weir_trace *trace = new_trace(0);
	weir_output x = kit_placeholder(graph, "x", WEIR_F32, kit_shape(0)), positive, twice, out;
	weir_node *check;
	weir_session *session;
	struct weir_feed feeds[2];
	struct trace back;
	weir_tensor *result = NULL;

	cr_assert_eq(weir_op_greater(graph, "positive", x, kit_constant(graph, kit_f32(0)), &positive, NULL), WEIR_OK);
	cr_assert_eq(weir_op_assert(graph, "check", positive, NULL, NULL, 0, &check, NULL), WEIR_OK);
	cr_assert_eq(weir_op_add(graph, "twice", x, x, &twice, NULL), WEIR_OK);
	cr_assert_eq(weir_op_square(graph, "out", twice, &out, NULL), WEIR_OK);
	cr_assert_eq(weir_graph_add_control(graph, check, out.node, NULL), WEIR_OK);
	session = trace_kit_session(graph, trace, 0, 0);
	feeds[0] = (struct weir_feed){x, kit_f32(-1)};
	feeds[1] = (struct weir_feed){twice, kit_f32(4)};
	cr_expect_eq(weir_session_run(session, feeds, 1, &out, 1, &result, NULL, 0, WEIR_NO_DEADLINE, NULL, NULL),
	             WEIR_INVALID_ARGUMENT);
	weir_tensor_release(feeds[0].value);
	feeds[0].value = kit_f32(1);
	cr_assert_eq(weir_session_run(session, feeds, 2, &out, 1, &result, NULL, 0, WEIR_NO_DEADLINE, NULL, NULL), WEIR_OK);
	cr_expect_eq(kit_f32_at(result, 0), 16);
	weir_tensor_release(result);
	weir_tensor_release(feeds[0].value);
	weir_tensor_release(feeds[1].value);
	trace_kit_load(trace, &back);
	cr_assert_eq(back.plan_count, 2);
	cr_expect_eq(back.plans[1].node_count, 3, "the producer of a fed value does not run");
	cr_expect_eq(back.frames[0].complete, false);
	cr_expect_eq(event_of(&back, "check")->status, WEIR_INVALID_ARGUMENT);
	trace_free(&back);
	trace_kit_expect_right(trace);
	kit_end(session, graph);
	cr_assert_eq(weir_trace_destroy(trace, NULL), WEIR_OK);
}

/* Returns the bytes by which a run of `node` makes the trace longer. */
static size_t size_of_run(weir_session *session, weir_trace *trace, weir_node *node)
{
	struct trace_file before = {NULL, 0, 0}, after = {NULL, 0, 0};

	cr_assert_eq(kit_run_target(session, node, NULL), WEIR_OK); /* describes the plan */
	cr_assert_eq(weir_trace_write(trace, trace_file_write, &before, NULL), WEIR_OK);
	cr_assert_eq(kit_run_target(session, node, NULL), WEIR_OK);
	cr_assert_eq(weir_trace_write(trace, trace_file_write, &after, NULL), WEIR_OK);
	free(before.bytes);
	free(after.bytes);
	return after.size - before.size;
}

/* Fails once; the calls after that would succeed. */
struct failing_file {
	int calls, fail_at;
};

static enum weir_status fail_once(void *context, const char *bytes, size_t size, weir_error *error)
{
	struct failing_file *file = context;

	(void)bytes, (void)size;
	cr_assert_not_null(error);
	return ++file->calls == file->fail_at ? WEIR_DATA_LOSS : WEIR_OK;
}

/* The heads of the file and of two threads, and the records of each: at least five pieces. */
Test(trace, a_writer_that_fails_ends_the_writing)
{
	struct failing_file never = {0, 0};
	weir_graph *graph = kit_graph();
	weir_trace *trace = new_trace(0);
	struct caller caller;

	cr_assert_eq(
		weir_op_add(graph, NULL, kit_constant(graph, kit_f32(1)), kit_constant(graph, kit_f32(2)), &caller.fetch, NULL),
		WEIR_OK);
	caller.session = trace_kit_session(graph, trace, 0, 0);
	cr_expect_eq(kit_fetch_f32(caller.session, caller.fetch), 3);
	cr_assert_eq(pthread_create(&caller.thread, NULL, call_often, &caller), 0);
	(void)pthread_join(caller.thread, NULL);
	cr_assert_eq(weir_trace_write(trace, fail_once, &never, NULL), WEIR_OK);
	cr_expect_geq(never.calls, 5);
	for (int fail_at = 1; fail_at <= never.calls; fail_at++) {
		struct failing_file file = {0, fail_at};
		weir_error error;

		cr_expect_eq(weir_trace_write(trace, fail_once, &file, &error), WEIR_DATA_LOSS, "call %d", fail_at);
		cr_expect_str_eq(error.message, "weir_trace_write: the writer failed: WEIR_DATA_LOSS");
		cr_expect_eq(file.calls, fail_at);
	}
	kit_end(caller.session, graph);
	cr_assert_eq(weir_trace_destroy(trace, NULL), WEIR_OK);
}

/* Two words for an op that computes; the first of a run, and one that depends on many, have more. */
Test(trace, an_op_that_computes_has_a_short_record)
{
	enum { FIRST = 9 + 7, NODES = 100 };
	weir_graph *graph = kit_graph();
	weir_trace *trace = new_trace(0), *checked = new_trace(WEIR_TRACE_CHECKSUMS);
	weir_node *nodes[NODES], *last;
	weir_session *session;

	for (int i = 0; i < NODES; i++) {
		cr_assert_eq(weir_op_no_op(graph, NULL, &nodes[i], NULL), WEIR_OK);
		if (i != 0)
			cr_assert_eq(weir_graph_add_control(graph, nodes[i - 1], nodes[i], NULL), WEIR_OK);
	}
	cr_assert_eq(weir_op_no_op(graph, NULL, &last, NULL), WEIR_OK);
	for (int i = 0; i < 3; i++)
		cr_assert_eq(weir_graph_add_control(graph, nodes[i], last, NULL), WEIR_OK);
	session = trace_kit_session(graph, trace, 0, 0);
	cr_expect_eq(size_of_run(session, trace, nodes[NODES - 1]), (FIRST + 2 * (NODES - 1)) * 8);
	cr_expect_eq(size_of_run(session, trace, last), (FIRST + 2 * 2 + 7 + 3) * 8, "it has 3 dependencies");
	cr_assert_eq(weir_session_destroy(session, NULL), WEIR_OK);
	session = trace_kit_session(graph, checked, 0, 0);
	cr_expect_eq(size_of_run(session, checked, nodes[1]), (FIRST + 8) * 8, "checksums may lie between");
	cr_assert_eq(weir_session_destroy(session, NULL), WEIR_OK);
	trace_kit_expect_right(trace);
	trace_kit_expect_right(checked);
	cr_assert_eq(weir_trace_destroy(trace, NULL), WEIR_OK);
	cr_assert_eq(weir_trace_destroy(checked, NULL), WEIR_OK);
	cr_assert_eq(weir_graph_destroy(graph, NULL), WEIR_OK);
}

/* Writes to a file, and runs the node often when the first records come. */
struct busy_file {
	struct trace_file file;
	int writes;
	weir_session *session;
	weir_node *node;
};

static enum weir_status write_and_run(void *context, const char *bytes, size_t size, weir_error *error)
{
	enum { RUNS = 60, RECORDS = 3 /* behind the head of the file, and that of the thread */ };
	struct busy_file *busy = context;

	if (++busy->writes == RECORDS) {
		for (int i = 0; i < RUNS; i++)
			cr_assert_eq(kit_run_target(busy->session, busy->node, NULL), WEIR_OK);
	}
	return trace_file_write(&busy->file, bytes, size, error);
}

/* A brief record refers to the one before it. */
Test(trace, a_trace_that_is_written_beside_runs_has_no_gap)
{
	enum { NODES = 100 };
	weir_graph *graph = kit_graph();
	weir_trace *trace = new_trace(0);
	struct busy_file early = {.file = {NULL, 0, 0}};
	struct trace_file late = {NULL, 0, 0};
	weir_node *nodes[NODES];

	for (int i = 0; i < NODES; i++) {
		cr_assert_eq(weir_op_no_op(graph, NULL, &nodes[i], NULL), WEIR_OK);
		if (i != 0)
			cr_assert_eq(weir_graph_add_control(graph, nodes[i - 1], nodes[i], NULL), WEIR_OK);
	}
	early.session = trace_kit_session(graph, trace, 0, 0);
	early.node = nodes[NODES - 1];
	cr_assert_eq(kit_run_target(early.session, early.node, NULL), WEIR_OK);
	cr_assert_eq(weir_trace_write(trace, write_and_run, &early, NULL), WEIR_OK);
	cr_assert_eq(weir_trace_write(trace, trace_file_write, &late, NULL), WEIR_OK);
	cr_expect_geq(early.writes, 3);
	cr_assert_leq(early.file.size, late.size);
	cr_expect_eq(memcmp(early.file.bytes, late.bytes, early.file.size), 0);
	free(early.file.bytes);
	free(late.bytes);
	kit_end(early.session, graph);
	cr_assert_eq(weir_trace_destroy(trace, NULL), WEIR_OK);
}

static enum weir_status skip_events(void *context, const struct weir_kernel_call *call, weir_error *error)
{
	(void)call, (void)error;
	weiri_trace_buffer_mine(&((weir_trace *)context)->buffers)->events += 1 << 17;
	return WEIR_OK;
}

/* A short record cannot follow a gap, nor say that what was seen is 100,000 events ago. */
Test(trace, an_op_that_sees_what_is_long_ago_has_a_long_record)
{
	const struct weir_kernel skips = {WEIR_KERNEL_INIT, .name = "skip", .flags = WEIR_KERNEL_SHORT, .run = skip_events};
	weir_graph *graph = kit_graph();
	weir_trace *trace = new_trace(0);
	weir_node *first, *kernel, *next, *last;
	weir_session *session;
	struct trace back;

	cr_assert_eq(weir_op_no_op(graph, "first", &first, NULL), WEIR_OK);
	cr_assert_eq(weir_op_kernel(graph, "kernel", &skips, trace, NULL, 0, NULL, 0, NULL, 0, NULL, &kernel, NULL),
	             WEIR_OK);
	cr_assert_eq(weir_op_no_op(graph, "next", &next, NULL), WEIR_OK);
	cr_assert_eq(weir_op_no_op(graph, "last", &last, NULL), WEIR_OK);
	cr_assert_eq(weir_graph_add_control(graph, first, kernel, NULL), WEIR_OK);
	cr_assert_eq(weir_graph_add_control(graph, kernel, next, NULL), WEIR_OK);
	cr_assert_eq(weir_graph_add_control(graph, next, last, NULL), WEIR_OK);
	cr_assert_eq(weir_graph_add_control(graph, first, last, NULL), WEIR_OK);
	session = trace_kit_session(graph, trace, 0, 0);
	cr_assert_eq(kit_run_target(session, last, NULL), WEIR_OK);
	kit_end(session, graph);
	trace_kit_load(trace, &back);
	cr_assert_eq(event_of(&back, "last")->seen_count, 2);
	cr_expect_eq(event_of(&back, "last")->seen[0] + event_of(&back, "last")->seen[1],
	             event_of(&back, "first")->number + event_of(&back, "next")->number);
	cr_expect_gt(event_of(&back, "next")->number, event_of(&back, "kernel")->number + (1 << 17));
	trace_free(&back);
	trace_kit_expect_right(trace);
	cr_assert_eq(weir_trace_destroy(trace, NULL), WEIR_OK);
}

Test(trace, one_run_may_be_recorded_and_others_not)
{
	struct weir_run_options options = {WEIR_RUN_OPTIONS_INIT};
	weir_graph *graph = kit_graph();
	weir_trace *trace = new_trace(0), *other = new_trace(0);
	weir_output sum;
	weir_session *session = kit_session(graph, 0);
	weir_callable *callable = NULL;
	weir_tensor *result = NULL;
	struct trace back;

	cr_assert_eq(weir_op_add(graph, NULL, kit_constant(graph, kit_f32(1)), kit_constant(graph, kit_f32(2)), &sum, NULL),
	             WEIR_OK);
	cr_assert_eq(weir_session_compile(session, NULL, 0, &sum, 1, NULL, 0, NULL, &callable, NULL), WEIR_OK);
	for (int i = 0; i < 4; i++) {
		options.trace = i == 0 ? NULL : i == 1 ? other : trace;
		cr_assert_eq(weir_callable_run(callable, NULL, &result, WEIR_NO_DEADLINE, NULL, &options, NULL), WEIR_OK);
		weir_tensor_release(result);
	}
	trace_kit_load(trace, &back);
	cr_expect_eq(back.event_count, 2);
	cr_expect_eq(back.plan_count, 1, "a plan is described once");
	trace_free(&back);
	trace_kit_expect_right(trace);
	trace_kit_expect_right(other);
	weir_callable_release(callable);
	kit_end(session, graph);
	cr_assert_eq(weir_trace_destroy(trace, NULL), WEIR_OK);
	cr_assert_eq(weir_trace_destroy(other, NULL), WEIR_OK);
}

Test(trace, what_finds_no_room_is_dropped_and_counted)
{
	struct weir_trace_options options = {WEIR_TRACE_OPTIONS_INIT, .bytes_per_thread = 128 * 1024};
	weir_graph *graph = kit_graph();
	weir_trace *trace = NULL;
	struct trace_file file = {NULL, 0, 0};
	struct trace_page page;
	weir_session *session;
	weir_node *node;

	cr_assert_eq(weir_trace_create(&options, &trace, NULL), WEIR_OK);
	cr_assert_eq(weir_op_no_op(graph, NULL, &node, NULL), WEIR_OK);
	session = trace_kit_session(graph, trace, 0, 0);
	while (weir_trace_dropped(trace) == 0)
		cr_assert_eq(kit_run_target(session, node, NULL), WEIR_OK);
	cr_assert_eq(weir_trace_write(trace, trace_file_write, &file, NULL), WEIR_OK);
	cr_expect_gt(file.size, 64 * 1024);
	trace_kit_check_file(&file, &page);
	cr_expect_neq(page.faults, 0);
	cr_expect_neq(strstr(page.text, "records were dropped, so the trace proves nothing"), NULL);
	free(file.bytes);
	kit_end(session, graph);
	cr_assert_eq(weir_trace_destroy(trace, NULL), WEIR_OK);
}

/* 24 bits of a record's first word are its length. */
Test(trace, a_record_that_is_too_long_is_dropped)
{
	weir_trace *trace = new_trace(0);
	struct weiri_trace_buffer *buffer;

	trace->buffers.most_bytes = SIZE_MAX;
	buffer = weiri_trace_buffer_mine(&trace->buffers);
	cr_assert_not_null(buffer);
	cr_expect_null(weiri_trace_reserve(buffer, (size_t)1 << 24));
	weiri_trace_rest(buffer);
	cr_expect_eq(weir_trace_dropped(trace), 1);
	cr_assert_eq(weir_trace_destroy(trace, NULL), WEIR_OK);
}

Test(trace, a_trace_that_is_used_is_not_destroyed)
{
	struct weir_trace_options options = {WEIR_TRACE_OPTIONS_INIT};
	weir_graph *graph = kit_graph();
	weir_trace *trace = new_trace(0), *other = NULL;
	weir_session *session = trace_kit_session(graph, trace, 0, 0);
	weir_error error;

	cr_expect_eq(weir_trace_destroy(trace, &error), WEIR_FAILED_PRECONDITION);
	cr_expect_str_eq(error.message, "weir_trace_destroy: a session or a run still has the trace");
	kit_end(session, graph);
	cr_expect_eq(weir_trace_destroy(trace, NULL), WEIR_OK);
	cr_expect_eq(weir_trace_destroy(NULL, NULL), WEIR_OK);
	cr_expect_eq(weir_trace_create(NULL, NULL, NULL), WEIR_INVALID_ARGUMENT);
	options.flags = 2;
	cr_expect_eq(weir_trace_create(&options, &other, NULL), WEIR_INVALID_ARGUMENT);
	options.flags = 0;
	options.bytes_per_thread = 1;
	cr_expect_eq(weir_trace_create(&options, &other, NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_trace_write(NULL, trace_file_write, NULL, NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_trace_dropped(NULL), 0);
}

Test(trace, a_plan_keeps_nothing_of_a_trace_that_is_gone)
{
	struct failing_allocator counting = {.fail_at = 0};
	weir_allocator hooks = failing_allocator_hooks(&counting);
	struct weir_session_options session_options = {WEIR_SESSION_OPTIONS_INIT, .flags = WEIR_SESSION_NO_THREADS,
	                                               .allocator = &hooks};
	struct weir_run_options options = {WEIR_RUN_OPTIONS_INIT};
	weir_graph *graph = kit_graph();
	weir_session *session;
	weir_callable *callable;
	weir_node *node;
	size_t bytes = 0;

	cr_assert_eq(weir_op_no_op(graph, NULL, &node, NULL), WEIR_OK);
	cr_assert_eq(weir_session_create(graph, &session_options, &session, NULL), WEIR_OK);
	cr_assert_eq(weir_session_compile(session, NULL, 0, NULL, 0, &node, 1, NULL, &callable, NULL), WEIR_OK);
	for (int i = 0; i < 4; i++) {
		options.trace = new_trace(0);
		cr_assert_eq(weir_callable_run(callable, NULL, NULL, WEIR_NO_DEADLINE, NULL, &options, NULL), WEIR_OK);
		trace_kit_expect_right(options.trace);
		cr_assert_eq(weir_trace_destroy(options.trace, NULL), WEIR_OK);
		cr_expect(i == 0 || counting.bytes == bytes);
		bytes = counting.bytes;
	}
	weir_callable_release(callable);
	kit_end(session, graph);
	cr_expect_str_eq(failing_allocator_verdict(&counting), "balanced");
}

/* A run without memory for its records runs, and is not recorded. */
Test(trace, every_allocation_may_fail)
{
	weir_graph *graph = kit_graph();
	weir_output sum;
	size_t fail_at = 1;
	bool recorded;

	cr_assert_eq(weir_op_add(graph, NULL, kit_constant(graph, kit_f32(1)), kit_constant(graph, kit_f32(2)), &sum, NULL),
	             WEIR_OK);
	do {
		struct failing_allocator failing = {.fail_at = fail_at++};
		weir_allocator hooks = failing_allocator_hooks(&failing);
		struct weir_trace_options options = {WEIR_TRACE_OPTIONS_INIT, .allocator = &hooks};
		weir_trace *trace = NULL;
		struct trace back;
		weir_session *session;

		if (weir_trace_create(&options, &trace, NULL) != WEIR_OK) {
			recorded = false;
			continue;
		}
		session = trace_kit_session(graph, trace, 0, 0);
		cr_expect_eq(kit_fetch_f32(session, sum), 3);
		cr_assert_eq(weir_session_destroy(session, NULL), WEIR_OK);
		trace_kit_load(trace, &back);
		recorded = back.event_count == 1 && back.plan_count == 1 && back.frame_count == 1 && back.frames[0].ends == 1;
		cr_expect_eq(recorded, weir_trace_dropped(trace) == 0);
		trace_free(&back);
		cr_assert_eq(weir_trace_destroy(trace, NULL), WEIR_OK);
		cr_expect_str_eq(failing_allocator_verdict(&failing), "balanced");
	} while (!recorded && fail_at < 100);
	cr_expect(recorded);
	cr_assert_eq(weir_graph_destroy(graph, NULL), WEIR_OK);
}
