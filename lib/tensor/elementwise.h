/*
 * elementwise.h - sums and differences of tensors, for variables and the dataflow layer.
 *
 * Integers wrap, signed ones too (two's complement); floats follow IEEE 754. Lock-free but for the allocation.
 */
#ifndef WEIRI_TENSOR_ELEMENTWISE_H
#define WEIRI_TENSOR_ELEMENTWISE_H

#include <weir/tensor.h>

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
