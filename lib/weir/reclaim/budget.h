/*
 * budget.h - the budget of memory, and the freed memory that counts in it because it is kept.
 *
 * Algorithm. A write is admitted while what is retired and what is kept are within the budget
 * together (collect.h). Freed memory is kept for later writes by magazines (magazine.h), and by
 * variables of large values (var/spares.h). Each of these kinds has a sum, which is at most a share
 * of the budget, and one more sum is of all kinds. So a write compares two sums with the budget, and
 * who keeps something changes two others. Magazines do so seldom, because they count in units.
 * Nothing is kept that would exceed the budget. So memory that a collection frees for a writer that
 * waits admits this writer, and is not kept instead.
 * When the budget is lowered, threads may keep more than their share of the new one, and idle ones
 * cannot be made to free it. Therefore, what is kept counts as half of the budget at most. The other
 * half is always there for what is retired.
 *
 * Invariants
 *   Q1  each of the two sums is at least what there is kept, of the kind or in all
 * Pairs: F1 of admit.h, for who waits until the budget is raised or something is given. Else none: the
 * sums are thresholds, and publish nothing.
 * Progress: to keep is lock-free, as a CAS fails only if another thread has counted. To give is
 * wait-free.
 * Threads that end between any two instructions of this file or of its callers: the sums grow before
 * memory is kept, and fall after it is freed. What was on its way then counts until a fork,
 * whose child counts the magazines anew.
 * Bound: at most the budget is retired and kept, and what docs/memory.md adds.
 * Checked: tests/test_magazine.c, test_reclaim_budget.c, test_combine.c; stress/model/check_value.c, check_spares.c.
 */
#ifndef WEIRI_RECLAIM_BUDGET_H
#define WEIRI_RECLAIM_BUDGET_H

#include <stdalign.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/compiler.h"

enum weiri_kept_kind { WEIRI_KEPT_MAGAZINES, WEIRI_KEPT_SPARES };
enum { WEIRI_KEPT_KINDS = 2 };

/* Read by each write, seldom written. All are signed, so that a sum that is wrong by a little cannot become huge. */
struct weiri_budget {
	alignas(WEIRI_APART) _Atomic(int64_t) bytes; /* not negative */
	_Atomic(int64_t) kept;                       /* of all kinds */
	_Atomic(int64_t) of_kind[WEIRI_KEPT_KINDS];
};

extern struct weiri_budget weiri_budget;

/*
 * Counts bytes as kept. Returns false, and counts nothing, if the kind would then have more than
 * `most`, or the process more than its budget.
 */
bool weiri_budget_keep(enum weiri_kept_kind kind, uint64_t bytes, uint64_t most);
/* Counts them as kept no longer, and wakes those who wait for memory. */
void weiri_budget_give(enum weiri_kept_kind kind, uint64_t bytes);

/* Returns how much may be retired before writers wait. */
int64_t weiri_budget_room(void);

/* Called in the child of a fork: magazines keep so much. */
void weiri_budget_after_fork(uint64_t magazines);

#endif
