/*
 * suite_ring.c - bounded queues of 64-bit values.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "measure.h"

enum { MAX_CONTENDERS = 16, MAX_SIDE = 8, TRIES_BEFORE_YIELD = 16, PAIRS = 4096 };

/* One thread: enqueue, dequeue, for the duration. Nanoseconds a pair. */
static double uncontended(const struct ring_contender *contender, const struct bench_options *options)
{
	void *ring = contender->create(options->capacity != 0 ? options->capacity : 1024);
	uint64_t start = bench_now_ns(), end = start + options->duration_ms * UINT64_C(1000000), now = start, pairs = 0;

	while (now < end) {
		if (contender->pairs(ring, PAIRS) != (uint64_t)PAIRS * (PAIRS + 1) / 2)
			bench_wrong("%s: uncontended: a pair failed, or the values differ", contender->about.name);
		pairs += PAIRS;
		now = bench_now_ns();
	}
	contender->destroy(ring);
	return (double)(now - start) / (double)pairs;
}

struct traffic {
	const struct ring_contender *contender;
	void *ring;
	_Atomic(int) stop, producers_left;
	pthread_barrier_t barrier;
	_Atomic(uint64_t) put, put_sum, got, got_sum;
};

static void pause_after(unsigned *failures)
{
	if (++*failures % TRIES_BEFORE_YIELD == 0)
		(void)sched_yield();
}

static void *produce(void *context)
{
	struct traffic *t = context;
	uint64_t count = 0, sum = 0;
	unsigned failures = 0;

	(void)pthread_barrier_wait(&t->barrier);
	while (!atomic_load_explicit(&t->stop, memory_order_relaxed)) {
		if (t->contender->enqueue(t->ring, count + 1)) {
			sum += ++count;
		} else {
			pause_after(&failures);
		}
	}
	atomic_fetch_add_explicit(&t->put, count, memory_order_acq_rel);
	atomic_fetch_add_explicit(&t->put_sum, sum, memory_order_acq_rel);
	atomic_fetch_sub_explicit(&t->producers_left, 1, memory_order_acq_rel);
	return NULL;
}

static void *consume(void *context)
{
	struct traffic *t = context;
	uint64_t count = 0, sum = 0, value;
	unsigned failures = 0;
	int last_round = 0;

	(void)pthread_barrier_wait(&t->barrier);
	for (;;) {
		if (t->contender->dequeue(t->ring, &value)) {
			sum += value;
			count++;
			last_round = 0;
		} else if (last_round++ > 1000) {
			break; /* empty, again and again, since the last producer ended */
		} else {
			if (atomic_load_explicit(&t->producers_left, memory_order_acquire) != 0)
				last_round = 0;
			pause_after(&failures);
		}
	}
	atomic_fetch_add_explicit(&t->got, count, memory_order_acq_rel);
	atomic_fetch_add_explicit(&t->got_sum, sum, memory_order_acq_rel);
	return NULL;
}

/* `side` producers and as many consumers. Million items a second. */
static double contended(const struct ring_contender *contender, const struct bench_options *options, unsigned side)
{
	struct traffic t = {.contender = contender, .producers_left = (int)side};
	pthread_t threads[2 * MAX_SIDE];
	struct timespec nap = {options->duration_ms / 1000, (long)(options->duration_ms % 1000) * 1000000};
	uint64_t start, elapsed;

	t.ring = contender->create(options->capacity != 0 ? options->capacity : 1024);
	(void)pthread_barrier_init(&t.barrier, NULL, 2 * side + 1);
	for (unsigned i = 0; i < 2 * side; i++) {
		if (pthread_create(&threads[i], NULL, i < side ? produce : consume, &t) != 0)
			exit(3);
	}
	(void)pthread_barrier_wait(&t.barrier);
	start = bench_now_ns();
	(void)nanosleep(&nap, NULL);
	atomic_store_explicit(&t.stop, 1, memory_order_release);
	elapsed = bench_now_ns() - start;
	for (unsigned i = 0; i < 2 * side; i++)
		(void)pthread_join(threads[i], NULL);
	(void)pthread_barrier_destroy(&t.barrier);
	if (t.put != t.got || t.put_sum != t.got_sum)
		bench_wrong("%s, %u producers: %llu items in, %llu out, sums %llu and %llu", contender->about.name, side,
		            (unsigned long long)t.put, (unsigned long long)t.got, (unsigned long long)t.put_sum,
		            (unsigned long long)t.got_sum);
	contender->destroy(t.ring);
	return (double)t.got * 1000.0 / (double)elapsed;
}

static void run_workload(const struct bench_options *options, const char *workload, unsigned side)
{
	struct bench_cell *cells[MAX_CONTENDERS] = {NULL};

	if (!bench_wanted(options, "ring", workload))
		return;
	for (size_t i = 0; bench_rings[i] != NULL; i++) {
		if (bench_rival_wanted(options, bench_rings[i]->about.name, i == 0))
			cells[i] = bench_cell("ring", workload, bench_rings[i]->about.name, side == 0 ? "ns a pair" : "Mitems/s",
			                      side == 0 ? 1 : 2 * side, side == 0);
	}
	/* The first round warms up. */
	for (unsigned round = 0; round <= options->repeat; round++) {
		for (size_t i = 0; bench_rings[i] != NULL; i++) {
			double value;

			if (cells[i] == NULL)
				continue;
			bench_progress("ring/%s %s %u/%u", workload, bench_rings[i]->about.name, round, options->repeat);
			value = side == 0 ? uncontended(bench_rings[i], options) : contended(bench_rings[i], options, side);
			if (round != 0)
				bench_sample(cells[i], value);
		}
	}
}

static void run(const struct bench_options *options)
{
	run_workload(options, "uncontended", 0);
	run_workload(options, "1/1", 1);
	run_workload(options, "2/2", 2);
	run_workload(options, "4/4", 4);
	run_workload(options, "8/8", 8);
}

const struct bench_suite bench_ring_suite = {
	"ring",
	"  uncontended  One thread enqueues a value and dequeues it, again and again. Time of a pair.\n"
	"  P/C          P producers and C consumers on one ring for the duration; whoever fails 16 times yields the "
	"processor.\n"
	"               Items that came out, in the time the producers ran. Count and sum of what went in and came out are "
	"compared.",
	run,
};
