/*
 * noise.c - decides from the kernel's counters and our own whether other load disturbed a run.
 *
 * Threads that never sleep use all the processor time there is, unless other load takes some. The
 * time that is missing in the run's window is that load, exact to microseconds. /proc/stat counts
 * busy time in ticks of 10 ms; it is used where threads sleep: in a workload that waits, or in a
 * contender's lock. If each thread has a processor of its own, only other load causes involuntary
 * context switches.
 */
#include "noise.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "crew.h"

static const double DISTURBED_SHARE = 0.05;
enum { TICKS_OF_ERROR = 2, SWITCHES_PER_SECOND = 100, SWITCHES_OF_GRACE = 2 };

/* The first line: user nice system idle iowait irq softirq steal. */
static void read_ticks(struct bench_noise_mark *mark)
{
	FILE *in = fopen("/proc/stat", "r");
	char line[256] = "", *at = line + 3;
	uint64_t ticks[8] = {0};

	if (in == NULL)
		return;
	if (fgets(line, sizeof(line), in) != NULL && strncmp(line, "cpu", 3) == 0) {
		for (int i = 0; i < 8; i++)
			ticks[i] = strtoull(at, &at, 10);
	}
	(void)fclose(in);
	mark->busy_ticks = ticks[0] + ticks[1] + ticks[2] + ticks[5] + ticks[6];
	mark->steal_ticks = ticks[7];
}

static uint64_t ns_of(struct timeval time)
{
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_usec * 1000u;
}

struct bench_noise_mark bench_noise_begin(void)
{
	struct bench_noise_mark mark = {.processor_ns = bench_processor_ns(), .now_ns = bench_now_ns()};
	struct rusage usage;

	/* A contender in another process counts as ours. The process has ended by now. */
	if (getrusage(RUSAGE_CHILDREN, &usage) == 0)
		mark.processor_ns += ns_of(usage.ru_utime) + ns_of(usage.ru_stime);
	read_ticks(&mark);
	if (getrusage(RUSAGE_SELF, &usage) == 0)
		mark.switches = (uint64_t)usage.ru_nivcsw;
	return mark;
}

static double positive(double value)
{
	return value > 0 ? value : 0;
}

/* The share of the window's processor time that our threads wanted and did not get. */
static double missing_share(const struct bench_sample *sample, unsigned wanted)
{
	double all = (double)sample->window_ns * wanted;

	return all > 0 ? positive(all - (double)sample->processor_ns) / all : 0;
}

/*
 * The share that was busy beyond our own threads. Within the error of the ticks it may be negative.
 */
static double busy_share(const struct bench_noise_mark *begin, const struct bench_noise_mark *end, unsigned processors)
{
	double tick_ns = 1e9 / (double)sysconf(_SC_CLK_TCK), all = (double)(end->now_ns - begin->now_ns) * processors;
	double busy = (double)(end->busy_ticks - begin->busy_ticks + end->steal_ticks - begin->steal_ticks) * tick_ns;

	return (busy - (double)(end->processor_ns - begin->processor_ns)) / all;
}

static double error_of_ticks(const struct bench_noise_mark *begin, const struct bench_noise_mark *end)
{
	return TICKS_OF_ERROR * 1e9 / (double)sysconf(_SC_CLK_TCK) / (double)(end->now_ns - begin->now_ns);
}

struct bench_noise bench_noise_between(const struct bench_noise_mark *begin, const struct bench_noise_mark *end,
                                       const struct bench_workload *workload, int lock_free,
                                       const struct bench_sample *sample, unsigned processors)
{
	unsigned threads = workload->left + workload->right + workload->hogs;
	struct bench_noise noise = {.switches = end->switches - begin->switches};
	double seconds = (double)(end->now_ns - begin->now_ns) / 1e9, busy = busy_share(begin, end, processors);

	if (workload->never_sleeps) {
		double missing = missing_share(sample, threads < processors ? threads : processors);

		noise.others = lock_free || missing < busy ? missing : positive(busy);
		noise.disturbed = threads <= processors &&
		                  (double)noise.switches > SWITCHES_OF_GRACE + SWITCHES_PER_SECOND * seconds * threads;
	} else {
		noise.others = positive(busy - error_of_ticks(begin, end));
	}
	noise.disturbed |= noise.others > DISTURBED_SHARE;
	return noise;
}

struct bench_noise bench_noise_end(const struct bench_noise_mark *begin, const struct bench_workload *workload,
                                   const struct bench_about *about, const struct bench_sample *sample)
{
	struct bench_noise_mark end = bench_noise_begin();

	return bench_noise_between(begin, &end, workload, about->lock_free, sample, bench_processors());
}
