/*
 * report.h - what a run tells its user: progress during the run, figures at the end, and the
 * figures as JSON.
 */
#ifndef TRAIN_DIGITS_REPORT_H
#define TRAIN_DIGITS_REPORT_H

#include <stdio.h>

#include "job.h"

struct report {
	struct job *job;
	struct progress progress; /* at the end of the run */
	struct score final;       /* of the final values of the variables */
	int64_t steps;            /* made in this run, as the variable says */
	int64_t torn;
	int interrupted;
	int threshold_applies;
	double seconds;
	uint64_t clock_ns; /* the cost of reading the clock, which every latency includes */
	struct weir_reclaim_stats reclaim;
};

/* Must be called after job_join(). */
enum weir_status report_make(struct report *report, struct job *job, int interrupted, weir_error *error);
void report_print(const struct report *report);
/* Returns how many values were wrong, and names each on standard error. */
int report_check(const struct report *report);
/* Returns 0 when the file could not be written. */
int report_write_json(const struct report *report, FILE *file);

/* Shows the progress: one line that changes on a terminal, or else a line every few epochs. */
struct display {
	int live;
	uint64_t look_every_ns; /* how often to update */
	int64_t next_line;      /* without a terminal: the epoch of the next line */
};
struct display display_start(void);
void display_update(struct display *display, const struct job *job, const struct progress *progress);
/* Removes the live line. */
void display_end(const struct display *display);

#endif
