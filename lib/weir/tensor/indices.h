/*
 * indices.h - rows selected by a tensor of indices, and updates of these rows.
 */
#ifndef WEIRI_TENSOR_INDICES_H
#define WEIRI_TENSOR_INDICES_H

#include <weir/tensor.h>

#include "base/compiler.h"
#include "tensor/row.h"

/*
 * The rows of a tensor's first dimension, or of a table. `what` and `name` are for messages:
 * variable "x".
 */
struct weiri_rows {
	const char *what;
	const char *name;
	enum weir_dtype dtype;
	int64_t count;
	weir_shape shape; /* of one row */
	size_t elements;  /* of one row; 0 if there are no rows */
	size_t bytes;     /* of one row; 0 if there are no rows */
};

/*
 * Computes the rows of a value of this dtype and shape. Errors: WEIR_INVALID_ARGUMENT for a scalar,
 * which has no rows; WEIR_UNIMPLEMENTED for WEIR_BYTES.
 */
WEIRI_SHARED enum weir_status weiri_rows_of(const char *what, const char *name, enum weir_dtype dtype,
                                            const weir_shape *shape, struct weiri_rows *rows, weir_error *error);

/* Returns the index at position i of a tensor that passed weiri_indices_check(). */
WEIRI_SHARED int64_t weiri_index_at(const weir_tensor *indices, int64_t i);

/*
 * Errors: WEIR_INVALID_ARGUMENT if the indices are NULL or neither i32 nor i64, or if one of them
 * is not in [0, rows->count).
 */
WEIRI_SHARED enum weir_status weiri_indices_check(const struct weiri_rows *rows, const weir_tensor *indices,
                                                  weir_error *error);

/*
 * A scatter: for each index in order, combines rows[index] with the elements at `from`, which
 * advances by `step` bytes.
 */
struct weiri_scatter {
	enum weiri_combine how;
	const weir_tensor *indices;
	const char *from;
	size_t step;
	void *row; /* a scalar repeated for each element of a row; NULL: not needed */
};

/*
 * Checks everything except that `rows` describes the value that will be changed. After success,
 * weiri_scatter_fini() must end *scatter.
 */
WEIRI_SHARED enum weir_status weiri_scatter_init(struct weiri_scatter *scatter, const struct weiri_rows *rows,
                                                 enum weiri_combine how, const weir_tensor *indices,
                                                 const weir_tensor *updates, const weir_allocator *allocator,
                                                 weir_error *error);
WEIRI_SHARED void weiri_scatter_fini(struct weiri_scatter *scatter, const struct weiri_rows *rows,
                                     const weir_allocator *allocator);
/*
 * Changes the value whose rows begin at `data`: those rows that the indices at the positions from
 * `first` to `end` - 1 select.
 */
void weiri_scatter_apply(const struct weiri_scatter *scatter, const struct weiri_rows *rows, int64_t first, int64_t end,
                         void *data);

/*
 * Makes a tensor of shape [indices..., row...], not filled yet. Errors: WEIR_INVALID_ARGUMENT if
 * the rank is too large; WEIR_RESOURCE_EXHAUSTED.
 */
WEIRI_SHARED enum weir_status weiri_gather_create(const struct weiri_rows *rows, const weir_tensor *indices,
                                                  const weir_allocator *allocator, weir_tensor **out,
                                                  weir_error *error);

#endif
