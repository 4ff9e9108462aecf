/*
 * combine.h - updates of large values, many of which are published as one version.
 */
#ifndef WEIRI_VAR_COMBINE_H
#define WEIRI_VAR_COMBINE_H

#include "var/change.h"
#include "var/version.h"

/*
 * From so many bytes on the value is copied once for all updates that are under way. Below, a copy that is lost to another writer costs no more
 * than an agreement with it: 2 to 5 us of processor time, as sums of 64 to 128 KiB take. Constant, but that tests and the model checker, for
 * whom few elements show what many do, make it smaller before they start.
 */
extern size_t weiri_combine_from;

/* combine.c's; here for stress/model/check_eras.c, which looks at what hangs there. */
struct weiri_round {
	struct weiri_retired retired;
	uint64_t base; /* stamp of the version that its requests are for */
	_Atomic(uintptr_t) word;
	_Atomic(uint32_t) over;    /* 1: sealed and decided, or closed; who waits sleeps here */
	_Atomic(uint32_t) at_work; /* C6 */
	weir_allocator allocator;
};

/*
 * Makes the change, not fitted yet, to the newest value. Outcomes as of weir_var_update(), and of weiri_change_fit(). Lock-free after its
 * allocations.
 */
enum weir_status weiri_combine(weir_var *var, const struct weiri_change *change, uint64_t deadline_ns,
                               weir_read *published, weir_error *error);

/* At the end of the variable: retires what its last combined update left behind. */
void weiri_combine_end(struct weiri_record *record, weir_var *var);

#endif
