/*
 * op_arithmetic.c - add, sub, mul, square: element by element, the smaller operand repeated.
 */
#include "graph/node.h"

#include "base/compiler.h"
#include "base/error.h"
#include "graph/elementwise.h"
#include "tensor/object.h"

enum arithmetic { ADD, SUB, MUL };

/*
 * `as` and `bs` are the operands' strides: 0 (a scalar) or 1. Each call below passes constants for
 * the strides and the operation, and is inlined. So each case becomes a loop of its own, which the
 * compiler vectorizes.
 */
static WEIRI_ALWAYS_INLINE void f32_loop(enum arithmetic op, const float *a, size_t as, const float *b, size_t bs,
                                         float *out, size_t n)
{
	for (size_t i = 0; i < n; i++)
		out[i] = op == ADD ? a[i * as] + b[i * bs] : op == SUB ? a[i * as] - b[i * bs] : a[i * as] * b[i * bs];
}

static WEIRI_ALWAYS_INLINE void f64_loop(enum arithmetic op, const double *a, size_t as, const double *b, size_t bs,
                                         double *out, size_t n)
{
	for (size_t i = 0; i < n; i++)
		out[i] = op == ADD ? a[i * as] + b[i * bs] : op == SUB ? a[i * as] - b[i * bs] : a[i * as] * b[i * bs];
}

/* The arithmetic is unsigned, so that integers wrap. */
static WEIRI_ALWAYS_INLINE void i32_loop(enum arithmetic op, const uint32_t *a, size_t as, const uint32_t *b, size_t bs,
                                         uint32_t *out, size_t n)
{
	for (size_t i = 0; i < n; i++)
		out[i] = op == ADD ? a[i * as] + b[i * bs] : op == SUB ? a[i * as] - b[i * bs] : a[i * as] * b[i * bs];
}

static WEIRI_ALWAYS_INLINE void i64_loop(enum arithmetic op, const uint64_t *a, size_t as, const uint64_t *b, size_t bs,
                                         uint64_t *out, size_t n)
{
	for (size_t i = 0; i < n; i++)
		out[i] = op == ADD ? a[i * as] + b[i * bs] : op == SUB ? a[i * as] - b[i * bs] : a[i * as] * b[i * bs];
}

static WEIRI_ALWAYS_INLINE void typed_loop(enum arithmetic op, enum weir_dtype dtype, const void *a, size_t as,
                                           const void *b, size_t bs, void *out, size_t n)
{
	if (dtype == WEIR_F32)
		f32_loop(op, a, as, b, bs, out, n);
	else if (dtype == WEIR_F64)
		f64_loop(op, a, as, b, bs, out, n);
	else if (dtype == WEIR_I32)
		i32_loop(op, a, as, b, bs, out, n);
	else
		i64_loop(op, a, as, b, bs, out, n);
}

static WEIRI_ALWAYS_INLINE void strided_loop(enum arithmetic op, enum weir_dtype dtype, const void *a, size_t as,
                                             const void *b, size_t bs, void *out, size_t n)
{
	if (as == 1 && bs == 1)
		typed_loop(op, dtype, a, 1, b, 1, out, n);
	else if (as == 1)
		typed_loop(op, dtype, a, 1, b, 0, out, n);
	else
		typed_loop(op, dtype, a, 0, b, 1, out, n);
}

static void row(enum arithmetic op, enum weir_dtype dtype, const void *a, size_t as, const void *b, size_t bs,
                void *out, size_t n)
{
	switch (op) {
	case ADD: strided_loop(ADD, dtype, a, as, b, bs, out, n); break;
	case SUB: strided_loop(SUB, dtype, a, as, b, bs, out, n); break;
	case MUL: strided_loop(MUL, dtype, a, as, b, bs, out, n); break;
	}
}

/* Of single elements: the loops above would take most of their time to begin. */
static void single(enum arithmetic op, enum weir_dtype dtype, const void *a, const void *b, void *out)
{
	switch (op) {
	case ADD: typed_loop(ADD, dtype, a, 1, b, 1, out, 1); break;
	case SUB: typed_loop(SUB, dtype, a, 1, b, 1, out, 1); break;
	case MUL: typed_loop(MUL, dtype, a, 1, b, 1, out, 1); break;
	}
}

static enum weir_status compute_binary(const struct weiri_call *call, void *const data[])
{
	const enum arithmetic op = (enum arithmetic) * (const unsigned *)call->node->attribute;
	const weir_tensor *a = call->inputs[0];
	const weir_tensor *b = call->inputs[1];
	enum weir_dtype dtype = a->dtype;
	struct weiri_pairing pairing;
	const char *as = a->data;
	const char *bs = b->data;
	size_t size;

	if (a->elements == 1 && b->elements == 1) {
		single(op, dtype, as, bs, data[0]);
		return WEIR_OK;
	}
	size = weir_dtype_size(dtype);
	pairing = weiri_pair(a, b);
	for (size_t at = 0; at < pairing.total; at += pairing.columns) {
		row(op, dtype, as, pairing.a_stride, bs, pairing.b_stride, (char *)data[0] + at * size, pairing.columns);
		as += pairing.a_step * size;
		bs += pairing.b_step * size;
	}
	return WEIR_OK;
}

/*
 * Compares the last dims of `longer` with all dims of `shorter`. A dim that is known in only one of
 * them is stored in `longer`. Returns true if the dims may be equal.
 */
static bool merge_suffix(weir_shape *longer, const weir_shape *shorter)
{
	uint32_t skip = longer->rank - shorter->rank;

	for (uint32_t i = 0; i < shorter->rank; i++) {
		if (!weiri_dim_compatible(longer->dims[skip + i], shorter->dims[i]))
			return false;
		longer->dims[skip + i] = weiri_dim_merge(longer->dims[skip + i], shorter->dims[i]);
	}
	return true;
}

enum weir_status weiri_pair_specs(const struct weiri_spec *a, const struct weiri_spec *b, struct weiri_spec *out,
                                  weir_error *error)
{
	bool a_longer = a->shape.rank >= b->shape.rank;
	char text_a[WEIRI_SPEC_TEXT_SIZE];
	char text_b[WEIRI_SPEC_TEXT_SIZE];

	*out = weiri_spec_of(a->dtype, NULL);
	if (a->ranked && b->ranked)
		*out = a_longer ? *a : *b;
	if (b->dtype != a->dtype || (out->ranked && !merge_suffix(&out->shape, a_longer ? &b->shape : &a->shape)))
		return weiri_fail(error, WEIR_INVALID_ARGUMENT,
		                  "expected one dtype and equal shapes, or one the last dims of the other; got %s and %s",
		                  weiri_spec_text(a, text_a), weiri_spec_text(b, text_b));
	return WEIR_OK;
}

static enum weir_status infer_binary(const void *attribute, const struct weiri_spec inputs[],
                                     struct weiri_spec outputs[], weir_error *error)
{
	enum weir_status status = weiri_numeric_check(inputs[0].dtype, error);

	(void)attribute;
	return status != WEIR_OK ? status : weiri_pair_specs(&inputs[0], &inputs[1], &outputs[0], error);
}

static const struct weiri_op add_op = {.name = "add",
                                       .traits = WEIRI_OP_IN_PLACE,
                                       .infer = infer_binary,
                                       .compute = compute_binary,
                                       .run = weiri_math_run};
static const struct weiri_op sub_op = {.name = "sub",
                                       .traits = WEIRI_OP_IN_PLACE,
                                       .infer = infer_binary,
                                       .compute = compute_binary,
                                       .run = weiri_math_run};
static const struct weiri_op mul_op = {.name = "mul",
                                       .traits = WEIRI_OP_IN_PLACE,
                                       .infer = infer_binary,
                                       .compute = compute_binary,
                                       .run = weiri_math_run};

enum weir_status weir_op_add(weir_graph *graph, const char *name, weir_output a, weir_output b, weir_output *out,
                             weir_error *error)
{
	return weiri_math_build_binary(graph, &add_op, ADD, name, a, b, out, error);
}

enum weir_status weir_op_sub(weir_graph *graph, const char *name, weir_output a, weir_output b, weir_output *out,
                             weir_error *error)
{
	return weiri_math_build_binary(graph, &sub_op, SUB, name, a, b, out, error);
}

enum weir_status weir_op_mul(weir_graph *graph, const char *name, weir_output a, weir_output b, weir_output *out,
                             weir_error *error)
{
	return weiri_math_build_binary(graph, &mul_op, MUL, name, a, b, out, error);
}

static enum weir_status infer_square(const void *attribute, const struct weiri_spec inputs[],
                                     struct weiri_spec outputs[], weir_error *error)
{
	(void)attribute;
	outputs[0] = inputs[0];
	return weiri_numeric_check(inputs[0].dtype, error);
}

static enum weir_status compute_square(const struct weiri_call *call, void *const data[])
{
	const weir_tensor *x = call->inputs[0];
	const void *elements = weir_tensor_data(x);

	row(MUL, weir_tensor_dtype(x), elements, 1, elements, 1, data[0], (size_t)weir_tensor_element_count(x));
	return WEIR_OK;
}

static const struct weiri_op square_op = {.name = "square",
                                          .traits = WEIRI_OP_IN_PLACE,
                                          .infer = infer_square,
                                          .compute = compute_square,
                                          .run = weiri_math_run};

enum weir_status weir_op_square(weir_graph *graph, const char *name, weir_output x, weir_output *out, weir_error *error)
{
	return weiri_math_build(graph, &square_op, name, &x, 1, NULL, 0, 1, out, error);
}
