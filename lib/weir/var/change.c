/*
 * change.c - changes of values. Changes of the whole value are applied block by block: all of them
 * to one block, while it is in the nearest cache.
 */
#include "var/change.h"

#include <string.h>

#include "base/error.h"
#include "tensor/elementwise.h"
#include "tensor/object.h"

enum { BLOCK_BYTES = 16 << 10 };

static enum weir_status fit_all(const struct weiri_change *change, const char *name, const weir_tensor *value,
                                weir_error *error)
{
	const weir_tensor *operand = change->operand;
	char here[WEIR_SHAPE_TEXT_SIZE / 2], there[WEIR_SHAPE_TEXT_SIZE / 2];
	enum weir_status status = WEIR_INVALID_ARGUMENT;

	if (operand->dtype == value->dtype && weir_shape_equal(&operand->shape, &value->shape))
		status = weiri_combine_check(change->how, value->dtype);
	if (status == WEIR_OK)
		return WEIR_OK;
	return weiri_fail(error, status, "variable \"%s\": %s %s cannot be changed by %s %s", name,
	                  weir_dtype_name(value->dtype), weir_shape_text(&value->shape, here, sizeof(here)),
	                  weir_dtype_name(operand->dtype), weir_shape_text(&operand->shape, there, sizeof(there)));
}

static enum weir_status fit_rows(struct weiri_change *change, const char *name, const weir_tensor *value,
                                 const weir_allocator *allocator, weir_error *error)
{
	enum weir_status status;

	weiri_change_fini(change, allocator);
	status = weiri_rows_of("variable", name, value->dtype, &value->shape, &change->rows, error);
	if (status != WEIR_OK)
		return status;
	return weiri_scatter_init(&change->scatter, &change->rows, change->how, change->indices, change->operand, allocator,
	                          error);
}

enum weir_status weiri_change_fit(struct weiri_change *change, const char *name, const weir_tensor *value,
                                  const weir_allocator *allocator, weir_error *error)
{
	return change->is_of_rows ? fit_rows(change, name, value, allocator, error) : fit_all(change, name, value, error);
}

/* The contents of an operand are const; its reference count is not. */
static weir_tensor *counted(const weir_tensor *operand)
{
	return (weir_tensor *)(uintptr_t)operand;
}

void weiri_change_keep(struct weiri_change *change)
{
	(void)weir_tensor_retain(counted(change->operand));
	if (change->is_of_rows)
		(void)weir_tensor_retain(counted(change->indices));
	change->keeps = true;
}

size_t weiri_change_bytes(const struct weiri_change *change)
{
	size_t bytes = change->scatter.row != NULL ? change->rows.bytes : 0;

	if (change->keeps)
		bytes += weiri_tensor_footprint(change->operand) +
		         (change->is_of_rows ? weiri_tensor_footprint(change->indices) : 0);
	return bytes;
}

void weiri_change_fini(struct weiri_change *change, const weir_allocator *allocator)
{
	if (change->scatter.row != NULL)
		weiri_scatter_fini(&change->scatter, &change->rows, allocator);
	change->scatter.row = NULL;
	if (change->keeps) {
		weir_tensor_release(counted(change->operand));
		weir_tensor_release(counted(change->indices));
	}
	change->keeps = false;
}

/* -- applying changes -------------------------------------------------------------------------- */

/* A value under construction. */
struct making {
	const weir_tensor *from; /* NULL: already copied */
	weir_tensor *value;
	weiri_wanted_fn *wanted;
	void *context;
};

static size_t block_bytes(const struct making *making, size_t at)
{
	size_t left = making->value->nbytes - at;

	return left < BLOCK_BYTES ? left : BLOCK_BYTES;
}

static bool copy(struct making *making)
{
	for (size_t at = 0; at < making->value->nbytes; at += BLOCK_BYTES) {
		if (!making->wanted(making->context))
			return false;
		memcpy((char *)making->value->data + at, (const char *)making->from->data + at, block_bytes(making, at));
	}
	making->from = NULL;
	return true;
}

static bool change_all(struct making *making, const struct weiri_change *const changes[], size_t count)
{
	enum weir_dtype dtype = making->value->dtype;

	for (size_t at = 0; at < making->value->nbytes; at += BLOCK_BYTES) {
		char *out = (char *)making->value->data + at;
		size_t n = block_bytes(making, at) / weir_dtype_size(dtype), i = 0;

		if (!making->wanted(making->context))
			return false;
		if (making->from != NULL) {
			weiri_elementwise_apply(dtype, changes[0]->how, (const char *)making->from->data + at,
			                        (const char *)changes[0]->operand->data + at, out, n);
			i = 1;
		}
		for (; i < count; i++)
			weiri_row_combine(changes[i]->how, dtype, out, (const char *)changes[i]->operand->data + at, n);
	}
	making->from = NULL;
	return true;
}

/*
 * There may be many more indices than rows. So this function asks whether the value is still wanted
 * each time it has changed as many rows as a block holds, or one row if rows are larger.
 */
static bool change_rows(struct making *making, const struct weiri_change *change)
{
	int64_t count = change->indices->elements, at_once = 1 + (int64_t)(BLOCK_BYTES / (change->rows.bytes + 1));

	if (making->from != NULL && !copy(making))
		return false;
	for (int64_t i = 0; i < count; i += at_once) {
		if (!making->wanted(making->context))
			return false;
		weiri_scatter_apply(&change->scatter, &change->rows, i, i + at_once < count ? i + at_once : count,
		                    making->value->data);
	}
	return true;
}

bool weiri_changes_make(const struct weiri_change *const changes[], size_t count, const weir_tensor *from,
                        weir_tensor *value, weiri_wanted_fn *wanted, void *context)
{
	struct making making = {from, value, wanted, context};
	size_t end;

	for (size_t i = 0; i < count; i = end) {
		bool is_made;

		for (end = i; end < count && !changes[end]->is_of_rows;)
			end++;
		if (end > i)
			is_made = change_all(&making, changes + i, end - i);
		else
			is_made = change_rows(&making, changes[end++]);
		if (!is_made)
			return false;
	}
	return true;
}

/* Always returns true: only the caller waits for this value. */
static bool always(void *context)
{
	(void)context;
	return true;
}

enum weir_status weiri_change_value(struct weiri_change *change, const char *name, const weir_tensor *value,
                                    const weir_allocator *allocator, weir_tensor **next, weir_error *error)
{
	const struct weiri_change *one = change;
	enum weir_status status = weiri_change_fit(change, name, value, allocator, error);

	if (status != WEIR_OK)
		return status;
	status = weiri_tensor_create(value->dtype, &value->shape, 0, allocator, next);
	if (status == WEIR_OK)
		(void)weiri_changes_make(&one, 1, value, *next, always, NULL);
	else
		status = weiri_fail(error, status, "variable \"%s\": no memory for a value of %zu byte%s", name, value->nbytes,
		                    WEIRI_S(value->nbytes));
	weiri_change_fini(change, allocator);
	return status;
}
