/*
 * op_rows.c - rows by number: gather_rows and one_hot.
 */
#include <string.h>

#include "base/error.h"
#include "graph/extent.h"
#include "tensor/indices.h"
#include "tensor/object.h"
#include "tensor/row.h"

/* -- gather_rows --------------------------------------------------------------------------------- */

enum { X, INDICES };

static enum weir_status check_indices(const struct weiri_spec *indices, weir_error *error)
{
	char text[WEIRI_SPEC_TEXT_SIZE];

	if (indices->dtype == WEIR_I32 || indices->dtype == WEIR_I64)
		return WEIR_OK;
	return weiri_fail(error, WEIR_INVALID_ARGUMENT, "expected indices of i32 or i64, got %s",
	                  weiri_spec_text(indices, text));
}

static enum weir_status infer_gather(const void *attribute, const struct weiri_spec inputs[],
                                     struct weiri_spec outputs[], weir_error *error)
{
	const struct weiri_spec *x = &inputs[X], *indices = &inputs[INDICES];
	enum weir_status status = weiri_numeric_check(x->dtype, error);

	(void)attribute;
	if (status == WEIR_OK)
		status = check_indices(indices, error);
	if (status != WEIR_OK)
		return status;
	if (x->ranked && x->shape.rank == 0)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "a scalar has no rows");
	outputs[0] = weiri_spec_of(x->dtype, NULL);
	if (!x->ranked || !indices->ranked)
		return WEIR_OK;
	if (indices->shape.rank + x->shape.rank - 1 > WEIR_MAX_RANK)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "the rank would be above %d", WEIR_MAX_RANK);
	outputs[0] = weiri_spec_of(x->dtype, &indices->shape);
	for (uint32_t i = 1; i < x->shape.rank; i++)
		outputs[0].shape.dims[outputs[0].shape.rank++] = x->shape.dims[i];
	return WEIR_OK;
}

static enum weir_status rows_of(const struct weiri_call *call, const weir_tensor *x, const weir_tensor *indices,
                                struct weiri_rows *rows)
{
	enum weir_status status = weiri_rows_of("input", call->node->inputs[0].node->name, weir_tensor_dtype(x),
	                                        weir_tensor_shape(x), rows, call->error);

	return status == WEIR_OK ? weiri_indices_check(rows, indices, call->error) : status;
}

static enum weir_status compute_gather(const struct weiri_call *call, void *const data[])
{
	const weir_tensor *indices = call->inputs[INDICES];
	const char *from = weir_tensor_data(call->inputs[X]);
	struct weiri_rows rows;
	enum weir_status status = rows_of(call, call->inputs[X], indices, &rows);

	for (int64_t i = 0; status == WEIR_OK && rows.bytes != 0 && i < weir_tensor_element_count(indices); i++)
		(void)memcpy((char *)data[0] + (size_t)i * rows.bytes, from + (size_t)weiri_index_at(indices, i) * rows.bytes,
		             rows.bytes);
	return status;
}

/* The gradient: the rows of g are added where their indices say. */
enum { G, AT, LIKE };

static enum weir_status infer_scatter(const void *attribute, const struct weiri_spec inputs[],
                                      struct weiri_spec outputs[], weir_error *error)
{
	const struct weiri_spec gathered[2] = {[X] = inputs[LIKE], [INDICES] = inputs[AT]};
	struct weiri_spec expected;
	enum weir_status status = infer_gather(attribute, gathered, &expected, error);

	outputs[0] = inputs[LIKE];
	if (status == WEIR_OK && !weiri_spec_compatible(&expected, &inputs[G]))
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "the shapes do not fit");
	return status;
}

static enum weir_status compute_scatter(const struct weiri_call *call, void *const data[])
{
	const weir_tensor *at = call->inputs[AT];
	const char *from = weir_tensor_data(call->inputs[G]);
	struct weiri_rows rows;
	enum weir_status status = rows_of(call, call->inputs[LIKE], at, &rows);

	(void)memset(data[0], 0, weir_tensor_byte_count(call->inputs[LIKE]));
	for (int64_t i = 0; status == WEIR_OK && rows.bytes != 0 && i < weir_tensor_element_count(at); i++)
		weiri_row_combine(WEIRI_COMBINE_ADD, rows.dtype, (char *)data[0] + (size_t)weiri_index_at(at, i) * rows.bytes,
		                  from + (size_t)i * rows.bytes, rows.elements);
	return status;
}

static enum weir_status scatter_gradient(const weir_node *node, const struct weir_gradient_request *r,
                                         weir_output into[], weir_error *error)
{
	(void)node;
	return r->needed[G] ? weir_op_gather_rows(r->graph, NULL, r->of_outputs[0], r->inputs[AT], &into[G], error)
	                    : WEIR_OK;
}

static const struct weiri_op scatter_op = {.name = "gather_gradient",
                                           .infer = infer_scatter,
                                           .compute = compute_scatter,
                                           .run = weiri_math_run,
                                           .gradient = scatter_gradient};

static enum weir_status gather_gradient(const weir_node *node, const struct weir_gradient_request *r,
                                        weir_output into[], weir_error *error)
{
	weir_output inputs[3] = {[G] = r->of_outputs[0], [AT] = r->inputs[INDICES], [LIKE] = r->inputs[X]};

	(void)node;
	return weiri_math_build(r->graph, &scatter_op, NULL, inputs, 3, NULL, 0, 1, &into[X], error);
}

static const struct weiri_op gather_op = {.name = "gather_rows",
                                          .infer = infer_gather,
                                          .compute = compute_gather,
                                          .run = weiri_math_run,
                                          .gradient = gather_gradient};

enum weir_status weir_op_gather_rows(weir_graph *graph, const char *name, weir_output x, weir_output indices,
                                     weir_output *out, weir_error *error)
{
	weir_output inputs[2] = {[X] = x, [INDICES] = indices};

	return weiri_math_build(graph, &gather_op, name, inputs, 2, NULL, 0, 1, out, error);
}

/* -- one_hot ------------------------------------------------------------------------------------- */

struct classes {
	int64_t depth;
	enum weir_dtype dtype;
};

static enum weir_status infer_one_hot(const void *attribute, const struct weiri_spec inputs[],
                                      struct weiri_spec outputs[], weir_error *error)
{
	const struct classes *classes = attribute;
	enum weir_status status = weiri_numeric_check(classes->dtype, error);

	if (status == WEIR_OK)
		status = check_indices(&inputs[0], error);
	if (status != WEIR_OK)
		return status;
	outputs[0] = inputs[0];
	outputs[0].dtype = classes->dtype;
	if (!inputs[0].ranked)
		return WEIR_OK;
	if (inputs[0].shape.rank == WEIR_MAX_RANK)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "the rank would be above %d", WEIR_MAX_RANK);
	outputs[0].shape.dims[outputs[0].shape.rank++] = classes->depth;
	return WEIR_OK;
}

static void set_one(enum weir_dtype dtype, void *data, size_t at)
{
	switch (dtype) {
	case WEIR_F32: ((float *)data)[at] = 1; break;
	case WEIR_F64: ((double *)data)[at] = 1; break;
	case WEIR_I32: ((int32_t *)data)[at] = 1; break;
	default: ((int64_t *)data)[at] = 1; break;
	}
}

static enum weir_status compute_one_hot(const struct weiri_call *call, void *const data[])
{
	const struct classes *classes = call->node->attribute;
	int64_t count = weir_tensor_element_count(call->inputs[0]);

	(void)memset(data[0], 0, (size_t)count * (size_t)classes->depth * weir_dtype_size(classes->dtype));
	for (int64_t i = 0; i < count; i++) {
		int64_t index = weiri_index_at(call->inputs[0], i);

		if (index >= 0 && index < classes->depth)
			set_one(classes->dtype, data[0], (size_t)(i * classes->depth + index));
	}
	return WEIR_OK;
}

static const struct weiri_op one_hot_op = {
	.name = "one_hot", .infer = infer_one_hot, .compute = compute_one_hot, .run = weiri_math_run};

enum weir_status weir_op_one_hot(weir_graph *graph, const char *name, weir_output indices, int64_t depth,
                                 enum weir_dtype dtype, weir_output *out, weir_error *error)
{
	struct classes classes = {depth, dtype};

	if (depth < 1)
		return weiri_node_fail(error, WEIR_INVALID_ARGUMENT, &one_hot_op, name, "the depth is %lld, must be at least 1",
		                       (long long)depth);
	return weiri_math_build(graph, &one_hot_op, name, &indices, 1, &classes, sizeof(classes), 1, out, error);
}
