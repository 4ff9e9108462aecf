/*
 * budget.c - see budget.h.
 */
#include "reclaim/budget.h"

#include <weir/reclaim.h>

#include "reclaim/admit.h"
#include "reclaim/collect.h"

struct weiri_budget weiri_budget = {.bytes = WEIR_RECLAIM_DEFAULT_BUDGET};

void weir_reclaim_set_budget(uint64_t bytes)
{
	if (bytes == 0)
		bytes = WEIR_RECLAIM_DEFAULT_BUDGET;
	/* [relaxed] a setting; a stale value only delays a collection. */
	weiri_store_relaxed(&weiri_budget.bytes, bytes < INT64_MAX ? (int64_t)bytes : INT64_MAX);
	weiri_memory_freed(); /* it may be more than before */
}

uint64_t weir_reclaim_budget(void)
{
	/* [relaxed] a setting. */
	return (uint64_t)weiri_load_relaxed(&weiri_budget.bytes);
}

int64_t weiri_budget_room(void)
{
	/* [relaxed] thresholds, both. */
	int64_t bytes = weiri_load_relaxed(&weiri_budget.bytes), kept = weiri_load_relaxed(&weiri_budget.kept);

	return bytes - (kept < bytes / 2 ? kept : bytes / 2);
}

/* Counts bytes in the sum of a kind, unless it would exceed `most`. */
static bool count_in_kind(enum weiri_kept_kind kind, int64_t bytes, int64_t most)
{
	/* [relaxed] A threshold. A share that is spent is not written. */
	int64_t kept = weiri_load_relaxed(&weiri_budget.of_kind[kind]);

	do {
		if (kept + bytes > most)
			return false;
	} while (!weiri_cas_relaxed(&weiri_budget.of_kind[kind], &kept, kept + bytes));
	return true;
}

/* Counts bytes in the sum of all kinds, unless the process would exceed its budget. */
static bool count_in_all(int64_t bytes)
{
	int64_t kept = weiri_load_relaxed(&weiri_budget.kept); /* [relaxed] thresholds, all */

	do {
		if (weiri_load_relaxed(&weiri_retired_total) + kept + bytes > weiri_load_relaxed(&weiri_budget.bytes))
			return false;
	} while (!weiri_cas_relaxed(&weiri_budget.kept, &kept, kept + bytes));
	return true;
}

bool weiri_budget_keep(enum weiri_kept_kind kind, uint64_t bytes, uint64_t most)
{
	if (!count_in_kind(kind, (int64_t)bytes, (int64_t)most))
		return false;
	if (count_in_all((int64_t)bytes))
		return true;
	weiri_fetch_sub_relaxed(&weiri_budget.of_kind[kind], (int64_t)bytes); /* [relaxed] a sum */
	return false;
}

void weiri_budget_give(enum weiri_kept_kind kind, uint64_t bytes)
{
	/* [relaxed] sums, both. */
	weiri_fetch_sub_relaxed(&weiri_budget.kept, (int64_t)bytes);
	weiri_fetch_sub_relaxed(&weiri_budget.of_kind[kind], (int64_t)bytes);
	weiri_memory_freed();
}

void weiri_budget_after_fork(uint64_t magazines)
{
	int64_t kept = 0;

	/* [relaxed] the only thread. */
	weiri_store_relaxed(&weiri_budget.of_kind[WEIRI_KEPT_MAGAZINES], (int64_t)magazines);
	for (int kind = 0; kind < WEIRI_KEPT_KINDS; kind++)
		kept += weiri_load_relaxed(&weiri_budget.of_kind[kind]);
	weiri_store_relaxed(&weiri_budget.kept, kept);
}
