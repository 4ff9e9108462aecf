/*
 * components.c - checking and reading the components of tuples, and putting named tensors into
 * their order.
 */
#include "tuples/components.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/options.h"
#include "tuples/tuple.h"

/* -- creating ---------------------------------------------------------------------------------- */

/*
 * Returns true if, for some values of the unknown dims, a tensor of this shape can exist, and a
 * batch of such tensors too.
 */
static bool is_possible(const weir_shape *shape)
{
	weir_shape least = *shape;
	int64_t elements;

	if (shape->rank >= WEIR_MAX_RANK)
		return false;
	for (uint32_t i = 0; i < least.rank; i++) {
		if (least.dims[i] < 0)
			least.dims[i] = 1;
	}
	return weir_shape_element_count(&least, &elements) == WEIR_OK;
}

struct spec {
	const char *what; /* for messages */
	const struct weir_tensor_component *components;
	size_t count;
	bool has_priority; /* component 0 is the priority, so its dtype and shape are fixed */
	bool pads;
};

static enum weir_status check_name(const struct spec *spec, size_t i, weir_error *error)
{
	const char *name = spec->components[i].name;

	if (name == NULL)
		return WEIR_OK;
	if (name[0] == '\0' || strlen(name) >= WEIR_TENSOR_QUEUE_NAME_SIZE)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "%s: component %zu: a name has 1 to %d bytes, got %zu",
		                  spec->what, i, WEIR_TENSOR_QUEUE_NAME_SIZE - 1, strlen(name));
	for (size_t other = 0; other < i; other++) {
		if (spec->components[other].name != NULL && strcmp(spec->components[other].name, name) == 0)
			return weiri_fail(error, WEIR_INVALID_ARGUMENT, "%s: components %zu and %zu are both named \"%s\"",
			                  spec->what, other, i, name);
	}
	return WEIR_OK;
}

static enum weir_status check_priority(const struct spec *spec, weir_error *error)
{
	const struct weir_tensor_component *component = &spec->components[0];
	char text[WEIR_SHAPE_TEXT_SIZE] = "any shape";

	if (component->shape != NULL)
		(void)weir_shape_text(component->shape, text, sizeof(text));
	if (component->dtype == WEIR_I64 && component->shape != NULL && component->shape->rank == 0)
		return WEIR_OK;
	return weiri_fail(error, WEIR_INVALID_ARGUMENT,
	                  "%s: component 0 is the priority, which must be i64 of shape [], got %s of %s", spec->what,
	                  weir_dtype_name(component->dtype), text);
}

static enum weir_status check_component(const struct spec *spec, size_t i, weir_error *error)
{
	const struct weir_tensor_component *component = &spec->components[i];
	size_t first = spec->has_priority ? 1 : 0;
	char text[WEIR_SHAPE_TEXT_SIZE];

	if (weir_dtype_size(component->dtype) == 0)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "%s: component %zu: %d is not a dtype", spec->what, i,
		                  (int)component->dtype);
	if (component->shape == NULL && spec->pads)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT,
		                  "%s: component %zu: a queue that pads needs a shape, with unknown dims perhaps", spec->what,
		                  i);
	if (i < first) {
		enum weir_status status = check_priority(spec, error);

		return status == WEIR_OK ? check_name(spec, i, error) : status;
	}
	if ((component->shape != NULL) != (spec->components[first].shape != NULL))
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "%s: component %zu: all have shapes or none", spec->what, i);
	if (component->shape != NULL && !is_possible(component->shape))
		return weiri_fail(error, WEIR_INVALID_ARGUMENT,
		                  "%s: component %zu: the shape must be possible and of a rank below %d, got %s", spec->what, i,
		                  WEIR_MAX_RANK, weir_shape_text(component->shape, text, sizeof(text)));
	return check_name(spec, i, error);
}

static enum weir_status check_spec(const struct spec *spec, weir_error *error)
{
	enum weir_status status = WEIR_OK;

	if (spec->components == NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "%s: components is NULL", spec->what);
	if (spec->count == 0 || spec->count > WEIR_TENSOR_QUEUE_MAX_COMPONENTS)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "%s: %zu component%s, must be 1 to %d", spec->what, spec->count,
		                  WEIRI_S(spec->count), WEIR_TENSOR_QUEUE_MAX_COMPONENTS);
	for (size_t i = 0; status == WEIR_OK && i < spec->count; i++)
		status = check_component(spec, i, error);
	return status;
}

enum weir_status weiri_components_check(const char *what, const struct weir_tensor_component components[], size_t count,
                                        weir_error *error)
{
	return check_spec(&(struct spec){.what = what, .components = components, .count = count}, error);
}

enum weir_status weiri_components_check_queue(const struct weir_tensor_queue_options *options,
                                              struct weir_tensor_queue_options *given, weir_error *error)
{
	struct spec spec = {.what = "tensor queue"};
	enum weir_status status;

	if (options == NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "tensor queue: options is NULL");
	status = weiri_options_read("tensor queue", options, given, sizeof(*given), error);
	if (status != WEIR_OK)
		return status;
	spec.components = given->components;
	spec.count = given->component_count;
	spec.has_priority = given->order == WEIR_QUEUE_PRIORITY;
	spec.pads = (given->flags & WEIR_TENSOR_QUEUE_PADDING) != 0;
	return check_spec(&spec, error);
}

/* Returns the shape in its normal form: unknown dims are -1, and dims beyond the rank are 0. */
static weir_shape normal_form(const weir_shape *shape)
{
	weir_shape normal = {.rank = shape->rank};

	for (uint32_t i = 0; i < shape->rank; i++)
		normal.dims[i] = shape->dims[i] >= 0 ? shape->dims[i] : -1;
	return normal;
}

void weiri_component_fill(struct weiri_component *component, const struct weir_tensor_component *from, size_t i)
{
	int64_t elements;

	component->dtype = from->dtype;
	component->has_shape = from->shape != NULL;
	component->known = from->shape != NULL && weir_shape_element_count(from->shape, &elements) == WEIR_OK;
	component->named = from->name != NULL;
	if (from->shape != NULL)
		component->shape = normal_form(from->shape);
	if (from->name != NULL)
		(void)snprintf(component->name, sizeof(component->name), "%s", from->name);
	else
		(void)snprintf(component->name, sizeof(component->name), "%zu", i);
}

/* -- reading ----------------------------------------------------------------------------------- */

struct weir_tensor_component weiri_component_public(const struct weiri_component *component)
{
	return (struct weir_tensor_component){
		.dtype = component->dtype,
		.shape = component->has_shape ? &component->shape : NULL,
		.name = component->named ? component->name : NULL,
	};
}

enum weir_status weir_tensor_queue_component(const weir_tensor_queue *queue, size_t i,
                                             struct weir_tensor_component *out)
{
	if (queue == NULL || out == NULL)
		return WEIR_INVALID_ARGUMENT;
	if (i >= queue->count)
		return WEIR_OUT_OF_RANGE;
	*out = weiri_component_public(&queue->components[i]);
	return WEIR_OK;
}

enum weir_status weiri_components_place(const struct weiri_component components[], size_t count, const char *name,
                                        size_t *place)
{
	for (size_t i = 0; i < count; i++) {
		if (components[i].named && strcmp(components[i].name, name) == 0) {
			*place = i;
			return WEIR_OK;
		}
	}
	return WEIR_NOT_FOUND;
}

enum weir_status weiri_component_check(const struct weiri_component *component, size_t i, const weir_tensor *tensor,
                                       const char *what, const char *name, weir_error *error)
{
	char want[WEIR_SHAPE_TEXT_SIZE], have[WEIR_SHAPE_TEXT_SIZE];

	if (tensor == NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "%s \"%s\": component %zu (%s) is NULL", what, name, i,
		                  component->name);
	if (weir_tensor_dtype(tensor) != component->dtype)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "%s \"%s\": component %zu (%s): dtype must be %s, got %s", what,
		                  name, i, component->name, weir_dtype_name(component->dtype),
		                  weir_dtype_name(weir_tensor_dtype(tensor)));
	if (component->has_shape && !weir_shape_fits(&component->shape, weir_tensor_shape(tensor)))
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "%s \"%s\": component %zu (%s): shape must be %s, got %s", what,
		                  name, i, component->name, weir_shape_text(&component->shape, want, sizeof(want)),
		                  weir_shape_text(weir_tensor_shape(tensor), have, sizeof(have)));
	return WEIR_OK;
}

/* -- named tensors ----------------------------------------------------------------------------- */

/* Puts one tensor at its place. */
static enum weir_status arrange_one(const weir_tensor_queue *queue, const struct weir_named_tensor *named,
                                    weir_tensor *places[], weir_error *error)
{
	const char *queue_name = weir_tensor_queue_name(queue);
	size_t place;

	if (named->name == NULL || named->tensor == NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "queue \"%s\": %s is NULL", queue_name,
		                  named->name == NULL ? "a name" : named->name);
	if (weiri_components_place(queue->components, queue->count, named->name, &place) != WEIR_OK)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "queue \"%s\": no component is named \"%s\"", queue_name,
		                  named->name);
	if (places[place] != NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "queue \"%s\": component \"%s\" is given twice", queue_name,
		                  named->name);
	places[place] = named->tensor;
	return WEIR_OK;
}

enum weir_status weir_tensor_queue_arrange(const weir_tensor_queue *queue, const struct weir_named_tensor named[],
                                           size_t count, weir_tensor *tuple[], size_t tuple_count, weir_error *error)
{
	weir_tensor *places[WEIR_TENSOR_QUEUE_MAX_COMPONENTS] = {NULL};
	enum weir_status status = WEIR_OK;

	if (queue == NULL || named == NULL || tuple == NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "tensor queue: queue, named or tuple is NULL");
	if (tuple_count != queue->count)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "queue \"%s\": a tuple has %zu component%s, room for %zu",
		                  weir_tensor_queue_name(queue), queue->count, WEIRI_S(queue->count), tuple_count);
	for (size_t i = 0; i < queue->count; i++) {
		if (!queue->components[i].named)
			return weiri_fail(error, WEIR_INVALID_ARGUMENT, "queue \"%s\": component %zu has no name",
			                  weir_tensor_queue_name(queue), i);
	}
	for (size_t i = 0; status == WEIR_OK && i < count; i++)
		status = arrange_one(queue, &named[i], places, error);
	for (size_t i = 0; status == WEIR_OK && i < queue->count; i++) {
		if (places[i] == NULL)
			status = weiri_fail(error, WEIR_INVALID_ARGUMENT, "queue \"%s\": component \"%s\" is missing",
			                    weir_tensor_queue_name(queue), queue->components[i].name);
	}
	if (status == WEIR_OK)
		(void)memcpy(tuple, places, queue->count * sizeof(places[0]));
	return status;
}
