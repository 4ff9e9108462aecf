/*
 * op_part.c - parts of tensors along an axis: slice and rows, split, concat.
 *
 * A tensor is treated as [outer, axis, inner] (extent.h). A part along axis 0 is a view. A part along
 * another axis is copied, in pieces of consecutive elements.
 */
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "graph/extent.h"
#include "tensor/object.h"

/* Copies `rows` pieces of `bytes`, which begin from_step and to_step bytes apart. */
static void copy_pieces(const char *from, size_t from_step, char *to, size_t to_step, size_t bytes, size_t rows)
{
	for (size_t i = 0; bytes != 0 && i < rows; i++)
		(void)memcpy(to + i * to_step, from + i * from_step, bytes);
}

/* Bytes from one index along the axis to the next. */
static size_t step_of(const weir_tensor *x, const struct weiri_extent *e)
{
	return e->inner * weir_dtype_size(weir_tensor_dtype(x));
}

/* Sets *out to the part from `begin` on, `count` long, which x has. */
static enum weir_status make_part(const struct weiri_call *call, weir_tensor *x, int axis, int64_t begin, int64_t count,
                                  weir_tensor **out)
{
	weir_shape shape = *weir_tensor_shape(x);
	struct weiri_extent e = weiri_extent_of(&shape, axis);
	size_t step = step_of(x, &e);
	enum weir_status status;

	shape.dims[axis] = count;
	if (axis == 0)
		status = weir_tensor_slice(x, begin, count, out);
	else
		status = weiri_tensor_create(weir_tensor_dtype(x), &shape, 0, call->allocator, out);
	if (status != WEIR_OK)
		return weiri_fail(call->error, status, "no memory for a part");
	if (axis != 0)
		copy_pieces((const char *)weir_tensor_data(x) + (size_t)begin * step, e.axis * step, (*out)->data,
		            (size_t)count * step, (size_t)count * step, e.outer);
	return WEIR_OK;
}

/* -- slice ----------------------------------------------------------------------------------------- */

struct range {
	int axis;
	int64_t begin, count; /* count WEIR_REST: up to the end */
};

static enum weir_status infer_slice(const void *attribute, const struct weiri_spec inputs[],
                                    struct weiri_spec outputs[], weir_error *error)
{
	const struct range *range = attribute;
	enum weir_status status = weiri_numeric_check(inputs[0].dtype, error);
	int64_t *dim;

	outputs[0] = inputs[0];
	if (status == WEIR_OK)
		status = weiri_axis_check(&inputs[0], range->axis, error);
	if (status != WEIR_OK || !inputs[0].ranked)
		return status;
	dim = &outputs[0].shape.dims[range->axis];
	if (*dim >= 0 && (range->begin > *dim || range->count > *dim - range->begin))
		return weiri_fail(error, WEIR_OUT_OF_RANGE, "axis %d has %lld, %lld from %lld on are too many", range->axis,
		                  (long long)*dim, (long long)range->count, (long long)range->begin);
	if (range->count != WEIR_REST)
		*dim = range->count;
	else if (*dim >= 0)
		*dim -= range->begin;
	return WEIR_OK;
}

/* A run that fails with WEIR_OUT_OF_RANGE tells that its input has ended. This one has a fault. */
static enum weir_status at_run_time(enum weir_status status)
{
	return status == WEIR_OUT_OF_RANGE ? WEIR_INVALID_ARGUMENT : status;
}

static enum weir_status run_slice(const struct weiri_call *call)
{
	const struct range *range = call->node->attribute;
	struct weiri_spec input = weiri_spec_of_tensor(call->inputs[0]), output;
	enum weir_status status = at_run_time(infer_slice(range, &input, &output, call->error));

	return status != WEIR_OK ? status
	                         : make_part(call, call->inputs[0], range->axis, range->begin,
	                                     output.shape.dims[range->axis], &call->outputs[0]);
}

/* The gradient of a slice: its place in a tensor of zeros. */
enum { G, LIKE };

static enum weir_status infer_pad(const void *attribute, const struct weiri_spec inputs[], struct weiri_spec outputs[],
                                  weir_error *error)
{
	struct weiri_spec expected;
	enum weir_status status = infer_slice(attribute, &inputs[LIKE], &expected, error);

	outputs[0] = inputs[LIKE];
	if (status == WEIR_OK && !weiri_spec_compatible(&expected, &inputs[G]))
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "the shapes do not fit");
	return status;
}

static enum weir_status compute_pad(const struct weiri_call *call, void *const data[])
{
	const struct range *range = call->node->attribute;
	const weir_tensor *g = call->inputs[G], *like = call->inputs[LIKE];
	struct weiri_extent e = weiri_extent_of(weir_tensor_shape(like), range->axis);
	size_t step = step_of(like, &e), part = (size_t)weir_tensor_shape(g)->dims[range->axis] * step;

	(void)memset(data[0], 0, weir_tensor_byte_count(like));
	copy_pieces(weir_tensor_data(g), part, (char *)data[0] + (size_t)range->begin * step, e.axis * step, part, e.outer);
	return WEIR_OK;
}

static enum weir_status run_pad(const struct weiri_call *call)
{
	return at_run_time(weiri_math_run(call));
}

static enum weir_status pad_gradient(const weir_node *node, const struct weir_gradient_request *r, weir_output into[],
                                     weir_error *error)
{
	const struct range *range = node->attribute;

	if (!r->needed[G])
		return WEIR_OK;
	return weir_op_slice(r->graph, NULL, r->of_outputs[0], (uint32_t)range->axis, range->begin, range->count, &into[G],
	                     error);
}

static const struct weiri_op pad_op = {
	.name = "slice_gradient", .infer = infer_pad, .compute = compute_pad, .run = run_pad, .gradient = pad_gradient};

static enum weir_status slice_gradient(const weir_node *node, const struct weir_gradient_request *r, weir_output into[],
                                       weir_error *error)
{
	weir_output inputs[2] = {[G] = r->of_outputs[0], [LIKE] = r->inputs[0]};

	return weiri_math_build(r->graph, &pad_op, NULL, inputs, 2, node->attribute, sizeof(struct range), 1, into, error);
}

static const struct weiri_op slice_op = {
	.name = "slice", .infer = infer_slice, .run = run_slice, .gradient = slice_gradient};

enum weir_status weir_op_slice(weir_graph *graph, const char *name, weir_output x, uint32_t axis, int64_t begin,
                               int64_t count, weir_output *out, weir_error *error)
{
	struct range range = {weiri_axis(axis), begin, count};

	if (begin < 0 || count < WEIR_REST)
		return weiri_node_fail(error, WEIR_OUT_OF_RANGE, &slice_op, name, "%lld from %lld on are not a part",
		                       (long long)count, (long long)begin);
	return weiri_math_build(graph, &slice_op, name, &x, 1, &range, sizeof(range), 1, out, error);
}

enum weir_status weir_op_rows(weir_graph *graph, const char *name, weir_output x, int64_t begin, int64_t count,
                              weir_output *out, weir_error *error)
{
	return weir_op_slice(graph, name, x, 0, begin, count, out, error);
}

/* -- nodes with many inputs or outputs ------------------------------------------------------------- */

struct many {
	weir_graph *graph;
	const struct weiri_op *op;
	const char *name;
	const weir_output *inputs;
	size_t input_count;
	const struct weiri_spec *spec; /* of each output, unless `likes` has them */
	const weir_output *likes;
	size_t output_count;
	int axis; /* the attribute */
	weir_error *error;
};

static enum weir_status build_many(const struct many *m, weir_output outs[])
{
	size_t bytes = m->output_count * sizeof(struct weiri_spec);
	struct weiri_spec *specs = weiri_allocate(&m->graph->allocator, bytes, _Alignof(struct weiri_spec));
	struct weiri_node_request request = {.op = m->op,
	                                     .name = m->name,
	                                     .inputs = m->inputs,
	                                     .input_count = m->input_count,
	                                     .specs = specs,
	                                     .output_count = m->output_count,
	                                     .attribute = &m->axis,
	                                     .attribute_size = sizeof(m->axis)};
	enum weir_status status;
	weir_node *node;

	if (specs == NULL)
		return weiri_node_fail(m->error, WEIR_RESOURCE_EXHAUSTED, m->op, m->name, "no memory");
	for (size_t i = 0; i < m->output_count; i++)
		specs[i] = m->likes != NULL ? *weiri_output_spec(m->likes[i]) : *m->spec;
	status = weiri_node_build(m->graph, &request, &node, m->error);
	weiri_release(&m->graph->allocator, specs, bytes, _Alignof(struct weiri_spec));
	for (size_t i = 0; status == WEIR_OK && i < m->output_count; i++)
		outs[i] = (weir_output){node, (uint32_t)i};
	return status;
}

/* -- concat ---------------------------------------------------------------------------------------- */

/* Adds one more part to *whole, or begins it with the first. */
static enum weir_status join(struct weiri_spec *whole, const struct weiri_spec *part, int axis, bool first,
                             weir_error *error)
{
	struct weiri_spec other = *part;
	enum weir_status status = weiri_numeric_check(part->dtype, error);
	char text_whole[WEIRI_SPEC_TEXT_SIZE];
	char text_part[WEIRI_SPEC_TEXT_SIZE];

	if (status == WEIR_OK)
		status = weiri_axis_check(part, axis, error);
	if (status != WEIR_OK)
		return status;
	if (first) {
		*whole = *part;
		return WEIR_OK;
	}
	if (part->ranked && whole->ranked && part->shape.rank == whole->shape.rank)
		other.shape.dims[axis] = whole->shape.dims[axis];
	if (!weiri_spec_compatible(whole, &other))
		return weiri_fail(error, WEIR_INVALID_ARGUMENT,
		                  "expected one dtype, and dims that differ only along axis %d; got %s and %s", axis,
		                  weiri_spec_text(whole, text_whole), weiri_spec_text(part, text_part));
	whole->ranked = whole->ranked && part->ranked;
	for (uint32_t i = 0; whole->ranked && i < whole->shape.rank; i++) {
		int64_t *dim = &whole->shape.dims[i];

		if ((int)i != axis)
			*dim = weiri_dim_merge(*dim, part->shape.dims[i]);
		else if (*dim < 0 || part->shape.dims[i] < 0 || __builtin_add_overflow(*dim, part->shape.dims[i], dim))
			*dim = -1;
	}
	return WEIR_OK;
}

static enum weir_status run_concat(const struct weiri_call *call)
{
	const int axis = *(const int *)call->node->attribute;
	struct weiri_spec whole = {.ranked = false};
	enum weir_status status = WEIR_OK;
	size_t at = 0;

	for (uint32_t i = 0; status == WEIR_OK && i < call->node->input_count; i++) {
		struct weiri_spec part = weiri_spec_of_tensor(call->inputs[i]);

		status = join(&whole, &part, axis, i == 0, call->error);
	}
	if (status != WEIR_OK)
		return status;
	status = weiri_tensor_create(whole.dtype, &whole.shape, 0, call->allocator, &call->outputs[0]);
	if (status != WEIR_OK)
		return weiri_fail(call->error, status, "no memory for the whole");
	for (uint32_t i = 0; i < call->node->input_count; i++) {
		struct weiri_extent e = weiri_extent_of(&call->outputs[0]->shape, axis);
		size_t step = step_of(call->outputs[0], &e);
		size_t part = (size_t)weir_tensor_shape(call->inputs[i])->dims[axis] * step;

		copy_pieces(weir_tensor_data(call->inputs[i]), part, (char *)call->outputs[0]->data + at, e.axis * step, part,
		            e.outer);
		at += part;
	}
	return WEIR_OK;
}

/* The gradient of a concat: input 0 is g, the others are what was joined; an output for each of these. */
static enum weir_status run_part_like(const struct weiri_call *call)
{
	const int axis = *(const int *)call->node->attribute;
	enum weir_status status = WEIR_OK;
	int64_t at = 0;

	for (uint32_t i = 0; status == WEIR_OK && i < call->node->output_count; i++) {
		int64_t count = weir_tensor_shape(call->inputs[1 + i])->dims[axis];

		if (weiri_call_wants(call, i))
			status = make_part(call, call->inputs[G], axis, at, count, &call->outputs[i]);
		at += count;
	}
	return status;
}

static const struct weiri_op part_like_op = {.name = "concat_gradient", .run = run_part_like};

static enum weir_status concat_gradient(const weir_node *node, const struct weir_gradient_request *r,
                                        weir_output into[], weir_error *error)
{
	size_t bytes = (r->input_count + 1) * sizeof(weir_output);
	weir_output *inputs = weiri_allocate(&r->graph->allocator, bytes, _Alignof(weir_output));
	struct many m = {.graph = r->graph,
	                 .op = &part_like_op,
	                 .inputs = inputs,
	                 .input_count = r->input_count + 1,
	                 .likes = r->inputs,
	                 .output_count = r->input_count,
	                 .axis = *(const int *)node->attribute,
	                 .error = error};
	enum weir_status status;

	if (inputs == NULL)
		return weiri_fail(error, WEIR_RESOURCE_EXHAUSTED, "no memory");
	inputs[G] = r->of_outputs[0];
	(void)memcpy(inputs + 1, r->inputs, r->input_count * sizeof(inputs[0]));
	status = build_many(&m, into);
	weiri_release(&r->graph->allocator, inputs, bytes, _Alignof(weir_output));
	return status;
}

static const struct weiri_op concat_op = {.name = "concat", .run = run_concat, .gradient = concat_gradient};

enum weir_status weir_op_concat(weir_graph *graph, const char *name, const weir_output xs[], size_t count,
                                uint32_t axis, weir_output *out, weir_error *error)
{
	struct weiri_spec whole = {.ranked = false};
	struct many m = {.graph = graph,
	                 .op = &concat_op,
	                 .name = name,
	                 .inputs = xs,
	                 .input_count = count,
	                 .spec = &whole,
	                 .output_count = 1,
	                 .axis = weiri_axis(axis),
	                 .error = error};
	struct weiri_node_request request = {.op = &concat_op, .name = name, .inputs = xs, .input_count = count};
	enum weir_status status;
	weir_error inner;

	if (out == NULL || xs == NULL || count == 0)
		return weiri_node_fail(error, WEIR_INVALID_ARGUMENT, &concat_op, name, "%s",
		                       out == NULL ? "out is NULL" : "there are no inputs");
	status = weiri_node_check(graph, &request, error);
	for (size_t i = 0; status == WEIR_OK && i < count; i++) {
		status = join(&whole, weiri_output_spec(xs[i]), m.axis, i == 0, &inner);
		if (status != WEIR_OK)
			return weiri_node_fail(error, status, &concat_op, name, "%s", inner.message);
	}
	return status == WEIR_OK ? build_many(&m, out) : status;
}

/* -- split ----------------------------------------------------------------------------------------- */

static enum weir_status part_spec(const struct weiri_spec *x, int axis, size_t count, struct weiri_spec *part,
                                  weir_error *error)
{
	enum weir_status status = weiri_numeric_check(x->dtype, error);
	char text[WEIRI_SPEC_TEXT_SIZE];

	*part = *x;
	if (status == WEIR_OK)
		status = weiri_axis_check(x, axis, error);
	if (status != WEIR_OK || !x->ranked || x->shape.dims[axis] < 0)
		return status;
	if (x->shape.dims[axis] % (int64_t)count != 0)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "axis %d of %s cannot be divided into %zu equal parts", axis,
		                  weiri_spec_text(x, text), count);
	part->shape.dims[axis] /= (int64_t)count;
	return WEIR_OK;
}

static enum weir_status run_split(const struct weiri_call *call)
{
	const int axis = *(const int *)call->node->attribute;
	struct weiri_spec x = weiri_spec_of_tensor(call->inputs[0]), part;
	enum weir_status status = part_spec(&x, axis, call->node->output_count, &part, call->error);
	int64_t count;

	if (status != WEIR_OK)
		return status;
	count = part.shape.dims[axis];
	for (uint32_t i = 0; status == WEIR_OK && i < call->node->output_count; i++) {
		if (weiri_call_wants(call, i))
			status = make_part(call, call->inputs[0], axis, (int64_t)i * count, count, &call->outputs[i]);
	}
	return status;
}

/* The gradients of the parts are joined; a part that no loss needs has zeros. */
static enum weir_status split_gradient(const weir_node *node, const struct weir_gradient_request *r, weir_output into[],
                                       weir_error *error)
{
	size_t bytes = r->output_count * sizeof(weir_output);
	weir_output *parts = weiri_allocate(&r->graph->allocator, bytes, _Alignof(weir_output));
	enum weir_status status = WEIR_OK;

	if (parts == NULL)
		return weiri_fail(error, WEIR_RESOURCE_EXHAUSTED, "no memory");
	for (size_t i = 0; status == WEIR_OK && i < r->output_count; i++) {
		parts[i] = r->of_outputs[i];
		if (parts[i].node == NULL)
			status = weiri_gradient_fill_like(r->graph, r->outputs[i], 0, &parts[i], error);
	}
	if (status == WEIR_OK)
		status = weir_op_concat(r->graph, NULL, parts, r->output_count, (uint32_t) * (const int *)node->attribute, into,
		                        error);
	weiri_release(&r->graph->allocator, parts, bytes, _Alignof(weir_output));
	return status;
}

static const struct weiri_op split_op = {.name = "split", .run = run_split, .gradient = split_gradient};

enum weir_status weir_op_split(weir_graph *graph, const char *name, weir_output x, uint32_t axis, size_t count,
                               weir_output outs[], weir_error *error)
{
	struct weiri_spec part;
	struct many m = {.graph = graph,
	                 .op = &split_op,
	                 .name = name,
	                 .inputs = &x,
	                 .input_count = 1,
	                 .spec = &part,
	                 .output_count = count,
	                 .axis = weiri_axis(axis),
	                 .error = error};
	struct weiri_node_request request = {.op = &split_op, .name = name, .inputs = &x, .input_count = 1};
	enum weir_status status;
	weir_error inner;

	if (outs == NULL || count == 0 || count > WEIRI_NODE_MAX_INPUTS)
		return weiri_node_fail(error, WEIR_INVALID_ARGUMENT, &split_op, name, "expected 1 to %d parts%s",
		                       WEIRI_NODE_MAX_INPUTS, outs == NULL ? ", outs is NULL" : "");
	status = weiri_node_check(graph, &request, error);
	if (status != WEIR_OK)
		return status;
	status = part_spec(weiri_output_spec(x), m.axis, count, &part, &inner);
	if (status != WEIR_OK)
		return weiri_node_fail(error, status, &split_op, name, "%s", inner.message);
	return build_many(&m, outs);
}
