/*
 * table.h - results as tables for the terminal, and as CSV.
 */
#ifndef WEIR_BENCH_TABLE_H
#define WEIR_BENCH_TABLE_H

#include "plan.h"

void bench_table_print(const struct bench_table *table);
/* Writes medians and quartiles of all tables. Returns 1 on success. */
int bench_write_csv(const struct bench_plan *plan, const char *path);

#endif
