/*
 * view.c - tensors over memory that they do not own: the program's (wrap), or another tensor's
 * (slice, row, reshape).
 */
#include "base/assert.h"
#include "tensor/object.h"

static bool is_aligned(const void *data, enum weir_dtype dtype)
{
	return (uintptr_t)data % weir_dtype_size(dtype) == 0;
}

enum weir_status weir_tensor_wrap(enum weir_dtype dtype, const weir_shape *shape, void *data,
                                  weir_tensor_release_fn *release, void *context, const weir_allocator *allocator,
                                  weir_tensor **out)
{
	size_t nbytes;
	int64_t elements;
	enum weir_status status = weiri_tensor_measure(dtype, shape, &elements, &nbytes);

	if (status != WEIR_OK)
		return status;
	if (dtype == WEIR_BYTES)
		return WEIR_UNIMPLEMENTED;
	if (out == NULL || (data == NULL && elements != 0) || !is_aligned(data, dtype))
		return WEIR_INVALID_ARGUMENT;
	status = weiri_tensor_create_over(WEIRI_TENSOR_FOREIGN, data, dtype, shape, allocator, out);
	if (status != WEIR_OK)
		return status;
	(*out)->end.foreign.release = release;
	(*out)->end.foreign.context = context;
	return WEIR_OK;
}

/* Makes a view of `tensor` with another shape, which starts at element `first`. */
static enum weir_status view(weir_tensor *tensor, int64_t first, const weir_shape *shape, weir_tensor **out)
{
	/* T2: a view of a view is a view of its owner. */
	weir_tensor *owner = tensor->kind == WEIRI_TENSOR_VIEW ? tensor->end.owner : tensor;
	char *data = tensor->data;
	weir_tensor *made;
	enum weir_status status;

	/* A wrapped tensor without elements may have no data, and NULL + 0 is undefined in C. */
	if (first != 0)
		data += (size_t)first * weir_dtype_size(tensor->dtype);
	status = weiri_tensor_create_over(WEIRI_TENSOR_VIEW, data, tensor->dtype, shape, &tensor->allocator, &made);
	if (status != WEIR_OK)
		return status;
	if (tensor->dtype == WEIR_BYTES) {
		size_t total = 0;
		bool sound = weiri_strings_measure((const weir_bytes *)(const void *)data, made->elements, &total);

		WEIR_ASSERT1(T3, sound); /* checked when the owner was made */
		(void)sound;
		made->nbytes += total;
	}
	made->end.owner = weir_tensor_retain(owner);
	*out = made;
	return WEIR_OK;
}

/* Returns the number of elements in a row. The tensor has rows. */
static int64_t row_elements(const weir_tensor *tensor)
{
	return tensor->elements / tensor->shape.dims[0];
}

enum weir_status weir_tensor_slice(weir_tensor *tensor, int64_t begin, int64_t count, weir_tensor **out)
{
	weir_shape shape;

	if (tensor == NULL || out == NULL || tensor->shape.rank == 0)
		return WEIR_INVALID_ARGUMENT;
	/* If begin is past the end, the difference is negative, and every count exceeds it. */
	if (begin < 0 || count < 0 || count > tensor->shape.dims[0] - begin)
		return WEIR_OUT_OF_RANGE;
	shape = tensor->shape;
	shape.dims[0] = count;
	return view(tensor, begin == 0 ? 0 : begin * row_elements(tensor), &shape, out);
}

enum weir_status weir_tensor_row(weir_tensor *tensor, int64_t index, weir_tensor **out)
{
	weir_shape shape = {0};

	if (tensor == NULL || out == NULL || tensor->shape.rank == 0)
		return WEIR_INVALID_ARGUMENT;
	if (index < 0 || index >= tensor->shape.dims[0])
		return WEIR_OUT_OF_RANGE;
	shape.rank = tensor->shape.rank - 1;
	for (uint32_t i = 0; i < shape.rank; i++)
		shape.dims[i] = tensor->shape.dims[i + 1];
	return view(tensor, index * row_elements(tensor), &shape, out);
}

enum weir_status weir_tensor_reshape(weir_tensor *tensor, const weir_shape *shape, weir_tensor **out)
{
	int64_t elements;

	if (tensor == NULL || out == NULL || weir_shape_element_count(shape, &elements) != WEIR_OK ||
	    elements != tensor->elements)
		return WEIR_INVALID_ARGUMENT;
	return view(tensor, 0, shape, out);
}
