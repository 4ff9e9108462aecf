/*
 * suite_variable.c - reading a shared value of 64 bytes that others replace.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "measure.h"

enum { MAX_CONTENDERS = 16, MAX_THREADS = 8, READS = 4096 };

struct readers {
	const struct read_contender *contender;
	void *self;
	_Atomic(int) stop;
	pthread_barrier_t barrier;
	_Atomic(uint64_t) reads, busy_ns, writes;
};

static void *read_on(void *context)
{
	struct readers *r = context;
	uint64_t reads = 0, start;
	volatile uint64_t sink = 0;

	if (r->contender->thread_begin != NULL)
		r->contender->thread_begin(r->self);
	(void)pthread_barrier_wait(&r->barrier);
	start = bench_now_ns();
	while (!atomic_load_explicit(&r->stop, memory_order_relaxed)) {
		sink += r->contender->read_many(r->self, READS);
		reads += READS;
	}
	(void)sink; /* keeps the reads */
	atomic_fetch_add_explicit(&r->busy_ns, bench_now_ns() - start, memory_order_acq_rel);
	atomic_fetch_add_explicit(&r->reads, reads, memory_order_acq_rel);
	if (r->contender->thread_end != NULL)
		r->contender->thread_end(r->self);
	return NULL;
}

static void *write_on(void *context)
{
	struct readers *r = context;
	uint64_t writes = 0;

	if (r->contender->thread_begin != NULL)
		r->contender->thread_begin(r->self);
	(void)pthread_barrier_wait(&r->barrier);
	while (!atomic_load_explicit(&r->stop, memory_order_relaxed))
		r->contender->write(r->self, ++writes);
	atomic_fetch_add_explicit(&r->writes, writes, memory_order_acq_rel);
	if (r->contender->thread_end != NULL)
		r->contender->thread_end(r->self);
	return NULL;
}

/* Processor nanoseconds a read: threads that share a processor are charged their share of its time. */
static double reading(const struct read_contender *contender, const struct bench_options *options, unsigned threads,
                      unsigned writers)
{
	struct readers r = {.contender = contender, .self = contender->create(64)};
	struct timespec nap = {options->duration_ms / 1000, (long)(options->duration_ms % 1000) * 1000000};
	unsigned all = threads + writers, sharing = all > bench_processors() ? bench_processors() : all;
	pthread_t ids[MAX_THREADS + 1];

	(void)pthread_barrier_init(&r.barrier, NULL, all + 1);
	for (unsigned i = 0; i < all; i++) {
		if (pthread_create(&ids[i], NULL, i < threads ? read_on : write_on, &r) != 0)
			exit(3);
	}
	(void)pthread_barrier_wait(&r.barrier);
	(void)nanosleep(&nap, NULL);
	atomic_store_explicit(&r.stop, 1, memory_order_release);
	for (unsigned i = 0; i < all; i++)
		(void)pthread_join(ids[i], NULL);
	(void)pthread_barrier_destroy(&r.barrier);
	contender->destroy(r.self);
	return (double)r.busy_ns * sharing / all / (double)r.reads;
}

static void run_workload(const struct bench_options *options, const char *workload, unsigned threads, unsigned writers)
{
	struct bench_cell *cells[MAX_CONTENDERS] = {NULL};

	if (!bench_wanted(options, "variable", workload))
		return;
	for (size_t i = 0; bench_readers[i] != NULL; i++) {
		if (bench_rival_wanted(options, bench_readers[i]->about.name, i == 0))
			cells[i] =
				bench_cell("variable", workload, bench_readers[i]->about.name, "ns a read", threads + writers, 1);
	}
	for (unsigned round = 0; round <= options->repeat; round++) {
		for (size_t i = 0; bench_readers[i] != NULL; i++) {
			double value;

			if (cells[i] == NULL)
				continue;
			bench_progress("variable/%s %s %u/%u", workload, bench_readers[i]->about.name, round, options->repeat);
			value = reading(bench_readers[i], options, threads, writers);
			if (round != 0)
				bench_sample(cells[i], value);
		}
	}
}

static void run(const struct bench_options *options)
{
	run_workload(options, "1 reader", 1, 0);
	run_workload(options, "2 readers", 2, 0);
	run_workload(options, "8 readers", 8, 0);
	run_workload(options, "1 reader beside a writer", 1, 1);
}

const struct bench_suite bench_variable_suite = {
	"variable",
	"  N readers    Each takes the current value, adds up a word of it and lets go, again and again. Weir's handle is "
	"taken and given\n"
	"               back through the shared library. Processor time of a read.\n"
	"  beside a writer   The same while one thread replaces the value as fast as it can.",
	run,
};
