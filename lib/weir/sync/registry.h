/*
 * registry.h - all existing objects for which threads can wait, such as queues and areas, for
 * readers from outside (inspect/dump.c, scripts/gdb/weir.py).
 *
 * Creating an object adds it, destroying it removes it. Both are lock-free and access at most a few
 * other entries. A walk goes from one object to the next by number, and holds each object while it
 * reads it. If an object is destroyed meanwhile, the walk frees it.
 */
#ifndef WEIRI_SYNC_REGISTRY_H
#define WEIRI_SYNC_REGISTRY_H

#include <stddef.h>

#include "base/compiler.h"
#include "sync/waitable.h"

struct weiri_registered;

/* What a walk does with an object of a kind. Queues, which dump.c knows, set free() alone. */
struct weiri_registered_kind {
	void (*free)(void *object);
	struct weiri_waitable *(*waitable)(void *object);
	/* Writes what the object holds, such as "2 of 8 tuples". Runs in the section of the walk. */
	void (*tell)(const struct weiri_scope *scope, const void *object, char *text, size_t size); /* size >= 128 */
};

/* Adds an object that is ready to be read. Returns its entry, or NULL without memory. */
WEIRI_SHARED struct weiri_registered *weiri_registry_add(struct weiri_record *record,
                                                         const struct weiri_registered_kind *kind, void *object);
/*
 * Releases the hold of add(). Returns true if the caller is to free the object, false if a walk is
 * reading the object and will free it.
 */
WEIRI_SHARED bool weiri_registry_remove(struct weiri_record *record, struct weiri_registered *entry);

/* The position of a walk. Zero: before the first object. */
struct weiri_registry_place {
	uint64_t number; /* of the last object found; objects are numbered from 1 in the order of creation */
};

/*
 * Returns the next object, in no particular order, held for the caller; NULL if there are no more.
 * It may skip objects that are created or destroyed meanwhile.
 */
struct weiri_registered *weiri_registry_next(struct weiri_scope *scope, struct weiri_registry_place *place);
const struct weiri_registered_kind *weiri_registered_kind(const struct weiri_registered *entry);
void *weiri_registered_object(const struct weiri_registered *entry);
/*
 * Releases the hold, in the scope of next(). Returns true if the object was destroyed meanwhile;
 * the caller then frees it, outside the scope.
 */
bool weiri_registry_let_go(struct weiri_registered *entry);

#endif
