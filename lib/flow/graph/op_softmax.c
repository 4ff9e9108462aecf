/*
 * op_softmax.c - softmax; softmax cross-entropy with its gradient; the mean squared error.
 *
 * Each row is computed in double. The largest logit is subtracted from all first, so that no
 * exponential overflows. The loss is the logarithm of the sum of the exponentials, minus the
 * label's logit. So a probability of zero is never a divisor or the argument of a logarithm.
 */
#include "graph/node.h"

#include <math.h>

#include "base/error.h"
#include "graph/gradient.h"

enum { LOGITS, LABELS };
enum { LOSS, GRADIENT };

static double load(enum weir_dtype dtype, const void *data, size_t at)
{
	return dtype == WEIR_F32 ? (double)((const float *)data)[at] : ((const double *)data)[at];
}

static void store(enum weir_dtype dtype, void *data, size_t at, double value)
{
	if (dtype == WEIR_F32)
		((float *)data)[at] = (float)value;
	else
		((double *)data)[at] = value;
}

static int64_t label_at(const weir_tensor *labels, size_t row)
{
	const void *data = weir_tensor_data(labels);

	return weir_tensor_dtype(labels) == WEIR_I32 ? ((const int32_t *)data)[row] : ((const int64_t *)data)[row];
}

/* Computes the row that begins at element `at`. `loss` or `gradient` may be NULL: not wanted. */
static void compute_row(enum weir_dtype dtype, const void *logits, size_t at, size_t classes, size_t row, size_t label,
                        void *loss, void *gradient)
{
	double largest = load(dtype, logits, at);
	double sum = 0.0;

	for (size_t c = 1; c < classes; c++)
		largest = fmax(largest, load(dtype, logits, at + c));
	for (size_t c = 0; c < classes; c++)
		sum += exp(load(dtype, logits, at + c) - largest);
	if (loss != NULL)
		store(dtype, loss, row, log(sum) - (load(dtype, logits, at + label) - largest));
	for (size_t c = 0; gradient != NULL && c < classes; c++)
		store(dtype, gradient, at + c, exp(load(dtype, logits, at + c) - largest) / sum - (c == label ? 1.0 : 0.0));
}

static enum weir_status compute(const struct weiri_call *call, void *const data[])
{
	const weir_tensor *logits = call->inputs[LOGITS];
	const weir_shape *shape = weir_tensor_shape(logits);
	size_t rows = (size_t)shape->dims[0];
	size_t classes = (size_t)shape->dims[1];

	for (size_t row = 0; row < rows; row++) {
		int64_t label = label_at(call->inputs[LABELS], row);

		if (label < 0 || label >= (int64_t)classes)
			return weiri_fail(call->error, WEIR_INVALID_ARGUMENT, "labels[%zu] = %lld is not in [0, %zu)", row,
			                  (long long)label, classes);
		compute_row(weir_tensor_dtype(logits), weir_tensor_data(logits), row * classes, classes, row, (size_t)label,
		            data[LOSS], data[GRADIENT]);
	}
	return WEIR_OK;
}

static enum weir_status infer(const void *attribute, const struct weiri_spec inputs[], struct weiri_spec outputs[],
                              weir_error *error)
{
	const struct weiri_spec *logits = &inputs[LOGITS];
	const struct weiri_spec *labels = &inputs[LABELS];
	enum weir_status status = weiri_float_check(logits->dtype, error);
	int64_t rows = -1;
	int64_t classes = -1;
	char text_logits[WEIRI_SPEC_TEXT_SIZE];
	char text_labels[WEIRI_SPEC_TEXT_SIZE];

	(void)attribute;
	if (status != WEIR_OK)
		return status;
	if (labels->dtype != WEIR_I32 && labels->dtype != WEIR_I64)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "expected labels i32 or i64, got %s",
		                  weir_dtype_name(labels->dtype));
	if ((logits->ranked && logits->shape.rank != 2) || (labels->ranked && labels->shape.rank != 1) ||
	    (logits->ranked && labels->ranked && !weiri_dim_compatible(logits->shape.dims[0], labels->shape.dims[0])))
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "expected logits [n,c] and labels [n], got %s and %s",
		                  weiri_spec_text(logits, text_logits), weiri_spec_text(labels, text_labels));
	if (logits->ranked) {
		rows = logits->shape.dims[0];
		classes = logits->shape.dims[1];
	}
	if (labels->ranked)
		rows = weiri_dim_merge(rows, labels->shape.dims[0]);
	outputs[LOSS] = weiri_spec_vector(logits->dtype, rows);
	outputs[GRADIENT] = weiri_spec_vector(logits->dtype, rows);
	outputs[GRADIENT].shape.rank = 2;
	outputs[GRADIENT].shape.dims[1] = classes;
	return WEIR_OK;
}

/* The second output is the gradient of the first, which is in no other op. It has none itself. */
static enum weir_status cross_entropy_gradient(const weir_node *node, const struct weir_gradient_request *r,
                                               weir_output into[], weir_error *error)
{
	if (r->of_outputs[GRADIENT].node != NULL)
		return weiri_fail(error, WEIR_UNIMPLEMENTED, "output %d of %s \"%s\" has no gradient", GRADIENT, node->kind,
		                  node->name);
	return weiri_gradient_scale_rows(r->graph, r->outputs[GRADIENT], r->of_outputs[LOSS], &into[LOGITS], error);
}

static const struct weiri_op cross_entropy_op = {.name = "softmax_cross_entropy",
                                                 .infer = infer,
                                                 .compute = compute,
                                                 .run = weiri_math_run,
                                                 .gradient = cross_entropy_gradient};

enum weir_status weir_op_softmax_cross_entropy(weir_graph *graph, const char *name, weir_output logits,
                                               weir_output labels, weir_output *loss, weir_output *gradient,
                                               weir_error *error)
{
	weir_output inputs[2];
	enum weir_status status;

	inputs[LOGITS] = logits;
	inputs[LABELS] = labels;
	status = weiri_math_build(graph, &cross_entropy_op, name, inputs, 2, NULL, 0, 2, loss, error);
	if (status == WEIR_OK && gradient != NULL) {
		gradient->node = loss->node;
		gradient->index = GRADIENT;
	}
	return status;
}

/* -- softmax ------------------------------------------------------------------------------------- */

/* The last axis; the rows are all others. */
static size_t columns_of(const weir_tensor *x)
{
	const weir_shape *shape = weir_tensor_shape(x);

	return (size_t)shape->dims[shape->rank - 1];
}

static enum weir_status infer_softmax(const void *attribute, const struct weiri_spec inputs[],
                                      struct weiri_spec outputs[], weir_error *error)
{
	enum weir_status status = weiri_float_check(inputs[0].dtype, error);

	(void)attribute;
	outputs[0] = inputs[0];
	if (status == WEIR_OK && inputs[0].ranked && inputs[0].shape.rank == 0)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "a scalar has no axis");
	return status;
}

static void softmax_row(enum weir_dtype dtype, const void *x, size_t at, size_t columns, void *out)
{
	double largest = load(dtype, x, at), sum = 0.0;

	for (size_t c = 1; c < columns; c++)
		largest = fmax(largest, load(dtype, x, at + c));
	for (size_t c = 0; c < columns; c++)
		sum += exp(load(dtype, x, at + c) - largest);
	for (size_t c = 0; c < columns; c++)
		store(dtype, out, at + c, exp(load(dtype, x, at + c) - largest) / sum);
}

static enum weir_status compute_softmax(const struct weiri_call *call, void *const data[])
{
	const weir_tensor *x = call->inputs[0];
	size_t count = (size_t)weir_tensor_element_count(x), columns = columns_of(x);

	for (size_t at = 0; at < count; at += columns)
		softmax_row(weir_tensor_dtype(x), weir_tensor_data(x), at, columns, data[0]);
	return WEIR_OK;
}

enum { Y, G };

/* y (g - the sum of g y along the row) */
static enum weir_status compute_softmax_gradient(const struct weiri_call *call, void *const data[])
{
	const void *y = weir_tensor_data(call->inputs[Y]), *g = weir_tensor_data(call->inputs[G]);
	size_t count = (size_t)weir_tensor_element_count(call->inputs[Y]), columns = columns_of(call->inputs[Y]);
	enum weir_dtype dtype = weir_tensor_dtype(call->inputs[Y]);

	for (size_t at = 0; at < count; at += columns) {
		double sum = 0.0;

		for (size_t c = at; c < at + columns; c++)
			sum += load(dtype, y, c) * load(dtype, g, c);
		for (size_t c = at; c < at + columns; c++)
			store(dtype, data[0], c, load(dtype, y, c) * (load(dtype, g, c) - sum));
	}
	return WEIR_OK;
}

static enum weir_status infer_softmax_gradient(const void *attribute, const struct weiri_spec inputs[],
                                               struct weiri_spec outputs[], weir_error *error)
{
	enum weir_status status = infer_softmax(attribute, inputs, outputs, error);

	if (status == WEIR_OK && !weiri_spec_compatible(&inputs[Y], &inputs[G]))
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "the shapes do not fit");
	return status;
}

static const struct weiri_op softmax_gradient_op = {.name = "softmax_gradient",
                                                    .infer = infer_softmax_gradient,
                                                    .compute = compute_softmax_gradient,
                                                    .run = weiri_math_run};

static enum weir_status softmax_gradient(const weir_node *node, const struct weir_gradient_request *r,
                                         weir_output into[], weir_error *error)
{
	weir_output inputs[2] = {[Y] = r->outputs[0], [G] = r->of_outputs[0]};

	(void)node;
	return weiri_math_build(r->graph, &softmax_gradient_op, NULL, inputs, 2, NULL, 0, 1, into, error);
}

static const struct weiri_op softmax_op = {.name = "softmax",
                                           .infer = infer_softmax,
                                           .compute = compute_softmax,
                                           .run = weiri_math_run,
                                           .gradient = softmax_gradient};

enum weir_status weir_op_softmax(weir_graph *graph, const char *name, weir_output x, weir_output *out,
                                 weir_error *error)
{
	return weiri_math_build(graph, &softmax_op, name, &x, 1, NULL, 0, 1, out, error);
}

/* -- mean squared error ---------------------------------------------------------------------------- */

enum weir_status weir_op_mean_squared_error(weir_graph *graph, const char *name, weir_output a, weir_output b,
                                            weir_output *out, weir_error *error)
{
	weir_output difference, square;
	enum weir_status status = weir_op_sub(graph, NULL, a, b, &difference, error);

	if (status == WEIR_OK)
		status = weir_op_square(graph, NULL, difference, &square, error);
	return status == WEIR_OK ? weir_op_reduce_mean(graph, name, square, out, error) : status;
}
