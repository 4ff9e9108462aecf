/*
 * record.h - what a thread shows to collectors: hazard slots, a reserved interval of eras, its retired objects.
 *
 * A record is found through one thread-local pointer, made at a thread's first use of Weir, given up when the thread ends, and
 * then adopted by the next new thread. Records are never freed, so a scan needs no protection of its own, and a handle may
 * outlive the thread that took it: its slot stays occupied in a record that others adopt around it.
 */
#ifndef WEIRI_RECLAIM_RECORD_H
#define WEIRI_RECLAIM_RECORD_H

#include <stdalign.h>
#include <stddef.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/compiler.h"

struct weiri_retired;

enum {
	WEIRI_SLOTS = 8,           /* hazard slots for single reads */
	WEIRI_SNAPSHOT_SLOTS = 64, /* and for snapshots */
	WEIRI_STACKS = 8,          /* of retired objects, so that a collector need not take all at once */
	WEIRI_RECORD_SIZE = 1024   /* and its alignment: a slot's address tells its record */
};

/* A hazard slot: NULL, or an object that must not be freed. */
struct weiri_slot {
	_Atomic(void *) object;
};

struct weiri_record {
	/* Owner, and whoever releases a handle that was passed on. Read by collectors. */
	alignas(WEIRI_RECORD_SIZE) struct weiri_slot slots[WEIRI_SLOTS];

	/* Owner only; read by collectors. lo is 0 outside of a section. */
	alignas(WEIRI_LINE) _Atomic(uint64_t) lo;
	_Atomic(uint64_t) hi;
	_Atomic(uint32_t) snapshot_used; /* slots from here up were never used */
	_Atomic(uint32_t) picking;       /* a slot is being picked: a signal handler must take a reference instead */
	/* Set by a writer that waits for memory, cleared by the owner. On the owner's line because every release reads it. */
	_Atomic(uint32_t) poke;
	_Atomic(uint32_t) waits; /* the owner is counted among those that wait for memory */
	/* What a collection on this thread has in its hands: not looked at yet, and to be put back. For who finds it abandoned. */
	_Atomic(struct weiri_retired *) rest;
	_Atomic(struct weiri_retired *) kept;

	/* Owner pushes, any collector takes a stack whole and pushes back what must stay. */
	alignas(WEIRI_LINE) _Atomic(struct weiri_retired *) retired[WEIRI_STACKS];

	/* The owner's number in the kernel, 0: none; and above it how many owners there were. */
	alignas(WEIRI_LINE) _Atomic(uint64_t) owner;
	/* Owner only. Atomic since nothing but the kernel orders an owner that never gave it up before the next. */
	_Atomic(uint64_t) since_collection; /* objects pushed since its last collection */
	_Atomic(uint64_t) unreported_bytes; /* retired here, not yet added to the process's total */
	_Atomic(uint64_t) last_era;         /* the era of its last collection that looked at the readers; 0: none yet */
	_Atomic(uint64_t) collecting;       /* owner writes: odd while a collection is under way on this thread */
	_Atomic(uint64_t) in_hand; /* owner writes: bytes that its collection took, and neither freed nor put back yet */
	struct weiri_record *next; /* constant once listed */
	uint32_t number;           /* the same: how many records are behind it in the list */
	_Atomic(uint32_t) stack;   /* owner only: which one it pushes on now */

	/* Owner writes, statistics read. */
	alignas(WEIRI_LINE) _Atomic(uint64_t) created;
	_Atomic(uint64_t) freed;
	_Atomic(uint64_t) freed_versions;
	_Atomic(uint64_t) collections;
	_Atomic(uint64_t) slot_misses;
	_Atomic(uint64_t) copies; /* of large values, for updates that go together (var/combine.c) */
	_Atomic(uint64_t) copies_wasted;
	_Atomic(uint64_t) examined; /* retired objects that its collections looked at, each time anew */

	/*
	 * Retired objects that the section of this record holds. Any collector pushes, and takes a stack whole when the section has ended.
	 * pinned_lo: the lo of the oldest section for which one was pushed; 0: none was.
	 */
	alignas(WEIRI_LINE) _Atomic(struct weiri_retired *) pinned[WEIRI_STACKS];
	alignas(WEIRI_LINE) _Atomic(uint64_t) pinned_lo[WEIRI_STACKS];

	alignas(WEIRI_LINE) struct weiri_slot snapshot_slots[WEIRI_SNAPSHOT_SLOTS];
};

_Static_assert(sizeof(struct weiri_record) == WEIRI_RECORD_SIZE, "a slot's address must tell its record");

extern WEIRI_TLS struct weiri_record *weiri_record_mine;
extern _Atomic(struct weiri_record *) weiri_records;

/* Registers this thread. NULL when there is no memory. */
struct weiri_record *weiri_record_register(void);

/* This thread's record, registering it when it has none; NULL when there is no memory. */
static inline struct weiri_record *weiri_record_get(void)
{
	struct weiri_record *record = weiri_record_mine;

	return WEIRI_LIKELY(record != NULL) ? record : weiri_record_register();
}

/* The owner's number in the kernel; 0: none. For people. */
static inline uint32_t weiri_record_thread(const struct weiri_record *record)
{
	return (uint32_t)weiri_load_relaxed(&record->owner); /* [relaxed] a look */
}

/* The record that a slot lies in. */
static inline struct weiri_record *weiri_record_of(void *slot)
{
	return (struct weiri_record *)((uintptr_t)slot & ~(uintptr_t)(WEIRI_RECORD_SIZE - 1));
}

/* Adds to a counter that only this thread writes: a plain add, atomic for its readers. */
static inline void weiri_count(_Atomic(uint64_t) *counter, uint64_t more)
{
	/* [relaxed] statistics; no data travels with them. */
	weiri_store_relaxed(counter, weiri_load_relaxed(counter) + more);
}

#endif
