/*
 * events.h - events that the kernel or the processor counts while a crew works: cache misses,
 * instructions, context switches.
 */
#ifndef WEIR_BENCH_EVENTS_H
#define WEIR_BENCH_EVENTS_H

#include "options.h"

/*
 * Is called before any thread is started, because only threads that are started later are counted.
 * Ends the program when the event of --count cannot be counted.
 */
void bench_events_open(const struct bench_options *options);
/* The name of the event that is counted, or NULL. */
const char *bench_events_name(void);
void bench_events_begin(void);
/*
 * The events since bench_events_begin() of all threads of this program; 0 when nothing is counted.
 */
double bench_events_end(void);

#endif
