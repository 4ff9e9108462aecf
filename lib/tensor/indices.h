/*
 * indices.h - rows named by a tensor of indices, and the updates that go with them.
 */
#ifndef WEIRI_TENSOR_INDICES_H
#define WEIRI_TENSOR_INDICES_H

#include <weir/tensor.h>

#include "tensor/row.h"

/* What rows there are: of a tensor's first dimension, or of a table. `what` and `name` are for messages: variable "x". */
struct weiri_rows {
	const char *what;
	const char *name;
	enum weir_dtype dtype;
	int64_t count;
	weir_shape shape; /* of one */
	size_t elements;  /* of one; 0 where there are no rows */
	size_t bytes;     /* of one; 0 where there are no rows */
};

/* The rows of a value of this dtype and shape. WEIR_INVALID_ARGUMENT: a scalar has none; WEIR_UNIMPLEMENTED: bytes. */
enum weir_status weiri_rows_of(const char *what, const char *name, enum weir_dtype dtype, const weir_shape *shape,
                               struct weiri_rows *rows, weir_error *error);

/* Index number i of a tensor that weiri_indices_check() has passed. */
int64_t weiri_index_at(const weir_tensor *indices, int64_t i);

/* WEIR_INVALID_ARGUMENT: NULL, neither i32 nor i64, or one that is not in [0, rows). */
enum weir_status weiri_indices_check(const struct weiri_rows *rows, const weir_tensor *indices, weir_error *error);

/* What a scatter does: for each index in order, rows[index] combined with the elements at `from`, which go on by `step` bytes. */
struct weiri_scatter {
	enum weiri_combine how;
	const weir_tensor *indices;
	const char *from;
	size_t step;
	void *row; /* a scalar, once for each element of a row; NULL: none was needed */
};

/* Checks all but that the rows are those of the value that will be changed. On success weiri_scatter_fini() ends *scatter. */
enum weir_status weiri_scatter_init(struct weiri_scatter *scatter, const struct weiri_rows *rows,
                                    enum weiri_combine how, const weir_tensor *indices, const weir_tensor *updates,
                                    const weir_allocator *allocator, weir_error *error);
void weiri_scatter_fini(struct weiri_scatter *scatter, const struct weiri_rows *rows, const weir_allocator *allocator);
/* Changes, of the rows that begin at `data`, those that the indices from `first` on name, before `end`. */
void weiri_scatter_apply(const struct weiri_scatter *scatter, const struct weiri_rows *rows, int64_t first, int64_t end,
                         void *data);

/* A tensor of shape [indices..., row...], not filled yet. WEIR_INVALID_ARGUMENT: the rank is too large; WEIR_RESOURCE_EXHAUSTED. */
enum weir_status weiri_gather_create(const struct weiri_rows *rows, const weir_tensor *indices,
                                     const weir_allocator *allocator, weir_tensor **out, weir_error *error);

#endif
