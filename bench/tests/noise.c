/*
 * noise.c - checks which runs count as disturbed, with numbers that a kernel could report.
 *
 * All runs are on two processors, in a window of 100 ms.
 */
#include <stdio.h>
#include <unistd.h>

#include "../noise.h"

static unsigned faults;

struct run {
	const char *what;
	unsigned threads;
	int never_sleeps, lock_free;
	unsigned ours_ms;  /* processor time of our threads */
	unsigned busy_ms;  /* processor time of all threads, ours included */
	unsigned switches; /* involuntary */
	int disturbed;
};

static const struct run runs[] = {
	{"two threads have all processor time", 2, 1, 1, 200, 200, 0, 0},
	{"they miss 2 %", 2, 1, 1, 196, 200, 0, 0},
	{"they miss 10 %", 2, 1, 1, 180, 200, 0, 1},
	{"they miss 30 %, and no other load was busy: a lock slept", 2, 1, 0, 140, 140, 0, 0},
	{"they miss 30 %, and other load was busy", 2, 1, 0, 140, 200, 0, 1},
	{"they miss 30 % although they hold no lock", 2, 1, 1, 140, 140, 0, 1},
	{"one thread has its processor, and the other is idle", 1, 1, 1, 100, 100, 0, 0},
	{"one thread misses half of its processor", 1, 1, 1, 50, 100, 0, 1},
	{"eight threads share two processors", 8, 1, 1, 200, 200, 500, 0},
	{"eight threads share two processors with other load", 8, 1, 1, 150, 200, 500, 1},
	{"two threads were switched a few times", 2, 1, 1, 200, 200, 10, 0},
	{"two threads were switched very often", 2, 1, 1, 200, 200, 100, 1},
	{"threads sleep as they should", 2, 0, 1, 50, 50, 50, 0},
	{"threads sleep, and the rest is within the error of ticks", 2, 0, 1, 50, 80, 0, 0},
	{"threads sleep, and other load took half", 2, 0, 1, 50, 150, 0, 1},
};

static void judge(const struct run *run)
{
	uint64_t ticks_per_second = (uint64_t)sysconf(_SC_CLK_TCK);
	struct bench_noise_mark begin = {0}, end = {.now_ns = 100000000, .switches = run->switches};
	struct bench_workload workload = {.left = run->threads, .never_sleeps = run->never_sleeps};
	struct bench_sample sample = {.window_ns = 100000000};
	struct bench_noise noise;

	sample.processor_ns = end.processor_ns = run->ours_ms * UINT64_C(1000000);
	end.busy_ticks = run->busy_ms * ticks_per_second / 1000;
	noise = bench_noise_between(&begin, &end, &workload, run->lock_free, &sample, 2);
	if (noise.disturbed == run->disturbed)
		return;
	(void)printf("FAIL %s: %s, others %.3f\n", run->what, noise.disturbed ? "disturbed" : "not disturbed",
	             noise.others);
	faults++;
}

int main(void)
{
	for (size_t i = 0; i < sizeof(runs) / sizeof(runs[0]); i++)
		judge(&runs[i]);
	(void)printf("%s noise: %u faults\n", faults == 0 ? "PASS" : "FAIL", faults);
	return faults != 0;
}
