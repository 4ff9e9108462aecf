/*
 * indices.c - checks of indices and updates, shared by variables and tables.
 */
#include "tensor/indices.h"

#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "tensor/object.h"

enum weir_status weiri_rows_of(const char *what, const char *name, enum weir_dtype dtype, const weir_shape *shape,
                               struct weiri_rows *rows, weir_error *error)
{
	weir_shape row = {.rank = shape->rank - 1};
	int64_t elements;
	size_t bytes;

	if (shape->rank == 0)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "%s \"%s\" is a scalar, which has no rows", what, name);
	if (dtype == WEIR_BYTES)
		return weiri_fail(error, WEIR_UNIMPLEMENTED,
		                  "%s \"%s\" is of bytes, whose rows cannot be scattered or gathered", what, name);
	memcpy(row.dims, shape->dims + 1, row.rank * sizeof(row.dims[0]));
	/*
	 * If there are rows, a row is not larger than the whole. Otherwise it may be too large to
	 * measure, as in [0, huge, huge].
	 */
	if (shape->dims[0] == 0 || weiri_tensor_measure(dtype, &row, &elements, &bytes) != WEIR_OK) {
		elements = 0;
		bytes = 0;
	}
	*rows = (struct weiri_rows){.what = what,
	                            .name = name,
	                            .dtype = dtype,
	                            .count = shape->dims[0],
	                            .shape = row,
	                            .elements = (size_t)elements,
	                            .bytes = bytes};
	return WEIR_OK;
}

int64_t weiri_index_at(const weir_tensor *indices, int64_t i)
{
	return indices->dtype == WEIR_I32 ? ((const int32_t *)indices->data)[i] : ((const int64_t *)indices->data)[i];
}

enum weir_status weiri_indices_check(const struct weiri_rows *rows, const weir_tensor *indices, weir_error *error)
{
	if (indices == NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "%s \"%s\": indices are NULL", rows->what, rows->name);
	if (indices->dtype != WEIR_I32 && indices->dtype != WEIR_I64)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "%s \"%s\": indices are %s, expected i32 or i64", rows->what,
		                  rows->name, weir_dtype_name(indices->dtype));
	for (int64_t i = 0; i < indices->elements; i++) {
		int64_t index = weiri_index_at(indices, i);

		if (index < 0 || index >= rows->count)
			return weiri_fail(error, WEIR_INVALID_ARGUMENT,
			                  "%s \"%s\": index %" PRIi64 " is %" PRIi64 ", expected one of [0, %" PRIi64 ")",
			                  rows->what, rows->name, i, index, rows->count);
	}
	return WEIR_OK;
}

/* Sets *joined to [indices..., row...]; returns false if that has too many dims. */
static bool joined_shape(const struct weiri_rows *rows, const weir_tensor *indices, weir_shape *joined)
{
	uint32_t rank = indices->shape.rank + rows->shape.rank;

	if (rank > WEIR_MAX_RANK)
		return false;
	*joined = indices->shape;
	joined->rank = rank;
	memcpy(joined->dims + indices->shape.rank, rows->shape.dims, rows->shape.rank * sizeof(joined->dims[0]));
	return true;
}

static enum weir_status check_updates(const struct weiri_rows *rows, enum weiri_combine how, const weir_tensor *indices,
                                      const weir_tensor *updates, weir_error *error)
{
	char here[WEIR_SHAPE_TEXT_SIZE / 2], there[WEIR_SHAPE_TEXT_SIZE / 2];
	enum weir_status status = weiri_combine_check(how, rows->dtype);
	weir_shape expected = {.rank = 0};

	if (status != WEIR_OK)
		return weiri_fail(error, status, "%s \"%s\": no scatter number %d of %s", rows->what, rows->name, (int)how,
		                  weir_dtype_name(rows->dtype));
	if (updates == NULL || updates->dtype != rows->dtype)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "%s \"%s\": updates are %s, expected %s", rows->what,
		                  rows->name, updates == NULL ? "NULL" : weir_dtype_name(updates->dtype),
		                  weir_dtype_name(rows->dtype));
	if (updates->shape.rank != 0 &&
	    (!joined_shape(rows, indices, &expected) || !weir_shape_equal(&updates->shape, &expected)))
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "%s \"%s\": updates have shape %s, expected %s or a scalar",
		                  rows->what, rows->name, weir_shape_text(&updates->shape, there, sizeof(there)),
		                  weir_shape_text(&expected, here, sizeof(here)));
	if (how == WEIRI_COMBINE_DIVIDE && weiri_has_integer_zero(rows->dtype, updates->data, (size_t)updates->elements))
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "%s \"%s\": updates divide an integer by 0", rows->what,
		                  rows->name);
	return WEIR_OK;
}

/* Returns a row in which each element is the scalar; NULL if there is no memory. */
static void *spread(const struct weiri_rows *rows, const weir_tensor *scalar, const weir_allocator *allocator)
{
	size_t size = weir_dtype_size(rows->dtype);
	char *row = weiri_allocate(allocator, rows->bytes, WEIR_TENSOR_ALIGNMENT);

	for (size_t i = 0; row != NULL && i < rows->elements; i++)
		memcpy(row + i * size, scalar->data, size);
	return row;
}

enum weir_status weiri_scatter_init(struct weiri_scatter *scatter, const struct weiri_rows *rows,
                                    enum weiri_combine how, const weir_tensor *indices, const weir_tensor *updates,
                                    const weir_allocator *allocator, weir_error *error)
{
	enum weir_status status = weiri_indices_check(rows, indices, error);

	if (status == WEIR_OK)
		status = check_updates(rows, how, indices, updates, error);
	if (status != WEIR_OK)
		return status;
	*scatter = (struct weiri_scatter){.how = how, .indices = indices, .from = updates->data, .step = rows->bytes};
	/*
	 * Nothing is repeated if the updates have a row for each index, or if a row has at most one
	 * element: then the scalar is the row of each index.
	 */
	if (updates->shape.rank != 0 || rows->elements <= 1) {
		scatter->step = updates->shape.rank != 0 ? rows->bytes : 0;
		return WEIR_OK;
	}
	scatter->step = 0;
	scatter->row = spread(rows, updates, allocator);
	if (scatter->row == NULL)
		return weiri_fail(error, WEIR_RESOURCE_EXHAUSTED, "%s \"%s\": no memory for a row", rows->what, rows->name);
	scatter->from = scatter->row;
	return WEIR_OK;
}

void weiri_scatter_fini(struct weiri_scatter *scatter, const struct weiri_rows *rows, const weir_allocator *allocator)
{
	weiri_release(allocator, scatter->row, rows->bytes, WEIR_TENSOR_ALIGNMENT);
}

void weiri_scatter_apply(const struct weiri_scatter *scatter, const struct weiri_rows *rows, int64_t first, int64_t end,
                         void *data)
{
	const char *from = (const char *)scatter->from + (size_t)first * scatter->step;

	for (int64_t i = first; i < end; i++, from += scatter->step) {
		size_t index = (size_t)weiri_index_at(scatter->indices, i);

		weiri_row_combine(scatter->how, rows->dtype, (char *)data + index * rows->bytes, from, rows->elements);
	}
}

enum weir_status weiri_gather_create(const struct weiri_rows *rows, const weir_tensor *indices,
                                     const weir_allocator *allocator, weir_tensor **out, weir_error *error)
{
	weir_shape shape;
	enum weir_status status;

	if (!joined_shape(rows, indices, &shape))
		return weiri_fail(error, WEIR_INVALID_ARGUMENT,
		                  "%s \"%s\": indices of rank %u and rows of rank %u, expected at most %d", rows->what,
		                  rows->name, indices->shape.rank, rows->shape.rank, WEIR_MAX_RANK);
	status = weiri_tensor_create(rows->dtype, &shape, 0, allocator, out);
	if (status != WEIR_OK)
		return weiri_fail(error, status, "%s \"%s\": no memory for %" PRIi64 " rows", rows->what, rows->name,
		                  indices->elements);
	return WEIR_OK;
}
