/*
 * spec.c - partial knowledge of tensors.
 */
#include "graph/spec.h"

#include <stdio.h>

#include "tensor/object.h"

struct weiri_spec weiri_spec_of(enum weir_dtype dtype, const weir_shape *shape)
{
	struct weiri_spec spec = {.dtype = dtype};

	if (shape != NULL) {
		spec.ranked = true;
		spec.shape = *shape;
	}
	return spec;
}

struct weiri_spec weiri_spec_scalar(enum weir_dtype dtype)
{
	return (struct weiri_spec){.dtype = dtype, .ranked = true};
}

struct weiri_spec weiri_spec_vector(enum weir_dtype dtype, int64_t size)
{
	struct weiri_spec spec = weiri_spec_scalar(dtype);

	spec.shape.rank = 1;
	spec.shape.dims[0] = size;
	return spec;
}

struct weiri_spec weiri_spec_of_tensor(const weir_tensor *tensor)
{
	return weiri_spec_of(weir_tensor_dtype(tensor), weir_tensor_shape(tensor));
}

bool weiri_spec_known(const struct weiri_spec *spec)
{
	bool known = spec->ranked;

	for (uint32_t i = 0; known && i < spec->shape.rank; i++)
		known = spec->shape.dims[i] >= 0;
	return known;
}

bool weiri_dim_compatible(int64_t a, int64_t b)
{
	return a < 0 || b < 0 || a == b;
}

int64_t weiri_dim_merge(int64_t a, int64_t b)
{
	return a < 0 ? b : a;
}

bool weiri_spec_compatible(const struct weiri_spec *a, const struct weiri_spec *b)
{
	if (a->dtype != b->dtype)
		return false;
	if (!a->ranked || !b->ranked)
		return true;
	if (a->shape.rank != b->shape.rank)
		return false;
	for (uint32_t i = 0; i < a->shape.rank; i++) {
		if (!weiri_dim_compatible(a->shape.dims[i], b->shape.dims[i]))
			return false;
	}
	return true;
}

bool weiri_spec_fits(const struct weiri_spec *expected, const weir_tensor *tensor)
{
	const weir_shape *shape = &tensor->shape;
	bool fits = expected->dtype == tensor->dtype && (!expected->ranked || expected->shape.rank == shape->rank);

	for (uint32_t i = 0; fits && expected->ranked && i < shape->rank; i++)
		fits = expected->shape.dims[i] < 0 || expected->shape.dims[i] == shape->dims[i];
	return fits;
}

bool weiri_partial_shape_ok(const weir_shape *shape)
{
	return shape->rank <= WEIR_MAX_RANK;
}

const char *weiri_spec_text(const struct weiri_spec *spec, char text[])
{
	char dims[WEIRI_SPEC_TEXT_SIZE - 16];

	if (spec->ranked)
		(void)weir_shape_text(&spec->shape, dims, sizeof(dims));
	else
		(void)snprintf(dims, sizeof(dims), "of any shape");
	(void)snprintf(text, WEIRI_SPEC_TEXT_SIZE, "%s %s", weir_dtype_name(spec->dtype), dims);
	return text;
}
