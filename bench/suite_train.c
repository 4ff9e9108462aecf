/*
 * suite_train.c - threads that change the weights of one model by steps of Adam.
 */
#include <stdatomic.h>
#include <stdio.h>

#include "crew.h"
#include "suite.h"

enum { ELEMENTS = 1000000 };

struct training {
	const struct train_contender *contender;
	void *self;
	_Atomic(uint64_t) done;
};

static void work(struct bench_crew *crew, unsigned index)
{
	struct training *t = crew->context;
	uint64_t done = 0;

	do {
		t->contender->step(t->self, index);
		done++;
	} while (!bench_stopped(crew));
	atomic_fetch_add_explicit(&t->done, done, memory_order_relaxed);
}

static uint64_t train(const struct bench_workload *workload, const struct train_contender *contender,
                      struct bench_sample *sample)
{
	struct training t = {.contender = contender, .self = contender->create(workload->capacity, workload->left)};
	struct bench_crew crew = {
		.workload = workload, .about = &contender->about, .work = work, .threads = workload->left};
	uint64_t done, steps;

	crew.context = &t;
	crew.self = t.self;
	bench_crew_run(&crew, sample);
	steps = contender->steps(t.self);
	contender->destroy(t.self);
	done = atomic_load_explicit(&t.done, memory_order_relaxed);
	if (steps != done)
		(void)snprintf(sample->wrong, sizeof(sample->wrong), "%llu steps made, but the weights are those of %lld",
		               (unsigned long long)done, (long long)steps);
	sample->operations = (double)done;
	return done;
}

static void measure(const struct bench_workload *workload, const void *contender, struct bench_sample *sample)
{
	uint64_t done = train(workload, contender, sample);

	sample->value = (double)done * 1e9 / (double)sample->window_ns;
}

static void plan(struct bench_plan *plan, const struct bench_options *options)
{
	static const struct bench_shapes usual = {2, {{1, 0, 1}, {8, 0, 1}}};
	const struct bench_shapes *shapes = options->threads.count != 0 ? &options->threads : &usual;

	for (unsigned i = 0; i < shapes->count; i++) {
		struct bench_workload w = {
			.suite = "train", .unit = "steps/s", .never_sleeps = 1, .capacity = ELEMENTS, .measure = measure};
		struct bench_workload *planned;

		if (!shapes->shape[i].plain)
			continue;
		w.left = shapes->shape[i].left;
		(void)snprintf(w.name, sizeof(w.name), "%u trainer%s", w.left, w.left == 1 ? "" : "s");
		planned = bench_plan_workload(plan, &w);
		for (size_t c = 0; planned != NULL && bench_trains[c] != NULL; c++)
			bench_plan_contender(plan, planned, &bench_trains[c]->about, bench_trains[c]);
	}
}

static const char *const explain[][2] = {
	{"N trainers", "each trainer repeatedly makes a step of Adam on 1,000,000 weights of f32, with gradients of its "
                   "own that are the same for all. The figure is steps per second. At the end the weights must be "
                   "those of that many steps."},
	{NULL, NULL},
};

const struct bench_suite bench_train_suite = {"train", "variables", plan, explain};
