/*
 * baseline.h - a comparison with earlier results.
 */
#ifndef WEIR_BENCH_BASELINE_H
#define WEIR_BENCH_BASELINE_H

#include "plan.h"

struct bench_baseline;

/*
 * Is called before anything is measured. If the file is not a result of --json, the call prints the
 * reason and ends the program.
 */
struct bench_baseline *bench_baseline_read(const char *path);
/*
 * Prints Weir's rows beside those of the baseline and frees the baseline. Returns how many rows are
 * slower by more than `slower`; a negative `slower` judges none.
 */
unsigned bench_baseline_compare(struct bench_baseline *baseline, const struct bench_plan *plan, double slower);

#endif
