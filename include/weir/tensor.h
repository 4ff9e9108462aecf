/*
 * tensor.h - immutable, reference-counted, typed buffers: what variables hold and queues carry.
 *
 * Use it for any value that threads share. A builder writes the bytes; finish() freezes them; from then on everybody reads
 * and nobody writes, so no lock is ever needed. Not for values that change in place: use a variable (weir/var.h), which
 * publishes one immutable tensor after the other. Not for a few bytes that one queue item carries: weir/queue.h takes pointers.
 *
 * | call                          | threads         | progress            | blocks on | allocates | signal-safe |
 * |-------------------------------|-----------------|---------------------|-----------|-----------|-------------|
 * | weir_tensor_retain            | any             | wait-free (1 RMW)   | nothing   | no        | yes         |
 * | weir_tensor_release           | any             | wait-free (1 RMW); the last one frees (1) | allocator (1) | no | no |
 * | weir_tensor_dtype, _shape, _elements, _nbytes, _data | any | wait-free      | nothing   | no        | yes         |
 * | weir_tensor_builder_create, _set_bytes | one per builder | the allocator's | allocator | yes  | no          |
 * | weir_tensor_builder_data, _finish | one per builder | wait-free       | nothing   | no        | no          |
 * | weir_tensor_builder_discard   | one per builder | the allocator's     | allocator | no        | no          |
 * | weir_tensor_copy_of, _scalar_*, _wrap, _slice, _row, _reshape, _stack, _stack_padded | any | the allocator's | allocator | yes | no |
 * | weir_dtype_*, weir_shape_elements, _equal, _fits | any | wait-free    | nothing   | no        | yes         |
 * | weir_shape_text               | any             | wait-free           | nothing   | no        | no          |
 *
 * (1) and runs the release function of wrapped memory.
 *
 * Ordering: the bytes are visible to every thread that gets the tensor through Weir (variable, queue, ring) or through any
 * hand-over that synchronizes. Whatever a thread did with a tensor before its release happens before the tensor is freed.
 * A tensor argument must not be NULL, and the caller must hold a reference to it, unless a call says otherwise.
 * `out` parameters are untouched on error.
 */
#ifndef WEIR_TENSOR_H
#define WEIR_TENSOR_H

#include <stddef.h>
#include <stdint.h>
#include <weir/alloc.h>
#include <weir/status.h>

WEIR_BEGIN_DECLS

enum weir_dtype {
	WEIR_BOOL = 1, /* one byte, 0 or 1; bytes copied or wrapped are not checked */
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

/* An element of a WEIR_BYTES tensor. data is not terminated; in a tensor it is NULL when size is 0. Owned by the tensor. */
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
 * The number of elements of a shape; 1 for rank 0, and 0 as soon as one dim is 0, however large the others are.
 * WEIR_INVALID_ARGUMENT: a NULL argument, rank > WEIR_MAX_RANK, a dim is negative, or the product overflows int64_t.
 * @since 0.1
 */
WEIR_API WEIR_MUST_CHECK enum weir_status weir_shape_elements(const weir_shape *shape, int64_t *elements);
/* 1 when both have the same rank and dims, else 0; also 0 when one is NULL or has rank > WEIR_MAX_RANK. @since 0.1 */
WEIR_API int weir_shape_equal(const weir_shape *a, const weir_shape *b);
/*
 * 1 when `shape` fits `partial`, whose negative dims match anything, else 0; also 0 when `shape` has an unknown dim itself, or
 * one of them is NULL or has rank > WEIR_MAX_RANK.
 * @since 0.1
 */
WEIR_API int weir_shape_fits(const weir_shape *partial, const weir_shape *shape);
/* Room for the text of every shape, the terminator included. */
enum { WEIR_SHAPE_TEXT_SIZE = 170 };
/*
 * Writes "[2,?,3]" into text (size bytes) and returns text: cut when too small, and terminated unless size is 0. "invalid" for
 * NULL or a rank > WEIR_MAX_RANK.
 * @since 0.1
 */
WEIR_API char *weir_shape_text(const weir_shape *shape, char *text, size_t size);

/*
 * A builder for a new tensor. The data is zero (for WEIR_BYTES: empty strings); there may be no elements. Header and data are
 * one allocation; WEIR_BYTES adds some for the strings. allocator may be NULL. Errors: WEIR_INVALID_ARGUMENT (NULL argument,
 * no such dtype, bad shape, more than PTRDIFF_MAX bytes), WEIR_RESOURCE_EXHAUSTED. On success *out is the caller's, to be ended
 * by _finish or _discard.
 * @since 0.1
 */
WEIR_API enum weir_status weir_tensor_builder_create(enum weir_dtype dtype, const weir_shape *shape,
                                                     const weir_allocator *allocator, weir_tensor_builder **out);
/*
 * The bytes to write, row-major, aligned to WEIR_TENSOR_ALIGNMENT; NULL for WEIR_BYTES (use _set_bytes) or a NULL builder.
 * Nothing may be written to them after _finish, nor read after _discard.
 * @since 0.1
 */
WEIR_API void *weir_tensor_builder_data(weir_tensor_builder *builder);
/*
 * Copies a string into element `index` (row-major) of a WEIR_BYTES builder, replacing what was there; the memory of a shorter
 * string that was there stays in use until the tensor goes. WEIR_INVALID_ARGUMENT (builder NULL, another dtype, data NULL with
 * size > 0), WEIR_OUT_OF_RANGE (index), WEIR_RESOURCE_EXHAUSTED; the element is unchanged on error.
 * @since 0.1
 */
WEIR_API enum weir_status weir_tensor_builder_set_bytes(weir_tensor_builder *builder, int64_t index, const void *data,
                                                        size_t size);
/*
 * Freezes: *out gets the tensor with one reference; the builder is gone. Allocates nothing. WEIR_INVALID_ARGUMENT for a NULL
 * argument, and then the builder is still the caller's.
 * @since 0.1
 */
WEIR_API enum weir_status weir_tensor_builder_finish(weir_tensor_builder *builder, weir_tensor **out);
/* Throws an unfinished builder away. Accepts NULL. @since 0.1 */
WEIR_API void weir_tensor_builder_discard(weir_tensor_builder *builder);

/*
 * A new tensor with a copy of `data` (elements x weir_dtype_size bytes; an array of weir_bytes for WEIR_BYTES, whose strings
 * are copied too), in one allocation. Errors as for the builder; WEIR_INVALID_ARGUMENT also when data is NULL though there are
 * elements, or a string has a size but no data.
 * @since 0.1
 */
WEIR_API enum weir_status weir_tensor_copy_of(enum weir_dtype dtype, const weir_shape *shape, const void *data,
                                              const weir_allocator *allocator, weir_tensor **out);
/* Rank-0 tensors. Errors: WEIR_INVALID_ARGUMENT (out NULL), WEIR_RESOURCE_EXHAUSTED. @since 0.1 */
WEIR_API enum weir_status weir_tensor_scalar_f32(float value, weir_tensor **out);
WEIR_API enum weir_status weir_tensor_scalar_f64(double value, weir_tensor **out);
WEIR_API enum weir_status weir_tensor_scalar_i32(int32_t value, weir_tensor **out);
WEIR_API enum weir_status weir_tensor_scalar_i64(int64_t value, weir_tensor **out);

/*
 * Called once, when the last reference to the wrapped memory goes (those of views count), on whichever thread dropped it. The
 * tensor's own header has been freed by then. Must not use a tensor of this memory; other tensors may be released here.
 */
typedef void weir_tensor_release_fn(void *context, void *data);

/*
 * A tensor over foreign memory, without a copy. `data` must stay valid and unchanged until `release` (may be NULL) is called;
 * it must be aligned to the element size, and may be NULL only when there are no elements (release is called all the same).
 * WEIR_INVALID_ARGUMENT (NULL, alignment, dtype, shape), WEIR_UNIMPLEMENTED (WEIR_BYTES), WEIR_RESOURCE_EXHAUSTED; on failure
 * release is not called.
 * @since 0.1
 */
WEIR_API enum weir_status weir_tensor_wrap(enum weir_dtype dtype, const weir_shape *shape, void *data,
                                           weir_tensor_release_fn *release, void *context,
                                           const weir_allocator *allocator, weir_tensor **out);
/*
 * Views: another shape over the same memory, without a copy. A view keeps that memory alive, all of it; its nbytes count what
 * it shows. Its header comes from the allocator of `tensor`. Its data is aligned to the element size only. A view of a view
 * refers to the tensor behind both, so chains of views cost nothing. Views of WEIR_BYTES take time linear in their elements.
 */
/*
 * Rows begin .. begin+count-1 along the first dimension. WEIR_INVALID_ARGUMENT (NULL, rank 0), WEIR_OUT_OF_RANGE for rows that
 * are not there (count 0 is a slice without elements), WEIR_RESOURCE_EXHAUSTED.
 * @since 0.1
 */
WEIR_API enum weir_status weir_tensor_slice(weir_tensor *tensor, int64_t begin, int64_t count, weir_tensor **out);
/* Row `index` with the first dimension removed. Errors as for _slice. @since 0.1 */
WEIR_API enum weir_status weir_tensor_row(weir_tensor *tensor, int64_t index, weir_tensor **out);
/*
 * The same elements, in row-major order, in another shape. WEIR_INVALID_ARGUMENT (NULL, bad shape, another number of elements),
 * WEIR_RESOURCE_EXHAUSTED.
 * @since 0.1
 */
WEIR_API enum weir_status weir_tensor_reshape(weir_tensor *tensor, const weir_shape *shape, weir_tensor **out);
/*
 * A new tensor [count, shape...] with copies of `count` >= 1 tensors of one dtype and shape, in one allocation; the caller keeps
 * his references. allocator may be NULL. WEIR_INVALID_ARGUMENT (NULL, count 0, they differ, rank would exceed WEIR_MAX_RANK,
 * more than PTRDIFF_MAX bytes), WEIR_RESOURCE_EXHAUSTED.
 * @since 0.1
 */
WEIR_API enum weir_status weir_tensor_stack(weir_tensor *const tensors[], size_t count, const weir_allocator *allocator,
                                            weir_tensor **out);

/*
 * The same for tensors of one dtype and rank whose dims may differ: [count, the largest of each dim], and 0, false or an empty
 * string where a tensor has no element. Errors as for weir_tensor_stack.
 * @since 0.1
 */
WEIR_API enum weir_status weir_tensor_stack_padded(weir_tensor *const tensors[], size_t count,
                                                   const weir_allocator *allocator, weir_tensor **out);

/* One more reference; returns `tensor` (NULL in, NULL out). @since 0.1 */
WEIR_API weir_tensor *weir_tensor_retain(weir_tensor *tensor);
/* One reference less; the last frees it. Accepts NULL. @since 0.1 */
WEIR_API void weir_tensor_release(weir_tensor *tensor);

/* Accessors; none changes for the life of the tensor. @since 0.1 */
WEIR_API enum weir_dtype weir_tensor_dtype(const weir_tensor *tensor);
/* Valid while a reference is held; dims past the rank are 0. */
WEIR_API const weir_shape *weir_tensor_shape(const weir_tensor *tensor);
WEIR_API int64_t weir_tensor_elements(const weir_tensor *tensor);
/* Bytes of the data; for WEIR_BYTES the strings count too. This is what the byte budget of reclamation counts. */
WEIR_API size_t weir_tensor_nbytes(const weir_tensor *tensor);
/*
 * The data, row-major; for WEIR_BYTES an array of weir_bytes. Valid while a reference is held. Aligned to WEIR_TENSOR_ALIGNMENT,
 * except that of a wrapped tensor or a view, which is aligned to the element. May be NULL only when there are no elements.
 */
WEIR_API const void *weir_tensor_data(const weir_tensor *tensor);

WEIR_END_DECLS

#endif
