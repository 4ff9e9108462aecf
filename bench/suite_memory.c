/*
 * suite_memory.c - how much a writer can publish, and how much memory waits to be freed, while a
 * reader is stopped in the middle of a read.
 */
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "crew.h"
#include "suite.h"

enum { VALUE_BYTES = 64 << 10, READS_BEFORE_THE_SIGNAL = 1000 };

static _Atomic(uint64_t) value_bytes; /* allocated and not yet freed */

static size_t rounded(size_t bytes)
{
	return (bytes + 63) / 64 * 64;
}

void *bench_value_allocate(size_t bytes)
{
	void *value = aligned_alloc(64, rounded(bytes));

	if (value == NULL)
		exit(3);
	atomic_fetch_add_explicit(&value_bytes, rounded(bytes), memory_order_relaxed);
	return value;
}

void bench_value_free(void *value, size_t bytes)
{
	atomic_fetch_sub_explicit(&value_bytes, rounded(bytes), memory_order_relaxed);
	free(value);
}

uint64_t bench_value_bytes(void)
{
	return atomic_load_explicit(&value_bytes, memory_order_relaxed);
}

/* -- the reader -------------------------------------------------------------------------------- */

/* Globals: there is one run at a time, and a signal handler has no context. */
static sem_t go_on;
static _Atomic(int) is_stopped;

void bench_stop_here(void)
{
	atomic_store_explicit(&is_stopped, 1, memory_order_release);
	while (sem_wait(&go_on) != 0)
		;
}

static void on_signal(int number)
{
	(void)number;
	bench_stop_here();
}

struct scene {
	const struct memory_contender *contender;
	void *self;
	pthread_t reader;
	_Atomic(uint64_t) reads;
	_Atomic(uint64_t) published;
	_Atomic(int) reader_ends;
};

static void *reader_main(void *context)
{
	struct scene *s = context;

	if (s->contender->thread_begin != NULL)
		s->contender->thread_begin(s->self);
	do {
		s->contender->read(s->self);
		atomic_fetch_add_explicit(&s->reads, 1, memory_order_relaxed);
	} while (s->contender->by_signal && !atomic_load_explicit(&s->reader_ends, memory_order_acquire));
	if (s->contender->thread_end != NULL)
		s->contender->thread_end(s->self);
	return NULL;
}

static void start_reader(struct scene *s)
{
	struct sigaction action = {.sa_handler = on_signal};

	(void)sem_init(&go_on, 0, 0);
	atomic_store_explicit(&is_stopped, 0, memory_order_relaxed);
	(void)sigaction(SIGUSR1, &action, NULL);
	if (pthread_create(&s->reader, NULL, reader_main, s) != 0)
		exit(3);
	if (s->contender->by_signal) {
		while (atomic_load_explicit(&s->reads, memory_order_relaxed) < READS_BEFORE_THE_SIGNAL)
			(void)sched_yield();
		(void)pthread_kill(s->reader, SIGUSR1);
	}
	while (!atomic_load_explicit(&is_stopped, memory_order_acquire))
		(void)sched_yield();
}

static void release_reader(struct scene *s)
{
	atomic_store_explicit(&s->reader_ends, 1, memory_order_release);
	(void)sem_post(&go_on);
}

/* -- the writer, and the thread that watches it ------------------------------------------------ */

static void publish_on(struct bench_crew *crew, struct scene *s)
{
	uint64_t deadline = bench_now_ns() + crew->workload->duration_ms * UINT64_C(1000000);

	while (!bench_stopped(crew)) {
		if (s->contender->publish(s->self, deadline))
			atomic_fetch_add_explicit(&s->published, 1, memory_order_relaxed);
	}
}

struct watch {
	struct scene *scene;
	struct bench_sample *sample;
	uint64_t before; /* bytes allocated at the start */
	uint64_t published;
	double peak_mib;
};

/* The MiB that wait to be freed. */
static double waiting(const struct watch *w)
{
	uint64_t bytes = bench_value_bytes();

	return bytes > w->before ? (double)(bytes - w->before) / (1 << 20) : 0;
}

/* Adds a point for each interval that has passed. There are several if the thread woke late. */
static void note(struct bench_series *series, uint64_t passed, double mib)
{
	while (series->count < BENCH_SERIES_POINTS && series->count <= passed)
		series->values[series->count++] = mib;
}

/*
 * Samples the memory during the run. At the end it records how many values were published, and
 * releases the reader, because the writer may be waiting for it.
 */
static void watch_on(struct bench_crew *crew, struct watch *w)
{
	struct bench_series *series = &w->sample->series;
	uint64_t interval = crew->workload->duration_ms * UINT64_C(1000000) / BENCH_SERIES_POINTS, start = bench_now_ns();

	series->interval_ms = (double)interval / 1e6;
	while (!bench_stopped(crew)) {
		uint64_t passed = (bench_now_ns() - start) / interval, next = start + (passed + 1) * interval;
		struct timespec until = {(time_t)(next / 1000000000u), (long)(next % 1000000000u)};
		double mib = waiting(w);

		if (mib > w->peak_mib)
			w->peak_mib = mib;
		note(series, passed, mib);
		(void)clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
	}
	w->published = atomic_load_explicit(&w->scene->published, memory_order_relaxed);
	release_reader(w->scene);
}

struct stage {
	struct scene scene;
	struct watch watch;
};

static void work(struct bench_crew *crew, unsigned index)
{
	struct stage *stage = crew->context;

	if (index == 0) {
		publish_on(crew, &stage->scene);
	} else {
		watch_on(crew, &stage->watch);
	}
}

static void measure(const struct bench_workload *workload, const void *contender, struct bench_sample *sample)
{
	const struct memory_contender *memory = contender;
	struct stage stage = {.scene = {.contender = memory, .self = memory->create(workload->bytes)}};
	struct bench_crew crew = {.workload = workload, .about = &memory->about, .work = work, .threads = 2};

	stage.watch = (struct watch){.scene = &stage.scene, .sample = sample};
	stage.watch.before = bench_value_bytes();
	crew.context = &stage;
	crew.self = stage.scene.self;
	crew.begin = memory->thread_begin;
	crew.end = memory->thread_end;
	start_reader(&stage.scene);
	bench_crew_run(&crew, sample);
	(void)pthread_join(stage.scene.reader, NULL);
	memory->destroy(stage.scene.self);
	sample->operations = (double)stage.watch.published;
	sample->value = (double)stage.watch.published * 1e6 / (double)sample->window_ns;
	sample->beside = stage.watch.peak_mib;
}

static void plan(struct bench_plan *plan, const struct bench_options *options)
{
	struct bench_workload w = {.suite = "memory",
	                           .name = "a reader is stopped",
	                           .unit = "kversions/s",
	                           .beside = "peak MiB waiting",
	                           .series = "MiB waiting to be freed",
	                           .left = 1,
	                           .right = 1,
	                           .bytes = VALUE_BYTES,
	                           .measure = measure};
	struct bench_workload *planned;

	(void)options;
	planned = bench_plan_workload(plan, &w);
	for (size_t c = 0; planned != NULL && bench_memories[c] != NULL; c++)
		bench_plan_contender(plan, planned, &bench_memories[c]->about, bench_memories[c]);
}

static const char *const explain[][2] = {
	{"a reader is stopped",
     "one thread publishes values of 64 KiB as fast as it can. Another thread is stopped in the "
     "middle of a read: in its section, or while it holds the value that it read. The figures are "
     "thousands of values published per second, and the most memory that waited to be freed. "
     "Weir's writer replaces 8 variables in turn, and its reader is stopped at a random "
     "instruction in a snapshot of all of them. A writer that waits for a grace period publishes "
     "nothing more until the reader goes on at the end."},
	{NULL, NULL},
};

const struct bench_suite bench_memory_suite = {"memory", "variables", plan, explain};
