/*
 * update.c - writes that depend on the current value: by a function of the caller, and by built-in
 * changes.
 */
#include "var/update.h"

#include <weir/time.h>

#include "base/error.h"
#include "var/combine.h"
#include "var/give_way.h"
#include "var/hold.h"
#include "var/in_place.h"
#include "var/install.h"
#include "var/kind.h"

enum {
#if defined(WEIRI_UNDER_MODEL)
	FIRST_PAUSES = 0,
#else
	FIRST_PAUSES = 256, /* 6.4 us on an AMD EPYC (Zen 4), 5 us on an Intel Xeon (Emerald Rapids) */
#endif
	MOST_DOUBLINGS = 2
};

/* Other writes wait no longer than this for an update that is stopped. */
#define LONGEST_WAY_NS UINT64_C(100000000)

/* What computes the next value: one of the two functions. */
struct computation {
	weir_update_fn *of_tensors;
	weir_update_value_fn *of_values;
	void *context;
};

/* The function returned `status`: *error gets what it said of that. */
static WEIRI_COLD enum weir_status fail_as_said(const weir_var *var, enum weir_status status, weir_error *said,
                                                weir_error *error)
{
	if (!weiri_error_explains(said, status))
		return weiri_fail(error, status, "variable \"%s\": the function of the update returned %s", var->name,
		                  weir_status_name(status));
	if (error != NULL)
		*error = *said;
	return status;
}

/* Calls the function. On a failure, what it left in *next is dropped. */
static enum weir_status compute(const weir_var *var, const struct computation *computation, const weir_read *current,
                                weir_value *next, weir_error *error)
{
	enum weir_status status;
	weir_error said;

	weiri_error_begin(&said);
	if (computation->of_tensors != NULL)
		status = computation->of_tensors(computation->context, current, &next->tensor, &said);
	else
		status = computation->of_values(computation->context, current, next, &said);
	if (WEIRI_LIKELY(status == WEIR_OK))
		status = weiri_value_check(var, next, error);
	else
		status = fail_as_said(var, status, &said, error);
	if (status != WEIR_OK)
		weiri_value_drop(var, next);
	return status;
}

WEIRI_COLD enum weir_status weiri_fail_version(const weir_var *var, weir_error *error)
{
	return weiri_fail(error, WEIR_RESOURCE_EXHAUSTED, "variable \"%s\": no memory for a version", var->name);
}

/*
 * Sets *version to a version with the value that the function computes. The record is read after
 * the function was called: a coroutine that waited in it may continue on another thread.
 */
static enum weir_status compute_version(const weir_var *var, const struct computation *computation,
                                        const weir_read *current, struct weiri_version **version, weir_error *error)
{
	weir_value next = weiri_value_shown(var, NULL);
	enum weir_status status = compute(var, computation, current, &next, error);
	struct weiri_record *record;

	if (status != WEIR_OK)
		return status;
	record = weiri_record_get_anew();
	*version = record != NULL ? weiri_version_of_value(record, var, &next) : NULL;
	if (*version == NULL || next.kind == WEIR_VAR_TENSOR) /* the version has a reference of its own */
		weiri_value_drop(var, &next);
	return *version != NULL ? WEIR_OK : weiri_fail_version(var, error);
}

WEIRI_COLD int weiri_refuse_in_place(const weir_var *var, enum weir_status status, const weir_value *next,
                                     struct weiri_version *version, weir_error *said, weir_error *error)
{
	if (status == WEIR_OK)
		status = weiri_value_check(var, next, error);
	else
		status = fail_as_said(var, status, said, error);
	if (status != WEIR_OK)
		weiri_value_drop(var, next);
	else if (next->room != version->shown)
		status = weiri_fail(error, WEIR_INVALID_ARGUMENT, "variable \"%s\": the update moved the room for its bytes",
		                    var->name);
	else
		status = weiri_fail_version(var, error); /* of the record of the thread to which the function moved */
	weiri_version_discard(version);
	return (int)status;
}

/* The same for an inline variable: the function changes the bytes where they stay. */
static enum weir_status compute_in_place(const weir_var *var, const struct computation *computation,
                                         const weir_read *current, struct weiri_version **version, weir_error *error)
{
	struct weiri_record *record = weiri_record_get();
	enum weir_status status;
	weir_error said;
	weir_value next;

	*version = record != NULL ? weiri_version_of_bytes(record, var, current->data) : NULL;
	if (*version == NULL)
		return weiri_fail_version(var, error);
	next = weiri_value_shown(var, (*version)->shown);
	weiri_error_begin(&said);
	status = computation->of_values(computation->context, current, &next, &said);
	if (WEIRI_LIKELY(status == WEIR_OK && next.room == (*version)->shown && next.size == var->size &&
	                 next.kind == WEIR_VAR_INLINE && weiri_record_get_anew() != NULL))
		return WEIR_OK;
	return (enum weir_status)weiri_refuse_in_place(var, status, &next, *version, &said, error);
}

/* How an update has fared against other writes. */
struct race {
	unsigned lost;           /* attempts */
	uint64_t begun_ns;       /* when it lost the first */
	struct weiri_own *asker; /* who has asked that the others give way; or NULL */
};

/* One attempt. Returns a status, or WEIRI_LOST if another writer came first. */
static int try_update(weir_var *var, const struct computation *computation, const weir_read *current,
                      weir_read *published, const struct race *race, weir_error *error)
{
	struct weiri_record *record;
	struct weiri_version *version = NULL;
	weir_read handle = {.hold = NULL};
	enum weir_status status = var->kind == WEIR_VAR_INLINE
	                              ? compute_in_place(var, computation, current, &version, error)
	                              : compute_version(var, computation, current, &version, error);

	if (status != WEIR_OK)
		return (int)status;
	record = weiri_record_get_anew(); /* not NULL: the version was made with it */
	if (published != NULL)
		weiri_hold(record, version, &handle); /* its number is set afterwards */
	if (weiri_install_unannounced(record, var, current->version, version, &handle.version) == WEIR_OK) {
		if (published != NULL)
			*published = handle;
		if (race->asker != NULL)
			weiri_way_free(var, race->asker);
		/* Last: a completion may write the variable, and would give way to this update, or destroy it. */
		weiri_waitable_pump(record, &var->waitable);
		return WEIR_OK;
	}
	if (published != NULL)
		weir_read_release(&handle);
	weiri_version_discard(version); /* with what the function made */
	return WEIRI_LOST;
}

/*
 * Pauses after an attempt that another writer has overtaken, `lost` others before it. Writers that
 * try again at once overtake each other all the time, and each attempt takes the line of the head
 * from the other. While this one pauses, for 6 to 25 us on an AMD EPYC, the other updates many
 * times. No thread waits for another: the pause ends whatever others do. Dice, Hendler, Mirsky,
 * "Lightweight Contention Management for Efficient Compare-and-Swap Operations", Euro-Par 2013.
 */
static WEIRI_COLD void back_off(unsigned lost)
{
	unsigned doublings = lost < MOST_DOUBLINGS ? lost : MOST_DOUBLINGS;

	for (unsigned pauses = (unsigned)FIRST_PAUSES << doublings; pauses > 0; pauses--)
		weiri_pause();
}

/*
 * After an attempt that another writer has overtaken. Where the function takes long, others may be first each time: the
 * update then asks them to give way (give_way.h), for as long as two attempts have taken. Not before
 * weiri_way_patience_ns: where all are quick, each has its turn by chance, and waits would cost more than attempts.
 */
static WEIRI_COLD void lose(weir_var *var, struct race *race)
{
	uint64_t now = weir_now_ns(), attempt, until;
	unsigned since = race->lost++; /* attempts since the first that was lost */

	back_off(since);
	if (since == 0)
		race->begun_ns = now;
	if (since == 0 || since < weiri_way_patience || now - race->begun_ns < weiri_way_patience_ns)
		return;
	attempt = (now - race->begun_ns) / since;
	until = weir_deadline_in(2 * attempt < LONGEST_WAY_NS ? 2 * attempt : LONGEST_WAY_NS);
	if (race->asker != NULL)
		weiri_way_ask_again(var, until);
	else
		race->asker = weiri_way_ask(var, until);
}

static enum weir_status attempt_update(weir_var *var, const struct computation *computation, uint64_t deadline_ns,
                                       weir_read *published, struct race *race, weir_error *error)
{
	struct weiri_record *record;

	for (;; lose(var, race)) {
		weir_read current;
		int outcome;
		enum weir_status status = race->asker != NULL ? weiri_write_admit_at_once(var, deadline_ns, &record, error)
		                                              : weiri_write_admit(var, deadline_ns, &record, error);

		if (status != WEIR_OK)
			return status;
		status = weir_var_read(var, &current);
		if (status != WEIR_OK)
			return weiri_fail(error, status, "variable \"%s\" is not initialized", var->name);
		outcome = try_update(var, computation, &current, published, race, error);
		weir_read_release(&current);
		if (outcome != WEIRI_LOST)
			return (enum weir_status)outcome;
	}
}

static enum weir_status update(weir_var *var, const struct computation *computation, uint64_t deadline_ns,
                               weir_read *published, weir_error *error)
{
	struct race race = {.lost = 0};
	enum weir_status status = attempt_update(var, computation, deadline_ns, published, &race, error);

	if (race.asker != NULL && status != WEIR_OK) /* else it did that before the completions of others */
		weiri_way_free(var, race.asker);
	return status;
}

static enum weir_status fail_null(const weir_var *var, weir_error *error)
{
	return weiri_fail(error, WEIR_INVALID_ARGUMENT, "update: %s is NULL", var == NULL ? "variable" : "function");
}

enum weir_status weir_var_update(weir_var *var, weir_update_fn *fn, void *context, uint64_t deadline_ns,
                                 weir_read *published, weir_error *error)
{
	struct computation computation = {.of_tensors = fn, .context = context};

	if (var == NULL || fn == NULL)
		return fail_null(var, error);
	if (var->kind != WEIR_VAR_TENSOR)
		return weiri_kind_check_tensors(var, "weir_var_update()", error);
	return update(var, &computation, deadline_ns, published, error);
}

static WEIRI_NOINLINE enum weir_status update_value(weir_var *var, weir_update_value_fn *fn, void *context,
                                                    uint64_t deadline_ns, weir_read *published, weir_error *error)
{
	struct computation computation = {.of_values = fn, .context = context};

	if (var == NULL || fn == NULL)
		return fail_null(var, error);
	if (var->kind == WEIR_VAR_TABLE)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT,
		                  "variable \"%s\" has versions of a table: use weir_table_scatter()", var->name);
	return update(var, &computation, deadline_ns, published, error);
}

enum weir_status weir_var_update_value(weir_var *var, weir_update_value_fn *fn, void *context, uint64_t deadline_ns,
                                       weir_read *published, weir_error *error)
{
	/* [relaxed] W1 of give_way.h. An attempt in place would not wait, so update_value() does. */
	if (WEIRI_LIKELY(var != NULL && fn != NULL && published == NULL && var->kind == WEIR_VAR_INLINE &&
	                 var->history == 0 && weiri_load_relaxed(&var->way.asked) == 0)) {
		int outcome = weiri_update_in_place(var, fn, context, error);

		if (WEIRI_LIKELY(outcome != WEIRI_LOST && outcome != WEIRI_UNFIT))
			return (enum weir_status)outcome;
		if (outcome == WEIRI_LOST)
			back_off(0);
	}
	return update_value(var, fn, context, deadline_ns, published, error);
}

enum weir_status weiri_table_var_update(weir_var *var, weir_update_value_fn *fn, void *context, uint64_t deadline_ns,
                                        weir_read *published, weir_error *error)
{
	struct computation computation = {.of_values = fn, .context = context};

	return update(var, &computation, deadline_ns, published, error);
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
	if (var->kind != WEIR_VAR_TENSOR)
		return weiri_kind_check_tensors(var, change->is_of_rows ? "scatter" : "a sum", error);
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
