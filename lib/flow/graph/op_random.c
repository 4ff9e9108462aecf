/*
 * op_random.c - random numbers by counter.
 *
 * Philox4x32-10 (Salmon, Moraes, Dror, Shaw, SC 2011) maps a counter of 128 bits and a key of 64 bits to
 * 128 random bits. The key is the seed. The counter is the number of the block, 64 bits, and a mixture of
 * the node's number and of what the run adds (call->draws), 64 bits. So no state is kept, and threads
 * share nothing.
 */
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "graph/gradient.h"

enum distribution { UNIFORM, NORMAL };

struct draw {
	enum distribution distribution;
	enum weir_dtype dtype;
	weir_shape shape;
	double a, b; /* low and high; mean and deviation */
	uint64_t seed;
};

struct philox {
	uint32_t word[4];
};

static struct philox philox(uint64_t key, uint64_t high, uint64_t low)
{
	struct philox p = {{(uint32_t)low, (uint32_t)(low >> 32), (uint32_t)high, (uint32_t)(high >> 32)}};
	uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);

	for (int round = 0; round < 10; round++) {
		uint64_t a = UINT64_C(0xD2511F53) * p.word[0];
		uint64_t b = UINT64_C(0xCD9E8D57) * p.word[2];

		p = (struct philox){
			{(uint32_t)(b >> 32) ^ p.word[1] ^ k0, (uint32_t)b, (uint32_t)(a >> 32) ^ p.word[3] ^ k1, (uint32_t)a}};
		k0 += UINT32_C(0x9E3779B9);
		k1 += UINT32_C(0xBB67AE85);
	}
	return p;
}

/* The last step of splitmix64 (Steele, Lea and Flood, OOPSLA 2014), a bijection. */
static uint64_t mix(uint64_t z)
{
	z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
	z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
	return z ^ z >> 31;
}

/* Two numbers in [0, 1) from one block. */
static void two_uniform(const struct draw *draw, uint64_t stream, uint64_t block, double two[2])
{
	struct philox p = philox(draw->seed, stream, block);

	for (size_t i = 0; i < 2; i++)
		two[i] = (double)(((uint64_t)p.word[2 * i] << 32 | p.word[2 * i + 1]) >> 11) * 0x1p-53;
}

/* Box and Muller: two independent normal numbers from two uniform ones. */
static void two_normal(double two[2])
{
	double radius = sqrt(-2.0 * log(1.0 - two[0])); /* 1 - u is not 0 */
	double angle = 6.283185307179586 * two[1];

	two[0] = radius * cos(angle);
	two[1] = radius * sin(angle);
}

/* Rounding may reach the upper bound, which does not belong to the range. */
static void store(const struct draw *draw, void *data, size_t at, double x)
{
	bool uniform = draw->distribution == UNIFORM;
	double value = uniform ? draw->a + (draw->b - draw->a) * x : draw->a + draw->b * x;

	switch (draw->dtype) {
	case WEIR_F32: {
		float single = (float)value;

		((float *)data)[at] = uniform && single >= (float)draw->b ? nextafterf((float)draw->b, (float)draw->a) : single;
		break;
	}
	case WEIR_F64: ((double *)data)[at] = uniform && value >= draw->b ? nextafter(draw->b, draw->a) : value; break;
	case WEIR_I32: ((int32_t *)data)[at] = (int32_t)(draw->a + floor((draw->b - draw->a) * x)); break;
	default: ((int64_t *)data)[at] = (int64_t)draw->a + (int64_t)((draw->b - draw->a) * x); break;
	}
}

static enum weir_status compute(const struct weiri_call *call, void *const data[])
{
	const struct draw *draw = call->node->attribute;
	uint64_t stream = mix(call->draws + call->node->id * UINT64_C(0x9E3779B97F4A7C15));
	int64_t count = 0;

	(void)weir_shape_element_count(&draw->shape, &count);
	for (size_t i = 0; i < (size_t)count; i += 2) {
		double two[2];

		two_uniform(draw, stream, i / 2, two);
		if (draw->distribution == NORMAL)
			two_normal(two);
		store(draw, data[0], i, two[0]);
		if (i + 1 < (size_t)count)
			store(draw, data[0], i + 1, two[1]);
	}
	return WEIR_OK;
}

static enum weir_status infer(const void *attribute, const struct weiri_spec inputs[], struct weiri_spec outputs[],
                              weir_error *error)
{
	const struct draw *draw = attribute;

	(void)inputs;
	outputs[0] = weiri_spec_of(draw->dtype, &draw->shape);
	return draw->distribution == NORMAL ? weiri_float_check(draw->dtype, error)
	                                    : weiri_numeric_check(draw->dtype, error);
}

/* The index is an enum distribution. */
static const struct weiri_op ops[] = {
	[UNIFORM] =
		{.name = "random_uniform", .traits = WEIRI_OP_DRAWS, .infer = infer, .compute = compute, .run = weiri_math_run},
	[NORMAL] =
		{.name = "random_normal", .traits = WEIRI_OP_DRAWS, .infer = infer, .compute = compute, .run = weiri_math_run},
};

static enum weir_status build(weir_graph *graph, const char *name, const struct draw *draw, const weir_shape *shape,
                              weir_output *out, weir_error *error)
{
	const struct weiri_op *op = &ops[draw->distribution];
	struct draw whole = *draw;
	int64_t count;

	if (shape == NULL || weir_shape_element_count(shape, &count) != WEIR_OK)
		return weiri_node_fail(error, WEIR_INVALID_ARGUMENT, op, name, "%s",
		                       shape == NULL ? "shape is NULL" : "the shape is not one of a tensor");
	whole.shape = *shape;
	return weiri_math_build(graph, op, name, NULL, 0, &whole, sizeof(whole), 1, out, error);
}

enum weir_status weir_op_random_uniform(weir_graph *graph, const char *name, enum weir_dtype dtype,
                                        const weir_shape *shape, double low, double high, uint64_t seed,
                                        weir_output *out, weir_error *error)
{
	struct draw draw;
	double least = dtype == WEIR_I32 ? -0x1p31 : -0x1p63;
	bool integer = dtype == WEIR_I32 || dtype == WEIR_I64;

	(void)memset(&draw, 0, sizeof(draw));
	if (integer) {
		low = ceil(low);
		high = ceil(high);
	} else if (dtype == WEIR_F32) {
		low = (double)(float)low;
		high = (double)(float)high;
	}
	if (!isfinite(low) || !isfinite(high) || !isfinite(high - low) || !(low < high))
		return weiri_node_fail(error, WEIR_INVALID_ARGUMENT, &ops[UNIFORM], name, "[%g, %g) is not a range", low, high);
	if (integer && (low < least || high > -least || high - low > 0x1p53))
		return weiri_node_fail(error, WEIR_INVALID_ARGUMENT, &ops[UNIFORM], name, "[%g, %g) is too large for %s", low,
		                       high, weir_dtype_name(dtype));
	draw.dtype = dtype;
	draw.a = low;
	draw.b = high;
	draw.seed = seed;
	return build(graph, name, &draw, shape, out, error);
}

enum weir_status weir_op_random_normal(weir_graph *graph, const char *name, enum weir_dtype dtype,
                                       const weir_shape *shape, double mean, double deviation, uint64_t seed,
                                       weir_output *out, weir_error *error)
{
	struct draw draw;

	(void)memset(&draw, 0, sizeof(draw));
	if (!isfinite(mean) || !isfinite(deviation))
		return weiri_node_fail(error, WEIR_INVALID_ARGUMENT, &ops[NORMAL], name, "mean %g, deviation %g: not finite",
		                       mean, deviation);
	draw.distribution = NORMAL;
	draw.dtype = dtype;
	draw.a = mean;
	draw.b = deviation;
	draw.seed = seed;
	return build(graph, name, &draw, shape, out, error);
}
