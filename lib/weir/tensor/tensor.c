/*
 * tensor.c - creating, counting and destroying tensors. A tensor is a value: reclaim/value.h has
 * the invariant and the pair of its references.
 *
 * Invariants
 *   T2  an owner is not a view
 *   T3  only the count of references changes while a second thread can see the tensor
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
	size_t size, each = weir_dtype_size(dtype); /* 0: there is no such dtype */
	enum weir_status status = weir_shape_element_count(shape, &count);

	if (status != WEIR_OK)
		return status;
	if (each == 0 || (uint64_t)count > SIZE_MAX)
		return WEIR_INVALID_ARGUMENT;
	/* No object is larger than PTRDIFF_MAX, and that includes the header. */
	if (!weiri_multiply((size_t)count, each, &size) || size > (size_t)PTRDIFF_MAX - sizeof(weir_tensor))
		return WEIR_INVALID_ARGUMENT;
	*elements = count;
	*nbytes = size;
	return WEIR_OK;
}

/* -- ending ------------------------------------------------------------------------------------ */

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

static weir_tensor *tensor_of(struct weiri_value *value)
{
	return WEIRI_CONTAINER_OF(value, weir_tensor, value);
}

static void end_value(struct weiri_value *value)
{
	weir_tensor_release(end(tensor_of(value)));
}

static void end_retired(struct weiri_retired *object)
{
	weir_tensor *tensor = (weir_tensor *)((char *)object - offsetof(struct weir_tensor, retired));

	end_value(&tensor->value);
}

static size_t footprint(const struct weiri_value *value)
{
	return weiri_tensor_footprint(
		(const weir_tensor *)(const void *)((const char *)value - offsetof(weir_tensor, value)));
}

static void retire(struct weiri_record *record, struct weiri_value *value)
{
	weir_tensor *tensor = tensor_of(value);
	size_t bytes = weiri_tensor_footprint(tensor);

	tensor->retired.bytes = bytes;
	tensor->retired.reclaim = end_retired;
	weiri_retire_unreachable(record, &tensor->retired);
}

static const struct weiri_value_kind tensors = {end_value, retire, footprint};

/* -- creating ---------------------------------------------------------------------------------- */

/* Makes a header with one reference and `behind` bytes behind it; the caller sets data, elements and nbytes. */
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
	/* Field by field: gcc clears a struct of this size by a string instruction, 11 ns instead of 3 (Zen 4). */
	tensor->dtype = dtype;
	tensor->kind = kind;
	tensor->size = size;
	tensor->end.foreign.release = NULL;
	tensor->end.foreign.context = NULL;
	tensor->allocator = from;
	tensor->shape = (weir_shape){.rank = shape->rank};
	/* The remaining dims stay 0, whatever the caller's shape holds there. */
	for (uint32_t i = 0; i < shape->rank; i++)
		tensor->shape.dims[i] = shape->dims[i];
	weiri_value_init(&tensor->value, &tensors);
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

weir_tensor *weiri_tensor_create_scalar(enum weir_dtype dtype, size_t size)
{
	weir_tensor *tensor = create_header(WEIRI_TENSOR_OWN, dtype, &weir_shape_scalar, size, NULL);

	if (tensor == NULL)
		return NULL;
	tensor->data = tensor + 1;
	tensor->elements = 1;
	tensor->nbytes = size;
	return tensor;
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

/* -- references and fields --------------------------------------------------------------------- */

weir_tensor *weir_tensor_retain(weir_tensor *tensor)
{
	if (tensor != NULL)
		weiri_value_retain(&tensor->value);
	return tensor;
}

/* The last reference is gone. Apart, since most releases are not the last one and need no registers saved. */
static WEIRI_NOINLINE void end_with_owner(weir_tensor *tensor)
{
	do
		tensor = end(tensor);
	while (tensor != NULL && weiri_value_let_go(&tensor->value));
}

void weir_tensor_release(weir_tensor *tensor)
{
	if (tensor != NULL && weiri_value_let_go(&tensor->value))
		end_with_owner(tensor);
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
