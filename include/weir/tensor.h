/*
 * tensor.h - immutable, reference-counted, typed buffers: what variables hold and queues carry.
 *
 * Use it for any value that threads share. A builder writes the bytes; finish() freezes them; from then on everybody reads
 * and nobody writes, so no lock is ever needed. Not for values that change in place: use a variable (weir/var.h), which
 * publishes one immutable tensor after the other.
 *
 * | call                          | threads         | progress            | blocks on | allocates | signal-safe |
 * |-------------------------------|-----------------|---------------------|-----------|-----------|-------------|
 * | weir_tensor_retain            | any             | wait-free (1 RMW)   | nothing   | no        | yes         |
 * | weir_tensor_release           | any             | wait-free, but the last one frees | allocator | no | no |
 * | weir_tensor_dtype ... _data   | any             | wait-free           | nothing   | no        | yes         |
 * | weir_tensor_builder_*         | one per builder | the allocator's     | allocator | yes       | no          |
 * | weir_tensor_copy_of, _wrap, _slice, _stack, _row | any | the allocator's | allocator | yes     | no          |
 */
#ifndef WEIR_TENSOR_H
#define WEIR_TENSOR_H

#include <stddef.h>
#include <stdint.h>
#include <weir/alloc.h>
#include <weir/status.h>

WEIR_BEGIN_DECLS

enum weir_dtype {
	WEIR_BOOL = 1, /* one byte, 0 or 1 */
	WEIR_U8 = 2,
	WEIR_I8 = 3,
	WEIR_I16 = 4,
	WEIR_I32 = 5,
	WEIR_I64 = 6,
	WEIR_F16 = 7, /* IEEE binary16, storage only: no arithmetic */
	WEIR_F32 = 8,
	WEIR_F64 = 9,
	WEIR_BYTES = 10 /* byte strings: the elements are weir_bytes */
};

enum { WEIR_MAX_RANK = 8 };
enum { WEIR_TENSOR_ALIGNMENT = 64 };

/* An element of a WEIR_BYTES tensor. data is not terminated; NULL only when size is 0. Owned by the tensor. */
typedef struct weir_bytes {
	const char *data;
	size_t size; /* bytes */
} weir_bytes;

/* rank 0 is a scalar. Only dims[0 .. rank-1] are read. A negative dim means "unknown" where a partial shape is allowed. */
typedef struct weir_shape {
	uint32_t rank;
	int64_t dims[WEIR_MAX_RANK];
} weir_shape;

typedef struct weir_tensor weir_tensor;
typedef struct weir_tensor_builder weir_tensor_builder;

/* Bytes of one element, sizeof(weir_bytes) for WEIR_BYTES, 0 for a number that is no dtype. @since 0.1 */
WEIR_API size_t weir_dtype_size(enum weir_dtype dtype);
/* "f32" and so on; "unknown" for a number that is no dtype. @since 0.1 */
WEIR_API const char *weir_dtype_name(enum weir_dtype dtype);

/*
 * The number of elements of a shape. WEIR_INVALID_ARGUMENT when rank > WEIR_MAX_RANK, a dim is negative, or the product
 * overflows int64_t. `elements` is untouched on error.
 * @since 0.1
 */
WEIR_API enum weir_status weir_shape_elements(const weir_shape *shape, int64_t *elements);
/* 1 when both have the same rank and dims, else 0. @since 0.1 */
WEIR_API int weir_shape_equal(const weir_shape *a, const weir_shape *b);
/* 1 when `shape` (fully known) fits `partial`, whose negative dims match anything, else 0. @since 0.1 */
WEIR_API int weir_shape_fits(const weir_shape *partial, const weir_shape *shape);
/* Writes "[2,?,3]" into text (size bytes, always terminated, cut when too small) and returns text. @since 0.1 */
WEIR_API char *weir_shape_text(const weir_shape *shape, char *text, size_t size);

/*
 * A builder for a new tensor. The data is zero (for WEIR_BYTES: empty strings).
 * allocator may be NULL. Errors: WEIR_INVALID_ARGUMENT (NULL argument, no such dtype, bad shape, byte size overflows),
 * WEIR_RESOURCE_EXHAUSTED. On success *out is the caller's, to be ended by _finish or _discard.
 * @since 0.1
 */
WEIR_API enum weir_status weir_tensor_builder_create(enum weir_dtype dtype, const weir_shape *shape,
                                                     const weir_allocator *allocator, weir_tensor_builder **out);
/* The bytes to write, row-major, aligned to WEIR_TENSOR_ALIGNMENT; NULL for WEIR_BYTES (use _set_bytes) or a NULL builder. */
WEIR_API void *weir_tensor_builder_data(weir_tensor_builder *builder);
/*
 * Copies a string into element `index` of a WEIR_BYTES builder, replacing what was there. WEIR_INVALID_ARGUMENT (wrong dtype,
 * data NULL with size > 0), WEIR_OUT_OF_RANGE (index), WEIR_RESOURCE_EXHAUSTED (element unchanged).
 */
WEIR_API enum weir_status weir_tensor_builder_set_bytes(weir_tensor_builder *builder, int64_t index, const void *data,
                                                        size_t size);
/* Freezes: *out gets the tensor with one reference; the builder is gone. Only a NULL argument fails. @since 0.1 */
WEIR_API enum weir_status weir_tensor_builder_finish(weir_tensor_builder *builder, weir_tensor **out);
/* Throws an unfinished builder away. Accepts NULL. @since 0.1 */
WEIR_API void weir_tensor_builder_discard(weir_tensor_builder *builder);

/*
 * A new tensor with a copy of `data` (elements x weir_dtype_size bytes; an array of weir_bytes for WEIR_BYTES, whose strings
 * are copied too). Errors as for the builder; data NULL is WEIR_INVALID_ARGUMENT unless there are no elements.
 * @since 0.1
 */
WEIR_API enum weir_status weir_tensor_copy_of(enum weir_dtype dtype, const weir_shape *shape, const void *data,
                                              const weir_allocator *allocator, weir_tensor **out);
/* Rank-0 tensors. Errors: WEIR_INVALID_ARGUMENT (out NULL), WEIR_RESOURCE_EXHAUSTED. @since 0.1 */
WEIR_API enum weir_status weir_tensor_scalar_f32(float value, weir_tensor **out);
WEIR_API enum weir_status weir_tensor_scalar_f64(double value, weir_tensor **out);
WEIR_API enum weir_status weir_tensor_scalar_i32(int32_t value, weir_tensor **out);
WEIR_API enum weir_status weir_tensor_scalar_i64(int64_t value, weir_tensor **out);

/* Called once, when the last reference to the wrapped memory goes, on whichever thread dropped it. */
typedef void weir_tensor_release_fn(void *context, void *data);

/*
 * A tensor over foreign memory, without a copy. `data` must stay valid and unchanged until `release` (may be NULL) is called;
 * it must be aligned to the element size. On failure release is not called. WEIR_BYTES is WEIR_UNIMPLEMENTED.
 * @since 0.1
 */
WEIR_API enum weir_status weir_tensor_wrap(enum weir_dtype dtype, const weir_shape *shape, void *data,
                                           weir_tensor_release_fn *release, void *context,
                                           const weir_allocator *allocator, weir_tensor **out);
/*
 * Rows begin .. begin+count-1 along the first dimension, without a copy; the slice holds a reference to `tensor`.
 * WEIR_INVALID_ARGUMENT for rank 0, WEIR_OUT_OF_RANGE for rows that are not there. @since 0.1
 */
WEIR_API enum weir_status weir_tensor_slice(weir_tensor *tensor, int64_t begin, int64_t count, weir_tensor **out);
/* Row `index` with the first dimension removed, without a copy. Errors as for _slice. @since 0.1 */
WEIR_API enum weir_status weir_tensor_row(weir_tensor *tensor, int64_t index, weir_tensor **out);
/*
 * A new tensor [count, shape...] from `count` >= 1 tensors of one dtype and shape. WEIR_INVALID_ARGUMENT when they differ or
 * rank would exceed WEIR_MAX_RANK; WEIR_RESOURCE_EXHAUSTED. @since 0.1
 */
WEIR_API enum weir_status weir_tensor_stack(weir_tensor *const tensors[], size_t count, const weir_allocator *allocator,
                                            weir_tensor **out);

/* One more reference; returns `tensor` (NULL in, NULL out). @since 0.1 */
WEIR_API weir_tensor *weir_tensor_retain(weir_tensor *tensor);
/* One reference less; the last frees it. Accepts NULL. @since 0.1 */
WEIR_API void weir_tensor_release(weir_tensor *tensor);

WEIR_API enum weir_dtype weir_tensor_dtype(const weir_tensor *tensor);
WEIR_API const weir_shape *weir_tensor_shape(const weir_tensor *tensor);
WEIR_API int64_t weir_tensor_elements(const weir_tensor *tensor);
/* Bytes of the data; for WEIR_BYTES the strings count too. This is what the byte budget of reclamation counts. */
WEIR_API size_t weir_tensor_nbytes(const weir_tensor *tensor);
/* The data, row-major; for WEIR_BYTES an array of weir_bytes. Valid while a reference is held. */
WEIR_API const void *weir_tensor_data(const weir_tensor *tensor);

WEIR_END_DECLS

#endif
