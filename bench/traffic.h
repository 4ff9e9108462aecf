/*
 * traffic.h - what went into a queue and came out of it, counted by many threads.
 */
#ifndef WEIR_BENCH_TRAFFIC_H
#define WEIR_BENCH_TRAFFIC_H

#include <stdatomic.h>

#include "crew.h"
#include "suite.h"

struct bench_lane {
	_Alignas(64) _Atomic(uint64_t) moved; /* by one thread; written now and then */
};

struct bench_traffic {
	const struct bench_workload *workload;
	const void *contender;
	void *queue;
	_Atomic(unsigned) producers_left;
	_Atomic(uint64_t) put, put_sum, got, got_sum;
	struct bench_histogram *ticks[BENCH_MAX_THREADS]; /* a thread's own; NULL: none */
	struct bench_lane lanes[BENCH_MAX_THREADS];
};

/* What one thread moved; written by it alone. */
struct bench_tally {
	uint64_t count, sum;
};

void bench_traffic_init(struct bench_traffic *traffic, const struct bench_workload *workload, const void *contender,
                        void *queue);
/* Adds up histograms, compares what went in with what came out, and sets the throughput or says what is wrong. */
void bench_traffic_finish(struct bench_traffic *traffic, struct bench_sample *sample);
/* A producer is done; 1 when it is the last. */
int bench_traffic_put(struct bench_traffic *traffic, const struct bench_tally *tally);
void bench_traffic_got(struct bench_traffic *traffic, const struct bench_tally *tally); /* a consumer is done */
/* Sets the sample from totals; ours are the same for a contender in another process. */
void bench_traffic_judge(const struct bench_totals *totals, const struct bench_workload *workload,
                         struct bench_sample *sample);

/* How many more went in than came out, as the threads last said. */
uint64_t bench_traffic_inside(const struct bench_traffic *traffic);

/* 1 when as much has come out, as the consumers last said, as the producers, who have all ended, put in. */
int bench_traffic_is_out(const struct bench_traffic *traffic);

static inline void bench_traffic_say(struct bench_traffic *traffic, unsigned index, const struct bench_tally *tally)
{
	atomic_store_explicit(&traffic->lanes[index].moved, tally->count, memory_order_release);
}

/*
 * Puts items in at the workload's rate, until the run's end. Every item has a time at which it should go in, and carries it; who is late
 * does not put the later ones off. Producers take turns within the interval.
 */
void bench_put_paced(struct bench_crew *crew, unsigned index, struct bench_tally *tally,
                     void (*put)(struct bench_traffic *traffic, uint64_t value));
/* How long ago a paced item should have gone in. What it carries is no wider than a pointer: where that has 32 bits, times wrap around. */
static inline uint64_t bench_paced_age(uint64_t item)
{
	return (uintptr_t)(bench_now_ns() - item);
}

/*
 * Plans "latency of a call, SIDE/SIDE" for contenders whose calls never wait, and whose values leave in any order: as in suite ring
 * (suite_ring.c).
 */
void bench_plan_call_latency(struct bench_plan *plan, const char *suite,
                             const struct ring_contender *const contenders[], unsigned side, size_t capacity);

/* N/N for N = 1, 2, 4, 8, and on while both sides have a processor for each thread. */
struct bench_shapes bench_square_shapes(void);

#endif
