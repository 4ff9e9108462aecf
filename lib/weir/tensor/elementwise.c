/*
 * elementwise.c - sums and differences: one plain loop for each width and operation.
 *
 * Signed integers are added as unsigned integers of their width: the bits are the same, and
 * wrapping is defined (a signed type may be read through its unsigned counterpart). The conversion
 * to 8 and 16 bits after the promotion to int drops the carry.
 *
 * gcc -O2 vectorises a loop only if its trip count is known. So in_blocks() gives each loop a
 * constant count, and handles the remainder separately. Everything is inlined: each case of apply()
 * becomes two loops. Sums in place have loops of their own, in row.c. If they used these loops, the
 * result could be the left operand, and gcc could not see that the result overlaps no operand.
 */
#include "tensor/elementwise.h"

#include "base/compiler.h"
#include "tensor/wide.h"

typedef void loop(const void *a, const void *b, void *restrict out, size_t n, enum weiri_combine how);

static WEIRI_ALWAYS_INLINE void loop_8(const void *a, const void *b, void *restrict out, size_t n,
                                       enum weiri_combine how)
{
	const uint8_t *x = a;
	const uint8_t *y = b;
	uint8_t *z = out;

	for (size_t i = 0; i < n; i++)
		z[i] = (uint8_t)(how == WEIRI_COMBINE_ADD ? x[i] + y[i] : x[i] - y[i]);
}

static WEIRI_ALWAYS_INLINE void loop_16(const void *a, const void *b, void *restrict out, size_t n,
                                        enum weiri_combine how)
{
	const uint16_t *x = a;
	const uint16_t *y = b;
	uint16_t *z = out;

	for (size_t i = 0; i < n; i++)
		z[i] = (uint16_t)(how == WEIRI_COMBINE_ADD ? x[i] + y[i] : x[i] - y[i]);
}

static WEIRI_ALWAYS_INLINE void loop_32(const void *a, const void *b, void *restrict out, size_t n,
                                        enum weiri_combine how)
{
	const uint32_t *x = a;
	const uint32_t *y = b;
	uint32_t *z = out;

	for (size_t i = 0; i < n; i++)
		z[i] = how == WEIRI_COMBINE_ADD ? x[i] + y[i] : x[i] - y[i];
}

static WEIRI_ALWAYS_INLINE void loop_64(const void *a, const void *b, void *restrict out, size_t n,
                                        enum weiri_combine how)
{
	const uint64_t *x = a;
	const uint64_t *y = b;
	uint64_t *z = out;

	for (size_t i = 0; i < n; i++)
		z[i] = how == WEIRI_COMBINE_ADD ? x[i] + y[i] : x[i] - y[i];
}

static WEIRI_ALWAYS_INLINE void loop_f32(const void *a, const void *b, void *restrict out, size_t n,
                                         enum weiri_combine how)
{
	const float *x = a;
	const float *y = b;
	float *z = out;

	for (size_t i = 0; i < n; i++)
		z[i] = how == WEIRI_COMBINE_ADD ? x[i] + y[i] : x[i] - y[i];
}

static WEIRI_ALWAYS_INLINE void loop_f64(const void *a, const void *b, void *restrict out, size_t n,
                                         enum weiri_combine how)
{
	const double *x = a;
	const double *y = b;
	double *z = out;

	for (size_t i = 0; i < n; i++)
		z[i] = how == WEIRI_COMBINE_ADD ? x[i] + y[i] : x[i] - y[i];
}

struct operands {
	const char *a;
	const char *b;
	char *out;
	size_t n;
};

static WEIRI_ALWAYS_INLINE void in_blocks(loop *body, size_t size, const struct operands *on, enum weiri_combine how)
{
	enum { BLOCK = 64 };
	size_t i = 0;

	for (; on->n - i >= BLOCK; i += BLOCK)
		body(on->a + i * size, on->b + i * size, on->out + i * size, BLOCK, how);
	/*
	 * The test also avoids arithmetic on NULL, which is the data of a wrapped tensor without
	 * elements.
	 */
	if (i < on->n)
		body(on->a + i * size, on->b + i * size, on->out + i * size, on->n - i, how);
}

static WEIRI_ALWAYS_INLINE void apply(enum weir_dtype dtype, const struct operands *on, enum weiri_combine how)
{
	switch (dtype) {
	case WEIR_U8:
	case WEIR_I8: in_blocks(loop_8, sizeof(uint8_t), on, how); break;
	case WEIR_U16:
	case WEIR_I16: in_blocks(loop_16, sizeof(uint16_t), on, how); break;
	case WEIR_U32:
	case WEIR_I32: in_blocks(loop_32, sizeof(uint32_t), on, how); break;
	case WEIR_U64:
	case WEIR_I64: in_blocks(loop_64, sizeof(uint64_t), on, how); break;
	case WEIR_F32: in_blocks(loop_f32, sizeof(float), on, how); break;
	case WEIR_F64: in_blocks(loop_f64, sizeof(double), on, how); break;
	case WEIR_BOOL:
	case WEIR_F16:
	case WEIR_BF16:
	case WEIR_BYTES: break; /* refused by weiri_combine_check() */
	}
}

static WEIRI_ALWAYS_INLINE void apply_either(enum weir_dtype dtype, const struct operands *on, enum weiri_combine how)
{
	if (how == WEIRI_COMBINE_ADD)
		apply(dtype, on, WEIRI_COMBINE_ADD);
	else
		apply(dtype, on, WEIRI_COMBINE_SUBTRACT);
}

static WEIRI_WIDE void apply_wide(enum weir_dtype dtype, const struct operands *on, enum weiri_combine how)
{
	apply_either(dtype, on, how);
}

void weiri_elementwise_apply(enum weir_dtype dtype, enum weiri_combine how, const void *a, const void *b, void *out,
                             size_t n)
{
	const struct operands on = {a, b, out, n};

	if (weiri_is_wide())
		apply_wide(dtype, &on, how);
	else
		apply_either(dtype, &on, how);
}
