/*
 * op_reduce.c - sums, means and argmax: ops that remove an axis (extent.h).
 *
 * Columns are summed in blocks: so memory is read in order, and f32 is summed in double without a
 * large buffer.
 */
#include "graph/node.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "graph/elementwise.h"
#include "graph/extent.h"
#include "graph/gradient.h"

enum { BLOCK = 64 };

struct reduction {
	bool mean;
	int axis; /* or WEIRI_EVERY_AXIS */
};

/* Adds `rows` rows of `width` elements to `sums`. The rows begin `stride` elements apart. */
static void f32_sum(const float *x, size_t rows, size_t stride, size_t width, double sums[])
{
	for (size_t r = 0; r < rows; r++) {
		for (size_t i = 0; i < width; i++)
			sums[i] += (double)x[r * stride + i];
	}
}

static void f64_sum(const double *x, size_t rows, size_t stride, size_t width, double sums[])
{
	for (size_t r = 0; r < rows; r++) {
		for (size_t i = 0; i < width; i++)
			sums[i] += x[r * stride + i];
	}
}

/* Integers wrap: the low half of a 64-bit sum is the 32-bit sum. */
static void i32_sum(const uint32_t *x, size_t rows, size_t stride, size_t width, uint64_t sums[])
{
	for (size_t r = 0; r < rows; r++) {
		for (size_t i = 0; i < width; i++)
			sums[i] += x[r * stride + i];
	}
}

static void i64_sum(const uint64_t *x, size_t rows, size_t stride, size_t width, uint64_t sums[])
{
	for (size_t r = 0; r < rows; r++) {
		for (size_t i = 0; i < width; i++)
			sums[i] += x[r * stride + i];
	}
}

static void float_block(enum weir_dtype dtype, const void *x, size_t at, const struct weiri_extent *e, size_t width,
                        double divisor, void *out, size_t out_at)
{
	double sums[BLOCK] = {0};

	if (dtype == WEIR_F32)
		f32_sum((const float *)x + at, e->axis, e->inner, width, sums);
	else
		f64_sum((const double *)x + at, e->axis, e->inner, width, sums);
	for (size_t i = 0; i < width; i++) {
		if (dtype == WEIR_F32)
			((float *)out)[out_at + i] = (float)(sums[i] / divisor);
		else
			((double *)out)[out_at + i] = sums[i] / divisor;
	}
}

static void integer_block(enum weir_dtype dtype, const void *x, size_t at, const struct weiri_extent *e, size_t width,
                          void *out, size_t out_at)
{
	uint64_t sums[BLOCK] = {0};

	if (dtype == WEIR_I32)
		i32_sum((const uint32_t *)x + at, e->axis, e->inner, width, sums);
	else
		i64_sum((const uint64_t *)x + at, e->axis, e->inner, width, sums);
	for (size_t i = 0; i < width; i++) {
		if (dtype == WEIR_I32)
			((uint32_t *)out)[out_at + i] = (uint32_t)sums[i];
		else
			((uint64_t *)out)[out_at + i] = sums[i];
	}
}

static void sum(const weir_tensor *x, const struct weiri_extent *e, double divisor, void *out)
{
	enum weir_dtype dtype = weir_tensor_dtype(x);

	for (size_t o = 0; o < e->outer; o++) {
		for (size_t i = 0; i < e->inner; i += BLOCK) {
			size_t width = e->inner - i < BLOCK ? e->inner - i : BLOCK;
			size_t at = o * e->axis * e->inner + i;

			if (dtype == WEIR_F32 || dtype == WEIR_F64)
				float_block(dtype, weir_tensor_data(x), at, e, width, divisor, out, o * e->inner + i);
			else
				integer_block(dtype, weir_tensor_data(x), at, e, width, out, o * e->inner + i);
		}
	}
}

static enum weir_status compute_reduction(const struct weiri_call *call, void *const data[])
{
	const struct reduction *reduction = call->node->attribute;
	struct weiri_extent e = weiri_extent_of(weir_tensor_shape(call->inputs[0]), reduction->axis);

	sum(call->inputs[0], &e, reduction->mean ? (double)e.axis : 1.0, data[0]);
	return WEIR_OK;
}

static enum weir_status infer_reduction(const void *attribute, const struct weiri_spec inputs[],
                                        struct weiri_spec outputs[], weir_error *error)
{
	const struct reduction *reduction = attribute;
	const struct weiri_spec *x = &inputs[0];
	enum weir_status status =
		reduction->mean ? weiri_float_check(x->dtype, error) : weiri_numeric_check(x->dtype, error);

	return status == WEIR_OK ? weiri_spec_without_axis(x, reduction->axis, &outputs[0], error) : status;
}

static enum weir_status reduction_gradient(const weir_node *node, const struct weir_gradient_request *r,
                                           weir_output into[], weir_error *error)
{
	const struct reduction *reduction = node->attribute;

	return weiri_gradient_repeat_like(r->graph, r->of_outputs[0], r->inputs[0], reduction->axis, reduction->mean, into,
	                                  error);
}

static const struct weiri_op reduce_sum_op = {.name = "reduce_sum",
                                              .infer = infer_reduction,
                                              .compute = compute_reduction,
                                              .run = weiri_math_run,
                                              .gradient = reduction_gradient};
static const struct weiri_op reduce_mean_op = {.name = "reduce_mean",
                                               .infer = infer_reduction,
                                               .compute = compute_reduction,
                                               .run = weiri_math_run,
                                               .gradient = reduction_gradient};

static enum weir_status build_reduction(weir_graph *graph, const char *name, bool mean, int axis, weir_output x,
                                        weir_output *out, weir_error *error)
{
	struct reduction reduction;

	reduction.mean = mean;
	reduction.axis = axis;
	return weiri_math_build(graph, mean ? &reduce_mean_op : &reduce_sum_op, name, &x, 1, &reduction, sizeof(reduction),
	                        1, out, error);
}

enum weir_status weir_op_reduce_sum(weir_graph *graph, const char *name, weir_output x, weir_output *out,
                                    weir_error *error)
{
	return build_reduction(graph, name, false, WEIRI_EVERY_AXIS, x, out, error);
}

enum weir_status weir_op_reduce_sum_axis(weir_graph *graph, const char *name, weir_output x, uint32_t axis,
                                         weir_output *out, weir_error *error)
{
	return build_reduction(graph, name, false, weiri_axis(axis), x, out, error);
}

enum weir_status weir_op_reduce_mean(weir_graph *graph, const char *name, weir_output x, weir_output *out,
                                     weir_error *error)
{
	return build_reduction(graph, name, true, WEIRI_EVERY_AXIS, x, out, error);
}

enum weir_status weir_op_reduce_mean_axis(weir_graph *graph, const char *name, weir_output x, uint32_t axis,
                                          weir_output *out, weir_error *error)
{
	return build_reduction(graph, name, true, weiri_axis(axis), x, out, error);
}

/*
 * Returns the index of the first of the largest elements. NaN counts as larger than any number, so
 * that the result shows it.
 */
static int64_t f32_argmax(const float *x, size_t n)
{
	size_t best = 0;

	for (size_t i = 1; i < n; i++) {
		if (x[i] > x[best] || (isnan(x[i]) && !isnan(x[best])))
			best = i;
	}
	return (int64_t)best;
}

static int64_t f64_argmax(const double *x, size_t n)
{
	size_t best = 0;

	for (size_t i = 1; i < n; i++) {
		if (x[i] > x[best] || (isnan(x[i]) && !isnan(x[best])))
			best = i;
	}
	return (int64_t)best;
}

static int64_t i32_argmax(const int32_t *x, size_t n)
{
	size_t best = 0;

	for (size_t i = 1; i < n; i++) {
		if (x[i] > x[best])
			best = i;
	}
	return (int64_t)best;
}

static int64_t i64_argmax(const int64_t *x, size_t n)
{
	size_t best = 0;

	for (size_t i = 1; i < n; i++) {
		if (x[i] > x[best])
			best = i;
	}
	return (int64_t)best;
}

static int64_t argmax(enum weir_dtype dtype, const void *x, size_t at, size_t n)
{
	if (dtype == WEIR_F32)
		return f32_argmax((const float *)x + at, n);
	if (dtype == WEIR_F64)
		return f64_argmax((const double *)x + at, n);
	if (dtype == WEIR_I32)
		return i32_argmax((const int32_t *)x + at, n);
	return i64_argmax((const int64_t *)x + at, n);
}

static enum weir_status compute_argmax(const struct weiri_call *call, void *const data[])
{
	const weir_tensor *x = call->inputs[0];
	const weir_shape *shape = weir_tensor_shape(x);
	size_t columns = (size_t)shape->dims[shape->rank - 1];
	size_t rows = columns != 0 ? (size_t)weir_tensor_element_count(x) / columns : 0;

	for (size_t r = 0; r < rows; r++)
		((int64_t *)data[0])[r] = argmax(weir_tensor_dtype(x), weir_tensor_data(x), r * columns, columns);
	return WEIR_OK;
}

static enum weir_status infer_argmax(const void *attribute, const struct weiri_spec inputs[],
                                     struct weiri_spec outputs[], weir_error *error)
{
	const struct weiri_spec *x = &inputs[0];
	enum weir_status status = weiri_numeric_check(x->dtype, error);
	char text[WEIRI_SPEC_TEXT_SIZE];

	(void)attribute;
	if (status != WEIR_OK)
		return status;
	if (x->ranked && (x->shape.rank == 0 || x->shape.dims[x->shape.rank - 1] == 0))
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "expected a last axis with elements, got %s",
		                  weiri_spec_text(x, text));
	outputs[0] = *x;
	outputs[0].dtype = WEIR_I64;
	if (x->ranked)
		weiri_remove_axis(&outputs[0].shape, x->shape.rank - 1);
	return WEIR_OK;
}

static const struct weiri_op argmax_op = {
	.name = "argmax", .infer = infer_argmax, .compute = compute_argmax, .run = weiri_math_run};

enum weir_status weir_op_argmax(weir_graph *graph, const char *name, weir_output x, weir_output *out, weir_error *error)
{
	return weiri_math_build(graph, &argmax_op, name, &x, 1, NULL, 0, 1, out, error);
}

/* -- the gradient of a repeated operand --------------------------------------------------------- */

enum { SUMMED, LIKE };

/* The dims of `like` are the last ones of what is summed, or it is a scalar. */
static enum weir_status infer_sum_like(const void *attribute, const struct weiri_spec inputs[],
                                       struct weiri_spec outputs[], weir_error *error)
{
	struct weiri_spec pair;
	enum weir_status status = weiri_pair_specs(&inputs[SUMMED], &inputs[LIKE], &pair, error);

	(void)attribute;
	outputs[0] = inputs[LIKE];
	return status;
}

static enum weir_status compute_sum_like(const struct weiri_call *call, void *const data[])
{
	size_t count = (size_t)weir_tensor_element_count(call->inputs[LIKE]);
	struct weiri_extent e = {1, 0, count};

	if (count != 0)
		e.axis = (size_t)weir_tensor_element_count(call->inputs[SUMMED]) / count;
	sum(call->inputs[SUMMED], &e, 1.0, data[0]);
	return WEIR_OK;
}

/* A gradient that has the shape already is passed on. */
static enum weir_status run_sum_like(const struct weiri_call *call)
{
	if (!weir_shape_equal(weir_tensor_shape(call->inputs[SUMMED]), weir_tensor_shape(call->inputs[LIKE])))
		return weiri_math_run(call);
	call->outputs[0] = weiri_call_pass(call, SUMMED);
	return WEIR_OK;
}

static enum weir_status sum_like_gradient(const weir_node *node, const struct weir_gradient_request *r,
                                          weir_output into[], weir_error *error)
{
	weir_output zeros;

	(void)node;
	return weiri_gradient_fill_like(r->graph, r->inputs[SUMMED], 0, &zeros, error) ||
	               weir_op_add(r->graph, NULL, zeros, r->of_outputs[0], &into[SUMMED], error)
	           ? error->code
	           : WEIR_OK;
}

static const struct weiri_op sum_like_op = {.name = "sum_like",
                                            .infer = infer_sum_like,
                                            .compute = compute_sum_like,
                                            .run = run_sum_like,
                                            .gradient = sum_like_gradient};

enum weir_status weiri_gradient_sum_like(weir_graph *graph, weir_output g, weir_output like, weir_output *out,
                                         weir_error *error)
{
	const struct weiri_spec *a = weiri_output_spec(g), *b = weiri_output_spec(like);
	weir_output inputs[2] = {g, like};

	if (weiri_spec_known(a) && weiri_spec_known(b) && weir_shape_equal(&a->shape, &b->shape)) {
		*out = g;
		return WEIR_OK;
	}
	return weiri_math_build(graph, &sum_like_op, NULL, inputs, 2, NULL, 0, 1, out, error);
}
