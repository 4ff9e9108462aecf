/*
 * lineage.h - the parts that successive versions of a large value share, and when each part is dead.
 *
 * A value that changes in few places is a tree of parts: memory blocks that are never written again
 * once published. The next version shares all parts but those that it replaced. A lineage says when
 * a replaced part is contained in no version that any thread may still read.
 *
 * Algorithm. The versions of one variable form one line: each is built on the version before it.
 * So a part is in the versions from its birth to just before the version that replaced it, and in
 * no other. No part has a reference count, and copying a node costs nothing per child. Each version
 * has a generation: its number, the generation before it, and the list of the parts that it
 * replaced. A generation has ended when its version has no reference, slot or section any more.
 *
 * The ledger is an immutable array: the generations that had not ended when it was made, in order,
 * and the number of the newest generation that it knows. A writer that has published enough
 * replaced parts sweeps: it makes the next ledger, with the generations that were published since
 * and without those that have ended, and installs it by one CAS. The thread whose CAS succeeds owns
 * the lists of the newly entered generations, and what was pinned to the removed ones. It places
 * each list. A part that died in generation d (parts of one list share d) is pinned to its holder:
 * the largest live generation below d, if the part was born no later than the holder. Otherwise
 * the part is dead. A part is examined once when the generation before d has ended, and once more
 * for each later holder that ends. A pinned list that loses its holder because that ended is placed
 * again.
 *
 * Source. This is the deadlist of ZFS snapshots (Ahrens, 2007): what died between two snapshots
 * belongs to the older one and, when that is destroyed, is compared by birth with the snapshot
 * before. There one thread keeps the lists under a lock. The ledger in one word and the closing of
 * a list, which make it lock-free, are ours. Path copying and the intervals of a linear history:
 * Driscoll, Sarnak, Sleator, Tarjan, STOC 1986.
 *
 * Invariants
 *   L1  numbers of generations grow by one along `older`. Those in a ledger grow, and none is above
 *       its `last`
 *   L2  every published generation that has not ended is in the ledger, or has a number above its
 *       `last`
 *   L3  a part pinned to a generation was born no later than it
 *   L4  a replaced part is on one list, or held by one sweep
 *   L5  a generation ends once, and after that no thread reads its parts
 * Pairs
 *   P1  enter(ledger CAS) -> read of the ledger: the array, the generations
 *   P2  end -> sweep that finds it ended: the reads of the parts come before their reuse
 *   P3  pin -> close: the list
 *   P4  close -> pin that finds it closed: the ledger without that generation. So the loop that
 *       places a list goes on with a smaller holder
 *   P5  give -> last give: see weiri_lineage_end()
 *   Readers of the ledger run in a section: I1 of section.h protects ledgers and generations.
 * Why a dead part is in no live version. Let a part of [b, d) be dead in a sweep that read a ledger
 * in which the largest generation below d is P < b. The ledger knows all numbers below d, since d
 * was entered in it or in an earlier one. By L2 each generation in [b, d) had ended before it was
 * left out, and a generation that has ended never comes back (L5).
 * Why a generation is safe to follow. A sweep reaches generations through `newest`, which the
 * caller holds, and through the ledger. One with a number above the ledger's `last` is retired only
 * after a CAS of the ledger that comes after this thread's read of it; so it died no earlier than
 * the section began. It was published before `newest`, and so before the section began; so it was
 * born no later than hi. One in the ledger was born before the ledger was published.
 * Linearization: the CAS of the ledger.
 * Progress: lock-free. A sweep tries its CAS once; if another sweep came first, that one did the
 * work. To place a list is retried only when its holder was removed, by a sweep that succeeded, or
 * when another list was pinned to the same holder. A thread stopped in a sweep withholds the lists
 * that it owns, at most what was published between two sweeps and what was pinned to the
 * generations that it removed. Nothing waits for it.
 * Memory: parts that wait for a sweep: see weiri_lineage_is_due(). Pinned to a generation are only
 * parts of its own value. If there is no memory for a ledger, the sweep is left to a later write.
 * Checked: stress/model/check_table.c, stress/scenario_table.c, tests/test_table.c.
 */
#ifndef WEIRI_RECLAIM_LINEAGE_H
#define WEIRI_RECLAIM_LINEAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <weir/alloc.h>

#include "base/assert.h"
#include "base/atomic.h"
#include "base/compiler.h"
#include "reclaim/collect.h"

/* A pointer to a part, with the number of the generation for which the part was made. */
struct weiri_part {
	void *memory;
	uint64_t birth; /* 0: the part belongs to the lineage, and never dies */
};

#if defined(WEIRI_UNDER_MODEL)
enum { WEIRI_PARTS = 3 };
#else
enum { WEIRI_PARTS = 126 };
#endif

/* A list of replaced parts. Only the first segment may have room. */
struct weiri_replaced {
	struct weiri_replaced *next;
	size_t count;
	struct weiri_part part[WEIRI_PARTS];
};

/* Embedded in the value of a version. */
struct weiri_generation {
	struct weiri_retired retired;
	/* Constant once published. */
	uint64_t number;                 /* from 1 */
	struct weiri_generation *older;  /* NULL: the first */
	struct weiri_replaced *replaced; /* parts of `older` that this one lacks */
	uint64_t garbage;                /* bytes of all parts that were replaced up to here */

	_Atomic(bool) ended;
	_Atomic(struct weiri_replaced *) pinned; /* L3; a mark when this generation left the ledger */
};

struct weiri_ledger;

struct weiri_lineage {
	_Atomic(struct weiri_ledger *) ledger;
	_Atomic(uint64_t) due;      /* a sweep is worth its cost when `garbage` has this value */
	_Atomic(size_t) references; /* one of the owner, one of each generation that has not ended */
	weir_allocator allocator;   /* constant */
};

/*
 * Called for dead parts, in a section: it must not call code of the user. `context` is that of
 * the sweep.
 */
typedef void weiri_parts_dead_fn(void *context, const struct weiri_part parts[], size_t count);

/* How many bytes are replaced between two sweeps, at least. The model checker and tests change it. */
extern uint64_t weiri_lineage_sweep_bytes;

/* Begins a lineage with one reference. Returns false if there is no memory. */
WEIRI_SHARED WEIRI_MUST_CHECK bool weiri_lineage_init(struct weiri_lineage *lineage, const weir_allocator *allocator);
/*
 * Begins a generation, which is built on `older` (NULL: the first). reclaim() frees the memory of
 * `bytes` bytes that contains it. Takes a reference of the lineage.
 */
WEIRI_SHARED void weiri_generation_init(struct weiri_generation *generation, struct weiri_lineage *lineage,
                                        struct weiri_generation *older, size_t bytes,
                                        void (*reclaim)(struct weiri_retired *object));
/*
 * Notes that the generation, which is not published, lacks a part of `older`. weiri_replaced_reserve()
 * must have succeeded since the last note.
 */
static inline void weiri_generation_lacks(struct weiri_generation *generation, struct weiri_part part, size_t bytes)
{
	struct weiri_replaced *list = generation->replaced;

	list->part[list->count++] = part;
	generation->garbage += bytes;
}

/* Makes room for one note. Returns false if there is no memory. */
WEIRI_SHARED bool weiri_replaced_grow(struct weiri_replaced **list, const weir_allocator *allocator);
WEIRI_MUST_CHECK static inline bool weiri_replaced_reserve(struct weiri_replaced **list,
                                                           const weir_allocator *allocator)
{
	return WEIRI_LIKELY(*list != NULL && (*list)->count < WEIRI_PARTS) || weiri_replaced_grow(list, allocator);
}
WEIRI_SHARED void weiri_replaced_release(struct weiri_replaced *list, const weir_allocator *allocator);

/*
 * A version that was published has no reference any more. Its generation may be freed as soon as
 * this function has marked it. A generation that was never published is freed by the caller instead.
 * In both cases the caller gives the reference of the lineage back afterwards.
 */
WEIRI_SHARED void weiri_generation_end(struct weiri_generation *generation);

/* Gives a reference back. Returns true if it was the last: the caller calls weiri_lineage_end(). */
WEIRI_SHARED WEIRI_MUST_CHECK bool weiri_lineage_give(struct weiri_lineage *lineage);
/*
 * Ends a lineage without references. All generations have ended, and no thread sweeps. `newest` is
 * the last one that was published, or NULL. Frees all generations and calls dead() for all replaced
 * parts. The parts of `newest` are the caller's.
 */
WEIRI_SHARED void weiri_lineage_end(struct weiri_lineage *lineage, struct weiri_generation *newest,
                                    weiri_parts_dead_fn *dead, void *context);

/*
 * Returns true if the parts that were replaced up to `newest`, and not looked at yet, are worth a
 * sweep. That is 128 KiB, and more if many generations had not ended at the last sweep.
 */
static inline bool weiri_lineage_is_due(const struct weiri_lineage *lineage, const struct weiri_generation *newest)
{
	/* [relaxed] a hint; a stale value only moves a sweep. */
	return newest->garbage >= weiri_load_relaxed(&lineage->due);
}

/*
 * Finds the parts that are dead, and calls dead() for them. `newest` is published, and the caller
 * holds its version. Must be called outside sections. Lock-free; allocates.
 */
WEIRI_SHARED void weiri_lineage_sweep(struct weiri_record *record, struct weiri_lineage *lineage,
                                      struct weiri_generation *newest, weiri_parts_dead_fn *dead, void *context);

#endif
