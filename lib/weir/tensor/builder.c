/*
 * builder.c - tensors whose bytes the caller writes or copies in.
 *
 * A builder is a tensor that is not shared yet, so finishing allocates nothing and cannot fail.
 */
#include <string.h>

#include "base/memory.h"
#include "base/error.h"
#include "tensor/object.h"

struct weir_tensor_builder {
	weir_tensor tensor;
};

_Static_assert(sizeof(struct weir_tensor_builder) == sizeof(struct weir_tensor),
               "a builder becomes its tensor in place");

static enum weir_status create(enum weir_dtype dtype, const weir_shape *shape, const weir_allocator *allocator,
                               weir_tensor **out, weir_error *error)
{
	char text[WEIR_SHAPE_TEXT_SIZE];
	enum weir_status status;

	if (out == NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "tensor builder: out is NULL");
	status = weiri_tensor_create(dtype, shape, 0, allocator, out);
	if (status == WEIR_RESOURCE_EXHAUSTED)
		return weiri_fail(error, status, "tensor builder: no memory for %s",
		                  weir_shape_text(shape, text, sizeof(text)));
	if (status != WEIR_OK)
		return weiri_fail(error, status, "tensor builder: no tensor of dtype %s has the shape %s",
		                  weir_dtype_name(dtype), weir_shape_text(shape, text, sizeof(text)));
	return WEIR_OK;
}

enum weir_status weir_tensor_builder_create(enum weir_dtype dtype, const weir_shape *shape,
                                            const weir_allocator *allocator, weir_tensor_builder **out,
                                            weir_error *error)
{
	weir_tensor *tensor;
	enum weir_status status = create(dtype, shape, allocator, out != NULL ? &tensor : NULL, error);

	if (status != WEIR_OK)
		return status;
	memset(tensor->data, 0, tensor->nbytes);
	*out = (weir_tensor_builder *)(void *)tensor;
	return WEIR_OK;
}

enum weir_status weir_tensor_builder_create_unfilled(enum weir_dtype dtype, const weir_shape *shape,
                                                     const weir_allocator *allocator, weir_tensor_builder **out,
                                                     weir_error *error)
{
	weir_tensor *tensor;
	enum weir_status status;

	/* Strings: their addresses and sizes must not be made up of old bytes. */
	if (dtype == WEIR_BYTES)
		return weir_tensor_builder_create(dtype, shape, allocator, out, error);
	status = create(dtype, shape, allocator, out != NULL ? &tensor : NULL, error);
	if (status == WEIR_OK)
		*out = (weir_tensor_builder *)(void *)tensor;
	return status;
}

void *weir_tensor_builder_data(weir_tensor_builder *builder)
{
	return builder != NULL && builder->tensor.dtype != WEIR_BYTES ? builder->tensor.data : NULL;
}

/*
 * Returns room for a string of `size` > 0 bytes in place of `element`; NULL if there is no memory.
 */
static char *room_for(weir_tensor *tensor, const weir_bytes *element, size_t size)
{
	/*
	 * A string that is not longer than the previous one reuses its memory, which is const only for
	 * readers of a finished tensor.
	 */
	if (size <= element->size)
		return (char *)(uintptr_t)element->data;
	return weiri_strings_reserve(&tensor->end.strings, size, &tensor->allocator);
}

enum weir_status weir_tensor_builder_set_bytes(weir_tensor_builder *builder, int64_t index, const void *data,
                                               size_t size)
{
	weir_tensor *tensor;
	weir_bytes *element;
	char *room = NULL;

	if (builder == NULL || builder->tensor.dtype != WEIR_BYTES || (data == NULL && size != 0))
		return WEIR_INVALID_ARGUMENT;
	tensor = &builder->tensor;
	if (index < 0 || index >= tensor->elements)
		return WEIR_OUT_OF_RANGE;
	element = (weir_bytes *)tensor->data + index;
	if (size != 0) {
		room = room_for(tensor, element, size);
		if (room == NULL)
			return WEIR_RESOURCE_EXHAUSTED;
		memcpy(room, data, size);
	}
	tensor->nbytes = tensor->nbytes - element->size + size;
	*element = (weir_bytes){room, size};
	return WEIR_OK;
}

enum weir_status weir_tensor_builder_finish(weir_tensor_builder *builder, weir_tensor **out)
{
	if (builder == NULL || out == NULL)
		return WEIR_INVALID_ARGUMENT;
	*out = &builder->tensor;
	return WEIR_OK;
}

void weir_tensor_builder_discard(weir_tensor_builder *builder)
{
	if (builder != NULL)
		weir_tensor_release(&builder->tensor);
}

/* All lengths are known, so the strings are stored behind the elements, in the same allocation. */
static enum weir_status copy_of_strings(const weir_shape *shape, const weir_bytes strings[],
                                        const weir_allocator *allocator, weir_tensor **out)
{
	size_t total;
	size_t nbytes;
	int64_t elements;
	weir_tensor *tensor;
	enum weir_status status = weiri_tensor_measure(WEIR_BYTES, shape, &elements, &nbytes);

	if (status == WEIR_OK && !weiri_strings_measure(strings, elements, &total))
		status = WEIR_INVALID_ARGUMENT;
	if (status == WEIR_OK)
		status = weiri_tensor_create(WEIR_BYTES, shape, total, allocator, &tensor);
	if (status != WEIR_OK)
		return status;
	(void)weiri_strings_copy(tensor->data, strings, elements, (char *)tensor->data + nbytes);
	tensor->nbytes += total;
	*out = tensor;
	return WEIR_OK;
}

enum weir_status weir_tensor_copy_of(enum weir_dtype dtype, const weir_shape *shape, const void *data,
                                     const weir_allocator *allocator, weir_tensor **out)
{
	size_t nbytes;
	int64_t elements;
	enum weir_status status = weiri_tensor_measure(dtype, shape, &elements, &nbytes);

	if (status != WEIR_OK)
		return status;
	if (out == NULL || (data == NULL && elements != 0))
		return WEIR_INVALID_ARGUMENT;
	if (dtype == WEIR_BYTES)
		return copy_of_strings(shape, data, allocator, out);
	status = weiri_tensor_create(dtype, shape, 0, allocator, out);
	if (status == WEIR_OK && nbytes != 0)
		memcpy((*out)->data, data, nbytes);
	return status;
}

static enum weir_status scalar(enum weir_dtype dtype, const void *value, weir_tensor **out)
{
	return weir_tensor_copy_of(dtype, &weir_shape_scalar, value, NULL, out);
}

/* Of the dtypes that counts and losses have: without a look at a shape. */
static enum weir_status small_scalar(enum weir_dtype dtype, const void *value, size_t size, weir_tensor **out)
{
	weir_tensor *tensor;

	if (out == NULL)
		return WEIR_INVALID_ARGUMENT;
	tensor = weiri_tensor_create_scalar(dtype, size);
	if (tensor == NULL)
		return WEIR_RESOURCE_EXHAUSTED;
	memcpy(tensor->data, value, size);
	*out = tensor;
	return WEIR_OK;
}

enum weir_status weir_tensor_scalar_bool(bool value, weir_tensor **out)
{
	uint8_t byte = value;

	return scalar(WEIR_BOOL, &byte, out);
}

enum weir_status weir_tensor_scalar_u8(uint8_t value, weir_tensor **out)
{
	return scalar(WEIR_U8, &value, out);
}

enum weir_status weir_tensor_scalar_u16(uint16_t value, weir_tensor **out)
{
	return scalar(WEIR_U16, &value, out);
}

enum weir_status weir_tensor_scalar_u32(uint32_t value, weir_tensor **out)
{
	return scalar(WEIR_U32, &value, out);
}

enum weir_status weir_tensor_scalar_u64(uint64_t value, weir_tensor **out)
{
	return scalar(WEIR_U64, &value, out);
}

enum weir_status weir_tensor_scalar_i8(int8_t value, weir_tensor **out)
{
	return scalar(WEIR_I8, &value, out);
}

enum weir_status weir_tensor_scalar_i16(int16_t value, weir_tensor **out)
{
	return scalar(WEIR_I16, &value, out);
}

enum weir_status weir_tensor_scalar_i32(int32_t value, weir_tensor **out)
{
	return small_scalar(WEIR_I32, &value, sizeof(value), out);
}

enum weir_status weir_tensor_scalar_i64(int64_t value, weir_tensor **out)
{
	return small_scalar(WEIR_I64, &value, sizeof(value), out);
}

enum weir_status weir_tensor_scalar_f16(uint16_t bits, weir_tensor **out)
{
	return scalar(WEIR_F16, &bits, out);
}

enum weir_status weir_tensor_scalar_bf16(uint16_t bits, weir_tensor **out)
{
	return scalar(WEIR_BF16, &bits, out);
}

enum weir_status weir_tensor_scalar_f32(float value, weir_tensor **out)
{
	return small_scalar(WEIR_F32, &value, sizeof(value), out);
}

enum weir_status weir_tensor_scalar_f64(double value, weir_tensor **out)
{
	return small_scalar(WEIR_F64, &value, sizeof(value), out);
}

enum weir_status weir_tensor_scalar_bytes(const void *data, size_t size, weir_tensor **out)
{
	weir_bytes string = {data, size};

	return scalar(WEIR_BYTES, &string, out);
}
