/*
 * var.c - creating and destroying variables.
 *
 * A destroyed variable is retired, as a version is. While the owner destroys it, a thread that
 * helps a finished commit may still read a variable of that commit.
 */
#include <weir/var.h>

#include <stdalign.h>
#include <string.h>

#include "base/error.h"
#include "base/options.h"
#include "var/combine.h"
#include "var/install.h"
#include "var/kind.h"

static void var_free(weir_var *var)
{
	weir_allocator allocator = var->allocator;

	weiri_release(&allocator, var->name, strlen(var->name) + 1, 1);
	weiri_release(&allocator, var, sizeof(*var), WEIRI_LINE);
}

static void out_of_sight(struct weiri_retired *retired)
{
	var_free(WEIRI_CONTAINER_OF(weiri_id_entry_of_retired(retired), weir_var, id_entry));
}

struct weiri_id_set weiri_variables = WEIRI_ID_SET;

static void enter(struct weiri_record *record, weir_var *var)
{
	struct weiri_scope scope = weiri_scope_enter(record);

	weiri_id_set_enter(&scope, &weiri_variables, &var->id_entry, sizeof(*var) + strlen(var->name) + 1, out_of_sight);
	var->label = var->id_entry.number <= UINT32_MAX ? (uint32_t)var->id_entry.number : 0;
	weiri_scope_leave(&scope);
}

/* Removes the variable from the list of variables and retires it. */
static void leave(struct weiri_record *record, weir_var *var)
{
	struct weiri_scope scope = weiri_scope_enter(record);

	weiri_id_set_leave(&scope, &weiri_variables, &var->id_entry);
	weiri_scope_leave(&scope);
}

static enum weir_status check_of_tensors(const struct weir_var_options *given, weir_error *error)
{
	if (given->dtype == 0)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT,
		                  "variable: dtype is 0, and kind is WEIR_VAR_TENSOR; set dtype, or kind");
	if (weir_dtype_size(given->dtype) == 0)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "variable: %d is not a dtype", (int)given->dtype);
	if (given->shape != NULL && given->shape->rank > WEIR_MAX_RANK)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "variable: rank %u is above %d", given->shape->rank,
		                  WEIR_MAX_RANK);
	if (given->size != 0)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "variable: size is %zu, but tensors have no fixed size",
		                  given->size);
	return WEIR_OK;
}

/* Checks the options that suit some kinds only. */
static enum weir_status check_kind(const struct weir_var_options *given, weir_error *error)
{
	static const char *const plural[] = {"tensors", "inline values", "pointers"};

	if (given->kind == WEIR_VAR_TABLE)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "variable: only weir_table_create() makes one of kind %d",
		                  (int)given->kind);
	if ((unsigned)given->kind > WEIR_VAR_POINTER)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "variable: %d is not a kind", (int)given->kind);
	if (given->kind != WEIR_VAR_TENSOR && (given->dtype != 0 || given->shape != NULL))
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "variable: %s have no %s", plural[given->kind],
		                  given->dtype != 0 ? "dtype" : "shape");
	if (given->kind != WEIR_VAR_POINTER && (given->release != NULL || given->measure != NULL))
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "variable: %s have no function %s", plural[given->kind],
		                  given->release != NULL ? "release" : "measure");
	if (given->kind != WEIR_VAR_POINTER && given->context != NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "variable: %s have no context", plural[given->kind]);
	if (given->kind == WEIR_VAR_INLINE && (given->size == 0 || given->size > WEIR_VAR_MAX_INLINE))
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "variable: inline values of %zu bytes, must be 1 to %d",
		                  given->size, WEIR_VAR_MAX_INLINE);
	if (given->kind == WEIR_VAR_POINTER && given->size > WEIRI_MAX_POINTER_BYTES)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "variable: pointers that count %zu bytes, must be at most %zu",
		                  given->size, WEIRI_MAX_POINTER_BYTES);
	return given->kind == WEIR_VAR_TENSOR ? check_of_tensors(given, error) : WEIR_OK;
}

static enum weir_status check_options(const struct weir_var_options *given, weir_error *error)
{
	enum weir_status status = weiri_options_flags("variable", given->flags, 0, error);

	if (status != WEIR_OK)
		return status;
	if (given->history > WEIR_VAR_MAX_HISTORY)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "variable: history must be at most %d, got %zu",
		                  WEIR_VAR_MAX_HISTORY, given->history);
	return check_kind(given, error);
}

enum weir_status weiri_var_read_options(const struct weir_var_options *options, struct weir_var_options *given,
                                        weir_error *error)
{
	enum weir_status status;

	if (options == NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "variable: options is NULL");
	status = weiri_options_read("variable", options, given, sizeof(*given), error);
	if (status != WEIR_OK)
		return status;
	status = check_options(given, error);
	if (status != WEIR_OK)
		weiri_error_name(error, "variable", given->name);
	return status;
}

static weir_var *allocate_var(const struct weir_var_options *options, weiri_table_end_fn *end)
{
	weir_allocator allocator = weiri_allocator_or_default(options->allocator);
	const char *name = options->name != NULL ? options->name : "variable";
	weir_var *var = weiri_allocate_zeroed(&allocator, sizeof(*var), WEIRI_LINE);
	size_t name_size = strlen(name) + 1;

	if (var == NULL)
		return NULL;
	var->allocator = allocator;
	var->name = weiri_allocate(&allocator, name_size, 1);
	if (var->name == NULL) {
		weiri_release(&allocator, var, sizeof(*var), WEIRI_LINE);
		return NULL;
	}
	memcpy(var->name, name, name_size);
	weiri_waitable_init(&var->waitable, "variable", var->name);
	var->kind = options->kind;
	var->size = options->size;
	if (end != NULL)
		var->pointers.end = end;
	else
		var->pointers.release = options->release;
	var->pointers.measure = options->measure;
	var->pointers.context = options->context;
	var->dtype = options->dtype;
	var->history = options->history;
	var->has_shape = options->shape != NULL;
	if (var->has_shape)
		var->shape = *options->shape;
	return var;
}

/*
 * Returns version 1 if there is an initial value, otherwise version 0; NULL if there is no memory.
 * Its instant is that at which the clock shows its stamp, so every snapshot that begins later
 * includes it. A transaction that began earlier and has an earlier time reads it only if it can
 * extend that time: the values read before may be older than the variable.
 */
static struct weiri_version *first_version(struct weiri_record *record, const weir_var *var, const weir_value *initial)
{
	bool has_value = !weiri_value_is_none(initial);
	struct weiri_version *version =
		has_value ? weiri_version_of_value(record, var, initial) : weiri_version_create(record, var, NULL, NULL);
	uint64_t now;

	if (version == NULL)
		return NULL;
	version->number = has_value;
	now = weiri_load_seq_cst(&weiri_clock); /* [S] */
	weiri_clock_advance(now);
	weiri_store_relaxed(&version->stamp, now + 1); /* [relaxed] not published */
	return version;
}

/* `initial` may be no value; then its kind does not matter. `end`: of a table's variable; else NULL. */
static enum weir_status create(const weir_value *initial, const struct weir_var_options *given, weiri_table_end_fn *end,
                               weir_var **out, weir_error *error)
{
	enum weir_status status = WEIR_OK;
	struct weiri_record *record;
	struct weiri_version *version = NULL;
	weir_var *var;

	if (out == NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "variable: out is NULL");
	record = weiri_record_get();
	var = record != NULL ? allocate_var(given, end) : NULL;
	if (var == NULL)
		return weiri_fail(error, WEIR_RESOURCE_EXHAUSTED, "variable: no memory");
	if (!weiri_value_is_none(initial))
		status = weiri_value_check(var, initial, error);
	if (status == WEIR_OK) {
		version = first_version(record, var, initial);
		if (version == NULL)
			status = weiri_fail(error, WEIR_RESOURCE_EXHAUSTED, "variable \"%s\": no memory for a version", var->name);
	}
	if (status != WEIR_OK) {
		var_free(var);
		return status;
	}
	enter(record, var);
	version->variable = var->label;
	weiri_store_relaxed(&var->head, version); /* [relaxed] the caller passes the variable on by its own means */
	*out = var;
	return WEIR_OK;
}

enum weir_status weir_var_create(weir_tensor *initial, const struct weir_var_options *options, weir_var **out,
                                 weir_error *error)
{
	struct weir_var_options given;
	weir_value value = weir_value_tensor(initial);
	enum weir_status status = weiri_var_read_options(options, &given, error);

	return status == WEIR_OK ? create(&value, &given, NULL, out, error) : status;
}

enum weir_status weir_var_create_value(weir_value initial, const struct weir_var_options *options, weir_var **out,
                                       weir_error *error)
{
	struct weir_var_options given;
	enum weir_status status = weiri_var_read_options(options, &given, error);

	if (status != WEIR_OK)
		return status;
	if (weiri_value_is_none(&initial))
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "variable \"%s\": the initial value is NULL",
		                  given.name != NULL ? given.name : "variable");
	return create(&initial, &given, NULL, out, error);
}

enum weir_status weiri_table_var_create(void *root, const struct weiri_table_roots *roots, const char *name,
                                        const weir_allocator *allocator, weir_var **out, weir_error *error)
{
	struct weir_var_options given = {WEIR_VAR_OPTIONS_INIT,     .name = name,
	                                 .allocator = allocator,    .kind = WEIR_VAR_TABLE,
	                                 .measure = roots->measure, .context = roots->context};
	weir_value initial = weiri_value_of_root(root);

	return create(&initial, &given, roots->end, out, error);
}

enum weir_status weir_var_destroy(weir_var *var, weir_error *error)
{
	if (var != NULL && var->kind == WEIR_VAR_TABLE)
		return weiri_fail(error, WEIR_FAILED_PRECONDITION, "variable \"%s\" is that of a table, which destroys it",
		                  var->name);
	return weiri_table_var_destroy(var, error);
}

enum weir_status weiri_table_var_destroy(weir_var *var, weir_error *error)
{
	struct weiri_record *record = weiri_record_get();
	struct weiri_version *head, *newest;

	if (var == NULL)
		return WEIR_OK;
	/*
	 * Without a record the thread can retire nothing. A thread has no record only if it never used
	 * Weir before and there is no memory for one.
	 */
	if (record == NULL)
		return weiri_fail(error, WEIR_RESOURCE_EXHAUSTED, "variable \"%s\": no memory for this thread's record",
		                  var->name);
	if (weiri_waitable_check_idle(&var->waitable, error) != WEIR_OK)
		return WEIR_FAILED_PRECONDITION;
	weiri_visits_end_of(&var->waitable); /* a completion may destroy it; its call goes on */
	/*
	 * [relaxed] The caller ensured that every call on the variable has ended. So every commit is
	 * decided.
	 */
	head = weiri_load_relaxed(&var->head);
	newest = weiri_load_relaxed(&head->stamp) == WEIRI_STAMP_ABORTED ? head->base : head;
	if (newest != head)
		weiri_retire(record, &head->retired);
	weiri_history_end(record, var, newest);
	weiri_combine_end(record, var);
	leave(record, var);
	return WEIR_OK;
}

enum weir_var_kind weir_var_kind(const weir_var *var)
{
	return var != NULL ? var->kind : WEIR_VAR_TENSOR;
}

size_t weir_var_size(const weir_var *var)
{
	return var != NULL && var->kind == WEIR_VAR_INLINE ? var->size : 0;
}

enum weir_dtype weir_var_dtype(const weir_var *var)
{
	return var != NULL ? var->dtype : (enum weir_dtype)0;
}

const weir_shape *weir_var_shape(const weir_var *var)
{
	return var != NULL && var->has_shape ? &var->shape : NULL;
}

const char *weir_var_name(const weir_var *var)
{
	return var != NULL ? var->name : "(null)";
}
