/*
 * run.h - the current run, shared by the parts of the harness.
 */
#ifndef STRESS_RUN_H
#define STRESS_RUN_H

#include "harness.h"
#include "report.h"

enum { STRESS_MAX_THREADS = 512 };

/* Changed by the scenario's own thread between runs; threads[] under the lock. */
struct stress_run {
	const struct stress_options *options;
	const struct stress_scenario *scenario;
	uint64_t stream; /* seed of the scenario's streams */
	uint64_t begin_ns, end_ns;
	unsigned started;
	struct stress_thread self;
	pthread_mutex_t lock;
	struct stress_thread *threads[STRESS_MAX_THREADS];
	uint64_t joined_operations;
	_Atomic(uint32_t) ended; /* futex word of the watchdog and the disturber */
	struct stress_result results[STRESS_RESULTS];
	size_t result_count;
};
extern struct stress_run stress_now;
/* This thread, if it belongs to the harness. */
extern WEIRI_TLS const struct stress_thread *stress_current;

struct stress_result *stress_result(void);
double stress_seconds_so_far(void);
/*
 * Reads a small file as a string. It does not use malloc(), whose lock a stopped thread may hold.
 * Returns 0 when there is no such file.
 */
int stress_read_file(const char *path, char *text, size_t size);
/* With the lock. */
uint64_t stress_count_operations(void);
/*
 * With the lock: the scenario's own thread in place 0, then the other threads, in places up to
 * STRESS_MAX_THREADS. NULL: this place is empty.
 */
struct stress_thread *stress_thread_in(size_t place);

/* -- ending.c ---------------------------------------------------------------------------------- */

/*
 * From now on a crash or a sanitizer's report ends the process only after the seed and the replay
 * command were printed.
 */
void stress_catch_crashes(void);
/* Ends the process. Its reason is in the result's message. */
_Noreturn void stress_end_process(const char *outcome, enum stress_exit code);
/* Returns to the first caller, which ends the process. Other callers wait for that. */
void stress_become_the_one_that_fails(void);

/* -- watch.c ----------------------------------------------------------------------------------- */

pthread_t stress_start_watching(void);
void stress_stop_watching(pthread_t watcher);

/* -- waits.c ----------------------------------------------------------------------------------- */

/* With the lock: which thread waits for which, as text. */
void stress_describe_waits(char *memory, size_t size);

/* -- disturb.c --------------------------------------------------------------------------------- */

/* To be called after `ended` was set. Waits for the disturber if there is one. */
void stress_stop_disturbing(void);

#endif
