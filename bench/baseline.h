/*
 * baseline.h - a comparison with what was measured earlier.
 */
#ifndef WEIR_BENCH_BASELINE_H
#define WEIR_BENCH_BASELINE_H

#include "plan.h"

struct bench_baseline;

/* Ends the program, saying what is wrong with the file, when it is no result of --json. Read before anything is measured. */
struct bench_baseline *bench_baseline_read(const char *path);
/* Prints Weir's rows beside the baseline's and frees it. How many are slower by more than `slower`; negative: none is judged. */
unsigned bench_baseline_compare(struct bench_baseline *baseline, const struct bench_plan *plan, double slower);

#endif
