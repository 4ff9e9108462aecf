/*
 * suite_readiness.c - an event loop that takes what producers enqueue, or the newest of what they
 * write: it sleeps in a poll until its descriptor is readable, and takes up to TAKE values a wake-up.
 */
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>

#include "crew.h"
#include "suite.h"

enum { CAPACITY = 1024, TAKE = 256 };
/* The last value of each producer; all others are smaller. */
static const uint64_t the_end = UINT64_MAX;

struct scene {
	const struct loop_contender *contender;
	void *self;
	unsigned producers;
	_Atomic(uint64_t) put, put_sum;
	_Atomic(unsigned) stopped; /* producers that write no more */
	/* Written by the consumer. */
	uint64_t got, got_sum, polls, elapsed_ns;
};

static void enqueue(const struct scene *s, uint64_t value)
{
	while (!s->contender->enqueue(s->self, value))
		(void)sched_yield();
}

static void produce(struct bench_crew *crew, struct scene *s)
{
	uint64_t put = 0, sum = 0;

	while (!bench_stopped(crew)) {
		enqueue(s, ++put);
		sum += put;
	}
	atomic_fetch_add_explicit(&s->put, put, memory_order_relaxed);
	atomic_fetch_add_explicit(&s->put_sum, sum, memory_order_relaxed);
	enqueue(s, the_end);
}

static void consume(struct scene *s)
{
	uint64_t values[TAKE], start = bench_now_ns();
	unsigned ended = 0;

	while (ended < s->producers) {
		size_t taken = s->contender->poll_and_take(s->self, values, TAKE);

		s->polls++;
		for (size_t i = 0; i < taken; i++) {
			ended += values[i] == the_end;
			s->got += values[i] != the_end;
			s->got_sum += values[i] != the_end ? values[i] : 0;
		}
	}
	s->elapsed_ns = bench_now_ns() - start;
}

static void work(struct bench_crew *crew, unsigned index)
{
	struct scene *s = crew->context;

	if (index < s->producers)
		produce(crew, s);
	else
		consume(s);
}

static void measure(const struct bench_workload *workload, const void *contender, struct bench_sample *sample)
{
	struct scene s = {.contender = contender, .producers = workload->left};
	struct bench_crew crew = {.workload = workload, .about = &s.contender->about, .work = work, .context = &s};
	uint64_t put, put_sum;

	s.self = s.contender->create(workload->capacity);
	crew.threads = workload->left + workload->right;
	crew.self = s.self;
	bench_crew_run(&crew, sample);
	s.contender->destroy(s.self);
	put = atomic_load_explicit(&s.put, memory_order_relaxed);
	put_sum = atomic_load_explicit(&s.put_sum, memory_order_relaxed);
	if (s.got != put || s.got_sum != put_sum) {
		(void)snprintf(sample->wrong, sizeof(sample->wrong), "%llu values went in, %llu came out",
		               (unsigned long long)put, (unsigned long long)s.got);
		return;
	}
	sample->idle = s.got == 0;
	if (sample->idle)
		return;
	sample->value = (double)s.got * 1000 / (double)s.elapsed_ns;
	sample->beside = (double)s.polls / (double)s.got;
	sample->operations = (double)s.got;
}

/* -- the newest value -------------------------------------------------------------------------- */

static void write_newest(struct bench_crew *crew, struct scene *s)
{
	uint64_t put = 0;

	while (!bench_stopped(crew))
		enqueue(s, ++put);
	atomic_fetch_add_explicit(&s->put, put, memory_order_relaxed);
	/* The last one to stop writes the end, which is then the newest value for ever. */
	if (atomic_fetch_add_explicit(&s->stopped, 1, memory_order_acq_rel) == s->producers - 1)
		enqueue(s, the_end);
}

static void watch_newest(struct scene *s)
{
	uint64_t value = 0, start = bench_now_ns();

	while (value != the_end) {
		s->got += s->contender->poll_and_take(s->self, &value, 1);
		s->polls++;
	}
	s->elapsed_ns = bench_now_ns() - start;
}

static void work_with_newest(struct bench_crew *crew, unsigned index)
{
	struct scene *s = crew->context;

	if (index < s->producers)
		write_newest(crew, s);
	else
		watch_newest(s);
}

static void measure_newest(const struct bench_workload *workload, const void *contender, struct bench_sample *sample)
{
	struct scene s = {.contender = contender, .producers = workload->left};
	struct bench_crew crew = {
		.workload = workload, .about = &s.contender->about, .work = work_with_newest, .context = &s};
	uint64_t put;

	s.self = s.contender->create(1);
	crew.threads = workload->left + workload->right;
	crew.self = s.self;
	bench_crew_run(&crew, sample);
	s.contender->destroy(s.self);
	put = atomic_load_explicit(&s.put, memory_order_relaxed);
	/* The end is a value too. It is always seen, and may be the only one. */
	if (s.got == 0 || s.got > put + 1) {
		(void)snprintf(sample->wrong, sizeof(sample->wrong), "%llu values were written, %llu were seen",
		               (unsigned long long)put, (unsigned long long)s.got);
		return;
	}
	sample->idle = put == 0;
	if (sample->idle)
		return;
	sample->value = (double)put * 1000 / (double)s.elapsed_ns;
	sample->beside = (double)s.polls / (double)s.got;
	sample->operations = (double)put;
}

/* ---------------------------------------------------------------------------------------------- */

static void plan_one(struct bench_plan *plan, const struct bench_workload *like, unsigned producers,
                     const struct loop_contender *const contenders[])
{
	struct bench_workload workload = *like;
	struct bench_workload *planned;

	workload.left = producers;
	(void)snprintf(workload.name, sizeof(workload.name), "%.40s, %u/1", like->name, producers);
	planned = bench_plan_workload(plan, &workload);
	for (size_t c = 0; planned != NULL && contenders[c] != NULL; c++)
		bench_plan_contender(plan, planned, &contenders[c]->about, contenders[c]);
}

static void plan(struct bench_plan *plan, const struct bench_options *options)
{
	const struct bench_workload items = {.suite = "readiness",
	                                     .name = "event loop",
	                                     .unit = "Mitems/s",
	                                     .beside = "polls an item",
	                                     .right = 1,
	                                     .capacity = CAPACITY,
	                                     .measure = measure};
	const struct bench_workload newest = {.suite = "readiness",
	                                      .name = "watch",
	                                      .unit = "Mwrites/s",
	                                      .beside = "polls a value taken",
	                                      .right = 1,
	                                      .measure = measure_newest};

	(void)options;
	plan_one(plan, &items, 1, bench_loops);
	plan_one(plan, &items, 4, bench_loops);
	plan_one(plan, &newest, 1, bench_watches);
	plan_one(plan, &newest, 4, bench_watches);
}

static const char *const explain[][2] = {
	{"event loop, P/1", "producers enqueue as fast as they can, and yield while the queue (1,024 values) is full. One "
                        "thread sleeps in a poll until its descriptor is readable, takes up to 256 values, and polls "
                        "again. Beside the rate stand the polls per item, those that found nothing included."},
	{"watch, W/1",
     "writers replace a value of 8 bytes as fast as they can. One thread sleeps in a poll until its descriptor "
     "is readable, takes the newest value, and polls again. The figure is writes; beside it stand the polls "
     "per value taken."},
	{NULL, NULL},
};

const struct bench_suite bench_readiness_suite = {"readiness", "queue", plan, explain};
