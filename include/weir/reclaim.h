/*
 * reclaim.h - the byte budget of memory that readers may still hold, and what reclamation is doing.
 *
 * A version that a writer replaced is freed once no reader can reach it. Most programs never call anything here; call
 * weir_reclaim_set_budget() to trade memory for fewer collections, weir_reclaim_get_stats() to watch, weir_reclaim_flush()
 * before measuring memory.
 *
 * | call                     | threads | progress             | blocks on          | allocates | signal-safe |
 * |--------------------------|---------|----------------------|--------------------|-----------|-------------|
 * | weir_reclaim_set_budget, _budget | any | wait-free        | nothing            | no        | yes         |
 * | weir_reclaim_get_stats   | any     | wait-free (threads)  | nothing            | no        | no          |
 * | weir_reclaim_prepare_thread | any  | lock-free            | nothing            | yes, once a thread | no       |
 * | weir_reclaim_flush       | any     | blocking             | readers, up to the deadline | at a thread's first use of Weir | no |
 */
#ifndef WEIR_RECLAIM_H
#define WEIR_RECLAIM_H

#include <stddef.h>
#include <stdint.h>
#include <weir/status.h>

WEIR_BEGIN_DECLS

#define WEIR_RECLAIM_DEFAULT_BUDGET ((uint64_t)32 << 20) /* bytes */

struct weir_reclaim_stats {
	size_t struct_size;          /* set by the caller: sizeof(struct weir_reclaim_stats) */
	uint64_t live_versions;      /* versions that exist: current, held or retired */
	uint64_t retired_bytes;      /* replaced, not freed yet */
	uint64_t peak_retired_bytes; /* the most there ever was of the line above */
	uint64_t collections;        /* scans, each with its grace period */
	uint64_t freed_objects;
	uint64_t slot_misses; /* reads that found no free hazard slot, or met a writer, and took a reference instead */
	uint64_t threads;     /* records: the most threads that used Weir at once */
	uint64_t copies; /* of large values, made by weir_var_assign_add, _sub, and _scatter; one may serve many of these */
	uint64_t copies_wasted; /* those of them that were thrown away, as another writer came first */
};

/* Bytes that may wait to be freed before writers are made to wait; 0 restores the default. @since 0.1 */
WEIR_API void weir_reclaim_set_budget(uint64_t bytes);
/* The budget in force, in bytes. @since 0.1 */
WEIR_API uint64_t weir_reclaim_budget(void);

/* Sums of per-thread counters: exact when no other thread is working. WEIR_INVALID_ARGUMENT (NULL, struct_size). @since 0.1 */
WEIR_API enum weir_status weir_reclaim_get_stats(struct weir_reclaim_stats *stats);

/*
 * Frees all that can be freed, on behalf of every thread, until nothing is retired or deadline_ns passes.
 * WEIR_DEADLINE_EXCEEDED: readers still hold something, or another thread has not ended its collection. WEIR_RESOURCE_EXHAUSTED:
 * no memory for this thread's record. WEIR_FAILED_PRECONDITION: called by a function that a collection runs (the release of a
 * tensor's memory, an allocator). @since 0.1
 */
WEIR_API enum weir_status weir_reclaim_flush(uint64_t deadline_ns);

/*
 * Makes, or takes over, the record that a thread's first call of Weir would make: afterwards no call of this thread allocates for that, and its
 * signal handlers may read. For threads that must not allocate once they run. To call it again does nothing. WEIR_RESOURCE_EXHAUSTED: no
 * memory. @since 0.1
 */
WEIR_API enum weir_status weir_reclaim_prepare_thread(void);

WEIR_END_DECLS

#endif
