/*
 * test_trace_records.c - what the records of a trace say: which nodes a run asks for, what they depend on
 * and used, and which thread ran them; and that a record is written before it can be read.
 */
#include <weir/flow/function.h>

#include "failing_allocator.h"
#include "graph_kit.h"
#include "late_failure.h"
#include "stepped.h"
#include "trace_kit.h"

static weir_trace *new_trace(uint32_t flags)
{
	struct weir_trace_options options = {WEIR_TRACE_OPTIONS_INIT, .flags = flags};
	weir_trace *trace = NULL;

	cr_assert_eq(weir_trace_create(&options, &trace, NULL), WEIR_OK);
	return trace;
}

static const struct trace_node *node_named(const struct trace *trace, const char *name)
{
	for (size_t p = 0; p < trace->plan_count; p++) {
		for (uint32_t n = 0; n < trace->plans[p].node_count; n++) {
			const struct trace_node *node = &trace->plans[p].nodes[n];

			if (node->known && strcmp(node->name, name) == 0)
				return node;
		}
	}
	cr_assert_fail("no node \"%s\"", name);
	return NULL;
}

static weir_node *no_op(weir_graph *graph, const char *name)
{
	weir_node *node = NULL;

	cr_assert_eq(weir_op_no_op(graph, name, &node, NULL), WEIR_OK);
	return node;
}

/* Ends the session and the trace, which must be right. */
static void end(weir_session *session, weir_graph *graph, weir_trace *trace)
{
	kit_end(session, graph);
	trace_kit_expect_right(trace);
	cr_assert_eq(weir_trace_destroy(trace, NULL), WEIR_OK);
}

Test(trace_records, only_what_a_run_asks_for_is_wanted)
{
	enum { TARGETS = 2 };
	weir_graph *graph = kit_graph();
	weir_trace *trace = new_trace(0);
	weir_node *before = no_op(graph, "before"), *targets[TARGETS];
	weir_session *session = trace_kit_session(graph, trace, 0, 0);
	struct trace back;

	for (int i = 0; i < TARGETS; i++) {
		targets[i] = no_op(graph, i == 0 ? "one" : "other");
		cr_assert_eq(weir_graph_add_control(graph, before, targets[i], NULL), WEIR_OK);
	}
	cr_assert_eq(weir_session_run(session, NULL, 0, NULL, 0, NULL, targets, TARGETS, WEIR_NO_DEADLINE, NULL, NULL),
	             WEIR_OK);
	trace_kit_load(trace, &back);
	cr_expect_eq(node_named(&back, "before")->flags & WEIRI_TRACE_NODE_WANTED, 0);
	cr_expect_neq(node_named(&back, "one")->flags & WEIRI_TRACE_NODE_WANTED, 0);
	cr_expect_neq(node_named(&back, "other")->flags & WEIRI_TRACE_NODE_WANTED, 0);
	trace_free(&back);
	end(session, graph, trace);
}

/* The node whose value is fed runs too, for another output, and need not have run before. */
Test(trace_records, what_is_fed_is_no_dependency)
{
	weir_graph *graph = kit_graph();
	weir_var *var = kit_var("w", kit_f32(1));
	weir_trace *trace = new_trace(0);
	weir_output sum, same, fetches[2];
	struct weir_feed feed;
	weir_tensor *results[2];
	weir_session *session;
	struct trace back;

	cr_assert_eq(weir_op_assign_add(graph, "add", var, kit_constant(graph, kit_f32(1)), &sum, NULL), WEIR_OK);
	cr_assert_eq(weir_op_identity(graph, "same", sum, &same, NULL), WEIR_OK);
	session = trace_kit_session(graph, trace, 0, 0);
	feed = (struct weir_feed){sum, kit_f32(7)};
	fetches[0] = same;
	fetches[1] = (weir_output){sum.node, 1}; /* the version */
	cr_assert_eq(weir_session_run(session, &feed, 1, fetches, 2, results, NULL, 0, WEIR_NO_DEADLINE, NULL, NULL),
	             WEIR_OK);
	cr_expect_eq(kit_f32_at(results[0], 0), 7);
	cr_expect_eq(kit_i64_at(results[1], 0), 2);
	trace_kit_load(trace, &back);
	cr_expect_eq(node_named(&back, "same")->dependency_count, 0);
	trace_free(&back);
	weir_tensor_release(feed.value);
	for (int i = 0; i < 2; i++)
		weir_tensor_release(results[i]);
	end(session, graph, trace);
	cr_assert_eq(weir_var_destroy(var, NULL), WEIR_OK);
}

/* Two sums of a million elements each, of which one goes to the worker. What an op costs is known from the shapes. */
Test(trace_records, of_two_long_ops_a_worker_runs_one)
{
	enum { ELEMENTS = 1 << 20 };
	weir_graph *graph = kit_graph();
	weir_trace *trace = new_trace(0);
	weir_output x, sums[2];
	weir_tensor *results[2];
	weir_session *session;
	struct trace back;
	float *values = calloc(ELEMENTS, sizeof(float));

	cr_assert_not_null(values);
	x = kit_constant(graph, kit_tensor(WEIR_F32, kit_shape(1, ELEMENTS), values));
	for (int i = 0; i < 2; i++)
		cr_assert_eq(weir_op_add(graph, NULL, x, x, &sums[i], NULL), WEIR_OK);
	session = trace_kit_session(graph, trace, 1, 0);
	cr_assert_eq(weir_session_run(session, NULL, 0, sums, 2, results, NULL, 0, WEIR_NO_DEADLINE, NULL, NULL), WEIR_OK);
	trace_kit_load(trace, &back);
	cr_assert_eq(back.event_count, 2);
	cr_expect_neq(back.events[0].thread, back.events[1].thread, "one thread ran both");
	trace_free(&back);
	for (int i = 0; i < 2; i++)
		weir_tensor_release(results[i]);
	free(values);
	end(session, graph, trace);
}

/* -- checksums --------------------------------------------------------------------------------- */

/* From the sums of what was used, the check finds a kernel that writes into its input. */
Test(trace_records, what_an_op_used_is_what_another_made)
{
	weir_graph *graph = kit_graph();
	weir_trace *trace = new_trace(WEIR_TRACE_CHECKSUMS);
	weir_output x = kit_constant(graph, kit_f32(2)), square, next;
	uint64_t made = 0, used = 0;
	weir_session *session;
	weir_tensor *results[2];
	struct trace back;

	cr_assert_eq(weir_op_square(graph, "square", x, &square, NULL), WEIR_OK);
	cr_assert_eq(weir_op_add(graph, "next", square, x, &next, NULL), WEIR_OK);
	session = trace_kit_session(graph, trace, 0, 0);
	cr_assert_eq(weir_session_run(session, NULL, 0, (weir_output[]){square, next}, 2, results, NULL, 0,
	                              WEIR_NO_DEADLINE, NULL, NULL),
	             WEIR_OK);
	trace_kit_load(trace, &back);
	for (size_t i = 0; i < back.effect_count; i++) {
		const struct trace_effect *effect = &back.effects[i];
		const struct trace_node *node = trace_node_of(&back, &back.events[effect->event]);

		if (effect->kind == WEIRI_TRACE_MADE && strcmp(node->name, "square") == 0)
			made = effect->number;
		if (effect->kind == WEIRI_TRACE_USED && strcmp(node->name, "next") == 0)
			used = effect->number;
	}
	cr_expect_neq(used, 0, "nothing was recorded");
	cr_expect_eq(used, made);
	trace_free(&back);
	for (int i = 0; i < 2; i++)
		weir_tensor_release(results[i]);
	end(session, graph, trace);
}

static const weir_shape scalar = {.rank = 0, .dims = {0}};
static const struct weir_parameter one_scalar[] = {{"x", WEIR_PARAMETER_TENSOR, WEIR_F32, &scalar}};

static enum weir_status build_square(void *context, weir_graph *body, const struct weir_argument arguments[],
                                     weir_output results[], weir_error *error)
{
	(void)context;
	return weir_op_square(body, NULL, arguments[0].output, &results[0], error);
}

static enum weir_status build_less(void *context, weir_graph *body, const struct weir_argument arguments[],
                                   weir_output results[], weir_error *error)
{
	weir_output square;
	enum weir_status status = weir_op_square(body, NULL, arguments[0].output, &square, error);

	(void)context;
	return status == WEIR_OK ? weir_op_less(body, NULL, square, kit_constant(body, kit_f32(100)), &results[0], error)
	                         : status;
}

/* 2, 4, 16: two iterations, each with the value that it got and the one that it gave. */
Test(trace_records, each_iteration_got_and_gave_a_value)
{
	weir_function *less = kit_function("less", build_less, NULL, one_scalar, 1, 1);
	weir_function *square = kit_function("square", build_square, NULL, one_scalar, 1, 1);
	weir_graph *graph = kit_graph();
	weir_trace *trace = new_trace(WEIR_TRACE_CHECKSUMS);
	struct weir_argument argument = {.output = kit_constant(graph, kit_f32(2))};
	size_t got = 0, gave = 0;
	weir_session *session;
	struct trace back;
	weir_output out;

	cr_assert_eq(weir_op_while(graph, "loop", less, square, &argument, 1, NULL, &out, NULL, NULL), WEIR_OK);
	session = trace_kit_session(graph, trace, 0, 0);
	cr_expect_eq(kit_fetch_f32(session, out), 16);
	trace_kit_load(trace, &back);
	for (size_t i = 0; i < back.value_count; i++) {
		const struct trace_value *value = &back.values[i];
		size_t frame = trace_find_frame(&back, value->frame_number);

		cr_assert_neq(frame, TRACE_NONE);
		if (back.frames[frame].kind != WEIRI_TRACE_ITERATION)
			continue;
		got += value->kind == WEIRI_TRACE_GOT;
		gave += value->kind == WEIRI_TRACE_GAVE;
	}
	cr_expect_eq(got, 2);
	cr_expect_eq(gave, 2);
	trace_free(&back);
	end(session, graph, trace);
	cr_assert_eq(weir_function_destroy(less, NULL), WEIR_OK);
	cr_assert_eq(weir_function_destroy(square, NULL), WEIR_OK);
}

/* -- memory ------------------------------------------------------------------------------------ */

/* Runs a chain in a session whose memory fails from the run on. Returns the dependencies that the trace has. */
static enum weir_status trace_a_chain(const weir_allocator *failing, void *context)
{
	enum { CHAIN = 40 };
	struct late_failure late = {0};
	weir_allocator allocator = late_failure_hooks(&late);
	weir_trace *trace = new_trace(0);
	struct weir_session_options options = {WEIR_SESSION_OPTIONS_INIT, .flags = WEIR_SESSION_NO_THREADS,
	                                       .allocator = &allocator, .trace = trace};
	weir_graph *graph = kit_graph();
	weir_node *last = no_op(graph, NULL);
	weir_session *session = NULL;
	weir_callable *callable = NULL;
	size_t dependencies = 0;
	enum weir_status status;
	struct trace back;

	(void)context;
	for (int i = 1; i < CHAIN; i++) {
		weir_node *next = no_op(graph, NULL);

		cr_assert_eq(weir_graph_add_control(graph, last, next, NULL), WEIR_OK);
		last = next;
	}
	cr_assert_eq(weir_session_create(graph, &options, &session, NULL), WEIR_OK);
	cr_assert_eq(weir_session_compile(session, NULL, 0, NULL, 0, &last, 1, NULL, &callable, NULL), WEIR_OK);
	late.under_test = failing;
	status = weir_callable_run(callable, NULL, NULL, WEIR_NO_DEADLINE, NULL, NULL, NULL);
	late.under_test = NULL;
	trace_kit_load(trace, &back);
	for (size_t p = 0; p < back.plan_count; p++) {
		for (uint32_t n = 0; n < back.plans[p].node_count; n++)
			dependencies += back.plans[p].nodes[n].dependency_count;
	}
	trace_free(&back);
	if (status == WEIR_OK && weir_trace_dropped(trace) == 0)
		cr_expect_eq(dependencies, CHAIN - 1, "%zu dependencies", dependencies);
	else
		status = WEIR_RESOURCE_EXHAUSTED;
	weir_callable_release(callable);
	kit_end(session, graph);
	cr_assert_eq(weir_trace_destroy(trace, NULL), WEIR_OK);
	late_failure_end(&late);
	return status;
}

/* A trace that counts no loss lacks no dependency. */
Test(trace_records, a_plan_is_described_as_a_whole_or_not_at_all)
{
	cr_expect_gt(fail_each_allocation(trace_a_chain, NULL), 3);
}

/* -- readers beside a run ---------------------------------------------------------------------- */

enum { MANY = 4 };

struct scene {
	weir_trace *trace;
	weir_callable *callable;
	enum weir_status status;
};

static void run_once(void *context)
{
	struct scene *scene = context;

	scene->status = weir_callable_run(scene->callable, NULL, NULL, WEIR_NO_DEADLINE, NULL, NULL, NULL);
}

/* What is written while a run stands still is the beginning of what is written in the end. */
Test(trace_records, a_record_is_complete_before_it_can_be_read)
{
	weir_graph *graph = kit_graph();
	weir_node *last = no_op(graph, "last");
	struct scene scene = {NULL, NULL, WEIR_OK};
	struct stepped call = {.prepare = run_once, .call = run_once, .context = &scene};

	stepped_or_skip();
	for (int i = 0; i < MANY; i++)
		cr_assert_eq(weir_graph_add_control(graph, no_op(graph, NULL), last, NULL), WEIR_OK);
	for (size_t at = 0, stands = 1; stands != 0; at += stepped_stride(29)) {
		struct trace_file early = {NULL, 0, 0}, late = {NULL, 0, 0};
		weir_session *session;

		scene.trace = new_trace(0);
		session = trace_kit_session(graph, scene.trace, 0, 0);
		cr_assert_eq(weir_session_compile(session, NULL, 0, NULL, 0, &last, 1, NULL, &scene.callable, NULL), WEIR_OK);
		stands = (size_t)stepped_start(&call, at);
		cr_assert_eq(weir_trace_write(scene.trace, trace_file_write, &early, NULL), WEIR_OK);
		stepped_finish(&call);
		cr_assert_eq(scene.status, WEIR_OK);
		cr_assert_eq(weir_trace_write(scene.trace, trace_file_write, &late, NULL), WEIR_OK);
		cr_assert_leq(early.size, late.size);
		cr_assert_eq(memcmp(early.bytes, late.bytes, early.size), 0, "stopped at %zu", at);
		free(early.bytes);
		free(late.bytes);
		weir_callable_release(scene.callable);
		cr_assert_eq(weir_session_destroy(session, NULL), WEIR_OK);
		trace_kit_expect_right(scene.trace);
		cr_assert_eq(weir_trace_destroy(scene.trace, NULL), WEIR_OK);
	}
	cr_assert_eq(weir_graph_destroy(graph, NULL), WEIR_OK);
}
