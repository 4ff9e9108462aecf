/*
 * measure.h - what main.c needs of measure.c beyond bench.h.
 */
#ifndef WEIR_BENCH_MEASURE_H
#define WEIR_BENCH_MEASURE_H

#include "bench.h"

void bench_print_tables(void);
void bench_describe_machine(char *text, size_t size);
/* 1 on success. */
int bench_write_csv(const char *path);
int bench_write_json(const char *path);
unsigned bench_wrong_count(void);

#endif
