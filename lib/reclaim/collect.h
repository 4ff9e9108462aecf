/*
 * collect.h - retiring objects, and freeing them when no reader can reach them any more.
 */
#ifndef WEIRI_RECLAIM_COLLECT_H
#define WEIRI_RECLAIM_COLLECT_H

#include <stddef.h>
#include <stdint.h>
#include <weir/status.h>

#include "reclaim/section.h"

/* Embedded first in every reclaimable object. */
struct weiri_retired {
	struct weiri_retired *next;
	void (*reclaim)(struct weiri_retired *object); /* frees it; on any thread, outside of sections */
	uint64_t birth;                                /* era, set before the object is published */
	uint64_t death;                                /* era, set by weiri_retire */
	size_t bytes;                                  /* what it counts for in the budget */
};

/* Before the object is published: its birth era and how to free it. */
static inline void weiri_retired_init(struct weiri_retired *object, size_t bytes,
                                      void (*reclaim)(struct weiri_retired *object))
{
	object->next = NULL;
	object->reclaim = reclaim;
	/* [relaxed] the publication releases it; see I1 in section.h. */
	object->birth = weiri_load_relaxed(&weiri_era);
	object->death = 0;
	object->bytes = bytes;
}

/*
 * Hands over an object that no new section can reach. Not inside a section. Collects when enough has gathered. Lock-free; runs
 * reclaim functions of objects that are free to go.
 */
void weiri_retire(struct weiri_record *record, struct weiri_retired *object);

/*
 * The same for an object that nobody refers to any more, whatever sections and slots there are; `reclaim` and `bytes` are set. May be
 * called in a signal handler that interrupted anything: it never collects. Lock-free.
 */
void weiri_retire_unreachable(struct weiri_record *record, struct weiri_retired *object);

/*
 * Before a write that will retire something: WEIR_OK at once while the process is within its budget; otherwise collects, waits for
 * readers until deadline_ns, and says WEIR_RESOURCE_EXHAUSTED when that passed.
 */
enum weir_status weiri_reclaim_admit(struct weiri_record *record, uint64_t deadline_ns);

/*
 * Collects what all threads have retired. kept(), if not NULL, is called for each object that may not be freed yet, which nobody frees
 * meanwhile. Not while this thread collects. Lock-free.
 */
typedef void weiri_kept_fn(void *context, struct weiri_retired *object);
void weiri_collect_everybodys(struct weiri_record *record, weiri_kept_fn *kept, void *context);
/* This thread is in a collection: in a reclaim function. */
int weiri_is_collecting(const struct weiri_record *record);

/*
 * Ends what the owner of the record, who is no more, was in the middle of: its section, its choice of a slot, its wait for memory, and its
 * collection, whose objects are put back. An object that was being freed is lost, and no longer counted. The caller owns the record.
 */
void weiri_collect_abandoned(struct weiri_record *record);

/* How long who waits for memory sleeps before it looks again unasked. The model checker makes it for ever: a wake-up that is lost shows. */
extern uint64_t weiri_reclaim_look_again_ns;

/*
 * In the child of a fork, `mine` being the record of the only thread, or NULL: collections of others are over. Takes time for every
 * retired object.
 */
void weiri_collect_after_fork(struct weiri_record *mine);

#endif
