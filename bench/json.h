/*
 * json.h - results for programs.
 */
#ifndef WEIR_BENCH_JSON_H
#define WEIR_BENCH_JSON_H

#include "plan.h"

/* 1 on success; else errno says why. */
int bench_write_json(const struct bench_plan *plan, const char *path);

#endif
