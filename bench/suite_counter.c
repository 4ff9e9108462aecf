/*
 * suite_counter.c - threads that count, and a thread that reads the count.
 */
#include <stdatomic.h>
#include <stdio.h>

#include "crew.h"
#include "suite.h"

enum { ADDITIONS = 1024 };

struct counting {
	const struct counter_contender *contender;
	void *self;
	unsigned adders;
	_Atomic(uint64_t) done, reads, went_back;
};

static void add(struct bench_crew *crew)
{
	struct counting *c = crew->context;
	uint64_t done = 0;

	do {
		c->contender->add_many(c->self, ADDITIONS);
		done += ADDITIONS;
	} while (!bench_stopped(crew));
	atomic_fetch_add_explicit(&c->done, done, memory_order_relaxed);
}

static void look(struct bench_crew *crew)
{
	struct counting *c = crew->context;
	uint64_t reads = 0, last = 0, went_back = 0;

	do {
		uint64_t now = c->contender->read(c->self);

		went_back += now < last;
		last = now;
		reads++;
	} while (!bench_stopped(crew));
	atomic_fetch_add_explicit(&c->reads, reads, memory_order_relaxed);
	atomic_fetch_add_explicit(&c->went_back, went_back, memory_order_relaxed);
}

static void work(struct bench_crew *crew, unsigned index)
{
	const struct counting *c = crew->context;

	if (index < c->adders)
		add(crew);
	else
		look(crew);
}

static void judge(struct counting *c, uint64_t total, struct bench_sample *sample)
{
	uint64_t done = atomic_load_explicit(&c->done, memory_order_relaxed);

	if (total != done)
		(void)snprintf(sample->wrong, sizeof(sample->wrong), "%llu additions, counted as %llu",
		               (unsigned long long)done, (unsigned long long)total);
	if (atomic_load_explicit(&c->went_back, memory_order_relaxed) != 0)
		(void)snprintf(sample->wrong, sizeof(sample->wrong), "the count decreased");
	sample->operations = (double)done;
	sample->value = (double)done * 1e3 / (double)sample->window_ns;
	sample->beside = (double)atomic_load_explicit(&c->reads, memory_order_relaxed) * 1e3 / (double)sample->window_ns;
}

static void measure(const struct bench_workload *workload, const void *contender, struct bench_sample *sample)
{
	const struct counter_contender *counter = contender;
	struct counting c = {.contender = counter, .self = counter->create(), .adders = workload->left};
	struct bench_crew crew = {.workload = workload, .about = &counter->about, .work = work};
	uint64_t total;

	crew.threads = workload->left + workload->right;
	crew.context = &c;
	crew.self = c.self;
	bench_crew_run(&crew, sample);
	total = counter->read(c.self);
	counter->destroy(c.self);
	judge(&c, total, sample);
}

static void plan_one(struct bench_plan *plan, unsigned adders, unsigned readers)
{
	struct bench_workload w = {.suite = "counter",
	                           .unit = "Madds/s",
	                           .beside = readers != 0 ? "Mreads/s" : NULL,
	                           .never_sleeps = 1,
	                           .left = adders,
	                           .right = readers,
	                           .measure = measure};
	struct bench_workload *planned;

	(void)snprintf(w.name, sizeof(w.name), "%u adder%s%s", adders, adders == 1 ? "" : "s",
	               readers != 0 ? " beside a reader" : "");
	planned = bench_plan_workload(plan, &w);
	for (size_t i = 0; planned != NULL && bench_counters[i] != NULL; i++) {
		if (readers == 0 || !bench_counters[i]->reads_alone)
			bench_plan_contender(plan, planned, &bench_counters[i]->about, bench_counters[i]);
	}
}

static void plan(struct bench_plan *plan, const struct bench_options *options)
{
	static const struct bench_shapes usual = {3, {{1, 0, 1}, {2, 0, 1}, {8, 0, 1}}};
	const struct bench_shapes *shapes = options->threads.count != 0 ? &options->threads : &usual;

	for (unsigned i = 0; i < shapes->count; i++) {
		if (!shapes->shape[i].plain)
			continue;
		plan_one(plan, shapes->shape[i].left, 0);
		plan_one(plan, shapes->shape[i].left, 1);
	}
}

static const char *const explain[][2] = {
	{"N adders", "each adder repeatedly adds 1 to one counter. The figure is millions of additions "
                 "per second by all adders together. At the end the counter must contain all of "
                 "them."},
	{"N adders beside a reader",
     "the same while another thread repeatedly reads the counter. The count that it reads must "
     "never decrease. Rivals that cannot be read while threads add take no part."},
	{NULL, NULL},
};

const struct bench_suite bench_counter_suite = {"counter", "variables", plan, explain};
