/*
 * go.c - a buffered channel of Go in a process of its own (go/main.go), because goroutines are not
 * threads of this program. The harness checks the totals that the process prints like those of any
 * contender.
 */
#include <inttypes.h>
#include <stdio.h>

#include "rivals.h"

static int run_apart(unsigned producers, unsigned consumers, size_t capacity, unsigned duration_ms,
                     struct bench_totals *totals)
{
	char command[4096];
	FILE *out;
	int fields;

	(void)snprintf(command, sizeof(command), "'%s' %u %u %zu %u", WEIR_BENCH_GO_PROGRAM, producers, consumers, capacity,
	               duration_ms);
	if ((out = popen(command, "r")) == NULL)
		return 0;
	fields = fscanf(out, "%" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64, &totals->put, &totals->put_sum,
	                &totals->got, &totals->got_sum, &totals->elapsed_ns);
	return pclose(out) == 0 && fields == 5;
}

const struct queue_contender go_queue_contender = {
	.about = {.name = "Go channel", .version = WEIR_BENCH_GO_VERSION, .lacks = "runs in a process of its own"},
	.run_apart = run_apart,
};
