/*
 * record.h - what a thread publishes to collectors: hazard slots, a reserved interval of eras, its
 * retired objects.
 *
 * A thread finds its record through one thread-local pointer. It gets the record with its first
 * call of Weir and gives it up when it ends; the next new thread adopts it. Records are never
 * freed, so a scan of them needs no protection of its own. A handle may outlive the thread that
 * took it: its slot stays occupied while other threads adopt the record.
 */
#ifndef WEIRI_RECLAIM_RECORD_H
#define WEIRI_RECLAIM_RECORD_H

#include <stdalign.h>
#include <stddef.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/compiler.h"
#include "base/thread.h"
#include "reclaim/own.h"

struct weiri_kept_block;
struct weiri_retired;

enum {
	WEIRI_SLOTS = 8,           /* hazard slots for single reads */
	WEIRI_SNAPSHOT_SLOTS = 64, /* hazard slots for snapshots */
	WEIRI_MAGAZINE_LISTS = 8,
	WEIRI_STACKS = 8,        /* of retired objects, so that a collector can take one of them */
	WEIRI_RECORD_SIZE = 1024 /* also its alignment, so that a slot's address tells its record */
};

/* A hazard slot: NULL, or an object that must not be freed. */
struct weiri_slot {
	_Atomic(void *) object;
};

struct weiri_record {
	/*
	 * Written by the owner, and by any thread that releases a handle which was passed on. Read by
	 * collectors.
	 */
	alignas(WEIRI_RECORD_SIZE) struct weiri_slot slots[WEIRI_SLOTS];

	/*
	 * Written only by the owner; read by collectors. lo is 0 outside a section. Programs contain code that knows the
	 * first six fields, by weir/read_section.h (struct weir_reader).
	 */
	alignas(WEIRI_LINE) _Atomic(uint64_t) lo;
	_Atomic(uint64_t) hi;
	_Atomic(uint64_t) fenced;        /* announce.h; for the owner alone. 0: none */
	uint64_t shut;                   /* is 0: the last era that an ended read section reserves */
	_Atomic(uint32_t) read_sections; /* how many the owner has open: var/read_section.c */
	/*
	 * Set by a writer that waits for memory, cleared by the thread that releases a handle. It is on
	 * the owner's line because every release reads it.
	 */
	_Atomic(uint32_t) poke;
	_Atomic(uint16_t) snapshot_used;   /* snapshot slots from this index up were never used */
	_Atomic(uint8_t) picking;          /* 1 while a slot is picked: handlers then use references */
	_Atomic(uint8_t) waits;            /* 1 if memory_waiters (admit.c) counts the owner */
	_Atomic(uint32_t) snapshots_ahead; /* how many snapshots will advance the clock at once */
	_Atomic(uint32_t) magazine_bytes;  /* at least what the lists of the magazine have */
	_Atomic(uint32_t) magazine_grant;  /* how much they may have */
	_Atomic(uint64_t) announced;       /* announce.h; 0: none */

	/* The owner pushes; any collector takes a whole stack and pushes back what must stay. */
	alignas(WEIRI_LINE) _Atomic(struct weiri_retired *) retired[WEIRI_STACKS];

	/*
	 * Lower half: the owner's thread id in Linux, or 0 if there is no owner. Upper half: how many
	 * owners there were.
	 */
	alignas(WEIRI_LINE) _Atomic(uint64_t) owner;
	/*
	 * Used by the owner only. Atomic, because an owner that never gives the record up synchronizes
	 * with the next owner only through the kernel (P3 of record.c).
	 */
	_Atomic(uint64_t) since_collection; /* weight of the objects pushed since its last collection */
	_Atomic(uint64_t) unreported_bytes; /* retired here, not yet added to the process's total */
	struct weiri_own *own;              /* constant once listed; what it points to is the owner's */
	_Atomic(uint64_t) collecting;       /* owner writes: odd during a collection of this thread */
	_Atomic(uint64_t) in_hand;          /* owner writes: bytes that its collection holds */
	struct weiri_record *next;          /* constant once listed */
	uint32_t number;                    /* constant once listed: the number of records behind it */
	_Atomic(uint32_t) stack;            /* owner only: the stack on which it pushes now */

	/* Written by the owner, read by statistics. */
	alignas(WEIRI_LINE) _Atomic(uint64_t) created;
	_Atomic(uint64_t) freed;
	_Atomic(uint64_t) freed_versions;
	_Atomic(uint64_t) collections;
	_Atomic(uint64_t) slot_misses;
	_Atomic(uint64_t) copies; /* of large values, for combined updates (var/combine.c) */
	_Atomic(uint64_t) copies_wasted;
	_Atomic(uint64_t) examined; /* how often its collections examined a retired object */

	/*
	 * Retired objects that a section of this record holds. Any collector pushes, and takes a whole
	 * stack when the section has ended. pinned_lo is the lo of the oldest section for which an
	 * object was pushed, or 0 if none was.
	 */
	alignas(WEIRI_LINE) _Atomic(struct weiri_retired *) pinned[WEIRI_STACKS];
	alignas(WEIRI_LINE) _Atomic(uint64_t) pinned_lo[WEIRI_STACKS];

	alignas(WEIRI_LINE) struct weiri_slot snapshot_slots[WEIRI_SNAPSHOT_SLOTS];

	/* Used by the owner only: freed blocks of 1, 2, ... lines (magazine.h). */
	alignas(WEIRI_LINE) _Atomic(struct weiri_kept_block *) magazine[WEIRI_MAGAZINE_LISTS];
};

_Static_assert(sizeof(struct weiri_record) == WEIRI_RECORD_SIZE, "a slot's address must tell its record");

/*
 * How many requests of var/give_way.h have not ended: the sum of what all threads keep of it (own.h). It is here
 * because a thread that ends, or that a fork leaves behind, ends none of its requests.
 */
extern _Atomic(uint32_t) weiri_ways_asked;

WEIRI_SHARED extern WEIRI_TLS struct weiri_record *weiri_record_mine;
extern _Atomic(struct weiri_record *) weiri_records;

static inline struct weiri_record *weiri_record_first(void)
{
	/* [acquire] pairs with publish() in record.c. */
	return weiri_load_acquire(&weiri_records);
}

/* Registers this thread and returns its record; NULL if there is no memory. */
WEIRI_SHARED struct weiri_record *weiri_record_register(void);

/*
 * Returns this thread's record. Registers the thread if it has none; returns NULL if there is no
 * memory.
 */
static inline struct weiri_record *weiri_record_get(void)
{
	struct weiri_record *record = weiri_record_mine;

	return WEIRI_LIKELY(record != NULL) ? record : weiri_record_register();
}

/*
 * The same, for a caller that has read weiri_record_mine, and then called a function of the user. A
 * coroutine that waits in the function may continue on another thread. But to a compiler a function
 * runs on one thread, and it may keep the address of a thread-local variable over a call. clang does
 * so for AArch64, and for x86-64 with -Dtls=dynamic. So this function is not inlined.
 */
struct weiri_record *weiri_record_get_anew(void);

/* Returns what this thread keeps for itself, or NULL if it has no record. */
static inline struct weiri_own *weiri_own_mine(void)
{
	struct weiri_record *record = weiri_record_mine;

	return WEIRI_LIKELY(record != NULL) ? record->own : NULL;
}

/* In place of a thread's id: the record is a host's (host.h). No thread has this id. */
#define WEIRI_RECORD_OF_HOST UINT32_MAX

/* Returns a record for a host; NULL if there is no memory. */
struct weiri_record *weiri_record_lend(void);
/* Ends the host's section and makes the record vacant. */
void weiri_record_take_back(struct weiri_record *record);

/* Returns the owner's thread id in Linux; 0 if there is no owner. For display only. */
static inline uint32_t weiri_record_thread(const struct weiri_record *record)
{
	return (uint32_t)weiri_load_relaxed(&record->owner); /* [relaxed] a look */
}

/* Returns the id of the calling thread in Linux. */
static inline uint32_t weiri_record_my_thread(void)
{
	return WEIRI_LIKELY(weiri_record_mine != NULL) ? weiri_record_thread(weiri_record_mine) : weiri_thread_ask();
}

/* Frees what vacant records keep in their magazines. Called in the child of a fork. */
void weiri_record_clear_vacant(void);

/* Returns the record in which a slot lies. */
static inline struct weiri_record *weiri_record_of(void *slot)
{
	return (struct weiri_record *)((uintptr_t)slot & ~(uintptr_t)(WEIRI_RECORD_SIZE - 1));
}

/* Adds to a counter that only this thread writes, so a load and a store suffice. */
static inline void weiri_count(_Atomic(uint64_t) *counter, uint64_t more)
{
	/* [relaxed] statistics; no data travels with them. */
	weiri_store_relaxed(counter, weiri_load_relaxed(counter) + more);
}

#endif
