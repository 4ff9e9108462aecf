/*
 * suite_transaction.c - two variables that are changed at one instant, alone and beside a thread
 * that reads both.
 */
#include <stdatomic.h>
#include <stdio.h>

#include "crew.h"
#include "suite.h"

enum { COMMITS = 64, SNAPSHOTS = 64, VARIABLES = 2 };

struct scene {
	const struct snapshot_contender *contender;
	void *self;
	uint64_t commits;
	_Atomic(uint64_t) taken, torn;
};

static void commit_on(struct bench_crew *crew)
{
	struct scene *s = crew->context;

	do {
		for (int i = 0; i < COMMITS; i++)
			s->contender->commit(s->self, ++s->commits);
	} while (!bench_stopped(crew));
}

static void take_on(struct bench_crew *crew)
{
	struct scene *s = crew->context;
	uint64_t taken = 0, torn = 0;

	for (; !bench_stopped(crew); taken += SNAPSHOTS)
		torn += s->contender->take_many(s->self, SNAPSHOTS);
	atomic_fetch_add_explicit(&s->taken, taken, memory_order_relaxed);
	atomic_fetch_add_explicit(&s->torn, torn, memory_order_relaxed);
}

static void work(struct bench_crew *crew, unsigned index)
{
	if (index < crew->workload->left)
		commit_on(crew);
	else
		take_on(crew);
}

static void measure(const struct bench_workload *workload, const void *contender, struct bench_sample *sample)
{
	const struct snapshot_contender *both = contender;
	struct scene s = {.contender = both, .self = both->create(workload->variables)};
	struct bench_crew crew = {.workload = workload, .about = &both->about, .work = work};
	uint64_t torn;

	crew.threads = workload->left + workload->right;
	crew.context = &s;
	crew.self = s.self;
	crew.begin = both->thread_begin;
	crew.end = both->thread_end;
	bench_crew_run(&crew, sample);
	both->destroy(s.self);
	torn = atomic_load_explicit(&s.torn, memory_order_relaxed);
	if (torn != 0)
		(void)snprintf(sample->wrong, sizeof(sample->wrong), "%llu snapshots were not of one instant",
		               (unsigned long long)torn);
	sample->operations = (double)s.commits;
	sample->value = (double)s.commits * 1e3 / (double)sample->window_ns;
	sample->beside = (double)atomic_load_explicit(&s.taken, memory_order_relaxed) * 1e3 / (double)sample->window_ns;
}

static void plan_one(struct bench_plan *plan, const char *name, unsigned readers)
{
	struct bench_workload w = {.suite = "transaction",
	                           .unit = "Mcommits/s",
	                           .beside = readers != 0 ? "Msnapshots/s" : NULL,
	                           .never_sleeps = 1,
	                           .left = 1,
	                           .right = readers,
	                           .variables = VARIABLES,
	                           .measure = measure};
	struct bench_workload *planned;

	(void)snprintf(w.name, sizeof(w.name), "%s", name);
	planned = bench_plan_workload(plan, &w);
	for (size_t c = 0; planned != NULL && bench_transactions[c] != NULL; c++)
		bench_plan_contender(plan, planned, &bench_transactions[c]->about, bench_transactions[c]);
}

static void plan(struct bench_plan *plan, const struct bench_options *options)
{
	(void)options;
	plan_one(plan, "2 variables", 0);
	plan_one(plan, "2 variables beside a reader", 1);
}

static const char *const explain[][2] = {
	{"2 variables", "one thread repeatedly gives two variables a new value of 8 bytes each, at one "
                    "instant: by a commit, and by a transaction that assigns to both. The figure "
                    "is millions of commits per second."},
	{"2 variables beside a reader",
     "the same while another thread takes snapshots of both as fast as it can, and checks that "
     "the values of each are of one instant. Snapshots are counted, too."},
	{NULL, NULL},
};

const struct bench_suite bench_transaction_suite = {"transaction", "variables", plan, explain};
