/*
 * combine.h - updates of large values. Many updates are published as one version.
 */
#ifndef WEIRI_VAR_COMBINE_H
#define WEIRI_VAR_COMBINE_H

#include "var/change.h"
#include "var/version.h"

/*
 * A value of at least this many bytes is copied once for all updates that are under way. For a
 * smaller value, a copy that loses to another writer costs hardly more than combining with that
 * writer. Combining costs 2 to 5 us of processor time, as much as a sum of 64 to 128 KiB. Constant,
 * except in tests and the model checker. They set it lower before they start, so that few elements
 * suffice.
 */
extern size_t weiri_combine_from;

/*
 * Private to combine.c; declared here for stress/model/check_eras.c, which examines the requests of
 * a round.
 */
struct weiri_round {
	struct weiri_retired retired;
	uint64_t base; /* position of the version to which its requests apply */
	_Atomic(uintptr_t) word;
	_Atomic(uint32_t) over;    /* 1: sealed and decided, or closed; waiters sleep on it */
	_Atomic(uint32_t) at_work; /* C6 */
	weir_allocator allocator;
};

/*
 * Applies `change`, which is not fitted yet, to the newest value. The outcomes are those of
 * weir_var_update() and of weiri_change_fit(). Lock-free after its allocations.
 */
enum weir_status weiri_combine(weir_var *var, const struct weiri_change *change, uint64_t deadline_ns,
                               weir_read *published, weir_error *error);

/* Called when the variable is destroyed: retires what its last combined update left behind. */
void weiri_combine_end(struct weiri_record *record, weir_var *var);

#endif
