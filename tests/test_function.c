/*
 * test_function.c - functions: bodies by signature, calls, cases, loops, maps, and what is refused.
 */
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <weir/flow/callable.h>
#include <weir/flow/function.h>
#include <weir/flow/op_math.h>
#include <weir/reclaim.h>

#include "failing_allocator.h"
#include "graph_kit.h"
#include "run/countdown.h"

static const weir_shape scalar = {.rank = 0, .dims = {0}};

/* -- short ways -------------------------------------------------------------------------------- */

static void end_function(weir_function *function)
{
	weir_error error;

	cr_assert_eq(weir_function_destroy(function, &error), WEIR_OK, "%s", error.message);
}

static const struct weir_parameter one_tensor[] = {{"x", WEIR_PARAMETER_TENSOR, 0, NULL}};
static const struct weir_parameter two_scalars[] = {{"i", WEIR_PARAMETER_TENSOR, WEIR_F32, &scalar},
                                                    {"n", WEIR_PARAMETER_TENSOR, WEIR_F32, &scalar}};
static const struct weir_parameter one_var[] = {{"w", WEIR_PARAMETER_VAR, WEIR_F32, NULL}};
static const struct weir_parameter tensor_and_var[] = {{"x", WEIR_PARAMETER_TENSOR, WEIR_F32, NULL},
                                                       {"w", WEIR_PARAMETER_VAR, WEIR_F32, NULL}};
/* As many tensors, at other places. */
static const struct weir_parameter var_and_tensor[] = {{"v", WEIR_PARAMETER_VAR, WEIR_F32, NULL},
                                                       {"y", WEIR_PARAMETER_TENSOR, WEIR_F32, NULL}};

static struct weir_argument of_output(weir_output output)
{
	return (struct weir_argument){.output = output};
}

static float run_f32(weir_function *function, weir_session *session, const struct weir_argument *arguments)
{
	weir_tensor *result = NULL;
	weir_error error;
	float value;

	cr_assert_eq(weir_function_run(function, session, arguments, &result, WEIR_NO_DEADLINE, NULL, NULL, &error),
	             WEIR_OK, "%s", error.message);
	value = kit_f32_at(result, 0);
	weir_tensor_release(result);
	return value;
}

static enum weir_status f32_constant(weir_graph *graph, float value, weir_output *out, weir_error *error)
{
	weir_tensor *tensor;
	enum weir_status status = weir_tensor_scalar_f32(value, &tensor);

	if (status != WEIR_OK)
		return status;
	status = weir_op_constant(graph, NULL, tensor, out, error);
	weir_tensor_release(tensor);
	return status;
}

/* -- bodies ------------------------------------------------------------------------------------ */

static enum weir_status build_double(void *context, weir_graph *body, const struct weir_argument arguments[],
                                     weir_output results[], weir_error *error)
{
	if (context != NULL)
		++*(int *)context;
	return weir_op_add(body, "twice", arguments[0].output, arguments[0].output, &results[0], error);
}

/* x + 1, for a loop over (i, n): (i + 1, n). */
static enum weir_status build_step(void *context, weir_graph *body, const struct weir_argument arguments[],
                                   weir_output results[], weir_error *error)
{
	weir_output one;
	enum weir_status status = f32_constant(body, 1, &one, error);

	(void)context;
	results[1] = arguments[1].output;
	return status == WEIR_OK ? weir_op_add(body, "next", arguments[0].output, one, &results[0], error) : status;
}

static enum weir_status build_less(void *context, weir_graph *body, const struct weir_argument arguments[],
                                   weir_output results[], weir_error *error)
{
	(void)context;
	return weir_op_less(body, "less", arguments[0].output, arguments[1].output, &results[0], error);
}

/* Adds *context to the variable that is the last parameter; result 0 is the new value. */
static enum weir_status build_bump(void *context, weir_graph *body, const struct weir_argument arguments[],
                                   weir_output results[], weir_error *error)
{
	weir_var *var = arguments[0].var != NULL ? arguments[0].var : arguments[1].var;
	weir_output by;
	enum weir_status status = f32_constant(body, *(const float *)context, &by, error);

	return status == WEIR_OK ? weir_op_assign_add(body, "w", var, by, &results[0], error) : status;
}

/* -- signatures -------------------------------------------------------------------------------- */

Test(function, a_body_is_built_once_for_each_signature)
{
	int builds = 0;
	weir_function *function = kit_function("double", build_double, &builds, one_tensor, 1, 1);
	weir_graph *graph = kit_graph();
	weir_session *session = kit_session(graph, 0);
	weir_tensor *values[] = {kit_f32(3), kit_i64(4), kit_tensor(WEIR_F32, kit_shape(1, 2), (const float[]){1, 2}),
	                         kit_tensor(WEIR_F32, kit_shape(1, 3), (const float[]){1, 2, 3})};

	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < 4; i++) {
			struct weir_argument argument = {.tensor = values[i]};
			weir_tensor *result;

			cr_assert_eq(weir_function_run(function, session, &argument, &result, WEIR_NO_DEADLINE, NULL, NULL, NULL),
			             WEIR_OK);
			cr_expect_eq(weir_tensor_element_count(result), weir_tensor_element_count(values[i]));
			weir_tensor_release(result);
		}
	}
	cr_expect_eq(builds, 3, "f32 [], i64 [], f32 [?]");
	cr_expect_eq(weir_function_body_count(function), 3);
	for (int i = 0; i < 4; i++)
		weir_tensor_release(values[i]);
	end_function(function);
	kit_end(session, graph);
}

Test(function, variables_are_part_of_the_signature)
{
	float by = 2;
	weir_function *function = kit_function("bump", build_bump, &by, one_var, 1, 1);
	weir_graph *graph = kit_graph();
	weir_session *session = kit_session(graph, 0);
	weir_var *vars[] = {kit_var("a", kit_f32(1)), kit_var("b", kit_f32(10))};

	for (int i = 0; i < 2; i++) {
		struct weir_argument argument = {.var = vars[i]};

		cr_expect_eq(run_f32(function, session, &argument), i == 0 ? 3.0f : 12.0f);
		cr_expect_eq(run_f32(function, session, &argument), i == 0 ? 5.0f : 14.0f);
	}
	cr_expect_eq(weir_function_body_count(function), 2);
	end_function(function);
	kit_end(session, graph);
	for (int i = 0; i < 2; i++)
		weir_var_destroy(vars[i], NULL);
}

static enum weir_status build_take(void *context, weir_graph *body, const struct weir_argument arguments[],
                                   weir_output results[], weir_error *error)
{
	(void)context;
	return weir_op_dequeue(body, "take", arguments[0].queue, &results[0], 1, NULL, error);
}

static const struct weir_parameter one_queue[] = {{"q", WEIR_PARAMETER_QUEUE, 0, NULL}};

Test(function, queues_are_part_of_the_signature)
{
	weir_function *take = kit_function("taker", build_take, NULL, one_queue, 1, 1);
	weir_graph *graph = kit_graph();
	weir_session *session = kit_session(graph, 0);
	weir_tensor_queue *queues[2];

	for (int i = 0; i < 2; i++) {
		struct weir_argument argument = {.queue = queues[i] = kit_queue("q", 1, WEIR_F32, &scalar)};
		weir_tensor *item = kit_f32((float)i);

		for (int round = 0; round < 2; round++) {
			cr_assert_eq(weir_tensor_queue_enqueue(queues[i], &item, 1, WEIR_NO_DEADLINE, NULL, NULL), WEIR_OK);
			cr_expect_eq(run_f32(take, session, &argument), (float)i);
		}
		weir_tensor_release(item);
	}
	cr_expect_eq(weir_function_body_count(take), 2);
	end_function(take);
	kit_end(session, graph);
	for (int i = 0; i < 2; i++)
		kit_queue_end(queues[i]);
}

Test(function, more_signatures_than_allowed_are_refused)
{
	struct weir_function_options options = {
		WEIR_FUNCTION_OPTIONS_INIT, .name = "double",  .build = build_double, .parameters = one_tensor,
		.parameter_count = 1,       .result_count = 1, .max_bodies = 1};
	weir_graph *graph = kit_graph();
	weir_session *session = kit_session(graph, 0);
	struct weir_argument argument = {.tensor = kit_f32(1)};
	weir_function *function;
	weir_tensor *result = NULL;
	weir_error error;

	cr_assert_eq(weir_function_create(&options, &function, NULL), WEIR_OK);
	cr_expect_eq(run_f32(function, session, &argument), 2.0f);
	weir_tensor_release(argument.tensor);
	argument.tensor = kit_i64(1);
	cr_expect_eq(weir_function_run(function, session, &argument, &result, WEIR_NO_DEADLINE, NULL, NULL, &error),
	             WEIR_RESOURCE_EXHAUSTED);
	cr_expect_str_eq(error.message,
	                 "weir_function_run: function \"double\" has bodies for 1 signatures, the most allowed");
	weir_tensor_release(argument.tensor);
	end_function(function);
	kit_end(session, graph);
}

/* -- calls ------------------------------------------------------------------------------------- */

Test(function, a_call_gives_the_results_of_its_body)
{
	for (size_t threads = 0; threads <= 2; threads++) {
		weir_function *function = kit_function("double", build_double, NULL, one_tensor, 1, 1);
		weir_graph *graph = kit_graph();
		weir_session *session = kit_session(graph, threads);
		struct weir_argument x = of_output(kit_constant(graph, kit_f32(1)));
		weir_output outs[4];
		weir_error error;

		for (int i = 0; i < 4; i++) {
			cr_assert_eq(weir_op_call(graph, NULL, function, &x, 1, &outs[i], NULL, &error), WEIR_OK, "%s",
			             error.message);
			x = of_output(outs[i]);
		}
		for (int i = 0; i < 3; i++)
			cr_expect_eq(kit_fetch_f32(session, outs[3]), 16.0f);
		cr_expect_eq(kit_fetch_f32(session, outs[0]), 2.0f);
		cr_expect_eq(weir_function_destroy(function, &error), WEIR_FAILED_PRECONDITION);
		cr_expect_str_eq(error.message, "weir_function_destroy: a graph or a run still uses function \"double\"");
		kit_end(session, graph);
		end_function(function);
	}
}

/* 24 / x. */
static enum weir_status build_share(void *context, weir_graph *body, const struct weir_argument arguments[],
                                    weir_output results[], weir_error *error)
{
	weir_tensor *number = kit_i64(24);
	weir_output all;
	enum weir_status status = weir_op_constant(body, NULL, number, &all, error);

	(void)context;
	weir_tensor_release(number);
	return status == WEIR_OK ? weir_op_div(body, "share", all, arguments[0].output, &results[0], error) : status;
}

/* Calls the first, the second, and again the first of two functions, each with the result of the one before. */
static enum weir_status build_in_turn(void *context, weir_graph *body, const struct weir_argument arguments[],
                                      weir_output results[], weir_error *error)
{
	weir_function **functions = context;
	struct weir_argument x = arguments[0];
	enum weir_status status = WEIR_OK;

	for (int i = 0; status == WEIR_OK && i < 3; i++) {
		status = weir_op_call(body, NULL, functions[i % 2], &x, 1, &results[0], NULL, error);
		x = of_output(results[0]);
	}
	return status;
}

/* Bodies that nothing makes wait: one after the other is in the room of the frame that calls. */
Test(function, calls_of_several_functions_in_turn_share_their_room)
{
	weir_function *functions[] = {kit_function("double", build_double, NULL, one_tensor, 1, 1),
	                              kit_function("share", build_share, NULL, one_tensor, 1, 1)};
	weir_function *outer = kit_function("outer", build_in_turn, functions, one_tensor, 1, 1);
	weir_graph *graph = kit_graph();
	weir_session *session = kit_session(graph, 0);
	struct weir_argument x = of_output(kit_placeholder(graph, "x", WEIR_I64, kit_shape(0)));
	struct weir_feed feed = {.output = x.output};
	weir_output result;
	weir_error error;

	cr_assert_eq(weir_op_call(graph, "call", outer, &x, 1, &result, NULL, &error), WEIR_OK, "%s", error.message);
	for (int64_t i = 3; i >= -3; i--) {
		weir_tensor *got = NULL;
		enum weir_status status;

		feed.value = kit_i64(i);
		status = weir_session_run(session, &feed, 1, &result, 1, &got, NULL, 0, WEIR_NO_DEADLINE, NULL, &error);
		weir_tensor_release(feed.value);
		cr_expect_eq(status, i != 0 ? WEIR_OK : WEIR_INVALID_ARGUMENT);
		if (i != 0)
			cr_expect_eq(kit_i64_at(got, 0), 2 * (24 / (2 * i)));
		else
			cr_expect_str_eq(error.message, "call/call_2/div \"share\": an integer is divided by 0");
		weir_tensor_release(got);
	}
	kit_end(session, graph);
	end_function(outer);
	end_function(functions[0]);
	end_function(functions[1]);
}

/* Two bodies that wait until both have begun: only if each has a thread, the step ends. */
static enum weir_status meet(void *context, const struct weir_kernel_call *call, weir_error *error)
{
	struct weiri_countdown *missing = context;
	uint64_t deadline_ns = weir_deadline_in(KIT_PATIENCE_NS);

	(void)weiri_countdown_arrive(missing);
	while (weiri_countdown_left(missing) != 0) {
		if (weir_now_ns() > deadline_ns) {
			error->message[0] = '\0';
			return error->code = WEIR_DEADLINE_EXCEEDED;
		}
		(void)sched_yield();
	}
	call->outputs[0] = weir_tensor_retain(call->inputs[0]);
	return WEIR_OK;
}

static const struct weir_kernel meeting = {WEIR_KERNEL_INIT, .name = "meet", .flags = WEIR_KERNEL_SHORT, .run = meet};

static enum weir_status build_meeting(void *context, weir_graph *body, const struct weir_argument arguments[],
                                      weir_output results[], weir_error *error)
{
	struct weir_output_type type = {WEIR_F32, NULL};

	return weir_op_kernel(body, NULL, &meeting, context, &arguments[0].output, 1, &type, 1, NULL, 0, results, NULL,
	                      error);
}

Test(function, a_body_may_have_a_worker_of_its_own)
{
	struct weir_function_options options = {WEIR_FUNCTION_OPTIONS_INIT, .build = build_meeting,
	                                        .parameters = one_tensor,   .parameter_count = 1,
	                                        .result_count = 1,          .flags = WEIR_FUNCTION_OWN_WORKER};
	struct weiri_countdown missing;
	weir_graph *graph = kit_graph();
	weir_session *session = kit_session(graph, 2);
	struct weir_argument x = of_output(kit_constant(graph, kit_f32(3)));
	weir_output outs[2], sum;
	weir_function *function;

	options.context = &missing;
	cr_assert_eq(weir_function_create(&options, &function, NULL), WEIR_OK);
	for (int i = 0; i < 2; i++)
		cr_assert_eq(weir_op_call(graph, NULL, function, &x, 1, &outs[i], NULL, NULL), WEIR_OK);
	cr_assert_eq(weir_op_add(graph, NULL, outs[0], outs[1], &sum, NULL), WEIR_OK);
	for (int i = 0; i < 3; i++) {
		weiri_countdown_init(&missing, 2);
		cr_expect_eq(kit_fetch_f32(session, sum), 6.0f);
	}
	kit_end(session, graph);
	end_function(function);
	options.flags = 1u << 31;
	cr_expect_eq(weir_function_create(&options, &function, NULL), WEIR_INVALID_ARGUMENT);
}

/* Calls the function that is its context. */
static enum weir_status build_caller(void *context, weir_graph *body, const struct weir_argument arguments[],
                                     weir_output results[], weir_error *error)
{
	return weir_op_call(body, "inner", *(weir_function **)context, arguments, 1, results, NULL, error);
}

Test(function, recursion_is_refused_by_name)
{
	weir_function *f = NULL, *g = NULL;
	weir_graph *graph = kit_graph();
	struct weir_argument x = of_output(kit_constant(graph, kit_f32(1)));
	weir_output out;
	weir_error error;

	f = kit_function("f", build_caller, &g, one_tensor, 1, 1);
	g = kit_function("g", build_caller, &f, one_tensor, 1, 1);
	cr_expect_eq(weir_op_call(graph, "outer", f, &x, 1, &out, NULL, &error), WEIR_INVALID_ARGUMENT);
	cr_expect(strstr(error.message, "function \"f\" would call itself, and recursion is not possible: \"f\", which "
	                                "\"g\" calls, which \"f\" calls") != NULL,
	          "%s", error.message);
	cr_expect_eq(weir_function_body_count(f), 0);
	end_function(f);
	end_function(g);
	cr_assert_eq(weir_graph_destroy(graph, NULL), WEIR_OK);
}

static enum weir_status fail(void *context, const struct weir_kernel_call *call, weir_error *error)
{
	(void)context;
	(void)call;
	*error = (weir_error){WEIR_DATA_LOSS, "line 7 has 63 columns"};
	return WEIR_DATA_LOSS;
}

static enum weir_status build_failing(void *context, weir_graph *body, const struct weir_argument arguments[],
                                      weir_output results[], weir_error *error)
{
	struct weir_output_type type = {WEIR_F32, &scalar};

	(void)context;
	(void)arguments;
	return weir_op_kernel(body, "reader", KIT_KERNEL(fail), NULL, NULL, 0, &type, 1, NULL, 0, results, NULL, error);
}

Test(function, a_message_names_the_way_to_the_node)
{
	for (size_t threads = 0; threads <= 1; threads++) {
		weir_function *inner = kit_function("inner", build_failing, NULL, one_tensor, 1, 1);
		weir_function *outer = kit_function("outer", build_caller, &inner, one_tensor, 1, 1);
		weir_graph *graph = kit_graph();
		weir_session *session = kit_session(graph, threads);
		struct weir_argument x = of_output(kit_constant(graph, kit_f32(1)));
		struct weir_argument value = {.tensor = kit_f32(1)};
		weir_tensor *result = NULL;
		weir_output out;
		weir_error error;

		cr_assert_eq(weir_op_call(graph, "train", outer, &x, 1, &out, NULL, NULL), WEIR_OK);
		cr_expect_eq(weir_session_run(session, NULL, 0, &out, 1, &result, NULL, 0, WEIR_NO_DEADLINE, NULL, &error),
		             WEIR_DATA_LOSS);
		cr_expect_str_eq(error.message, "train/inner/kernel \"reader\": line 7 has 63 columns");
		cr_expect_eq(weir_function_run(outer, session, &value, &result, WEIR_NO_DEADLINE, NULL, NULL, &error),
		             WEIR_DATA_LOSS);
		cr_expect_str_eq(error.message, "outer/inner/kernel \"reader\": line 7 has 63 columns");
		weir_tensor_release(value.tensor);
		kit_end(session, graph);
		end_function(outer);
		end_function(inner);
	}
}

/* -- case -------------------------------------------------------------------------------------- */

Test(function, a_case_runs_one_branch)
{
	float by[] = {1, 10, 100};

	for (size_t threads = 0; threads <= 1; threads++) {
		weir_graph *graph = kit_graph();
		weir_session *session = kit_session(graph, threads);
		weir_var *var = kit_var("w", kit_f32(0));
		struct weir_argument argument = {.var = var};
		weir_output index = kit_placeholder(graph, "index", WEIR_I64, kit_shape(0));
		weir_function *branches[3];
		float expected = 0;
		weir_output out;
		weir_error error;

		for (int i = 0; i < 3; i++)
			branches[i] = kit_function("branch", build_bump, &by[i], one_var, 1, 1);
		cr_assert_eq(weir_op_case(graph, "choose", index, branches, 3, &argument, 1, &out, NULL, &error), WEIR_OK, "%s",
		             error.message);
		for (int64_t i = -1; i <= 3; i++) {
			struct weir_feed feed = {index, kit_i64(i)};
			weir_tensor *result = NULL;
			enum weir_status status =
				weir_session_run(session, &feed, 1, &out, 1, &result, NULL, 0, WEIR_NO_DEADLINE, NULL, &error);

			cr_expect_eq(status, i < 0 || i > 2 ? WEIR_INVALID_ARGUMENT : WEIR_OK);
			if (status == WEIR_OK)
				expected += by[i];
			else
				cr_expect_str_eq(error.message, "case \"choose\": the index is out of range: there are 3 functions");
			cr_expect_eq(kit_var_f32(var, 0), expected);
			weir_tensor_release(result);
			weir_tensor_release(feed.value);
		}
		kit_end(session, graph);
		for (int i = 0; i < 3; i++)
			end_function(branches[i]);
		weir_var_destroy(var, NULL);
	}
}

static enum weir_status build_integer(void *context, weir_graph *body, const struct weir_argument arguments[],
                                      weir_output results[], weir_error *error)
{
	(void)context;
	return weir_op_cast(body, NULL, arguments[0].output, WEIR_I64, &results[0], error);
}

Test(function, branches_that_differ_are_refused)
{
	weir_function *twice = kit_function("twice", build_double, NULL, one_tensor, 1, 1);
	weir_function *integer = kit_function("integer", build_integer, NULL, one_tensor, 1, 1);
	weir_function *step = kit_function("step", build_step, NULL, two_scalars, 2, 2);
	weir_function *bump = kit_function("bump", build_bump, NULL, tensor_and_var, 2, 1);
	weir_function *other = kit_function("other", build_bump, NULL, var_and_tensor, 2, 1);
	weir_var *w = kit_var("w", kit_f32(0));
	weir_graph *graph = kit_graph();
	weir_tensor *yes;
	weir_output predicate, out;
	struct weir_argument x[] = {of_output(kit_constant(graph, kit_f32(1))), of_output(kit_constant(graph, kit_f32(1)))};
	weir_error error;

	cr_assert_eq(weir_tensor_scalar_bool(true, &yes), WEIR_OK);
	predicate = kit_constant(graph, yes);
	cr_expect_eq(weir_op_cond(graph, "c", predicate, twice, integer, x, 1, &out, NULL, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_str_eq(error.message, "cond \"c\": result 0 of \"twice\" is f32 [], and of \"integer\" i64 []");
	cr_expect_eq(weir_op_cond(graph, "c", predicate, twice, step, x, 1, &out, NULL, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_str_eq(error.message, "cond \"c\": \"step\" has 2 parameters, 2 of them tensors; got 1 argument");
	x[0].var = x[1].var = w;
	cr_expect_eq(weir_op_cond(graph, "c", predicate, bump, other, x, 2, &out, NULL, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_str_eq(error.message,
	                 "cond \"c\": parameter \"x\" of \"bump\" and parameter \"v\" of \"other\" are of different kinds");
	cr_expect_eq(weir_op_cond(graph, "c", x[0].output, twice, twice, x, 1, &out, NULL, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_str_eq(error.message, "cond \"c\": predicate must be a bool scalar, got f32 []");
	cr_expect_eq(weir_op_cond(graph, "c", predicate, twice, NULL, x, 1, &out, NULL, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_op_call(graph, "c", twice, x, 1, NULL, NULL, &error), WEIR_INVALID_ARGUMENT);
	cr_assert_eq(weir_graph_destroy(graph, NULL), WEIR_OK);
	end_function(twice);
	end_function(integer);
	end_function(step);
	end_function(bump);
	end_function(other);
	weir_var_destroy(w, NULL);
}

/* -- while ------------------------------------------------------------------------------------- */

struct counting {
	weir_function *condition, *body;
	weir_graph *graph;
	weir_session *session;
	weir_output n;
	weir_output outs[2];
};

static void open_counting(struct counting *c, size_t threads, uint64_t limit)
{
	struct weir_while_options options = {WEIR_WHILE_OPTIONS_INIT, .max_iterations = limit};
	struct weir_argument arguments[2];
	weir_error error;

	c->condition = kit_function("less", build_less, NULL, two_scalars, 2, 1);
	c->body = kit_function("step", build_step, NULL, two_scalars, 2, 2);
	c->graph = kit_graph();
	c->session = kit_session(c->graph, threads);
	c->n = kit_placeholder(c->graph, "n", WEIR_F32, kit_shape(0));
	arguments[0] = of_output(kit_constant(c->graph, kit_f32(0)));
	arguments[1] = of_output(c->n);
	cr_assert_eq(weir_op_while(c->graph, "loop", c->condition, c->body, arguments, 2, &options, c->outs, NULL, &error),
	             WEIR_OK, "%s", error.message);
}

static enum weir_status count_to(struct counting *c, float n, uint64_t deadline_ns, float *out, weir_error *error)
{
	struct weir_feed feed = {c->n, kit_f32(n)};
	weir_tensor *result = NULL;
	enum weir_status status =
		weir_session_run(c->session, &feed, 1, c->outs, 1, &result, NULL, 0, deadline_ns, NULL, error);

	weir_tensor_release(feed.value);
	if (status == WEIR_OK)
		*out = kit_f32_at(result, 0);
	weir_tensor_release(result);
	return status;
}

static void close_counting(struct counting *c)
{
	kit_end(c->session, c->graph);
	end_function(c->condition);
	end_function(c->body);
}

Test(function, a_loop_repeats_its_body_while_the_condition_holds)
{
	for (size_t threads = 0; threads <= 2; threads++) {
		struct counting c;
		float got = -1;

		open_counting(&c, threads, 0);
		for (int n = 0; n < 200; n += 7) {
			cr_assert_eq(count_to(&c, (float)n, WEIR_NO_DEADLINE, &got, NULL), WEIR_OK);
			cr_expect_eq(got, (float)n);
		}
		close_counting(&c);
	}
}

Test(function, a_loop_that_does_not_end_is_ended)
{
	for (size_t threads = 0; threads <= 1; threads++) {
		struct counting c;
		float got = -1;
		weir_error error;

		open_counting(&c, threads, 5);
		cr_expect_eq(count_to(&c, 5, WEIR_NO_DEADLINE, &got, &error), WEIR_OK, "%s", error.message);
		cr_expect_eq(count_to(&c, 6, WEIR_NO_DEADLINE, &got, &error), WEIR_RESOURCE_EXHAUSTED);
		cr_expect_str_eq(error.message, "while \"loop\": the loop did not end within 5 iterations");
		close_counting(&c);
		open_counting(&c, threads, 0);
		cr_expect_eq(count_to(&c, INFINITY, weir_deadline_in(20000000), &got, &error), WEIR_DEADLINE_EXCEEDED, "%s",
		             error.message);
		cr_expect_eq(count_to(&c, 3, WEIR_NO_DEADLINE, &got, &error), WEIR_OK, "%s", error.message);
		close_counting(&c);
	}
}

/* A condition and a body without a node of their own. */
static enum weir_status build_always(void *context, weir_graph *body, const struct weir_argument arguments[],
                                     weir_output results[], weir_error *error)
{
	weir_tensor *yes;
	enum weir_status status = weir_tensor_scalar_bool(true, &yes);

	(void)context;
	(void)arguments;
	if (status == WEIR_OK)
		status = weir_op_constant(body, NULL, yes, &results[0], error);
	weir_tensor_release(yes);
	return status;
}

static enum weir_status build_same(void *context, weir_graph *body, const struct weir_argument arguments[],
                                   weir_output results[], weir_error *error)
{
	(void)context;
	(void)body;
	(void)error;
	results[0] = arguments[0].output;
	return WEIR_OK;
}

Test(function, a_loop_without_nodes_sees_the_deadline)
{
	weir_function *always = kit_function("always", build_always, NULL, one_tensor, 1, 1);
	weir_function *same = kit_function("same", build_same, NULL, one_tensor, 1, 1);
	weir_graph *graph = kit_graph();
	weir_session *session = kit_session(graph, 0);
	struct weir_argument x = of_output(kit_constant(graph, kit_f32(1)));
	weir_tensor *result = NULL;
	weir_output out;

	cr_assert_eq(weir_op_while(graph, NULL, always, same, &x, 1, NULL, &out, NULL, NULL), WEIR_OK);
	cr_expect_eq(weir_session_run(session, NULL, 0, &out, 1, &result, NULL, 0, weir_deadline_in(5000000), NULL, NULL),
	             WEIR_DEADLINE_EXCEEDED);
	kit_end(session, graph);
	end_function(always);
	end_function(same);
}

Test(function, loops_that_change_a_spec_are_refused)
{
	weir_function *always = kit_function("always", build_always, NULL, one_tensor, 1, 1);
	weir_function *integer = kit_function("integer", build_integer, NULL, one_tensor, 1, 1);
	weir_function *same = kit_function("same", build_same, NULL, one_tensor, 1, 1);
	weir_graph *graph = kit_graph();
	struct weir_argument x = of_output(kit_constant(graph, kit_f32(1)));
	weir_output out;
	weir_error error;

	cr_expect_eq(weir_op_while(graph, "l", always, integer, &x, 1, NULL, &out, NULL, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_str_eq(error.message,
	                 "while \"l\": result 0 of the body \"integer\" is i64 [], and becomes \"x\", f32 []");
	cr_expect_eq(weir_op_while(graph, "l", same, same, &x, 1, NULL, &out, NULL, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_str_eq(error.message, "while \"l\": the condition \"same\" must give a bool scalar, and gives f32 []");
	cr_assert_eq(weir_graph_destroy(graph, NULL), WEIR_OK);
	end_function(always);
	end_function(integer);
	end_function(same);
}

/* -- map --------------------------------------------------------------------------------------- */

static void expect_rows(weir_function *function, size_t threads, int64_t rows, uint32_t at_once)
{
	struct weir_map_options options = {WEIR_MAP_OPTIONS_INIT, .at_once = at_once};
	weir_graph *graph = kit_graph();
	weir_session *session = kit_session(graph, threads);
	struct weir_argument x = of_output(kit_placeholder(graph, "x", WEIR_F32, kit_shape(2, -1, 2)));
	float values[400];
	weir_shape shape = kit_shape(2, (int)rows, 2);
	weir_tensor *result = NULL;
	struct weir_feed feed;
	weir_output out;
	weir_error error;

	for (int i = 0; i < 400; i++)
		values[i] = (float)i;
	feed = (struct weir_feed){x.output, kit_tensor(WEIR_F32, shape, values)};
	cr_assert_eq(weir_op_map(graph, "map", function, &x, 1, &options, &out, NULL, &error), WEIR_OK, "%s",
	             error.message);
	for (int round = 0; round < 3; round++) {
		cr_assert_eq(weir_session_run(session, &feed, 1, &out, 1, &result, NULL, 0, WEIR_NO_DEADLINE, NULL, &error),
		             WEIR_OK, "%s", error.message);
		cr_assert_eq(weir_tensor_element_count(result), 2 * rows);
		for (size_t i = 0; i < (size_t)rows * 2; i++)
			cr_expect_eq(kit_f32_at(result, i), 2 * values[i]);
		weir_tensor_release(result);
	}
	weir_tensor_release(feed.value);
	kit_end(session, graph);
}

/* Doubles, in a kernel that is not short, so that rows go to workers. */
static enum weir_status double_slowly(void *context, const struct weir_kernel_call *call, weir_error *error)
{
	float pair[2] = {2 * kit_f32_at(call->inputs[0], 0), 2 * kit_f32_at(call->inputs[0], 1)};
	weir_shape shape = *weir_tensor_shape(call->inputs[0]);

	(void)context;
	(void)error;
	(void)sched_yield();
	return weir_tensor_copy_of(WEIR_F32, &shape, pair, NULL, &call->outputs[0]);
}

static enum weir_status build_slow_double(void *context, weir_graph *body, const struct weir_argument arguments[],
                                          weir_output results[], weir_error *error)
{
	weir_shape shape = kit_shape(1, 2);
	struct weir_output_type type = {WEIR_F32, &shape};

	(void)context;
	return weir_op_kernel(body, NULL, KIT_KERNEL(double_slowly), NULL, &arguments[0].output, 1, &type, 1, NULL, 0,
	                      results, NULL, error);
}

Test(function, a_map_gives_results_in_the_order_of_its_rows)
{
	weir_function *functions[] = {kit_function("double", build_double, NULL, one_tensor, 1, 1),
	                              kit_function("slow", build_slow_double, NULL, one_tensor, 1, 1)};

	for (int f = 0; f < 2; f++) {
		for (size_t threads = 0; threads <= 2; threads++) {
			for (int64_t rows = 0; rows <= 200; rows = rows * 5 + 1) {
				expect_rows(functions[f], threads, rows, 1);
				expect_rows(functions[f], threads, rows, 3);
			}
		}
		end_function(functions[f]);
	}
}

static enum weir_status build_queue_swap(void *context, weir_graph *body, const struct weir_argument arguments[],
                                         weir_output results[], weir_error *error)
{
	weir_output taken;
	weir_node *put, *take;
	enum weir_status status = weir_op_dequeue(body, "take", arguments[1].queue, &taken, 1, &take, error);

	(void)context;
	if (status == WEIR_OK)
		status = weir_op_enqueue(body, "put", arguments[2].queue, &arguments[0].output, 1, &put, error);
	results[0] = taken;
	return status;
}

Test(function, a_map_waits_without_a_thread_for_each_row)
{
	enum { ROWS = 20 };
	static const struct weir_parameter parameters[] = {{"x", WEIR_PARAMETER_TENSOR, WEIR_F32, &scalar},
	                                                   {"from", WEIR_PARAMETER_QUEUE, 0, NULL},
	                                                   {"to", WEIR_PARAMETER_QUEUE, 0, NULL}};

	for (size_t threads = 0; threads <= 1; threads++) {
		weir_tensor_queue *queue = kit_queue("ring", ROWS, WEIR_F32, &scalar);
		weir_function *swap = kit_function("swap", build_queue_swap, NULL, parameters, 3, 1);
		weir_graph *graph = kit_graph();
		weir_session *session = kit_session(graph, threads);
		struct weir_argument arguments[3] = {
			of_output(kit_placeholder(graph, "x", WEIR_F32, kit_shape(1, -1))), {.queue = queue}, {.queue = queue}};
		float values[ROWS];
		struct weir_feed feed;
		weir_tensor *item = kit_f32(-1), *result = NULL;
		weir_output out;
		weir_error error;
		float sum = 0;

		for (int i = 0; i < ROWS; i++)
			values[i] = (float)i;
		feed = (struct weir_feed){arguments[0].output, kit_tensor(WEIR_F32, kit_shape(1, ROWS), values)};
		cr_assert_eq(weir_op_map(graph, "map", swap, arguments, 3, NULL, &out, NULL, &error), WEIR_OK, "%s",
		             error.message);
		/* One item is there: each row takes it, and gives the next row one. */
		cr_assert_eq(weir_tensor_queue_enqueue(queue, &item, 1, WEIR_NO_DEADLINE, NULL, NULL), WEIR_OK);
		weir_tensor_release(item);
		cr_assert_eq(weir_session_run(session, &feed, 1, &out, 1, &result, NULL, 0, weir_deadline_in(KIT_PATIENCE_NS),
		                              NULL, &error),
		             WEIR_OK, "%s", error.message);
		for (size_t i = 0; i < ROWS; i++)
			sum += kit_f32_at(result, i);
		/* All items but the one that is left: -1 and 0 .. 19, less one of these. */
		cr_expect(sum >= -1 + 190 - 19 && sum <= 190, "%g", (double)sum);
		weir_tensor_release(result);
		weir_tensor_release(feed.value);
		kit_end(session, graph);
		end_function(swap);
		kit_queue_end(queue);
	}
}

/* How many rows are under way. One thread runs all of them. */
struct census {
	int now, most;
};

static enum weir_status enter_row(void *context, const struct weir_kernel_call *call, weir_error *error)
{
	struct census *census = context;

	(void)error;
	census->now++;
	census->most = census->now > census->most ? census->now : census->most;
	call->outputs[0] = weir_tensor_retain(call->inputs[0]);
	return WEIR_OK;
}

static enum weir_status leave_row(void *context, const struct weir_kernel_call *call, weir_error *error)
{
	(void)error;
	((struct census *)context)->now--;
	call->outputs[0] = weir_tensor_retain(call->inputs[0]);
	return WEIR_OK;
}

/* Each row waits for the item, and puts one for the next. */
static enum weir_status build_row_that_waits(void *context, weir_graph *body, const struct weir_argument arguments[],
                                             weir_output results[], weir_error *error)
{
	static const struct weir_kernel enter = {WEIR_KERNEL_INIT, .name = "enter", .flags = WEIR_KERNEL_SHORT,
	                                         .run = enter_row};
	static const struct weir_kernel leave = {WEIR_KERNEL_INIT, .name = "leave", .flags = WEIR_KERNEL_SHORT,
	                                         .run = leave_row};
	struct weir_output_type type = {WEIR_F32, &scalar};
	weir_output entered, taken;
	weir_node *first, *take;

	cr_assert_eq(weir_op_kernel(body, NULL, &enter, context, &arguments[0].output, 1, &type, 1, NULL, 0, &entered,
	                            &first, error),
	             WEIR_OK);
	cr_assert_eq(weir_op_dequeue(body, NULL, arguments[1].queue, &taken, 1, &take, error), WEIR_OK);
	cr_assert_eq(weir_graph_add_control(body, first, take, error), WEIR_OK);
	cr_assert_eq(weir_op_kernel(body, NULL, &leave, context, &taken, 1, &type, 1, NULL, 0, results, NULL, error),
	             WEIR_OK);
	return weir_op_enqueue(body, NULL, arguments[1].queue, &results[0], 1, &take, error);
}

/* Stores how many rows the result has; -1: the run failed. */
static void count_rows(void *context, enum weir_status status, const weir_error *error, weir_tensor *const results[],
                       size_t count)
{
	(void)error;
	*(int64_t *)context = status == WEIR_OK ? weir_tensor_element_count(results[0]) : -1;
	for (size_t i = 0; i < count; i++)
		weir_tensor_release(results[i]);
}

static void help_all(weir_pool *pool)
{
	while (weir_pool_help(pool, 1) != 0)
		;
}

Test(function, no_more_rows_than_allowed_are_under_way)
{
	enum { ROWS = 9 };
	static const struct weir_parameter parameters[] = {{"x", WEIR_PARAMETER_TENSOR, WEIR_F32, &scalar},
	                                                   {"q", WEIR_PARAMETER_QUEUE, 0, NULL}};
	static const float values[ROWS] = {0};
	struct weir_pool_options none = {WEIR_POOL_OPTIONS_INIT, .flags = WEIR_POOL_NO_THREADS};
	struct weir_run_options options = {WEIR_RUN_OPTIONS_INIT};

	cr_assert_eq(weir_pool_create(&none, &options.pool, NULL), WEIR_OK);
	for (uint32_t at_once = 1; at_once <= 4; at_once++) {
		struct weir_map_options some = {WEIR_MAP_OPTIONS_INIT, .at_once = at_once};
		struct census census = {0, 0};
		weir_tensor_queue *queue = kit_queue("item", 1, WEIR_F32, &scalar);
		weir_function *row = kit_function("row", build_row_that_waits, &census, parameters, 2, 1);
		weir_graph *graph = kit_graph();
		weir_session *session = kit_session(graph, 0);
		struct weir_argument arguments[2] = {
			of_output(kit_constant(graph, kit_tensor(WEIR_F32, kit_shape(1, ROWS), values))), {.queue = queue}};
		weir_tensor *item = kit_f32(7);
		weir_callable *callable;
		int64_t rows = 0;
		weir_run *run;
		weir_output out;

		cr_assert_eq(weir_op_map(graph, NULL, row, arguments, 2, &some, &out, NULL, NULL), WEIR_OK);
		cr_assert_eq(weir_session_compile(session, NULL, 0, &out, 1, NULL, 0, NULL, &callable, NULL), WEIR_OK);
		cr_assert_eq(weir_callable_start(callable, NULL, NULL, &options, count_rows, &rows, &run, NULL), WEIR_OK);
		help_all(options.pool);
		cr_expect_eq(census.now, (int)at_once, "those that may begin do so, and wait");
		cr_assert_eq(weir_tensor_queue_enqueue(queue, &item, 1, WEIR_NO_DEADLINE, NULL, NULL), WEIR_OK);
		help_all(options.pool);
		cr_expect_eq(rows, ROWS);
		cr_expect_eq(census.now, 0);
		cr_expect_eq(census.most, (int)at_once);
		weir_tensor_release(item);
		weir_run_release(run);
		weir_callable_release(callable);
		kit_end(session, graph);
		end_function(row);
		kit_queue_end(queue);
	}
	cr_assert_eq(weir_pool_destroy(options.pool, NULL), WEIR_OK);
}

Test(function, maps_refuse_what_has_no_rows)
{
	weir_function *twice = kit_function("double", build_double, NULL, one_tensor, 1, 1);
	struct weir_map_options whole = {WEIR_MAP_OPTIONS_INIT, .whole = 1};
	weir_graph *graph = kit_graph();
	struct weir_argument x = of_output(kit_constant(graph, kit_f32(1)));
	weir_output out;
	weir_error error;

	cr_expect_eq(weir_op_map(graph, "m", twice, &x, 1, NULL, &out, NULL, &error), WEIR_INVALID_ARGUMENT);
	cr_expect(strstr(error.message, "parameter \"x\" gets rows, and") != NULL, "%s", error.message);
	cr_expect_eq(weir_op_map(graph, "m", twice, &x, 1, &whole, &out, NULL, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_str_eq(error.message, "map \"m\": no tensor of \"double\" has rows");
	cr_assert_eq(weir_graph_destroy(graph, NULL), WEIR_OK);
	end_function(twice);
}

/* -- waits, stops, and failing allocations ------------------------------------------------------ */

Test(function, a_deadline_reaches_a_wait_in_a_body_and_names_the_way)
{
	for (size_t threads = 0; threads <= 1; threads++) {
		weir_tensor_queue *queue = kit_queue("empty", 1, WEIR_F32, &scalar);
		weir_function *take = kit_function("taker", build_take, NULL, one_queue, 1, 1);
		weir_graph *graph = kit_graph();
		weir_session *session = kit_session(graph, threads);
		struct weir_argument q = {.queue = queue};
		weir_tensor *result = NULL;
		weir_output out;
		weir_error error;

		cr_assert_eq(weir_op_call(graph, "pull", take, &q, 1, &out, NULL, NULL), WEIR_OK);
		cr_expect_eq(
			weir_session_run(session, NULL, 0, &out, 1, &result, NULL, 0, weir_deadline_in(10000000), NULL, &error),
			WEIR_DEADLINE_EXCEEDED);
		cr_expect(strstr(error.message, "; pull/dequeue \"take\" of queue \"empty\" had waited") != NULL, "%s",
		          error.message);
		kit_end(session, graph);
		end_function(take);
		kit_queue_end(queue);
	}
}

/* Fires the token in the third call. */
struct third {
	weir_cancel *token;
	pthread_t thread;
	int calls;
};

static enum weir_status fire_third(void *context, const struct weir_kernel_call *call, weir_error *error)
{
	static const weir_error cause = {WEIR_ABORTED, "enough"};
	struct third *third = context;

	(void)error;
	third->thread = pthread_self();
	if (++third->calls == 3)
		(void)weir_cancel_fire(third->token, &cause);
	call->outputs[0] = weir_tensor_retain(call->inputs[0]);
	return WEIR_OK;
}

/* Not short, so it goes to the pool. */
static enum weir_status build_third(void *context, weir_graph *body, const struct weir_argument arguments[],
                                    weir_output results[], weir_error *error)
{
	static const struct weir_kernel kernel = {WEIR_KERNEL_INIT, .name = "fire", .run = fire_third, .cost_ns = 1000000};
	struct weir_output_type type = {WEIR_F32, &scalar};

	return weir_op_kernel(body, "fire", &kernel, context, &arguments[0].output, 1, &type, 1, NULL, 0, results, NULL,
	                      error);
}

/* The loop has no end of its own. The session has a worker, but the run has a pool that this thread helps. */
Test(function, a_token_and_the_pool_of_a_run_reach_a_body)
{
	struct weir_pool_options none = {WEIR_POOL_OPTIONS_INIT, .flags = WEIR_POOL_NO_THREADS};
	struct weir_run_options options = {WEIR_RUN_OPTIONS_INIT};
	struct third third = {.calls = 0};
	weir_function *always = kit_function("always", build_always, NULL, one_tensor, 1, 1);
	weir_function *body = kit_function("body", build_third, &third, one_tensor, 1, 1);
	weir_graph *graph = kit_graph();
	weir_session *session = kit_session(graph, 1);
	struct weir_argument x = of_output(kit_constant(graph, kit_f32(1)));
	weir_callable *callable;
	weir_tensor *result = NULL;
	weir_output out;
	weir_error error;

	cr_assert_eq(weir_pool_create(&none, &options.pool, NULL), WEIR_OK);
	cr_assert_eq(weir_cancel_create(NULL, &third.token, NULL), WEIR_OK);
	cr_assert_eq(weir_op_while(graph, "loop", always, body, &x, 1, NULL, &out, NULL, NULL), WEIR_OK);
	cr_assert_eq(weir_session_compile(session, NULL, 0, &out, 1, NULL, 0, NULL, &callable, NULL), WEIR_OK);
	cr_expect_eq(
		weir_callable_run(callable, NULL, &result, weir_deadline_in(KIT_PATIENCE_NS), third.token, &options, &error),
		WEIR_ABORTED, "%s", error.message);
	cr_expect_null(result);
	cr_expect_eq(third.calls, 3);
	cr_expect(pthread_equal(third.thread, pthread_self()));
	weir_callable_release(callable);
	kit_end(session, graph);
	end_function(body);
	end_function(always);
	weir_cancel_release(third.token);
	cr_assert_eq(weir_pool_destroy(options.pool, NULL), WEIR_OK);
}

static enum weir_status pass_on(void *context, const struct weir_kernel_call *call, weir_error *error)
{
	(void)context, (void)error;
	call->outputs[0] = weir_tensor_retain(call->inputs[0]);
	return WEIR_OK;
}

static enum weir_status build_user_code(void *context, weir_graph *body, const struct weir_argument arguments[],
                                        weir_output results[], weir_error *error)
{
	const struct weir_output_type type = {WEIR_F32, NULL};

	(void)context;
	return weir_op_kernel(body, "user", KIT_KERNEL(pass_on), NULL, &arguments[0].output, 1, &type, 1, NULL, 0, results,
	                      NULL, error);
}

/* The function keeps the memory of a step, with its token, for the next session. */
Test(function, nothing_of_a_session_outlasts_it_in_a_function)
{
	struct failing_allocator memory = {0};
	weir_allocator hooks = failing_allocator_hooks(&memory);
	struct weir_session_options options = {WEIR_SESSION_OPTIONS_INIT, .threads = 1, .allocator = &hooks};
	weir_function *function = kit_function("user", build_user_code, NULL, one_tensor, 1, 1);
	struct weir_argument x = {.tensor = kit_f32(3)};
	weir_graph *graph = kit_graph();
	weir_session *session;
	weir_node *node;

	cr_assert_eq(weir_op_no_op(graph, NULL, &node, NULL), WEIR_OK);
	for (int i = 0; i < 2; i++) {
		cr_assert_eq(weir_session_create(graph, &options, &session, NULL), WEIR_OK);
		cr_expect_eq(run_f32(function, session, &x), 3.0f);
		cr_assert_eq(weir_session_destroy(session, NULL), WEIR_OK);
		cr_assert_eq(weir_reclaim_flush(0), WEIR_OK);
		cr_expect_str_eq(failing_allocator_verdict(&memory), "balanced");
	}
	weir_tensor_release(x.tensor);
	end_function(function);
	cr_assert_eq(weir_graph_destroy(graph, NULL), WEIR_OK);
}

static enum weir_status build_everything(void *context, weir_graph *body, const struct weir_argument arguments[],
                                         weir_output results[], weir_error *error)
{
	weir_function **functions = context;
	weir_tensor *rows;
	weir_output pair[2], constant, mapped, total;
	struct weir_argument row;
	weir_shape shape = {.rank = 1, .dims = {3}};
	enum weir_status status = weir_tensor_copy_of(WEIR_F32, &shape, (const float[]){1, 2, 3}, NULL, &rows);

	if (status != WEIR_OK)
		return status;
	status = weir_op_constant(body, NULL, rows, &constant, error);
	weir_tensor_release(rows);
	if (status == WEIR_OK)
		status = weir_op_while(body, "loop", functions[0], functions[1], arguments, 2, NULL, pair, NULL, error);
	row = of_output(constant);
	if (status == WEIR_OK)
		status = weir_op_map(body, "map", functions[2], &row, 1, NULL, &mapped, NULL, error);
	if (status == WEIR_OK)
		status = weir_op_reduce_sum(body, "total", mapped, &total, error);
	return status == WEIR_OK ? weir_op_add(body, "sum", pair[0], total, &results[0], error) : status;
}

/* Builds functions with a loop, a map and a call, and runs them. */
static enum weir_status build_and_run(const weir_allocator *allocator, void *context)
{
	struct weir_function_options options[] = {
		{WEIR_FUNCTION_OPTIONS_INIT, .build = build_less, .parameters = two_scalars, .parameter_count = 2,
	     .result_count = 1, .allocator = allocator},
		{WEIR_FUNCTION_OPTIONS_INIT, .build = build_step, .parameters = two_scalars, .parameter_count = 2,
	     .result_count = 2, .allocator = allocator},
		{WEIR_FUNCTION_OPTIONS_INIT, .build = build_double, .parameters = one_tensor, .parameter_count = 1,
	     .result_count = 1, .allocator = allocator},
		{WEIR_FUNCTION_OPTIONS_INIT, .build = build_everything, .parameters = two_scalars, .parameter_count = 2,
	     .result_count = 1, .allocator = allocator}};
	struct weir_session_options session_options = {WEIR_SESSION_OPTIONS_INIT, .flags = WEIR_SESSION_NO_THREADS,
	                                               .allocator = allocator};
	struct weir_graph_options graph_options = {WEIR_GRAPH_OPTIONS_INIT, .allocator = allocator};
	weir_function *functions[4] = {NULL};
	weir_session *session = NULL;
	weir_graph *graph = NULL;
	weir_tensor *const *values = context;
	struct weir_argument arguments[2] = {{.tensor = values[0]}, {.tensor = values[1]}};
	weir_tensor *result = NULL;
	enum weir_status status = weir_graph_create(&graph_options, &graph, NULL);

	options[3].context = functions;
	if (status == WEIR_OK)
		status = weir_session_create(graph, &session_options, &session, NULL);
	for (int i = 0; status == WEIR_OK && i < 4; i++)
		status = weir_function_create(&options[i], &functions[i], NULL);
	if (status == WEIR_OK)
		status = weir_function_run(functions[3], session, arguments, &result, WEIR_NO_DEADLINE, NULL, NULL, NULL);
	if (status == WEIR_OK)
		cr_assert_eq(kit_f32_at(result, 0), 4.0f + 12.0f);
	weir_tensor_release(result);
	cr_assert_eq(weir_session_destroy(session, NULL), WEIR_OK);
	cr_assert_eq(weir_graph_destroy(graph, NULL), WEIR_OK);
	for (int i = 3; i >= 0; i--)
		cr_assert_eq(weir_function_destroy(functions[i], NULL), WEIR_OK);
	return status;
}

Test(function, every_allocation_may_fail)
{
	weir_tensor *values[2] = {kit_f32(0), kit_f32(4)};

	cr_expect_gt(fail_each_allocation(build_and_run, values), 40);
	weir_tensor_release(values[0]);
	weir_tensor_release(values[1]);
}

/* -- bad input --------------------------------------------------------------------------------- */

static weir_output foreign;

static enum weir_status build_foreign(void *context, weir_graph *body, const struct weir_argument arguments[],
                                      weir_output results[], weir_error *error)
{
	switch (*(const int *)context) {
	case 0: results[0] = foreign; return WEIR_OK;
	case 1: return weir_op_add(body, "sum", arguments[0].output, foreign, &results[0], error);
	case 2: return WEIR_OK;
	case 3: return weir_op_placeholder(body, "p", WEIR_F32, NULL, &results[0], error);
	default:
		(void)weir_op_add(body, "half", arguments[0].output, arguments[0].output, &results[0], error);
		*error = (weir_error){WEIR_DATA_LOSS, "half-way"};
		return WEIR_DATA_LOSS;
	}
}

Test(function, builders_that_do_wrong_are_refused)
{
	static const struct {
		enum weir_status status;
		const char *message;
	} expected[] = {
		{WEIR_INVALID_ARGUMENT, "call \"c\": function \"wrong\": result 0, \"outside\", belongs to another graph"},
		{WEIR_INVALID_ARGUMENT, "belongs to another graph"},
		{WEIR_INVALID_ARGUMENT, "call \"c\": function \"wrong\": result 0 is not an output: its node is NULL"},
		{WEIR_INVALID_ARGUMENT, "placeholder \"p\" (f32 of any shape) is needed and was not fed"},
		{WEIR_DATA_LOSS, "call \"c\": function \"wrong\" was not built: half-way"},
	};
	weir_graph *graph = kit_graph();
	struct weir_argument x = of_output(kit_placeholder(graph, "outside", WEIR_F32, kit_shape(0)));

	foreign = x.output;
	for (int how = 0; how < 5; how++) {
		weir_function *wrong = kit_function("wrong", build_foreign, &how, one_tensor, 1, 1);
		weir_output out = {NULL, 7};
		weir_error error;

		cr_expect_eq(weir_op_call(graph, "c", wrong, &x, 1, &out, NULL, &error), expected[how].status);
		cr_expect(strstr(error.message, expected[how].message) != NULL, "%s", error.message);
		cr_expect_null(out.node);
		cr_expect_eq(weir_function_body_count(wrong), 0);
		end_function(wrong);
	}
	cr_assert_eq(weir_graph_destroy(graph, NULL), WEIR_OK);
}

static enum weir_status build_kept(void *context, weir_graph *body, const struct weir_argument arguments[],
                                   weir_output results[], weir_error *error)
{
	*(weir_graph **)context = body;
	return weir_op_identity(body, "same", arguments[0].output, &results[0], error);
}

Test(function, a_complete_body_accepts_nothing_more)
{
	weir_graph *body = NULL;
	weir_function *kept = kit_function("kept", build_kept, &body, one_tensor, 1, 1);
	weir_function *twice = kit_function("double", build_double, NULL, one_tensor, 1, 1);
	weir_graph *graph = kit_graph();
	weir_session *session = kit_session(graph, 0);
	struct weir_argument x = {.tensor = kit_f32(3)};
	weir_node *same = NULL;
	weir_output out;
	weir_error error;

	cr_expect_eq(run_f32(kept, session, &x), 3.0f);
	weir_tensor_release(x.tensor);
	cr_assert_eq(weir_graph_find(body, "same", &same, NULL), WEIR_OK);
	x = of_output((weir_output){same, 0});
	cr_expect_eq(weir_op_identity(body, "more", x.output, &out, &error), WEIR_FAILED_PRECONDITION);
	cr_expect_str_eq(error.message, "identity \"more\": the body of the function is complete");
	cr_expect_eq(weir_op_call(body, "more", twice, &x, 1, &out, NULL, &error), WEIR_FAILED_PRECONDITION);
	cr_expect_eq(weir_graph_exempt(same, NULL), WEIR_FAILED_PRECONDITION);
	end_function(kept);
	end_function(twice);
	kit_end(session, graph);
}

Test(function, an_argument_that_does_not_fit_is_named)
{
	float by = 1;
	weir_function *bump = kit_function("bump", build_bump, &by, tensor_and_var, 2, 1);
	weir_graph *graph = kit_graph();
	weir_session *session = kit_session(graph, 0);
	weir_var *var = kit_var("n", kit_i64(1));
	struct weir_argument arguments[2] = {of_output(kit_constant(graph, kit_i64(1))), {.var = var}};
	weir_tensor *result = NULL;
	weir_output out;
	weir_error error;

	cr_expect_eq(weir_op_call(graph, "c", bump, arguments, 2, &out, NULL, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_str_eq(error.message, "call \"c\": parameter \"x\" of \"bump\" must be f32 of any shape, got i64 []");
	arguments[0] = (struct weir_argument){.var = var};
	cr_expect_eq(weir_op_call(graph, "c", bump, arguments, 2, &out, NULL, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_str_eq(error.message, "call \"c\": parameter \"x\" of \"bump\" must be an output, got a variable "
	                                "(weir_op_read() makes an output of it)");
	arguments[0] = of_output(kit_constant(graph, kit_f32(1)));
	cr_expect_eq(weir_op_call(graph, "c", bump, arguments, 2, &out, NULL, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_str_eq(error.message, "call \"c\": parameter \"w\" of \"bump\" must be f32 of any shape, got i64 []");
	arguments[1].var = NULL;
	cr_expect_eq(weir_op_call(graph, "c", bump, arguments, 2, &out, NULL, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_str_eq(error.message, "call \"c\": parameter \"w\" of \"bump\" must be a variable, got NULL");
	cr_expect_eq(weir_function_run(bump, session, arguments, &result, WEIR_NO_DEADLINE, NULL, NULL, &error),
	             WEIR_INVALID_ARGUMENT);
	cr_expect_str_eq(error.message, "weir_function_run: parameter \"x\" of \"bump\" must be a tensor, got NULL");
	kit_end(session, graph);
	end_function(bump);
	weir_var_destroy(var, NULL);
}

Test(function, bad_options_are_refused)
{
	static const struct weir_parameter nameless = {NULL, WEIR_PARAMETER_TENSOR, 0, NULL};
	static const struct weir_parameter unkind = {"x", (enum weir_parameter_kind)9, 0, NULL};
	struct weir_function_options options = {WEIR_FUNCTION_OPTIONS_INIT, .build = build_double};
	weir_function *function = NULL;

	cr_expect_eq(weir_function_create(NULL, &function, NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_function_create(&options, NULL, NULL), WEIR_INVALID_ARGUMENT);
	options.parameter_count = 1;
	cr_expect_eq(weir_function_create(&options, &function, NULL), WEIR_INVALID_ARGUMENT);
	options.parameters = &nameless;
	cr_expect_eq(weir_function_create(&options, &function, NULL), WEIR_INVALID_ARGUMENT);
	options.parameters = &unkind;
	cr_expect_eq(weir_function_create(&options, &function, NULL), WEIR_INVALID_ARGUMENT);
	options.parameters = one_tensor;
	options.result_count = WEIR_FUNCTION_MAX_RESULTS + 1;
	cr_expect_eq(weir_function_create(&options, &function, NULL), WEIR_INVALID_ARGUMENT);
	options.build = NULL;
	cr_expect_eq(weir_function_create(&options, &function, NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_null(function);
	cr_expect_eq(weir_function_destroy(NULL, NULL), WEIR_OK);
	cr_expect_eq(weir_function_body_count(NULL), 0);
	cr_expect_eq(weir_graph_exempt(NULL, NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_function_run(NULL, NULL, NULL, NULL, 0, NULL, NULL, NULL), WEIR_INVALID_ARGUMENT);
}
