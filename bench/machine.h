/*
 * machine.h - what the figures were measured on.
 */
#ifndef WEIR_BENCH_MACHINE_H
#define WEIR_BENCH_MACHINE_H

#include <cjson/cJSON.h>

/* The caller's, for cJSON_Delete. */
cJSON *bench_machine(void);
/* One line. */
void bench_machine_line(char *text, unsigned size);
/* Says loudly what makes figures doubtful. */
void bench_machine_warn(void);

#endif
