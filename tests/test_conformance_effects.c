/*
 * test_conformance_effects.c - the automatic control edges of function bodies: the rows ACD, and
 * what weir/flow/function.h says about order.
 */
#include <weir/critical_section.h>
#include <weir/flow/function.h>
#include <weir/flow/gradient.h>
#include <weir/flow/optimizer.h>

#include "graph/node.h"
#include "graph_kit.h"

static const weir_shape scalar = {.rank = 0, .dims = {0}};
static const struct weir_parameter var_parameter[] = {{"w", WEIR_PARAMETER_VAR, WEIR_F32, &scalar}};
static const struct weir_parameter loop_parameters[] = {{"i", WEIR_PARAMETER_TENSOR, WEIR_F32, &scalar},
                                                        {"n", WEIR_PARAMETER_TENSOR, WEIR_F32, &scalar},
                                                        {"w", WEIR_PARAMETER_VAR, WEIR_F32, &scalar}};
static const struct weir_parameter choice_parameters[] = {{"yes", WEIR_PARAMETER_TENSOR, WEIR_BOOL, &scalar},
                                                          {"w", WEIR_PARAMETER_VAR, WEIR_F32, &scalar}};

/* -- short ways -------------------------------------------------------------------------------- */

static weir_function *functions[64]; /* in the order in which they were made; they call earlier ones */
static size_t function_count;

static weir_function *define(const char *name, weir_function_fn *build, void *context,
                             const struct weir_parameter *parameters, size_t count, size_t results)
{
	cr_assert_lt(function_count, 64);
	functions[function_count] = kit_function(name, build, context, parameters, count, results);
	return functions[function_count++];
}

static void end_functions(void)
{
	/* Users before what they use. */
	for (size_t left = function_count; left > 0;) {
		size_t before = left;

		for (size_t i = 0; i < function_count; i++) {
			if (functions[i] != NULL && weir_function_destroy(functions[i], NULL) == WEIR_OK) {
				functions[i] = NULL;
				left--;
			}
		}
		cr_assert_lt(left, before, "functions use each other");
	}
	function_count = 0;
}

static weir_output constant(weir_graph *body, float value)
{
	return kit_constant(body, kit_f32(value));
}

static weir_output add(weir_graph *body, weir_output a, weir_output b)
{
	weir_output sum;

	cr_assert_eq(weir_op_add(body, NULL, a, b, &sum, NULL), WEIR_OK);
	return sum;
}

static weir_output mul(weir_graph *body, weir_output a, weir_output b)
{
	weir_output product;

	cr_assert_eq(weir_op_mul(body, NULL, a, b, &product, NULL), WEIR_OK);
	return product;
}

static weir_output read_of(weir_graph *body, weir_var *var)
{
	weir_output out;

	cr_assert_eq(weir_op_read(body, NULL, var, &out, NULL), WEIR_OK);
	return out;
}

static weir_output add_to(weir_graph *body, weir_var *var, float by)
{
	weir_output out;

	cr_assert_eq(weir_op_assign_add(body, NULL, var, constant(body, by), &out, NULL), WEIR_OK);
	return out;
}

static weir_output assign(weir_graph *body, weir_var *var, weir_output value)
{
	weir_output out;

	cr_assert_eq(weir_op_assign(body, NULL, var, value, &out, NULL), WEIR_OK);
	return out;
}

static bool has_edge(weir_output before, weir_output after)
{
	struct weiri_published *link = weiri_published_first(&after.node->controls);

	while (link != NULL && weiri_control_of(link)->before != before.node)
		link = link->next;
	return link != NULL;
}

static size_t edge_count(weir_output after)
{
	size_t count = 0;

	for (struct weiri_published *link = weiri_published_first(&after.node->controls); link != NULL; link = link->next)
		count++;
	return count;
}

/* -- accesses of all kinds --------------------------------------------------------------------- */

enum how { PLAIN, WHILE, COND_TRUE, COND_FALSE, CASE_0, CASE_1, CALL, NESTED_CALL, WHILE_IN_CALL, COND_IN_CALL };

struct access {
	enum how how;
	bool writes;
};

/* Reads or writes w; the result is the value. */
static enum weir_status build_touch(void *context, weir_graph *body, const struct weir_argument arguments[],
                                    weir_output results[], weir_error *error)
{
	const struct access *access = context;

	(void)error;
	results[0] = access->writes ? add_to(body, arguments[0].var, 1) : read_of(body, arguments[0].var);
	return WEIR_OK;
}

static enum weir_status build_idle(void *context, weir_graph *body, const struct weir_argument arguments[],
                                   weir_output results[], weir_error *error)
{
	(void)context;
	(void)arguments;
	(void)error;
	results[0] = constant(body, 0);
	return WEIR_OK;
}

static enum weir_status build_less(void *context, weir_graph *body, const struct weir_argument arguments[],
                                   weir_output results[], weir_error *error)
{
	(void)context;
	return weir_op_less(body, "less", arguments[0].output, arguments[1].output, &results[0], error);
}

/* Touches w, and counts i up by 1: a value that is read is 1. */
static enum weir_status build_turn(void *context, weir_graph *body, const struct weir_argument arguments[],
                                   weir_output results[], weir_error *error)
{
	const struct access *access = context;
	weir_output step = access->writes ? constant(body, 1) : read_of(body, arguments[2].var);

	(void)error;
	if (access->writes)
		(void)add_to(body, arguments[2].var, 1);
	results[0] = add(body, arguments[0].output, step);
	results[1] = arguments[1].output;
	return WEIR_OK;
}

static weir_output touch(weir_graph *body, struct access *access, weir_var *var);

/* Touches w as access + 1 says. */
static enum weir_status build_inner(void *context, weir_graph *body, const struct weir_argument arguments[],
                                    weir_output results[], weir_error *error)
{
	(void)error;
	results[0] = touch(body, (struct access *)context + 1, arguments[0].var);
	return WEIR_OK;
}

static weir_output touch_in_loop(weir_graph *body, struct access *access, weir_var *var)
{
	struct weir_argument arguments[] = {{.output = constant(body, 0)}, {.output = constant(body, 3)}, {.var = var}};
	weir_output outs[2];
	weir_error error;

	cr_assert_eq(weir_op_while(body, NULL, define("less", build_less, NULL, loop_parameters, 3, 1),
	                           define("turn", build_turn, access, loop_parameters, 3, 2), arguments, 3, NULL, outs,
	                           NULL, &error),
	             WEIR_OK, "%s", error.message);
	return outs[0];
}

static weir_output touch_in_case(weir_graph *body, struct access *access, weir_var *var)
{
	bool first = access->how == COND_TRUE || access->how == CASE_0;
	weir_function *touching = define("touch", build_touch, access, var_parameter, 1, 1);
	weir_function *idle = define("idle", build_idle, NULL, var_parameter, 1, 1);
	weir_function *const branches[] = {first ? touching : idle, first ? idle : touching};
	struct weir_argument argument = {.var = var};
	weir_tensor *yes;
	weir_output out;
	weir_error error;

	cr_assert_eq(weir_tensor_scalar_bool(first, &yes), WEIR_OK);
	if (access->how == COND_TRUE || access->how == COND_FALSE) {
		cr_assert_eq(weir_op_cond(body, NULL, kit_constant(body, yes), branches[0], branches[1], &argument, 1, &out,
		                          NULL, &error),
		             WEIR_OK, "%s", error.message);
		return out;
	}
	weir_tensor_release(yes);
	cr_assert_eq(weir_op_case(body, NULL, kit_constant(body, kit_i64(first ? 0 : 1)), branches, 2, &argument, 1, &out,
	                          NULL, &error),
	             WEIR_OK, "%s", error.message);
	return out;
}

static weir_output touch(weir_graph *body, struct access *access, weir_var *var)
{
	struct weir_argument argument = {.var = var};
	weir_function *function;
	weir_output out;
	weir_error error;

	switch (access->how) {
	case PLAIN: return access->writes ? add_to(body, var, 1) : read_of(body, var);
	case WHILE: return touch_in_loop(body, access, var);
	case CALL: function = define("touch", build_touch, access, var_parameter, 1, 1); break;
	case NESTED_CALL:
	case WHILE_IN_CALL:
	case COND_IN_CALL: function = define("inner", build_inner, access, var_parameter, 1, 1); break;
	default: return touch_in_case(body, access, var);
	}
	cr_assert_eq(weir_op_call(body, NULL, function, &argument, 1, &out, NULL, &error), WEIR_OK, "%s", error.message);
	return out;
}

/* -- edges ------------------------------------------------------------------------------------- */

/* A read, the access, a read, a write, a read. */
static enum weir_status build_around(void *context, weir_graph *body, const struct weir_argument arguments[],
                                     weir_output results[], weir_error *error)
{
	weir_output *nodes = context;
	struct access *access = (struct access *)(nodes + 5);

	(void)error;
	nodes[0] = read_of(body, arguments[0].var);
	nodes[1] = touch(body, access, arguments[0].var);
	nodes[2] = read_of(body, arguments[0].var);
	nodes[3] = add_to(body, arguments[0].var, 100);
	nodes[4] = read_of(body, arguments[0].var);
	results[0] = nodes[0];
	results[1] = nodes[1];
	results[2] = nodes[2];
	results[3] = nodes[4];
	return WEIR_OK;
}

/* Checks the edges around an access, and that a run gives the values of program order. */
static void expect_around(enum how how, bool writes)
{
	struct {
		weir_output nodes[5];
		struct access access[2];
	} scene = {.access = {{how, writes},
	                      {how == NESTED_CALL     ? CALL
	                       : how == WHILE_IN_CALL ? WHILE
	                                              : COND_TRUE,
	                       writes}}};
	weir_function *function = define("around", build_around, &scene, var_parameter, 1, 4);
	float added = !writes ? 0 : how == WHILE || how == WHILE_IN_CALL ? 3 : 1;
	weir_output *n = scene.nodes;

	for (size_t threads = 0; threads <= 1; threads++) {
		weir_graph *graph = kit_graph();
		struct weir_session_options options = {WEIR_SESSION_OPTIONS_INIT, .threads = threads,
		                                       .flags = threads == 0 ? WEIR_SESSION_NO_THREADS : 0, .shuffle_seed = 7};
		weir_var *var = kit_var("w", kit_f32(1));
		struct weir_argument argument = {.var = var};
		weir_session *session;
		weir_error error;

		cr_assert_eq(weir_session_create(graph, &options, &session, NULL), WEIR_OK);
		for (int run = 0; run < 20; run++) {
			float now = kit_var_f32(var, 0);
			weir_tensor *results[4];

			if (how == WHILE || how == WHILE_IN_CALL) { /* its reads must see 1 */
				weir_tensor *one = kit_f32(1);

				cr_assert_eq(weir_var_assign(var, one, WEIR_NO_DEADLINE, NULL, NULL), WEIR_OK);
				weir_tensor_release(one);
				now = 1;
			}
			cr_assert_eq(weir_function_run(function, session, &argument, results, WEIR_NO_DEADLINE, NULL, NULL, &error),
			             WEIR_OK, "%s", error.message);
			cr_expect_eq(kit_f32_at(results[0], 0), now);
			cr_expect_eq(kit_f32_at(results[2], 0), now + added);
			cr_expect_eq(kit_f32_at(results[3], 0), now + added + 100);
			for (int i = 0; i < 4; i++)
				weir_tensor_release(results[i]);
		}
		cr_expect_eq(has_edge(n[0], n[1]), writes);
		cr_expect_eq(has_edge(n[1], n[2]), writes);
		cr_expect(has_edge(n[1], n[3]));
		cr_expect(has_edge(n[2], n[3]));
		cr_expect_eq(has_edge(n[0], n[3]), !writes);
		cr_expect(has_edge(n[3], n[4]));
		cr_expect_not(has_edge(n[0], n[2]));
		kit_end(session, graph);
		if (threads == 1)
			end_functions();
		weir_var_destroy(var, NULL);
		if (threads == 0) {
			end_functions();
			function = define("around", build_around, &scene, var_parameter, 1, 4);
		}
	}
}

Test(conformance_effects, ACD_005_reads_have_no_order)
{
	expect_around(PLAIN, false);
}

Test(conformance_effects, ACD_006_a_write_runs_after_the_reads_before_it)
{
	expect_around(PLAIN, true);
}

Test(conformance_effects, ACD_007_reads_run_after_the_last_write)
{
	expect_around(PLAIN, true);
}

Test(conformance_effects, ACD_012_a_loop_that_reads_is_a_read)
{
	expect_around(WHILE, false);
}

Test(conformance_effects, ACD_013_a_cond_that_reads_in_its_true_branch_is_a_read)
{
	expect_around(COND_TRUE, false);
}

Test(conformance_effects, ACD_014_a_cond_that_reads_in_its_false_branch_is_a_read)
{
	expect_around(COND_FALSE, false);
}

Test(conformance_effects, ACD_015_a_case_that_reads_in_branch_0_is_a_read)
{
	expect_around(CASE_0, false);
}

Test(conformance_effects, ACD_016_a_case_that_reads_in_branch_1_is_a_read)
{
	expect_around(CASE_1, false);
}

Test(conformance_effects, ACD_017_a_call_that_reads_is_a_read)
{
	expect_around(CALL, false);
}

Test(conformance_effects, ACD_018_a_call_that_reads_two_levels_down_is_a_read)
{
	expect_around(NESTED_CALL, false);
}

Test(conformance_effects, ACD_019_a_call_of_a_loop_that_reads_is_a_read)
{
	expect_around(WHILE_IN_CALL, false);
}

Test(conformance_effects, ACD_020_a_call_of_a_cond_that_reads_is_a_read)
{
	expect_around(COND_IN_CALL, false);
}

Test(conformance_effects, ACD_021_a_loop_that_writes_is_a_write)
{
	expect_around(WHILE, true);
}

Test(conformance_effects, ACD_023_a_cond_that_writes_in_its_false_branch_is_a_write)
{
	expect_around(COND_TRUE, true);
	expect_around(COND_FALSE, true);
}

Test(conformance_effects, ACD_024_a_case_that_writes_in_branch_0_is_a_write)
{
	expect_around(CASE_0, true);
}

Test(conformance_effects, ACD_025_a_case_that_writes_in_branch_1_is_a_write)
{
	expect_around(CASE_1, true);
}

Test(conformance_effects, ACD_026_a_call_that_writes_is_a_write)
{
	expect_around(CALL, true);
}

Test(conformance_effects, ACD_027_a_call_that_writes_two_levels_down_is_a_write)
{
	expect_around(NESTED_CALL, true);
}

Test(conformance_effects, ACD_028_a_call_of_a_loop_that_writes_is_a_write)
{
	expect_around(WHILE_IN_CALL, true);
	expect_around(COND_IN_CALL, true);
}

/* -- whole patterns ---------------------------------------------------------------------------- */

struct scene {
	weir_output nodes[16];
	weir_var *var;
	weir_session *session;
	weir_graph *graph;
};

static void open_scene(struct scene *s, float value)
{
	*s = (struct scene){.var = kit_var("w", kit_f32(value)), .graph = kit_graph()};
	s->session = kit_session(s->graph, 0);
}

static void close_scene(struct scene *s)
{
	kit_end(s->session, s->graph);
	end_functions();
	weir_var_destroy(s->var, NULL);
}

/* Runs a function of w, whose result is one f32. */
static float run_scene(struct scene *s, weir_function *function)
{
	struct weir_argument argument = {.var = s->var};
	weir_tensor *result;
	weir_error error;
	float value;

	cr_assert_eq(weir_function_run(function, s->session, &argument, &result, WEIR_NO_DEADLINE, NULL, NULL, &error),
	             WEIR_OK, "%s", error.message);
	value = kit_f32_at(result, 0);
	weir_tensor_release(result);
	return value;
}

/* R R W W R R W W; all reads are used. */
static enum weir_status build_pattern(void *context, weir_graph *body, const struct weir_argument arguments[],
                                      weir_output results[], weir_error *error)
{
	weir_output *n = ((struct scene *)context)->nodes;

	(void)error;
	for (int i = 0; i < 8; i++)
		n[i] = i % 4 < 2 ? read_of(body, arguments[0].var) : add_to(body, arguments[0].var, (float)(i + 1));
	results[0] = add(body, add(body, n[0], n[1]), add(body, n[4], n[5]));
	return WEIR_OK;
}

Test(conformance_effects, ACD_010_reads_and_writes_have_the_edges_of_program_order)
{
	struct scene s;
	weir_output *n = s.nodes;
	static const int edges[][2] = {{0, 2}, {1, 2}, {2, 3}, {3, 4}, {3, 5}, {4, 6}, {5, 6}, {3, 6}, {6, 7}};
	size_t found = 0;

	open_scene(&s, 1);
	cr_expect_eq(run_scene(&s, define("pattern", build_pattern, &s, var_parameter, 1, 1)), 1 + 1 + 8.0f + 8.0f);
	cr_expect_eq(kit_var_f32(s.var, 0), 1 + 3 + 4 + 7 + 8.0f, "the last write has run");
	for (size_t i = 0; i < sizeof(edges) / sizeof(edges[0]); i++)
		cr_expect(has_edge(n[edges[i][0]], n[edges[i][1]]), "%d -> %d", edges[i][0], edges[i][1]);
	for (int i = 0; i < 8; i++)
		found += edge_count(n[i]);
	cr_expect_eq(found, sizeof(edges) / sizeof(edges[0]), "and no other");
	close_scene(&s);
}

/* An unused read, a used one, and a write. */
static enum weir_status build_unused(void *context, weir_graph *body, const struct weir_argument arguments[],
                                     weir_output results[], weir_error *error)
{
	weir_output *n = ((struct scene *)context)->nodes;

	(void)error;
	n[0] = read_of(body, arguments[0].var);
	n[1] = read_of(body, arguments[0].var);
	n[2] = add_to(body, arguments[0].var, 1);
	results[0] = n[1];
	return WEIR_OK;
}

Test(conformance_effects, ACD_009_a_read_runs_if_it_is_used)
{
	struct scene s;

	open_scene(&s, 5);
	cr_expect_eq(run_scene(&s, define("unused", build_unused, &s, var_parameter, 1, 1)), 5.0f);
	cr_expect(has_edge(s.nodes[1], s.nodes[2]));
	cr_expect_not(has_edge(s.nodes[0], s.nodes[2]), "an edge would make it run");
	close_scene(&s);
}

/* Two parameters, which may be one variable. */
static enum weir_status build_alias(void *context, weir_graph *body, const struct weir_argument arguments[],
                                    weir_output results[], weir_error *error)
{
	weir_output *n = ((struct scene *)context)->nodes;

	(void)error;
	n[0] = add_to(body, arguments[0].var, 1);
	n[1] = read_of(body, arguments[1].var);
	results[0] = n[1];
	return WEIR_OK;
}

static void run_alias(bool aliased)
{
	static const struct weir_parameter parameters[] = {{"a", WEIR_PARAMETER_VAR, 0, NULL},
	                                                   {"b", WEIR_PARAMETER_VAR, 0, NULL}};
	weir_var *other = kit_var("other", kit_f32(7));
	struct weir_argument arguments[2];
	weir_tensor *result;
	struct scene s;

	open_scene(&s, 1);
	arguments[0].var = s.var;
	arguments[1].var = aliased ? s.var : other;
	cr_assert_eq(weir_function_run(define("alias", build_alias, &s, parameters, 2, 1), s.session, arguments, &result,
	                               WEIR_NO_DEADLINE, NULL, NULL, NULL),
	             WEIR_OK);
	cr_expect_eq(kit_f32_at(result, 0), aliased ? 2.0f : 7.0f);
	cr_expect_eq(has_edge(s.nodes[0], s.nodes[1]), aliased);
	weir_tensor_release(result);
	close_scene(&s);
	weir_var_destroy(other, NULL);
}

Test(conformance_effects, ACD_008_a_variable_is_known_under_both_of_its_names)
{
	run_alias(true);
	run_alias(false);
}

Test(conformance_effects, ACD_042_a_variable_may_be_given_twice)
{
	run_alias(true);
}

/* Puts a constant into the queue; nothing uses the enqueue. */
static enum weir_status build_send(void *context, weir_graph *body, const struct weir_argument arguments[],
                                   weir_output results[], weir_error *error)
{
	weir_output item = constant(body, 3);

	(void)context;
	results[0] = constant(body, 1);
	return weir_op_enqueue(body, NULL, arguments[0].queue, &item, 1, NULL, error);
}

Test(conformance_effects, ACD_011_an_enqueue_runs_always)
{
	static const struct weir_parameter parameters[] = {{"q", WEIR_PARAMETER_QUEUE, 0, NULL}};
	weir_tensor_queue *queue = kit_queue("q", 4, WEIR_F32, &scalar);
	struct weir_argument argument = {.queue = queue};
	weir_tensor *result;
	struct scene s;

	open_scene(&s, 0);
	cr_assert_eq(weir_function_run(define("send", build_send, NULL, parameters, 1, 1), s.session, &argument, &result,
	                               WEIR_NO_DEADLINE, NULL, NULL, NULL),
	             WEIR_OK);
	weir_tensor_release(result);
	cr_expect_eq(weir_tensor_queue_size_approx(queue), 1);
	close_scene(&s);
	kit_queue_end(queue);
}

/* -- what runs --------------------------------------------------------------------------------- */

/* A branch: adds *context to w; the result is a constant. */
static enum weir_status build_add(void *context, weir_graph *body, const struct weir_argument arguments[],
                                  weir_output results[], weir_error *error)
{
	(void)error;
	(void)add_to(body, arguments[0].var, *(const float *)context);
	results[0] = constant(body, 9);
	return WEIR_OK;
}

static float amounts[] = {1, 10, 0};

/* if (yes) w += 1 else w += 10; the result is w, read after. */
static enum weir_status build_choice(void *context, weir_graph *body, const struct weir_argument arguments[],
                                     weir_output results[], weir_error *error)
{
	struct weir_argument argument = {.var = arguments[1].var};
	const int *with = context; /* writes before and after */
	weir_output out;
	enum weir_status status;

	if (with[0] != 0)
		(void)assign(body, argument.var, constant(body, (float)with[0]));
	status = weir_op_cond(body, NULL, arguments[0].output, define("then", build_add, &amounts[0], var_parameter, 1, 1),
	                      with[2] != 0 ? define("idle", build_idle, NULL, var_parameter, 1, 1)
	                                   : define("else", build_add, &amounts[1], var_parameter, 1, 1),
	                      &argument, 1, &out, NULL, error);
	if (with[1] != 0)
		(void)assign(body, argument.var, mul(body, read_of(body, argument.var), constant(body, (float)with[1])));
	results[0] = read_of(body, argument.var);
	results[1] = out;
	return status;
}

/* Runs the choice, and returns what was read at its end. */
static float choose(bool yes, float start, const int *with)
{
	struct weir_argument arguments[2];
	weir_tensor *results[2];
	weir_error error;
	struct scene s;
	float value;

	open_scene(&s, start);
	cr_assert_eq(weir_tensor_scalar_bool(yes, &arguments[0].tensor), WEIR_OK);
	arguments[1].var = s.var;
	cr_assert_eq(weir_function_run(define("choice", build_choice, (void *)(uintptr_t)with, choice_parameters, 2, 2),
	                               s.session, arguments, results, WEIR_NO_DEADLINE, NULL, NULL, &error),
	             WEIR_OK, "%s", error.message);
	value = kit_f32_at(results[0], 0);
	cr_expect_eq(kit_f32_at(results[1], 0), with[2] != 0 && !yes ? 0.0f : 9.0f);
	weir_tensor_release(arguments[0].tensor);
	weir_tensor_release(results[0]);
	weir_tensor_release(results[1]);
	close_scene(&s);
	return value;
}

Test(conformance_effects, ACD_030_only_the_effect_of_the_branch_that_was_taken_is_seen)
{
	static const int plain[] = {0, 0, 0};

	cr_expect_eq(choose(true, 5, plain), 6.0f);
	cr_expect_eq(choose(false, 5, plain), 15.0f);
}

Test(conformance_effects, ACD_031_branches_have_effects_although_they_return_constants)
{
	static const int plain[] = {0, 0, 0};

	cr_expect_eq(choose(true, 0, plain), 1.0f);
	cr_expect_eq(choose(false, 0, plain), 10.0f);
}

Test(conformance_effects, ACD_033_one_branch_alone_may_have_an_effect)
{
	static const int one[] = {0, 0, 1};

	cr_expect_eq(choose(true, 5, one), 6.0f);
	cr_expect_eq(choose(false, 5, one), 5.0f);
}

Test(conformance_effects, ACD_034_a_write_before_a_cond_is_seen_in_it)
{
	static const int before[] = {11, 0, 1};

	cr_expect_eq(choose(true, 5, before), 12.0f);
	cr_expect_eq(choose(false, 5, before), 11.0f);
}

Test(conformance_effects, ACD_035_a_write_after_a_cond_sees_its_effect)
{
	static const int after[] = {0, 2, 1};

	cr_expect_eq(choose(true, 9, after), 20.0f);
	cr_expect_eq(choose(false, 5, after), 10.0f);
}

/* Conds in a branch of a cond: adds 1 or 2, or 3 or 4, as the two bools say. */
static enum weir_status build_pair(void *context, weir_graph *body, const struct weir_argument arguments[],
                                   weir_output results[], weir_error *error)
{
	static float by[] = {1, 2, 3, 4};
	struct weir_argument argument = {.var = arguments[1].var};
	const int which = *(const int *)context;

	return weir_op_cond(body, NULL, arguments[0].output, define("then", build_add, &by[which], var_parameter, 1, 1),
	                    define("else", build_add, &by[which + 1], var_parameter, 1, 1), &argument, 1, &results[0], NULL,
	                    error);
}

static enum weir_status build_nested(void *context, weir_graph *body, const struct weir_argument arguments[],
                                     weir_output results[], weir_error *error)
{
	static int first = 0, second = 2;
	struct weir_argument rest[] = {arguments[1], {.var = arguments[2].var}};

	(void)context;
	return weir_op_cond(body, NULL, arguments[0].output, define("a", build_pair, &first, choice_parameters, 2, 1),
	                    define("b", build_pair, &second, choice_parameters, 2, 1), rest, 2, &results[0], NULL, error);
}

Test(conformance_effects, ACD_032_conds_nest)
{
	static const struct weir_parameter parameters[] = {{"p", WEIR_PARAMETER_TENSOR, WEIR_BOOL, &scalar},
	                                                   {"q", WEIR_PARAMETER_TENSOR, WEIR_BOOL, &scalar},
	                                                   {"w", WEIR_PARAMETER_VAR, 0, NULL}};
	weir_function *nested;
	float expected = 2;
	struct scene s;

	open_scene(&s, 2);
	nested = define("nested", build_nested, NULL, parameters, 3, 1);
	for (int i = 0; i < 4; i++) {
		struct weir_argument arguments[3];
		weir_tensor *result;
		weir_error error;

		cr_assert_eq(weir_tensor_scalar_bool(i < 2, &arguments[0].tensor), WEIR_OK);
		cr_assert_eq(weir_tensor_scalar_bool(i % 2 == 0, &arguments[1].tensor), WEIR_OK);
		arguments[2].var = s.var;
		cr_assert_eq(weir_function_run(nested, s.session, arguments, &result, WEIR_NO_DEADLINE, NULL, NULL, &error),
		             WEIR_OK, "%s", error.message);
		expected += (float)(i + 1);
		cr_expect_eq(kit_var_f32(s.var, 0), expected);
		weir_tensor_release(result);
		weir_tensor_release(arguments[0].tensor);
		weir_tensor_release(arguments[1].tensor);
	}
	close_scene(&s);
}

/* A turn of a loop that assigns i and then i + 10 to w. */
static enum weir_status build_assigns(void *context, weir_graph *body, const struct weir_argument arguments[],
                                      weir_output results[], weir_error *error)
{
	(void)context;
	(void)error;
	(void)assign(body, arguments[2].var, arguments[0].output);
	(void)assign(body, arguments[2].var, add(body, arguments[0].output, constant(body, 10)));
	results[0] = add(body, arguments[0].output, constant(body, 1));
	results[1] = arguments[1].output;
	return WEIR_OK;
}

static enum weir_status build_assign_loop(void *context, weir_graph *body, const struct weir_argument arguments[],
                                          weir_output results[], weir_error *error)
{
	struct weir_argument given[] = {
		{.output = constant(body, 0)}, {.output = constant(body, 10)}, {.var = arguments[0].var}};
	weir_output outs[2];
	enum weir_status status =
		weir_op_while(body, NULL, define("less", build_less, NULL, loop_parameters, 3, 1),
	                  define("turn", build_assigns, NULL, loop_parameters, 3, 2), given, 3, NULL, outs, NULL, error);

	(void)context;
	results[0] = outs[0];
	return status;
}

Test(conformance_effects, ACD_004_of_assigns_in_a_loop_the_last_iteration_wins)
{
	struct scene s;

	open_scene(&s, -1);
	cr_expect_eq(run_scene(&s, define("loop", build_assign_loop, NULL, var_parameter, 1, 1)), 10.0f);
	cr_expect_eq(kit_var_f32(s.var, 0), 19.0f);
	close_scene(&s);
}

/* i + 1, v + 1. */
static enum weir_status build_count_vector(void *context, weir_graph *body, const struct weir_argument arguments[],
                                           weir_output results[], weir_error *error)
{
	(void)context;
	(void)error;
	results[0] = add(body, arguments[0].output, constant(body, 1));
	results[1] = arguments[1].output;
	results[2] = add(body, arguments[2].output, constant(body, 1));
	return WEIR_OK;
}

Test(conformance_effects, ACD_036_a_loop_carries_a_count_and_a_vector)
{
	static const struct weir_parameter parameters[] = {{"i", WEIR_PARAMETER_TENSOR, WEIR_F32, &scalar},
	                                                   {"n", WEIR_PARAMETER_TENSOR, WEIR_F32, &scalar},
	                                                   {"v", WEIR_PARAMETER_TENSOR, WEIR_F32, NULL}};
	struct weir_argument arguments[3];
	weir_output outs[3];
	weir_tensor *results[3];
	weir_error error;
	struct scene s;

	open_scene(&s, 0);
	arguments[0].output = constant(s.graph, 0);
	arguments[1].output = constant(s.graph, 3);
	arguments[2].output = kit_constant(s.graph, kit_tensor(WEIR_F32, kit_shape(1, 3), (const float[]){1, 2, 3}));
	cr_assert_eq(weir_op_while(s.graph, NULL, define("less", build_less, NULL, parameters, 3, 1),
	                           define("turn", build_count_vector, NULL, parameters, 3, 3), arguments, 3, NULL, outs,
	                           NULL, &error),
	             WEIR_OK, "%s", error.message);
	cr_assert_eq(weir_session_run(s.session, NULL, 0, outs, 3, results, NULL, 0, WEIR_NO_DEADLINE, NULL, &error),
	             WEIR_OK, "%s", error.message);
	cr_expect_eq(kit_f32_at(results[0], 0), 3.0f);
	for (size_t i = 0; i < 3; i++) {
		cr_expect_eq(kit_f32_at(results[2], i), (float)i + 4);
	}
	for (int i = 0; i < 3; i++)
		weir_tensor_release(results[i]);
	close_scene(&s);
}

/* w = 2; w += 2; return w. */
static enum weir_status build_four(void *context, weir_graph *body, const struct weir_argument arguments[],
                                   weir_output results[], weir_error *error)
{
	(void)context;
	(void)error;
	(void)assign(body, arguments[0].var, constant(body, 2));
	(void)add_to(body, arguments[0].var, 2);
	results[0] = read_of(body, arguments[0].var);
	return WEIR_OK;
}

Test(conformance_effects, ACD_037_a_function_runs_as_if_line_by_line)
{
	struct scene s;

	open_scene(&s, 77);
	cr_expect_eq(run_scene(&s, define("four", build_four, NULL, var_parameter, 1, 1)), 4.0f);
	close_scene(&s);
}

/* w is read by a node that another one uses: the variable that a body captures is a parameter. */
Test(conformance_effects, ACD_041_a_variable_of_the_caller_is_updated)
{
	struct scene s;
	struct weir_argument argument;
	weir_output out;

	open_scene(&s, 3);
	argument.var = s.var;
	cr_assert_eq(weir_op_call(s.graph, NULL, define("four", build_four, NULL, var_parameter, 1, 1), &argument, 1, &out,
	                          NULL, NULL),
	             WEIR_OK);
	cr_expect_eq(kit_fetch_f32(s.session, out), 4.0f);
	cr_expect_eq(kit_var_f32(s.var, 0), 4.0f);
	close_scene(&s);
}

/* A step by the gradient of w * w; the read after it sees what it published. */
static enum weir_status build_step(void *context, weir_graph *body, const struct weir_argument arguments[],
                                   weir_output results[], weir_error *error)
{
	weir_output w = read_of(body, arguments[0].var), loss, gradient, step;

	if (weir_op_square(body, NULL, w, &loss, error) || weir_gradients(body, &loss, 1, &w, 1, &gradient, error) ||
	    weir_op_apply(body, NULL, context, &arguments[0].var, &gradient, 1, &step, NULL, error))
		return error->code;
	results[0] = read_of(body, arguments[0].var);
	return WEIR_OK;
}

static float run_step(enum weir_optimizer_kind kind, weir_optimizer **out)
{
	struct weir_optimizer_options options = {WEIR_OPTIMIZER_OPTIONS_INIT, .kind = kind, .rate = 1};
	weir_optimizer *optimizer;
	struct weir_argument argument;
	struct scene s;
	weir_output result;
	weir_error error;
	float value;

	cr_assert_eq(weir_optimizer_create(&options, &optimizer, &error), WEIR_OK, "%s", error.message);
	open_scene(&s, 1);
	argument.var = s.var;
	cr_assert_eq(weir_op_call(s.graph, NULL, define("train", build_step, optimizer, var_parameter, 1, 1), &argument, 1,
	                          &result, NULL, &error),
	             WEIR_OK, "%s", error.message);
	value = kit_fetch_f32(s.session, result);
	cr_expect_eq(value, kit_var_f32(s.var, 0));
	close_scene(&s);
	*out = optimizer;
	return value;
}

Test(conformance_effects, ACD_038_a_step_by_a_gradient_inside_a_function)
{
	weir_optimizer *optimizer;
	float value = run_step(WEIR_OPTIMIZER_DESCENT, &optimizer);

	cr_expect_eq(value, -1.0f);
	cr_assert_eq(weir_optimizer_destroy(optimizer, NULL), WEIR_OK);
}

/* The slots, and the number of steps, are made when the body is built. */
Test(conformance_effects, ACD_040_an_optimizer_inside_a_function_has_its_variables)
{
	weir_optimizer *optimizer;
	float value = run_step(WEIR_OPTIMIZER_ADAM, &optimizer);

	cr_expect_float_eq(value, 0.0f, 1e-6f);
	cr_expect_eq(weir_optimizer_variable_count(optimizer), 3);
	cr_assert_eq(weir_optimizer_destroy(optimizer, NULL), WEIR_OK);
}

/* -- beyond the rows --------------------------------------------------------------------------- */

static enum weir_status note(void *context, const struct weir_kernel_call *call, weir_error *error)
{
	char *text = context;

	(void)error;
	(void)strncat(text, call->node, 31 - strlen(text));
	return WEIR_OK;
}

static const struct weir_kernel note_kernel = {WEIR_KERNEL_INIT, .name = "note",
                                               .flags = WEIR_KERNEL_SHORT | WEIR_KERNEL_STATEFUL, .run = note};

static enum weir_status build_notes(void *context, weir_graph *body, const struct weir_argument arguments[],
                                    weir_output results[], weir_error *error)
{
	static const char *const names[] = {"a", "b", "c", "d", "e"};
	weir_node *exempt = NULL;
	enum weir_status status = WEIR_OK;

	(void)arguments;
	for (int i = 0; status == WEIR_OK && i < 5; i++) {
		weir_node *node;

		status = weir_op_kernel(body, names[i], &note_kernel, context, NULL, 0, NULL, 0, NULL, 0, NULL, &node, error);
		if (i == 2)
			exempt = node;
	}
	if (status == WEIR_OK)
		status = weir_graph_exempt(exempt, error);
	results[0] = constant(body, 1);
	return status;
}

Test(conformance_effects, stateful_kernels_run_in_program_order_unless_exempt)
{
	char text[32] = "";
	struct scene s;

	open_scene(&s, 0);
	(void)run_scene(&s, define("notes", build_notes, text, var_parameter, 1, 1));
	cr_expect_str_eq(text, "abde");
	close_scene(&s);
}

/* The user wants the second write first. */
static enum weir_status build_contrary(void *context, weir_graph *body, const struct weir_argument arguments[],
                                       weir_output results[], weir_error *error)
{
	weir_output *n = ((struct scene *)context)->nodes;

	n[0] = assign(body, arguments[0].var, constant(body, 1));
	n[1] = assign(body, arguments[0].var, constant(body, 2));
	n[2] = read_of(body, arguments[0].var);
	results[0] = n[2];
	return weir_graph_add_control(body, n[1].node, n[0].node, error);
}

Test(conformance_effects, an_edge_of_the_user_comes_first)
{
	struct scene s;

	open_scene(&s, 0);
	(void)run_scene(&s, define("contrary", build_contrary, &s, var_parameter, 1, 1));
	cr_expect_eq(kit_var_f32(s.var, 0), 1.0f);
	cr_expect_not(has_edge(s.nodes[0], s.nodes[1]));
	close_scene(&s);
}

/* -- queues and critical sections in functions ------------------------------------------------- */

/* Puts 2 and then 5 into the queue; the result is taken from it. */
static enum weir_status build_two_and_five(void *context, weir_graph *body, const struct weir_argument arguments[],
                                           weir_output results[], weir_error *error)
{
	weir_output two = constant(body, 2), five = constant(body, 5);

	(void)context;
	cr_assert_eq(weir_op_enqueue(body, NULL, arguments[0].queue, &two, 1, NULL, error), WEIR_OK);
	cr_assert_eq(weir_op_enqueue(body, NULL, arguments[0].queue, &five, 1, NULL, error), WEIR_OK);
	return weir_op_dequeue(body, NULL, arguments[0].queue, results, 1, NULL, error);
}

Test(conformance_effects, FIFO_010_a_queue_in_a_function_persists_and_keeps_program_order)
{
	static const struct weir_parameter parameters[] = {{"q", WEIR_PARAMETER_QUEUE, 0, NULL}};
	static const float expected[] = {2, 5, 2, 5};
	weir_tensor_queue *queue = kit_queue("q", 10, WEIR_F32, &scalar);
	struct weir_argument argument = {.queue = queue};
	weir_function *function;
	struct scene s;

	open_scene(&s, 0);
	function = define("two and five", build_two_and_five, NULL, parameters, 1, 1);
	for (size_t i = 0; i < 4; i++) {
		weir_tensor *result;

		cr_assert_eq(weir_function_run(function, s.session, &argument, &result, WEIR_NO_DEADLINE, NULL, NULL, NULL),
		             WEIR_OK);
		cr_expect_eq(kit_f32_at(result, 0), expected[i]);
		weir_tensor_release(result);
	}
	cr_expect_eq(weir_tensor_queue_size_approx(queue), 4);
	close_scene(&s);
	kit_queue_end(queue);
}

/* Adds `by` to w in the section: a read, and an assign of what was read and `by`. */
static weir_output add_inside(weir_graph *body, weir_critical_section *section, weir_var *var, weir_output by)
{
	weir_output read = read_of(body, var);
	weir_output sum = add(body, read, by);
	weir_output assigned = assign(body, var, sum);
	weir_node *nodes[] = {read.node, sum.node, assigned.node};
	weir_output out;
	weir_error error;

	cr_assert_eq(weir_op_critical_section(body, NULL, section, 0, nodes, 3, &assigned, 1, &out, NULL, &error), WEIR_OK,
	             "%s", error.message);
	return out;
}

static weir_critical_section *a_section(void)
{
	struct weir_critical_section_options options = {WEIR_CRITICAL_SECTION_OPTIONS_INIT, .name = "cs"};
	weir_critical_section *section;

	cr_assert_eq(weir_critical_section_create(&options, &section, NULL), WEIR_OK);
	return section;
}

/* A branch with a section in it. */
static enum weir_status build_inside(void *context, weir_graph *body, const struct weir_argument arguments[],
                                     weir_output results[], weir_error *error)
{
	(void)error;
	results[0] = add_inside(body, context, arguments[0].var, constant(body, 1));
	return WEIR_OK;
}

Test(conformance_effects, CRS_002_a_section_in_a_cond_and_a_cond_in_a_section)
{
	weir_critical_section *section = a_section();
	struct weir_argument argument;
	weir_output yes, inner, outer;
	weir_node *whole;
	weir_tensor *truth;
	weir_error error;
	struct scene s;

	open_scene(&s, 0);
	argument.var = s.var;
	cr_assert_eq(weir_tensor_scalar_bool(true, &truth), WEIR_OK);
	yes = kit_constant(s.graph, truth);
	cr_assert_eq(weir_op_cond(s.graph, "around", yes, define("inside", build_inside, section, var_parameter, 1, 1),
	                          define("idle", build_idle, NULL, var_parameter, 1, 1), &argument, 1, &outer, NULL, NULL),
	             WEIR_OK);
	/* The two together would wait for themselves. */
	cr_expect_eq(weir_op_critical_section(s.graph, NULL, section, 0, &(weir_node *){outer.node}, 1, NULL, 0, NULL,
	                                      &whole, &error),
	             WEIR_INVALID_ARGUMENT);
	cr_expect(strstr(error.message, "critical section \"cs\"") != NULL, "%s", error.message);
	cr_expect_eq(kit_fetch_f32(s.session, outer), 1.0f);
	cr_assert_eq(weir_op_cond(s.graph, "within", yes, define("add", build_add, &amounts[1], var_parameter, 1, 1),
	                          define("idle", build_idle, NULL, var_parameter, 1, 1), &argument, 1, &inner, NULL, NULL),
	             WEIR_OK);
	cr_assert_eq(weir_op_critical_section(s.graph, NULL, section, 0, &inner.node, 1, NULL, 0, NULL, &whole, NULL),
	             WEIR_OK);
	cr_expect_eq(kit_run_target(s.session, whole, NULL), WEIR_OK);
	cr_expect_eq(kit_var_f32(s.var, 0), 11.0f);
	close_scene(&s);
	cr_assert_eq(weir_critical_section_destroy(section, NULL), WEIR_OK);
}

/* A row: adds a constant of the body, the row, or a tensor that goes whole to each row. */
struct capture {
	weir_critical_section *section;
	int style;
};

static enum weir_status build_row(void *context, weir_graph *body, const struct weir_argument arguments[],
                                  weir_output results[], weir_error *error)
{
	const struct capture *capture = context;

	(void)error;
	results[0] = add_inside(body, capture->section, arguments[2].var,
	                        capture->style == 0 ? constant(body, 1) : arguments[capture->style - 1].output);
	return WEIR_OK;
}

Test(conformance_effects, CRS_008_rows_that_run_at_once_enter_a_section_one_by_one)
{
	enum { ROWS = 1000 };
	static const struct weir_parameter parameters[] = {{"row", WEIR_PARAMETER_TENSOR, WEIR_F32, &scalar},
	                                                   {"whole", WEIR_PARAMETER_TENSOR, WEIR_F32, &scalar},
	                                                   {"w", WEIR_PARAMETER_VAR, 0, NULL}};
	struct weir_map_options options = {WEIR_MAP_OPTIONS_INIT, .at_once = 10, .whole = 1};
	static float ones[ROWS];

	for (int i = 0; i < ROWS; i++)
		ones[i] = 1;
	for (int style = 0; style < 3; style++) {
		struct capture capture = {a_section(), style};
		weir_graph *graph = kit_graph();
		weir_session *session = kit_session(graph, 2);
		weir_var *var = kit_var("w", kit_f32(0));
		struct weir_argument arguments[3] = {
			{.output = kit_constant(graph, kit_tensor(WEIR_F32, kit_shape(1, ROWS), ones))},
			{.output = constant(graph, 1)},
			{.var = var}};
		weir_output out;
		weir_error error;
		double sum = 0;
		weir_tensor *result;

		cr_assert_eq(weir_op_map(graph, NULL, define("row", build_row, &capture, parameters, 3, 1), arguments, 3,
		                         &options, &out, NULL, &error),
		             WEIR_OK, "%s", error.message);
		result = kit_fetch(session, out);
		for (size_t i = 0; i < ROWS; i++)
			sum += (double)kit_f32_at(result, i);
		cr_expect_eq(sum, ROWS * (ROWS + 1) / 2.0, "each row saw a sum of its own");
		cr_expect_eq(kit_var_f32(var, 0), (float)ROWS);
		weir_tensor_release(result);
		kit_end(session, graph);
		end_functions();
		weir_var_destroy(var, NULL);
		cr_assert_eq(weir_critical_section_destroy(capture.section, NULL), WEIR_OK);
	}
}

/* A turn of a loop that adds 1 to w in the section. */
static enum weir_status build_turn_inside(void *context, weir_graph *body, const struct weir_argument arguments[],
                                          weir_output results[], weir_error *error)
{
	(void)error;
	(void)add_inside(body, context, arguments[2].var, constant(body, 1));
	results[0] = add(body, arguments[0].output, constant(body, 1));
	results[1] = arguments[1].output;
	return WEIR_OK;
}

Test(conformance_effects, CRS_011_an_edge_from_outside_a_loop_is_kept_by_sections_in_it)
{
	weir_critical_section *section = a_section();
	struct weir_argument arguments[3];
	weir_output zero, outs[2];
	struct scene s;

	open_scene(&s, 77);
	arguments[0].output = constant(s.graph, 0);
	arguments[1].output = constant(s.graph, 10);
	arguments[2].var = s.var;
	zero = assign(s.graph, s.var, constant(s.graph, 0));
	cr_assert_eq(weir_op_while(s.graph, NULL, define("less", build_less, NULL, loop_parameters, 3, 1),
	                           define("turn", build_turn_inside, section, loop_parameters, 3, 2), arguments, 3, NULL,
	                           outs, NULL, NULL),
	             WEIR_OK);
	cr_assert_eq(weir_graph_add_control(s.graph, zero.node, outs[0].node, NULL), WEIR_OK);
	for (int i = 0; i < 3; i++) {
		cr_expect_eq(kit_fetch_f32(s.session, outs[0]), 10.0f);
		cr_expect_eq(kit_var_f32(s.var, 0), 10.0f);
	}
	close_scene(&s);
	cr_assert_eq(weir_critical_section_destroy(section, NULL), WEIR_OK);
}
