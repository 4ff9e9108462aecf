/*
 * op_arithmetic.c - add, sub, mul, div, maximum, minimum: element by element, the smaller operand
 * repeated.
 */
#include "graph/node.h"

#include "base/compiler.h"
#include "base/error.h"
#include "graph/elementwise.h"
#include "graph/gradient.h"
#include "tensor/object.h"

enum arithmetic { ADD, SUB, MUL, DIV, MAXIMUM, MINIMUM };

/*
 * One function for each type. `as` and `bs` are the operands' strides: 0 (a scalar) or 1. Each call
 * below passes constants for the strides and the operation, and is inlined. So each case becomes a
 * loop of its own, which the compiler vectorizes.
 */
static WEIRI_ALWAYS_INLINE float f32_of(enum arithmetic op, float a, float b)
{
	switch (op) {
	case ADD: return a + b;
	case SUB: return a - b;
	case MUL: return a * b;
	case DIV: return a / b;
	case MAXIMUM: return a > b || a != a ? a : b;
	case MINIMUM: break;
	}
	return a < b || a != a ? a : b;
}

static WEIRI_ALWAYS_INLINE double f64_of(enum arithmetic op, double a, double b)
{
	switch (op) {
	case ADD: return a + b;
	case SUB: return a - b;
	case MUL: return a * b;
	case DIV: return a / b;
	case MAXIMUM: return a > b || a != a ? a : b;
	case MINIMUM: break;
	}
	return a < b || a != a ? a : b;
}

/* Unsigned where integers wrap. A quotient by -1 wraps too; the divisor is not 0. */
static WEIRI_ALWAYS_INLINE uint32_t i32_of(enum arithmetic op, uint32_t a, uint32_t b)
{
	switch (op) {
	case ADD: return a + b;
	case SUB: return a - b;
	case MUL: return a * b;
	case DIV: return b == UINT32_MAX ? 0 - a : (uint32_t)((int32_t)a / (int32_t)b);
	case MAXIMUM: return (int32_t)a > (int32_t)b ? a : b;
	case MINIMUM: break;
	}
	return (int32_t)a < (int32_t)b ? a : b;
}

static WEIRI_ALWAYS_INLINE uint64_t i64_of(enum arithmetic op, uint64_t a, uint64_t b)
{
	switch (op) {
	case ADD: return a + b;
	case SUB: return a - b;
	case MUL: return a * b;
	case DIV: return b == UINT64_MAX ? 0 - a : (uint64_t)((int64_t)a / (int64_t)b);
	case MAXIMUM: return (int64_t)a > (int64_t)b ? a : b;
	case MINIMUM: break;
	}
	return (int64_t)a < (int64_t)b ? a : b;
}

static WEIRI_ALWAYS_INLINE void f32_loop(enum arithmetic op, const float *a, size_t as, const float *b, size_t bs,
                                         float *out, size_t n)
{
	for (size_t i = 0; i < n; i++)
		out[i] = f32_of(op, a[i * as], b[i * bs]);
}

static WEIRI_ALWAYS_INLINE void f64_loop(enum arithmetic op, const double *a, size_t as, const double *b, size_t bs,
                                         double *out, size_t n)
{
	for (size_t i = 0; i < n; i++)
		out[i] = f64_of(op, a[i * as], b[i * bs]);
}

static WEIRI_ALWAYS_INLINE void i32_loop(enum arithmetic op, const uint32_t *a, size_t as, const uint32_t *b, size_t bs,
                                         uint32_t *out, size_t n)
{
	for (size_t i = 0; i < n; i++)
		out[i] = i32_of(op, a[i * as], b[i * bs]);
}

static WEIRI_ALWAYS_INLINE void i64_loop(enum arithmetic op, const uint64_t *a, size_t as, const uint64_t *b, size_t bs,
                                         uint64_t *out, size_t n)
{
	for (size_t i = 0; i < n; i++)
		out[i] = i64_of(op, a[i * as], b[i * bs]);
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
	case DIV: strided_loop(DIV, dtype, a, as, b, bs, out, n); break;
	case MAXIMUM: strided_loop(MAXIMUM, dtype, a, as, b, bs, out, n); break;
	case MINIMUM: strided_loop(MINIMUM, dtype, a, as, b, bs, out, n); break;
	}
}

/* Of single elements: the loops above would take most of their time to begin. */
static void single(enum arithmetic op, enum weir_dtype dtype, const void *a, const void *b, void *out)
{
	switch (op) {
	case ADD: typed_loop(ADD, dtype, a, 1, b, 1, out, 1); break;
	case SUB: typed_loop(SUB, dtype, a, 1, b, 1, out, 1); break;
	case MUL: typed_loop(MUL, dtype, a, 1, b, 1, out, 1); break;
	case DIV: typed_loop(DIV, dtype, a, 1, b, 1, out, 1); break;
	case MAXIMUM: typed_loop(MAXIMUM, dtype, a, 1, b, 1, out, 1); break;
	case MINIMUM: typed_loop(MINIMUM, dtype, a, 1, b, 1, out, 1); break;
	}
}

static bool has_integer_zero(enum weir_dtype dtype, const void *data, size_t n)
{
	bool found = false;

	for (size_t i = 0; dtype == WEIR_I32 && !found && i < n; i++)
		found = ((const int32_t *)data)[i] == 0;
	for (size_t i = 0; dtype == WEIR_I64 && !found && i < n; i++)
		found = ((const int64_t *)data)[i] == 0;
	return found;
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

	if (op == DIV && has_integer_zero(dtype, bs, (size_t)b->elements))
		return weiri_fail(call->error, WEIR_INVALID_ARGUMENT, "an integer is divided by 0");
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

/* -- gradients --------------------------------------------------------------------------------- */

enum { A, B };

/* Sets into[] to the gradients, each summed over the rows for which its operand was repeated. */
static enum weir_status finish(const struct weir_gradient_request *r, weir_output a, weir_output b, weir_output into[],
                               weir_error *error)
{
	enum weir_status status = WEIR_OK;

	if (r->needed[A])
		status = weiri_gradient_sum_like(r->graph, a, r->inputs[A], &into[A], error);
	if (status == WEIR_OK && r->needed[B])
		status = weiri_gradient_sum_like(r->graph, b, r->inputs[B], &into[B], error);
	return status;
}

static enum weir_status add_gradient(const weir_node *node, const struct weir_gradient_request *r, weir_output into[],
                                     weir_error *error)
{
	(void)node;
	return finish(r, r->of_outputs[0], r->of_outputs[0], into, error);
}

static enum weir_status sub_gradient(const weir_node *node, const struct weir_gradient_request *r, weir_output into[],
                                     weir_error *error)
{
	weir_output by_b = {NULL, 0};
	enum weir_status status = WEIR_OK;

	(void)node;
	if (r->needed[B])
		status = weir_op_neg(r->graph, NULL, r->of_outputs[0], &by_b, error);
	return status == WEIR_OK ? finish(r, r->of_outputs[0], by_b, into, error) : status;
}

static enum weir_status mul_gradient(const weir_node *node, const struct weir_gradient_request *r, weir_output into[],
                                     weir_error *error)
{
	weir_output by_a = {NULL, 0}, by_b = {NULL, 0};
	enum weir_status status = WEIR_OK;

	(void)node;
	if (r->needed[A])
		status = weir_op_mul(r->graph, NULL, r->of_outputs[0], r->inputs[B], &by_a, error);
	if (status == WEIR_OK && r->needed[B])
		status = weir_op_mul(r->graph, NULL, r->of_outputs[0], r->inputs[A], &by_b, error);
	return status == WEIR_OK ? finish(r, by_a, by_b, into, error) : status;
}

/* By a: g / b. By b: -(a / b) * (g / b). */
static enum weir_status div_gradient(const weir_node *node, const struct weir_gradient_request *r, weir_output into[],
                                     weir_error *error)
{
	weir_output by_a, by_b = {NULL, 0};
	enum weir_status status = weir_op_div(r->graph, NULL, r->of_outputs[0], r->inputs[B], &by_a, error);

	(void)node;
	if (status == WEIR_OK && r->needed[B])
		status = weir_op_mul(r->graph, NULL, by_a, r->outputs[0], &by_b, error);
	if (status == WEIR_OK && r->needed[B])
		status = weir_op_neg(r->graph, NULL, by_b, &by_b, error);
	return status == WEIR_OK ? finish(r, by_a, by_b, into, error) : status;
}

/* `a_wins` holds where the output is a. */
static enum weir_status share(const struct weir_gradient_request *r, weir_output a_wins, weir_output into[],
                              weir_error *error)
{
	enum weir_dtype dtype = weiri_output_spec(r->inputs[A])->dtype;
	weir_output g = r->of_outputs[0], factor, by_a, by_b;

	return weir_op_cast(r->graph, NULL, a_wins, dtype, &factor, error) ||
	               weir_op_mul(r->graph, NULL, g, factor, &by_a, error) ||
	               weir_op_sub(r->graph, NULL, g, by_a, &by_b, error)
	           ? error->code
	           : finish(r, by_a, by_b, into, error);
}

static enum weir_status maximum_gradient(const weir_node *node, const struct weir_gradient_request *r,
                                         weir_output into[], weir_error *error)
{
	weir_output a_wins;
	enum weir_status status = weir_op_greater_equal(r->graph, NULL, r->inputs[A], r->inputs[B], &a_wins, error);

	(void)node;
	return status == WEIR_OK ? share(r, a_wins, into, error) : status;
}

static enum weir_status minimum_gradient(const weir_node *node, const struct weir_gradient_request *r,
                                         weir_output into[], weir_error *error)
{
	weir_output a_wins;
	enum weir_status status = weir_op_less_equal(r->graph, NULL, r->inputs[A], r->inputs[B], &a_wins, error);

	(void)node;
	return status == WEIR_OK ? share(r, a_wins, into, error) : status;
}

/* -- building ---------------------------------------------------------------------------------- */

#define BINARY(NAME, GRADIENT) \
	{ \
		.name = NAME, .traits = WEIRI_OP_IN_PLACE, .infer = infer_binary, .compute = compute_binary, \
		.run = weiri_math_run, .gradient = GRADIENT \
	}

/* The index is an enum arithmetic. */
static const struct weiri_op ops[] = {
	[ADD] = BINARY("add", add_gradient),
	[SUB] = BINARY("sub", sub_gradient),
	[MUL] = BINARY("mul", mul_gradient),
	[DIV] = BINARY("div", div_gradient),
	[MAXIMUM] = BINARY("maximum", maximum_gradient),
	[MINIMUM] = BINARY("minimum", minimum_gradient),
};

static enum weir_status build(weir_graph *graph, enum arithmetic which, const char *name, weir_output a, weir_output b,
                              weir_output *out, weir_error *error)
{
	return weiri_math_build_binary(graph, &ops[which], which, name, a, b, out, error);
}

enum weir_status weir_op_add(weir_graph *graph, const char *name, weir_output a, weir_output b, weir_output *out,
                             weir_error *error)
{
	return build(graph, ADD, name, a, b, out, error);
}

enum weir_status weir_op_sub(weir_graph *graph, const char *name, weir_output a, weir_output b, weir_output *out,
                             weir_error *error)
{
	return build(graph, SUB, name, a, b, out, error);
}

enum weir_status weir_op_mul(weir_graph *graph, const char *name, weir_output a, weir_output b, weir_output *out,
                             weir_error *error)
{
	return build(graph, MUL, name, a, b, out, error);
}

enum weir_status weir_op_div(weir_graph *graph, const char *name, weir_output a, weir_output b, weir_output *out,
                             weir_error *error)
{
	return build(graph, DIV, name, a, b, out, error);
}

enum weir_status weir_op_maximum(weir_graph *graph, const char *name, weir_output a, weir_output b, weir_output *out,
                                 weir_error *error)
{
	return build(graph, MAXIMUM, name, a, b, out, error);
}

enum weir_status weir_op_minimum(weir_graph *graph, const char *name, weir_output a, weir_output b, weir_output *out,
                                 weir_error *error)
{
	return build(graph, MINIMUM, name, a, b, out, error);
}
