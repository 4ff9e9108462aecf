/*
 * scatter.c - rows of variables changed by one update, and gathered from one version.
 */
#include <weir/scatter.h>

#include <string.h>

#include "base/error.h"
#include "tensor/indices.h"
#include "tensor/object.h"
#include "var/combine.h"

struct request {
	const weir_var *var;
	enum weir_scatter how;
	const weir_tensor *indices;
	const weir_tensor *updates;
};

/* The function of the update: the shape may differ from one version to the next, so all is checked against each. */
static enum weir_status scatter(void *context, const weir_read *current, weir_tensor **next, weir_error *error)
{
	const struct request *request = context;
	const weir_allocator *allocator = &request->var->allocator;
	const weir_tensor *value = current->tensor;
	struct weiri_scatter work;
	struct weiri_rows rows;
	enum weir_status status = weiri_rows_of("variable", request->var->name, value->dtype, &value->shape, &rows, error);

	if (status == WEIR_OK)
		status = weiri_scatter_init(&work, &rows, (enum weiri_combine)request->how, request->indices, request->updates,
		                            allocator, error);
	if (status != WEIR_OK)
		return status;
	status = weiri_tensor_create(value->dtype, &value->shape, 0, allocator, next);
	if (status == WEIR_OK) {
		if (value->nbytes != 0)
			memcpy((*next)->data, value->data, value->nbytes);
		weiri_scatter_apply(&work, &rows, 0, request->indices->elements, (*next)->data);
	} else {
		status = weiri_fail(error, status, "variable \"%s\": no memory for a value of %zu bytes", request->var->name,
		                    value->nbytes);
	}
	weiri_scatter_fini(&work, &rows, allocator);
	return status;
}

/* Whether several updates had better go together. */
static int is_large(weir_var *var)
{
	weir_read read;
	int is_large;

	if (weir_var_read(var, &read) != WEIR_OK)
		return 0;
	is_large = weir_tensor_nbytes(read.tensor) >= weiri_combine_from;
	weir_read_release(&read);
	return is_large;
}

enum weir_status weir_var_scatter(weir_var *var, enum weir_scatter how, const weir_tensor *indices,
                                  const weir_tensor *updates, uint64_t deadline_ns, weir_read *published,
                                  weir_error *error)
{
	const struct weiri_change change = {.how = (enum weiri_combine)how, .operand = updates, .indices = indices};
	enum weir_status status;

	if (var != NULL && indices != NULL && updates != NULL && is_large(var) &&
	    weiri_combine(var, &change, deadline_ns, published, &status, error))
		return status;
	return weir_var_update(var, scatter, &(struct request){var, how, indices, updates}, deadline_ns, published, error);
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
	enum weir_status status;
	weir_read read;

	if (var == NULL || out == NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "gather: %s is NULL", var == NULL ? "variable" : "out");
	status = weir_var_read(var, &read);
	if (status != WEIR_OK)
		return weiri_fail(error, status, "variable \"%s\" is not initialized", var->name);
	status = gather(var, read.tensor, indices, allocator, out, error);
	weir_read_release(&read);
	return status;
}
