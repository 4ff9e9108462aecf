/*
 * admit.h - writers that wait for memory, and flushes.
 *
 * A write is admitted while what is retired and what is kept are within the budget (budget.h). Else
 * its thread collects what all threads have retired, and sleeps between two looks until a reader or a
 * collector lets something go, less is kept, or the budget is raised. A flush does the same until
 * nothing is retired.
 *
 * Pairs
 *   F1  of section.h: a waiter counts itself in memory_waiters and sets the poke of all records, then
 *       runs the heavy fence (settle.h), then looks; who frees an object or clears a slot does so
 *       before its light fence, and looks for waiters after it. So a waiter that was missed sees what
 *       was let go. Without a heavy fence it sleeps for a bounded time
 *   W1  wake(reader, collector) -> waiter that sees memory_freed changed: a poke that was cleared before
 *       the wake-up does not clear the waiter's next one
 *   P3, P4 of collect.c: a flush that finds all stacks empty and no collector at work before, during
 *       and after that has found nothing retired
 * Progress: an admission within the budget is wait-free. Else it blocks, up to the deadline.
 * Checked: stress/model/check_reclaim.c, tests/test_reclaim_budget.c, test_settle.c.
 */
#ifndef WEIRI_RECLAIM_ADMIT_H
#define WEIRI_RECLAIM_ADMIT_H

#include <stdbool.h>
#include <stdint.h>
#include <weir/status.h>

#include "base/compiler.h"
#include "reclaim/budget.h"
#include "reclaim/collect.h"
#include "reclaim/record.h"

/* The slow half of weiri_reclaim_admit(). */
enum weir_status weiri_reclaim_admit_over(struct weiri_record *record, uint64_t deadline_ns);

/* Returns true while the process is within its budget. */
static inline bool weiri_reclaim_has_room(void)
{
	/* [relaxed] Thresholds, all; a stale value only shifts the moment of a collection. */
	int64_t total = weiri_load_relaxed(&weiri_retired_total) + weiri_load_relaxed(&weiri_budget.kept);

	return total <= weiri_load_relaxed(&weiri_budget.bytes);
}

/*
 * Called before a write that will retire something. Returns WEIR_OK at once while the process is
 * within its budget. Otherwise collects and waits for readers until deadline_ns; returns
 * WEIR_RESOURCE_EXHAUSTED when that has passed.
 */
static inline enum weir_status weiri_reclaim_admit(struct weiri_record *record, uint64_t deadline_ns)
{
	return WEIRI_LIKELY(weiri_reclaim_has_room()) ? WEIR_OK : weiri_reclaim_admit_over(record, deadline_ns);
}

/* Called after memory was freed, or the budget has more room. Wakes those who wait for it. */
void weiri_memory_freed(void);

/*
 * How long a writer that waits for memory sleeps before it looks again without a wake-up. The model
 * checker makes this infinite, so that a lost wake-up shows.
 */
extern uint64_t weiri_reclaim_look_again_ns;

/* The owner of the record, if it was waiting, waits no more. The caller owns the record. */
void weiri_wait_abandoned(struct weiri_record *record);

/* Called in the child of a fork. `mine` is the record of the only thread, or NULL. */
void weiri_waits_after_fork(const struct weiri_record *mine);

#endif
