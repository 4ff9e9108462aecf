/*
 * object.h - what a tensor is made of, and how the files of this layer make one.
 *
 * Layout. Header and data are one allocation: three cache lines of header, then the data, so that both are aligned to
 * WEIR_TENSOR_ALIGNMENT. The first two lines never change after the tensor is handed out; the count that every retain and
 * release moves is alone with the fields of the end of life, so that readers of the data do not feel it.
 *
 *     | what every reader reads (2 lines) | references, end of life (1 line) | data | strings whose sizes were known |
 *
 * A view (slice, row) has its own header and no data: it holds a reference to the tensor whose memory it shows, its owner. An
 * owner is never a view itself, so a chain of views is one step deep and releasing it needs no recursion.
 */
#ifndef WEIRI_TENSOR_OBJECT_H
#define WEIRI_TENSOR_OBJECT_H

#include <stddef.h>
#include <stdint.h>
#include <weir/tensor.h>

#include "base/atomic.h"
#include "base/compiler.h"
#include "reclaim/collect.h"
#include "tensor/strings.h"

/* Whose memory `data` is. Its address cannot tell: foreign memory may begin right behind a header. */
enum weiri_tensor_kind {
	WEIRI_TENSOR_OWN,
	WEIRI_TENSOR_FOREIGN,
	WEIRI_TENSOR_VIEW,
};

struct weir_tensor {
	/* written before the tensor is handed out, then only read */
	_Alignas(WEIR_TENSOR_ALIGNMENT) void *data;
	int64_t elements;
	size_t nbytes; /* of the elements and, for WEIR_BYTES, of their strings */
	enum weir_dtype dtype;
	enum weiri_tensor_kind kind;
	union {
		weir_shape shape;
		struct weiri_retired retired; /* instead, once nobody refers to it: see weiri_tensor_release_later() */
	};

	/* every thread that retains or releases */
	_Alignas(WEIR_TENSOR_ALIGNMENT) _Atomic(size_t) references;

	/* only read, and only by the last release */
	size_t size; /* bytes of the allocation that begins with this header */
	union {
		struct weiri_strings
			*strings;       /* own, WEIR_BYTES: the chunks of a builder; NULL: none, or they lie behind the elements */
		weir_tensor *owner; /* view: one reference */
		struct {
			weir_tensor_release_fn *release; /* NULL: nobody wants to know */
			void *context;
		} foreign;
	} end;
	weir_allocator allocator;
};

_Static_assert(sizeof(struct weiri_retired) <= sizeof(weir_shape), "a tensor that waits to be freed is no larger");
_Static_assert(sizeof(struct weir_tensor) % WEIR_TENSOR_ALIGNMENT == 0,
               "the data follows the header and shares its alignment");

/*
 * weir_tensor_release() for a signal handler: where that would end the tensor, the next collection does. Counts in the budget
 * until then. Lock-free. Accepts NULL.
 */
void weiri_tensor_release_later(weir_tensor *tensor);

/*
 * What counts in the budget for a tensor that a retired object holds: what was allocated for it. For memory that is not its own, of which only
 * a part may end with it: its header and the bytes that it shows.
 */
static inline size_t weiri_tensor_footprint(const weir_tensor *tensor)
{
	if (WEIRI_UNLIKELY(tensor->kind != WEIRI_TENSOR_OWN))
		return tensor->size + tensor->nbytes;
	if (WEIRI_UNLIKELY(tensor->dtype == WEIR_BYTES))
		return tensor->size + weiri_strings_allocated(tensor->end.strings);
	return tensor->size;
}

static inline int weiri_tensor_is_dtype(enum weir_dtype dtype)
{
	return weir_dtype_size(dtype) != 0;
}

/*
 * Checks dtype and shape, and computes how many elements there are and how many bytes they take. WEIR_INVALID_ARGUMENT (no such
 * dtype, shape NULL or bad, more bytes than an object can have).
 */
WEIR_MUST_CHECK enum weir_status weiri_tensor_measure(enum weir_dtype dtype, const weir_shape *shape, int64_t *elements,
                                                      size_t *nbytes);

/*
 * A tensor of its own memory, with one reference. Neither the data nor the `extra` bytes behind it are cleared. nbytes counts
 * the elements only. allocator may be NULL. Errors as for weiri_tensor_measure, and WEIR_RESOURCE_EXHAUSTED.
 */
enum weir_status weiri_tensor_create(enum weir_dtype dtype, const weir_shape *shape, size_t extra,
                                     const weir_allocator *allocator, weir_tensor **out);

/* The same over foreign memory or an owner's; the caller fills in `end`. */
enum weir_status weiri_tensor_create_over(enum weiri_tensor_kind kind, void *data, enum weir_dtype dtype,
                                          const weir_shape *shape, const weir_allocator *allocator, weir_tensor **out);

/* 1 and the bytes of the strings of all tensors together (0 where the dtype has none) in *sum; 0 when they overflow. All have one dtype. */
int weiri_strings_of_all(weir_tensor *const tensors[], size_t count, size_t *sum);

#endif
