/*
 * op_compare.c - comparisons, and, or, not, select: ops on truth values, element by element.
 *
 * A comparison is a set of the three ways in which two numbers can be ordered. A NaN is ordered in
 * none of them. not_equal is the complement of equal, and so holds for a NaN.
 */
#include "graph/node.h"

#include "base/compiler.h"
#include "base/error.h"
#include "graph/elementwise.h"
#include "graph/gradient.h"

/* bits of a comparison */
enum { IS_LESS = 1, IS_EQUAL = 2, IS_GREATER = 4, IS_COMPLEMENT = 8 };

static WEIRI_ALWAYS_INLINE bool truth(unsigned which, bool less, bool equal, bool greater)
{
	unsigned is = (which & less) | (which >> 1 & equal) | (which >> 2 & greater);

	return ((is ^ which >> 3) & 1u) != 0;
}

/* Each call passes constants for the strides, and is inlined: so each case is a loop of its own. */
static WEIRI_ALWAYS_INLINE void f32_loop(unsigned which, const float *a, size_t as, const float *b, size_t bs,
                                         bool *out, size_t n)
{
	for (size_t i = 0; i < n; i++)
		out[i] = truth(which, a[i * as]<b[i * bs], a[i * as] == b[i * bs], a[i * as]> b[i * bs]);
}

static WEIRI_ALWAYS_INLINE void f64_loop(unsigned which, const double *a, size_t as, const double *b, size_t bs,
                                         bool *out, size_t n)
{
	for (size_t i = 0; i < n; i++)
		out[i] = truth(which, a[i * as]<b[i * bs], a[i * as] == b[i * bs], a[i * as]> b[i * bs]);
}

static WEIRI_ALWAYS_INLINE void i32_loop(unsigned which, const int32_t *a, size_t as, const int32_t *b, size_t bs,
                                         bool *out, size_t n)
{
	for (size_t i = 0; i < n; i++)
		out[i] = truth(which, a[i * as]<b[i * bs], a[i * as] == b[i * bs], a[i * as]> b[i * bs]);
}

static WEIRI_ALWAYS_INLINE void i64_loop(unsigned which, const int64_t *a, size_t as, const int64_t *b, size_t bs,
                                         bool *out, size_t n)
{
	for (size_t i = 0; i < n; i++)
		out[i] = truth(which, a[i * as]<b[i * bs], a[i * as] == b[i * bs], a[i * as]> b[i * bs]);
}

static WEIRI_ALWAYS_INLINE void typed_loop(unsigned which, enum weir_dtype dtype, const void *a, size_t as,
                                           const void *b, size_t bs, bool *out, size_t n)
{
	if (dtype == WEIR_F32)
		f32_loop(which, a, as, b, bs, out, n);
	else if (dtype == WEIR_F64)
		f64_loop(which, a, as, b, bs, out, n);
	else if (dtype == WEIR_I32)
		i32_loop(which, a, as, b, bs, out, n);
	else
		i64_loop(which, a, as, b, bs, out, n);
}

static void compare_row(unsigned which, enum weir_dtype dtype, const void *a, size_t as, const void *b, size_t bs,
                        bool *out, size_t n)
{
	if (as == 1 && bs == 1)
		typed_loop(which, dtype, a, 1, b, 1, out, n);
	else if (as == 1)
		typed_loop(which, dtype, a, 1, b, 0, out, n);
	else
		typed_loop(which, dtype, a, 0, b, 1, out, n);
}

static enum weir_status compute_comparison(const struct weiri_call *call, void *const data[])
{
	const unsigned which = *(const unsigned *)call->node->attribute;
	const weir_tensor *a = call->inputs[0];
	const weir_tensor *b = call->inputs[1];
	enum weir_dtype dtype = weir_tensor_dtype(a);
	size_t size = weir_dtype_size(dtype);
	struct weiri_pairing pairing = weiri_pair(a, b);
	const char *as = weir_tensor_data(a);
	const char *bs = weir_tensor_data(b);

	for (size_t at = 0; at < pairing.total; at += pairing.columns) {
		compare_row(which, dtype, as, pairing.a_stride, bs, pairing.b_stride, (bool *)data[0] + at, pairing.columns);
		as += pairing.a_step * size;
		bs += pairing.b_step * size;
	}
	return WEIR_OK;
}

static enum weir_status infer_comparison(const void *attribute, const struct weiri_spec inputs[],
                                         struct weiri_spec outputs[], weir_error *error)
{
	enum weir_status status = weiri_numeric_check(inputs[0].dtype, error);

	(void)attribute;
	if (status == WEIR_OK)
		status = weiri_pair_specs(&inputs[0], &inputs[1], &outputs[0], error);
	outputs[0].dtype = WEIR_BOOL;
	return status;
}

static const struct weiri_op equal_op = {
	.name = "equal", .infer = infer_comparison, .compute = compute_comparison, .run = weiri_math_run};
static const struct weiri_op not_equal_op = {
	.name = "not_equal", .infer = infer_comparison, .compute = compute_comparison, .run = weiri_math_run};
static const struct weiri_op less_op = {
	.name = "less", .infer = infer_comparison, .compute = compute_comparison, .run = weiri_math_run};
static const struct weiri_op less_equal_op = {
	.name = "less_equal", .infer = infer_comparison, .compute = compute_comparison, .run = weiri_math_run};
static const struct weiri_op greater_op = {
	.name = "greater", .infer = infer_comparison, .compute = compute_comparison, .run = weiri_math_run};
static const struct weiri_op greater_equal_op = {
	.name = "greater_equal", .infer = infer_comparison, .compute = compute_comparison, .run = weiri_math_run};

enum weir_status weir_op_equal(weir_graph *graph, const char *name, weir_output a, weir_output b, weir_output *out,
                               weir_error *error)
{
	return weiri_math_build_binary(graph, &equal_op, IS_EQUAL, name, a, b, out, error);
}

enum weir_status weir_op_not_equal(weir_graph *graph, const char *name, weir_output a, weir_output b, weir_output *out,
                                   weir_error *error)
{
	return weiri_math_build_binary(graph, &not_equal_op, IS_EQUAL | IS_COMPLEMENT, name, a, b, out, error);
}

enum weir_status weir_op_less(weir_graph *graph, const char *name, weir_output a, weir_output b, weir_output *out,
                              weir_error *error)
{
	return weiri_math_build_binary(graph, &less_op, IS_LESS, name, a, b, out, error);
}

enum weir_status weir_op_less_equal(weir_graph *graph, const char *name, weir_output a, weir_output b, weir_output *out,
                                    weir_error *error)
{
	return weiri_math_build_binary(graph, &less_equal_op, IS_LESS | IS_EQUAL, name, a, b, out, error);
}

enum weir_status weir_op_greater(weir_graph *graph, const char *name, weir_output a, weir_output b, weir_output *out,
                                 weir_error *error)
{
	return weiri_math_build_binary(graph, &greater_op, IS_GREATER, name, a, b, out, error);
}

enum weir_status weir_op_greater_equal(weir_graph *graph, const char *name, weir_output a, weir_output b,
                                       weir_output *out, weir_error *error)
{
	return weiri_math_build_binary(graph, &greater_equal_op, IS_GREATER | IS_EQUAL, name, a, b, out, error);
}

/* -- truth values ------------------------------------------------------------------------------ */

enum connective { AND, OR };

static WEIRI_ALWAYS_INLINE void connect_loop(enum connective op, const uint8_t *a, size_t as, const uint8_t *b,
                                             size_t bs, bool *out, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		bool x = a[i * as] != 0, y = b[i * bs] != 0;

		out[i] = op == AND ? (x & y) : (x | y);
	}
}

static void connect_row(enum connective op, const uint8_t *a, size_t as, const uint8_t *b, size_t bs, bool *out,
                        size_t n)
{
	if (as == 1 && bs == 1)
		connect_loop(op, a, 1, b, 1, out, n);
	else if (as == 1)
		connect_loop(op, a, 1, b, 0, out, n);
	else
		connect_loop(op, a, 0, b, 1, out, n);
}

static enum weir_status compute_connective(const struct weiri_call *call, void *const data[])
{
	const enum connective op = (enum connective) * (const unsigned *)call->node->attribute;
	const uint8_t *as = weir_tensor_data(call->inputs[0]);
	const uint8_t *bs = weir_tensor_data(call->inputs[1]);
	struct weiri_pairing pairing = weiri_pair(call->inputs[0], call->inputs[1]);

	for (size_t at = 0; at < pairing.total; at += pairing.columns) {
		connect_row(op, as, pairing.a_stride, bs, pairing.b_stride, (bool *)data[0] + at, pairing.columns);
		as += pairing.a_step;
		bs += pairing.b_step;
	}
	return WEIR_OK;
}

static enum weir_status bool_check(const struct weiri_spec *spec, weir_error *error)
{
	if (spec->dtype == WEIR_BOOL)
		return WEIR_OK;
	return weiri_fail(error, WEIR_INVALID_ARGUMENT, "expected bool, got %s", weir_dtype_name(spec->dtype));
}

static enum weir_status infer_connective(const void *attribute, const struct weiri_spec inputs[],
                                         struct weiri_spec outputs[], weir_error *error)
{
	enum weir_status status = bool_check(&inputs[0], error);

	(void)attribute;
	if (status == WEIR_OK)
		status = bool_check(&inputs[1], error);
	return status != WEIR_OK ? status : weiri_pair_specs(&inputs[0], &inputs[1], &outputs[0], error);
}

static const struct weiri_op and_op = {.name = "and",
                                       .traits = WEIRI_OP_IN_PLACE,
                                       .infer = infer_connective,
                                       .compute = compute_connective,
                                       .run = weiri_math_run};
static const struct weiri_op or_op = {.name = "or",
                                      .traits = WEIRI_OP_IN_PLACE,
                                      .infer = infer_connective,
                                      .compute = compute_connective,
                                      .run = weiri_math_run};

enum weir_status weir_op_and(weir_graph *graph, const char *name, weir_output a, weir_output b, weir_output *out,
                             weir_error *error)
{
	return weiri_math_build_binary(graph, &and_op, AND, name, a, b, out, error);
}

enum weir_status weir_op_or(weir_graph *graph, const char *name, weir_output a, weir_output b, weir_output *out,
                            weir_error *error)
{
	return weiri_math_build_binary(graph, &or_op, OR, name, a, b, out, error);
}

static enum weir_status infer_not(const void *attribute, const struct weiri_spec inputs[], struct weiri_spec outputs[],
                                  weir_error *error)
{
	(void)attribute;
	outputs[0] = inputs[0];
	return bool_check(&inputs[0], error);
}

static enum weir_status compute_not(const struct weiri_call *call, void *const data[])
{
	const uint8_t *x = weir_tensor_data(call->inputs[0]);
	size_t count = (size_t)weir_tensor_element_count(call->inputs[0]);

	for (size_t i = 0; i < count; i++)
		((bool *)data[0])[i] = x[i] == 0;
	return WEIR_OK;
}

static const struct weiri_op not_op = {
	.name = "not", .traits = WEIRI_OP_IN_PLACE, .infer = infer_not, .compute = compute_not, .run = weiri_math_run};

enum weir_status weir_op_not(weir_graph *graph, const char *name, weir_output x, weir_output *out, weir_error *error)
{
	return weiri_math_build(graph, &not_op, name, &x, 1, NULL, 0, 1, out, error);
}

/* -- select ------------------------------------------------------------------------------------ */

enum { CONDITION = 0, WHERE_TRUE = 1, WHERE_FALSE = 2 };

static enum weir_status infer_select(const void *attribute, const struct weiri_spec inputs[],
                                     struct weiri_spec outputs[], weir_error *error)
{
	const struct weiri_spec *condition = &inputs[CONDITION];
	enum weir_status status = bool_check(condition, error);
	char text_a[WEIRI_SPEC_TEXT_SIZE];
	char text_b[WEIRI_SPEC_TEXT_SIZE];
	struct weiri_spec shape;

	(void)attribute;
	if (status != WEIR_OK)
		return status;
	if (!weiri_spec_compatible(&inputs[WHERE_TRUE], &inputs[WHERE_FALSE]))
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "expected two values of one dtype and shape, got %s and %s",
		                  weiri_spec_text(&inputs[WHERE_TRUE], text_a), weiri_spec_text(&inputs[WHERE_FALSE], text_b));
	outputs[0] = inputs[WHERE_TRUE].ranked ? inputs[WHERE_TRUE] : inputs[WHERE_FALSE];
	if (inputs[WHERE_TRUE].ranked && inputs[WHERE_FALSE].ranked) {
		for (uint32_t i = 0; i < outputs[0].shape.rank; i++)
			outputs[0].shape.dims[i] =
				weiri_dim_merge(inputs[WHERE_TRUE].shape.dims[i], inputs[WHERE_FALSE].shape.dims[i]);
	}
	if (!condition->ranked || condition->shape.rank == 0)
		return WEIR_OK;
	if (outputs[0].dtype == WEIR_BYTES)
		return weiri_fail(error, WEIR_UNIMPLEMENTED, "byte strings are selected by a scalar only");
	shape = outputs[0];
	shape.dtype = WEIR_BOOL;
	if (!weiri_spec_compatible(&shape, condition))
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "expected a condition that is a scalar or fits %s, got %s",
		                  weiri_spec_text(&outputs[0], text_a), weiri_spec_text(condition, text_b));
	return WEIR_OK;
}

static enum weir_status compute_select(const struct weiri_call *call, void *const data[])
{
	const uint8_t *condition = weir_tensor_data(call->inputs[CONDITION]);
	const char *a = weir_tensor_data(call->inputs[WHERE_TRUE]);
	const char *b = weir_tensor_data(call->inputs[WHERE_FALSE]);
	size_t size = weir_dtype_size(weir_tensor_dtype(call->inputs[WHERE_TRUE]));
	size_t bytes = (size_t)weir_tensor_element_count(call->inputs[CONDITION]) * size;

	/* Byte by byte: the output may lie over an input, at the same place. */
	for (size_t at = 0; at < bytes; at += size) {
		const char *from = *condition++ != 0 ? a : b;

		for (size_t i = at; i < at + size; i++)
			((char *)data[0])[i] = from[i];
	}
	return WEIR_OK;
}

/* A scalar selects one of the two tensors, which is not copied. */
static enum weir_status run_select(const struct weiri_call *call)
{
	struct weiri_spec specs[3], output;

	if (weir_tensor_shape(call->inputs[CONDITION])->rank != 0)
		return weiri_math_run(call);
	if (!call->node->specs_known) {
		enum weir_status status;

		for (uint32_t i = 0; i < 3; i++)
			specs[i] = weiri_spec_of_tensor(call->inputs[i]);
		status = infer_select(NULL, specs, &output, call->error);
		if (status != WEIR_OK)
			return status;
	}
	call->outputs[0] = weiri_call_pass(
		call, *(const uint8_t *)weir_tensor_data(call->inputs[CONDITION]) != 0 ? WHERE_TRUE : WHERE_FALSE);
	return WEIR_OK;
}

/* The gradient goes to what was selected. */
static enum weir_status select_gradient(const weir_node *node, const struct weir_gradient_request *r,
                                        weir_output into[], weir_error *error)
{
	weir_output zeros, g = r->of_outputs[0];
	enum weir_status status = weiri_gradient_fill_like(r->graph, g, 0, &zeros, error);

	(void)node;
	if (status == WEIR_OK && r->needed[WHERE_TRUE])
		status = weir_op_select(r->graph, NULL, r->inputs[CONDITION], g, zeros, &into[WHERE_TRUE], error);
	if (status == WEIR_OK && r->needed[WHERE_FALSE])
		status = weir_op_select(r->graph, NULL, r->inputs[CONDITION], zeros, g, &into[WHERE_FALSE], error);
	return status;
}

static const struct weiri_op select_op = {.name = "select",
                                          .traits = WEIRI_OP_IN_PLACE,
                                          .infer = infer_select,
                                          .compute = compute_select,
                                          .run = run_select,
                                          .gradient = select_gradient};

enum weir_status weir_op_select(weir_graph *graph, const char *name, weir_output condition, weir_output a,
                                weir_output b, weir_output *out, weir_error *error)
{
	weir_output inputs[3] = {condition, a, b};

	return weiri_math_build(graph, &select_op, name, inputs, 3, NULL, 0, 1, out, error);
}
