/*
 * elementwise.h - sums and differences of tensors, for variables and the dataflow layer.
 *
 * Integers wrap, signed ones too (two's complement); floats follow IEEE 754. Lock-free but for the allocation.
 */
#ifndef WEIRI_TENSOR_ELEMENTWISE_H
#define WEIRI_TENSOR_ELEMENTWISE_H

#include <stddef.h>
#include <weir/tensor.h>

#include "tensor/row.h"

/* out[i] = a[i] + b[i], or - (WEIRI_COMBINE_ADD, _SUBTRACT, of a dtype that has them), of n elements; out overlaps neither operand. */
void weiri_elementwise_apply(enum weir_dtype dtype, enum weiri_combine how, const void *a, const void *b, void *out,
                             size_t n);

/*
 * *out = a + b in a tensor of its own. allocator may be NULL. WEIR_INVALID_ARGUMENT (dtype or shape differ),
 * WEIR_UNIMPLEMENTED (bool, f16, bytes), WEIR_RESOURCE_EXHAUSTED; *out is untouched on error.
 */
enum weir_status weiri_tensor_add(const weir_tensor *a, const weir_tensor *b, const weir_allocator *allocator,
                                  weir_tensor **out);
/* *out = a - b; else the same. */
enum weir_status weiri_tensor_subtract(const weir_tensor *a, const weir_tensor *b, const weir_allocator *allocator,
                                       weir_tensor **out);

#endif
