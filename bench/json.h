/*
 * json.h - results as JSON, for programs.
 */
#ifndef WEIR_BENCH_JSON_H
#define WEIR_BENCH_JSON_H

#include "plan.h"

/* Returns 1 on success; otherwise errno has the reason. */
int bench_write_json(const struct bench_plan *plan, const char *path);

#endif
