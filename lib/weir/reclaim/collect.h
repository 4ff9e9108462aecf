/*
 * collect.h - retiring objects, and freeing them when no reader can reach them any more.
 */
#ifndef WEIRI_RECLAIM_COLLECT_H
#define WEIRI_RECLAIM_COLLECT_H

#include <stddef.h>
#include <stdint.h>
#include <weir/status.h>

#include "base/compiler.h"
#include "reclaim/section.h"

/* Embedded first in every reclaimable object. */
struct weiri_retired {
	struct weiri_retired *next;
	void (*reclaim)(struct weiri_retired *object); /* frees it; on any thread, outside sections */
	uint64_t birth;                                /* era, set before the object is published */
	uint64_t death;                                /* era, set by weiri_retire */
	size_t bytes;                                  /* how much it counts in the budget */
};

/* Called before the object is published: sets its birth era and how to free it. */
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
 * In `death` of an object that is about to be retired: other threads may learn late that they must
 * not reach it. The first collection that takes the object sets its death, and another one frees
 * it. So the object need not be unlinked by a seq_cst access; see P6 of collect.c.
 */
#define WEIRI_DIES_LATE UINT64_MAX

/*
 * Retires an object that no new section can reach. Must be called outside sections. Collects when
 * enough has accumulated, and then runs the reclaim functions of objects that can be freed.
 * Lock-free.
 */
WEIRI_SHARED void weiri_retire(struct weiri_record *record, struct weiri_retired *object);

/* Retires the objects of a list, which are linked by `next`, as weiri_retire() does. Lock-free. */
WEIRI_SHARED void weiri_retire_list(struct weiri_record *record, struct weiri_retired *list);

/*
 * Like weiri_retire(), for an object to which no thread refers any more; so no section or slot
 * delays its release. The caller has set `reclaim` and `bytes`. May be called in a signal handler,
 * whatever that interrupted, because it never collects. Lock-free.
 */
void weiri_retire_unreachable(struct weiri_record *record, struct weiri_retired *object);

/*
 * In bytes. Signed, because another thread may free an object, and subtract its bytes, before the
 * thread that retired it has reported them.
 */
extern _Atomic(int64_t) weiri_retired_total;

static inline uint64_t weiri_retired_bytes(void)
{
	/*
	 * [relaxed] a threshold or a statistic; a stale value only shifts the moment of a collection.
	 */
	int64_t total = weiri_load_relaxed(&weiri_retired_total);

	return total > 0 ? (uint64_t)total : 0;
}

/*
 * Collects what all threads have retired. kept(), if not NULL, is called for each object that
 * cannot be freed yet; no thread frees it during the call. Must not be called while this thread
 * collects. Lock-free.
 */
typedef void weiri_kept_fn(void *context, struct weiri_retired *object);
void weiri_collect_everybodys(struct weiri_record *record, weiri_kept_fn *kept, void *context);

/*
 * The same, and what follows each collection. Does nothing while this thread collects. Returns true if
 * some objects got their death only now, so that another collection may free them (P6). Lock-free.
 */
bool weiri_collect_for_all(struct weiri_record *record);

/*
 * Returns true if the owner of the record is in a collection; on the owner itself: in a reclaim
 * function.
 */
bool weiri_is_collecting(const struct weiri_record *record);

/*
 * The owner of the record no longer runs. Ends what the owner left unfinished: its section, its
 * choice of a slot, its wait for memory, and its collection, whose objects are put back. An object
 * that was being freed is leaked, and no longer counted. The caller owns the record.
 */
void weiri_collect_abandoned(struct weiri_record *record);

/*
 * Called in the child of a fork. `mine` is the record of the only thread, or NULL. The collections
 * of all other threads are over. Takes time in proportion to the number of retired objects.
 */
void weiri_collect_after_fork(struct weiri_record *mine);

#endif
