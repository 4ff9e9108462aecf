/*
 * check_dataflow.c - runs of sessions: the library's own graph, plans, frames and steps, on a pool
 * without workers, whose tasks the threads run by helping.
 *
 * Setup builds the graph, opens the session and compiles, so the searches have only what runs. User
 * code writes plain memory, so a node that begins too early shows as a race, and a value that goes
 * too early as use after free. Required of every execution:
 *
 * - each node ran once, and after all that it depends on; what a run returns is right
 * - a run that was stopped says why; an item that a stopped dequeue did not take is still there
 * - all threads end, and nothing leaks, whoever frees the step
 *
 * The scopes whose calls have deadlines are also searched with each thread stopped at each step.
 */
#include <stdio.h>
#include <weir/flow.h>
#include <weir/time.h>

#include "model/scope.h"

enum { THREADS = 3, NODES = 4 };

static struct scene {
	weir_graph *graph;
	weir_pool *pool;
	weir_session *session;
	weir_callable *callable;
	weir_run *run;
	weir_tensor_queue *queue;
	weir_cancel *token;
	weir_function *function;
	weir_node *targets[2];
	weir_output feeds[2], fetches[1];
	size_t target_count, feed_count, fetch_count;
	weir_tensor *values[2];
	enum weir_status status; /* of the call that thread 0 makes, or that fetches */
	int ran[NODES];          /* plain: how often kernel i has run */
	int told;
} scene;

struct scope {
	const char *name;
	void (*setup)(void *scene);
	void (*calls[THREADS])(void);
	void (*finish)(void *scene);
	uint64_t executions, long_executions; /* see scope_plan */
	uint64_t stopped, long_stopped;
};

/* -- values ------------------------------------------------------------------------------------ */

static void must(enum weir_status status)
{
	weir_model_assert(status == WEIR_OK);
}

static weir_tensor *number(int32_t value)
{
	weir_tensor *tensor = NULL;

	must(weir_tensor_scalar_i32(value, &tensor));
	return tensor;
}

static void expect_and_release(weir_tensor *tensor, int32_t value)
{
	weir_model_assert(*(const int32_t *)weir_tensor_data(tensor) == value);
	weir_tensor_release(tensor);
}

/* -- graphs ------------------------------------------------------------------------------------ */

/* Kernel i of a diamond: 0, then 1 and 2, then 3. */
static enum weir_status run_numbered(void *context, const struct weir_kernel_call *call, weir_error *error)
{
	int *ran = context;
	long i = ran - scene.ran;

	(void)error;
	weir_model_assert(i == 0 || scene.ran[0] == 1);
	weir_model_assert(i != 3 || (scene.ran[1] == 1 && scene.ran[2] == 1));
	++*ran;
	weir_model_assert(*ran == 1);
	if (call->output_count != 0)
		call->outputs[0] = number(*(const int32_t *)weir_tensor_data(call->inputs[0]) + (int32_t)i);
	return WEIR_OK;
}

static const struct weir_kernel numbered = {WEIR_KERNEL_INIT, .name = "numbered", .run = run_numbered};

static weir_node *add_kernel(weir_graph *graph, int i, const weir_output *input, weir_output *out)
{
	const struct weir_output_type type = {WEIR_I32, &weir_shape_scalar};
	weir_node *node;

	must(weir_op_kernel(graph, NULL, &numbered, &scene.ran[i], input, input != NULL, &type, out != NULL, NULL, 0, out,
	                    &node, NULL));
	return node;
}

/* Kernels without values, ordered by control edges. Returns the last. */
static weir_node *add_diamond(weir_graph *graph)
{
	weir_node *nodes[NODES];

	for (int i = 0; i < NODES; i++)
		nodes[i] = add_kernel(graph, i, NULL, NULL);
	for (int i = 1; i < 3; i++) {
		must(weir_graph_add_control(graph, nodes[0], nodes[i], NULL));
		must(weir_graph_add_control(graph, nodes[i], nodes[3], NULL));
	}
	return nodes[3];
}

/* Two kernels that use `x`, and an op that adds up their outputs, in place: 2 x + 3. */
static weir_output add_pair(weir_graph *graph, weir_output x)
{
	weir_output left, right, sum;

	(void)add_kernel(graph, 1, &x, &left);
	(void)add_kernel(graph, 2, &x, &right);
	must(weir_op_add(graph, NULL, left, right, &sum, NULL));
	return sum;
}

static void begin(void)
{
	const struct weir_pool_options options = {WEIR_POOL_OPTIONS_INIT, .flags = WEIR_POOL_NO_THREADS};

	scene = (struct scene){.status = WEIR_OK};
	must(weir_pool_create(&options, &scene.pool, NULL));
	must(weir_graph_create(NULL, &scene.graph, NULL));
}

static void compile_again(uint32_t flags)
{
	const struct weir_callable_options how = {WEIR_CALLABLE_OPTIONS_INIT, .flags = flags};

	weir_callable_release(scene.callable);
	must(weir_session_compile(scene.session, scene.feeds, scene.feed_count, scene.fetches, scene.fetch_count,
	                          scene.targets, scene.target_count, &how, &scene.callable, NULL));
}

static void compile(uint32_t flags)
{
	const struct weir_session_options options = {WEIR_SESSION_OPTIONS_INIT, .pool = scene.pool};

	must(weir_session_create(scene.graph, &options, &scene.session, NULL));
	compile_again(flags);
}

static void finish(void *context)
{
	(void)context;
	weir_run_release(scene.run);
	weir_callable_release(scene.callable);
	while (weir_pool_help(scene.pool, 1) != 0)
		;
	must(weir_session_destroy(scene.session, NULL));
	must(weir_graph_destroy(scene.graph, NULL));
	must(weir_function_destroy(scene.function, NULL));
	must(weir_tensor_queue_destroy(scene.queue, NULL));
	must(weir_pool_destroy(scene.pool, NULL));
	weir_cancel_release(scene.token);
	for (size_t i = 0; i < 2; i++)
		weir_tensor_release(scene.values[i]);
}

static void add_feeds(size_t count)
{
	for (size_t i = 0; i < count; i++) {
		must(weir_op_placeholder(scene.graph, NULL, WEIR_I32, &weir_shape_scalar, &scene.feeds[i], NULL));
		scene.values[i] = number(5);
	}
	scene.feed_count = count;
}

static void add_token(void)
{
	must(weir_cancel_create(NULL, &scene.token, NULL));
}

/* -- calls ------------------------------------------------------------------------------------- */

static void help(void)
{
	(void)weir_pool_help(scene.pool, 1);
}

static void fire(void)
{
	(void)weir_cancel_fire(scene.token, NULL);
}

static void close_session(void)
{
	must(weir_session_close(scene.session, NULL));
}

/* Runs the callable to its end; the token may stop it. */
static void run(void)
{
	weir_tensor *result = NULL;

	scene.status = weir_callable_run(scene.callable, scene.values, &result, WEIR_NO_DEADLINE, scene.token, NULL, NULL);
	if (result != NULL)
		weir_tensor_release(result);
}

static void run_diamond(void)
{
	run();
	weir_model_assert(scene.status != WEIR_OK || scene.ran[3] == 1);
}

/* The same, with results. */
static void run_for_13(void)
{
	weir_tensor *result = NULL;

	scene.status = weir_callable_run(scene.callable, scene.values, &result, WEIR_NO_DEADLINE, scene.token, NULL, NULL);
	if (scene.status == WEIR_OK)
		expect_and_release(result, 13);
}

static void expect_ok(void *context)
{
	weir_model_assert(scene.status == WEIR_OK);
	finish(context);
}

/* A run that came after the close was refused. */
static void expect_closed_or_ok(void *context)
{
	weir_model_assert(scene.status == WEIR_OK || scene.status == WEIR_CANCELLED ||
	                  scene.status == WEIR_FAILED_PRECONDITION);
	finish(context);
}

static void expect_ok_or_cancelled(void *context)
{
	weir_model_assert(scene.status == WEIR_OK || scene.status == WEIR_CANCELLED);
	finish(context);
}

/* -- a diamond on two threads ------------------------------------------------------------------ */

static void setup_diamond(void *context)
{
	(void)context;
	begin();
	scene.targets[0] = add_diamond(scene.graph);
	scene.target_count = 1;
	compile(0);
}

static void setup_pair(void *context)
{
	(void)context;
	begin();
	add_feeds(1);
	scene.ran[0] = 1;
	scene.fetches[0] = add_pair(scene.graph, scene.feeds[0]);
	scene.fetch_count = 1;
	compile(0);
}

/* An open run, which its thread can leave: no other thread may be needed. */
static void setup_open_diamond(void *context)
{
	(void)context;
	begin();
	scene.targets[0] = add_diamond(scene.graph);
	scene.target_count = 1;
	compile(WEIR_CALLABLE_LATE_FEEDS);
}

static void open_and_wait(void)
{
	must(weir_run_open(scene.callable, NULL, NULL, &scene.run, NULL));
	scene.status = weir_run_wait(scene.run, 1, NULL);
	weir_model_assert(scene.status == WEIR_OK || scene.status == WEIR_DEADLINE_EXCEEDED);
}

static void open_diamond_and_wait(void)
{
	open_and_wait();
	weir_model_assert(scene.status != WEIR_OK || scene.ran[3] == 1);
}

/* Two kernels without edges: as small as a graph can be whose nodes run on two threads. */
static void setup_open_2_kernels(void *context)
{
	(void)context;
	begin();
	scene.ran[0] = 1;
	for (int i = 0; i < 2; i++)
		scene.targets[i] = add_kernel(scene.graph, i + 1, NULL, NULL);
	scene.target_count = 2;
	compile(WEIR_CALLABLE_LATE_FEEDS);
}

static void open_2_kernels_and_wait(void)
{
	open_and_wait();
	weir_model_assert(scene.status != WEIR_OK || (scene.ran[1] == 1 && scene.ran[2] == 1));
}

/* -- a stop ------------------------------------------------------------------------------------ */

static void setup_diamond_and_token(void *context)
{
	setup_diamond(context);
	add_token();
}

/* -- a dequeue that waits ---------------------------------------------------------------------- */

static void make_queue(void)
{
	const struct weir_tensor_component component = {.dtype = WEIR_I32, .shape = &weir_shape_scalar};
	const struct weir_tensor_queue_options options = {WEIR_TENSOR_QUEUE_OPTIONS_INIT, .capacity = 1,
	                                                  .components = &component, .component_count = 1};

	must(weir_tensor_queue_create(&options, &scene.queue, NULL));
	scene.values[0] = number(13);
}

static void setup_dequeue(void *context)
{
	(void)context;
	begin();
	add_token();
	make_queue();
	must(weir_op_dequeue(scene.graph, NULL, scene.queue, &scene.fetches[0], 1, NULL, NULL));
	scene.fetch_count = 1;
	compile(0);
}

static void enqueue(void)
{
	must(weir_tensor_queue_enqueue(scene.queue, scene.values, 1, WEIR_NO_DEADLINE, NULL, NULL));
}

static void close_queue(void)
{
	must(weir_tensor_queue_close(scene.queue, WEIR_CLOSE_DRAIN, NULL));
}

static void dequeue(void)
{
	weir_tensor *result = NULL;

	scene.status = weir_callable_run(scene.callable, NULL, &result, WEIR_NO_DEADLINE, scene.token, NULL, NULL);
	if (scene.status == WEIR_OK)
		expect_and_release(result, 13);
}

/* The item that was put came out, or is still there. */
static void expect_item(void *context)
{
	weir_model_assert(scene.status == WEIR_OK || scene.status == WEIR_CANCELLED);
	weir_model_assert(weir_tensor_queue_size_approx(scene.queue) == (scene.status == WEIR_OK ? 0 : 1));
	finish(context);
}

static void expect_closed(void *context)
{
	weir_model_assert(scene.status == WEIR_OUT_OF_RANGE);
	finish(context);
}

static void expect_cancelled(void *context)
{
	weir_model_assert(scene.status == WEIR_CANCELLED);
	finish(context);
}

/* -- two runs, and the spare frame ------------------------------------------------------------- */

static void setup_two_runs(void *context)
{
	weir_output one, sum;
	weir_tensor *tensor = number(1);

	(void)context;
	begin();
	add_feeds(1);
	must(weir_op_constant(scene.graph, NULL, tensor, &one, NULL));
	weir_tensor_release(tensor);
	must(weir_op_add(scene.graph, NULL, scene.feeds[0], one, &sum, NULL));
	must(weir_op_add(scene.graph, NULL, sum, one, &scene.fetches[0], NULL));
	scene.fetch_count = 1;
	compile(0);
	run(); /* leaves a spare frame */
}

static void run_for_7(void)
{
	weir_tensor *result = NULL;
	enum weir_status status =
		weir_callable_run(scene.callable, scene.values, &result, WEIR_NO_DEADLINE, NULL, NULL, NULL);

	must(status);
	expect_and_release(result, 7);
}

/* -- child frames ------------------------------------------------------------------------------ */

static enum weir_status build_pair(void *context, weir_graph *body, const struct weir_argument arguments[],
                                   weir_output results[], weir_error *error)
{
	(void)context, (void)error;
	results[0] = add_pair(body, arguments[0].output);
	return WEIR_OK;
}

static void make_function(weir_function_fn *build)
{
	const struct weir_parameter x = {"x", WEIR_PARAMETER_TENSOR, WEIR_I32, &weir_shape_scalar};
	const struct weir_function_options options = {WEIR_FUNCTION_OPTIONS_INIT, .build = build, .parameters = &x,
	                                              .parameter_count = 1, .result_count = 1};

	must(weir_function_create(&options, &scene.function, NULL));
}

static void setup_call(void *context)
{
	struct weir_argument argument = {0};

	(void)context;
	begin();
	add_feeds(1);
	add_token();
	make_function(build_pair);
	scene.ran[0] = 1;
	argument.output = scene.feeds[0];
	must(weir_op_call(scene.graph, NULL, scene.function, &argument, 1, scene.fetches, NULL, NULL));
	scene.fetch_count = 1;
	compile(0);
}

/* Kernel 1 or 2, by the row. */
static enum weir_status run_row(void *context, const struct weir_kernel_call *call, weir_error *error)
{
	int32_t x = *(const int32_t *)weir_tensor_data(call->inputs[0]);

	(void)error;
	if (context == &scene.told)
		weir_model_assert(scene.ran[x]++ == 0);
	call->outputs[0] = number(x);
	return WEIR_OK;
}

/* Two kernels, so that one of each row goes to the pool. */
static enum weir_status build_row(void *context, weir_graph *body, const struct weir_argument arguments[],
                                  weir_output results[], weir_error *error)
{
	static const struct weir_kernel row = {WEIR_KERNEL_INIT, .name = "row", .run = run_row};
	const struct weir_output_type type = {WEIR_I32, &weir_shape_scalar};
	weir_output left, right;

	(void)context, (void)error;
	must(weir_op_kernel(body, NULL, &row, &scene.told, &arguments[0].output, 1, &type, 1, NULL, 0, &left, NULL, NULL));
	must(weir_op_kernel(body, NULL, &row, NULL, &arguments[0].output, 1, &type, 1, NULL, 0, &right, NULL, NULL));
	must(weir_op_add(body, NULL, left, right, &results[0], NULL));
	return WEIR_OK;
}

static void setup_map(void *context)
{
	static const int32_t rows[] = {0, 1};
	const weir_shape shape = {.rank = 1, .dims = {2}};
	struct weir_argument argument = {0};

	(void)context;
	begin();
	must(weir_op_placeholder(scene.graph, NULL, WEIR_I32, &shape, &scene.feeds[0], NULL));
	scene.feed_count = 1;
	must(weir_tensor_copy_of(WEIR_I32, &shape, rows, NULL, &scene.values[0]));
	make_function(build_row);
	argument.output = scene.feeds[0];
	must(weir_op_map(scene.graph, NULL, scene.function, &argument, 1, NULL, scene.fetches, NULL, NULL));
	scene.fetch_count = 1;
	compile(0);
}

static void run_map(void)
{
	weir_tensor *result = NULL;

	scene.status = weir_callable_run(scene.callable, scene.values, &result, WEIR_NO_DEADLINE, NULL, NULL, NULL);
	must(scene.status);
	for (int32_t i = 0; i < 2; i++)
		weir_model_assert(((const int32_t *)weir_tensor_data(result))[i] == 2 * i);
	weir_tensor_release(result);
}

/*
 * Two waits in child frames, which may end while the token fires. Only one of the frames becomes the
 * spare one; the other is freed. There is one item, so the token stops the run.
 */
static enum weir_status build_dequeue(void *context, weir_graph *body, const struct weir_argument arguments[],
                                      weir_output results[], weir_error *error)
{
	(void)context;
	return weir_op_dequeue(body, NULL, arguments[0].queue, &results[0], 1, NULL, error);
}

static void setup_2_calls_of_dequeue(void *context)
{
	const struct weir_parameter q = {"q", WEIR_PARAMETER_QUEUE, 0, NULL};
	const struct weir_function_options options = {WEIR_FUNCTION_OPTIONS_INIT, .build = build_dequeue, .parameters = &q,
	                                              .parameter_count = 1, .result_count = 1};
	struct weir_argument argument = {0};

	(void)context;
	begin();
	add_token();
	make_queue();
	must(weir_function_create(&options, &scene.function, NULL));
	argument.queue = scene.queue;
	for (size_t i = 0; i < 2; i++)
		must(weir_op_call(scene.graph, NULL, scene.function, &argument, 1, &scene.fetches[0], &scene.targets[i], NULL));
	scene.target_count = 2;
	compile(0);
}

/* -- late feeds -------------------------------------------------------------------------------- */

static void setup_late(void *context)
{
	(void)context;
	begin();
	add_feeds(2);
	must(weir_op_add(scene.graph, NULL, scene.feeds[0], scene.feeds[1], &scene.fetches[0], NULL));
	scene.fetch_count = 1;
	compile(WEIR_CALLABLE_LATE_FEEDS);
	must(weir_run_open(scene.callable, NULL, NULL, &scene.run, NULL));
}

static void feed(size_t i)
{
	enum weir_status status = weir_run_feed(scene.run, i, scene.values[i], NULL);

	/* A run that was closed has no feed left that could be given. */
	weir_model_assert(status == WEIR_OK || status == WEIR_CANCELLED || status == WEIR_INVALID_ARGUMENT);
}

static void feed_0(void)
{
	feed(0);
}

static void feed_1(void)
{
	feed(1);
}

static void feed_both(void)
{
	feed(0);
	feed(1);
}

static void close_run(void)
{
	must(weir_run_close(scene.run, NULL));
}

static void fetch_until(uint64_t deadline_ns)
{
	weir_tensor *result;

	scene.status = weir_run_fetch(scene.run, 0, deadline_ns, &result, NULL);
	if (scene.status == WEIR_OK)
		expect_and_release(result, 10);
}

static void fetch(void)
{
	fetch_until(WEIR_NO_DEADLINE);
}

static void fetch_for_a_while(void)
{
	fetch_until(1);
	weir_model_assert(scene.status == WEIR_OK || scene.status == WEIR_CANCELLED ||
	                  scene.status == WEIR_DEADLINE_EXCEEDED);
}

/* -- user code that outlives its run ----------------------------------------------------------- */

static void on_told(void *context, enum weir_status status, const weir_error *error, weir_tensor *const results[],
                    size_t count)
{
	(void)context, (void)error, (void)results, (void)count;
	scene.status = status;
	scene.told++;
}

static void setup_outlives(void *context)
{
	(void)context;
	begin();
	scene.targets[0] = add_kernel(scene.graph, 0, NULL, NULL);
	scene.target_count = 1;
	compile(0);
}

/* Lets go of all that the run has, while another thread may be in its kernel. */
static void start_and_destroy(void)
{
	weir_run *started;

	must(weir_callable_start(scene.callable, NULL, NULL, NULL, on_told, NULL, &started, NULL));
	weir_run_cancel(started, NULL);
	weir_run_release(started);
	weir_callable_release(scene.callable);
	scene.callable = NULL;
	help();
	must(weir_session_destroy(scene.session, NULL));
	scene.session = NULL;
	weir_model_assert(scene.told == 1);
	weir_model_assert(scene.status == WEIR_OK ? scene.ran[0] == 1 : scene.status == WEIR_CANCELLED);
}

/* -- runs that their thread can leave: no other thread is needed ------------------------------- */

static void setup_open_dequeue(void *context)
{
	setup_dequeue(context);
	compile_again(WEIR_CALLABLE_LATE_FEEDS);
}

static void setup_open_call(void *context)
{
	setup_call(context);
	compile_again(WEIR_CALLABLE_LATE_FEEDS);
}

static void setup_open_map(void *context)
{
	setup_map(context);
	compile_again(WEIR_CALLABLE_LATE_FEEDS);
}

static void setup_open_pair(void *context)
{
	setup_pair(context);
	compile_again(WEIR_CALLABLE_LATE_FEEDS);
}

/* Leaves scene.run open. */
static void open_and_fetch(void)
{
	weir_tensor *result;
	weir_run *open;
	enum weir_status status = weir_run_open(scene.callable, scene.token, NULL, &open, NULL);

	weir_model_assert(status == WEIR_OK || status == WEIR_FAILED_PRECONDITION);
	if (status != WEIR_OK)
		return;
	scene.run = open;
	for (size_t i = 0; i < scene.feed_count; i++)
		feed(i);
	status = weir_run_fetch(open, 0, 1, &result, NULL);
	weir_model_assert(status == WEIR_OK || status == WEIR_CANCELLED || status == WEIR_DEADLINE_EXCEEDED ||
	                  (status == WEIR_OUT_OF_RANGE && scene.queue != NULL));
	if (status == WEIR_OK)
		weir_tensor_release(result);
}

/* Another thread may still be in a kernel. */
static void open_and_leave(void)
{
	weir_run *open;

	must(weir_run_open(scene.callable, NULL, NULL, &open, NULL));
	must(weir_run_feed(open, 0, scene.values[0], NULL));
	weir_run_release(open);
	weir_callable_release(scene.callable);
	scene.callable = NULL;
}

/* -- scopes ------------------------------------------------------------------------------------ */

static const struct scope scopes[] = {
	{"dataflow_diamond_beside_help", setup_diamond, {run_diamond, help}, expect_ok, 20000, 0, 0, 0},
	{"dataflow_pair_of_values_beside_help", setup_pair, {run_for_13, help}, expect_ok, 40000, 0, 0, 0},
	{"dataflow_open_diamond_beside_help",
     setup_open_diamond,
     {open_diamond_and_wait, help},
     finish,
     20000,
     0,
     100,
     10000},
	{"dataflow_open_2_kernels_beside_help",
     setup_open_2_kernels,
     {open_2_kernels_and_wait, help},
     finish,
     20000,
     0,
     100,
     10000},
	{"dataflow_diamond_beside_help_and_token",
     setup_diamond_and_token,
     {run_diamond, help, fire},
     expect_ok_or_cancelled,
     4000,
     1000000,
     0,
     0},
	{"dataflow_dequeue_beside_enqueue", setup_dequeue, {dequeue, enqueue}, expect_item, 2000, 1000000, 0, 0},
	{"dataflow_dequeue_beside_close", setup_dequeue, {dequeue, close_queue}, expect_closed, 2000, 1000000, 0, 0},
	{"dataflow_dequeue_beside_token", setup_dequeue, {dequeue, fire}, expect_cancelled, 2000, 1000000, 0, 0},
	{"dataflow_dequeue_beside_enqueue_and_token",
     setup_dequeue,
     {dequeue, enqueue, fire},
     expect_item,
     2000,
     1000000,
     0,
     0},
	{"dataflow_2_runs_1_spare_frame", setup_two_runs, {run_for_7, run_for_7}, finish, 20000, 0, 1000, 0},
	{"dataflow_3_runs_1_spare_frame", setup_two_runs, {run_for_7, run_for_7, run_for_7}, finish, 4000, 1000000, 0, 0},
	{"dataflow_call_beside_help", setup_call, {run_for_13, help}, expect_ok, 40000, 0, 0, 0},
	{"dataflow_call_beside_help_and_token",
     setup_call,
     {run_for_13, help, fire},
     expect_ok_or_cancelled,
     4000,
     1000000,
     0,
     0},
	{"dataflow_2_calls_of_dequeue_beside_enqueue_and_token",
     setup_2_calls_of_dequeue,
     {dequeue, enqueue, fire},
     expect_cancelled,
     2000,
     1000000,
     0,
     0},
	{"dataflow_map_of_2_rows_beside_help", setup_map, {run_map, help}, expect_ok, 4000, 1000000, 0, 0},
	{"dataflow_2_feeds_beside_fetch", setup_late, {feed_0, feed_1, fetch}, expect_ok, 4000, 1000000, 0, 0},
	{"dataflow_2_feeds_beside_fetch_for_a_while",
     setup_late,
     {feed_0, feed_1, fetch_for_a_while},
     finish,
     4000,
     1000000,
     100,
     10000},
	{"dataflow_feeds_beside_fetch_and_close",
     setup_late,
     {feed_both, fetch, close_run},
     expect_ok_or_cancelled,
     4000,
     1000000,
     0,
     0},
	{"dataflow_feeds_beside_fetch_for_a_while_and_close",
     setup_late,
     {feed_both, fetch_for_a_while, close_run},
     finish,
     4000,
     1000000,
     100,
     10000},
	{"dataflow_open_dequeue_beside_enqueue",
     setup_open_dequeue,
     {open_and_fetch, enqueue},
     finish,
     500,
     100000,
     20,
     1000},
	{"dataflow_open_dequeue_beside_enqueue_and_token",
     setup_open_dequeue,
     {open_and_fetch, enqueue, fire},
     finish,
     500,
     100000,
     20,
     1000},
	{"dataflow_open_dequeue_beside_close",
     setup_open_dequeue,
     {open_and_fetch, close_queue},
     finish,
     500,
     100000,
     20,
     1000},
	{"dataflow_open_call_beside_help_and_token",
     setup_open_call,
     {open_and_fetch, help, fire},
     finish,
     500,
     100000,
     20,
     1000},
	{"dataflow_open_map_of_2_rows_beside_help", setup_open_map, {open_and_fetch, help}, finish, 500, 100000, 20, 1000},
	{"dataflow_session_close_beside_open_run",
     setup_open_pair,
     {open_and_fetch, close_session},
     finish,
     500,
     100000,
     20,
     1000},
	{"dataflow_kernel_outlives_its_open_run", setup_open_pair, {open_and_leave, help}, finish, 500, 100000, 20, 1000},
	{"dataflow_session_close_beside_run",
     setup_pair,
     {run_for_13, close_session},
     expect_closed_or_ok,
     4000,
     1000000,
     0,
     0},
	{"dataflow_kernel_outlives_its_run", setup_outlives, {start_and_destroy, help}, finish, 4000, 1000000, 0, 0},
};

static struct scope_plan prepare(size_t index)
{
	const struct scope *scope = &scopes[index];
	size_t threads = scope_functions(scope->calls, THREADS);

	return (struct scope_plan){
		{scope->name, threads, &scene, sizeof(scene), scope->setup, scope_function, scope->finish},
		scope->executions,
		scope->long_executions,
		scope->stopped,
		scope->long_stopped};
}

int main(int argc, char **argv)
{
	scope_arguments(argc, argv);
	return scope_all(prepare, sizeof(scopes) / sizeof(scopes[0]));
}
