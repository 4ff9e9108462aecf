/*
 * reclaim.h - the budget of memory that readers may still use, and statistics of its reclamation.
 *
 * A replaced version is freed once no reader can reach it. Most programs call nothing here. Use
 * weir_reclaim_set_budget() to trade memory for fewer collections, weir_reclaim_get_stats() to
 * observe them, and weir_reclaim_flush() before you measure memory.
 *
 * | call                       | threads | progress      | blocks on   | allocates  | signal-safe |
 * |----------------------------|---------|---------------|-------------|------------|-------------|
 * | weir_reclaim_set_budget, _budget | any | wait-free   | nothing     | no         | yes         |
 * | weir_reclaim_get_stats     | any     | wait-free (1) | nothing     | no         | no          |
 * | weir_reclaim_prepare_thread | any    | lock-free     | nothing     | record (2) | no          |
 * | weir_reclaim_flush         | any     | blocking      | readers (3) | record (2) | no          |
 *
 * (1) In the number of threads.
 * (2) A thread's first call of Weir allocates its record.
 * (3) Up to the deadline.
 */
#ifndef WEIR_RECLAIM_H
#define WEIR_RECLAIM_H

#include <stddef.h>
#include <stdint.h>
#include <weir/status.h>

WEIR_BEGIN_DECLS

#define WEIR_RECLAIM_DEFAULT_BUDGET 33554432u /* bytes: 32 MiB */

struct weir_reclaim_stats {
	size_t struct_size; /* WEIR_RECLAIM_STATS_INIT sets it */
	/*
	 * versions that exist: newest, in a history, or retired (pinned by a hazard slot, for example); not
	 * values that only references keep
	 */
	uint64_t live_versions;
	uint64_t retired_bytes;      /* retired and not freed yet */
	uint64_t peak_retired_bytes; /* the maximum of retired_bytes so far */
	uint64_t collections;        /* scans of all readers */
	uint64_t freed_objects;
	/* reads that took a reference: no free hazard slot, or a concurrent write */
	uint64_t slot_misses;
	uint64_t threads; /* records: the most threads that used Weir at one time */
	/* of large values, for weir_var_assign_add, _sub and _scatter; one copy may serve many calls */
	uint64_t copies;
	uint64_t copies_wasted; /* copies that were discarded because another writer published first */
	uint64_t kept_bytes;    /* freed blocks that threads keep for their next writes */
	/*
	 * calls of membarrier(2): by a collection, if a thread has stopped reading, and by a thread that
	 * waits for memory, at most 2,000 in a second; by a thread that waits for another
	 */
	uint64_t membarriers;
};
#define WEIR_RECLAIM_STATS_INIT WEIR_STRUCT_SIZE(struct weir_reclaim_stats)

/*
 * Sets the number of bytes that may wait to be freed, or be kept for later writes, before writers have
 * to wait; 0 restores the default. What is kept takes a quarter of it at most. More than INT64_MAX is
 * taken as INT64_MAX. If it is lowered, what idle threads keep counts as half of it at most.
 * @since 0.1
 */
WEIR_API void weir_reclaim_set_budget(uint64_t bytes);
/* The budget in force, in bytes. @since 0.1 */
WEIR_API uint64_t weir_reclaim_budget(void);

/*
 * Sums the counters of all threads. Exact while no other thread uses Weir. Errors:
 * WEIR_INVALID_ARGUMENT (NULL, struct_size).
 * @since 0.1
 */
WEIR_API enum weir_status weir_reclaim_get_stats(struct weir_reclaim_stats *stats);

/*
 * Frees everything that can be freed, on behalf of every thread, until nothing is retired or
 * deadline_ns passes.
 *
 * Errors: WEIR_DEADLINE_EXCEEDED while readers still use something, or another thread has not ended
 * its collection, and while membarriers are rationed: a thread that has stopped reading then goes on
 * holding what it read, for a millisecond as a rule (docs/memory.md), so with the deadline 0 one call may
 * not be enough. WEIR_CANCELLED if an interrupt ended the wait (weir/thread.h). WEIR_RESOURCE_EXHAUSTED
 * if there is no memory for this thread's record.
 * WEIR_FAILED_PRECONDITION if called by a function that a collection runs (the release of a
 * tensor's memory, an allocator), or while this thread has a read section open
 * (weir/read_section.h).
 * @since 0.1
 */
WEIR_API enum weir_status weir_reclaim_flush(uint64_t deadline_ns);

/*
 * Creates or adopts the record that this thread's first call of Weir would need. Afterwards no call
 * of this thread allocates for that purpose, and its signal handlers may read variables. Use it in
 * threads that must not allocate while they run. Idempotent. Errors: WEIR_RESOURCE_EXHAUSTED.
 * @since 0.1
 */
WEIR_API enum weir_status weir_reclaim_prepare_thread(void);

WEIR_END_DECLS

#endif
