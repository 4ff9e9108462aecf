/*
 * events.h - what the kernel or the processor counts while a crew works: cache misses, instructions, switches of threads.
 */
#ifndef WEIR_BENCH_EVENTS_H
#define WEIR_BENCH_EVENTS_H

#include "options.h"

/* Before any thread is started: those started later are counted with it. Ends the program when --count asks for what cannot be had. */
void bench_events_open(const struct bench_options *options);
/* What is counted, or NULL: nothing. */
const char *bench_events_name(void);
void bench_events_begin(void);
/* Since bench_events_begin(), by all threads of this program; 0 when nothing is counted. */
double bench_events_end(void);

#endif
