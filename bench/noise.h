/*
 * noise.h - how much processor time other programs took during a measurement.
 */
#ifndef WEIR_BENCH_NOISE_H
#define WEIR_BENCH_NOISE_H

#include <stdint.h>

#include "suite.h"

struct bench_noise_mark {
	uint64_t busy_ticks, steal_ticks; /* of all processors, of all programs */
	uint64_t processor_ns;            /* ours */
	uint64_t switches;                /* involuntary context switches of our threads */
	uint64_t now_ns;
};

struct bench_noise {
	/*
	 * The share of the processors' time that other programs, or the host of a virtual machine,
	 * took.
	 */
	double others;
	uint64_t switches; /* involuntary */
	int disturbed;
};

struct bench_noise_mark bench_noise_begin(void);
struct bench_noise bench_noise_end(const struct bench_noise_mark *begin, const struct bench_workload *workload,
                                   const struct bench_about *about, const struct bench_sample *sample);

/* Computes the same from two marks and a number of processors. */
struct bench_noise bench_noise_between(const struct bench_noise_mark *begin, const struct bench_noise_mark *end,
                                       const struct bench_workload *workload, int lock_free,
                                       const struct bench_sample *sample, unsigned processors);

#endif
