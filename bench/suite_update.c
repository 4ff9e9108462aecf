/*
 * suite_update.c - threads that replace a shared value by one made from it.
 */
#include <stdatomic.h>
#include <stdio.h>

#include "crew.h"
#include "suite.h"

enum { UPDATES = 16 };

struct updates {
	const struct update_contender *contender;
	void *self;
	_Atomic(uint64_t) done;
};

static void work(struct bench_crew *crew, unsigned index)
{
	struct updates *u = crew->context;
	uint64_t done = 0;

	(void)index;
	do {
		u->contender->update_many(u->self, UPDATES);
		done += UPDATES;
	} while (!bench_stopped(crew));
	atomic_fetch_add_explicit(&u->done, done, memory_order_relaxed);
}

static void measure(const struct bench_workload *workload, const void *contender, struct bench_sample *sample)
{
	const struct update_contender *update = contender;
	struct updates u = {.contender = update, .self = update->create()};
	struct bench_crew crew = {.workload = workload, .about = &update->about, .work = work, .threads = workload->left};
	uint64_t done, value;

	crew.context = &u;
	crew.self = u.self;
	crew.begin = update->thread_begin;
	crew.end = update->thread_end;
	bench_crew_run(&crew, sample);
	if (update->thread_begin != NULL)
		update->thread_begin(u.self);
	value = update->value(u.self);
	if (update->thread_end != NULL)
		update->thread_end(u.self);
	update->destroy(u.self);
	done = atomic_load_explicit(&u.done, memory_order_relaxed);
	if (value != done)
		(void)snprintf(sample->wrong, sizeof(sample->wrong), "%llu updates made, and the value is %llu",
		               (unsigned long long)done, (unsigned long long)value);
	sample->operations = (double)done;
	sample->value = (double)done * 1e3 / (double)sample->window_ns;
}

static void plan(struct bench_plan *plan, const struct bench_options *options)
{
	static const struct bench_shapes usual = {4, {{1, 0, 1}, {2, 0, 1}, {4, 0, 1}, {8, 0, 1}}};
	const struct bench_shapes *shapes = options->threads.count != 0 ? &options->threads : &usual;

	for (unsigned i = 0; i < shapes->count; i++) {
		struct bench_workload w = {.suite = "update", .unit = "Mupdates/s", .never_sleeps = 1, .measure = measure};
		struct bench_workload *planned;

		if (!shapes->shape[i].plain)
			continue;
		w.left = shapes->shape[i].left;
		(void)snprintf(w.name, sizeof(w.name), "%u writer%s", w.left, w.left == 1 ? "" : "s");
		planned = bench_plan_workload(plan, &w);
		for (size_t c = 0; planned != NULL && bench_updates[c] != NULL; c++)
			bench_plan_contender(plan, planned, &bench_updates[c]->about, bench_updates[c]);
	}
}

static const char *const explain[][2] = {
	{"N writers",
     "each replaces a value of 64 bytes by one whose eight words are 1 higher, again and again. Millions of updates a "
     "second; at the end the value must be the number of updates."},
	{NULL, NULL},
};

const struct bench_suite bench_update_suite = {"update", "variables", plan, explain};
