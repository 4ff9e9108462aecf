/*
 * combine.h - updates of large values, many of which are published as one version.
 */
#ifndef WEIRI_VAR_COMBINE_H
#define WEIRI_VAR_COMBINE_H

#include "tensor/elementwise.h"
#include "var/version.h"

/*
 * From so many bytes on the value is copied once for all updates that are under way. Below, an attempt that is lost to another writer costs
 * less than an agreement with it.
 */
#if defined(WEIRI_UNDER_MODEL) /* stress/model: two elements show what many do */
enum { WEIRI_COMBINE_FROM = 16 };
#else
enum { WEIRI_COMBINE_FROM = 64 << 10 };
#endif

struct weiri_addition {
	weir_tensor *delta;
	enum weiri_elementwise operation;
};

/*
 * Adds to, or subtracts from, the newest value; delta is not NULL. 1: *status is the outcome, as of weir_var_assign_add. 0: nothing was done,
 * the value is not one to which delta can be added. Lock-free after its allocations.
 */
int weiri_combine(weir_var *var, const struct weiri_addition *addition, uint64_t deadline_ns, weir_read *published,
                  enum weir_status *status, weir_error *error);

/* At the end of the variable: retires what its last combined update left behind. */
void weiri_combine_end(struct weiri_record *record, weir_var *var);

#endif
