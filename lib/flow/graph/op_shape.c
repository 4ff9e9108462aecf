/*
 * op_shape.c - reshape, a view, and transpose, a copy in another order of the axes.
 */
#include <string.h>

#include "base/error.h"
#include "graph/gradient.h"

/* -- reshape ------------------------------------------------------------------------------------- */

/*
 * Replaces the negative dim of *shape, if there is one, so that it has `elements`. Returns false if no
 * dim does that.
 */
static bool fill_dim(weir_shape *shape, int64_t elements)
{
	int64_t product = 1;
	uint32_t open = shape->rank;

	for (uint32_t i = 0; i < shape->rank; i++) {
		if (shape->dims[i] < 0)
			open = i;
		else if (__builtin_mul_overflow(product, shape->dims[i], &product))
			return false;
	}
	if (open == shape->rank)
		return product == elements;
	if (product == 0 || elements % product != 0)
		return false;
	shape->dims[open] = elements / product;
	return true;
}

static enum weir_status infer_reshape(const void *attribute, const struct weiri_spec inputs[],
                                      struct weiri_spec outputs[], weir_error *error)
{
	const weir_shape *shape = attribute;
	enum weir_status status = weiri_numeric_check(inputs[0].dtype, error);
	char text[WEIRI_SPEC_TEXT_SIZE];
	char text_shape[WEIR_SHAPE_TEXT_SIZE];
	int64_t elements;

	outputs[0] = weiri_spec_of(inputs[0].dtype, shape);
	if (status != WEIR_OK || !weiri_spec_known(&inputs[0]))
		return status;
	status = weir_shape_element_count(&inputs[0].shape, &elements);
	if (status == WEIR_OK && fill_dim(&outputs[0].shape, elements))
		return WEIR_OK;
	return weiri_fail(error, WEIR_INVALID_ARGUMENT, "%s does not have the number of elements of %s",
	                  weiri_spec_text(&inputs[0], text), weir_shape_text(shape, text_shape, sizeof(text_shape)));
}

static enum weir_status run_reshape(const struct weiri_call *call)
{
	struct weiri_spec input = weiri_spec_of_tensor(call->inputs[0]), output;
	enum weir_status status = infer_reshape(call->node->attribute, &input, &output, call->error);

	if (status != WEIR_OK)
		return status;
	status = weir_tensor_reshape(call->inputs[0], &output.shape, &call->outputs[0]);
	return status == WEIR_OK ? WEIR_OK : weiri_fail(call->error, status, "no memory for a view");
}

static enum weir_status reshape_gradient(const weir_node *node, const struct weir_gradient_request *r,
                                         weir_output into[], weir_error *error)
{
	(void)node;
	return weiri_gradient_reshape_like(r->graph, r->of_outputs[0], r->inputs[0], into, error);
}

static const struct weiri_op reshape_op = {
	.name = "reshape", .infer = infer_reshape, .run = run_reshape, .gradient = reshape_gradient};

enum weir_status weir_op_reshape(weir_graph *graph, const char *name, weir_output x, const weir_shape *shape,
                                 weir_output *out, weir_error *error)
{
	uint32_t open = 0;

	if (shape == NULL || !weiri_partial_shape_ok(shape))
		return weiri_node_fail(error, WEIR_INVALID_ARGUMENT, &reshape_op, name, "%s",
		                       shape == NULL ? "shape is NULL" : "the rank is too large");
	for (uint32_t i = 0; i < shape->rank; i++)
		open += shape->dims[i] < 0;
	if (open > 1)
		return weiri_node_fail(error, WEIR_INVALID_ARGUMENT, &reshape_op, name, "%u dims are open, at most 1 may be",
		                       open);
	return weiri_math_build(graph, &reshape_op, name, &x, 1, shape, sizeof(*shape), 1, out, error);
}

/* -- transpose ----------------------------------------------------------------------------------- */

struct permutation {
	bool reverse; /* whatever the rank is */
	uint32_t rank;
	uint32_t order[WEIR_MAX_RANK];
};

static uint32_t axis_of(const struct permutation *p, uint32_t rank, uint32_t i)
{
	return p->reverse ? rank - 1 - i : p->order[i];
}

static enum weir_status infer_transpose(const void *attribute, const struct weiri_spec inputs[],
                                        struct weiri_spec outputs[], weir_error *error)
{
	const struct permutation *p = attribute;
	const struct weiri_spec *x = &inputs[0];
	enum weir_status status = weiri_numeric_check(x->dtype, error);
	char text[WEIRI_SPEC_TEXT_SIZE];

	outputs[0] = *x;
	if (status != WEIR_OK || !x->ranked)
		return status;
	if (!p->reverse && p->rank != x->shape.rank)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "an order of %u axes was given for %s", p->rank,
		                  weiri_spec_text(x, text));
	for (uint32_t i = 0; i < x->shape.rank; i++)
		outputs[0].shape.dims[i] = x->shape.dims[axis_of(p, x->shape.rank, i)];
	return WEIR_OK;
}

/* Walks through the output in order. */
struct walk {
	uint32_t rank;
	size_t dims[WEIR_MAX_RANK];    /* of the output */
	size_t strides[WEIR_MAX_RANK]; /* of the input, by axis of the output, in elements */
	size_t at[WEIR_MAX_RANK];
	size_t from; /* the element of the input */
};

static void begin_walk(struct walk *w, const struct permutation *p, const weir_shape *shape)
{
	size_t strides[WEIR_MAX_RANK] = {0};
	size_t stride = 1;

	(void)memset(w, 0, sizeof(*w));
	w->rank = shape->rank;
	for (uint32_t i = shape->rank; i-- > 0;) {
		strides[i] = stride;
		stride *= (size_t)shape->dims[i];
	}
	for (uint32_t i = 0; i < shape->rank; i++) {
		uint32_t axis = axis_of(p, shape->rank, i);

		w->dims[i] = (size_t)shape->dims[axis];
		w->strides[i] = strides[axis];
	}
}

/* Goes to the next row, along the last axis, of the output. Returns false after the last. */
static bool next_row(struct walk *w)
{
	for (uint32_t i = w->rank - 1; i-- > 0;) {
		w->from += w->strides[i];
		if (++w->at[i] < w->dims[i])
			return true;
		w->from -= w->strides[i] * w->dims[i];
		w->at[i] = 0;
	}
	return false;
}

static enum weir_status compute_transpose(const struct weiri_call *call, void *const data[])
{
	const weir_tensor *x = call->inputs[0];
	const void *from = weir_tensor_data(x);
	bool wide = weir_dtype_size(weir_tensor_dtype(x)) == sizeof(uint64_t);
	size_t columns, stride, done = 0; /* elements */
	struct walk w;

	if (weir_tensor_element_count(x) == 0)
		return WEIR_OK;
	begin_walk(&w, call->node->attribute, weir_tensor_shape(x));
	if (w.rank == 0) {
		(void)memcpy(data[0], from, weir_tensor_byte_count(x));
		return WEIR_OK;
	}
	columns = w.dims[w.rank - 1];
	stride = w.strides[w.rank - 1];
	do {
		for (size_t i = 0; wide && i < columns; i++)
			((uint64_t *)data[0])[done + i] = ((const uint64_t *)from)[w.from + i * stride];
		for (size_t i = 0; !wide && i < columns; i++)
			((uint32_t *)data[0])[done + i] = ((const uint32_t *)from)[w.from + i * stride];
		done += columns;
	} while (next_row(&w));
	return WEIR_OK;
}

/* The gradient is transposed back. */
static enum weir_status transpose_gradient(const weir_node *node, const struct weir_gradient_request *r,
                                           weir_output into[], weir_error *error)
{
	const struct permutation *p = node->attribute;
	uint32_t back[WEIR_MAX_RANK];

	for (uint32_t i = 0; i < p->rank; i++)
		back[p->order[i]] = i;
	return weir_op_transpose(r->graph, NULL, r->of_outputs[0], p->reverse ? NULL : back, p->rank, into, error);
}

static const struct weiri_op transpose_op = {.name = "transpose",
                                             .infer = infer_transpose,
                                             .compute = compute_transpose,
                                             .run = weiri_math_run,
                                             .gradient = transpose_gradient};

enum weir_status weir_op_transpose(weir_graph *graph, const char *name, weir_output x, const uint32_t order[],
                                   size_t count, weir_output *out, weir_error *error)
{
	struct permutation p = {.reverse = order == NULL};
	uint32_t seen = 0;

	if (order != NULL && count > WEIR_MAX_RANK)
		return weiri_node_fail(error, WEIR_INVALID_ARGUMENT, &transpose_op, name, "%zu axes; at most %d are possible",
		                       count, WEIR_MAX_RANK);
	for (size_t i = 0; order != NULL && i < count; i++) {
		if (order[i] >= count || (seen >> order[i] & 1u) != 0)
			return weiri_node_fail(error, WEIR_INVALID_ARGUMENT, &transpose_op, name,
			                       "the order must have each axis once; place %zu has axis %u", i, order[i]);
		seen |= 1u << order[i];
		p.order[p.rank++] = order[i];
	}
	return weiri_math_build(graph, &transpose_op, name, &x, 1, &p, sizeof(p), 1, out, error);
}
