/*
 * update.c - writes that depend on the current value: by a function of the caller, and by built-in
 * changes.
 */
#include "var/update.h"

#include "base/error.h"
#include "var/combine.h"
#include "var/install.h"
#include "var/tensor_value.h"

static enum weir_status compute(weir_var *var, weir_update_fn *fn, void *context, const weir_read *current,
                                weir_tensor **next, weir_error *error)
{
	enum weir_status status;

	*next = NULL;
	status = fn(context, current, next, error);
	if (status == WEIR_OK)
		status = weiri_var_check(var, *next, error);
	if (status != WEIR_OK)
		weir_tensor_release(*next);
	return status;
}

/* The only outcome of an attempt that no user function can return. */
enum { LOST = -1 };

/* One attempt. Returns a status, or LOST if another writer came first. */
static int try_update(weir_var *var, weir_update_fn *fn, void *context, const weir_read *current, weir_read *published,
                      weir_error *error)
{
	weir_tensor *next;
	struct weiri_record *record;
	struct weiri_version *version;
	weir_read handle = {NULL, 0, NULL};
	enum weir_status status = compute(var, fn, context, current, &next, error);

	if (status != WEIR_OK)
		return (int)status;
	/* Read after fn: a coroutine that waited in fn may continue on another thread. */
	record = weiri_record_get();
	version = record != NULL ? weiri_version_of_tensor(record, var, next) : NULL;
	if (version == NULL) {
		weir_tensor_release(next);
		return (int)weiri_fail(error, WEIR_RESOURCE_EXHAUSTED, "variable \"%s\": no memory for a version", var->name);
	}
	if (published != NULL)
		weiri_hold(record, version, &handle); /* its number is set afterwards */
	if (weiri_install(record, var, current->version, version, &handle.version) == WEIR_OK) {
		if (published != NULL)
			*published = handle;
		return WEIR_OK;
	}
	if (published != NULL)
		weir_read_release(&handle);
	weiri_version_discard(version);
	return LOST;
}

enum weir_status weir_var_update(weir_var *var, weir_update_fn *fn, void *context, uint64_t deadline_ns,
                                 weir_read *published, weir_error *error)
{
	struct weiri_record *record;
	int outcome;

	if (var == NULL || fn == NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "update: %s is NULL", var == NULL ? "variable" : "function");
	do {
		weir_read current;
		enum weir_status status = weiri_write_admit(var, deadline_ns, &record, error);

		if (status != WEIR_OK)
			return status;
		status = weir_var_read(var, &current);
		if (status != WEIR_OK)
			return weiri_fail(error, status, "variable \"%s\" is not initialized", var->name);
		outcome = try_update(var, fn, context, &current, published, error);
		weir_read_release(&current);
	} while (outcome == LOST);
	return (enum weir_status)outcome;
}

/* -- built-in changes -------------------------------------------------------------------------- */

struct request {
	const weir_var *var;
	struct weiri_change *change;
};

static enum weir_status make(void *context, const weir_read *current, weir_tensor **next, weir_error *error)
{
	const struct request *request = context;

	return weiri_change_value(request->change, request->var->name, current->tensor, &request->var->allocator, next,
	                          error);
}

/* Returns true if the value is so large that updates of it are combined. */
static bool is_large(weir_var *var, const struct weiri_change *change)
{
	weir_read read;
	bool is_large;

	if (!change->is_of_rows) /* the value has the size of the operand */
		return weir_tensor_byte_count(change->operand) >= weiri_combine_from;
	if (weir_var_read(var, &read) != WEIR_OK)
		return false;
	is_large = weir_tensor_byte_count(read.tensor) >= weiri_combine_from;
	weir_read_release(&read);
	return is_large;
}

enum weir_status weiri_update_by(weir_var *var, struct weiri_change *change, uint64_t deadline_ns, weir_read *published,
                                 weir_error *error)
{
	if (var == NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "update: variable is NULL");
	if (is_large(var, change))
		return weiri_combine(var, change, deadline_ns, published, error);
	return weir_var_update(var, make, &(struct request){var, change}, deadline_ns, published, error);
}

static enum weir_status add(weir_var *var, enum weiri_combine how, const weir_tensor *delta, uint64_t deadline_ns,
                            weir_read *published, weir_error *error)
{
	if (delta == NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "update: %s is NULL", var == NULL ? "variable" : "delta");
	return weiri_update_by(var, &(struct weiri_change){.how = how, .operand = delta}, deadline_ns, published, error);
}

enum weir_status weir_var_assign_add(weir_var *var, weir_tensor *delta, uint64_t deadline_ns, weir_read *published,
                                     weir_error *error)
{
	return add(var, WEIRI_COMBINE_ADD, delta, deadline_ns, published, error);
}

enum weir_status weir_var_assign_sub(weir_var *var, weir_tensor *delta, uint64_t deadline_ns, weir_read *published,
                                     weir_error *error)
{
	return add(var, WEIRI_COMBINE_SUBTRACT, delta, deadline_ns, published, error);
}
