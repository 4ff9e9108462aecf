/*
 * tuple.c - checking, making and stacking tuples.
 */
#include "tuples/tuple.h"

#include <stdalign.h>

#include "base/error.h"

static enum weir_status fail_shape(const weir_tensor_queue *queue, size_t i, const weir_shape *expected,
                                   const char *prefix, const weir_shape *got, weir_error *error)
{
	char want[WEIR_SHAPE_TEXT_SIZE], have[WEIR_SHAPE_TEXT_SIZE];

	return weiri_fail(error, WEIR_INVALID_ARGUMENT, "queue \"%s\": component %zu (%s): shape must be %s%s, got %s",
	                  weir_queue_name(queue->queue), i, queue->components[i].name, prefix,
	                  weir_shape_text(expected, want, sizeof(want)), weir_shape_text(got, have, sizeof(have)));
}

/* Returns true if the shape is a number of rows, followed by a shape that fits `element`. */
static bool is_batch_of(const weir_shape *shape, const weir_shape *element)
{
	weir_shape row = {.rank = shape->rank - 1}; /* the caller has checked that the rank is not 0 */

	for (uint32_t i = 0; i < row.rank; i++)
		row.dims[i] = shape->dims[i + 1];
	return weir_shape_fits(element, &row);
}

static enum weir_status check_component(const weir_tensor_queue *queue, size_t i, const weir_tensor *tensor,
                                        bool batched, weir_error *error)
{
	const struct weiri_component *component = &queue->components[i];
	const char *name = weir_queue_name(queue->queue);
	const weir_shape *shape;

	if (tensor == NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "queue \"%s\": component %zu (%s) is NULL", name, i,
		                  component->name);
	if (weir_tensor_dtype(tensor) != component->dtype)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "queue \"%s\": component %zu (%s): dtype must be %s, got %s",
		                  name, i, component->name, weir_dtype_name(component->dtype),
		                  weir_dtype_name(weir_tensor_dtype(tensor)));
	shape = weir_tensor_shape(tensor);
	if (batched && shape->rank == 0)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "queue \"%s\": component %zu (%s): a scalar has no rows", name,
		                  i, component->name);
	if (!component->has_shape)
		return WEIR_OK;
	if (batched)
		return is_batch_of(shape, &component->shape) ? WEIR_OK
		                                             : fail_shape(queue, i, &component->shape, "[n] + ", shape, error);
	return weir_shape_fits(&component->shape, shape) ? WEIR_OK
	                                                 : fail_shape(queue, i, &component->shape, "", shape, error);
}

enum weir_status weiri_tuple_check(const weir_tensor_queue *queue, weir_tensor *const tuple[], size_t count,
                                   bool batched, int64_t *rows, weir_error *error)
{
	if (tuple == NULL || count != queue->count)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "queue \"%s\": a tuple has %zu component%s, got %zu",
		                  weir_queue_name(queue->queue), queue->count, WEIRI_S(queue->count),
		                  tuple != NULL ? count : 0);
	for (size_t i = 0; i < count; i++) {
		enum weir_status status = check_component(queue, i, tuple[i], batched, error);

		if (status != WEIR_OK)
			return status;
		if (batched && weir_tensor_shape(tuple[i])->dims[0] != weir_tensor_shape(tuple[0])->dims[0])
			return weiri_fail(
				error, WEIR_INVALID_ARGUMENT, "queue \"%s\": component %zu (%s) has %lld row%s, component 0 has %lld",
				weir_queue_name(queue->queue), i, queue->components[i].name,
				(long long)weir_tensor_shape(tuple[i])->dims[0], WEIRI_S(weir_tensor_shape(tuple[i])->dims[0]),
				(long long)weir_tensor_shape(tuple[0])->dims[0]);
	}
	if (batched)
		*rows = weir_tensor_shape(tuple[0])->dims[0];
	return WEIR_OK;
}

static size_t tuple_size(const weir_tensor_queue *queue)
{
	return sizeof(struct weiri_tuple) + queue->count * sizeof(weir_tensor *);
}

static struct weiri_tuple *tuple_allocate(const weir_tensor_queue *queue)
{
	struct weiri_tuple *tuple =
		weiri_allocate_zeroed(&queue->allocator, tuple_size(queue), alignof(struct weiri_tuple));

	if (tuple != NULL)
		tuple->count = (uint32_t)queue->count;
	return tuple;
}

struct weiri_tuple *weiri_tuple_create(const weir_tensor_queue *queue, weir_tensor *const tensors[])
{
	struct weiri_tuple *tuple = tuple_allocate(queue);

	for (size_t i = 0; tuple != NULL && i < queue->count; i++)
		tuple->tensors[i] = weir_tensor_retain(tensors[i]);
	return tuple;
}

struct weiri_tuple *weiri_tuple_of_row(const weir_tensor_queue *queue, weir_tensor *const tensors[], int64_t row)
{
	struct weiri_tuple *tuple = tuple_allocate(queue);

	for (size_t i = 0; tuple != NULL && i < queue->count; i++) {
		if (weir_tensor_row(tensors[i], row, &tuple->tensors[i]) != WEIR_OK) {
			weiri_tuple_free(queue, tuple);
			return NULL;
		}
	}
	return tuple;
}

void weiri_tuple_free(const weir_tensor_queue *queue, struct weiri_tuple *tuple)
{
	for (size_t i = 0; tuple != NULL && i < tuple->count; i++)
		weir_tensor_release(tuple->tensors[i]);
	weiri_release(&queue->allocator, tuple, tuple_size(queue), alignof(struct weiri_tuple));
}

void weiri_tuple_move(const weir_tensor_queue *queue, struct weiri_tuple *tuple, weir_tensor *tensors[])
{
	for (size_t i = 0; i < tuple->count; i++)
		tensors[i] = tuple->tensors[i];
	weiri_release(&queue->allocator, tuple, tuple_size(queue), alignof(struct weiri_tuple));
}

/* -- stacking ---------------------------------------------------------------------------------- */

static enum weir_status make_empty(const weir_tensor_queue *queue, size_t component, weir_tensor **out)
{
	const weir_shape *element = &queue->components[component].shape;
	weir_shape shape = {.rank = element->rank + 1};
	weir_tensor_builder *builder;
	enum weir_status status;

	for (uint32_t i = 0; i < element->rank; i++)
		shape.dims[i + 1] = element->dims[i] >= 0 ? element->dims[i] : 0;
	status = weir_tensor_builder_create(queue->components[component].dtype, &shape, &queue->allocator, &builder, NULL);
	return status == WEIR_OK ? weir_tensor_builder_finish(builder, out) : status;
}

static enum weir_status stack_component(const weir_tensor_queue *queue, size_t component, void *const tuples[],
                                        size_t rows, weir_tensor **column, weir_tensor **out)
{
	if (rows == 0)
		return make_empty(queue, component, out);
	for (size_t row = 0; row < rows; row++)
		column[row] = ((struct weiri_tuple *)tuples[row])->tensors[component];
	return queue->components[component].known ? weir_tensor_stack(column, rows, &queue->allocator, out)
	                                          : weir_tensor_stack_padded(column, rows, &queue->allocator, out);
}

enum weir_status weiri_tuple_stack(const weir_tensor_queue *queue, void *const tuples[], size_t rows,
                                   weir_tensor *tensors[])
{
	weir_tensor *stacked[WEIR_TENSOR_QUEUE_MAX_COMPONENTS];
	size_t size = (rows != 0 ? rows : 1) * sizeof(weir_tensor *), made = 0;
	weir_tensor **column = weiri_allocate(&queue->allocator, size, alignof(weir_tensor *));
	enum weir_status status = column != NULL ? WEIR_OK : WEIR_RESOURCE_EXHAUSTED;

	while (status == WEIR_OK && made < queue->count) {
		status = stack_component(queue, made, tuples, rows, column, &stacked[made]);
		made += status == WEIR_OK;
	}
	weiri_release(&queue->allocator, column, size, alignof(weir_tensor *));
	for (size_t i = 0; i < made; i++) {
		if (status == WEIR_OK)
			tensors[i] = stacked[i];
		else
			weir_tensor_release(stacked[i]);
	}
	return status;
}
