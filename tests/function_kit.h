/*
 * function_kit.h - for tests of functions: signatures, bodies, runs.
 */
#ifndef FUNCTION_KIT_H
#define FUNCTION_KIT_H

#include <weir/flow/function.h>
#include <weir/flow/op_math.h>

#include "graph_kit.h"

static const weir_shape scalar = {.rank = 0, .dims = {0}};

/* -- short ways -------------------------------------------------------------------------------- */

static inline void end_function(weir_function *function)
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

static inline struct weir_argument of_output(weir_output output)
{
	return (struct weir_argument){.output = output};
}

static inline float run_f32(weir_function *function, weir_session *session, const struct weir_argument *arguments)
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

static inline enum weir_status f32_constant(weir_graph *graph, float value, weir_output *out, weir_error *error)
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

static inline enum weir_status build_double(void *context, weir_graph *body, const struct weir_argument arguments[],
                                            weir_output results[], weir_error *error)
{
	if (context != NULL)
		++*(int *)context;
	return weir_op_add(body, "twice", arguments[0].output, arguments[0].output, &results[0], error);
}

/* x + 1, for a loop over (i, n): (i + 1, n). */
static inline enum weir_status build_step(void *context, weir_graph *body, const struct weir_argument arguments[],
                                          weir_output results[], weir_error *error)
{
	weir_output one;
	enum weir_status status = f32_constant(body, 1, &one, error);

	(void)context;
	results[1] = arguments[1].output;
	return status == WEIR_OK ? weir_op_add(body, "next", arguments[0].output, one, &results[0], error) : status;
}

static inline enum weir_status build_less(void *context, weir_graph *body, const struct weir_argument arguments[],
                                          weir_output results[], weir_error *error)
{
	(void)context;
	return weir_op_less(body, "less", arguments[0].output, arguments[1].output, &results[0], error);
}

/* Adds *context to the variable that is the last parameter; result 0 is the new value. */
static inline enum weir_status build_bump(void *context, weir_graph *body, const struct weir_argument arguments[],
                                          weir_output results[], weir_error *error)
{
	weir_var *var = arguments[0].var != NULL ? arguments[0].var : arguments[1].var;
	weir_output by;
	enum weir_status status = f32_constant(body, *(const float *)context, &by, error);

	return status == WEIR_OK ? weir_op_assign_add(body, "w", var, by, &results[0], error) : status;
}

static inline enum weir_status build_take(void *context, weir_graph *body, const struct weir_argument arguments[],
                                          weir_output results[], weir_error *error)
{
	(void)context;
	return weir_op_dequeue(body, "take", arguments[0].queue, &results[0], 1, NULL, error);
}

static const struct weir_parameter one_queue[] = {{"q", WEIR_PARAMETER_QUEUE, 0, NULL}};

/* A loop with this condition does not end. */
static inline enum weir_status build_always(void *context, weir_graph *body, const struct weir_argument arguments[],
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

#endif
