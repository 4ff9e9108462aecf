/*
 * elementwise.c - sums and differences, one plain loop per width and operation.
 *
 * Signed integers are added as unsigned ones of their width: the same bits, and wrapping is defined (a signed type may be read
 * through its unsigned counterpart). The conversion to 8 and 16 bits after the promotion to int drops the carry.
 *
 * gcc -O2 vectorises a loop only if its trip count is known, so in_blocks() hands each loop a constant one, and what remains
 * at the end separately. Everything is inlined: each case of apply() becomes two loops. Sums in place have loops of their own: were one
 * pointer the left operand or the result, depending on the place, gcc would not see that the result overlaps nothing.
 */
#include "tensor/elementwise.h"

#include "base/compiler.h"
#include "tensor/object.h"

/* Where the left operand is: apart from the result, as the right one always is; or it is what the result replaces. */
enum place { APART, IN_PLACE };

typedef void loop(const void *a, const void *b, void *restrict out, size_t n, enum weiri_elementwise operation,
                  enum place place);

static WEIRI_ALWAYS_INLINE void loop_8(const void *a, const void *b, void *restrict out, size_t n,
                                       enum weiri_elementwise operation, enum place place)
{
	const uint8_t *x = a;
	const uint8_t *y = b;
	uint8_t *z = out;

	if (place == APART) {
		for (size_t i = 0; i < n; i++)
			z[i] = (uint8_t)(operation == WEIRI_ADD ? x[i] + y[i] : x[i] - y[i]);
	} else {
		for (size_t i = 0; i < n; i++)
			z[i] = (uint8_t)(operation == WEIRI_ADD ? z[i] + y[i] : z[i] - y[i]);
	}
}

static WEIRI_ALWAYS_INLINE void loop_16(const void *a, const void *b, void *restrict out, size_t n,
                                        enum weiri_elementwise operation, enum place place)
{
	const uint16_t *x = a;
	const uint16_t *y = b;
	uint16_t *z = out;

	if (place == APART) {
		for (size_t i = 0; i < n; i++)
			z[i] = (uint16_t)(operation == WEIRI_ADD ? x[i] + y[i] : x[i] - y[i]);
	} else {
		for (size_t i = 0; i < n; i++)
			z[i] = (uint16_t)(operation == WEIRI_ADD ? z[i] + y[i] : z[i] - y[i]);
	}
}

static WEIRI_ALWAYS_INLINE void loop_32(const void *a, const void *b, void *restrict out, size_t n,
                                        enum weiri_elementwise operation, enum place place)
{
	const uint32_t *x = a;
	const uint32_t *y = b;
	uint32_t *z = out;

	if (place == APART) {
		for (size_t i = 0; i < n; i++)
			z[i] = operation == WEIRI_ADD ? x[i] + y[i] : x[i] - y[i];
	} else {
		for (size_t i = 0; i < n; i++)
			z[i] = operation == WEIRI_ADD ? z[i] + y[i] : z[i] - y[i];
	}
}

static WEIRI_ALWAYS_INLINE void loop_64(const void *a, const void *b, void *restrict out, size_t n,
                                        enum weiri_elementwise operation, enum place place)
{
	const uint64_t *x = a;
	const uint64_t *y = b;
	uint64_t *z = out;

	if (place == APART) {
		for (size_t i = 0; i < n; i++)
			z[i] = operation == WEIRI_ADD ? x[i] + y[i] : x[i] - y[i];
	} else {
		for (size_t i = 0; i < n; i++)
			z[i] = operation == WEIRI_ADD ? z[i] + y[i] : z[i] - y[i];
	}
}

static WEIRI_ALWAYS_INLINE void loop_f32(const void *a, const void *b, void *restrict out, size_t n,
                                         enum weiri_elementwise operation, enum place place)
{
	const float *x = a;
	const float *y = b;
	float *z = out;

	if (place == APART) {
		for (size_t i = 0; i < n; i++)
			z[i] = operation == WEIRI_ADD ? x[i] + y[i] : x[i] - y[i];
	} else {
		for (size_t i = 0; i < n; i++)
			z[i] = operation == WEIRI_ADD ? z[i] + y[i] : z[i] - y[i];
	}
}

static WEIRI_ALWAYS_INLINE void loop_f64(const void *a, const void *b, void *restrict out, size_t n,
                                         enum weiri_elementwise operation, enum place place)
{
	const double *x = a;
	const double *y = b;
	double *z = out;

	if (place == APART) {
		for (size_t i = 0; i < n; i++)
			z[i] = operation == WEIRI_ADD ? x[i] + y[i] : x[i] - y[i];
	} else {
		for (size_t i = 0; i < n; i++)
			z[i] = operation == WEIRI_ADD ? z[i] + y[i] : z[i] - y[i];
	}
}

struct operands {
	const char *a;
	const char *b;
	char *out;
	size_t n;
};

static WEIRI_ALWAYS_INLINE void in_blocks(loop *body, size_t size, const struct operands *on,
                                          enum weiri_elementwise operation, enum place place)
{
	enum { BLOCK = 64 };
	size_t i = 0;

	for (; on->n - i >= BLOCK; i += BLOCK)
		body(on->a + i * size, on->b + i * size, on->out + i * size, BLOCK, operation, place);
	/* Also keeps a wrapped tensor without elements, whose data is NULL, away from pointer arithmetic. */
	if (i < on->n)
		body(on->a + i * size, on->b + i * size, on->out + i * size, on->n - i, operation, place);
}

static WEIRI_ALWAYS_INLINE void apply(enum weir_dtype dtype, const struct operands *on,
                                      enum weiri_elementwise operation, enum place place)
{
	switch (dtype) {
	case WEIR_U8:
	case WEIR_I8: in_blocks(loop_8, sizeof(uint8_t), on, operation, place); break;
	case WEIR_I16: in_blocks(loop_16, sizeof(uint16_t), on, operation, place); break;
	case WEIR_I32: in_blocks(loop_32, sizeof(uint32_t), on, operation, place); break;
	case WEIR_I64: in_blocks(loop_64, sizeof(uint64_t), on, operation, place); break;
	case WEIR_F32: in_blocks(loop_f32, sizeof(float), on, operation, place); break;
	case WEIR_F64: in_blocks(loop_f64, sizeof(double), on, operation, place); break;
	case WEIR_BOOL:
	case WEIR_F16:
	case WEIR_BYTES: break; /* refused by weiri_elementwise_has() */
	}
}

int weiri_elementwise_has(enum weir_dtype dtype)
{
	return dtype != WEIR_BOOL && dtype != WEIR_F16 && dtype != WEIR_BYTES;
}

void weiri_elementwise_apply(enum weir_dtype dtype, enum weiri_elementwise operation, const void *a, const void *b,
                             void *out, size_t n)
{
	const struct operands on = {a, b, out, n};

	if (operation == WEIRI_ADD)
		apply(dtype, &on, WEIRI_ADD, APART);
	else
		apply(dtype, &on, WEIRI_SUBTRACT, APART);
}

void weiri_elementwise_apply_in_place(enum weir_dtype dtype, enum weiri_elementwise operation, void *out, const void *b,
                                      size_t n)
{
	const struct operands on = {out, b, out, n};

	if (operation == WEIRI_ADD)
		apply(dtype, &on, WEIRI_ADD, IN_PLACE);
	else
		apply(dtype, &on, WEIRI_SUBTRACT, IN_PLACE);
}

/* Checks the operands, and makes the tensor for the result. */
static enum weir_status combine(const weir_tensor *a, const weir_tensor *b, enum weiri_elementwise operation,
                                const weir_allocator *allocator, weir_tensor **out)
{
	enum weir_status status;

	if (a->dtype != b->dtype || !weir_shape_equal(&a->shape, &b->shape))
		return WEIR_INVALID_ARGUMENT;
	if (!weiri_elementwise_has(a->dtype))
		return WEIR_UNIMPLEMENTED;
	status = weiri_tensor_create(a->dtype, &a->shape, 0, allocator, out);
	if (status == WEIR_OK)
		weiri_elementwise_apply(a->dtype, operation, a->data, b->data, (*out)->data, (size_t)a->elements);
	return status;
}

enum weir_status weiri_tensor_add(const weir_tensor *a, const weir_tensor *b, const weir_allocator *allocator,
                                  weir_tensor **out)
{
	return combine(a, b, WEIRI_ADD, allocator, out);
}

enum weir_status weiri_tensor_subtract(const weir_tensor *a, const weir_tensor *b, const weir_allocator *allocator,
                                       weir_tensor **out)
{
	return combine(a, b, WEIRI_SUBTRACT, allocator, out);
}
