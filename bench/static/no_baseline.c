/*
 * no_baseline.c - weir-bench-static cannot read results: it has no reader of JSON.
 */
#include "../baseline.h"

#include <stdio.h>
#include <stdlib.h>

struct bench_baseline *bench_baseline_read(const char *path)
{
	(void)path;
	(void)fprintf(stderr, "weir-bench-static: no --baseline here; compare with scripts/bench_compare\n");
	exit(2);
}

unsigned bench_baseline_compare(struct bench_baseline *baseline, const struct bench_plan *plan, double slower)
{
	(void)baseline, (void)plan, (void)slower;
	return 0;
}
