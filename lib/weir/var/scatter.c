/*
 * scatter.c - changing rows of a variable in one update, and gathering rows from one version.
 */
#include "var/gather.h"

#include <string.h>

#include "base/error.h"
#include "tensor/indices.h"
#include "tensor/object.h"
#include "var/kind.h"
#include "var/update.h"

enum weir_status weir_var_scatter(weir_var *var, enum weir_scatter how, const weir_tensor *indices,
                                  const weir_tensor *updates, uint64_t deadline_ns, weir_read *published,
                                  weir_error *error)
{
	struct weiri_change change = {
		.how = (enum weiri_combine)how, .is_of_rows = true, .operand = updates, .indices = indices};

	return weiri_update_by(var, &change, deadline_ns, published, error);
}

static enum weir_status gather(const weir_var *var, const weir_tensor *value, const weir_tensor *indices,
                               const weir_allocator *allocator, weir_tensor **out, weir_error *error)
{
	struct weiri_rows rows;
	enum weir_status status = weiri_rows_of("variable", var->name, value->dtype, &value->shape, &rows, error);

	if (status == WEIR_OK)
		status = weiri_indices_check(&rows, indices, error);
	if (status == WEIR_OK)
		status = weiri_gather_create(&rows, indices, allocator, out, error);
	for (int64_t i = 0; status == WEIR_OK && rows.bytes != 0 && i < indices->elements; i++)
		memcpy((char *)(*out)->data + (size_t)i * rows.bytes,
		       (const char *)value->data + (size_t)weiri_index_at(indices, i) * rows.bytes, rows.bytes);
	return status;
}

enum weir_status weir_var_gather(weir_var *var, const weir_tensor *indices, const weir_allocator *allocator,
                                 weir_tensor **out, weir_error *error)
{
	uint64_t version;

	return weiri_var_gather(var, indices, allocator, out, &version, error);
}

enum weir_status weiri_var_gather(weir_var *var, const weir_tensor *indices, const weir_allocator *allocator,
                                  weir_tensor **out, uint64_t *version, weir_error *error)
{
	enum weir_status status;
	weir_read read;

	if (var == NULL || out == NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "gather: %s is NULL", var == NULL ? "variable" : "out");
	status = weiri_kind_check_tensors(var, "gather", error);
	if (status != WEIR_OK)
		return status;
	status = weir_var_read(var, &read);
	if (status != WEIR_OK)
		return weiri_fail(error, status, "variable \"%s\" is not initialized", var->name);
	status = gather(var, read.tensor, indices, allocator, out, error);
	*version = read.version;
	weir_read_release(&read);
	return status;
}
