/*
 * elementwise.h - sums and differences, element by element.
 *
 * Integers wrap, signed ones too (two's complement); floats follow IEEE 754.
 */
#ifndef WEIRI_TENSOR_ELEMENTWISE_H
#define WEIRI_TENSOR_ELEMENTWISE_H

#include <stddef.h>
#include <weir/tensor.h>

#include "tensor/row.h"

/*
 * Computes out[i] = a[i] + b[i] (WEIRI_COMBINE_ADD) or a[i] - b[i] (WEIRI_COMBINE_SUBTRACT) for n
 * elements. The dtype supports the operation, and out overlaps neither operand.
 */
void weiri_elementwise_apply(enum weir_dtype dtype, enum weiri_combine how, const void *a, const void *b, void *out,
                             size_t n);

#endif
