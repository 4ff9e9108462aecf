/*
 * pairs.h - the sum of several arrays, by pairs in a fixed order.
 *
 * Of four arrays the sum is (0 + 1) + (2 + 3); of n, the sum of the first m plus the sum of the
 * others, where m is the largest power of two below n. So the bits of the result depend on the
 * operands alone. And the sum of 2^k ranks with 2^j arrays each is that of 2^(k+j) arrays.
 *
 * The arrays are added block by block, so that what is added up in between stays in the nearest
 * cache: each operand is read once, and the result written once.
 */
#ifndef WEIRI_TENSOR_PAIRS_H
#define WEIRI_TENSOR_PAIRS_H

#include <stddef.h>
#include <stdint.h>
#include <weir/tensor.h>

#include "base/compiler.h"

enum { WEIRI_PAIRS_MAX = 256 };

/*
 * Returns WEIR_OK if arrays of this dtype can be summed and, if `divides`, divided. Otherwise
 * WEIR_UNIMPLEMENTED.
 */
WEIRI_SHARED enum weir_status weiri_pairs_check(enum weir_dtype dtype, bool divides, weir_error *error);

/*
 * Sets to[i], for i < n, to the sum of arrays[0 .. count-1][i], divided by `divisor`. `to` may be
 * arrays[0], and overlaps no other array. count is 1 .. WEIRI_PAIRS_MAX.
 */
WEIRI_SHARED void weiri_pairs_sum(enum weir_dtype dtype, const void *const arrays[], size_t count, uint64_t divisor,
                                  void *to, size_t n);

#endif
