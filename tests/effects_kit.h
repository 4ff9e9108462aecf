/*
 * effects_kit.h - shared by the tests of order in function bodies: functions that end together, nodes
 * of bodies, and a function that runs in a graph with a variable.
 */
#ifndef EFFECTS_KIT_H
#define EFFECTS_KIT_H

#include <weir/flow/function.h>

#include "graph/node.h"
#include "graph_kit.h"

static const weir_shape scalar = {.rank = 0, .dims = {0}};
static const struct weir_parameter var_parameter[] = {{"w", WEIR_PARAMETER_VAR, WEIR_F32, &scalar}};
static const struct weir_parameter loop_parameters[] = {{"i", WEIR_PARAMETER_TENSOR, WEIR_F32, &scalar},
                                                        {"n", WEIR_PARAMETER_TENSOR, WEIR_F32, &scalar},
                                                        {"w", WEIR_PARAMETER_VAR, WEIR_F32, &scalar}};
static const struct weir_parameter choice_parameters[] = {{"yes", WEIR_PARAMETER_TENSOR, WEIR_BOOL, &scalar},
                                                          {"w", WEIR_PARAMETER_VAR, WEIR_F32, &scalar}};

static weir_function *functions[64]; /* in the order in which they were made; they call earlier ones */
static size_t function_count;

static inline weir_function *define(const char *name, weir_function_fn *build, void *context,
                                    const struct weir_parameter *parameters, size_t count, size_t results)
{
	cr_assert_lt(function_count, 64);
	functions[function_count] = kit_function(name, build, context, parameters, count, results);
	return functions[function_count++];
}

static inline void end_functions(void)
{
	/* Users before what they use. */
	for (size_t left = function_count; left > 0;) {
		size_t before = left;

		for (size_t i = 0; i < function_count; i++) {
			if (functions[i] != NULL && weir_function_destroy(functions[i], NULL) == WEIR_OK) {
				functions[i] = NULL;
				left--;
			}
		}
		cr_assert_lt(left, before, "functions use each other");
	}
	function_count = 0;
}

static inline weir_output constant(weir_graph *body, float value)
{
	return kit_constant(body, kit_f32(value));
}

static inline weir_output add(weir_graph *body, weir_output a, weir_output b)
{
	weir_output sum;

	cr_assert_eq(weir_op_add(body, NULL, a, b, &sum, NULL), WEIR_OK);
	return sum;
}

static inline weir_output read_of(weir_graph *body, weir_var *var)
{
	weir_output out;

	cr_assert_eq(weir_op_read(body, NULL, var, &out, NULL), WEIR_OK);
	return out;
}

static inline weir_output add_to(weir_graph *body, weir_var *var, float by)
{
	weir_output out;

	cr_assert_eq(weir_op_assign_add(body, NULL, var, constant(body, by), &out, NULL), WEIR_OK);
	return out;
}

static inline weir_output assign(weir_graph *body, weir_var *var, weir_output value)
{
	weir_output out;

	cr_assert_eq(weir_op_assign(body, NULL, var, value, &out, NULL), WEIR_OK);
	return out;
}

static inline enum weir_status build_idle(void *context, weir_graph *body, const struct weir_argument arguments[],
                                          weir_output results[], weir_error *error)
{
	(void)context;
	(void)arguments;
	(void)error;
	results[0] = constant(body, 0);
	return WEIR_OK;
}

static inline enum weir_status build_less(void *context, weir_graph *body, const struct weir_argument arguments[],
                                          weir_output results[], weir_error *error)
{
	(void)context;
	return weir_op_less(body, "less", arguments[0].output, arguments[1].output, &results[0], error);
}

struct scene {
	weir_output nodes[16];
	weir_var *var;
	weir_session *session;
	weir_graph *graph;
};

static inline void open_scene(struct scene *s, float value)
{
	*s = (struct scene){.var = kit_var("w", kit_f32(value)), .graph = kit_graph()};
	s->session = kit_session(s->graph, 0);
}

static inline void close_scene(struct scene *s)
{
	kit_end(s->session, s->graph);
	end_functions();
	weir_var_destroy(s->var, NULL);
}

/* Runs a function of w, whose result is one f32. */
static inline float run_scene(struct scene *s, weir_function *function)
{
	struct weir_argument argument = {.var = s->var};
	weir_tensor *result;
	weir_error error;
	float value;

	cr_assert_eq(weir_function_run(function, s->session, &argument, &result, WEIR_NO_DEADLINE, NULL, NULL, &error),
	             WEIR_OK, "%s", error.message);
	value = kit_f32_at(result, 0);
	weir_tensor_release(result);
	return value;
}

#endif
