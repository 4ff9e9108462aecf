/*
 * stalled.h - a publisher beside a reader that never leaves its section.
 */
#ifndef WEIR_BENCH_STALLED_H
#define WEIR_BENCH_STALLED_H

#include <stddef.h>

struct stalled_contender {
	const char *name;
	/* Thousands of versions a second. */
	double (*publish)(size_t bytes, unsigned duration_ms);
};

/* NULL when liburcu is not installed. */
const struct stalled_contender *bench_stalled_urcu(void);

#endif
