/*
 * crew.c - starts the threads of a run behind a barrier, lets them work for the duration, and waits
 * for their end.
 */
#include "crew.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "events.h"
#include "pin.h"

enum { PATIENCE_SECONDS = 60 };

void (*bench_give_up)(void);

uint64_t bench_now_ns(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t bench_processor_ns(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

unsigned bench_processors(void)
{
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof(set), &set) != 0)
		return (unsigned)sysconf(_SC_NPROCESSORS_ONLN);
	return (unsigned)CPU_COUNT(&set);
}

struct member {
	struct bench_crew *crew;
	pthread_barrier_t *barrier;
	unsigned index;
	int hog;
};

static void take_processor_time(const struct bench_crew *crew)
{
	volatile uint64_t spins = 0;

	while (!bench_stopped(crew)) {
		for (int i = 0; i < 1000; i++)
			spins++;
	}
}

static void *member_main(void *context)
{
	struct member *member = context;
	struct bench_crew *crew = member->crew;

	bench_pin_thread(member->index);
	if (!member->hog && crew->begin != NULL)
		crew->begin(crew->self);
	(void)pthread_barrier_wait(member->barrier);
	if (member->hog) {
		take_processor_time(crew);
		return NULL;
	}
	crew->work(crew, member->index);
	if (crew->end != NULL)
		crew->end(crew->self);
	return NULL;
}

static void nap(unsigned ms)
{
	struct timespec left = {(time_t)(ms / 1000), (long)(ms % 1000) * 1000000};

	while (nanosleep(&left, &left) != 0 && errno == EINTR)
		;
}

static void join(const struct bench_crew *crew, pthread_t thread)
{
	struct timespec until;

	(void)clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += PATIENCE_SECONDS;
	if (pthread_timedjoin_np(thread, NULL, &until) == 0)
		return;
	(void)fprintf(stderr, "\nweir-bench: %s does not end in %s/%s: a thread is still running %d s after the stop\n",
	              crew->about->name, crew->workload->suite, crew->workload->name, PATIENCE_SECONDS);
	if (bench_give_up != NULL)
		bench_give_up();
	_exit(BENCH_CANNOT);
}

void bench_crew_run(struct bench_crew *crew, struct bench_sample *sample)
{
	struct member members[2 * BENCH_MAX_THREADS];
	pthread_t threads[2 * BENCH_MAX_THREADS];
	pthread_barrier_t barrier;
	unsigned all = crew->threads + crew->workload->hogs;

	atomic_store_explicit(&crew->stop, 0, memory_order_relaxed);
	(void)pthread_barrier_init(&barrier, NULL, all + 1);
	for (unsigned i = 0; i < all; i++) {
		members[i] = (struct member){crew, &barrier, i, i >= crew->threads};
		if (pthread_create(&threads[i], NULL, member_main, &members[i]) != 0) {
			(void)fprintf(stderr, "\nweir-bench: cannot start %u threads\n", all);
			_exit(BENCH_CANNOT);
		}
	}
	sample->processor_ns = bench_processor_ns();
	atomic_store_explicit(&crew->start_ns, bench_now_ns(), memory_order_release);
	(void)pthread_barrier_wait(&barrier);
	bench_events_begin();
	sample->window_ns = bench_now_ns();
	nap(crew->workload->duration_ms);
	atomic_store_explicit(&crew->stop, 1, memory_order_release);
	sample->window_ns = bench_now_ns() - sample->window_ns;
	sample->processor_ns = bench_processor_ns() - sample->processor_ns;
	sample->events = bench_events_end();
	for (unsigned i = 0; i < all; i++)
		join(crew, threads[i]);
	(void)pthread_barrier_destroy(&barrier);
}
