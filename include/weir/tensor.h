/*
 * tensor.h - immutable, reference-counted, typed buffers: what variables hold and queues carry.
 *
 * Use it for any value that threads share. A builder writes the bytes, and
 * weir_tensor_builder_finish() freezes them; from then on they are only read, so no lock is needed.
 * For a value that changes, use a variable (weir/var.h), which publishes one immutable tensor after
 * the other. For a few bytes per queue item, weir/queue.h takes pointers.
 *
 * | call                | threads        | progress      | blocks on    | allocates | signal-safe |
 * |---------------------|----------------|---------------|--------------|-----------|-------------|
 * | weir_tensor_retain  | any            | wait-free (1 RMW) | nothing  | no        | yes         |
 * | weir_tensor_release | any            | wait-free (1 RMW) (1) | allocator (1) | no | no        |
 * | weir_tensor_dtype, _shape, _data | any | wait-free   | nothing      | no        | yes         |
 * | weir_tensor_element_count, _byte_count | any | wait-free | nothing  | no        | yes         |
 * | weir_tensor_builder_create, _create_unfilled, _set_bytes | one per builder | allocator | allocator | yes | no |
 * | weir_tensor_builder_data, _finish | one per builder | wait-free | nothing | no  | no          |
 * | weir_tensor_builder_discard | one per builder | allocator | allocator | no      | no          |
 * | weir_tensor_copy_of, _scalar_*, _wrap, _slice | any | allocator | allocator | yes | no        |
 * | weir_tensor_row, _reshape, _stack, _stack_padded | any | allocator | allocator | yes | no     |
 * | weir_dtype_*, weir_shape_element_count, _equal, _fits | any | wait-free | nothing | no | yes  |
 * | weir_shape_text     | any            | wait-free     | nothing      | no        | no          |
 *
 * (1) The last reference frees the tensor, and runs the release function of wrapped memory.
 *
 * Ordering. The bytes are visible to every thread that gets the tensor through Weir (variable,
 * queue, ring) or through any handover that synchronizes. Everything that a thread did with a
 * tensor before it released its reference happens before the tensor is freed.
 *
 * A tensor argument must not be NULL, and the caller must hold a reference to it, unless a call
 * says otherwise. `out` parameters are untouched on error.
 */
#ifndef WEIR_TENSOR_H
#define WEIR_TENSOR_H

#include <stdbool.h>
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
	WEIR_BYTES = 10, /* byte strings: the elements are weir_bytes */
	WEIR_U16 = 11,
	WEIR_U32 = 12,
	WEIR_U64 = 13,
	WEIR_BF16 = 14 /* bfloat16, the upper half of an f32; storage only: no arithmetic */
};

enum weir_tensor_limits { WEIR_MAX_RANK = 8, WEIR_TENSOR_ALIGNMENT = 64 };

/*
 * An element of a WEIR_BYTES tensor, which owns it. data is not terminated; in a tensor it is NULL
 * if size is 0.
 */
typedef struct weir_bytes {
	const char *data;
	size_t size; /* bytes */
} weir_bytes;

/*
 * Rank 0 is a scalar. Only dims[0 .. rank-1] are read. Where partial shapes are allowed, a negative
 * dim means "unknown".
 */
typedef struct weir_shape {
	uint32_t rank;
	int64_t dims[WEIR_MAX_RANK];
} weir_shape;

/* The shape of a scalar, for every call and options struct that takes a shape. @since 0.1 */
WEIR_API extern const weir_shape weir_shape_scalar;

typedef struct weir_tensor weir_tensor;
typedef struct weir_tensor_builder weir_tensor_builder;

/*
 * Bytes per element; sizeof(weir_bytes) for WEIR_BYTES, 0 for a number that is not a dtype.
 * @since 0.1
 */
WEIR_API size_t weir_dtype_size(enum weir_dtype dtype);
/* "f32" and so on; "unknown" for a number that is not a dtype. @since 0.1 */
WEIR_API const char *weir_dtype_name(enum weir_dtype dtype);

/*
 * Computes the number of elements of a shape: 1 for rank 0, and 0 if any dim is 0, however large
 * the others are. Errors: WEIR_INVALID_ARGUMENT if an argument is NULL, the rank exceeds
 * WEIR_MAX_RANK, a dim is negative, or the product overflows int64_t.
 * @since 0.1
 */
WEIR_API enum weir_status weir_shape_element_count(const weir_shape *shape, int64_t *elements);

/*
 * Returns true if both have the same rank and dims, else false; also false if one is NULL or its
 * rank exceeds WEIR_MAX_RANK.
 * @since 0.1
 */
WEIR_API bool weir_shape_equal(const weir_shape *a, const weir_shape *b);

/*
 * Returns true if `shape` fits `partial`, whose negative dims match anything, else false; also
 * false if `shape` has an unknown dim itself, or if one of them is NULL or its rank exceeds
 * WEIR_MAX_RANK.
 * @since 0.1
 */
WEIR_API bool weir_shape_fits(const weir_shape *partial, const weir_shape *shape);
/* The size of the text of any shape, terminator included. */
enum weir_shape_sizes { WEIR_SHAPE_TEXT_SIZE = 170 };

/*
 * Writes "[2,?,3]" into text (size bytes) and returns text. A long text is cut; it is terminated
 * unless size is 0. "invalid" for NULL or a rank that exceeds WEIR_MAX_RANK.
 * @since 0.1
 */
WEIR_API char *weir_shape_text(const weir_shape *shape, char *text, size_t size);

/*
 * Creates a builder for a new tensor, which may have no elements. The data is zero (WEIR_BYTES:
 * empty strings). Header and data are one allocation; the strings of WEIR_BYTES need more.
 * allocator may be NULL. The caller owns *out and ends it with _finish or _discard.
 *
 * Errors: WEIR_INVALID_ARGUMENT if an argument is NULL, the dtype or shape is invalid, or the data
 * exceeds PTRDIFF_MAX bytes. WEIR_RESOURCE_EXHAUSTED.
 * @since 0.1
 */
WEIR_API enum weir_status weir_tensor_builder_create(enum weir_dtype dtype, const weir_shape *shape,
                                                     const weir_allocator *allocator,
                                                     weir_tensor_builder **out, weir_error *error);

/*
 * The same, but the data holds what was in this memory before, and costs nothing to make. For a caller
 * who writes every element before _finish: nothing checks that, and an element that was not written
 * shows old bytes of the process to all who read the tensor. WEIR_BYTES: as _create.
 * Errors: as for weir_tensor_builder_create().
 * @since 0.1
 */
WEIR_API enum weir_status weir_tensor_builder_create_unfilled(enum weir_dtype dtype,
                                                              const weir_shape *shape,
                                                              const weir_allocator *allocator,
                                                              weir_tensor_builder **out,
                                                              weir_error *error);

/*
 * The bytes to write: row-major, aligned to WEIR_TENSOR_ALIGNMENT. NULL for WEIR_BYTES (use
 * _set_bytes) and for a NULL builder. Do not write to them after _finish, nor read them after
 * _discard.
 * @since 0.1
 */
WEIR_API void *weir_tensor_builder_data(weir_tensor_builder *builder);

/*
 * Copies a string into element `index` (row-major) of a WEIR_BYTES builder, replacing the old one.
 * The memory of a shorter old string stays in use until the tensor is freed.
 *
 * Errors, after which the element is unchanged: WEIR_INVALID_ARGUMENT if builder is NULL, its dtype
 * is another one, or data is NULL with size > 0. WEIR_OUT_OF_RANGE (index).
 * WEIR_RESOURCE_EXHAUSTED.
 * @since 0.1
 */
WEIR_API enum weir_status weir_tensor_builder_set_bytes(weir_tensor_builder *builder, int64_t index,
                                                        const void *data, size_t size);

/*
 * Freezes the data: *out is the tensor with one reference, and the builder is gone. Allocates
 * nothing. Errors: WEIR_INVALID_ARGUMENT (NULL); the caller then still owns the builder.
 * @since 0.1
 */
WEIR_API enum weir_status weir_tensor_builder_finish(weir_tensor_builder *builder,
                                                     weir_tensor **out);
/* Discards an unfinished builder. Accepts NULL. @since 0.1 */
WEIR_API void weir_tensor_builder_discard(weir_tensor_builder *builder);

/*
 * Creates a tensor with a copy of `data`: elements x weir_dtype_size bytes, or for WEIR_BYTES an
 * array of weir_bytes whose strings are copied too. It is one allocation.
 *
 * Errors: as for weir_tensor_builder_create(), and WEIR_INVALID_ARGUMENT if data is NULL although
 * there are elements, or a string has a size but no data.
 * @since 0.1
 */
WEIR_API enum weir_status weir_tensor_copy_of(enum weir_dtype dtype, const weir_shape *shape,
                                              const void *data, const weir_allocator *allocator,
                                              weir_tensor **out);

/*
 * Create tensors of rank 0, one function for each dtype. _f16 and _bf16 take bits.
 * _bytes copies `size` bytes, one string; data may be NULL if size is 0. Errors:
 * WEIR_INVALID_ARGUMENT (out NULL, or data NULL with size > 0), WEIR_RESOURCE_EXHAUSTED.
 * @since 0.1
 */
WEIR_API enum weir_status weir_tensor_scalar_bool(bool value, weir_tensor **out);
WEIR_API enum weir_status weir_tensor_scalar_u8(uint8_t value, weir_tensor **out);
WEIR_API enum weir_status weir_tensor_scalar_u16(uint16_t value, weir_tensor **out);
WEIR_API enum weir_status weir_tensor_scalar_u32(uint32_t value, weir_tensor **out);
WEIR_API enum weir_status weir_tensor_scalar_u64(uint64_t value, weir_tensor **out);
WEIR_API enum weir_status weir_tensor_scalar_i8(int8_t value, weir_tensor **out);
WEIR_API enum weir_status weir_tensor_scalar_i16(int16_t value, weir_tensor **out);
WEIR_API enum weir_status weir_tensor_scalar_i32(int32_t value, weir_tensor **out);
WEIR_API enum weir_status weir_tensor_scalar_i64(int64_t value, weir_tensor **out);
WEIR_API enum weir_status weir_tensor_scalar_f16(uint16_t bits, weir_tensor **out);
WEIR_API enum weir_status weir_tensor_scalar_bf16(uint16_t bits, weir_tensor **out);
WEIR_API enum weir_status weir_tensor_scalar_f32(float value, weir_tensor **out);
WEIR_API enum weir_status weir_tensor_scalar_f64(double value, weir_tensor **out);
WEIR_API enum weir_status weir_tensor_scalar_bytes(const void *data, size_t size,
                                                   weir_tensor **out);

/*
 * Called once, when the last reference to the wrapped memory is dropped (references of views
 * count), on the thread that drops it. The header of the tensor has already been freed. The
 * function must not use a tensor of this memory; it may release other tensors.
 */
typedef void weir_tensor_release_fn(void *context, void *data);

/*
 * Creates a tensor over memory of the caller, without a copy. `data` must stay valid and unchanged
 * until `release` (may be NULL) is called. It must be aligned to the element size. It may be NULL
 * only if there are no elements; release is called in that case too.
 *
 * Errors, after which release is not called: WEIR_INVALID_ARGUMENT (NULL, alignment, dtype, shape),
 * WEIR_UNIMPLEMENTED (WEIR_BYTES), WEIR_RESOURCE_EXHAUSTED.
 * @since 0.1
 */
WEIR_API enum weir_status weir_tensor_wrap(enum weir_dtype dtype, const weir_shape *shape,
                                           void *data, weir_tensor_release_fn *release,
                                           void *context, const weir_allocator *allocator,
                                           weir_tensor **out);

/*
 * Views: another shape over the same memory, without a copy. A view keeps all of that memory alive;
 * its byte count is that of the elements it shows. Its header comes from the allocator of `tensor`.
 * Its data is aligned to the element size only. A view of a view refers to the tensor behind both,
 * so chains of views cost nothing. Views of WEIR_BYTES take time linear in the number of their
 * elements.
 */
/*
 * Creates a view of rows begin .. begin+count-1 along the first dimension; count 0 gives no
 * elements. Errors: WEIR_INVALID_ARGUMENT (NULL, rank 0), WEIR_OUT_OF_RANGE if there are no such
 * rows, WEIR_RESOURCE_EXHAUSTED.
 * @since 0.1
 */
WEIR_API enum weir_status weir_tensor_slice(weir_tensor *tensor, int64_t begin, int64_t count,
                                            weir_tensor **out);

/*
 * Creates a view of row `index`, without the first dimension. Errors as for weir_tensor_slice().
 * @since 0.1
 */
WEIR_API enum weir_status weir_tensor_row(weir_tensor *tensor, int64_t index, weir_tensor **out);

/*
 * Creates a view of the same elements, in row-major order, in another shape. Errors:
 * WEIR_INVALID_ARGUMENT (NULL, bad shape, another number of elements), WEIR_RESOURCE_EXHAUSTED.
 * @since 0.1
 */
WEIR_API enum weir_status weir_tensor_reshape(weir_tensor *tensor, const weir_shape *shape,
                                              weir_tensor **out);

/*
 * Creates a tensor [count, shape...] with copies of `count` >= 1 tensors of one dtype and shape, in
 * one allocation. The caller keeps its references. allocator may be NULL.
 *
 * Errors: WEIR_INVALID_ARGUMENT if an argument is NULL, count is 0, the tensors differ, the rank
 * would exceed WEIR_MAX_RANK, or the data would exceed PTRDIFF_MAX bytes. WEIR_RESOURCE_EXHAUSTED.
 * @since 0.1
 */
WEIR_API enum weir_status weir_tensor_stack(weir_tensor *const tensors[], size_t count,
                                            const weir_allocator *allocator, weir_tensor **out);

/*
 * Like weir_tensor_stack(), for tensors of one dtype and rank whose dims may differ: [count, the
 * largest of each dim]. Where a tensor has no element there is 0, false or an empty string.
 * @since 0.1
 */
WEIR_API enum weir_status weir_tensor_stack_padded(weir_tensor *const tensors[], size_t count,
                                                   const weir_allocator *allocator,
                                                   weir_tensor **out);

/* Adds a reference and returns `tensor` (NULL for NULL). @since 0.1 */
WEIR_API weir_tensor *weir_tensor_retain(weir_tensor *tensor);
/* Gives a reference back; the last one frees the tensor. Accepts NULL. @since 0.1 */
WEIR_API void weir_tensor_release(weir_tensor *tensor);

/* Properties of a tensor; they never change. @since 0.1 */
WEIR_API enum weir_dtype weir_tensor_dtype(const weir_tensor *tensor);
/* Valid while a reference is held; dims past the rank are 0. */
WEIR_API const weir_shape *weir_tensor_shape(const weir_tensor *tensor);
WEIR_API int64_t weir_tensor_element_count(const weir_tensor *tensor);

/*
 * Bytes of the data; for WEIR_BYTES the strings count too. In the reclamation budget a version counts
 * these bytes, the header of the tensor, and the version's own block (docs/memory.md).
 */
WEIR_API size_t weir_tensor_byte_count(const weir_tensor *tensor);

/*
 * The data, row-major; for WEIR_BYTES an array of weir_bytes. Valid while a reference is held.
 * Aligned to WEIR_TENSOR_ALIGNMENT, except the data of a wrapped tensor or a view, which is aligned
 * to the element. May be NULL only if there are no elements.
 */
WEIR_API const void *weir_tensor_data(const weir_tensor *tensor);

WEIR_END_DECLS

#endif
