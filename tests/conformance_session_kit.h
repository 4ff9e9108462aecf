/*
 * conformance_session_kit.h - shared by the tests of the rows SES: a graph with a session and a
 * variable, and short ways to build and run it.
 */
#ifndef CONFORMANCE_SESSION_KIT_H
#define CONFORMANCE_SESSION_KIT_H

#include "graph_kit.h"

static const weir_shape scalar = {.rank = 0, .dims = {0}};

/* A graph, a session without workers on it, and a variable. */
struct bench {
	weir_graph *graph;
	weir_session *session;
	weir_var *var;
};

static inline struct bench open_bench(void)
{
	struct bench b;

	b.graph = kit_graph();
	b.session = kit_session(b.graph, 0);
	b.var = kit_var("v", kit_f32(10));
	return b;
}

static inline void close_bench(struct bench *b)
{
	kit_end(b->session, b->graph);
	cr_assert_eq(weir_var_destroy(b->var, NULL), WEIR_OK);
}

static inline weir_output named(weir_graph *graph, const char *name, float value)
{
	weir_tensor *tensor = kit_f32(value);
	weir_output out;

	cr_assert_eq(weir_op_constant(graph, name, tensor, &out, NULL), WEIR_OK);
	weir_tensor_release(tensor);
	return out;
}

static inline weir_output square_of(weir_graph *graph, const char *name, weir_output x)
{
	weir_output out;

	cr_assert_eq(weir_op_square(graph, name, x, &out, NULL), WEIR_OK);
	return out;
}

static inline weir_output assign_to(struct bench *b, const char *name, weir_output value)
{
	weir_output out;

	cr_assert_eq(weir_op_assign(b->graph, name, b->var, value, &out, NULL), WEIR_OK);
	return out;
}

static inline weir_output read_of(struct bench *b, const char *name)
{
	weir_output out;

	cr_assert_eq(weir_op_read(b->graph, name, b->var, &out, NULL), WEIR_OK);
	return out;
}

/* Runs with one feed and one fetch. Takes the value over. */
static inline enum weir_status run_fed(weir_session *session, weir_output at, weir_tensor *value, weir_output fetch,
                                       weir_tensor **result, weir_error *error)
{
	struct weir_feed feed = {at, value};
	enum weir_status status =
		weir_session_run(session, &feed, 1, &fetch, 1, result, NULL, 0, WEIR_NO_DEADLINE, NULL, error);

	weir_tensor_release(value);
	return status;
}

/* The first element of a fetch by name. */
static inline float named_f32(weir_session *session, const char *name)
{
	weir_tensor *result = NULL;
	weir_error error;
	float got;

	cr_assert_eq(weir_session_run_named(session, NULL, 0, &name, 1, &result, NULL, 0, WEIR_NO_DEADLINE, NULL, &error),
	             WEIR_OK, "%s", error.message);
	got = kit_f32_at(result, 0);
	weir_tensor_release(result);
	return got;
}

static inline weir_callable *compiled(weir_session *session, const weir_output *feed, const weir_output *fetch,
                                      weir_node *target)
{
	weir_callable *callable = NULL;
	weir_error error;

	cr_assert_eq(weir_session_compile(session, feed, feed != NULL, fetch, fetch != NULL, &target, target != NULL, NULL,
	                                  &callable, &error),
	             WEIR_OK, "%s", error.message);
	return callable;
}

#endif
