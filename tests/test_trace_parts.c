/*
 * test_trace_parts.c - what ops that run functions record: their frames, and what passes through them;
 * and what gathers and critical sections record.
 */
#include <weir/critical_section.h>
#include <weir/flow/function.h>

#include "failing_allocator.h"
#include "graph_kit.h"
#include "trace_kit.h"

static const weir_shape scalar = {.rank = 0, .dims = {0}};
static const struct weir_parameter tensor_and_var[] = {{"x", WEIR_PARAMETER_TENSOR, WEIR_F32, &scalar},
                                                       {"w", WEIR_PARAMETER_VAR, WEIR_F32, NULL}};

static weir_trace *new_trace(const weir_allocator *allocator)
{
	struct weir_trace_options options = {WEIR_TRACE_OPTIONS_INIT, .flags = WEIR_TRACE_CHECKSUMS,
	                                     .allocator = allocator};
	weir_trace *trace = NULL;

	return weir_trace_create(&options, &trace, NULL) == WEIR_OK ? trace : NULL;
}

static weir_output f32_constant(weir_graph *graph, float value)
{
	weir_tensor *tensor;
	weir_output out = {NULL, 0};

	if (weir_tensor_scalar_f32(value, &tensor) != WEIR_OK)
		return out;
	(void)weir_op_constant(graph, NULL, tensor, &out, NULL);
	weir_tensor_release(tensor);
	return out;
}

/* -- functions: each adds to the variable ------------------------------------------------------ */

/* x + 1; the variable grows by 1. */
static enum weir_status build_step(void *context, weir_graph *body, const struct weir_argument arguments[],
                                   weir_output results[], weir_error *error)
{
	weir_output one = f32_constant(body, 1), sum;
	enum weir_status status = weir_op_assign_add(body, "w", arguments[1].var, one, &sum, error);

	(void)context;
	return status == WEIR_OK ? weir_op_add(body, "next", arguments[0].output, one, &results[0], error) : status;
}

/* x; the variable stays. */
static enum weir_status build_same(void *context, weir_graph *body, const struct weir_argument arguments[],
                                   weir_output results[], weir_error *error)
{
	(void)context;
	return weir_op_identity(body, "same", arguments[0].output, &results[0], error);
}

static enum weir_status build_less(void *context, weir_graph *body, const struct weir_argument arguments[],
                                   weir_output results[], weir_error *error)
{
	(void)context;
	return weir_op_less(body, "less", arguments[0].output, f32_constant(body, 3), &results[0], error);
}

/* The functions that the body calls are in the context. */
static enum weir_status build_choice(void *context, weir_graph *body, const struct weir_argument arguments[],
                                     weir_output results[], weir_error *error)
{
	weir_function *const *functions = context;
	weir_output small;
	enum weir_status status = weir_op_less(body, "small", arguments[0].output, f32_constant(body, 2), &small, error);

	return status == WEIR_OK
	           ? weir_op_cond(body, "choice", small, functions[0], functions[1], arguments, 2, results, NULL, error)
	           : status;
}

enum { FUNCTIONS = 4, STEP = 0, SAME, LESS, CHOICE };

struct scene {
	weir_graph *graph;
	weir_var *var;
	weir_function *functions[FUNCTIONS];
	weir_output fetches[3]; /* of a loop, of a call of a case, of a map of that call */
};

static void open_scene(struct scene *s)
{
	struct weir_argument arguments[2] = {{.var = NULL}, {.var = NULL}};
	weir_error error;

	s->graph = kit_graph();
	s->var = kit_var("w", kit_f32(0));
	s->functions[STEP] = kit_function("step", build_step, NULL, tensor_and_var, 2, 1);
	s->functions[SAME] = kit_function("same", build_same, NULL, tensor_and_var, 2, 1);
	s->functions[LESS] = kit_function("less", build_less, NULL, tensor_and_var, 2, 1);
	s->functions[CHOICE] = kit_function("choose", build_choice, s->functions, tensor_and_var, 2, 1);
	arguments[0].output = kit_constant(s->graph, kit_f32(0));
	arguments[1].var = s->var;
	cr_assert_eq(weir_op_while(s->graph, "loop", s->functions[LESS], s->functions[STEP], arguments, 2, NULL,
	                           &s->fetches[0], NULL, &error),
	             WEIR_OK, "%s", error.message);
	arguments[0].output = s->fetches[0];
	cr_assert_eq(weir_op_call(s->graph, "call", s->functions[CHOICE], arguments, 2, &s->fetches[1], NULL, &error),
	             WEIR_OK, "%s", error.message);
	arguments[0].output = kit_constant(s->graph, kit_tensor(WEIR_F32, kit_shape(1, 4), (const float[]){0, 1, 2, 3}));
	cr_assert_eq(weir_op_map(s->graph, "map", s->functions[CHOICE], arguments, 2, NULL, &s->fetches[2], NULL, &error),
	             WEIR_OK, "%s", error.message);
}

static void close_scene(struct scene *s)
{
	cr_assert_eq(weir_graph_destroy(s->graph, NULL), WEIR_OK);
	for (size_t i = FUNCTIONS; i-- > 0;)
		cr_assert_eq(weir_function_destroy(s->functions[i], NULL), WEIR_OK);
	cr_assert_eq(weir_var_destroy(s->var, NULL), WEIR_OK);
}

static enum weir_status run_scene(const struct scene *s, weir_session *session)
{
	weir_tensor *results[3];
	enum weir_status status =
		weir_session_run(session, NULL, 0, s->fetches, 3, results, NULL, 0, WEIR_NO_DEADLINE, NULL, NULL);

	if (status != WEIR_OK)
		return status;
	cr_expect_eq(kit_f32_at(results[0], 0), 3);
	cr_expect_eq(kit_f32_at(results[1], 0), 3);
	for (size_t i = 0; i < 4; i++)
		cr_expect_eq(kit_f32_at(results[2], i), i < 2 ? (float)i + 1 : (float)i);
	for (size_t i = 0; i < 3; i++)
		weir_tensor_release(results[i]);
	return status;
}

static size_t count_frames(const struct trace *trace, uint32_t kind)
{
	size_t count = 0;

	for (size_t i = 0; i < trace->frame_count; i++)
		count += trace->frames[i].kind == kind;
	return count;
}

/* The loop has 4 tests and 3 iterations; 1 call and 4 rows choose. The variable grows by 3, and by 2. */
Test(trace_parts, each_call_branch_iteration_and_row_has_a_frame)
{
	for (uint64_t shuffle = 0; shuffle < 2; shuffle++) {
		struct scene s;
		weir_trace *trace = new_trace(NULL);
		weir_session *session;
		struct trace back;

		open_scene(&s);
		session = trace_kit_session(s.graph, trace, 0, shuffle);
		cr_assert_eq(run_scene(&s, session), WEIR_OK);
		cr_assert_eq(weir_session_destroy(session, NULL), WEIR_OK);
		cr_expect_eq(kit_var_f32(s.var, 0), 5);
		trace_kit_load(trace, &back);
		cr_expect_eq(count_frames(&back, WEIRI_TRACE_STEP), 1);
		cr_expect_eq(count_frames(&back, WEIRI_TRACE_TEST), 4);
		cr_expect_eq(count_frames(&back, WEIRI_TRACE_ITERATION), 3);
		cr_expect_eq(count_frames(&back, WEIRI_TRACE_CALL), 1);
		cr_expect_eq(count_frames(&back, WEIRI_TRACE_ROW), 4);
		cr_expect_eq(count_frames(&back, WEIRI_TRACE_BRANCH), 5);
		/* The three ops of the run; 4 tests; 3 iterations of 2; 5 choices of 2; a branch has 2 ops or 1. */
		cr_expect_eq(back.event_count, 3 + 4 + 3 * 2 + 5 * 2 + 2 * 2 + 3);
		cr_expect_neq(back.value_count, 0);
		trace_free(&back);
		trace_kit_expect_right(trace);
		cr_assert_eq(weir_trace_destroy(trace, NULL), WEIR_OK);
		close_scene(&s);
	}
}

struct drawn {
	char text[32768];
	size_t size;
};

static void draw(void *context, const char *text)
{
	struct drawn *drawn = context;

	while (*text != '\0' && drawn->size < sizeof(drawn->text) - 1)
		drawn->text[drawn->size++] = *text++;
	drawn->text[drawn->size] = '\0';
}

Test(trace_parts, chrome_draws_frames_inside_of_their_op)
{
	static struct drawn drawn;
	struct scene s;
	weir_trace *trace = new_trace(NULL);
	weir_session *session;
	struct trace back;

	open_scene(&s);
	session = trace_kit_session(s.graph, trace, 0, 0);
	cr_assert_eq(run_scene(&s, session), WEIR_OK);
	cr_assert_eq(weir_session_destroy(session, NULL), WEIR_OK);
	trace_kit_load(trace, &back);
	trace_chrome(&back, draw, &drawn);
	cr_expect_not_null(strstr(drawn.text, "\"cat\":\"frame\",\"name\":\"iteration 2 of loop\""));
	cr_expect_not_null(strstr(drawn.text, "\"cat\":\"frame\",\"name\":\"branch 0 of choice\""));
	cr_expect_not_null(strstr(drawn.text, "\"cat\":\"frame\",\"name\":\"row 3 of map\""));
	cr_expect_null(strstr(drawn.text, "\"ph\":\"b\""), "on one thread all slices nest");
	trace_free(&back);
	cr_assert_eq(weir_trace_destroy(trace, NULL), WEIR_OK);
	close_scene(&s);
}

/* A row takes an item from the queue. */
static enum weir_status build_take(void *context, weir_graph *body, const struct weir_argument arguments[],
                                   weir_output results[], weir_error *error)
{
	weir_output item;
	enum weir_status status = weir_op_dequeue(body, "take", arguments[1].queue, &item, 1, NULL, error);

	(void)context;
	return status == WEIR_OK ? weir_op_add(body, "sum", arguments[0].output, item, &results[0], error) : status;
}

Test(trace_parts, a_frame_that_waits_ends_on_another_thread)
{
	static const struct weir_parameter parameters[] = {{"x", WEIR_PARAMETER_TENSOR, WEIR_F32, &scalar},
	                                                   {"q", WEIR_PARAMETER_QUEUE, 0, NULL}};
	weir_function *take = kit_function("taking", build_take, NULL, parameters, 2, 1);
	weir_graph *graph = kit_graph();
	weir_tensor_queue *queue = kit_queue("q", 4, WEIR_F32, &scalar);
	weir_trace *trace = new_trace(NULL);
	struct weir_argument arguments[2] = {{.queue = NULL}, {.queue = queue}};
	weir_output rows = kit_constant(graph, kit_tensor(WEIR_F32, kit_shape(1, 2), (const float[]){1, 1})), out;
	weir_node *put[2];
	weir_tensor *result;
	weir_session *session;
	weir_error error;

	arguments[0].output = rows;
	cr_assert_eq(weir_op_map(graph, "map", take, arguments, 2, NULL, &out, NULL, NULL), WEIR_OK);
	for (size_t i = 0; i < 2; i++) {
		weir_output item = kit_constant(graph, kit_f32(5));

		cr_assert_eq(weir_op_enqueue(graph, i == 0 ? "put" : "put too", queue, &item, 1, &put[i], NULL), WEIR_OK);
	}
	session = trace_kit_session(graph, trace, 2, 0);
	/* Nothing is there: rows that wait are stopped. */
	cr_expect_eq(weir_session_run(session, NULL, 0, &out, 1, &result, NULL, 0, weir_deadline_in(1000000), NULL, &error),
	             WEIR_DEADLINE_EXCEEDED);
	cr_assert_eq(weir_session_run(session, NULL, 0, &out, 1, &result, put, 2, WEIR_NO_DEADLINE, NULL, &error), WEIR_OK,
	             "%s", error.message);
	cr_expect_eq(kit_f32_at(result, 1), 6);
	weir_tensor_release(result);
	kit_end(session, graph);
	trace_kit_expect_right(trace);
	cr_assert_eq(weir_function_destroy(take, NULL), WEIR_OK);
	kit_queue_end(queue);
	cr_assert_eq(weir_trace_destroy(trace, NULL), WEIR_OK);
}

/* A run without memory for its records runs, and records are counted that are missing. */
Test(trace_parts, every_allocation_may_fail)
{
	size_t fail_at = 1;
	bool complete = false;

	for (; !complete && fail_at < 100; fail_at++) {
		struct failing_allocator failing = {.fail_at = fail_at};
		weir_allocator hooks = failing_allocator_hooks(&failing);
		weir_trace *trace = new_trace(&hooks);
		struct scene s;
		weir_session *session;
		struct trace back;

		if (trace == NULL)
			continue;
		open_scene(&s);
		session = trace_kit_session(s.graph, trace, 0, 0);
		cr_assert_eq(run_scene(&s, session), WEIR_OK);
		cr_assert_eq(weir_session_destroy(session, NULL), WEIR_OK);
		trace_kit_load(trace, &back);
		complete = weir_trace_dropped(trace) == 0;
		cr_expect(!complete || back.frame_count == 18);
		trace_free(&back);
		if (complete)
			trace_kit_expect_right(trace);
		cr_assert_eq(weir_trace_destroy(trace, NULL), WEIR_OK);
		cr_expect_str_eq(failing_allocator_verdict(&failing), "balanced");
		close_scene(&s);
	}
	cr_expect(complete);
}

static size_t count_effects(const struct trace *trace, uint32_t kind, uint64_t number)
{
	size_t count = 0;

	for (size_t i = 0; i < trace->effect_count; i++)
		count += trace->effects[i].kind == kind && trace->effects[i].number == number;
	return count;
}

Test(trace_parts, a_gather_tells_its_version_and_a_section_its_entry)
{
	struct weir_critical_section_options named = {WEIR_CRITICAL_SECTION_OPTIONS_INIT, .name = "s"};
	weir_graph *graph = kit_graph();
	weir_var *var = kit_var("w", kit_tensor(WEIR_F32, kit_shape(1, 2), (const float[]){1, 2}));
	weir_trace *trace = new_trace(NULL);
	weir_critical_section *section;
	weir_output rows, outs[1];
	weir_session *session;
	weir_node *node;
	struct trace back;

	cr_assert_eq(weir_critical_section_create(&named, &section, NULL), WEIR_OK);
	cr_assert_eq(weir_op_gather(graph, "rows", var, kit_constant(graph, kit_i64(1)), &rows, NULL), WEIR_OK);
	cr_assert_eq(weir_op_critical_section(graph, "section", section, 0, &rows.node, 1, &rows, 1, outs, &node, NULL),
	             WEIR_OK);
	session = trace_kit_session(graph, trace, 0, 0);
	for (int i = 0; i < 2; i++)
		cr_expect_eq(kit_fetch_f32(session, outs[0]), 2);
	kit_end(session, graph);
	trace_kit_load(trace, &back);
	cr_expect_eq(count_effects(&back, WEIRI_TRACE_READ, 1), 2);
	for (uint64_t entry = 1; entry <= 2; entry++) {
		cr_expect_eq(count_effects(&back, WEIRI_TRACE_ENTERED, entry), 1);
		cr_expect_eq(count_effects(&back, WEIRI_TRACE_LEFT, entry), 1);
	}
	trace_free(&back);
	trace_kit_expect_right(trace);
	cr_assert_eq(weir_trace_destroy(trace, NULL), WEIR_OK);
	cr_assert_eq(weir_critical_section_destroy(section, NULL), WEIR_OK);
	cr_assert_eq(weir_var_destroy(var, NULL), WEIR_OK);
}
