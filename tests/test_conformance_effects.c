/*
 * test_conformance_effects.c - the automatic control edges of function bodies: the rows ACD about edges,
 * and what weir/flow/function.h says about order.
 */
#include "effects_kit.h"

/* -- short ways -------------------------------------------------------------------------------- */

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
