/*
 * suite_readiness.c - an event loop that takes what producers enqueue: it sleeps in a poll until its
 * descriptor is readable, and takes up to TAKE values a wake-up.
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
	if (s.got != put || s.got_sum != put_sum || put == 0) {
		(void)snprintf(sample->wrong, sizeof(sample->wrong), "%llu values went in, %llu came out",
		               (unsigned long long)put, (unsigned long long)s.got);
		return;
	}
	sample->value = (double)s.got * 1000 / (double)s.elapsed_ns;
	sample->beside = (double)s.polls / (double)s.got;
	sample->operations = (double)s.got;
}

static void plan_one(struct bench_plan *plan, unsigned producers)
{
	const struct bench_workload workload = {.suite = "readiness",
	                                        .name = "event loop",
	                                        .unit = "Mitems/s",
	                                        .beside = "polls an item",
	                                        .left = producers,
	                                        .right = 1,
	                                        .capacity = CAPACITY,
	                                        .measure = measure};
	struct bench_workload *planned = bench_plan_workload(plan, &workload);

	for (size_t c = 0; planned != NULL && bench_loops[c] != NULL; c++)
		bench_plan_contender(plan, planned, &bench_loops[c]->about, bench_loops[c]);
}

static void plan(struct bench_plan *plan, const struct bench_options *options)
{
	(void)options;
	plan_one(plan, 1);
	plan_one(plan, 4);
}

static const char *const explain[][2] = {
	{"event loop", "producers enqueue as fast as they can, and yield while the queue (1,024 values) is full. One "
                   "thread sleeps in a poll until its descriptor is readable, takes up to 256 values, and polls "
                   "again. Beside the rate stand the polls per item, those that found nothing included."},
	{NULL, NULL},
};

const struct bench_suite bench_readiness_suite = {"readiness", "queue", plan, explain};
