/*
 * registry.h - all existing queues and areas, for readers from outside (dump.c,
 * scripts/gdb/weir.py).
 *
 * Creating an object adds it, destroying it removes it. Both are lock-free and access at most a few
 * other entries. A walk goes from one object to the next by number, and holds each object while it
 * reads it. If an object is destroyed meanwhile, the walk frees it.
 */
#ifndef WEIRI_QUEUE_REGISTRY_H
#define WEIRI_QUEUE_REGISTRY_H

#include <weir/queue.h>

#include "reclaim/scope.h"

struct weiri_area;
struct weiri_registered;

/*
 * Adds a queue or an area (the other argument is NULL) that is ready to be read. Returns its entry;
 * NULL: no memory.
 */
struct weiri_registered *weiri_registry_add(struct weiri_record *record, weir_queue *queue, struct weiri_area *area);
/*
 * Releases the hold of add(). 1: the caller frees the object; 0: a walk is reading it, and will
 * free it.
 */
int weiri_registry_remove(struct weiri_record *record, struct weiri_registered *entry);

/* The position of a walk. Zero: before the first object. */
struct weiri_registry_place {
	uint64_t number; /* of the last object found; objects are numbered from 1 in the order of creation */
};

/*
 * The next object, in no particular order, held for the caller; NULL: there are no more. Objects
 * that are created or destroyed meanwhile may be skipped.
 */
struct weiri_registered *weiri_registry_next(struct weiri_scope *scope, struct weiri_registry_place *place);
/* One of the two is NULL. */
weir_queue *weiri_registered_queue(const struct weiri_registered *entry);
struct weiri_area *weiri_registered_area(const struct weiri_registered *entry);
/*
 * Releases the hold, in the scope of next(). 1: the object was destroyed meanwhile, and the caller
 * frees it, outside the scope.
 */
int weiri_registry_let_go(struct weiri_registered *entry);

#endif
