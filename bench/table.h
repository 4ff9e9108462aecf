/*
 * table.h - results for people, and for spreadsheets.
 */
#ifndef WEIR_BENCH_TABLE_H
#define WEIR_BENCH_TABLE_H

#include "plan.h"

void bench_table_print(const struct bench_table *table);
/* Medians and quartiles of all tables; 1 on success. */
int bench_write_csv(const struct bench_plan *plan, const char *path);

#endif
