/*
 * optimizer.c - optimizers and their slots.
 *
 * The list of slots only grows. A thread that needs the slots of a variable and finds none makes them.
 * If another thread was first, its push fails, and it discards its own.
 */
#include "graph/optimizer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/options.h"
#include "graph/layout.h"
#include "graph/spec.h"
#include "tensor/object.h"
#include "var/version.h"

static const char *const kind_names[] = {
	[WEIR_OPTIMIZER_DESCENT] = "descent", [WEIR_OPTIMIZER_MOMENTUM] = "momentum", [WEIR_OPTIMIZER_ADAM] = "adam"};
static const char *const slot_names[][WEIRI_MOST_SLOTS] = {
	[WEIR_OPTIMIZER_DESCENT] = {NULL}, [WEIR_OPTIMIZER_MOMENTUM] = {"a"}, [WEIR_OPTIMIZER_ADAM] = {"m", "v"}};
static const size_t slot_counts[] = {
	[WEIR_OPTIMIZER_DESCENT] = 0, [WEIR_OPTIMIZER_MOMENTUM] = 1, [WEIR_OPTIMIZER_ADAM] = 2};

/* -- creating ------------------------------------------------------------------------------------ */

static enum weir_status check_number(const char *what, double *number, double otherwise, double below,
                                     weir_error *error)
{
	if (!isfinite(*number) || *number < 0 || *number >= below)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "weir_optimizer_create: %s is %g", what, *number);
	if (*number == 0)
		*number = otherwise;
	return WEIR_OK;
}

static enum weir_status complete_options(struct weir_optimizer_options *o, weir_error *error)
{
	enum weir_status status;

	if ((int)o->kind < WEIR_OPTIMIZER_DESCENT || (int)o->kind > WEIR_OPTIMIZER_ADAM)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "weir_optimizer_create: %d is not a kind", (int)o->kind);
	status = check_number("rate", &o->rate, o->kind == WEIR_OPTIMIZER_ADAM ? 0.001 : 0.01, HUGE_VAL, error);
	if (status == WEIR_OK)
		status = check_number("momentum", &o->momentum, 0.9, 1, error);
	if (status == WEIR_OK)
		status = check_number("beta1", &o->beta1, 0.9, 1, error);
	if (status == WEIR_OK)
		status = check_number("beta2", &o->beta2, 0.999, 1, error);
	if (status == WEIR_OK)
		status = check_number("epsilon", &o->epsilon, 1e-8, HUGE_VAL, error);
	if (o->name == NULL || o->name[0] == '\0')
		o->name = kind_names[o->kind];
	return status;
}

/* Creates a variable whose name is PREFIX/NAME or PREFIX/NAME/SLOT, with the given value. */
static enum weir_status create_var(const weir_optimizer *optimizer, const char *prefix, const char *slot,
                                   const weir_shape *shape, weir_tensor *initial, weir_var **out, weir_error *error)
{
	const char *name = optimizer->name;
	size_t bytes = (prefix != NULL ? strlen(prefix) : 0) + strlen(name) + strlen(slot) + 3;
	char *text = weiri_allocate(&optimizer->allocator, bytes, 1);
	struct weir_var_options options = {WEIR_VAR_OPTIONS_INIT, .name = text, .dtype = weir_tensor_dtype(initial),
	                                   .shape = shape, .allocator = &optimizer->allocator};
	enum weir_status status;

	if (text == NULL)
		return weiri_fail(error, WEIR_RESOURCE_EXHAUSTED, "no memory for variable \"%s\"", slot);
	(void)snprintf(text, bytes, "%s%s%s/%s", prefix != NULL ? prefix : "", prefix != NULL ? "/" : "", name, slot);
	status = weir_var_create(initial, &options, out, error);
	weiri_release(&optimizer->allocator, text, bytes, 1);
	return status;
}

static enum weir_status create_step(weir_optimizer *optimizer, weir_error *error)
{
	weir_tensor *zero;
	enum weir_status status = weiri_tensor_create(WEIR_I64, &weir_shape_scalar, 0, &optimizer->allocator, &zero);

	if (status != WEIR_OK)
		return weiri_fail(error, status, "no memory for the number of steps");
	*(int64_t *)zero->data = 0;
	status = create_var(optimizer, NULL, "step", &weir_shape_scalar, zero, &optimizer->step, error);
	weir_tensor_release(zero);
	return status;
}

enum weir_status weir_optimizer_create(const struct weir_optimizer_options *options, weir_optimizer **out,
                                       weir_error *error)
{
	struct weir_optimizer_options o;
	weir_optimizer *optimizer;
	weir_allocator allocator;
	enum weir_status status;
	weir_error inner;
	size_t bytes;

	if (options == NULL || out == NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "weir_optimizer_create: %s is NULL",
		                  options == NULL ? "options" : "out");
	status = weiri_options_read("weir_optimizer_create", options, &o, sizeof(o), error);
	if (status == WEIR_OK)
		status = complete_options(&o, error);
	if (status != WEIR_OK)
		return status;
	allocator = weiri_allocator_or_default(o.allocator);
	bytes = sizeof(*optimizer) + strlen(o.name) + 1;
	optimizer = weiri_allocate_zeroed(&allocator, bytes, _Alignof(weir_optimizer));
	if (optimizer == NULL)
		return weiri_fail(error, WEIR_RESOURCE_EXHAUSTED, "weir_optimizer_create: no memory");
	optimizer->allocator = allocator;
	optimizer->bytes = bytes;
	optimizer->name = memcpy(optimizer + 1, o.name, strlen(o.name) + 1);
	optimizer->options = o;
	optimizer->options.name = optimizer->name;
	optimizer->slot_count = slot_counts[o.kind];
	weiri_published_init(&optimizer->slots);
	weiri_countdown_init(&optimizer->users, 1);
	status = create_step(optimizer, &inner);
	if (status != WEIR_OK) {
		weiri_release(&allocator, optimizer, bytes, _Alignof(weir_optimizer));
		return weiri_fail(error, status, "weir_optimizer_create: %s", inner.message);
	}
	*out = optimizer;
	return WEIR_OK;
}

/* -- slots --------------------------------------------------------------------------------------- */

static struct weiri_slots *slots_of(struct weiri_published *link)
{
	return link != NULL ? WEIRI_CONTAINER_OF(link, struct weiri_slots, link) : NULL;
}

/* No step uses them, and nothing waits for them. */
static void destroy_slots(struct weiri_slots *slots)
{
	weir_optimizer *optimizer = slots->optimizer;

	for (size_t i = 0; i < optimizer->slot_count; i++)
		(void)weir_var_destroy(slots->slots[i], NULL);
	for (size_t i = 0; i <= optimizer->slot_count; i++) {
		if (slots->spares[i] != NULL)
			weiri_spares_end(slots->spares[i]);
	}
	weiri_release(&optimizer->allocator, slots, sizeof(*slots), _Alignof(struct weiri_slots));
}

enum weir_status weir_optimizer_destroy(weir_optimizer *optimizer, weir_error *error)
{
	struct weiri_published *next;
	enum weir_status status = WEIR_OK;
	weir_allocator allocator;

	if (optimizer == NULL)
		return WEIR_OK;
	if (!weiri_countdown_arrive(&optimizer->users)) {
		weiri_countdown_join(&optimizer->users);
		return weiri_fail(error, WEIR_FAILED_PRECONDITION,
		                  "weir_optimizer_destroy: a graph still has a step of optimizer \"%s\"", optimizer->name);
	}
	for (struct weiri_published *link = weiri_published_first(&optimizer->slots); link != NULL; link = link->next) {
		for (size_t i = 0; status == WEIR_OK && i < optimizer->slot_count; i++)
			status = weiri_waitable_check_idle(&slots_of(link)->slots[i]->waitable, error);
	}
	if (status == WEIR_OK)
		status = weir_var_destroy(optimizer->step, error);
	if (status != WEIR_OK) {
		weiri_countdown_init(&optimizer->users, 1);
		return status;
	}
	for (struct weiri_published *link = weiri_published_first(&optimizer->slots); link != NULL; link = next) {
		next = link->next;
		destroy_slots(slots_of(link));
	}
	allocator = optimizer->allocator;
	weiri_release(&allocator, optimizer, optimizer->bytes, _Alignof(weir_optimizer));
	return WEIR_OK;
}

/* Makes a tensor of zeros with the shape that values of the variable have. */
static enum weir_status make_zeros(const weir_optimizer *optimizer, weir_var *var, weir_tensor **out, weir_error *error)
{
	struct weiri_spec spec = weiri_spec_of(weir_var_dtype(var), weir_var_shape(var));
	enum weir_status status;
	weir_read read;

	if (!weiri_spec_known(&spec)) {
		status = weir_var_read(var, &read);
		if (status != WEIR_OK)
			return weiri_fail(error, status, "variable \"%s\" has no value, and so its slots no shape",
			                  weir_var_name(var));
		spec = weiri_spec_of_tensor(read.tensor);
		weir_read_release(&read);
	}
	status = weiri_tensor_create(spec.dtype, &spec.shape, 0, &optimizer->allocator, out);
	if (status != WEIR_OK)
		return weiri_fail(error, status, "no memory for a slot of variable \"%s\"", weir_var_name(var));
	(void)memset((*out)->data, 0, (*out)->nbytes);
	return WEIR_OK;
}

static enum weir_status fill_slots(struct weiri_slots *slots, weir_error *error)
{
	weir_optimizer *optimizer = slots->optimizer;
	weir_tensor *zeros = NULL;
	enum weir_status status = make_zeros(optimizer, slots->var, &zeros, error);

	for (size_t i = 0; status == WEIR_OK && i <= optimizer->slot_count; i++) {
		slots->spares[i] = weiri_spares_create_own(&optimizer->allocator, WEIRI_LARGE_STEP, WEIRI_STEP_SPARES);
		if (slots->spares[i] == NULL)
			status = weiri_fail(error, WEIR_RESOURCE_EXHAUSTED, "no memory for slots");
	}
	for (size_t i = 0; status == WEIR_OK && i < optimizer->slot_count; i++)
		status = create_var(optimizer, weir_var_name(slots->var), slot_names[optimizer->options.kind][i],
		                    weir_var_shape(slots->var), zeros, &slots->slots[i], error);
	weir_tensor_release(zeros);
	return status;
}

static struct weiri_slots *find(struct weiri_published *link, const weir_var *var)
{
	while (link != NULL && (slots_of(link)->var != var || slots_of(link)->var_number != var->id_entry.number))
		link = link->next;
	return slots_of(link);
}

enum weir_status weiri_optimizer_slots(weir_optimizer *optimizer, weir_var *var, struct weiri_slots **out,
                                       weir_error *error)
{
	struct weiri_published *first = weiri_published_first(&optimizer->slots);
	struct weiri_slots *made;
	enum weir_status status;

	*out = find(first, var);
	if (*out != NULL)
		return WEIR_OK;
	made = weiri_allocate_zeroed(&optimizer->allocator, sizeof(*made), _Alignof(struct weiri_slots));
	if (made == NULL)
		return weiri_fail(error, WEIR_RESOURCE_EXHAUSTED, "no memory for slots");
	made->optimizer = optimizer;
	made->var = var;
	made->var_number = var->id_entry.number;
	status = fill_slots(made, error);
	while (status == WEIR_OK && !weiri_published_push_after(&optimizer->slots, &made->link, first)) {
		first = weiri_published_first(&optimizer->slots);
		*out = find(first, var);
		if (*out != NULL)
			break;
	}
	if (status == WEIR_OK && *out == NULL)
		*out = made;
	else
		destroy_slots(made);
	return status;
}

weir_var *weir_optimizer_step(const weir_optimizer *optimizer)
{
	return optimizer != NULL ? optimizer->step : NULL;
}

size_t weir_optimizer_variable_count(const weir_optimizer *optimizer)
{
	size_t count = 1;

	if (optimizer == NULL)
		return 0;
	for (struct weiri_published *link = weiri_published_first(&optimizer->slots); link != NULL; link = link->next)
		count += optimizer->slot_count;
	return count;
}

enum weir_status weir_optimizer_variables(const weir_optimizer *optimizer, weir_var *vars[], size_t count,
                                          weir_error *error)
{
	size_t at = 1;

	if (optimizer == NULL || vars == NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "weir_optimizer_variables: %s is NULL",
		                  optimizer == NULL ? "optimizer" : "vars");
	if (weir_optimizer_variable_count(optimizer) > count)
		return weiri_fail(error, WEIR_OUT_OF_RANGE, "weir_optimizer_variables: optimizer \"%s\" has more than %zu",
		                  optimizer->name, count);
	vars[0] = optimizer->step;
	for (struct weiri_published *link = weiri_published_first(&optimizer->slots); link != NULL; link = link->next) {
		for (size_t i = 0; i < optimizer->slot_count && at < count; i++)
			vars[at++] = slots_of(link)->slots[i];
	}
	return WEIR_OK;
}
