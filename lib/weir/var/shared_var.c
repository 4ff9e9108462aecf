/*
 * shared_var.c - variables in a store. A variable is found by its name. If one of its properties
 * differs from the request, the call is refused, and the message names the property.
 */
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "var/install.h"
#include "var/kind.h"

struct asked {
	struct weir_var_options options;
	weir_tensor *initial;
};

static enum weir_status create(void *context, void **object, weir_error *error)
{
	const struct asked *asked = context;
	weir_var *var;
	enum weir_status status = weir_var_create(asked->initial, &asked->options, &var, error);

	if (status == WEIR_OK)
		*object = var;
	return status;
}

static bool same_shape(const weir_shape *there, const weir_shape *asked)
{
	if (there == NULL || asked == NULL)
		return there == asked;
	return there->rank == asked->rank && memcmp(there->dims, asked->dims, there->rank * sizeof(there->dims[0])) == 0;
}

static const char *shape_text(const weir_shape *shape, char *text, size_t size)
{
	return shape != NULL ? weir_shape_text(shape, text, size) : "any";
}

static enum weir_status fail_kind(const weir_var *var, const struct weir_var_options *asked, weir_error *error)
{
	weir_var like = {.kind = asked->kind, .size = asked->size};
	char there[WEIRI_KIND_TEXT_SIZE], wanted[WEIRI_KIND_TEXT_SIZE];

	if (var->kind == asked->kind && var->kind == WEIR_VAR_POINTER)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "variable \"%s\": its pointers count %zu bytes, asked for %zu",
		                  var->name, var->size, asked->size);
	return weiri_fail(error, WEIR_INVALID_ARGUMENT, "variable \"%s\": has %s, asked for %s", var->name,
	                  weiri_kind_text(var, there), weiri_kind_text(&like, wanted));
}

static enum weir_status compatible(void *context, void *object, weir_error *error)
{
	const struct weir_var_options *asked = &((const struct asked *)context)->options;
	const weir_var *var = object;
	char there[WEIR_SHAPE_TEXT_SIZE], wanted[WEIR_SHAPE_TEXT_SIZE];

	if (var->kind != asked->kind || var->size != asked->size)
		return fail_kind(var, asked, error);
	if (var->pointers.release != asked->release)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "variable \"%s\": its pointers have another release function",
		                  var->name);
	if (var->dtype != asked->dtype)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "variable \"%s\": dtype is %s, asked for %s", var->name,
		                  weir_dtype_name(var->dtype), weir_dtype_name(asked->dtype));
	if (!same_shape(weir_var_shape(var), asked->shape))
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "variable \"%s\": shape is %s, asked for %s", var->name,
		                  shape_text(weir_var_shape(var), there, sizeof(there)),
		                  shape_text(asked->shape, wanted, sizeof(wanted)));
	if (var->history != asked->history)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "variable \"%s\": history is %zu, asked for %zu", var->name,
		                  var->history, asked->history);
	return WEIR_OK;
}

/*
 * An operation that waits for the variable uses the variable's memory. So the memory is leaked
 * rather than used after it was freed.
 */
static void destroy(void *object)
{
	weir_error error;

	if (weir_var_destroy(object, &error) != WEIR_OK)
		weiri_log(WEIR_LOG_ERROR, "the last reference to a shared variable is gone, and its memory is lost: %s",
		          error.message);
}

static const struct weir_resource_type var_type = {"variable", destroy};

const struct weir_resource_type *weir_var_type(void)
{
	return &var_type;
}

enum weir_status weir_var_find_or_create(weir_store *store, const char *container, const char *name,
                                         weir_tensor *initial, const struct weir_var_options *options,
                                         weir_resource **out, weir_error *error)
{
	struct asked asked = {.initial = initial};
	struct weir_store_maker maker = {create, compatible, &asked};
	enum weir_status status = weiri_var_read_options(options, &asked.options, error);

	if (status != WEIR_OK)
		return status;
	if (asked.options.name == NULL)
		asked.options.name = name;
	return weir_store_find_or_create(store, container, name, &var_type, &maker, out, error);
}
