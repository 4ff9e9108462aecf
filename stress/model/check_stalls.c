/*
 * check_stalls.c - finding the threads that keep memory from being freed. Looks run beside
 * releases, sections, new threads and other looks. Hooks are checked, too.
 *
 * There is one retired object, and a slot that names it. No thread frees the object while a look
 * reads it. At most one of several concurrent looks finds the object. Every look that runs alone
 * finds it, and no look finds it after the slot was cleared. In some scopes time passes. The age of
 * an object is known if it was retired two ticks ago (see reclaim/eras.c).
 */
#include <stdint.h>
#include <string.h>
#include <weir/reclaim.h>
#include <weir/stall.h>
#include <weir/time.h>

#include "base/futex.h"
#include "model/variable_scopes.h"
#include "reclaim/eras.h"
#include "reclaim/stall.h"

enum { THREADS = 3 };

static const uint64_t tick_ns = UINT64_C(1) << 62; /* of eras.c */

struct object {
	struct weiri_retired retired;
	int data;
};

static struct scene {
	_Atomic(struct object *) head; /* of the objects that threads read in sections */
	struct weiri_slot *slot;
	_Atomic(uint32_t) no_thread_wakes;
	_Atomic(int) told, freed;
	int prepared; /* plain: for the second hook */
	weir_var *var;
	weir_read read;
} scene;

static void reclaim(struct weiri_retired *retired)
{
	(void)weiri_fetch_add_relaxed(&scene.freed, 1);
	weir_model_release(retired);
}

static struct object *make(void)
{
	struct object *object = weir_model_allocate(sizeof(*object), 64);

	object->data = 1;
	weiri_retired_init(&object->retired, sizeof(*object), reclaim);
	return object;
}

/*
 * The setup retires an object that a slot holds, and ends the era in which the object was retired.
 */
static void setup(void *context)
{
	struct weiri_record *record = weiri_record_get();
	struct object *object = make();

	(void)context;
	scene.slot = weiri_slot_find(record);
	weiri_slot_claim(scene.slot, object);
	weiri_retire(record, &object->retired);
	weiri_era_begin();
	weiri_store_relaxed(&scene.head, make());
}

static void flush(int freed)
{
	weir_model_assert(weir_reclaim_flush(0) == WEIR_OK);
	weir_model_assert(weiri_load_relaxed(&scene.freed) == freed);
}

static void describe(struct weiri_retired *object, struct weiri_stall *stall)
{
	weir_model_assert(((struct object *)object)->data == 1);
	stall->what[0] = 1;
}

struct found {
	size_t handles, sections;
};

static struct found look(void)
{
	struct weiri_stalls stalls;
	struct found found = {0};

	weiri_stalls_look(weiri_record_get(), 0, describe, &stalls);
	for (size_t i = 0; i < stalls.found; i++) {
		const struct weiri_stall *stall = &stalls.stall[i];

		weir_model_assert(stall->is_section ? stall->bytes == 0
		                                    : stall->what[0] == 1 && stall->bytes == sizeof(struct object));
		found.sections += stall->is_section != 0;
		found.handles += stall->is_section == 0;
	}
	return found;
}

/* -- looks ------------------------------------------------------------------------------------- */

/* To be called while the slot is still claimed. */
static void look_finds_it(void)
{
	struct found found = look();

	weir_model_assert(found.handles == 1 && found.sections == 0);
}

static void look_at_most_at_it(void)
{
	struct found found = look();

	weir_model_assert(found.handles <= 1 && found.sections <= 1);
}

/* Makes a thread's first call. */
static void begin(void)
{
	(void)weiri_record_get();
}

static void let_go(void)
{
	weiri_slot_clear(scene.slot);
}

static void read_in_section(void)
{
	struct weiri_record *record = weiri_record_get();
	uint64_t outer = weiri_section_enter(record);
	struct object *object;

	weiri_section_read(record, &scene.head, &object);
	weir_model_assert(object->data == 1);
	weiri_section_leave(record, outer);
}

static void replace(void)
{
	weiri_retire(weiri_record_get(), &weiri_exchange_seq_cst(&scene.head, make())->retired);
}

static void replace_and_look(void)
{
	replace();
	look_at_most_at_it();
}

static void finish_held(void *context)
{
	(void)context;
	weiri_retire(weiri_record_get(), &weiri_exchange_seq_cst(&scene.head, NULL)->retired);
	look_finds_it();
	let_go();
	weir_model_assert(weir_reclaim_flush(0) == WEIR_OK);
}

static void finish_let_go(void *context)
{
	(void)context;
	weiri_retire(weiri_record_get(), &weiri_exchange_seq_cst(&scene.head, NULL)->retired);
	weir_model_assert(look().handles == 0);
	flush(2);
}

/* -- reports ----------------------------------------------------------------------------------- */

enum { FIRST_LIMIT = 1, SECOND_LIMIT = 2 };

static void tell_first(struct weiri_record *record, uint64_t limit_ns)
{
	(void)record;
	weir_model_assert(limit_ns == FIRST_LIMIT);
	(void)weiri_fetch_add_relaxed(&scene.told, 1);
}

static void tell_second(struct weiri_record *record, uint64_t limit_ns)
{
	(void)record, (void)limit_ns;
	(void)weiri_fetch_add_relaxed(&scene.told, 1);
}

static void setup_due(void *context)
{
	setup(context);
	weiri_stalls_set_due(FIRST_LIMIT, tell_first);
}

static void set_second_due(void)
{
	weiri_stalls_set_due(SECOND_LIMIT, tell_second);
}

/* Signals that it has collected. */
static void after_collection(void)
{
	weiri_stalls_after_collection(weiri_record_get());
}

/* Of several threads that have collected at the same time, exactly one reports. */
static void finish_told(void *context)
{
	weir_model_assert(weiri_load_relaxed(&scene.told) == 1);
	finish_held(context);
}

static void hear_first(void *context, const struct weir_stall *stall)
{
	(void)context;
	weir_model_assert(stall->kind == WEIR_STALL_HANDLE && stall->bytes == sizeof(struct object));
	(void)weiri_fetch_add_relaxed(&scene.told, 1);
}

static void hear_second(void *context, const struct weir_stall *stall)
{
	weir_model_assert(scene.prepared);
	hear_first(context, stall);
}

static const weir_stall_hook first_hook = {.fn = hear_first}, second_hook = {.fn = hear_second};

static void setup_hook(void *context)
{
	setup(context);
	weir_stalls_set_hook(FIRST_LIMIT, &first_hook);
}

static void set_second_hook(void)
{
	scene.prepared = 1;
	weir_stalls_set_hook(FIRST_LIMIT, &second_hook);
}

static void sleep_until(uint64_t ns)
{
	(void)weiri_futex_wait(&scene.no_thread_wakes, 0, ns);
}

/* Runs when the object is old enough. */
static void collect_late(void)
{
	sleep_until(tick_ns);
	weiri_eras_note();
	sleep_until(2 * tick_ns + FIRST_LIMIT);
	after_collection();
}

/* -- by name ----------------------------------------------------------------------------------- */

static void setup_variable(void *context)
{
	struct weir_var_options options = {WEIR_VAR_OPTIONS_INIT, .dtype = WEIR_I64, .name = "x"};
	weir_tensor *initial = number_of_size(1, SMALL_VALUES);

	(void)context;
	weir_model_assert(weir_var_create(initial, &options, &scene.var, NULL) == WEIR_OK);
	weir_tensor_release(initial);
	weir_model_assert(weir_var_read(scene.var, &scene.read) == WEIR_OK);
	weir_read_release(&scene.read);
	/* The handle has a slot, because it is not the thread's first read. */
	weir_model_assert(weir_var_read(scene.var, &scene.read) == WEIR_OK);
	assign_tensor(scene.var, number_of_size(2, SMALL_VALUES));
}

static void see(void *context, const struct weir_stall *stall)
{
	(void)context;
	if (stall->kind != WEIR_STALL_HANDLE)
		return;
	weir_model_assert(stall->version == scene.read.version);
	weir_model_assert(strcmp(stall->variable, "x") == 0 || stall->variable[0] == '\0');
	(void)weiri_fetch_add_relaxed(&scene.told, 1);
}

static void look_by_name(void)
{
	weir_model_assert(weir_stalls_visit(0, see, NULL, NULL) == WEIR_OK);
}

static void destroy_variable(void)
{
	weir_model_assert(weir_var_destroy(scene.var, NULL) == WEIR_OK);
}

/* The name is freed with the variable. */
static void destroy_variable_and_collect(void)
{
	destroy_variable();
	(void)weir_reclaim_flush(0);
}

/* The look may have missed the version, if a collector had it in hand. */
static void finish_collected_variable(void *context)
{
	(void)context;
	weir_model_assert(weiri_load_relaxed(&scene.told) <= 1);
	weir_model_assert(value_of(&scene.read) == 1);
	weir_read_release(&scene.read);
	weir_model_assert(weir_reclaim_flush(0) == WEIR_OK);
}

static void finish_variable(void *context)
{
	weir_model_assert(weiri_load_relaxed(&scene.told) == 1);
	finish_collected_variable(context);
}

/* ---------------------------------------------------------------------------------------------- */

static const struct scope {
	const char *name;
	void (*threads[THREADS])(void);
	void (*setup)(void *);
	void (*finish)(void *);
	int waits; /* a thread may be left asleep when another is stopped */
} scopes[] = {
	{"stalls_look_beside_2_first_calls", {look_finds_it, begin, begin}, setup, finish_held, 0},
	{"stalls_look_beside_release", {look_at_most_at_it, let_go}, setup, finish_let_go, 0},
	{"stalls_2_looks", {look_at_most_at_it, look_at_most_at_it}, setup, finish_held, 0},
	{"stalls_2_looks_beside_release", {look_at_most_at_it, look_at_most_at_it, let_go}, setup, finish_let_go, 0},
	{"stalls_look_beside_section", {replace_and_look, read_in_section}, setup, finish_held, 0},
	{"stalls_2_that_collected", {after_collection, after_collection}, setup_due, finish_told, 0},
	{"stalls_new_limit_beside_one_that_collected", {set_second_due, after_collection}, setup_due, finish_told, 0},
	{"stalls_new_hook_beside_one_that_collected", {set_second_hook, collect_late}, setup_hook, finish_told, 1},
	{"stalls_look_by_name_beside_destroy", {look_by_name, destroy_variable}, setup_variable, finish_variable, 0},
	{"stalls_look_by_name_beside_destroy_and_collection",
     {look_by_name, destroy_variable_and_collect},
     setup_variable,
     finish_collected_variable,
     0},
};

static struct scope_plan prepare(size_t index)
{
	const struct scope *scope = &scopes[index];

	scene = (struct scene){.head = NULL};
	return (struct scope_plan){.program = {scope->name, scope_functions(scope->threads, THREADS), &scene, sizeof(scene),
	                                       scope->setup, scope_function, scope->finish},
	                           .executions = 8000,
	                           .long_executions = 2000000,
	                           .stopped = scope->waits ? 0 : 30,
	                           .long_stopped = 1000};
}

int main(int argc, char **argv)
{
	scope_arguments(argc, argv);
	return scope_all(prepare, sizeof(scopes) / sizeof(scopes[0]));
}
