/*
 * test_function_flow.c - functions as the branches of cases, the bodies of loops, and the rows of maps.
 */
#include "function_kit.h"

#include <math.h>
#include <sched.h>
#include <weir/flow/callable.h>

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

/* (i + 1, n, 0): what the loop got third is not used. */
static enum weir_status build_step_and_zero(void *context, weir_graph *body, const struct weir_argument arguments[],
                                            weir_output results[], weir_error *error)
{
	enum weir_status status = f32_constant(body, 0, &results[2], error);

	return status == WEIR_OK ? build_step(context, body, arguments, results, error) : status;
}

static void count_release(void *context, void *data)
{
	(void)data;
	++*(int *)context;
}

Test(function, a_loop_gives_back_a_value_that_its_body_does_not_use)
{
	static const struct weir_parameter three_scalars[] = {{"i", WEIR_PARAMETER_TENSOR, WEIR_F32, &scalar},
	                                                      {"n", WEIR_PARAMETER_TENSOR, WEIR_F32, &scalar},
	                                                      {"z", WEIR_PARAMETER_TENSOR, WEIR_F32, &scalar}};
	static float third = 7;
	weir_function *less = kit_function("less", build_less, NULL, three_scalars, 3, 1);
	weir_function *step = kit_function("step", build_step_and_zero, NULL, three_scalars, 3, 3);
	weir_graph *graph = kit_graph();
	weir_session *session = kit_session(graph, 0);
	weir_output z = kit_placeholder(graph, "z", WEIR_F32, scalar), outs[3];
	struct weir_argument arguments[3] = {of_output(kit_constant(graph, kit_f32(0))),
	                                     of_output(kit_constant(graph, kit_f32(2))), of_output(z)};
	struct weir_feed feed = {z, NULL};
	weir_tensor *result = NULL;
	int releases = 0;

	cr_assert_eq(weir_op_while(graph, "loop", less, step, arguments, 3, NULL, outs, NULL, NULL), WEIR_OK);
	cr_assert_eq(weir_tensor_wrap(WEIR_F32, &scalar, &third, count_release, &releases, NULL, &feed.value), WEIR_OK);
	cr_assert_eq(weir_session_run(session, &feed, 1, &outs[2], 1, &result, NULL, 0, WEIR_NO_DEADLINE, NULL, NULL),
	             WEIR_OK);
	cr_expect_eq(kit_f32_at(result, 0), 0);
	weir_tensor_release(result);
	weir_tensor_release(feed.value);
	cr_expect_eq(releases, 1);
	kit_end(session, graph);
	end_function(less);
	end_function(step);
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

/* x, four times. */
static enum weir_status build_four(void *context, weir_graph *body, const struct weir_argument arguments[],
                                   weir_output results[], weir_error *error)
{
	(void)context, (void)body, (void)error;
	for (int i = 0; i < 4; i++)
		results[i] = arguments[0].output;
	return WEIR_OK;
}

Test(function, a_map_adds_a_dim_to_what_its_function_gives)
{
	static const float values[6] = {1, 2, 3, 4, 5, 6};
	weir_function *four = kit_function("four", build_four, NULL, one_tensor, 1, 4);
	weir_graph *graph = kit_graph();
	struct weir_argument x = of_output(kit_constant(graph, kit_tensor(WEIR_F32, kit_shape(2, 2, 3), values)));
	weir_output outs[4];
	weir_shape shape;

	cr_assert_eq(weir_op_map(graph, NULL, four, &x, 1, NULL, outs, NULL, NULL), WEIR_OK);
	for (int i = 0; i < 4; i++) {
		cr_assert_eq(weir_output_spec(outs[i], NULL, &shape, NULL), WEIR_OK);
		cr_expect_eq(shape.rank, 2);
		cr_expect_lt(shape.dims[0], 0, "the number of rows is not known before a run");
	}
	cr_assert_eq(weir_graph_destroy(graph, NULL), WEIR_OK);
	end_function(four);
}

/* A row without elements takes no memory, but each of its results takes a pointer. */
Test(function, a_map_of_more_rows_than_memory_can_hold_fails)
{
	static const weir_shape many = {.rank = 2, .dims = {INT64_C(1) << 62, 0}};
	weir_function *four = kit_function("four", build_four, NULL, one_tensor, 1, 4);
	weir_graph *graph = kit_graph();
	weir_session *session = kit_session(graph, 0);
	struct weir_argument x = of_output(kit_constant(graph, kit_tensor(WEIR_F32, many, NULL)));
	weir_tensor *result = NULL;
	weir_output outs[4];
	weir_error error;

	cr_assert_eq(weir_op_map(graph, "m", four, &x, 1, NULL, outs, NULL, NULL), WEIR_OK);
	cr_expect_eq(weir_session_run(session, NULL, 0, outs, 1, &result, NULL, 0, WEIR_NO_DEADLINE, NULL, &error),
	             WEIR_RESOURCE_EXHAUSTED);
	cr_expect_str_eq(error.message, "map \"m\": no memory for 4611686018427387904 rows");
	kit_end(session, graph);
	end_function(four);
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
