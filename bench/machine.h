/*
 * machine.h - the machine on which the figures were measured.
 */
#ifndef WEIR_BENCH_MACHINE_H
#define WEIR_BENCH_MACHINE_H

#include <cjson/cJSON.h>

/* The caller frees the object with cJSON_Delete(). */
cJSON *bench_machine(void);
/* Writes a description of one line. */
void bench_machine_line(char *text, unsigned size);
/* Prints warnings about what makes figures doubtful. */
void bench_machine_warn(void);

#endif
