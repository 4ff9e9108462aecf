/*
 * registry.h - all queues and areas that there are, for who looks from outside (dump.c, scripts/gdb/weir.py).
 *
 * Creating one puts it in, destroying it takes it out; both are lock-free and touch a few other entries at most. Who looks goes from one to the
 * next by number, and holds each for as long as he looks at it: one that is destroyed meanwhile is freed by him.
 */
#ifndef WEIRI_QUEUE_REGISTRY_H
#define WEIRI_QUEUE_REGISTRY_H

#include <weir/queue.h>

#include "reclaim/scope.h"

struct weiri_area;
struct weiri_registered;

/* Of a queue, or an area (the other is NULL), that is ready to be looked at. Its entry; NULL: no memory. */
struct weiri_registered *weiri_registry_add(struct weiri_record *record, weir_queue *queue, struct weiri_area *area);
/* Gives up what add() held. 1: the caller frees what it was; 0: somebody looks at it, and will. */
int weiri_registry_remove(struct weiri_record *record, struct weiri_registered *entry);

/* Where a walk is. Zero: before the first. */
struct weiri_registry_place {
	uint64_t number; /* of what was found last; all are numbered from 1 as they are created */
};

/* The next one, in no order that means anything, held for the caller; NULL: that was all. What comes and goes meanwhile may be left out. */
struct weiri_registered *weiri_registry_next(struct weiri_scope *scope, struct weiri_registry_place *place);
/* One of both is NULL. */
weir_queue *weiri_registered_queue(const struct weiri_registered *entry);
struct weiri_area *weiri_registered_area(const struct weiri_registered *entry);
/* In the scope of next(). 1: it was destroyed meanwhile, and the caller frees it, outside of the scope. */
int weiri_registry_let_go(struct weiri_registered *entry);

#endif
