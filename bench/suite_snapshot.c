/*
 * suite_snapshot.c - snapshots of several variables, beside a thread that commits to all of them.
 */
#include <stdatomic.h>
#include <stdio.h>

#include "crew.h"
#include "suite.h"

enum { SNAPSHOTS = 256, MAX_VARIABLES = 8 };

/* Commits a second at which each contender's writer can be held, so that each reader meets as many new values. */
#define RATE UINT64_C(250000)

struct scene {
	const struct snapshot_contender *contender;
	void *self;
	_Atomic(uint64_t) taken, busy_ns, torn, commits;
};

static void take_on(struct bench_crew *crew)
{
	struct scene *s = crew->context;
	uint64_t taken = 0, torn = 0, start = bench_now_ns();

	do {
		torn += s->contender->take_many(s->self, SNAPSHOTS);
		taken += SNAPSHOTS;
	} while (!bench_stopped(crew));
	atomic_fetch_add_explicit(&s->busy_ns, bench_now_ns() - start, memory_order_relaxed);
	atomic_fetch_add_explicit(&s->taken, taken, memory_order_relaxed);
	atomic_fetch_add_explicit(&s->torn, torn, memory_order_relaxed);
}

static void commit_on(struct bench_crew *crew)
{
	struct scene *s = crew->context;
	uint64_t interval = crew->workload->rate != 0 ? UINT64_C(1000000000) / crew->workload->rate : 0;
	uint64_t commits = 0, next = bench_now_ns();

	while (!bench_stopped(crew)) {
		/* A writer that falls behind catches up. */
		if (interval != 0 && bench_now_ns() < next)
			continue;
		next += interval;
		s->contender->commit(s->self, ++commits);
	}
	atomic_store_explicit(&s->commits, commits, memory_order_relaxed);
}

static void work(struct bench_crew *crew, unsigned index)
{
	if (index < crew->workload->left) {
		take_on(crew);
	} else {
		commit_on(crew);
	}
}

static void measure(const struct bench_workload *workload, const void *contender, struct bench_sample *sample)
{
	const struct snapshot_contender *snapshot = contender;
	struct scene s = {.contender = snapshot, .self = snapshot->create(workload->variables)};
	struct bench_crew crew = {.workload = workload, .about = &snapshot->about, .work = work};
	uint64_t torn;

	crew.threads = workload->left + workload->right;
	crew.context = &s;
	crew.self = s.self;
	crew.begin = snapshot->thread_begin;
	crew.end = snapshot->thread_end;
	bench_crew_run(&crew, sample);
	snapshot->destroy(s.self);
	torn = atomic_load_explicit(&s.torn, memory_order_relaxed);
	if (torn != 0)
		(void)snprintf(sample->wrong, sizeof(sample->wrong), "%llu snapshots were not of one instant",
		               (unsigned long long)torn);
	sample->value = (double)atomic_load_explicit(&s.busy_ns, memory_order_relaxed) /
	                (double)atomic_load_explicit(&s.taken, memory_order_relaxed);
	sample->operations = (double)atomic_load_explicit(&s.taken, memory_order_relaxed);
	sample->beside = (double)atomic_load_explicit(&s.commits, memory_order_relaxed) * 1e6 / (double)sample->window_ns;
}

static void plan_one(struct bench_plan *plan, size_t variables, uint64_t rate)
{
	struct bench_workload w = {.suite = "snapshot",
	                           .unit = "ns a snapshot",
	                           .beside = "kcommits/s",
	                           .lower_is_better = 1,
	                           .never_sleeps = 1,
	                           .left = 1,
	                           .right = 1,
	                           .variables = variables,
	                           .rate = rate,
	                           .measure = measure};
	struct bench_workload *planned;

	(void)snprintf(w.name, sizeof(w.name), "%zu variables%s", variables, rate != 0 ? ", at a fixed rate" : "");
	planned = bench_plan_workload(plan, &w);
	for (size_t c = 0; planned != NULL && bench_snapshots[c] != NULL; c++)
		bench_plan_contender(plan, planned, &bench_snapshots[c]->about, bench_snapshots[c]);
}

static void plan(struct bench_plan *plan, const struct bench_options *options)
{
	(void)options;
	plan_one(plan, 2, 0);
	plan_one(plan, 3, 0);
	plan_one(plan, MAX_VARIABLES, 0);
	plan_one(plan, MAX_VARIABLES, RATE);
}

static const char *const explain[][2] = {
	{"K variables", "one thread takes snapshots of K variables, checks that the values of each "
                    "are of one instant, and releases them. Another thread commits to all of them as fast as it can. "
                    "The figure is nanoseconds per snapshot; commits are counted, too. \"weir in a section\" begins "
                    "and ends a read section for each snapshot."},
	{"at a fixed rate",
     "the other thread commits 250,000 times per second. \"heads and stamps (floor)\" loads what any "
     "reader of separate values loads, without a check that they are of one instant."},
	{NULL, NULL},
};

const struct bench_suite bench_snapshot_suite = {"snapshot", "variables", plan, explain};
