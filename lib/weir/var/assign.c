/*
 * assign.c - single writes of given values: assign, compare_assign, exchange.
 */
#include "base/error.h"
#include "var/install.h"
#include "var/tensor_value.h"

/*
 * Checks the value, admits the write, and makes a version that takes its own reference of the
 * value.
 */
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
	*version = weiri_version_of_tensor(*record, var, value);
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

/*
 * Returns a handle on the value that the caller published. The handle has a reference of the
 * tensor, so it pins no version.
 */
static WEIRI_NOINLINE weir_read published_as(weir_tensor *value, uint64_t number)
{
	return weiri_hold_tensor(value, number);
}

enum weir_status weir_var_assign(weir_var *var, weir_tensor *value, uint64_t deadline_ns, weir_read *published,
                                 weir_error *error)
{
	uint64_t number = 0;
	enum weir_status status = assign(var, WEIRI_ANY_VERSION, value, deadline_ns, &number, error);

	if (status == WEIR_OK && published != NULL)
		*published = published_as(value, number);
	return status;
}

enum weir_status weir_var_compare_assign(weir_var *var, uint64_t expected, weir_tensor *value, uint64_t deadline_ns,
                                         weir_read *published, weir_error *error)
{
	uint64_t number = 0;
	enum weir_status status;

	if (expected == WEIRI_ANY_VERSION)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "expected version is not a version number");
	status = assign(var, expected, value, deadline_ns, &number, error);
	if (status == WEIR_OK && published != NULL)
		*published = published_as(value, number);
	if (status == WEIR_ABORTED && published != NULL)
		*published = (weir_read){NULL, number, NULL};
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
