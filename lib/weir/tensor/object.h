/*
 * object.h - the layout of a tensor, and how the files of this layer make one.
 *
 * Layout. Header and data are one allocation: three cache lines of header, then the data, so that
 * both are aligned to WEIR_TENSOR_ALIGNMENT. The first two lines never change while others have the
 * tensor. The reference count, which every retain and release changes, is on the third line,
 * with fields that only the last release reads. So its changes do not slow readers of the data
 * down. Strings whose sizes were known when the tensor was made are stored behind the data. Others
 * are stored in chunks (strings.h).
 *
 *     | fields of readers (2 lines) | references, last release (1 line) | data | strings |
 *
 * A view (slice, row) has its own header and no data. It holds a reference to its owner, the tensor
 * whose memory it shows. An owner is never a view itself, so a chain of views has one step, and
 * releasing it needs no recursion.
 */
#ifndef WEIRI_TENSOR_OBJECT_H
#define WEIRI_TENSOR_OBJECT_H

#include <stddef.h>
#include <stdint.h>
#include <weir/tensor.h>

#include "base/atomic.h"
#include "base/compiler.h"
#include "reclaim/collect.h"
#include "reclaim/value.h"
#include "tensor/strings.h"

/*
 * Whether the memory of `data` is the tensor's own, foreign, or its owner's. The address of the
 * data cannot tell this: foreign memory may begin right behind a header.
 */
enum weiri_tensor_kind {
	WEIRI_TENSOR_OWN,
	WEIRI_TENSOR_FOREIGN,
	WEIRI_TENSOR_VIEW,
};

struct weir_tensor {
	/* written while one reference is all there is, then only read */
	_Alignas(WEIR_TENSOR_ALIGNMENT) void *data;
	int64_t elements;
	size_t nbytes; /* of the elements and, for WEIR_BYTES, of their strings */
	enum weir_dtype dtype;
	enum weiri_tensor_kind kind;
	union {
		weir_shape shape;
		struct weiri_retired retired; /* after weiri_value_release_later() dropped the last reference */
	};

	/* written by every thread that retains or releases */
	_Alignas(WEIR_TENSOR_ALIGNMENT) struct weiri_value value;

	/* only read, and only by the last release */
	size_t size; /* bytes of the allocation that begins with this header */
	union {
		/* Own, WEIR_BYTES: chunks of a builder. NULL: all strings are behind the elements. */
		struct weiri_strings *strings;
		weir_tensor *owner; /* view: one reference */
		struct {
			weir_tensor_release_fn *release; /* may be NULL */
			void *context;
		} foreign;
	} end;
	weir_allocator allocator;
};

_Static_assert(sizeof(struct weiri_retired) <= sizeof(weir_shape), "a tensor that waits to be freed is no larger");
_Static_assert(sizeof(struct weir_tensor) % WEIR_TENSOR_ALIGNMENT == 0,
               "the data follows the header and shares its alignment");

/*
 * Asks the processor for the header and the first lines of the data behind it, which will be read soon. The
 * processor finds the lines behind those by itself.
 */
static inline void weiri_tensor_fetch(const weir_tensor *tensor)
{
	const size_t line = 64;
	const char *lines = (const char *)tensor;

	/* Not a loop: gcc -O2 does not unroll it. */
	__builtin_prefetch(lines);
	__builtin_prefetch(lines + line);
	__builtin_prefetch(lines + 2 * line);
	__builtin_prefetch(lines + 3 * line);
	__builtin_prefetch(lines + 4 * line);
	__builtin_prefetch(lines + 5 * line);
	__builtin_prefetch(lines + 6 * line);
	__builtin_prefetch(lines + 7 * line);
}

/*
 * Returns the bytes that a tensor counts in the budget when a retired object holds it. For a tensor
 * with its own memory, these are the allocated bytes. For foreign memory and views, these are the
 * bytes of the header and the bytes shown, since the end of the tensor may free only a part of the
 * memory that it shows.
 */
static inline size_t weiri_tensor_footprint(const weir_tensor *tensor)
{
	if (WEIRI_UNLIKELY(tensor->kind != WEIRI_TENSOR_OWN))
		return tensor->size + tensor->nbytes;
	if (WEIRI_UNLIKELY(tensor->dtype == WEIR_BYTES))
		return tensor->size + weiri_strings_allocated(tensor->end.strings);
	return tensor->size;
}

/*
 * Returns the data, for writing, if the caller's reference is the only one and the memory is the
 * tensor's own; otherwise NULL. The caller keeps dtype and shape.
 */
static inline void *weiri_tensor_writable(weir_tensor *tensor)
{
	return tensor->kind == WEIRI_TENSOR_OWN && tensor->dtype != WEIR_BYTES && weiri_value_is_sole(&tensor->value)
	           ? tensor->data
	           : NULL;
}

/*
 * Checks dtype and shape, and computes the number of elements and of their bytes.
 * Errors: WEIR_INVALID_ARGUMENT if there is no such dtype, the shape is NULL or invalid, or an
 * object cannot have so many bytes.
 */
WEIRI_SHARED WEIRI_MUST_CHECK enum weir_status weiri_tensor_measure(enum weir_dtype dtype, const weir_shape *shape,
                                                                    int64_t *elements, size_t *nbytes);

/*
 * Makes a tensor with its own memory and one reference. Neither the data nor the `extra` bytes
 * behind it are cleared. nbytes counts the elements only. allocator may be NULL. Errors as for
 * weiri_tensor_measure(), and WEIR_RESOURCE_EXHAUSTED.
 */
WEIRI_SHARED enum weir_status weiri_tensor_create(enum weir_dtype dtype, const weir_shape *shape, size_t extra,
                                                  const weir_allocator *allocator, weir_tensor **out);

/* The same for a scalar of a dtype of `size` bytes, with the default allocator. NULL: no memory. */
weir_tensor *weiri_tensor_create_scalar(enum weir_dtype dtype, size_t size);

/* The same over foreign memory, or over the memory of an owner; the caller sets `end`. */
enum weir_status weiri_tensor_create_over(enum weiri_tensor_kind kind, void *data, enum weir_dtype dtype,
                                          const weir_shape *shape, const weir_allocator *allocator, weir_tensor **out);

/*
 * Sets *sum to the bytes of the strings of all tensors together (0 if the dtype has none) and
 * returns true; returns false on overflow. All tensors have one dtype.
 */
bool weiri_strings_of_all(weir_tensor *const tensors[], size_t count, size_t *sum);

#endif
