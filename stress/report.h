/*
 * report.h - the findings of a run of weir-stress, as lines and as JSON.
 */
#ifndef STRESS_REPORT_H
#define STRESS_REPORT_H

#include "harness.h"

enum { STRESS_NOTES = 16, STRESS_RESULTS = 96, STRESS_MESSAGE = 8192 };

struct stress_note_line {
	const char *name;
	uint64_t value;
};

/*
 * Stops in one operation of a structure: counts of how often 0, 1, ... other threads stood still.
 * The strings are static.
 */
enum { STRESS_STOPS = 32, STRESS_FROZEN = 8 };
struct stress_stops {
	const char *structure, *operation;
	uint64_t froze[STRESS_FROZEN];
};

struct stress_result {
	const char *scenario;
	const char *outcome; /* "ok", "skipped", "wrong", "hang", "crash", "sanitizer" */
	double seconds;
	uint64_t operations;
	/*
	 * Written by the watchdog: the longest time in which nothing completed, and the largest
	 * amounts. It continues while a failure is written.
	 */
	_Atomic(uint64_t) longest_stall_ns, most_versions, most_retired, most_resident;
	size_t notes;
	struct stress_note_line note[STRESS_NOTES];
	size_t stop_lines;
	struct stress_stops stops[STRESS_STOPS];
	char message[STRESS_MESSAGE];
};

/* Prints one line on standard output. */
void stress_print_result(const struct stress_result *result);
/*
 * Prints on standard error what failed and how to repeat the run. Calls only functions that a
 * signal handler may call.
 */
void stress_print_failure(const struct stress_result *result, const struct stress_options *options);
/* Returns 0 when the file could not be written. Allocates nothing. */
int stress_write_json(const char *path, const struct stress_options *options, const struct stress_result results[],
                      size_t count);

#endif
