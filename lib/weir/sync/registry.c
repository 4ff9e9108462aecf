/*
 * registry.c - see registry.h.
 *
 * Algorithm. One set for the process holds entries by number (sync/id_set.h). An entry counts the
 * users of its object. The registry does not know the kinds of objects; the modules above describe
 * them: a queue (queue/queue.c), an area (areas/area.c).
 *
 * Invariants
 *   G1  `holds` counts the object's owner, from add() to remove(), and each walk that is reading
 *       the object. The owner or walk that releases the last hold frees the object, once; 0 stays 0
 *       (references.h)
 *   G2  an entry outlives its object: the entry is freed when no section can see it, and a walk
 *       that holds the object is in a section
 * Pairs: those of hash_list.h: the entry, and the object as its creator left it. P1 let_go, remove
 *   -> remove, let_go (in weiri_references_give()): what was read from the object, or done to it,
 *   before it is freed.
 * Linearization: those of the list; an object is held from the CAS that counts the hold.
 * Progress: add, remove, next() and let_go() are lock-free. A dump never makes a destroy wait: the
 *   dump frees the object instead.
 * Memory, from the default allocator: an entry of 88 bytes for each object, and what hash_list.h
 *   says. The marks of the list are never released.
 * Fork: the child has the parent's objects and their entries. A walk that was under way in another
 * thread holds one of them permanently.
 * Checked: tests/test_dump.c, stress/model/check_registry.c, weir-stress "queue_dump".
 */
#include "sync/registry.h"

#include <stdalign.h>

#include "base/memory.h"
#include "sync/id_set.h"
#include "sync/references.h"

struct weiri_registered {
	struct weiri_id_entry id_entry;
	_Atomic(size_t) holds;
	/* Constant. */
	const struct weiri_registered_kind *kind;
	void *object;
};

static struct weiri_id_set all_objects = WEIRI_ID_SET;

static struct weiri_registered *entry_of(struct weiri_id_entry *id_entry)
{
	return id_entry != NULL ? WEIRI_CONTAINER_OF(id_entry, struct weiri_registered, id_entry) : NULL;
}

static void free_entry(struct weiri_registered *entry)
{
	weir_allocator allocator = weiri_allocator_or_default(NULL);

	weiri_release(&allocator, entry, sizeof(*entry), alignof(struct weiri_registered));
}

static void out_of_sight(struct weiri_retired *retired)
{
	free_entry(entry_of(weiri_id_entry_of_retired(retired)));
}

struct weiri_registered *weiri_registry_add(struct weiri_record *record, const struct weiri_registered_kind *kind,
                                            void *object)
{
	weir_allocator allocator = weiri_allocator_or_default(NULL);
	struct weiri_registered *entry = weiri_allocate(&allocator, sizeof(*entry), alignof(struct weiri_registered));
	struct weiri_scope scope;

	if (entry == NULL)
		return NULL;
	entry->kind = kind;
	entry->object = object;
	weiri_store_relaxed(&entry->holds, (size_t)1); /* [relaxed] not shared yet */
	scope = weiri_scope_enter(record);
	weiri_id_set_enter(&scope, &all_objects, &entry->id_entry, sizeof(*entry), out_of_sight);
	weiri_scope_leave(&scope);
	return entry;
}

bool weiri_registry_remove(struct weiri_record *record, struct weiri_registered *entry)
{
	struct weiri_scope scope = weiri_scope_enter(record);
	bool last;

	weiri_id_set_leave(&scope, &all_objects, &entry->id_entry);
	last = weiri_references_give(&entry->holds); /* P1, G2: before the scope retires the entry */
	weiri_scope_leave(&scope);
	return last;
}

struct weiri_registered *weiri_registry_next(struct weiri_scope *scope, struct weiri_registry_place *place)
{
	struct weiri_registered *entry;

	do {
		entry = entry_of(weiri_id_set_after(scope, &all_objects, place->number));
		if (entry != NULL)
			place->number = entry->id_entry.number;
	} while (entry != NULL && !weiri_references_try_take(&entry->holds)); /* G1: that object is being destroyed */
	return entry;
}

const struct weiri_registered_kind *weiri_registered_kind(const struct weiri_registered *entry)
{
	return entry->kind;
}

void *weiri_registered_object(const struct weiri_registered *entry)
{
	return entry->object;
}

bool weiri_registry_let_go(struct weiri_registered *entry)
{
	return weiri_references_give(&entry->holds); /* P1 */
}
