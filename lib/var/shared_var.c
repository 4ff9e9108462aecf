/*
 * shared_var.c - variables in a store: found by name if what is asked for is what is there, else refused by the property.
 */
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "var/install.h"

struct asked {
	struct weir_var_options options;
	weir_tensor *initial;
};

static enum weir_status create(void *context, void **object, weir_error *error)
{
	const struct asked *asked = context;
	weir_var *var;
	enum weir_status status = weir_var_create(&asked->options, asked->initial, &var, error);

	if (status == WEIR_OK)
		*object = var;
	return status;
}

static int same_shape(const weir_shape *there, const weir_shape *asked)
{
	if (there == NULL || asked == NULL)
		return there == asked;
	return there->rank == asked->rank && memcmp(there->dims, asked->dims, there->rank * sizeof(there->dims[0])) == 0;
}

static const char *shape_text(const weir_shape *shape, char *text, size_t size)
{
	return shape != NULL ? weir_shape_text(shape, text, size) : "any";
}

static enum weir_status compatible(void *context, void *object, weir_error *error)
{
	const struct weir_var_options *asked = &((const struct asked *)context)->options;
	const weir_var *var = object;
	char there[WEIR_SHAPE_TEXT_SIZE], wanted[WEIR_SHAPE_TEXT_SIZE];

	if (var->dtype != asked->dtype)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "variable \"%s\": dtype is %s, asked for %s", var->name,
		                  weir_dtype_name(var->dtype), weir_dtype_name(asked->dtype));
	if (!same_shape(weir_var_shape(var), asked->shape))
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "variable \"%s\": shape is %s, asked for %s", var->name,
		                  shape_text(weir_var_shape(var), there, sizeof(there)),
		                  shape_text(asked->shape, wanted, sizeof(wanted)));
	if (var->history != asked->history)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "variable \"%s\": history is %u, asked for %u", var->name,
		                  var->history, asked->history);
	return WEIR_OK;
}

/* While somebody waits for it the variable stays, as its memory is in use: better lost than used after its end. */
static void destroy(void *object)
{
	enum weir_status status = weir_var_destroy(object);

	if (status != WEIR_OK)
		weiri_log(WEIR_LOG_ERROR, "the last reference to variable \"%s\" is gone, and its memory is lost: %s",
		          weir_var_name(object),
		          status == WEIR_FAILED_PRECONDITION ? "somebody waits for it" : weir_status_name(status));
}

static const struct weir_resource_type var_type = {"variable", destroy};

const struct weir_resource_type *weir_var_type(void)
{
	return &var_type;
}

enum weir_status weir_var_find_or_create(weir_store *store, const char *container, const char *name,
                                         const struct weir_var_options *options, weir_tensor *initial,
                                         weir_resource **out, weir_error *error)
{
	struct asked asked = {.initial = initial};
	struct weir_store_maker maker = {create, compatible, &asked};
	enum weir_status status = weiri_var_check_options(options, error);

	if (status != WEIR_OK)
		return status;
	asked.options = *options;
	if (asked.options.name == NULL)
		asked.options.name = name;
	return weir_store_find_or_create(store, container, name, &var_type, &maker, out, error);
}
