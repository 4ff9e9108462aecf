/*
 * op_extreme.c - the largest and smallest elements, of all or along an axis (extent.h).
 *
 * Rows of `inner` elements are compared element by element. With one column, the axis itself is read
 * in order.
 */
#include "base/compiler.h"
#include "base/error.h"
#include "graph/extent.h"

struct choice {
	bool smallest;
	int axis; /* or WEIRI_EVERY_AXIS */
};

/* A NaN is taken, and stays. The type tells nothing about the order, so each has its own loop. */
static void f32_choose(bool smallest, const float *x, const struct weiri_extent *e, float *out)
{
	for (size_t i = 0; i < e->inner; i++)
		out[i] = x[i];
	for (size_t a = 1; a < e->axis; a++) {
		for (size_t i = 0; i < e->inner; i++) {
			float other = x[a * e->inner + i], best = out[i];

			out[i] = (smallest ? other < best : other > best) || other != other ? other : best;
		}
	}
}

static void f64_choose(bool smallest, const double *x, const struct weiri_extent *e, double *out)
{
	for (size_t i = 0; i < e->inner; i++)
		out[i] = x[i];
	for (size_t a = 1; a < e->axis; a++) {
		for (size_t i = 0; i < e->inner; i++) {
			double other = x[a * e->inner + i], best = out[i];

			out[i] = (smallest ? other < best : other > best) || other != other ? other : best;
		}
	}
}

static void i32_choose(bool smallest, const int32_t *x, const struct weiri_extent *e, int32_t *out)
{
	for (size_t i = 0; i < e->inner; i++)
		out[i] = x[i];
	for (size_t a = 1; a < e->axis; a++) {
		for (size_t i = 0; i < e->inner; i++) {
			int32_t other = x[a * e->inner + i];

			out[i] = (smallest ? other < out[i] : other > out[i]) ? other : out[i];
		}
	}
}

static void i64_choose(bool smallest, const int64_t *x, const struct weiri_extent *e, int64_t *out)
{
	for (size_t i = 0; i < e->inner; i++)
		out[i] = x[i];
	for (size_t a = 1; a < e->axis; a++) {
		for (size_t i = 0; i < e->inner; i++) {
			int64_t other = x[a * e->inner + i];

			out[i] = (smallest ? other < out[i] : other > out[i]) ? other : out[i];
		}
	}
}

static void choose(enum weir_dtype dtype, bool smallest, const void *x, const struct weiri_extent *e, void *out)
{
	switch (dtype) {
	case WEIR_F32: f32_choose(smallest, x, e, out); break;
	case WEIR_F64: f64_choose(smallest, x, e, out); break;
	case WEIR_I32: i32_choose(smallest, x, e, out); break;
	default: i64_choose(smallest, x, e, out); break;
	}
}

static enum weir_status compute(const struct weiri_call *call, void *const data[])
{
	const struct choice *choice = call->node->attribute;
	const weir_tensor *x = call->inputs[0];
	enum weir_dtype dtype = weir_tensor_dtype(x);
	struct weiri_extent e = weiri_extent_of(weir_tensor_shape(x), choice->axis);
	size_t size = weir_dtype_size(dtype);

	if (e.axis == 0 && e.outer != 0 && e.inner != 0)
		return weiri_fail(call->error, WEIR_INVALID_ARGUMENT, "there are no elements to choose from");
	for (size_t o = 0; o < e.outer && e.axis != 0; o++)
		choose(dtype, choice->smallest, (const char *)weir_tensor_data(x) + o * e.axis * e.inner * size, &e,
		       (char *)data[0] + o * e.inner * size);
	return WEIR_OK;
}

static enum weir_status infer(const void *attribute, const struct weiri_spec inputs[], struct weiri_spec outputs[],
                              weir_error *error)
{
	const struct choice *choice = attribute;
	const struct weiri_spec *x = &inputs[0];
	enum weir_status status = weiri_numeric_check(x->dtype, error);

	return status == WEIR_OK ? weiri_spec_without_axis(x, choice->axis, &outputs[0], error) : status;
}

/* -- the gradient: g where x is y, in equal shares; 0 elsewhere ----------------------------------- */

enum { X, Y, G };

static double load(enum weir_dtype dtype, const void *data, size_t at)
{
	return dtype == WEIR_F32 ? (double)((const float *)data)[at] : ((const double *)data)[at];
}

static void share(enum weir_dtype dtype, const struct weiri_call *call, const struct weiri_extent *e, size_t o,
                  size_t i, void *out)
{
	const void *x = weir_tensor_data(call->inputs[X]);
	double y = load(dtype, weir_tensor_data(call->inputs[Y]), o * e->inner + i);
	double g = load(dtype, weir_tensor_data(call->inputs[G]), o * e->inner + i);
	size_t first = o * e->axis * e->inner + i;
	size_t equal = 0;

	for (size_t a = 0; a < e->axis; a++)
		equal += load(dtype, x, first + a * e->inner) == y;
	for (size_t a = 0; a < e->axis; a++) {
		size_t at = first + a * e->inner;
		double part = load(dtype, x, at) == y ? g / (double)equal : 0.0;

		if (dtype == WEIR_F32)
			((float *)out)[at] = (float)part;
		else
			((double *)out)[at] = part;
	}
}

static enum weir_status compute_gradient(const struct weiri_call *call, void *const data[])
{
	const struct choice *choice = call->node->attribute;
	enum weir_dtype dtype = weir_tensor_dtype(call->inputs[X]);
	struct weiri_extent e = weiri_extent_of(weir_tensor_shape(call->inputs[X]), choice->axis);

	for (size_t o = 0; o < e.outer; o++) {
		for (size_t i = 0; i < e.inner; i++)
			share(dtype, call, &e, o, i, data[0]);
	}
	return WEIR_OK;
}

static enum weir_status infer_gradient(const void *attribute, const struct weiri_spec inputs[],
                                       struct weiri_spec outputs[], weir_error *error)
{
	struct weiri_spec expected;
	enum weir_status status = infer(attribute, inputs, &expected, error);

	outputs[0] = inputs[X];
	if (status == WEIR_OK &&
	    (!weiri_spec_compatible(&expected, &inputs[Y]) || !weiri_spec_compatible(&expected, &inputs[G])))
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "the shapes do not fit");
	return status;
}

static const struct weiri_op gradient_op = {
	.name = "extreme_gradient", .infer = infer_gradient, .compute = compute_gradient, .run = weiri_math_run};

static enum weir_status extreme_gradient(const weir_node *node, const struct weir_gradient_request *r,
                                         weir_output into[], weir_error *error)
{
	weir_output inputs[3] = {[X] = r->inputs[0], [Y] = r->outputs[0], [G] = r->of_outputs[0]};

	return weiri_math_build(r->graph, &gradient_op, NULL, inputs, 3, node->attribute, sizeof(struct choice), 1, into,
	                        error);
}

/* -- building ---------------------------------------------------------------------------------- */

/* The index is choice.smallest. */
static const struct weiri_op ops[] = {
	{.name = "reduce_max", .infer = infer, .compute = compute, .run = weiri_math_run, .gradient = extreme_gradient},
	{.name = "reduce_min", .infer = infer, .compute = compute, .run = weiri_math_run, .gradient = extreme_gradient},
};

static enum weir_status build(weir_graph *graph, const char *name, bool smallest, int axis, weir_output x,
                              weir_output *out, weir_error *error)
{
	struct choice choice;

	choice.smallest = smallest;
	choice.axis = axis;
	return weiri_math_build(graph, &ops[smallest], name, &x, 1, &choice, sizeof(choice), 1, out, error);
}

enum weir_status weir_op_reduce_max(weir_graph *graph, const char *name, weir_output x, weir_output *out,
                                    weir_error *error)
{
	return build(graph, name, false, WEIRI_EVERY_AXIS, x, out, error);
}

enum weir_status weir_op_reduce_max_axis(weir_graph *graph, const char *name, weir_output x, uint32_t axis,
                                         weir_output *out, weir_error *error)
{
	return build(graph, name, false, weiri_axis(axis), x, out, error);
}

enum weir_status weir_op_reduce_min(weir_graph *graph, const char *name, weir_output x, weir_output *out,
                                    weir_error *error)
{
	return build(graph, name, true, WEIRI_EVERY_AXIS, x, out, error);
}

enum weir_status weir_op_reduce_min_axis(weir_graph *graph, const char *name, weir_output x, uint32_t axis,
                                         weir_output *out, weir_error *error)
{
	return build(graph, name, true, weiri_axis(axis), x, out, error);
}
