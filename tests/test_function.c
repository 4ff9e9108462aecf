/*
 * test_function.c - functions: bodies by signature, calls, and what is refused.
 */
#include "function_kit.h"

#include <sched.h>

#include "run/countdown.h"

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
	int builds = 0;
	weir_graph *graph = kit_graph();
	weir_session *session = kit_session(graph, 0);
	struct weir_argument argument = {.tensor = kit_f32(1)};
	weir_function *function;
	weir_tensor *result = NULL;
	weir_error error;

	options.context = &builds;
	cr_assert_eq(weir_function_create(&options, &function, NULL), WEIR_OK);
	cr_expect_eq(run_f32(function, session, &argument), 2.0f);
	weir_tensor_release(argument.tensor);
	argument.tensor = kit_i64(1);
	cr_expect_eq(weir_function_run(function, session, &argument, &result, WEIR_NO_DEADLINE, NULL, NULL, &error),
	             WEIR_RESOURCE_EXHAUSTED);
	cr_expect_str_eq(error.message,
	                 "weir_function_run: function \"double\" has bodies for 1 signatures, the most allowed");
	cr_expect_eq(builds, 1, "nothing is built that cannot be kept");
	weir_tensor_release(argument.tensor);
	end_function(function);
	kit_end(session, graph);
}

/* Another body of the same signature is built meanwhile, as by another thread. */
struct overtaken {
	weir_function *function;
	weir_graph *other;
	int builds;
};

static enum weir_status build_overtaken(void *context, weir_graph *body, const struct weir_argument arguments[],
                                        weir_output results[], weir_error *error)
{
	struct overtaken *overtaken = context;
	enum weir_status status = WEIR_OK;

	if (overtaken->builds++ == 0) {
		struct weir_argument argument = of_output(kit_constant(overtaken->other, kit_f32(5)));
		weir_output out;

		status = weir_op_call(overtaken->other, "other", overtaken->function, &argument, 1, &out, NULL, error);
	}
	return status == WEIR_OK ? build_double(NULL, body, arguments, results, error) : status;
}

Test(function, of_two_bodies_that_are_built_at_once_one_is_kept)
{
	struct overtaken overtaken = {NULL, kit_graph(), 0};
	weir_graph *graph = kit_graph();
	weir_session *session = kit_session(graph, 0), *other = kit_session(overtaken.other, 0);
	struct weir_argument x = of_output(kit_constant(graph, kit_f32(3)));
	weir_output out, first;
	weir_error error;

	overtaken.function = kit_function("overtaken", build_overtaken, &overtaken, one_tensor, 1, 1);
	cr_assert_eq(weir_op_call(graph, "call", overtaken.function, &x, 1, &out, NULL, &error), WEIR_OK, "%s",
	             error.message);
	cr_expect_eq(overtaken.builds, 2);
	cr_expect_eq(weir_function_body_count(overtaken.function), 1);
	cr_assert_eq(weir_graph_find_output(overtaken.other, "other:0", &first, &error), WEIR_OK, "%s", error.message);
	cr_expect_eq(kit_fetch_f32(session, out), 6);
	cr_expect_eq(kit_fetch_f32(other, first), 10);
	kit_end(session, graph);
	kit_end(other, overtaken.other);
	end_function(overtaken.function);
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

/* A body knows the dims that its parameter states, and so what it gets must have them. */
Test(function, the_dims_of_a_parameter_hold_for_what_a_call_gets)
{
	static const weir_shape rows_of_three = {.rank = 2, .dims = {-1, 3}};
	static const struct weir_parameter rows[] = {{"rows", WEIR_PARAMETER_TENSOR, WEIR_F32, &rows_of_three}};
	static const float values[6] = {1, 2, 3, 4, 5, 6};
	weir_function *function = kit_function("double", build_double, NULL, rows, 1, 1);
	weir_graph *graph = kit_graph();
	weir_session *session = kit_session(graph, 0);
	weir_output x, out;
	struct weir_argument argument;
	weir_shape shape;
	weir_error error;

	cr_assert_eq(weir_op_placeholder(graph, "x", WEIR_F32, NULL, &x, NULL), WEIR_OK);
	argument = of_output(x);
	cr_assert_eq(weir_op_call(graph, "call", function, &argument, 1, &out, NULL, &error), WEIR_OK, "%s", error.message);
	cr_assert_eq(weir_output_spec(out, NULL, &shape, NULL), WEIR_OK);
	cr_expect(shape.rank == 2 && shape.dims[1] == 3);
	for (int wide = 0; wide < 2; wide++) {
		struct weir_feed feed = {x, kit_tensor(WEIR_F32, wide ? kit_shape(2, 3, 2) : kit_shape(2, 2, 3), values)};
		weir_tensor *result = NULL;

		cr_expect_eq(weir_session_run(session, &feed, 1, &out, 1, &result, NULL, 0, WEIR_NO_DEADLINE, NULL, &error),
		             wide ? WEIR_INVALID_ARGUMENT : WEIR_OK);
		if (wide)
			cr_expect_str_eq(error.message, "call \"call\": parameter \"rows\" of \"double\" must be f32 [?,3], got "
			                                "f32 [3,2]");
		weir_tensor_release(feed.value);
		weir_tensor_release(result);
	}
	kit_end(session, graph);
	end_function(function);
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
