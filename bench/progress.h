/*
 * progress.h - a line on the terminal that shows the progress.
 */
#ifndef WEIR_BENCH_PROGRESS_H
#define WEIR_BENCH_PROGRESS_H

/* Replaces the line; NULL removes it. Does nothing unless standard error is a terminal. */
void bench_progress(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
