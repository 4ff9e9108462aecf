/*
 * op_cast.c - converting values to another dtype.
 *
 * An element is loaded as an int64, a uint64 or a double, and stored from there. So there are 11
 * loads and 11 stores, instead of 121 loops. The conversion saturates, so every input has a defined
 * result.
 */
#include "graph/node.h"

#include "base/error.h"

enum kind { SIGNED, UNSIGNED, FLOAT };

struct number {
	enum kind kind;
	union {
		int64_t i;
		uint64_t u;
		double f;
	} is;
};

static struct number integer(int64_t i)
{
	struct number number = {SIGNED, {.i = i}};

	return number;
}

/* Only what no int64 holds is UNSIGNED. */
static struct number natural(uint64_t u)
{
	struct number number = {UNSIGNED, {.u = u}};

	return u > (uint64_t)INT64_MAX ? number : integer((int64_t)u);
}

static struct number floating(double f)
{
	struct number number = {FLOAT, {.f = f}};

	return number;
}

static struct number load(enum weir_dtype dtype, const void *data, size_t at)
{
	switch (dtype) {
	case WEIR_BOOL: return integer(((const uint8_t *)data)[at] != 0);
	case WEIR_U8: return integer(((const uint8_t *)data)[at]);
	case WEIR_U16: return integer(((const uint16_t *)data)[at]);
	case WEIR_U32: return integer(((const uint32_t *)data)[at]);
	case WEIR_U64: return natural(((const uint64_t *)data)[at]);
	case WEIR_I8: return integer(((const int8_t *)data)[at]);
	case WEIR_I16: return integer(((const int16_t *)data)[at]);
	case WEIR_I32: return integer(((const int32_t *)data)[at]);
	case WEIR_I64: return integer(((const int64_t *)data)[at]);
	case WEIR_F32: return floating((double)((const float *)data)[at]);
	case WEIR_F64: return floating(((const double *)data)[at]);
	case WEIR_F16:
	case WEIR_BF16:
	case WEIR_BYTES: break;
	}
	return integer(0);
}

static double as_double(struct number number)
{
	switch (number.kind) {
	case SIGNED: return (double)number.is.i;
	case UNSIGNED: return (double)number.is.u;
	case FLOAT: break;
	}
	return number.is.f;
}

/* Once from an integer to float: a detour through double would round twice. */
static float as_float(struct number number)
{
	switch (number.kind) {
	case SIGNED: return (float)number.is.i;
	case UNSIGNED: return (float)number.is.u;
	case FLOAT: break;
	}
	return (float)number.is.f;
}

/* Rounds towards zero and limits the result to [low, high]. NaN becomes 0. */
static int64_t as_integer(struct number number, int64_t low, int64_t high)
{
	int64_t i = number.is.i;

	if (number.kind == UNSIGNED)
		return high;
	if (number.kind == FLOAT) {
		if (number.is.f != number.is.f)
			return 0;
		/* Compares with powers of two, which double holds exactly. */
		if (number.is.f >= 9223372036854775808.0)
			return high;
		if (number.is.f < -9223372036854775808.0)
			return low;
		i = (int64_t)number.is.f;
	}
	return i < low ? low : (i > high ? high : i);
}

/* The same for [0, 2^64 - 1]. */
static uint64_t as_natural(struct number number)
{
	if (number.kind == UNSIGNED)
		return number.is.u;
	if (number.kind == FLOAT) {
		if (number.is.f >= 18446744073709551616.0)
			return UINT64_MAX;
		return number.is.f > 0.0 ? (uint64_t)number.is.f : 0; /* NaN is not above 0 */
	}
	return number.is.i > 0 ? (uint64_t)number.is.i : 0;
}

static bool as_bool(struct number number)
{
	return number.kind == FLOAT ? number.is.f != 0.0 : number.kind == UNSIGNED || number.is.i != 0;
}

static void store(enum weir_dtype dtype, void *data, size_t at, struct number number)
{
	switch (dtype) {
	case WEIR_BOOL: ((uint8_t *)data)[at] = as_bool(number); break;
	case WEIR_U8: ((uint8_t *)data)[at] = (uint8_t)as_integer(number, 0, UINT8_MAX); break;
	case WEIR_U16: ((uint16_t *)data)[at] = (uint16_t)as_integer(number, 0, UINT16_MAX); break;
	case WEIR_U32: ((uint32_t *)data)[at] = (uint32_t)as_integer(number, 0, UINT32_MAX); break;
	case WEIR_U64: ((uint64_t *)data)[at] = as_natural(number); break;
	case WEIR_I8: ((int8_t *)data)[at] = (int8_t)as_integer(number, INT8_MIN, INT8_MAX); break;
	case WEIR_I16: ((int16_t *)data)[at] = (int16_t)as_integer(number, INT16_MIN, INT16_MAX); break;
	case WEIR_I32: ((int32_t *)data)[at] = (int32_t)as_integer(number, INT32_MIN, INT32_MAX); break;
	case WEIR_I64: ((int64_t *)data)[at] = as_integer(number, INT64_MIN, INT64_MAX); break;
	case WEIR_F32: ((float *)data)[at] = as_float(number); break;
	case WEIR_F64: ((double *)data)[at] = as_double(number); break;
	case WEIR_F16:
	case WEIR_BF16:
	case WEIR_BYTES: break;
	}
}

static enum weir_status compute(const struct weiri_call *call, void *const data[])
{
	const enum weir_dtype to = *(const enum weir_dtype *)call->node->attribute;
	const weir_tensor *x = call->inputs[0];
	size_t count = (size_t)weir_tensor_element_count(x);
	enum weir_dtype from = weir_tensor_dtype(x);

	for (size_t i = 0; i < count; i++)
		store(to, data[0], i, load(from, weir_tensor_data(x), i));
	return WEIR_OK;
}

static bool castable(enum weir_dtype dtype)
{
	return weir_dtype_size(dtype) != 0 && dtype != WEIR_F16 && dtype != WEIR_BF16 && dtype != WEIR_BYTES;
}

static enum weir_status infer(const void *attribute, const struct weiri_spec inputs[], struct weiri_spec outputs[],
                              weir_error *error)
{
	const enum weir_dtype to = *(const enum weir_dtype *)attribute;

	if (weir_dtype_size(to) == 0)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "%d is not a dtype", (int)to);
	if (!castable(to) || !castable(inputs[0].dtype))
		return weiri_fail(error, WEIR_UNIMPLEMENTED, "there is no cast from %s to %s", weir_dtype_name(inputs[0].dtype),
		                  weir_dtype_name(to));
	outputs[0] = inputs[0];
	outputs[0].dtype = to;
	return WEIR_OK;
}

static enum weir_status cast_gradient(const weir_node *node, const struct weir_gradient_request *r, weir_output into[],
                                      weir_error *error)
{
	(void)node;
	return weir_op_cast(r->graph, NULL, r->of_outputs[0], weiri_output_spec(r->inputs[0])->dtype, into, error);
}

static const struct weiri_op cast_op = {
	.name = "cast", .infer = infer, .compute = compute, .run = weiri_math_run, .gradient = cast_gradient};

enum weir_status weir_op_cast(weir_graph *graph, const char *name, weir_output x, enum weir_dtype dtype,
                              weir_output *out, weir_error *error)
{
	return weiri_math_build(graph, &cast_op, name, &x, 1, &dtype, sizeof(dtype), 1, out, error);
}
