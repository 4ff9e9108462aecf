/*
 * assign.c - single writes of given values: assign, compare_assign, exchange.
 */
#include "base/error.h"
#include "var/hold.h"
#include "var/install.h"
#include "var/kind.h"

/* Checks the value, admits the write, and makes its version. */
static inline enum weir_status prepare(weir_var *var, const weir_value *value, uint64_t deadline_ns,
                                       struct weiri_record **record, struct weiri_version **version, weir_error *error)
{
	enum weir_status status;

	if (var == NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "variable is NULL");
	status = weiri_value_check(var, value, error);
	if (status == WEIR_OK)
		status = weiri_write_admit(var, deadline_ns, record, error);
	if (status != WEIR_OK)
		return status;
	*version = weiri_version_of_value(*record, var, value);
	if (*version == NULL)
		return weiri_fail(error, WEIR_RESOURCE_EXHAUSTED, "variable \"%s\": no memory for a version", var->name);
	return WEIR_OK;
}

/* The variable had another number, which is *number. */
static WEIRI_COLD enum weir_status fail_moved(const weir_var *var, uint64_t expected, struct weiri_version *version,
                                              uint64_t number, weir_read *published, weir_error *error)
{
	if (published != NULL) {
		weir_read_release(published);
		*published = (weir_read){.version = number};
	}
	weiri_version_disown(version);
	weiri_version_discard(version);
	return weiri_fail(error, WEIR_ABORTED, "variable \"%s\" is at version %llu, expected %llu", var->name,
	                  (unsigned long long)number, (unsigned long long)expected);
}

static inline enum weir_status assign(weir_var *var, uint64_t expected, const weir_value *value, uint64_t deadline_ns,
                                      weir_read *published, weir_error *error)
{
	struct weiri_record *record;
	struct weiri_version *version;
	uint64_t number = 0;
	enum weir_status status = prepare(var, value, deadline_ns, &record, &version, error);

	if (status != WEIR_OK)
		return status;
	/*
	 * The handle has a reference of the value, so it pins no version. It is taken while the version
	 * is this thread's.
	 */
	if (published != NULL)
		*published = weiri_hold_value(version->value, version->shown, 0);
	if (weiri_install(record, var, expected, version, &number) != WEIR_OK)
		return fail_moved(var, expected, version, number, published, error);
	if (published != NULL)
		published->version = number;
	return WEIR_OK;
}

static enum weir_status compare_assign(weir_var *var, uint64_t expected, const weir_value *value, uint64_t deadline_ns,
                                       weir_read *published, weir_error *error)
{
	if (expected == WEIRI_ANY_VERSION)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "expected version is not a version number");
	return assign(var, expected, value, deadline_ns, published, error);
}

static enum weir_status exchange(weir_var *var, const weir_value *value, uint64_t deadline_ns, weir_read *replaced,
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

enum weir_status weir_var_assign(weir_var *var, weir_tensor *value, uint64_t deadline_ns, weir_read *published,
                                 weir_error *error)
{
	weir_value given = weir_value_tensor(value);

	return assign(var, WEIRI_ANY_VERSION, &given, deadline_ns, published, error);
}

enum weir_status weir_var_assign_value(weir_var *var, weir_value value, uint64_t deadline_ns, weir_read *published,
                                       weir_error *error)
{
	return assign(var, WEIRI_ANY_VERSION, &value, deadline_ns, published, error);
}

enum weir_status weir_var_compare_assign(weir_var *var, uint64_t expected, weir_tensor *value, uint64_t deadline_ns,
                                         weir_read *published, weir_error *error)
{
	weir_value given = weir_value_tensor(value);

	return compare_assign(var, expected, &given, deadline_ns, published, error);
}

enum weir_status weir_var_compare_assign_value(weir_var *var, uint64_t expected, weir_value value, uint64_t deadline_ns,
                                               weir_read *published, weir_error *error)
{
	return compare_assign(var, expected, &value, deadline_ns, published, error);
}

enum weir_status weir_var_exchange(weir_var *var, weir_tensor *value, uint64_t deadline_ns, weir_read *replaced,
                                   weir_error *error)
{
	weir_value given = weir_value_tensor(value);

	return exchange(var, &given, deadline_ns, replaced, error);
}

enum weir_status weir_var_exchange_value(weir_var *var, weir_value value, uint64_t deadline_ns, weir_read *replaced,
                                         weir_error *error)
{
	return exchange(var, &value, deadline_ns, replaced, error);
}
