/*
 * noise.c - which runs count as disturbed, by numbers that a kernel could have given.
 *
 * All on two processors, in a window of 100 ms.
 */
#include <stdio.h>
#include <unistd.h>

#include "../noise.h"

static unsigned faults;

struct run {
	const char *what;
	unsigned threads;
	int never_sleeps, lock_free;
	unsigned ours_ms, busy_ms,
		switches; /* processor time of our threads; that of all, ours included; involuntary switches */
	int disturbed;
};

static const struct run runs[] = {
	{"two threads have all there is", 2, 1, 1, 200, 200, 0, 0},
	{"they miss 2 %", 2, 1, 1, 196, 200, 0, 0},
	{"they miss 10 %", 2, 1, 1, 180, 200, 0, 1},
	{"they miss 30 %, and nothing was busy: a lock slept", 2, 1, 0, 140, 140, 0, 0},
	{"they miss 30 %, and others were busy", 2, 1, 0, 140, 200, 0, 1},
	{"they miss 30 % though they hold no lock", 2, 1, 1, 140, 140, 0, 1},
	{"one thread has its processor, and the other is idle", 1, 1, 1, 100, 100, 0, 0},
	{"one thread misses half of its processor", 1, 1, 1, 50, 100, 0, 1},
	{"eight threads share two processors with nobody", 8, 1, 1, 200, 200, 500, 0},
	{"eight threads and others", 8, 1, 1, 150, 200, 500, 1},
	{"two threads were switched now and then", 2, 1, 1, 200, 200, 10, 0},
	{"two threads were switched all the time", 2, 1, 1, 200, 200, 100, 1},
	{"who sleeps, sleeps", 2, 0, 1, 50, 50, 50, 0},
	{"beside a sleeper ticks are uncertain", 2, 0, 1, 50, 80, 0, 0},
	{"beside a sleeper others took half", 2, 0, 1, 50, 150, 0, 1},
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
