/*
 * queue_list.c - several queues for the same tuples.
 */
#include "tuples/queue_list.h"

#include <stdalign.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "tuples/tuple.h"

/* -- what they have in common ------------------------------------------------------------------ */

/*
 * Reduces the shape in *common to what both shapes have in common. A dim in which they differ, or
 * which one of them does not know, becomes unknown. If the ranks differ, no shape is known.
 */
static void merge_shape(struct weiri_component *common, const struct weiri_component *other)
{
	if (!other->has_shape || common->shape.rank != other->shape.rank)
		common->has_shape = false;
	for (uint32_t d = 0; common->has_shape && d < common->shape.rank; d++) {
		if (common->shape.dims[d] != other->shape.dims[d])
			common->shape.dims[d] = -1;
	}
}

/* Combines the components of queue q with those of the queues before it. */
static enum weir_status merge(struct weiri_component common[], weir_tensor_queue *const queues[], size_t q,
                              weir_error *error)
{
	const weir_tensor_queue *queue = queues[q];
	const char *first = weir_tensor_queue_name(queues[0]), *name = weir_tensor_queue_name(queue);

	if (queue->count != queues[0]->count)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT,
		                  "queue list: queue 0 (\"%s\") has %zu component%s, queue %zu (\"%s\") has %zu", first,
		                  queues[0]->count, WEIRI_S(queues[0]->count), q, name, queue->count);
	for (size_t i = 0; i < queue->count; i++) {
		const struct weiri_component *other = &queue->components[i];

		if (other->dtype != common[i].dtype)
			return weiri_fail(error, WEIR_INVALID_ARGUMENT,
			                  "queue list: component %zu has dtype %s in queue 0 (\"%s\"), %s in queue %zu (\"%s\")", i,
			                  weir_dtype_name(common[i].dtype), first, weir_dtype_name(other->dtype), q, name);
		if (other->named != common[i].named || strcmp(other->name, common[i].name) != 0)
			return weiri_fail(error, WEIR_INVALID_ARGUMENT,
			                  "queue list: component %zu has the name %s in queue 0 (\"%s\"), %s in queue %zu (\"%s\")",
			                  i, common[i].named ? common[i].name : "(none)", first,
			                  other->named ? other->name : "(none)", q, name);
		merge_shape(&common[i], other);
	}
	return WEIR_OK;
}

/* -- the list ---------------------------------------------------------------------------------- */

/*
 * Returns the size of a list with this many components, without its queues. There are at most 64
 * components, so it cannot overflow.
 */
static size_t front_size(size_t components)
{
	return sizeof(struct weir_tensor_queue_list) + components * sizeof(struct weiri_component);
}

static void write_name(weir_tensor_queue_list *list)
{
	size_t at = 0;

	for (size_t q = 0; q < list->queue_count && at < sizeof(list->name) - 1; q++) {
		int length = snprintf(list->name + at, sizeof(list->name) - at, "%s%s", q > 0 ? "|" : "",
		                      weir_tensor_queue_name(list->queues[q]));

		at += length > 0 ? (size_t)length : 0;
	}
}

static enum weir_status check(weir_tensor_queue *const queues[], size_t count, weir_error *error)
{
	if (queues == NULL || count == 0 || count > WEIR_TENSOR_QUEUE_LIST_MAX)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "queue list: %zu queue%s, must be 1 to %d",
		                  queues != NULL ? count : 0, WEIRI_S(queues != NULL ? count : 0), WEIR_TENSOR_QUEUE_LIST_MAX);
	for (size_t q = 0; q < count; q++) {
		if (queues[q] == NULL)
			return weiri_fail(error, WEIR_INVALID_ARGUMENT, "queue list: queue %zu is NULL", q);
	}
	return WEIR_OK;
}

enum weir_status weir_tensor_queue_list_create(weir_tensor_queue *const queues[], size_t count,
                                               const weir_allocator *allocator, weir_tensor_queue_list **out,
                                               weir_error *error)
{
	weir_allocator from = weiri_allocator_or_default(allocator);
	enum weir_status status = check(queues, count, error);
	weir_tensor_queue_list *list;

	if (status == WEIR_OK && out == NULL)
		status = weiri_fail(error, WEIR_INVALID_ARGUMENT, "queue list: out is NULL");
	if (status != WEIR_OK)
		return status;
	list = weiri_allocate_zeroed(&from, front_size(queues[0]->count) + count * sizeof(queues[0]),
	                             alignof(weir_tensor_queue_list));
	if (list == NULL)
		return weiri_fail(error, WEIR_RESOURCE_EXHAUSTED, "queue list: no memory");
	list->allocator = from;
	list->queue_count = count;
	list->count = queues[0]->count;
	list->queues = (weir_tensor_queue **)(void *)((char *)list + front_size(list->count));
	(void)memcpy(list->queues, queues, count * sizeof(queues[0]));
	(void)memcpy(list->components, queues[0]->components, list->count * sizeof(list->components[0]));
	write_name(list);
	for (size_t q = 1; status == WEIR_OK && q < count; q++)
		status = merge(list->components, list->queues, q, error);
	if (status == WEIR_OK)
		*out = list;
	else
		(void)weir_tensor_queue_list_destroy(list, NULL);
	return status;
}

enum weir_status weir_tensor_queue_list_destroy(weir_tensor_queue_list *list, weir_error *error)
{
	weir_allocator allocator;

	(void)error; /* this call never fails */
	if (list == NULL)
		return WEIR_OK;
	allocator = list->allocator;
	weiri_release(&allocator, list, front_size(list->count) + list->queue_count * sizeof(list->queues[0]),
	              alignof(weir_tensor_queue_list));
	return WEIR_OK;
}

enum weir_status weir_tensor_queue_list_at(const weir_tensor_queue_list *list, int64_t index, weir_tensor_queue **out,
                                           weir_error *error)
{
	if (list == NULL || out == NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "queue list: %s is NULL", list == NULL ? "list" : "out");
	if (index < 0 || (uint64_t)index >= list->queue_count)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "queues \"%s\": index %lld is not in [0, %zu)", list->name,
		                  (long long)index, list->queue_count);
	*out = list->queues[index];
	return WEIR_OK;
}

size_t weir_tensor_queue_list_component_count(const weir_tensor_queue_list *list)
{
	return list != NULL ? list->count : 0;
}

enum weir_status weir_tensor_queue_list_component(const weir_tensor_queue_list *list, size_t i,
                                                  struct weir_tensor_component *out)
{
	if (list == NULL || out == NULL)
		return WEIR_INVALID_ARGUMENT;
	if (i >= list->count)
		return WEIR_OUT_OF_RANGE;
	*out = weiri_component_public(&list->components[i]);
	return WEIR_OK;
}
