/*
 * cost_steps.c - weir-cost: steps of a session, and the functions that they call.
 */
#include <weir/flow/callable.h>
#include <weir/flow/function.h>
#include <weir/flow/kernel.h>
#include <weir/flow/op.h>
#include <weir/flow/session.h>

#include "cost.h"

enum {
	NODES = 32 /* of a large step; less the step of 1 no-op, and by 31, it is the cost of a node */
};

/* -- steps ------------------------------------------------------------------------------------- */

static weir_graph *graph;
static weir_session *session;
static weir_tensor_queue *tuples;
static weir_node *targets[NODES];
static weir_output fetch;
static size_t target_count;
static size_t fetch_count;

/* No pool: each step runs on this thread, as the steps of an idle pool's caller do. */
static void steps_begin(void)
{
	struct weir_session_options options = {WEIR_SESSION_OPTIONS_INIT, .flags = WEIR_SESSION_NO_THREADS};

	must(weir_graph_create(NULL, &graph, NULL));
	must(weir_session_create(graph, &options, &session, NULL));
	target_count = 0;
	fetch_count = 0;
}

static void steps_end(void)
{
	must(weir_session_destroy(session, NULL));
	must(weir_graph_destroy(graph, NULL));
}

static void no_ops(size_t count, bool chained)
{
	steps_begin();
	for (size_t i = 0; i < count; i++) {
		must(weir_op_no_op(graph, NULL, &targets[i], NULL));
		if (chained && i != 0)
			must(weir_graph_add_control(graph, targets[i - 1], targets[i], NULL));
	}
	target_count = count;
}

static void one_no_op(void)
{
	no_ops(1, false);
}

static void chain_of_no_ops(void)
{
	no_ops(NODES, true);
}

static void row_of_no_ops(void)
{
	no_ops(NODES, false);
}

static void chain_of_adds(void)
{
	weir_output one;
	weir_tensor *scalar;

	steps_begin();
	must(weir_tensor_scalar_f32(1, &scalar));
	must(weir_op_constant(graph, NULL, scalar, &one, NULL));
	weir_tensor_release(scalar);
	fetch = one;
	for (int i = 0; i < NODES; i++)
		must(weir_op_add(graph, NULL, fetch, one, &fetch, NULL));
	fetch_count = 1;
}

/* One enqueue and, after it, one dequeue. */
static void through_a_queue(void)
{
	struct weir_tensor_component component = {.dtype = WEIR_F32};
	struct weir_tensor_queue_options options = {WEIR_TENSOR_QUEUE_OPTIONS_INIT, .capacity = 1, .components = &component,
	                                            .component_count = 1};
	weir_tensor *scalar;
	weir_output one;

	steps_begin();
	must(weir_tensor_queue_create(&options, &tuples, NULL));
	must(weir_tensor_scalar_f32(1, &scalar));
	must(weir_op_constant(graph, NULL, scalar, &one, NULL));
	weir_tensor_release(scalar);
	must(weir_op_enqueue(graph, NULL, tuples, &one, 1, &targets[0], NULL));
	must(weir_op_dequeue(graph, NULL, tuples, &fetch, 1, &targets[1], NULL));
	must(weir_graph_add_control(graph, targets[0], targets[1], NULL));
	fetch_count = 1;
}

static void through_a_queue_end(void)
{
	steps_end();
	must(weir_tensor_queue_destroy(tuples, NULL));
}

/* -- functions: their steps compare with the step of 1 no-op ----------------------------------- */

static weir_function *condition;
static weir_function *function;
static weir_tensor *answers[2];
static int turns;

/* The result is the argument. */
static enum weir_status build_pass(void *context, weir_graph *body, const struct weir_argument arguments[],
                                   weir_output results[], weir_error *error)
{
	(void)context;
	return weir_op_identity(body, NULL, arguments[0].output, &results[0], error);
}

/* True 31 times, then false. */
static enum weir_status again(void *context, const struct weir_kernel_call *call, weir_error *error)
{
	(void)context;
	(void)error;
	turns = (turns + 1) % NODES;
	call->outputs[0] = weir_tensor_retain(answers[turns != 0]);
	return WEIR_OK;
}

static const struct weir_kernel again_kernel = {WEIR_KERNEL_INIT, .name = "again", .flags = WEIR_KERNEL_SHORT,
                                                .run = again};

static enum weir_status build_again(void *context, weir_graph *body, const struct weir_argument arguments[],
                                    weir_output results[], weir_error *error)
{
	struct weir_output_type type = {WEIR_BOOL, &weir_shape_scalar};

	(void)context;
	(void)arguments;
	return weir_op_kernel(body, NULL, &again_kernel, NULL, NULL, 0, &type, 1, NULL, 0, results, NULL, error);
}

static weir_function *function_of(weir_function_fn *build)
{
	static const struct weir_parameter parameter = {.name = "x"};
	struct weir_function_options options = {WEIR_FUNCTION_OPTIONS_INIT, .build = build, .parameters = &parameter,
	                                        .parameter_count = 1, .result_count = 1};
	weir_function *made;

	must(weir_function_create(&options, &made, NULL));
	return made;
}

/* A constant with NODES rows, or a scalar. */
static struct weir_argument constant_of(bool in_rows)
{
	static const float zeros[NODES];
	weir_shape shape = {.rank = in_rows, .dims = {NODES}};
	struct weir_argument argument = {.tensor = NULL};
	weir_tensor *tensor;

	must(weir_tensor_copy_of(WEIR_F32, &shape, zeros, NULL, &tensor));
	must(weir_op_constant(graph, NULL, tensor, &argument.output, NULL));
	weir_tensor_release(tensor);
	return argument;
}

static void functions_begin(void)
{
	steps_begin();
	turns = 0;
	must(weir_tensor_scalar_bool(false, &answers[0]));
	must(weir_tensor_scalar_bool(true, &answers[1]));
	condition = function_of(build_again);
	function = function_of(build_pass);
	fetch_count = 1;
}

static void functions_end(void)
{
	steps_end();
	must(weir_function_destroy(condition, NULL));
	must(weir_function_destroy(function, NULL));
	weir_tensor_release(answers[0]);
	weir_tensor_release(answers[1]);
}

static void chain_of_calls(void)
{
	struct weir_argument argument;

	functions_begin();
	argument = constant_of(false);
	for (int i = 0; i < NODES; i++) {
		must(weir_op_call(graph, NULL, function, &argument, 1, &fetch, NULL, NULL));
		argument.output = fetch;
	}
}

static void loop(void)
{
	struct weir_argument argument;

	functions_begin();
	argument = constant_of(false);
	must(weir_op_while(graph, NULL, condition, function, &argument, 1, NULL, &fetch, NULL, NULL));
}

static void map_of_rows(void)
{
	struct weir_argument argument;

	functions_begin();
	argument = constant_of(true);
	must(weir_op_map(graph, NULL, function, &argument, 1, NULL, &fetch, NULL, NULL));
}

static void step_until(uint64_t deadline_ns)
{
	weir_tensor *result;

	must(weir_session_run(session, NULL, 0, &fetch, fetch_count, &result, targets, target_count, deadline_ns, NULL,
	                      NULL));
	if (fetch_count != 0)
		weir_tensor_release(result);
}

static void step(void)
{
	step_until(WEIR_NO_DEADLINE);
}

static void step_in_time(void)
{
	step_until(WEIR_NO_DEADLINE - 1);
}

static weir_callable *callable;

static void callable_begin(void)
{
	no_ops(1, false);
	must(weir_session_compile(session, NULL, 0, NULL, 0, targets, 1, NULL, &callable, NULL));
}

static void callable_end(void)
{
	weir_callable_release(callable);
	steps_end();
}

static void callable_run(void)
{
	must(weir_callable_run(callable, NULL, NULL, WEIR_NO_DEADLINE, NULL, NULL, NULL));
}

/* -- the table --------------------------------------------------------------------------------- */

static const struct cost_operation operations[] = {
	{"step of 1 no-op", one_no_op, nothing, step, nothing, steps_end},
	{"run of 1 no-op by a callable", callable_begin, nothing, callable_run, nothing, callable_end},
	{"step of 32 no-ops in a chain", chain_of_no_ops, nothing, step, nothing, steps_end},
	{"step of 32 no-ops in a chain, deadline", chain_of_no_ops, nothing, step_in_time, nothing, steps_end},
	{"step of 32 no-ops without edges", row_of_no_ops, nothing, step, nothing, steps_end},
	{"step of 32 f32 adds in a chain", chain_of_adds, nothing, step, nothing, steps_end},
	{"step of an enqueue and a dequeue", through_a_queue, nothing, step, nothing, through_a_queue_end},
	{"step of 32 calls in a chain", chain_of_calls, nothing, step, nothing, functions_end},
	{"step of a loop of 31 iterations", loop, nothing, step, nothing, functions_end},
	{"step of a map of 32 rows", map_of_rows, nothing, step, nothing, functions_end},
};

const struct cost_group cost_steps = COST_GROUP(operations);
