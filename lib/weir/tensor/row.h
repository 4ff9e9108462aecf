/*
 * row.h - rows of tensors combined element by element, in place.
 */
#ifndef WEIRI_TENSOR_ROW_H
#define WEIRI_TENSOR_ROW_H

#include <stddef.h>
#include <weir/tensor.h>

#include "base/compiler.h"

/* The numbers are those of enum weir_scatter (weir/scatter.h). */
enum weiri_combine {
	WEIRI_COMBINE_REPLACE = 1,
	WEIRI_COMBINE_ADD = 2,
	WEIRI_COMBINE_SUBTRACT = 3,
	WEIRI_COMBINE_MULTIPLY = 4,
	WEIRI_COMBINE_DIVIDE = 5,
	WEIRI_COMBINE_MINIMUM = 6,
	WEIRI_COMBINE_MAXIMUM = 7,
};

/*
 * Errors: WEIR_INVALID_ARGUMENT if there is no such operation; WEIR_UNIMPLEMENTED if this dtype
 * does not have it.
 */
enum weir_status weiri_combine_check(enum weiri_combine how, enum weir_dtype dtype);
/* Returns true if n elements at `data` include an integer 0. */
bool weiri_has_integer_zero(enum weir_dtype dtype, const void *data, size_t n);
/*
 * Combines to[i] with from[i], for i < n. The arrays do not overlap, the operation was checked, and
 * no integer is divided by 0.
 */
WEIRI_SHARED void weiri_row_combine(enum weiri_combine how, enum weir_dtype dtype, void *to, const void *from,
                                    size_t n);

#endif
