/*
 * suite_publish.c - a thread that replaces a large value as fast as it can, beside two threads that
 * read it.
 */
#include <stdatomic.h>
#include <stdio.h>

#include "crew.h"
#include "suite.h"

enum { READS = 64, VALUE_BYTES = 1 << 20 };

struct publishing {
	const struct publish_contender *contender;
	void *self;
	/* bytes allocated at the start, most bytes waiting to be freed, values published */
	uint64_t before, peak, published;
	_Atomic(uint64_t) torn;
};

static void publish_on(struct bench_crew *crew)
{
	struct publishing *p = crew->context;

	while (!bench_stopped(crew)) {
		uint64_t bytes;

		p->contender->publish(p->self, ++p->published);
		bytes = bench_value_bytes();
		if (bytes > p->before + p->peak)
			p->peak = bytes - p->before;
	}
}

static void read_on(struct bench_crew *crew)
{
	struct publishing *p = crew->context;
	uint64_t torn = 0;

	do
		torn += p->contender->read_many(p->self, READS);
	while (!bench_stopped(crew));
	atomic_fetch_add_explicit(&p->torn, torn, memory_order_relaxed);
}

static void work(struct bench_crew *crew, unsigned index)
{
	if (index < crew->workload->left)
		publish_on(crew);
	else
		read_on(crew);
}

static void measure(const struct bench_workload *workload, const void *contender, struct bench_sample *sample)
{
	const struct publish_contender *publisher = contender;
	struct publishing p = {.contender = publisher, .self = publisher->create(workload->bytes)};
	struct bench_crew crew = {.workload = workload, .about = &publisher->about, .work = work};
	uint64_t torn;

	p.before = bench_value_bytes();
	crew.threads = workload->left + workload->right;
	crew.context = &p;
	crew.self = p.self;
	crew.begin = publisher->thread_begin;
	crew.end = publisher->thread_end;
	bench_crew_run(&crew, sample);
	publisher->destroy(p.self);
	torn = atomic_load_explicit(&p.torn, memory_order_relaxed);
	if (torn != 0)
		(void)snprintf(sample->wrong, sizeof(sample->wrong), "%llu values were read torn", (unsigned long long)torn);
	sample->operations = (double)p.published;
	sample->value = (double)p.published * 1e6 / (double)sample->window_ns;
	sample->beside = (double)p.peak / (1 << 20);
}

static void plan(struct bench_plan *plan, const struct bench_options *options)
{
	struct bench_workload w = {.suite = "publish",
	                           .name = "1 MiB beside 2 readers",
	                           .unit = "kversions/s",
	                           .beside = "peak MiB waiting",
	                           .never_sleeps = 1,
	                           .left = 1,
	                           .right = 2,
	                           .bytes = VALUE_BYTES,
	                           .measure = measure};
	struct bench_workload *planned;

	(void)options;
	planned = bench_plan_workload(plan, &w);
	for (size_t c = 0; planned != NULL && bench_publishers[c] != NULL; c++)
		bench_plan_contender(plan, planned, &bench_publishers[c]->about, bench_publishers[c]);
}

static const char *const explain[][2] = {
	{"1 MiB beside 2 readers",
     "one thread makes values of 1 MiB and publishes them as fast as it can. Two other threads "
     "repeatedly read the value and compare its two ends. The figures are thousands of values per "
     "second, and the most memory that waited to be freed, sampled after each value. call_rcu "
     "frees memory in a thread of its own, whenever that thread runs."},
	{NULL, NULL},
};

const struct bench_suite bench_publish_suite = {"publish", "variables", plan, explain};
