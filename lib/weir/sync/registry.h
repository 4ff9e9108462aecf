/*
 * registry.h - all existing objects that threads wait at, such as queues and areas, for readers
 * from outside (inspect/dump.c, scripts/gdb/weir.py).
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

/* What a walk does with an object of a kind. Only queues, which dump.c knows, have no more than free(). */
struct weiri_registered_kind {
	void (*free)(void *object);
	struct weiri_waitable *(*waitable)(void *object);
	/* What it holds: "2 of 8 tuples". In the section of the walk. */
	void (*tell)(const struct weiri_scope *scope, const void *object, char *text, size_t size); /* size >= 128 */
};

/* Adds an object that is ready to be read. Returns its entry; NULL: no memory. */
WEIRI_SHARED struct weiri_registered *weiri_registry_add(struct weiri_record *record,
                                                         const struct weiri_registered_kind *kind, void *object);
/*
 * Releases the hold of add(). 1: the caller frees the object; 0: a walk is reading it, and will
 * free it.
 */
WEIRI_SHARED int weiri_registry_remove(struct weiri_record *record, struct weiri_registered *entry);

/* The position of a walk. Zero: before the first object. */
struct weiri_registry_place {
	uint64_t number; /* of the last object found; objects are numbered from 1 in the order of creation */
};

/*
 * The next object, in no particular order, held for the caller; NULL: there are no more. Objects
 * that are created or destroyed meanwhile may be skipped.
 */
struct weiri_registered *weiri_registry_next(struct weiri_scope *scope, struct weiri_registry_place *place);
const struct weiri_registered_kind *weiri_registered_kind(const struct weiri_registered *entry);
void *weiri_registered_object(const struct weiri_registered *entry);
/*
 * Releases the hold, in the scope of next(). 1: the object was destroyed meanwhile, and the caller
 * frees it, outside the scope.
 */
int weiri_registry_let_go(struct weiri_registered *entry);

#endif
