/*
 * assign.c - single writes: assign, compare_assign, exchange, update.
 */
#include "base/error.h"
#include "tensor/elementwise.h"
#include "var/combine.h"
#include "var/hold.h"
#include "var/install.h"

/* Checks, admits, and makes a version that takes its own reference of value. */
static inline enum weir_status prepare(weir_var *var, weir_tensor *value, uint64_t deadline_ns,
                                       struct weiri_record **record, struct weiri_version **version, weir_error *error)
{
	enum weir_status status;

	if (var == NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "variable is NULL");
	status = weiri_var_check(var, value, error);
	if (status == WEIR_OK)
		status = weiri_write_admit(var, deadline_ns, record, error);
	if (status != WEIR_OK)
		return status;
	*version = weiri_version_create(*record, var, value);
	if (*version == NULL)
		return weiri_fail(error, WEIR_RESOURCE_EXHAUSTED, "variable \"%s\": no memory for a version", var->name);
	(void)weir_tensor_retain(value);
	return WEIR_OK;
}

static enum weir_status assign(weir_var *var, uint64_t expected, weir_tensor *value, uint64_t deadline_ns,
                               uint64_t *number, weir_error *error)
{
	struct weiri_record *record;
	struct weiri_version *version;
	enum weir_status status = prepare(var, value, deadline_ns, &record, &version, error);

	if (status != WEIR_OK)
		return status;
	status = weiri_install(record, var, expected, version, number);
	if (status == WEIR_ABORTED) {
		weiri_version_discard(version);
		(void)weiri_fail(error, status, "variable \"%s\" is at version %llu, expected %llu", var->name,
		                 (unsigned long long)*number, (unsigned long long)expected);
	}
	return status;
}

enum weir_status weir_var_assign(weir_var *var, weir_tensor *value, uint64_t deadline_ns, uint64_t *version,
                                 weir_error *error)
{
	uint64_t number = 0;
	enum weir_status status = assign(var, WEIRI_ANY_VERSION, value, deadline_ns, &number, error);

	if (status == WEIR_OK && version != NULL)
		*version = number;
	return status;
}

enum weir_status weir_var_compare_assign(weir_var *var, uint64_t expected, weir_tensor *value, uint64_t deadline_ns,
                                         uint64_t *version, weir_error *error)
{
	uint64_t number = 0;
	enum weir_status status;

	if (expected == WEIRI_ANY_VERSION)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "expected version is no version number");
	status = assign(var, expected, value, deadline_ns, &number, error);
	if ((status == WEIR_OK || status == WEIR_ABORTED) && version != NULL)
		*version = number;
	return status;
}

enum weir_status weir_var_exchange(weir_var *var, weir_tensor *value, uint64_t deadline_ns, weir_read *replaced,
                                   weir_error *error)
{
	struct weiri_record *record;
	struct weiri_version *version;
	enum weir_status status;

	if (replaced == NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "exchange: replaced is NULL");
	status = prepare(var, value, deadline_ns, &record, &version, error);
	if (status == WEIR_OK)
		*replaced = weiri_install_and_hold(record, var, version);
	return status;
}

/* -- update ------------------------------------------------------------------------------------------------------------------- */

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

/* The only outcome of an attempt that no function of the user's can give. */
enum { LOST = -1 };

/* One attempt: a status, or LOST: another writer came first. */
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
	/* After fn: a coroutine that waited in it may go on in another thread. */
	record = weiri_record_get();
	version = record != NULL ? weiri_version_create(record, var, next) : NULL;
	if (version == NULL) {
		weir_tensor_release(next);
		return (int)weiri_fail(error, WEIR_RESOURCE_EXHAUSTED, "variable \"%s\": no memory for a version", var->name);
	}
	if (published != NULL)
		weiri_hold(record, version, &handle); /* its number is filled in afterwards */
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

/* What add() needs to know. */
struct adding {
	const weir_var *var;
	const struct weiri_change *change;
};

static enum weir_status add(void *context, const weir_read *current, weir_tensor **next, weir_error *error)
{
	const struct adding *adding = context;
	const weir_tensor *delta = adding->change->operand;
	enum weir_status status = (adding->change->how == WEIRI_COMBINE_ADD ? weiri_tensor_add : weiri_tensor_subtract)(
		current->tensor, delta, &adding->var->allocator, next);
	char here[96], there[96];

	if (status == WEIR_OK)
		return status;
	return weiri_fail(
		error, status, "variable \"%s\": %s %s cannot be changed by %s %s", adding->var->name,
		weir_dtype_name(adding->var->dtype), weir_shape_text(weir_tensor_shape(current->tensor), here, sizeof(here)),
		weir_dtype_name(weir_tensor_dtype(delta)), weir_shape_text(weir_tensor_shape(delta), there, sizeof(there)));
}

static enum weir_status update_by(weir_var *var, const struct weiri_change *change, uint64_t deadline_ns,
                                  weir_read *published, weir_error *error)
{
	enum weir_status status;

	if (var == NULL || change->operand == NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "update: %s is NULL", var == NULL ? "variable" : "delta");
	if (weir_tensor_nbytes(change->operand) >= weiri_combine_from &&
	    weiri_combine(var, change, deadline_ns, published, &status, error))
		return status;
	return weir_var_update(var, add, &(struct adding){var, change}, deadline_ns, published, error);
}

enum weir_status weir_var_assign_add(weir_var *var, weir_tensor *delta, uint64_t deadline_ns, weir_read *published,
                                     weir_error *error)
{
	return update_by(var, &(struct weiri_change){.how = WEIRI_COMBINE_ADD, .operand = delta}, deadline_ns, published,
	                 error);
}

enum weir_status weir_var_assign_sub(weir_var *var, weir_tensor *delta, uint64_t deadline_ns, weir_read *published,
                                     weir_error *error)
{
	return update_by(var, &(struct weiri_change){.how = WEIRI_COMBINE_SUBTRACT, .operand = delta}, deadline_ns,
	                 published, error);
}
