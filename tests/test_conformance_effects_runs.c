/*
 * test_conformance_effects_runs.c - what function bodies do when they run: the rows ACD about branches,
 * loops and training steps, and the rows of queues (FIFO) and critical sections (CRS) in functions.
 */
#include <weir/critical_section.h>
#include <weir/flow/gradient.h>
#include <weir/flow/optimizer.h>

#include "effects_kit.h"

/* -- short ways -------------------------------------------------------------------------------- */

static weir_output mul(weir_graph *body, weir_output a, weir_output b)
{
	weir_output product;

	cr_assert_eq(weir_op_mul(body, NULL, a, b, &product, NULL), WEIR_OK);
	return product;
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

Test(conformance_effects_runs, ACD_030_only_the_effect_of_the_branch_that_was_taken_is_seen)
{
	static const int plain[] = {0, 0, 0};

	cr_expect_eq(choose(true, 5, plain), 6.0f);
	cr_expect_eq(choose(false, 5, plain), 15.0f);
}

Test(conformance_effects_runs, ACD_031_branches_have_effects_although_they_return_constants)
{
	static const int plain[] = {0, 0, 0};

	cr_expect_eq(choose(true, 0, plain), 1.0f);
	cr_expect_eq(choose(false, 0, plain), 10.0f);
}

Test(conformance_effects_runs, ACD_033_one_branch_alone_may_have_an_effect)
{
	static const int one[] = {0, 0, 1};

	cr_expect_eq(choose(true, 5, one), 6.0f);
	cr_expect_eq(choose(false, 5, one), 5.0f);
}

Test(conformance_effects_runs, ACD_034_a_write_before_a_cond_is_seen_in_it)
{
	static const int before[] = {11, 0, 1};

	cr_expect_eq(choose(true, 5, before), 12.0f);
	cr_expect_eq(choose(false, 5, before), 11.0f);
}

Test(conformance_effects_runs, ACD_035_a_write_after_a_cond_sees_its_effect)
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

Test(conformance_effects_runs, ACD_032_conds_nest)
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

Test(conformance_effects_runs, ACD_004_of_assigns_in_a_loop_the_last_iteration_wins)
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

Test(conformance_effects_runs, ACD_036_a_loop_carries_a_count_and_a_vector)
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

Test(conformance_effects_runs, ACD_037_a_function_runs_as_if_line_by_line)
{
	struct scene s;

	open_scene(&s, 77);
	cr_expect_eq(run_scene(&s, define("four", build_four, NULL, var_parameter, 1, 1)), 4.0f);
	close_scene(&s);
}

/* w is read by a node that another one uses: the variable that a body captures is a parameter. */
Test(conformance_effects_runs, ACD_041_a_variable_of_the_caller_is_updated)
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

Test(conformance_effects_runs, ACD_038_a_step_by_a_gradient_inside_a_function)
{
	weir_optimizer *optimizer;
	float value = run_step(WEIR_OPTIMIZER_DESCENT, &optimizer);

	cr_expect_eq(value, -1.0f);
	cr_assert_eq(weir_optimizer_destroy(optimizer, NULL), WEIR_OK);
}

/* The slots, and the number of steps, are made when the body is built. */
Test(conformance_effects_runs, ACD_040_an_optimizer_inside_a_function_has_its_variables)
{
	weir_optimizer *optimizer;
	float value = run_step(WEIR_OPTIMIZER_ADAM, &optimizer);

	cr_expect_float_eq(value, 0.0f, 1e-6f);
	cr_expect_eq(weir_optimizer_variable_count(optimizer), 3);
	cr_assert_eq(weir_optimizer_destroy(optimizer, NULL), WEIR_OK);
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

Test(conformance_effects_runs, FIFO_010_a_queue_in_a_function_persists_and_keeps_program_order)
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

Test(conformance_effects_runs, CRS_002_a_section_in_a_cond_and_a_cond_in_a_section)
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

Test(conformance_effects_runs, CRS_008_rows_that_run_at_once_enter_a_section_one_by_one)
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

Test(conformance_effects_runs, CRS_011_an_edge_from_outside_a_loop_is_kept_by_sections_in_it)
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
