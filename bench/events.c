/*
 * events.c - one counter of perf_event_open(2) for the whole program.
 *
 * Threads inherit the counter: a read adds up the events of all threads that were started after it
 * was opened. The kernel's work for these threads is not counted, because an unprivileged user may
 * not see it.
 */
#include "events.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static const struct kind {
	const char *name;
	uint32_t type;
	uint64_t config;
} kinds[] = {
	/* The first is the default. */
	{"cache-misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES},
	{"cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES},
	{"instructions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS},
	{"switches", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES},
	{"migrations", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_MIGRATIONS},
	{"page-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS},
	{NULL, 0, 0},
};

static const struct kind *counted;
static int counter = -1;

static const struct kind *kind_of(const char *name)
{
	for (const struct kind *kind = kinds; kind->name != NULL; kind++) {
		if (strcmp(kind->name, name) == 0)
			return kind;
	}
	return NULL;
}

static int open_counter(const struct kind *kind)
{
	struct perf_event_attr attributes = {.type = kind->type,
	                                     .size = sizeof(attributes),
	                                     .config = kind->config,
	                                     .disabled = 1,
	                                     .inherit = 1,
	                                     .exclude_kernel = kind->type == PERF_TYPE_HARDWARE,
	                                     .exclude_hv = 1};

	return (int)syscall(SYS_perf_event_open, &attributes, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

void bench_events_open(const struct bench_options *options)
{
	const struct kind *kind = options->count != NULL ? kind_of(options->count) : &kinds[0];

	if (options->count != NULL && strcmp(options->count, "none") == 0)
		return;
	if (kind == NULL) {
		(void)fprintf(stderr, "weir-bench: --count: \"%s\" is not one of the events in --help\n", options->count);
		exit(BENCH_USAGE);
	}
	counter = open_counter(kind);
	if (counter >= 0) {
		counted = kind;
	} else if (options->count != NULL) {
		(void)fprintf(stderr, "weir-bench: --count: this machine cannot count %s (%s)\n", kind->name, strerror(errno));
		exit(BENCH_CANNOT);
	}
}

const char *bench_events_name(void)
{
	return counted != NULL ? counted->name : NULL;
}

void bench_events_begin(void)
{
	if (counter < 0)
		return;
	(void)ioctl(counter, PERF_EVENT_IOC_RESET, 0);
	(void)ioctl(counter, PERF_EVENT_IOC_ENABLE, 0);
}

double bench_events_end(void)
{
	uint64_t count = 0;

	if (counter < 0)
		return 0;
	(void)ioctl(counter, PERF_EVENT_IOC_DISABLE, 0);
	return read(counter, &count, sizeof(count)) == (ssize_t)sizeof(count) ? (double)count : 0;
}
