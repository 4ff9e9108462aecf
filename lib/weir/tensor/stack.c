/*
 * stack.c - stacks tensors of one dtype and shape: copies them one after the other under a new
 * first dimension.
 */
#include <string.h>

#include "base/memory.h"
#include "tensor/object.h"

static bool all_alike(weir_tensor *const tensors[], size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (tensors[i] == NULL || tensors[i]->dtype != tensors[0]->dtype ||
		    !weir_shape_equal(&tensors[i]->shape, &tensors[0]->shape))
			return false;
	}
	return true;
}

/* Sets *batch to [count, shape...]; returns false if there is no such shape. */
static bool batch_shape(const weir_shape *shape, size_t count, weir_shape *batch)
{
	batch->dims[0] = (int64_t)count;
	if (shape->rank == WEIR_MAX_RANK || batch->dims[0] < 0) /* more than INT64_MAX */
		return false;
	batch->rank = shape->rank + 1;
	for (uint32_t i = 0; i < shape->rank; i++)
		batch->dims[i + 1] = shape->dims[i];
	return true;
}

bool weiri_strings_of_all(weir_tensor *const tensors[], size_t count, size_t *sum)
{
	*sum = 0;
	for (size_t i = 0; tensors[0]->dtype == WEIR_BYTES && i < count; i++) {
		size_t strings = tensors[i]->nbytes - (size_t)tensors[i]->elements * sizeof(weir_bytes);

		if (!weiri_add(*sum, strings, sum))
			return false;
	}
	return true;
}

static void copy_elements(weir_tensor *to, weir_tensor *const tensors[], size_t count)
{
	char *next = to->data;

	for (size_t i = 0; i < count; i++) {
		/* Tensors without elements may have no data. */
		if (tensors[i]->nbytes != 0)
			next = (char *)memcpy(next, tensors[i]->data, tensors[i]->nbytes) + tensors[i]->nbytes;
	}
}

static void copy_strings(weir_tensor *to, weir_tensor *const tensors[], size_t count)
{
	weir_bytes *next = to->data;
	char *room = (char *)(next + to->elements);

	for (size_t i = 0; i < count; i++) {
		room = weiri_strings_copy(next, tensors[i]->data, tensors[i]->elements, room);
		next += tensors[i]->elements;
	}
}

enum weir_status weir_tensor_stack(weir_tensor *const tensors[], size_t count, const weir_allocator *allocator,
                                   weir_tensor **out)
{
	weir_shape shape;
	size_t strings;
	weir_tensor *batch;
	enum weir_status status;

	if (tensors == NULL || count == 0 || out == NULL || !all_alike(tensors, count) ||
	    !batch_shape(&tensors[0]->shape, count, &shape))
		return WEIR_INVALID_ARGUMENT;
	if (!weiri_strings_of_all(tensors, count, &strings))
		return WEIR_INVALID_ARGUMENT;
	status = weiri_tensor_create(tensors[0]->dtype, &shape, strings, allocator, &batch);
	if (status != WEIR_OK)
		return status;
	if (batch->dtype == WEIR_BYTES)
		copy_strings(batch, tensors, count);
	else
		copy_elements(batch, tensors, count);
	batch->nbytes += strings;
	*out = batch;
	return WEIR_OK;
}
