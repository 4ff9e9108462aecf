/*
 * report.h - what a run tells its user: progress while it goes on, figures at the end, and the same as JSON.
 */
#ifndef TRAIN_DIGITS_REPORT_H
#define TRAIN_DIGITS_REPORT_H

#include <stdio.h>

#include "job.h"

struct report {
	struct job *job;
	struct progress progress; /* at the end */
	struct score final;       /* of the variables as they are in the end */
	int64_t final_step;       /* the value of the variable */
	int64_t torn;
	int interrupted;
	int threshold_applies;
	double seconds;
	uint64_t clock_ns; /* what looking at the clock costs, and every latency includes */
	struct weir_reclaim_stats reclaim;
};

/* After job_join. */
enum weir_status report_make(struct report *report, struct job *job, int interrupted, weir_error *error);
void report_print(const struct report *report);
/* How many things were wrong; each is named on standard error. */
int report_check(const struct report *report);
/* 0 when it could not be written. */
int report_write_json(const struct report *report, FILE *file);

/* Progress: one line that changes on a terminal, else a line every few epochs. */
struct display {
	int live;
	uint64_t look_every_ns; /* how often to update */
	int64_t next_line;      /* when not live: the epoch of the next line */
};
struct display display_start(void);
void display_update(struct display *display, const struct job *job, const struct progress *progress);
/* The live line goes away. */
void display_end(const struct display *display);

#endif
