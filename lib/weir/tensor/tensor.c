/*
 * tensor.c - creating, counting and destroying tensors.
 *
 * Invariants
 *   T1  references >= 1 while any thread may use the tensor
 *   T2  an owner is not a view
 *   T3  only `references` changes once a second thread can see the tensor
 * Pairs
 *   P1  release -> last release: every use of the tensor by a thread that released it comes before
 *       its destruction
 *
 * This file does not order how the bytes first reach another thread. The structure that passes the
 * pointer on (a variable, a queue, a keyed join) orders that. The count cannot overflow: each
 * reference is a pointer somewhere in an address space of SIZE_MAX bytes.
 *
 * Progress: retain and release are one read-modify-write; the last release runs the allocator and
 * the foreign release.
 * Checked: tests/test_tensor.c, plain, ASan + UBSan and TSan.
 */
#include "tensor/object.h"

#include "base/assert.h"
#include "base/memory.h"

enum weir_status weiri_tensor_measure(enum weir_dtype dtype, const weir_shape *shape, int64_t *elements, size_t *nbytes)
{
	int64_t count;
	size_t size;
	enum weir_status status = weir_shape_element_count(shape, &count);

	if (status != WEIR_OK)
		return status;
	if (!weiri_tensor_is_dtype(dtype) || (uint64_t)count > SIZE_MAX)
		return WEIR_INVALID_ARGUMENT;
	/* No object is larger than PTRDIFF_MAX, and that includes the header. */
	if (!weiri_multiply((size_t)count, weir_dtype_size(dtype), &size) ||
	    size > (size_t)PTRDIFF_MAX - sizeof(weir_tensor))
		return WEIR_INVALID_ARGUMENT;
	*elements = count;
	*nbytes = size;
	return WEIR_OK;
}

/* Makes a header with one reference and `behind` bytes behind it; the caller sets data. */
static weir_tensor *create_header(enum weiri_tensor_kind kind, enum weir_dtype dtype, const weir_shape *shape,
                                  size_t behind, const weir_allocator *allocator)
{
	weir_allocator from = weiri_allocator_or_default(allocator);
	weir_tensor *tensor;
	size_t size;

	if (!weiri_add(sizeof(*tensor), behind, &size))
		return NULL;
	tensor = weiri_allocate(&from, size, WEIR_TENSOR_ALIGNMENT);
	if (tensor == NULL)
		return NULL;
	*tensor = (weir_tensor){.dtype = dtype, .kind = kind, .shape.rank = shape->rank, .size = size, .allocator = from};
	/* The remaining dims stay 0, whatever the caller's shape holds there. */
	for (uint32_t i = 0; i < shape->rank; i++)
		tensor->shape.dims[i] = shape->dims[i];
	/* [relaxed] not shared yet; the first handover orders this. */
	weiri_store_relaxed(&tensor->references, 1);
	return tensor;
}

enum weir_status weiri_tensor_create(enum weir_dtype dtype, const weir_shape *shape, size_t extra,
                                     const weir_allocator *allocator, weir_tensor **out)
{
	int64_t elements;
	size_t nbytes;
	size_t behind;
	weir_tensor *tensor;
	enum weir_status status = weiri_tensor_measure(dtype, shape, &elements, &nbytes);

	if (status != WEIR_OK)
		return status;
	tensor =
		weiri_add(nbytes, extra, &behind) ? create_header(WEIRI_TENSOR_OWN, dtype, shape, behind, allocator) : NULL;
	if (tensor == NULL)
		return WEIR_RESOURCE_EXHAUSTED;
	tensor->data = tensor + 1;
	tensor->elements = elements;
	tensor->nbytes = nbytes;
	*out = tensor;
	return WEIR_OK;
}

enum weir_status weiri_tensor_create_over(enum weiri_tensor_kind kind, void *data, enum weir_dtype dtype,
                                          const weir_shape *shape, const weir_allocator *allocator, weir_tensor **out)
{
	int64_t elements;
	size_t nbytes;
	weir_tensor *tensor;
	enum weir_status status = weiri_tensor_measure(dtype, shape, &elements, &nbytes);

	if (status != WEIR_OK)
		return status;
	tensor = create_header(kind, dtype, shape, 0, allocator);
	if (tensor == NULL)
		return WEIR_RESOURCE_EXHAUSTED;
	tensor->data = data;
	tensor->elements = elements;
	tensor->nbytes = nbytes;
	*out = tensor;
	return WEIR_OK;
}

static void release_header(weir_tensor *tensor)
{
	weir_allocator allocator = tensor->allocator;

	weiri_release(&allocator, tensor, tensor->size, WEIR_TENSOR_ALIGNMENT);
}

/*
 * The header is released first, so that the foreign release may even destroy what the allocator
 * depends on.
 */
static void end_foreign(weir_tensor *tensor)
{
	weir_tensor_release_fn *release = tensor->end.foreign.release;
	void *context = tensor->end.foreign.context;
	void *data = tensor->data;

	release_header(tensor);
	if (release != NULL)
		release(context, data);
}

static void end_own(weir_tensor *tensor)
{
	if (tensor->dtype == WEIR_BYTES)
		weiri_strings_release(tensor->end.strings, &tensor->allocator);
	release_header(tensor);
}

/*
 * Destroys a tensor without references. Returns the owner, whose reference the caller must release,
 * or NULL.
 */
static weir_tensor *end(weir_tensor *tensor)
{
	weir_tensor *owner = NULL;

	switch (tensor->kind) {
	case WEIRI_TENSOR_OWN: end_own(tensor); break;
	case WEIRI_TENSOR_FOREIGN: end_foreign(tensor); break;
	case WEIRI_TENSOR_VIEW:
		owner = tensor->end.owner;
		WEIR_ASSERT1(T2, owner->kind != WEIRI_TENSOR_VIEW);
		release_header(tensor);
		break;
	}
	return owner;
}

weir_tensor *weir_tensor_retain(weir_tensor *tensor)
{
	size_t before;

	if (tensor == NULL)
		return NULL;
	/*
	 * [relaxed] The caller has a reference, so the tensor cannot be destroyed meanwhile, and a
	 * count publishes nothing.
	 */
	before = weiri_fetch_add_relaxed(&tensor->references, 1);
	WEIR_ASSERT1(T1, before >= 1);
	(void)before;
	return tensor;
}

/* Drops one reference; returns true if it was the last. */
static bool let_go(weir_tensor *tensor)
{
	/*
	 * [P1 acq_rel] Pairs with itself: the release half passes this thread's uses on; the acquire
	 * half of the last call receives the uses of all threads. This is one operation, not a release
	 * followed by an acquire fence in the last call only, because ThreadSanitizer does not see
	 * fences.
	 */
	size_t before = weiri_fetch_sub_acq_rel(&tensor->references, 1);

	WEIR_ASSERT1(T1, before >= 1);
	return before == 1;
}

void weir_tensor_release(weir_tensor *tensor)
{
	while (tensor != NULL) {
		if (!let_go(tensor))
			return;
		tensor = end(tensor);
	}
}

static void end_retired(struct weiri_retired *object)
{
	weir_tensor *tensor = (weir_tensor *)((char *)object - offsetof(struct weir_tensor, retired));

	weir_tensor_release(end(tensor));
}

void weiri_tensor_release_later(weir_tensor *tensor)
{
	struct weiri_record *record = weiri_record_mine;

	/*
	 * A thread without a record has not used Weir before. So this is not a signal handler: a
	 * handler may read variables only on a thread that has a record.
	 */
	if (record == NULL) {
		weir_tensor_release(tensor);
	} else if (tensor != NULL && let_go(tensor)) {
		size_t bytes = weiri_tensor_footprint(tensor);

		tensor->retired.bytes = bytes;
		tensor->retired.reclaim = end_retired;
		weiri_retire_unreachable(record, &tensor->retired);
	}
}

enum weir_dtype weir_tensor_dtype(const weir_tensor *tensor)
{
	return tensor->dtype;
}

const weir_shape *weir_tensor_shape(const weir_tensor *tensor)
{
	return &tensor->shape;
}

int64_t weir_tensor_element_count(const weir_tensor *tensor)
{
	return tensor->elements;
}

size_t weir_tensor_byte_count(const weir_tensor *tensor)
{
	return tensor->nbytes;
}

const void *weir_tensor_data(const weir_tensor *tensor)
{
	return tensor->data;
}
