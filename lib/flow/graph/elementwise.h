/*
 * elementwise.h - how the operands of a binary op pair up, element by element.
 *
 * Two shapes fit if they are equal, if one is a scalar, or if one equals the last dims of the
 * other. So the smaller operand is repeated as a whole, once for each row of the larger one, and
 * each row is one loop over contiguous elements.
 */
#ifndef WEIRI_ELEMENTWISE_H
#define WEIRI_ELEMENTWISE_H

#include "graph/op.h"

/* Row i begins at element i * columns of an operand that is not repeated, and at 0 of one that is. */
struct weiri_pairing {
	size_t total; /* elements of the output */
	size_t columns;
	size_t a_step, b_step;     /* elements from one row to the next: columns or 0 */
	size_t a_stride, b_stride; /* elements from one column to the next: 1, or 0 for a scalar */
};

/* The operands fit, as weiri_pair_specs() has found. */
static inline struct weiri_pairing weiri_pair(const weir_tensor *a, const weir_tensor *b)
{
	size_t a_count = (size_t)weir_tensor_element_count(a);
	size_t b_count = (size_t)weir_tensor_element_count(b);
	size_t total = weir_tensor_shape(a)->rank >= weir_tensor_shape(b)->rank ? a_count : b_count;
	bool scalar_a = a_count == 1 && total != 1;
	bool scalar_b = b_count == 1 && total != 1;
	struct weiri_pairing pairing;

	pairing.total = total;
	pairing.columns = scalar_a || scalar_b ? total : (a_count < b_count ? a_count : b_count);
	pairing.a_step = a_count == total ? pairing.columns : 0;
	pairing.b_step = b_count == total ? pairing.columns : 0;
	pairing.a_stride = scalar_a ? 0 : 1;
	pairing.b_stride = scalar_b ? 0 : 1;
	return pairing;
}

/*
 * Sets *out to the spec of the larger operand; a dim that is known in only one of them is known in
 * *out. Fails with WEIR_INVALID_ARGUMENT if the dtypes differ, or no tensors of these specs fit.
 */
enum weir_status weiri_pair_specs(const struct weiri_spec *a, const struct weiri_spec *b, struct weiri_spec *out,
                                  weir_error *error);

#endif
