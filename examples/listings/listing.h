/*
 * listing.h - shared by the listings: they end at the first error, and build and run graphs in one
 * line each.
 *
 * A program of your own would return errors to its caller instead of exiting.
 */
#ifndef LISTING_H
#define LISTING_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weir/flow.h>

/* Filled by the call that failed. One thread builds the graph, so one error is enough. */
static weir_error listing_error;

static inline void must(enum weir_status status)
{
	if (status == WEIR_OK)
		return;
	(void)fprintf(stderr, "%s: %s\n", weir_status_name(status), listing_error.message);
	exit(1);
}

/* Ends the listing with exit code 1 when its outcome is wrong. */
static inline void expect(int right, const char *what)
{
	if (right)
		return;
	(void)fprintf(stderr, "wrong: %s\n", what);
	exit(1);
}

/* Creates a variable. It takes over the tensor, which is the initial value. */
static inline weir_var *variable(const char *name, weir_tensor *initial)
{
	struct weir_var_options options = {WEIR_VAR_OPTIONS_INIT, .name = name, .dtype = weir_tensor_dtype(initial),
	                                   .shape = weir_tensor_shape(initial)};
	weir_var *var;

	must(weir_var_create(initial, &options, &var, &listing_error));
	weir_tensor_release(initial);
	return var;
}

/* Creates a constant, which takes over the tensor. */
static inline weir_output constant(weir_graph *graph, weir_tensor *value)
{
	weir_output out;

	must(weir_op_constant(graph, NULL, value, &out, &listing_error));
	weir_tensor_release(value);
	return out;
}

static inline weir_tensor *f32(float value)
{
	weir_tensor *tensor;

	must(weir_tensor_scalar_f32(value, &tensor));
	return tensor;
}

/* [count]: first, first + step, ... */
static inline weir_tensor *f32_row(size_t count, float first, float step)
{
	weir_shape shape = {.rank = 1, .dims = {(int64_t)count}};
	weir_tensor_builder *builder;
	weir_tensor *tensor;
	float *values;

	must(weir_tensor_builder_create(WEIR_F32, &shape, NULL, &builder, NULL));
	values = weir_tensor_builder_data(builder);
	for (size_t i = 0; i < count; i++)
		values[i] = first + step * (float)i;
	must(weir_tensor_builder_finish(builder, &tensor));
	return tensor;
}

static inline weir_tensor *i32(int32_t value)
{
	weir_tensor *tensor;

	must(weir_tensor_scalar_i32(value, &tensor));
	return tensor;
}

static inline weir_tensor *i64(int64_t value)
{
	weir_tensor *tensor;

	must(weir_tensor_scalar_i64(value, &tensor));
	return tensor;
}

/* Runs what `fetch` needs, and copies its one element of `size` bytes to *value. */
static inline void run_for(weir_session *session, weir_output fetch, void *value, size_t size)
{
	weir_tensor *result;

	must(weir_session_run(session, NULL, 0, &fetch, 1, &result, NULL, 0, WEIR_NO_DEADLINE, NULL, &listing_error));
	expect(weir_tensor_byte_count(result) == size, "the result must have the expected size");
	(void)memcpy(value, weir_tensor_data(result), size);
	weir_tensor_release(result);
}

static inline float run_for_f32(weir_session *session, weir_output fetch)
{
	float value;

	run_for(session, fetch, &value, sizeof(value));
	return value;
}

static inline void run(weir_session *session, weir_node *target)
{
	must(weir_session_run(session, NULL, 0, NULL, 0, NULL, &target, 1, WEIR_NO_DEADLINE, NULL, &listing_error));
}

/* Copies the newest value of a variable of one element. */
static inline void value_of(weir_var *var, void *value, size_t size)
{
	weir_read read;

	must(weir_var_read(var, &read));
	expect(weir_tensor_byte_count(read.tensor) == size, "the variable must have the expected size");
	(void)memcpy(value, weir_tensor_data(read.tensor), size);
	weir_read_release(&read);
}

static inline float value_of_f32(weir_var *var)
{
	float value;

	value_of(var, &value, sizeof(value));
	return value;
}

/* Creates a queue of one component. */
static inline weir_tensor_queue *queue_of(enum weir_dtype dtype, const weir_shape *shape, size_t capacity,
                                          enum weir_queue_order order, size_t min_after_dequeue)
{
	struct weir_tensor_component component = {dtype, shape, NULL};
	struct weir_tensor_queue_options options = {
		WEIR_TENSOR_QUEUE_OPTIONS_INIT,         .capacity = capacity,     .order = order,
		.min_after_dequeue = min_after_dequeue, .components = &component, .component_count = 1};
	weir_tensor_queue *queue;

	must(weir_tensor_queue_create(&options, &queue, &listing_error));
	return queue;
}

/* Creates a function. */
static inline weir_function *function_of(const char *name, weir_function_fn *build, void *context,
                                         const struct weir_parameter *parameters, size_t count, size_t results)
{
	struct weir_function_options options = {WEIR_FUNCTION_OPTIONS_INIT,
	                                        .name = name,
	                                        .build = build,
	                                        .context = context,
	                                        .parameters = parameters,
	                                        .parameter_count = count,
	                                        .result_count = results};
	weir_function *function;

	must(weir_function_create(&options, &function, &listing_error));
	return function;
}

/* Calls a function, and copies its one result, of one element of `size` bytes, to *value. */
static inline void call(weir_function *function, weir_session *session, const struct weir_argument arguments[],
                        void *value, size_t size)
{
	weir_tensor *result;

	must(weir_function_run(function, session, arguments, &result, WEIR_NO_DEADLINE, NULL, NULL, &listing_error));
	expect(weir_tensor_byte_count(result) == size, "the result must have the expected size");
	(void)memcpy(value, weir_tensor_data(result), size);
	weir_tensor_release(result);
}

/* Functions need no graph, but a session does: an empty one. */
static inline void begin_session(weir_session **session, weir_graph **graph)
{
	must(weir_graph_create(NULL, graph, &listing_error));
	must(weir_session_create(*graph, NULL, session, &listing_error));
}

static inline void end_session(weir_session *session, weir_graph *graph)
{
	must(weir_session_destroy(session, &listing_error));
	must(weir_graph_destroy(graph, &listing_error));
}

#endif
