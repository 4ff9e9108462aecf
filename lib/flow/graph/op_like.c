/*
 * op_like.c - ops that the gradients of other ops are made of, and that programs do not build: each takes
 * its shape from one of its inputs.
 */
#include <string.h>

#include "base/error.h"
#include "graph/extent.h"

enum { GIVEN, LIKE };

/* -- repeat_like: along an axis that the given tensor lacks -------------------------------------- */

struct repetition {
	bool mean;
	int axis; /* or WEIRI_EVERY_AXIS */
};

static enum weir_status infer_repeat(const void *attribute, const struct weiri_spec inputs[],
                                     struct weiri_spec outputs[], weir_error *error)
{
	const struct repetition *repetition = attribute;
	struct weiri_spec expected = inputs[LIKE];
	char text_expected[WEIRI_SPEC_TEXT_SIZE];
	char text_got[WEIRI_SPEC_TEXT_SIZE];

	outputs[0] = inputs[LIKE];
	if (repetition->axis == WEIRI_EVERY_AXIS)
		expected = weiri_spec_scalar(inputs[LIKE].dtype);
	else if (expected.ranked)
		weiri_remove_axis(&expected.shape, (uint32_t)repetition->axis);
	if (weiri_spec_compatible(&expected, &inputs[GIVEN]))
		return WEIR_OK;
	return weiri_fail(error, WEIR_INVALID_ARGUMENT, "expected %s, got %s", weiri_spec_text(&expected, text_expected),
	                  weiri_spec_text(&inputs[GIVEN], text_got));
}

static void f32_repeat(const float *from, const struct weiri_extent *e, float factor, float *to)
{
	for (size_t o = 0; o < e->outer; o++) {
		for (size_t a = 0; a < e->axis; a++) {
			for (size_t i = 0; i < e->inner; i++)
				*to++ = factor * from[o * e->inner + i];
		}
	}
}

static void f64_repeat(const double *from, const struct weiri_extent *e, double factor, double *to)
{
	for (size_t o = 0; o < e->outer; o++) {
		for (size_t a = 0; a < e->axis; a++) {
			for (size_t i = 0; i < e->inner; i++)
				*to++ = factor * from[o * e->inner + i];
		}
	}
}

static enum weir_status compute_repeat(const struct weiri_call *call, void *const data[])
{
	const struct repetition *repetition = call->node->attribute;
	const void *from = weir_tensor_data(call->inputs[GIVEN]);
	struct weiri_extent e = weiri_extent_of(weir_tensor_shape(call->inputs[LIKE]), repetition->axis);
	double factor = repetition->mean && e.axis != 0 ? 1.0 / (double)e.axis : 1.0;

	if (weir_tensor_dtype(call->inputs[GIVEN]) == WEIR_F32)
		f32_repeat(from, &e, (float)factor, data[0]);
	else
		f64_repeat(from, &e, factor, data[0]);
	return WEIR_OK;
}

static enum weir_status repeat_gradient(const weir_node *node, const struct weir_gradient_request *r,
                                        weir_output into[], weir_error *error)
{
	const struct repetition *p = node->attribute;
	weir_output g = r->of_outputs[0], *out = &into[GIVEN];

	if (!r->needed[GIVEN])
		return WEIR_OK;
	if (p->axis == WEIRI_EVERY_AXIS)
		return p->mean ? weir_op_reduce_mean(r->graph, NULL, g, out, error)
		               : weir_op_reduce_sum(r->graph, NULL, g, out, error);
	return p->mean ? weir_op_reduce_mean_axis(r->graph, NULL, g, (uint32_t)p->axis, out, error)
	               : weir_op_reduce_sum_axis(r->graph, NULL, g, (uint32_t)p->axis, out, error);
}

static const struct weiri_op repeat_op = {.name = "repeat_like",
                                          .infer = infer_repeat,
                                          .compute = compute_repeat,
                                          .run = weiri_math_run,
                                          .gradient = repeat_gradient};

enum weir_status weiri_gradient_repeat_like(weir_graph *graph, weir_output g, weir_output like, int axis, bool mean,
                                            weir_output *out, weir_error *error)
{
	weir_output inputs[2] = {[GIVEN] = g, [LIKE] = like};
	struct repetition repetition = {mean, axis};

	return weiri_math_build(graph, &repeat_op, NULL, inputs, 2, &repetition, sizeof(repetition), 1, out, error);
}

/* -- reshape_like: a view ------------------------------------------------------------------------ */

static enum weir_status infer_like(const void *attribute, const struct weiri_spec inputs[], struct weiri_spec outputs[],
                                   weir_error *error)
{
	(void)attribute;
	(void)error;
	outputs[0] = inputs[LIKE];
	return WEIR_OK;
}

static enum weir_status run_reshape(const struct weiri_call *call)
{
	const weir_shape *shape = weir_tensor_shape(call->inputs[LIKE]);
	enum weir_status status;

	if (weir_shape_equal(weir_tensor_shape(call->inputs[GIVEN]), shape)) {
		call->outputs[0] = weiri_call_pass(call, GIVEN);
		return WEIR_OK;
	}
	status = weir_tensor_reshape(call->inputs[GIVEN], shape, &call->outputs[0]);
	return status == WEIR_OK ? WEIR_OK : weiri_fail(call->error, status, "the view cannot be made");
}

static enum weir_status reshape_gradient(const weir_node *node, const struct weir_gradient_request *r,
                                         weir_output into[], weir_error *error)
{
	(void)node;
	return r->needed[GIVEN]
	           ? weiri_gradient_reshape_like(r->graph, r->of_outputs[0], r->inputs[GIVEN], &into[GIVEN], error)
	           : WEIR_OK;
}

static const struct weiri_op reshape_op = {
	.name = "reshape_like", .infer = infer_like, .run = run_reshape, .gradient = reshape_gradient};

enum weir_status weiri_gradient_reshape_like(weir_graph *graph, weir_output g, weir_output like, weir_output *out,
                                             weir_error *error)
{
	weir_output inputs[2] = {[GIVEN] = g, [LIKE] = like};

	return weiri_math_build(graph, &reshape_op, NULL, inputs, 2, NULL, 0, 1, out, error);
}

/* -- fill_like ------------------------------------------------------------------------------------- */

static enum weir_status infer_fill(const void *attribute, const struct weiri_spec inputs[], struct weiri_spec outputs[],
                                   weir_error *error)
{
	(void)attribute;
	outputs[0] = inputs[0];
	return weiri_numeric_check(inputs[0].dtype, error);
}

static enum weir_status compute_fill(const struct weiri_call *call, void *const data[])
{
	const double value = *(const double *)call->node->attribute;
	size_t n = (size_t)weir_tensor_element_count(call->inputs[0]);

	switch (weir_tensor_dtype(call->inputs[0])) {
	case WEIR_F32:
		for (size_t i = 0; i < n; i++)
			((float *)data[0])[i] = (float)value;
		break;
	case WEIR_F64:
		for (size_t i = 0; i < n; i++)
			((double *)data[0])[i] = value;
		break;
	case WEIR_I32:
		for (size_t i = 0; i < n; i++)
			((int32_t *)data[0])[i] = (int32_t)value;
		break;
	default:
		for (size_t i = 0; i < n; i++)
			((int64_t *)data[0])[i] = (int64_t)value;
		break;
	}
	return WEIR_OK;
}

static const struct weiri_op fill_op = {.name = "fill_like",
                                        .traits = WEIRI_OP_IN_PLACE,
                                        .infer = infer_fill,
                                        .compute = compute_fill,
                                        .run = weiri_math_run,
                                        .gradient = weiri_gradient_zero};

enum weir_status weiri_gradient_fill_like(weir_graph *graph, weir_output like, double value, weir_output *out,
                                          weir_error *error)
{
	return weiri_math_build(graph, &fill_op, NULL, &like, 1, &value, sizeof(value), 1, out, error);
}

/* -- scale_rows ------------------------------------------------------------------------------------ */

enum { ROWS, FACTORS };

static enum weir_status infer_scale(const void *attribute, const struct weiri_spec inputs[],
                                    struct weiri_spec outputs[], weir_error *error)
{
	const struct weiri_spec *rows = &inputs[ROWS], *factors = &inputs[FACTORS];
	char text_rows[WEIRI_SPEC_TEXT_SIZE];
	char text_factors[WEIRI_SPEC_TEXT_SIZE];

	(void)attribute;
	outputs[0] = *rows;
	if (rows->dtype == factors->dtype && (!rows->ranked || !factors->ranked ||
	                                      (rows->shape.rank >= 1 && factors->shape.rank == 1 &&
	                                       weiri_dim_compatible(rows->shape.dims[0], factors->shape.dims[0]))))
		return WEIR_OK;
	return weiri_fail(error, WEIR_INVALID_ARGUMENT, "expected [n,...] and [n], got %s and %s",
	                  weiri_spec_text(rows, text_rows), weiri_spec_text(factors, text_factors));
}

static enum weir_status compute_scale(const struct weiri_call *call, void *const data[])
{
	const void *from = weir_tensor_data(call->inputs[ROWS]), *factors = weir_tensor_data(call->inputs[FACTORS]);
	struct weiri_extent e = weiri_extent_of(weir_tensor_shape(call->inputs[ROWS]), 0);
	bool single = weir_tensor_dtype(call->inputs[ROWS]) == WEIR_F32;

	for (size_t row = 0; row < e.axis; row++) {
		for (size_t i = row * e.inner; single && i < (row + 1) * e.inner; i++)
			((float *)data[0])[i] = ((const float *)from)[i] * ((const float *)factors)[row];
		for (size_t i = row * e.inner; !single && i < (row + 1) * e.inner; i++)
			((double *)data[0])[i] = ((const double *)from)[i] * ((const double *)factors)[row];
	}
	return WEIR_OK;
}

static enum weir_status scale_gradient(const weir_node *node, const struct weir_gradient_request *r, weir_output into[],
                                       weir_error *error)
{
	weir_graph *graph = r->graph;
	weir_output g = r->of_outputs[0], product, rows;
	enum weir_status status = WEIR_OK;

	(void)node;
	if (r->needed[ROWS])
		status = weiri_gradient_scale_rows(graph, g, r->inputs[FACTORS], &into[ROWS], error);
	if (status != WEIR_OK || !r->needed[FACTORS])
		return status;
	/* The sums of the rows, which are [n, everything else]. */
	return weir_op_mul(graph, NULL, g, r->inputs[ROWS], &product, error) ||
	               weiri_gradient_flatten_rows(graph, product, &rows, error) ||
	               weir_op_reduce_sum_axis(graph, NULL, rows, 1, &into[FACTORS], error)
	           ? error->code
	           : WEIR_OK;
}

static const struct weiri_op scale_op = {.name = "scale_rows",
                                         .infer = infer_scale,
                                         .compute = compute_scale,
                                         .run = weiri_math_run,
                                         .gradient = scale_gradient};

enum weir_status weiri_gradient_scale_rows(weir_graph *graph, weir_output g, weir_output factors, weir_output *out,
                                           weir_error *error)
{
	weir_output inputs[2] = {[ROWS] = g, [FACTORS] = factors};

	return weiri_math_build(graph, &scale_op, NULL, inputs, 2, NULL, 0, 1, out, error);
}

/* -- flatten_rows: [n, ...] as [n, m], a view ------------------------------------------------------ */

static enum weir_status infer_flatten(const void *attribute, const struct weiri_spec inputs[],
                                      struct weiri_spec outputs[], weir_error *error)
{
	(void)attribute;
	(void)error;
	outputs[0] = weiri_spec_vector(inputs[0].dtype, inputs[0].ranked ? inputs[0].shape.dims[0] : -1);
	outputs[0].shape.rank = 2;
	outputs[0].shape.dims[1] = -1;
	return WEIR_OK;
}

static enum weir_status run_flatten(const struct weiri_call *call)
{
	struct weiri_extent e = weiri_extent_of(weir_tensor_shape(call->inputs[0]), 0);
	weir_shape shape = {2, {(int64_t)e.axis, (int64_t)e.inner}};
	enum weir_status status = weir_tensor_reshape(call->inputs[0], &shape, &call->outputs[0]);

	return status == WEIR_OK ? WEIR_OK : weiri_fail(call->error, status, "the view cannot be made");
}

static const struct weiri_op flatten_op = {
	.name = "flatten_rows", .infer = infer_flatten, .run = run_flatten, .gradient = reshape_gradient};

enum weir_status weiri_gradient_flatten_rows(weir_graph *graph, weir_output g, weir_output *out, weir_error *error)
{
	return weiri_math_build(graph, &flatten_op, NULL, &g, 1, NULL, 0, 1, out, error);
}
