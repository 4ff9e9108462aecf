/*
 * stalls.c - stalls with the names of variables.
 *
 * While a collector holds the object of a stall, describe() notes the variable and the version as
 * numbers. Names are looked up afterwards, when no collector holds anything.
 */
#include "var/stalls.h"

#include <stdio.h>
#include <string.h>

#include "var/version.h"

enum { NAME_SIZE = 64 };

_Static_assert((int)WEIR_STALLS_SHOWN == (int)WEIRI_MOST_STALLS, "what is noted is shown");

static void describe(struct weiri_retired *object, struct weiri_stall *stall)
{
	const struct weiri_version *version = weiri_version_of_retired(object);

	stall->what[0] = version != NULL ? version->variable : 0;
	stall->what[1] = version != NULL ? version->number : 0;
}

static void copy_name(struct weiri_record *record, uint64_t label, char name[NAME_SIZE])
{
	struct weiri_scope scope = weiri_scope_enter(record);
	struct weiri_id_entry *id_entry = label != 0 ? weiri_id_set_find(&scope, &weiri_variables, label) : NULL;

	(void)snprintf(name, NAME_SIZE, "%s",
	               id_entry != NULL ? WEIRI_CONTAINER_OF(id_entry, weir_var, id_entry)->name : "");
	weiri_scope_leave(&scope);
}

static enum weir_stall_kind kind_of(const struct weiri_stall *stall)
{
	if (stall->is_host)
		return WEIR_STALL_HOST;
	return stall->is_section ? WEIR_STALL_SECTION : WEIR_STALL_HANDLE;
}

static void visit_all(struct weiri_record *record, const struct weiri_stalls *stalls, weir_stall_fn *visit,
                      void *context)
{
	size_t shown = stalls->found < WEIRI_MOST_STALLS ? stalls->found : WEIRI_MOST_STALLS;

	for (size_t i = 0; i < shown; i++) {
		const struct weiri_stall *one = &stalls->stall[i];
		char name[NAME_SIZE];
		struct weir_stall stall = {.kind = kind_of(one),
		                           .thread = one->thread,
		                           .age_ns = one->age_ns,
		                           .variable = name,
		                           .version = one->what[1],
		                           .bytes = one->bytes,
		                           .read_sections = one->read_sections};

		copy_name(record, one->what[0], name);
		visit(context, &stall);
	}
}

enum weir_status weiri_stalls_show(struct weiri_stalls *room, uint64_t limit_ns, weir_stall_fn *visit, void *context,
                                   size_t *found)
{
	struct weiri_record *record = weiri_record_get();

	if (visit == NULL)
		return WEIR_INVALID_ARGUMENT;
	if (record == NULL)
		return WEIR_RESOURCE_EXHAUSTED;
	if (weiri_is_collecting(record))
		return WEIR_FAILED_PRECONDITION;
	weiri_stalls_look(record, limit_ns, describe, room);
	visit_all(record, room, visit, context);
	if (found != NULL)
		*found = room->found;
	return WEIR_OK;
}

enum weir_status weir_stalls_visit(uint64_t limit_ns, weir_stall_fn *visit, void *context, size_t *found)
{
	struct weiri_stalls room;

	return weiri_stalls_show(&room, limit_ns, visit, context, found);
}

/* -- searches that are due --------------------------------------------------------------------- */

static _Atomic(const weir_stall_hook *) stall_hook;

static void call_hook(void *context, const struct weir_stall *stall)
{
	/* [acquire] pairs with weir_stalls_set_hook(): what its caller stored in its hook. */
	const weir_stall_hook *hook = weiri_load_acquire(&stall_hook);

	(void)context;
	if (hook != NULL)
		hook->fn(hook->context, stall);
}

static WEIRI_COLD void tell(struct weiri_record *record, uint64_t limit_ns)
{
	struct weiri_stalls stalls;

	weiri_stalls_look(record, limit_ns, describe, &stalls);
	visit_all(record, &stalls, call_hook, NULL);
}

void weir_stalls_set_hook(uint64_t limit_ns, const weir_stall_hook *hook)
{
	bool is_set = hook != NULL && hook->fn != NULL && limit_ns != 0;

	/* [release] pairs with call_hook(). */
	weiri_store_release(&stall_hook, is_set ? hook : NULL);
	weiri_stalls_set_due(is_set ? limit_ns : 0, tell);
}
