/*
 * traffic.h - what went into a queue and came out of it, as counted by many threads.
 */
#ifndef WEIR_BENCH_TRAFFIC_H
#define WEIR_BENCH_TRAFFIC_H

#include <stdatomic.h>

#include "crew.h"
#include "suite.h"

struct bench_lane {
	_Alignas(64) _Atomic(uint64_t) moved; /* by one thread, which updates it from time to time */
};

struct bench_traffic {
	const struct bench_workload *workload;
	const void *contender;
	void *queue;
	_Atomic(unsigned) producers_left;
	_Atomic(uint64_t) put, put_sum, got, got_sum;
	struct bench_histogram *ticks[BENCH_MAX_THREADS]; /* one per thread; NULL: none */
	struct bench_lane lanes[BENCH_MAX_THREADS];
};

/* What one thread moved. Only that thread writes it. */
struct bench_tally {
	uint64_t count, sum;
};

void bench_traffic_init(struct bench_traffic *traffic, const struct bench_workload *workload, const void *contender,
                        void *queue);
/*
 * Adds up the histograms, compares what went in with what came out, and sets the throughput or says
 * what is wrong.
 */
void bench_traffic_finish(struct bench_traffic *traffic, struct bench_sample *sample);
/* Called by a producer that ends. Returns 1 for the last one. */
int bench_traffic_put(struct bench_traffic *traffic, const struct bench_tally *tally);
/* called by a consumer that ends */
void bench_traffic_got(struct bench_traffic *traffic, const struct bench_tally *tally);
/* Sets the sample from totals: our own, or those of a contender in another process. */
void bench_traffic_judge(const struct bench_totals *totals, const struct bench_workload *workload,
                         struct bench_sample *sample);

/* How many more items went in than came out, according to the last reports of the threads. */
uint64_t bench_traffic_inside(const struct bench_traffic *traffic);

/*
 * Returns 1 when, according to the last reports of the consumers, as many items came out as went
 * in. All producers must have ended.
 */
int bench_traffic_is_out(const struct bench_traffic *traffic);

static inline void bench_traffic_say(struct bench_traffic *traffic, unsigned index, const struct bench_tally *tally)
{
	atomic_store_explicit(&traffic->lanes[index].moved, tally->count, memory_order_release);
}

/*
 * Enqueues items at the workload's rate until the run ends. Every item has an intended time and
 * carries it, and a late item does not delay the intended times of later ones. Producers take turns
 * within the interval.
 */
void bench_put_paced(struct bench_crew *crew, unsigned index, struct bench_tally *tally,
                     void (*put)(struct bench_traffic *traffic, uint64_t value));
/*
 * How long ago a paced item should have been enqueued. The time that an item carries is as wide as
 * a pointer, so it wraps around where pointers have 32 bits.
 */
static inline uint64_t bench_paced_age(uint64_t item)
{
	return (uintptr_t)(bench_now_ns() - item);
}

/*
 * Plans "latency of a call, SIDE/SIDE" for contenders whose calls never wait and whose values leave
 * in any order, as in suite ring (suite_ring.c).
 */
void bench_plan_call_latency(struct bench_plan *plan, const char *suite,
                             const struct ring_contender *const contenders[], unsigned side, size_t capacity);

/* N/N for N = 1, 2, 4, 8, and so on while there is a processor for each thread. */
struct bench_shapes bench_square_shapes(void);

#endif
