/*
 * registry.h - all queues that there are, for who looks from outside (dump.c, scripts/gdb/weir.py).
 *
 * Creating a queue puts it in, destroying it takes it out; both are lock-free and touch a few other queues' entries at most. Who looks goes from
 * queue to queue by number, and holds each for as long as he looks at it: a queue that is destroyed meanwhile is freed by him.
 */
#ifndef WEIRI_QUEUE_REGISTRY_H
#define WEIRI_QUEUE_REGISTRY_H

#include <weir/queue.h>

#include "reclaim/scope.h"

struct weiri_registered;

/* Of a queue that is ready to be looked at. Its entry; NULL: no memory. */
struct weiri_registered *weiri_registry_add(struct weiri_record *record, weir_queue *queue);
/* Gives up what add() held. 1: the caller frees the queue; 0: somebody looks at it, and will. */
int weiri_registry_remove(struct weiri_record *record, struct weiri_registered *entry);

/* Where a walk is. Zero: before the first queue. */
struct weiri_registry_place {
	uint64_t number; /* of the queue that was found last; queues are numbered from 1 as they are created */
};

/* The next queue, in no order that means anything, held for the caller; NULL: that was all. Queues that come and go meanwhile may be left out. */
struct weiri_registered *weiri_registry_next(struct weiri_scope *scope, struct weiri_registry_place *place);
weir_queue *weiri_registered_queue(const struct weiri_registered *entry);
/* In the scope of next(). 1: the queue was destroyed meanwhile, and the caller frees it, outside of the scope. */
int weiri_registry_let_go(struct weiri_registered *entry);

#endif
