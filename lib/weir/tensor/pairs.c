/*
 * pairs.c - see pairs.h.
 */
#include "tensor/pairs.h"

#include <string.h>

#include "base/error.h"
#include "tensor/elementwise.h"
#include "tensor/row.h"

/* A block is so large that a call for it costs little, and that a few of them fit into 32 KiB. */
enum { BLOCK_BYTES = 4096, DEPTH = 8 };

_Static_assert((int)WEIRI_PAIRS_MAX <= 1 << (int)DEPTH, "a level of the tree for each block");

enum weir_status weiri_pairs_check(enum weir_dtype dtype, bool divides, weir_error *error)
{
	bool is_float = dtype == WEIR_F32 || dtype == WEIR_F64;

	if (is_float || (!divides && (dtype == WEIR_I32 || dtype == WEIR_I64)))
		return WEIR_OK;
	return weiri_fail(error, WEIR_UNIMPLEMENTED, "expected %s, got %s",
	                  divides ? "f32 or f64 for a mean" : "i32, i64, f32 or f64", weir_dtype_name(dtype));
}

/* As in elementwise.c: gcc -O2 vectorises loops whose count is known. */
enum { STRIDE = 16 };

static void divide_f32(float divisor, float *x, size_t n)
{
	size_t i = 0;

	for (; n - i >= STRIDE; i += STRIDE) {
		for (size_t j = 0; j < STRIDE; j++)
			x[i + j] /= divisor;
	}
	for (; i < n; i++)
		x[i] /= divisor;
}

static void divide_f64(double divisor, double *x, size_t n)
{
	size_t i = 0;

	for (; n - i >= STRIDE; i += STRIDE) {
		for (size_t j = 0; j < STRIDE; j++)
			x[i + j] /= divisor;
	}
	for (; i < n; i++)
		x[i] /= divisor;
}

/* A divisor of 1 changes nothing. */
static void divide(enum weir_dtype dtype, uint64_t divisor, void *data, size_t n)
{
	if (divisor != 1 && dtype == WEIR_F32)
		divide_f32((float)divisor, data, n);
	else if (divisor != 1 && dtype == WEIR_F64)
		divide_f64((double)divisor, data, n);
}

/* The room for what is added up in between: a block for each level of the tree. */
struct spare_blocks {
	_Alignas(64) char blocks[DEPTH][BLOCK_BYTES];
};

static size_t largest_power_below(size_t count)
{
	size_t power = 1;

	while (power * 2 < count)
		power *= 2;
	return power;
}

static void add(enum weir_dtype dtype, const void *a, const void *b, void *to, size_t n)
{
	if (a == to)
		weiri_row_combine(WEIRI_COMBINE_ADD, dtype, to, b, n);
	else
		weiri_elementwise_apply(dtype, WEIRI_COMBINE_ADD, a, b, to, n);
}

/* One block of the arrays: n elements that begin at byte `at`. */
struct block {
	enum weir_dtype dtype;
	const void *const *arrays;
	size_t at, n;
};

/*
 * Sums arrays first .. first+count-1. Returns where the sum is: in `to`, or in the array itself if it
 * is the only one. `level` of the spare blocks and those above it are free.
 */
/* NOLINTNEXTLINE(misc-no-recursion): halves what is left. */
static const void *sum_block(const struct block *b, size_t first, size_t count, void *to, struct spare_blocks *spare,
                             unsigned level)
{
	size_t half;
	const void *left, *right;

	if (count == 1)
		return (const char *)b->arrays[first] + b->at;
	half = largest_power_below(count);
	left = sum_block(b, first, half, to, spare, level);
	right = sum_block(b, first + half, count - half, spare->blocks[level], spare, level + 1);
	add(b->dtype, left, right, to, b->n);
	return to;
}

static void sum_in_blocks(enum weir_dtype dtype, const void *const arrays[], size_t count, uint64_t divisor, void *to,
                          size_t n)
{
	struct spare_blocks spare;
	size_t size = weir_dtype_size(dtype);
	size_t columns = BLOCK_BYTES / size;

	for (size_t i = 0; i < n; i += columns) {
		struct block block = {dtype, arrays, i * size, n - i < columns ? n - i : columns};
		void *place = (char *)to + block.at;

		(void)sum_block(&block, 0, count, place, &spare, 0);
		divide(dtype, divisor, place, block.n);
	}
}

void weiri_pairs_sum(enum weir_dtype dtype, const void *const arrays[], size_t count, uint64_t divisor, void *to,
                     size_t n)
{
	if (n == 0)
		return;
	if (count == 1) {
		if (to != arrays[0])
			(void)memcpy(to, arrays[0], n * weir_dtype_size(dtype));
		divide(dtype, divisor, to, n);
	} else if (count == 2 && divisor == 1) {
		add(dtype, arrays[0], arrays[1], to, n);
	} else {
		sum_in_blocks(dtype, arrays, count, divisor, to, n);
	}
}
