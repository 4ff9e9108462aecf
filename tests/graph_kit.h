/*
 * graph_kit.h - shared by the tests of the dataflow layer: short ways to make tensors, variables
 * and queues, and to run a graph.
 *
 * Everything here asserts, so only the thread of the test may call it.
 */
#ifndef GRAPH_KIT_H
#define GRAPH_KIT_H

#include <criterion/criterion.h>

#include <sched.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <weir/flow/function.h>
#include <weir/flow/graph.h>
#include <weir/flow/kernel.h>
#include <weir/flow/op.h>
#include <weir/flow/callable.h>
#include <weir/flow/session.h>
#include <weir/time.h>

/* A wait that takes longer has failed. */
#define KIT_PATIENCE_NS UINT64_C(100000000000)

/* A kind of kernel that calls `fn`. */
#define KIT_KERNEL(fn) (&(const struct weir_kernel){WEIR_KERNEL_INIT, .name = "kernel", .run = (fn)})

/* kit_shape(2, 3, 4) is [3,4]. */
static inline weir_shape kit_shape(uint32_t rank, ...)
{
	weir_shape shape;
	va_list dims;

	(void)memset(&shape, 0, sizeof(shape));
	shape.rank = rank;
	va_start(dims, rank);
	for (uint32_t i = 0; i < rank; i++)
		shape.dims[i] = va_arg(dims, int);
	va_end(dims);
	return shape;
}

static inline weir_tensor *kit_tensor(enum weir_dtype dtype, weir_shape shape, const void *values)
{
	weir_tensor *tensor = NULL;

	cr_assert_eq(weir_tensor_copy_of(dtype, &shape, values, NULL, &tensor), WEIR_OK);
	return tensor;
}

static inline weir_tensor *kit_f32(float value)
{
	return kit_tensor(WEIR_F32, kit_shape(0), &value);
}

static inline weir_tensor *kit_i64(int64_t value)
{
	return kit_tensor(WEIR_I64, kit_shape(0), &value);
}

static inline float kit_f32_at(const weir_tensor *tensor, size_t i)
{
	cr_assert_eq(weir_tensor_dtype(tensor), WEIR_F32);
	return ((const float *)weir_tensor_data(tensor))[i];
}

static inline int64_t kit_i64_at(const weir_tensor *tensor, size_t i)
{
	cr_assert_eq(weir_tensor_dtype(tensor), WEIR_I64);
	return ((const int64_t *)weir_tensor_data(tensor))[i];
}

static inline weir_graph *kit_graph(void)
{
	weir_graph *graph = NULL;

	cr_assert_eq(weir_graph_create(NULL, &graph, NULL), WEIR_OK);
	return graph;
}

/* The limits of a run. */
struct kit_bounds {
	uint64_t deadline_ns;
	weir_cancel *cancel;
};

/* With `threads` 0 there are no workers, and every step runs on the thread of its caller. */
static inline weir_session *kit_session(weir_graph *graph, size_t threads)
{
	struct weir_session_options options = {WEIR_SESSION_OPTIONS_INIT};
	weir_session *session = NULL;
	weir_error error;

	options.threads = threads;
	options.flags = threads == 0 ? WEIR_SESSION_NO_THREADS : 0;
	cr_assert_eq(weir_session_create(graph, &options, &session, &error), WEIR_OK, "%s", error.message);
	return session;
}

static inline void kit_end(weir_session *session, weir_graph *graph)
{
	weir_error error;

	cr_assert_eq(weir_session_destroy(session, &error), WEIR_OK, "%s", error.message);
	cr_assert_eq(weir_graph_destroy(graph, &error), WEIR_OK, "%s", error.message);
}

/* Adds a constant, and takes over the caller's reference to the tensor. */
static inline weir_output kit_constant(weir_graph *graph, weir_tensor *value)
{
	weir_output out;
	weir_error error;

	cr_assert_eq(weir_op_constant(graph, NULL, value, &out, &error), WEIR_OK, "%s", error.message);
	weir_tensor_release(value);
	return out;
}

static inline weir_output kit_placeholder(weir_graph *graph, const char *name, enum weir_dtype dtype, weir_shape shape)
{
	weir_output out;
	weir_error error;

	cr_assert_eq(weir_op_placeholder(graph, name, dtype, &shape, &out, &error), WEIR_OK, "%s", error.message);
	return out;
}

static inline weir_function *kit_function(const char *name, weir_function_fn *build, void *context,
                                          const struct weir_parameter *parameters, size_t count, size_t results)
{
	struct weir_function_options options = {WEIR_FUNCTION_OPTIONS_INIT,
	                                        .name = name,
	                                        .build = build,
	                                        .context = context,
	                                        .parameters = parameters,
	                                        .parameter_count = count,
	                                        .result_count = results};
	weir_function *function = NULL;
	weir_error error;

	cr_assert_eq(weir_function_create(&options, &function, &error), WEIR_OK, "%s", error.message);
	return function;
}

static inline weir_var *kit_var(const char *name, weir_tensor *initial)
{
	struct weir_var_options options = {WEIR_VAR_OPTIONS_INIT};
	weir_var *var = NULL;
	weir_error error;

	options.name = name;
	options.dtype = weir_tensor_dtype(initial);
	options.shape = weir_tensor_shape(initial);
	cr_assert_eq(weir_var_create(initial, &options, &var, &error), WEIR_OK, "%s", error.message);
	weir_tensor_release(initial);
	return var;
}

static inline float kit_var_f32(weir_var *var, size_t i)
{
	weir_read read;
	float value;

	cr_assert_eq(weir_var_read(var, &read), WEIR_OK);
	value = kit_f32_at(read.tensor, i);
	weir_read_release(&read);
	return value;
}

/* A FIFO queue with one component. A shape of NULL means any shape. */
static inline weir_tensor_queue *kit_queue(const char *name, size_t capacity, enum weir_dtype dtype,
                                           const weir_shape *shape)
{
	struct weir_tensor_component component;
	struct weir_tensor_queue_options options = {WEIR_TENSOR_QUEUE_OPTIONS_INIT};
	weir_tensor_queue *queue = NULL;
	weir_error error;

	(void)memset(&component, 0, sizeof(component));
	component.dtype = dtype;
	component.shape = shape;
	options.capacity = capacity;
	options.name = name;
	options.components = &component;
	options.component_count = 1;
	cr_assert_eq(weir_tensor_queue_create(&options, &queue, &error), WEIR_OK, "%s", error.message);
	return queue;
}

static inline void kit_queue_end(weir_tensor_queue *queue)
{
	weir_error error;

	cr_assert_eq(weir_tensor_queue_destroy(queue, &error), WEIR_OK, "%s", error.message);
}

/* Fetches one output without feeds. The caller owns the result. */
static inline weir_tensor *kit_fetch(weir_session *session, weir_output fetch)
{
	weir_tensor *result = NULL;
	weir_error error;

	cr_assert_eq(weir_session_run(session, NULL, 0, &fetch, 1, &result, NULL, 0, WEIR_NO_DEADLINE, NULL, &error),
	             WEIR_OK, "%s", error.message);
	return result;
}

static inline float kit_fetch_f32(weir_session *session, weir_output fetch)
{
	weir_tensor *result = kit_fetch(session, fetch);
	float value = kit_f32_at(result, 0);

	weir_tensor_release(result);
	return value;
}

static inline int64_t kit_fetch_i64(weir_session *session, weir_output fetch)
{
	weir_tensor *result = kit_fetch(session, fetch);
	int64_t value = kit_i64_at(result, 0);

	weir_tensor_release(result);
	return value;
}

static inline enum weir_status kit_run_target(weir_session *session, weir_node *target, weir_error *error)
{
	return weir_session_run(session, NULL, 0, NULL, 0, NULL, &target, 1, WEIR_NO_DEADLINE, NULL, error);
}

/* Waits for a state that another thread brings about. Fails the test if the state does not come. */
typedef int kit_state_fn(void *context);
static inline void kit_wait_for(kit_state_fn *reached, void *context, const char *what)
{
	uint64_t deadline_ns = weir_deadline_in(KIT_PATIENCE_NS);

	while (!reached(context)) {
		cr_assert(weir_now_ns() < deadline_ns, "waited too long for %s", what);
		(void)sched_yield();
	}
}

/* A graph over one queue of scalars: x goes in, and `taken` comes out. */
struct kit_line {
	weir_graph *graph;
	weir_session *session;
	weir_tensor_queue *queue; /* owned by the caller */
	weir_output x, taken, size;
	weir_node *put;
};

static inline void kit_open_line(struct kit_line *line, weir_tensor_queue *queue, enum weir_dtype dtype, size_t threads)
{
	line->graph = kit_graph();
	line->queue = queue;
	line->x = kit_placeholder(line->graph, "x", dtype, kit_shape(0));
	cr_assert_eq(weir_op_enqueue(line->graph, "put", queue, &line->x, 1, &line->put, NULL), WEIR_OK);
	cr_assert_eq(weir_op_dequeue(line->graph, "take", queue, &line->taken, 1, NULL, NULL), WEIR_OK);
	cr_assert_eq(weir_op_queue_size(line->graph, "size", queue, &line->size, NULL), WEIR_OK);
	line->session = kit_session(line->graph, threads);
}

/* -- runs that are fed and fetched in several calls --------------------------------------------- */

static inline weir_run *kit_open_run(weir_callable *callable)
{
	weir_run *run = NULL;
	weir_error error;

	cr_assert_eq(weir_run_open(callable, NULL, NULL, &run, &error), WEIR_OK, "%s", error.message);
	return run;
}

static inline enum weir_status kit_run_feed_f32(weir_run *run, size_t feed, float value, weir_error *error)
{
	weir_tensor *tensor = kit_f32(value);
	enum weir_status status = weir_run_feed(run, feed, tensor, error);

	weir_tensor_release(tensor);
	return status;
}

static inline float kit_run_fetch_f32(weir_run *run, size_t fetch)
{
	weir_tensor *result = NULL;
	weir_error error;
	float value;

	cr_assert_eq(weir_run_fetch(run, fetch, weir_deadline_in(KIT_PATIENCE_NS), &result, &error), WEIR_OK, "%s",
	             error.message);
	value = kit_f32_at(result, 0);
	weir_tensor_release(result);
	return value;
}

#endif
