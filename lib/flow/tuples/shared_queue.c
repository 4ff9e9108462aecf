/*
 * shared_queue.c - tensor queues in a store. A call finds a queue by its name if the queue has the
 * requested properties. Otherwise the call is refused, and the message names the property that
 * differs.
 */
#include <weir/flow/tensor_queue.h>

#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "tuples/tuple.h"

/* -- does it have the requested properties? ---------------------------------------------------- */

static const char *kind_name(enum weir_queue_order order, uint32_t flags)
{
	bool pads = (flags & WEIR_TENSOR_QUEUE_PADDING) != 0;

	switch (order) {
	case WEIR_QUEUE_FIFO: return pads ? "a FIFO queue that pads" : "a FIFO queue";
	case WEIR_QUEUE_SHUFFLE: return pads ? "a shuffle queue that pads" : "a shuffle queue";
	case WEIR_QUEUE_PRIORITY: return pads ? "a priority queue that pads" : "a priority queue";
	}
	return "a queue of an unknown order";
}

static enum weir_status compare_kind(const weir_tensor_queue *queue, const struct weir_tensor_queue_options *asked,
                                     weir_error *error)
{
	const struct weiri_made_with *made = &queue->made_with;

	if (made->order != asked->order || ((made->flags ^ asked->flags) & WEIR_TENSOR_QUEUE_PADDING) != 0)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "queue \"%s\": it is %s, asked for %s",
		                  weir_tensor_queue_name(queue), kind_name(made->order, made->flags),
		                  kind_name(asked->order, asked->flags));
	if (made->flags != asked->flags)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "queue \"%s\": flags are %#x, asked for %#x",
		                  weir_tensor_queue_name(queue), (unsigned)made->flags, (unsigned)asked->flags);
	if (weir_tensor_queue_capacity(queue) != asked->capacity)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "queue \"%s\": capacity is %zu, asked for %zu",
		                  weir_tensor_queue_name(queue), weir_tensor_queue_capacity(queue), asked->capacity);
	if (made->min_after_dequeue != asked->min_after_dequeue)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "queue \"%s\": min_after_dequeue is %zu, asked for %zu",
		                  weir_tensor_queue_name(queue), made->min_after_dequeue, asked->min_after_dequeue);
	/* Seed 0 requests none, so any seed fits. */
	if (asked->seed != 0 && weir_tensor_queue_seed(queue) != asked->seed)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "queue \"%s\": seed is %llu, asked for %llu",
		                  weir_tensor_queue_name(queue), (unsigned long long)weir_tensor_queue_seed(queue),
		                  (unsigned long long)asked->seed);
	return WEIR_OK;
}

/*
 * Returns true if the shapes are equal; for a queue that pads, if they differ in no dim both know.
 */
static bool shapes_agree(const weir_tensor_queue *queue, const struct weiri_component *there,
                         const struct weiri_component *asked)
{
	if (there->has_shape != asked->has_shape || there->shape.rank != asked->shape.rank)
		return false;
	for (uint32_t d = 0; there->has_shape && d < there->shape.rank; d++) {
		int64_t a = there->shape.dims[d], b = asked->shape.dims[d];

		if (a != b && !((queue->made_with.flags & WEIR_TENSOR_QUEUE_PADDING) != 0 && (a < 0 || b < 0)))
			return false;
	}
	return true;
}

static enum weir_status compare_component(const weir_tensor_queue *queue, size_t i,
                                          const struct weir_tensor_component *asked, weir_error *error)
{
	const struct weiri_component *there = &queue->components[i];
	char text_there[WEIR_SHAPE_TEXT_SIZE] = "none", text_asked[WEIR_SHAPE_TEXT_SIZE] = "none";
	struct weiri_component wanted = {.has_shape = false};

	weiri_component_fill(&wanted, asked, i);
	if (there->dtype != wanted.dtype)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "queue \"%s\": dtype of component %zu is %s, asked for %s",
		                  weir_tensor_queue_name(queue), i, weir_dtype_name(there->dtype),
		                  weir_dtype_name(wanted.dtype));
	if (!shapes_agree(queue, there, &wanted)) {
		if (there->has_shape)
			(void)weir_shape_text(&there->shape, text_there, sizeof(text_there));
		if (wanted.has_shape)
			(void)weir_shape_text(&wanted.shape, text_asked, sizeof(text_asked));
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "queue \"%s\": shape of component %zu is %s, asked for %s",
		                  weir_tensor_queue_name(queue), i, text_there, text_asked);
	}
	if (there->named != wanted.named || strcmp(there->name, wanted.name) != 0)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "queue \"%s\": name of component %zu is %s, asked for %s",
		                  weir_tensor_queue_name(queue), i, there->named ? there->name : "none",
		                  wanted.named ? wanted.name : "none");
	return WEIR_OK;
}

static enum weir_status compatible(void *context, void *object, weir_error *error)
{
	const struct weir_tensor_queue_options *asked = context;
	const weir_tensor_queue *queue = object;
	enum weir_status status = compare_kind(queue, asked, error);

	if (status == WEIR_OK && queue->count != asked->component_count)
		status = weiri_fail(error, WEIR_INVALID_ARGUMENT, "queue \"%s\": components are %zu, asked for %zu",
		                    weir_tensor_queue_name(queue), queue->count, asked->component_count);
	for (size_t i = 0; status == WEIR_OK && i < queue->count; i++)
		status = compare_component(queue, i, &asked->components[i], error);
	return status;
}

/* -- the store --------------------------------------------------------------------------------- */

static enum weir_status create(void *context, void **object, weir_error *error)
{
	weir_tensor_queue *queue;
	enum weir_status status = weir_tensor_queue_create(context, &queue, error);

	if (status == WEIR_OK)
		*object = queue;
	return status;
}

/*
 * Destroys the queue, unless an operation still waits in it. Then the memory of the queue is lost,
 * which is better than a use after free.
 */
static void destroy(void *object)
{
	weir_error error;

	if (weir_tensor_queue_destroy(object, &error) != WEIR_OK)
		weiri_log(WEIR_LOG_ERROR, "the last reference to a shared queue is gone, and its memory is lost: %s",
		          error.message);
}

static const struct weir_resource_type tensor_queue_type = {"tensor queue", destroy};

const struct weir_resource_type *weir_tensor_queue_type(void)
{
	return &tensor_queue_type;
}

enum weir_status weir_tensor_queue_find_or_create(weir_store *store, const char *container, const char *name,
                                                  const struct weir_tensor_queue_options *options, weir_resource **out,
                                                  weir_error *error)
{
	struct weir_tensor_queue_options asked;
	struct weir_store_maker maker = {create, compatible, &asked};
	enum weir_status status = weiri_components_check_queue(options, &asked, error);

	if (status != WEIR_OK)
		return status;
	if (asked.name == NULL)
		asked.name = name;
	return weir_store_find_or_create(store, container, name, &tensor_queue_type, &maker, out, error);
}
