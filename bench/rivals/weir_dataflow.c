/*
 * weir_dataflow.c - graphs of ours: steps of a session, runs of a callable, functions; and direct calls
 * of a queue, which are compared with them.
 */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <weir/flow/callable.h>
#include <weir/flow/function.h>
#include <weir/flow/kernel.h>
#include <weir/flow/op.h>
#include <weir/flow/session.h>
#include <weir/flow/trace.h>

#include "rivals.h"

enum { MOST_NODES = 1000, BUFFER_FLOATS = 1 << 18, SMALL_STEP = 8 };

/* How a contender differs from a run of a callable without a deadline. */
enum way { PLAIN, BY_SESSION, WITH_DEADLINE, WITH_DEADLINE_AND_KERNELS, WITH_KERNELS, MEASURED_KERNELS, TRACED };

struct flow {
	enum bench_dataflow kind;
	enum way way;
	unsigned nodes;
	weir_graph *graph;
	weir_session *session;
	weir_callable *callable;
	weir_trace *trace;
	weir_tensor_queue *queue;
	weir_tensor *one;
	weir_function *functions[2];
	unsigned turns;          /* of the loop, in this run */
	weir_tensor *answers[2]; /* false, true */
	weir_node *targets[MOST_NODES];
	size_t target_count;
	weir_output fetch;
	size_t fetch_count;
	_Alignas(64) uint64_t marks[MOST_NODES]; /* by node: how often it ran */
	_Alignas(64) _Atomic(uint64_t) ran;
	_Alignas(64) _Atomic(uint64_t) bytes, most_bytes;
};

static void must(enum weir_status status)
{
	if (status != WEIR_OK)
		exit(3);
}

/* -- memory, counted --------------------------------------------------------------------------- */

static void *allocate(void *context, size_t size, size_t alignment)
{
	struct flow *flow = context;
	uint64_t now = atomic_fetch_add_explicit(&flow->bytes, size, memory_order_relaxed) + size;
	uint64_t most = atomic_load_explicit(&flow->most_bytes, memory_order_relaxed);

	while (now > most && !atomic_compare_exchange_weak_explicit(&flow->most_bytes, &most, now, memory_order_relaxed,
	                                                            memory_order_relaxed))
		;
	return weir_default_allocator()->allocate(weir_default_allocator()->context, size, alignment);
}

static void release(void *context, void *memory, size_t size, size_t alignment)
{
	struct flow *flow = context;

	atomic_fetch_sub_explicit(&flow->bytes, size, memory_order_relaxed);
	weir_default_allocator()->release(weir_default_allocator()->context, memory, size, alignment);
}

static uint64_t most_bytes(void *self)
{
	struct flow *flow = self;

	return atomic_load_explicit(&flow->most_bytes, memory_order_relaxed);
}

/* -- what the nodes do ------------------------------------------------------------------------- */

/* Notes that node `context` ran. Runs of one flow come one after the other. */
static enum weir_status mark(void *context, const struct weir_kernel_call *call, weir_error *error)
{
	(void)call, (void)error;
	++*(uint64_t *)context;
	return WEIR_OK;
}

static const struct weir_kernel short_kernel = {WEIR_KERNEL_INIT, .name = "mark", .flags = WEIR_KERNEL_SHORT,
                                                .run = mark};
static const struct weir_kernel measured_kernel = {WEIR_KERNEL_INIT, .name = "mark", .run = mark};

static int has_kernels(const struct flow *flow)
{
	return flow->way == WITH_KERNELS || flow->way == MEASURED_KERNELS || flow->way == WITH_DEADLINE_AND_KERNELS;
}

static void add_plain_nodes(struct flow *flow, int chained)
{
	for (unsigned i = 0; i < flow->nodes; i++) {
		if (has_kernels(flow))
			must(weir_op_kernel(flow->graph, NULL, flow->way == MEASURED_KERNELS ? &measured_kernel : &short_kernel,
			                    &flow->marks[i], NULL, 0, NULL, 0, NULL, 0, NULL, &flow->targets[i], NULL));
		else
			must(weir_op_no_op(flow->graph, NULL, &flow->targets[i], NULL));
		if (chained && i != 0)
			must(weir_graph_add_control(flow->graph, flow->targets[i - 1], flow->targets[i], NULL));
	}
	flow->target_count = flow->nodes;
}

static weir_output constant(struct flow *flow, weir_tensor *tensor)
{
	weir_output out;

	must(weir_op_constant(flow->graph, NULL, tensor, &out, NULL));
	return out;
}

static void add_additions(struct flow *flow, unsigned count, weir_output value)
{
	weir_output one = constant(flow, flow->one);

	flow->fetch = value;
	for (unsigned i = 0; i < count; i++)
		must(weir_op_add(flow->graph, NULL, flow->fetch, one, &flow->fetch, NULL));
	flow->fetch_count = 1;
}

static void add_queue(struct flow *flow)
{
	weir_output one = constant(flow, flow->one);
	weir_node *put, *taken = NULL;

	for (unsigned i = 0; i < flow->nodes; i++) {
		must(weir_op_enqueue(flow->graph, NULL, flow->queue, &one, 1, &put, NULL));
		if (taken != NULL)
			must(weir_graph_add_control(flow->graph, taken, put, NULL));
		must(weir_op_dequeue(flow->graph, NULL, flow->queue, &flow->fetch, 1, &taken, NULL));
		must(weir_graph_add_control(flow->graph, put, taken, NULL));
	}
	flow->fetch_count = 1;
}

/* A value that no constant is, so that the first addition may write over it. */
static void add_buffers(struct flow *flow)
{
	weir_shape shape = {1, {BUFFER_FLOATS}};
	weir_tensor_builder *builder;
	weir_tensor *zeros;
	weir_output value;

	must(weir_tensor_builder_create(WEIR_F32, &shape, NULL, &builder, NULL));
	must(weir_tensor_builder_finish(builder, &zeros));
	value = constant(flow, zeros);
	weir_tensor_release(zeros);
	add_additions(flow, flow->nodes, value);
}

/* -- functions --------------------------------------------------------------------------------- */

static enum weir_status build_pass(void *context, weir_graph *body, const struct weir_argument arguments[],
                                   weir_output results[], weir_error *error)
{
	(void)context;
	return weir_op_identity(body, NULL, arguments[0].output, &results[0], error);
}

/* The condition of the loop: true `nodes` times, then false. */
static enum weir_status again(void *context, const struct weir_kernel_call *call, weir_error *error)
{
	struct flow *flow = context;
	bool more = flow->turns++ != flow->nodes;

	(void)error;
	if (!more)
		flow->turns = 0;
	flow->marks[0] += more;
	call->outputs[0] = weir_tensor_retain(flow->answers[more]);
	return WEIR_OK;
}

static const struct weir_kernel again_kernel = {WEIR_KERNEL_INIT, .name = "again", .flags = WEIR_KERNEL_SHORT,
                                                .run = again};

static enum weir_status build_again(void *context, weir_graph *body, const struct weir_argument arguments[],
                                    weir_output results[], weir_error *error)
{
	struct weir_output_type type = {WEIR_BOOL, &weir_shape_scalar};

	(void)arguments;
	return weir_op_kernel(body, NULL, &again_kernel, context, NULL, 0, &type, 1, NULL, 0, results, NULL, error);
}

static weir_function *function_of(weir_function_fn *build, struct flow *flow)
{
	static const struct weir_parameter parameter = {.name = "x"};
	struct weir_function_options options = {WEIR_FUNCTION_OPTIONS_INIT, .build = build,       .context = flow,
	                                        .parameters = &parameter,   .parameter_count = 1, .result_count = 1};
	weir_function *made;

	must(weir_function_create(&options, &made, NULL));
	return made;
}

static weir_output zeros_of(struct flow *flow, uint32_t rank)
{
	static const float zeros[MOST_NODES];
	weir_shape shape = {rank, {flow->nodes}};
	weir_tensor *tensor;
	weir_output out;

	must(weir_tensor_copy_of(WEIR_F32, &shape, zeros, NULL, &tensor));
	out = constant(flow, tensor);
	weir_tensor_release(tensor);
	return out;
}

static void add_functions(struct flow *flow)
{
	struct weir_argument argument = {.output = zeros_of(flow, flow->kind == BENCH_ROWS ? 1 : 0)};

	flow->fetch_count = 1;
	flow->functions[0] = function_of(build_pass, flow);
	if (flow->kind == BENCH_ROWS) {
		must(weir_op_map(flow->graph, NULL, flow->functions[0], &argument, 1, NULL, &flow->fetch, NULL, NULL));
		return;
	}
	if (flow->kind == BENCH_LOOP) {
		flow->functions[1] = function_of(build_again, flow);
		must(weir_op_while(flow->graph, NULL, flow->functions[1], flow->functions[0], &argument, 1, NULL, &flow->fetch,
		                   NULL, NULL));
		return;
	}
	for (unsigned i = 0; i < flow->nodes; i++) {
		must(weir_op_call(flow->graph, NULL, flow->functions[0], &argument, 1, &flow->fetch, NULL, NULL));
		argument.output = flow->fetch;
	}
}

/* -- building, as a run ------------------------------------------------------------------------ */

static void build_nodes(struct flow *flow)
{
	struct weir_session_options options = {WEIR_SESSION_OPTIONS_INIT, .flags = WEIR_SESSION_NO_THREADS};
	weir_node *node = NULL, *last = NULL;
	weir_callable *callable;
	weir_session *session;
	weir_graph *graph;

	must(weir_graph_create(NULL, &graph, NULL));
	if (flow->kind == BENCH_GROUP)
		must(weir_op_no_op(graph, NULL, &last, NULL));
	for (unsigned i = 0; i < flow->nodes; i++) {
		must(weir_op_no_op(graph, NULL, &node, NULL));
		if (last != NULL)
			must(weir_graph_add_control(graph, flow->kind == BENCH_GROUP ? node : last,
			                            flow->kind == BENCH_GROUP ? last : node, NULL));
		if (flow->kind != BENCH_GROUP)
			last = node;
	}
	must(weir_session_create(graph, &options, &session, NULL));
	must(weir_session_compile(session, NULL, 0, NULL, 0, &last, 1, NULL, &callable, NULL));
	weir_callable_release(callable);
	flow->ran += weir_graph_node_count(graph) - (flow->kind == BENCH_GROUP);
	must(weir_session_destroy(session, NULL));
	must(weir_graph_destroy(graph, NULL));
}

/* -- the contender ----------------------------------------------------------------------------- */

static void add_nodes(struct flow *flow)
{
	switch (flow->kind) {
	case BENCH_CHAIN:
	case BENCH_ONE:
	case BENCH_KERNEL: add_plain_nodes(flow, 1); break;
	case BENCH_WIDE: add_plain_nodes(flow, 0); break;
	case BENCH_ADDS: add_additions(flow, flow->nodes, constant(flow, flow->one)); break;
	case BENCH_STEPS: add_additions(flow, SMALL_STEP, constant(flow, flow->one)); break;
	case BENCH_QUEUE: add_queue(flow); break;
	case BENCH_BUFFERS: add_buffers(flow); break;
	case BENCH_CALLS:
	case BENCH_LOOP:
	case BENCH_ROWS: add_functions(flow); break;
	case BENCH_BUILD:
	case BENCH_GROUP: break;
	}
}

static void make_queue(struct flow *flow)
{
	struct weir_tensor_component component = {.dtype = WEIR_F32};
	struct weir_tensor_queue_options options = {WEIR_TENSOR_QUEUE_OPTIONS_INIT, .capacity = 1, .components = &component,
	                                            .component_count = 1};

	must(weir_tensor_queue_create(&options, &flow->queue, NULL));
}

static void *create_for(enum way way, enum bench_dataflow kind, unsigned nodes, unsigned threads)
{
	struct weir_session_options options = {WEIR_SESSION_OPTIONS_INIT, .threads = threads};
	struct weir_trace_options traced = {WEIR_TRACE_OPTIONS_INIT, .bytes_per_thread = (size_t)1 << 30};
	struct flow *flow = aligned_alloc(64, sizeof(*flow));
	weir_allocator counted = {allocate, release, flow};

	if (flow == NULL)
		exit(3);
	(void)memset(flow, 0, sizeof(*flow));
	flow->kind = kind;
	flow->way = way;
	flow->nodes = nodes;
	must(weir_tensor_scalar_f32(1, &flow->one));
	must(weir_tensor_scalar_bool(false, &flow->answers[0]));
	must(weir_tensor_scalar_bool(true, &flow->answers[1]));
	make_queue(flow);
	must(weir_graph_create(NULL, &flow->graph, NULL));
	add_nodes(flow);
	if (kind == BENCH_BUFFERS)
		options.allocator = &counted;
	must(weir_session_create(flow->graph, &options, &flow->session, NULL));
	if (way == TRACED)
		must(weir_trace_create(&traced, &flow->trace, NULL));
	if (kind != BENCH_BUILD && kind != BENCH_GROUP)
		must(weir_session_compile(flow->session, NULL, 0, &flow->fetch, flow->fetch_count, flow->targets,
		                          flow->target_count, NULL, &flow->callable, NULL));
	return flow;
}

static void destroy(void *self)
{
	struct flow *flow = self;

	weir_callable_release(flow->callable);
	must(weir_session_destroy(flow->session, NULL));
	must(weir_graph_destroy(flow->graph, NULL));
	for (size_t i = 0; i < 2; i++)
		must(weir_function_destroy(flow->functions[i], NULL));
	must(weir_trace_destroy(flow->trace, NULL));
	must(weir_tensor_queue_destroy(flow->queue, NULL));
	weir_tensor_release(flow->one);
	weir_tensor_release(flow->answers[0]);
	weir_tensor_release(flow->answers[1]);
	free(flow);
}

/* Counts the nodes of a run by what it gave. */
static void count(struct flow *flow, const weir_tensor *result)
{
	const float *values = weir_tensor_data(result);
	uint64_t nodes = 1;

	if (flow->kind == BENCH_ADDS)
		nodes = (uint64_t)values[0] - 1;
	else if (flow->kind == BENCH_BUFFERS)
		nodes = (uint64_t)values[weir_tensor_element_count(result) - 1];
	else if (flow->kind == BENCH_LOOP)
		nodes = 0; /* the condition counts */
	else if (flow->kind == BENCH_QUEUE)
		nodes = values[0] == 1 ? flow->nodes : 0;
	else if (flow->kind == BENCH_STEPS)
		nodes = values[0] == SMALL_STEP + 1;
	else if (flow->kind == BENCH_CALLS)
		nodes = values[0] == 0 ? flow->nodes : 0;
	else if (flow->kind == BENCH_ROWS)
		nodes = (uint64_t)weir_tensor_element_count(result);
	atomic_fetch_add_explicit(&flow->ran, nodes, memory_order_relaxed);
}

static void run(void *self)
{
	struct flow *flow = self;
	struct weir_run_options options = {WEIR_RUN_OPTIONS_INIT, .trace = flow->trace};
	int in_time = flow->way == WITH_DEADLINE || flow->way == WITH_DEADLINE_AND_KERNELS;
	uint64_t deadline_ns = in_time ? WEIR_NO_DEADLINE - 1 : WEIR_NO_DEADLINE;
	weir_tensor *result;

	if (flow->kind == BENCH_BUILD || flow->kind == BENCH_GROUP) {
		build_nodes(flow);
		return;
	}
	if (flow->way == BY_SESSION)
		must(weir_session_run(flow->session, NULL, 0, &flow->fetch, flow->fetch_count, &result, flow->targets,
		                      flow->target_count, deadline_ns, NULL, NULL));
	else
		must(weir_callable_run(flow->callable, NULL, &result, deadline_ns, NULL, flow->trace != NULL ? &options : NULL,
		                       NULL));
	if (flow->fetch_count == 0)
		return;
	count(flow, result);
	weir_tensor_release(result);
}

static uint64_t ran(void *self)
{
	struct flow *flow = self;
	uint64_t sum = atomic_load_explicit(&flow->ran, memory_order_relaxed);

	for (unsigned i = 0; i < flow->nodes && i < MOST_NODES; i++)
		sum += flow->marks[i];
	return sum;
}

static void *create_plain(enum bench_dataflow kind, unsigned nodes, unsigned threads)
{
	return create_for(PLAIN, kind, nodes, threads);
}

static void *create_by_session(enum bench_dataflow kind, unsigned nodes, unsigned threads)
{
	return create_for(BY_SESSION, kind, nodes, threads);
}

static void *create_with_deadline(enum bench_dataflow kind, unsigned nodes, unsigned threads)
{
	return create_for(WITH_DEADLINE, kind, nodes, threads);
}

static void *create_with_kernels(enum bench_dataflow kind, unsigned nodes, unsigned threads)
{
	return create_for(WITH_KERNELS, kind, nodes, threads);
}

static void *create_with_both(enum bench_dataflow kind, unsigned nodes, unsigned threads)
{
	return create_for(WITH_DEADLINE_AND_KERNELS, kind, nodes, threads);
}

static void *create_measured(enum bench_dataflow kind, unsigned nodes, unsigned threads)
{
	return create_for(MEASURED_KERNELS, kind, nodes, threads);
}

static void *create_traced(enum bench_dataflow kind, unsigned nodes, unsigned threads)
{
	return create_for(TRACED, kind, nodes, threads);
}

#define FLOW(kind_, name_, create_, ran_) \
	{ \
		.about = {.name = (name_), .lock_free = 1}, .kind = (kind_), .create = (create_), .destroy = destroy, \
		.run = run, .ran = (ran_) \
	}

const struct dataflow_contender weir_chain_contender = FLOW(BENCH_CHAIN, "weir no-op", create_plain, NULL);
const struct dataflow_contender weir_chain_deadline_contender =
	FLOW(BENCH_CHAIN, "weir no-op, deadline", create_with_deadline, NULL);
const struct dataflow_contender weir_chain_traced_contender =
	FLOW(BENCH_CHAIN, "weir no-op, traced", create_traced, NULL);
const struct dataflow_contender weir_chain_kernel_contender =
	FLOW(BENCH_CHAIN, "weir kernel", create_with_kernels, ran);
const struct dataflow_contender weir_wide_contender = FLOW(BENCH_WIDE, "weir no-op", create_plain, NULL);
const struct dataflow_contender weir_wide_deadline_contender =
	FLOW(BENCH_WIDE, "weir no-op, deadline", create_with_deadline, NULL);
const struct dataflow_contender weir_wide_traced_contender =
	FLOW(BENCH_WIDE, "weir no-op, traced", create_traced, NULL);
const struct dataflow_contender weir_wide_kernel_contender = FLOW(BENCH_WIDE, "weir kernel", create_with_kernels, ran);
const struct dataflow_contender weir_one_contender = FLOW(BENCH_ONE, "weir callable", create_plain, NULL);
const struct dataflow_contender weir_one_session_contender = FLOW(BENCH_ONE, "weir session", create_by_session, NULL);
const struct dataflow_contender weir_kernel_contender =
	FLOW(BENCH_KERNEL, "weir kernel, short", create_with_kernels, ran);
const struct dataflow_contender weir_kernel_deadline_contender =
	FLOW(BENCH_KERNEL, "weir kernel, short, deadline", create_with_both, ran);
const struct dataflow_contender weir_kernel_measured_contender =
	FLOW(BENCH_KERNEL, "weir kernel, measured", create_measured, ran);
const struct dataflow_contender weir_adds_contender = FLOW(BENCH_ADDS, "weir", create_plain, ran);
const struct dataflow_contender weir_node_queue_contender = FLOW(BENCH_QUEUE, "weir nodes", create_plain, ran);
const struct dataflow_contender weir_build_contender = FLOW(BENCH_BUILD, "weir", create_plain, ran);
const struct dataflow_contender weir_group_contender = FLOW(BENCH_GROUP, "weir", create_plain, ran);
const struct dataflow_contender weir_calls_contender = FLOW(BENCH_CALLS, "weir", create_plain, ran);
const struct dataflow_contender weir_loop_flow_contender = FLOW(BENCH_LOOP, "weir", create_plain, ran);
const struct dataflow_contender weir_rows_contender = FLOW(BENCH_ROWS, "weir", create_plain, ran);
const struct dataflow_contender weir_steps_contender = FLOW(BENCH_STEPS, "weir callable", create_plain, ran);
const struct dataflow_contender weir_steps_session_contender =
	FLOW(BENCH_STEPS, "weir session", create_by_session, ran);

const struct dataflow_contender weir_buffers_contender = {
	.about = {.name = "weir", .lock_free = 1},
	.kind = BENCH_BUFFERS,
	.create = create_plain,
	.destroy = destroy,
	.run = run,
	.ran = ran,
	.most_bytes = most_bytes,
};

/* -- direct calls ------------------------------------------------------------------------------ */

static void call_queue(void *self)
{
	struct flow *flow = self;
	weir_tensor *out;

	for (unsigned i = 0; i < flow->nodes; i++) {
		must(weir_tensor_queue_enqueue(flow->queue, &flow->one, 1, WEIR_NO_DEADLINE, NULL, NULL));
		must(weir_tensor_queue_dequeue(flow->queue, &out, 1, WEIR_NO_DEADLINE, NULL, NULL));
		if (i + 1 < flow->nodes)
			weir_tensor_release(out);
	}
	count(flow, out);
	weir_tensor_release(out);
}

const struct dataflow_contender weir_direct_queue_contender = {
	.about = {.name = "weir direct calls", .lacks = "no graph", .lock_free = 1},
	.kind = BENCH_QUEUE,
	.create = create_plain,
	.destroy = destroy,
	.run = call_queue,
	.ran = ran,
};
