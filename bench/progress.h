/*
 * progress.h - one line on a terminal that says what is going on.
 */
#ifndef WEIR_BENCH_PROGRESS_H
#define WEIR_BENCH_PROGRESS_H

/* Replaces the line; NULL removes it. Nothing unless standard error is a terminal. */
void bench_progress(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
