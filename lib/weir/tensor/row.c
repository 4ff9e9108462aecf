/*
 * row.c - rows combined in place: a plain loop for each dtype and operation, chosen once for each
 * row.
 *
 * As in elementwise.c, everything is inlined with a constant `how`. So each case is three loops
 * without a branch inside: two of a constant length, which gcc -O2 vectorises, and one for the
 * remainder. Integers of up to 32 bits are computed in 64 bits and truncated; the compiler narrows
 * them again where it can. Integers of 64 bits are computed as unsigned, so that wrapping is
 * defined; and so are those of u32, whose product may exceed an int64_t.
 */
#include "tensor/row.h"

#include <stdint.h>
#include <string.h>

#include "base/compiler.h"
#include "tensor/wide.h"

enum weir_status weiri_combine_check(enum weiri_combine how, enum weir_dtype dtype)
{
	if (how < WEIRI_COMBINE_REPLACE || how > WEIRI_COMBINE_MAXIMUM)
		return WEIR_INVALID_ARGUMENT;
	if (dtype == WEIR_BYTES)
		return WEIR_UNIMPLEMENTED;
	if (how == WEIRI_COMBINE_REPLACE)
		return WEIR_OK;
	return dtype == WEIR_BOOL || dtype == WEIR_F16 || dtype == WEIR_BF16 ? WEIR_UNIMPLEMENTED : WEIR_OK;
}

/* -- one element ------------------------------------------------------------------------------- */

/* For integers of at most 32 bits, but not u32, so that no result overflows 64 bits. */
static WEIRI_ALWAYS_INLINE int64_t of_small(int64_t x, int64_t y, enum weiri_combine how)
{
	switch (how) {
	case WEIRI_COMBINE_ADD: return x + y;
	case WEIRI_COMBINE_SUBTRACT: return x - y;
	case WEIRI_COMBINE_MULTIPLY: return x * y;
	case WEIRI_COMBINE_DIVIDE: return x / y;
	case WEIRI_COMBINE_MINIMUM: return y < x ? y : x;
	case WEIRI_COMBINE_MAXIMUM: return y > x ? y : x;
	default: return y;
	}
}

static WEIRI_ALWAYS_INLINE int64_t of_i64(int64_t x, int64_t y, enum weiri_combine how)
{
	switch (how) {
	case WEIRI_COMBINE_ADD: return (int64_t)((uint64_t)x + (uint64_t)y);
	case WEIRI_COMBINE_SUBTRACT: return (int64_t)((uint64_t)x - (uint64_t)y);
	case WEIRI_COMBINE_MULTIPLY: return (int64_t)((uint64_t)x * (uint64_t)y);
	/* INT64_MIN / -1 wraps too. */
	case WEIRI_COMBINE_DIVIDE: return y == -1 ? (int64_t)(0 - (uint64_t)x) : x / y;
	default: return of_small(x, y, how);
	}
}

static WEIRI_ALWAYS_INLINE uint64_t of_u64(uint64_t x, uint64_t y, enum weiri_combine how)
{
	switch (how) {
	case WEIRI_COMBINE_ADD: return x + y;
	case WEIRI_COMBINE_SUBTRACT: return x - y;
	case WEIRI_COMBINE_MULTIPLY: return x * y;
	case WEIRI_COMBINE_DIVIDE: return x / y;
	case WEIRI_COMBINE_MINIMUM: return y < x ? y : x;
	case WEIRI_COMBINE_MAXIMUM: return y > x ? y : x;
	default: return y;
	}
}

static WEIRI_ALWAYS_INLINE float of_f32(float x, float y, enum weiri_combine how)
{
	switch (how) {
	case WEIRI_COMBINE_ADD: return x + y;
	case WEIRI_COMBINE_SUBTRACT: return x - y;
	case WEIRI_COMBINE_MULTIPLY: return x * y;
	case WEIRI_COMBINE_DIVIDE: return x / y;
	case WEIRI_COMBINE_MINIMUM: return y < x ? y : x;
	case WEIRI_COMBINE_MAXIMUM: return y > x ? y : x;
	default: return y;
	}
}

static WEIRI_ALWAYS_INLINE double of_f64(double x, double y, enum weiri_combine how)
{
	switch (how) {
	case WEIRI_COMBINE_ADD: return x + y;
	case WEIRI_COMBINE_SUBTRACT: return x - y;
	case WEIRI_COMBINE_MULTIPLY: return x * y;
	case WEIRI_COMBINE_DIVIDE: return x / y;
	case WEIRI_COMBINE_MINIMUM: return y < x ? y : x;
	case WEIRI_COMBINE_MAXIMUM: return y > x ? y : x;
	default: return y;
	}
}

/* -- loops ------------------------------------------------------------------------------------- */

typedef void loop(void *restrict to, const void *restrict from, size_t n, enum weiri_combine how);

static WEIRI_ALWAYS_INLINE void loop_u8(void *restrict to, const void *restrict from, size_t n, enum weiri_combine how)
{
	uint8_t *x = to;
	const uint8_t *y = from;

	for (size_t i = 0; i < n; i++)
		x[i] = (uint8_t)of_small(x[i], y[i], how);
}

static WEIRI_ALWAYS_INLINE void loop_i8(void *restrict to, const void *restrict from, size_t n, enum weiri_combine how)
{
	int8_t *x = to;
	const int8_t *y = from;

	for (size_t i = 0; i < n; i++)
		x[i] = (int8_t)of_small(x[i], y[i], how);
}

static WEIRI_ALWAYS_INLINE void loop_i16(void *restrict to, const void *restrict from, size_t n, enum weiri_combine how)
{
	int16_t *x = to;
	const int16_t *y = from;

	for (size_t i = 0; i < n; i++)
		x[i] = (int16_t)of_small(x[i], y[i], how);
}

static WEIRI_ALWAYS_INLINE void loop_i32(void *restrict to, const void *restrict from, size_t n, enum weiri_combine how)
{
	int32_t *x = to;
	const int32_t *y = from;

	for (size_t i = 0; i < n; i++)
		x[i] = (int32_t)of_small(x[i], y[i], how);
}

static WEIRI_ALWAYS_INLINE void loop_i64(void *restrict to, const void *restrict from, size_t n, enum weiri_combine how)
{
	int64_t *x = to;
	const int64_t *y = from;

	for (size_t i = 0; i < n; i++)
		x[i] = of_i64(x[i], y[i], how);
}

static WEIRI_ALWAYS_INLINE void loop_u16(void *restrict to, const void *restrict from, size_t n, enum weiri_combine how)
{
	uint16_t *x = to;
	const uint16_t *y = from;

	for (size_t i = 0; i < n; i++)
		x[i] = (uint16_t)of_small(x[i], y[i], how);
}

static WEIRI_ALWAYS_INLINE void loop_u32(void *restrict to, const void *restrict from, size_t n, enum weiri_combine how)
{
	uint32_t *x = to;
	const uint32_t *y = from;

	for (size_t i = 0; i < n; i++)
		x[i] = (uint32_t)of_u64(x[i], y[i], how);
}

static WEIRI_ALWAYS_INLINE void loop_u64(void *restrict to, const void *restrict from, size_t n, enum weiri_combine how)
{
	uint64_t *x = to;
	const uint64_t *y = from;

	for (size_t i = 0; i < n; i++)
		x[i] = of_u64(x[i], y[i], how);
}

static WEIRI_ALWAYS_INLINE void loop_f32(void *restrict to, const void *restrict from, size_t n, enum weiri_combine how)
{
	float *x = to;
	const float *y = from;

	for (size_t i = 0; i < n; i++)
		x[i] = of_f32(x[i], y[i], how);
}

static WEIRI_ALWAYS_INLINE void loop_f64(void *restrict to, const void *restrict from, size_t n, enum weiri_combine how)
{
	double *x = to;
	const double *y = from;

	for (size_t i = 0; i < n; i++)
		x[i] = of_f64(x[i], y[i], how);
}

static WEIRI_ALWAYS_INLINE void in_blocks(loop *body, size_t size, char *to, const char *from, size_t n,
                                          enum weiri_combine how)
{
	enum { BLOCK = 64, SMALL_BLOCK = 16 };
	size_t i = 0;

	for (; n - i >= BLOCK; i += BLOCK)
		body(to + i * size, from + i * size, BLOCK, how);
	for (; n - i >= SMALL_BLOCK; i += SMALL_BLOCK)
		body(to + i * size, from + i * size, SMALL_BLOCK, how);
	if (i < n)
		body(to + i * size, from + i * size, n - i, how);
}

static WEIRI_ALWAYS_INLINE void combine(enum weir_dtype dtype, void *to, const void *from, size_t n,
                                        enum weiri_combine how)
{
	switch (dtype) {
	case WEIR_U8: in_blocks(loop_u8, sizeof(uint8_t), to, from, n, how); break;
	case WEIR_I8: in_blocks(loop_i8, sizeof(int8_t), to, from, n, how); break;
	case WEIR_I16: in_blocks(loop_i16, sizeof(int16_t), to, from, n, how); break;
	case WEIR_I32: in_blocks(loop_i32, sizeof(int32_t), to, from, n, how); break;
	case WEIR_I64: in_blocks(loop_i64, sizeof(int64_t), to, from, n, how); break;
	case WEIR_U16: in_blocks(loop_u16, sizeof(uint16_t), to, from, n, how); break;
	case WEIR_U32: in_blocks(loop_u32, sizeof(uint32_t), to, from, n, how); break;
	case WEIR_U64: in_blocks(loop_u64, sizeof(uint64_t), to, from, n, how); break;
	case WEIR_F32: in_blocks(loop_f32, sizeof(float), to, from, n, how); break;
	case WEIR_F64: in_blocks(loop_f64, sizeof(double), to, from, n, how); break;
	case WEIR_BOOL:
	case WEIR_F16:
	case WEIR_BF16:
	case WEIR_BYTES: break; /* not called: weiri_combine_check() refuses these */
	}
}

static WEIRI_WIDE void add_wide(enum weir_dtype dtype, void *to, const void *from, size_t n, enum weiri_combine how)
{
	if (how == WEIRI_COMBINE_ADD)
		combine(dtype, to, from, n, WEIRI_COMBINE_ADD);
	else
		combine(dtype, to, from, n, WEIRI_COMBINE_SUBTRACT);
}

/* Below this many elements the question costs more than wider vectors save. */
enum { WIDE_FROM = 32 };

void weiri_row_combine(enum weiri_combine how, enum weir_dtype dtype, void *to, const void *from, size_t n)
{
	if (n >= WIDE_FROM && (how == WEIRI_COMBINE_ADD || how == WEIRI_COMBINE_SUBTRACT) && weiri_is_wide()) {
		add_wide(dtype, to, from, n, how);
		return;
	}
	/* Data without elements may be NULL. */
	if (n == 0)
		return;
	switch (how) {
	case WEIRI_COMBINE_REPLACE: memcpy(to, from, n * weir_dtype_size(dtype)); break;
	case WEIRI_COMBINE_ADD: combine(dtype, to, from, n, WEIRI_COMBINE_ADD); break;
	case WEIRI_COMBINE_SUBTRACT: combine(dtype, to, from, n, WEIRI_COMBINE_SUBTRACT); break;
	case WEIRI_COMBINE_MULTIPLY: combine(dtype, to, from, n, WEIRI_COMBINE_MULTIPLY); break;
	case WEIRI_COMBINE_DIVIDE: combine(dtype, to, from, n, WEIRI_COMBINE_DIVIDE); break;
	case WEIRI_COMBINE_MINIMUM: combine(dtype, to, from, n, WEIRI_COMBINE_MINIMUM); break;
	case WEIRI_COMBINE_MAXIMUM: combine(dtype, to, from, n, WEIRI_COMBINE_MAXIMUM); break;
	}
}

bool weiri_has_integer_zero(enum weir_dtype dtype, const void *data, size_t n)
{
	static const char zero[sizeof(int64_t)];
	size_t size = weir_dtype_size(dtype);

	if (dtype == WEIR_F32 || dtype == WEIR_F64)
		return false;
	for (size_t i = 0; i < n; i++) {
		if (memcmp((const char *)data + i * size, zero, size) == 0)
			return true;
	}
	return false;
}
