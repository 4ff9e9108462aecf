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
 * Computes the rows of a value of this dtype and shape. WEIR_INVALID_ARGUMENT: a scalar has none;
 * WEIR_UNIMPLEMENTED: bytes.
 */
WEIRI_SHARED enum weir_status weiri_rows_of(const char *what, const char *name, enum weir_dtype dtype,
                                            const weir_shape *shape, struct weiri_rows *rows, weir_error *error);

/* The index at position i of a tensor that passed weiri_indices_check(). */
WEIRI_SHARED int64_t weiri_index_at(const weir_tensor *indices, int64_t i);

/* WEIR_INVALID_ARGUMENT: indices are NULL, neither i32 nor i64, or one is not in [0, rows). */
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
 * Checks everything except that the rows are those of the value that will be changed. After
 * success, weiri_scatter_fini() must end *scatter.
 */
WEIRI_SHARED enum weir_status weiri_scatter_init(struct weiri_scatter *scatter, const struct weiri_rows *rows,
                                                 enum weiri_combine how, const weir_tensor *indices,
                                                 const weir_tensor *updates, const weir_allocator *allocator,
                                                 weir_error *error);
WEIRI_SHARED void weiri_scatter_fini(struct weiri_scatter *scatter, const struct weiri_rows *rows,
                                     const weir_allocator *allocator);
/*
 * Changes those rows, of the rows that begin at `data`, that the indices from position `first` to
 * before `end` select.
 */
void weiri_scatter_apply(const struct weiri_scatter *scatter, const struct weiri_rows *rows, int64_t first, int64_t end,
                         void *data);

/*
 * A tensor of shape [indices..., row...], not filled yet. WEIR_INVALID_ARGUMENT: the rank is too
 * large; WEIR_RESOURCE_EXHAUSTED: no memory.
 */
WEIRI_SHARED enum weir_status weiri_gather_create(const struct weiri_rows *rows, const weir_tensor *indices,
                                                  const weir_allocator *allocator, weir_tensor **out,
                                                  weir_error *error);

#endif
