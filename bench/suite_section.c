/*
 * suite_section.c - threads that do something short, one thread at a time.
 */
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>

#include "crew.h"
#include "suite.h"

enum { WORDS = 8, AT_ONCE = 64 };

struct visits {
	const struct section_contender *contender;
	void *self;
	_Alignas(64) uint64_t words[WORDS]; /* plain memory: each execution adds 1 to all words */
	_Alignas(64) _Atomic(uint64_t) done;
};

static void add_to_all(void *context)
{
	uint64_t *words = context;

	for (int i = 0; i < WORDS; i++)
		words[i]++;
}

static void work(struct bench_crew *crew, unsigned index)
{
	struct visits *v = crew->context;
	uint64_t done = 0;

	(void)index;
	do {
		for (int i = 0; i < AT_ONCE; i++)
			v->contender->execute(v->self, add_to_all, v->words);
		done += AT_ONCE;
	} while (!bench_stopped(crew));
	atomic_fetch_add_explicit(&v->done, done, memory_order_relaxed);
}

static void measure(const struct bench_workload *workload, const void *contender, struct bench_sample *sample)
{
	const struct section_contender *section = contender;
	static struct visits v;
	struct bench_crew crew = {.workload = workload, .about = &section->about, .work = work};
	uint64_t done;

	v = (struct visits){.contender = section, .self = section->create()};
	crew.threads = workload->left;
	crew.context = &v;
	crew.self = v.self;
	bench_crew_run(&crew, sample);
	section->destroy(v.self);
	done = atomic_load_explicit(&v.done, memory_order_relaxed);
	for (int i = 0; i < WORDS; i++) {
		if (v.words[i] != done)
			(void)snprintf(sample->wrong, sizeof(sample->wrong), "%" PRIu64 " executions, but %" PRIu64 " in word %d",
			               done, v.words[i], i);
	}
	sample->operations = (double)done;
	sample->value = (double)done * 1e3 / (double)sample->window_ns;
}

static void plan_one(struct bench_plan *plan, unsigned threads)
{
	struct bench_workload w = {.suite = "section", .unit = "Mexecutions/s", .left = threads, .measure = measure};
	struct bench_workload *planned;

	(void)snprintf(w.name, sizeof(w.name), "%u thread%s", threads, threads == 1 ? "" : "s");
	planned = bench_plan_workload(plan, &w);
	for (size_t c = 0; planned != NULL && bench_sections[c] != NULL; c++)
		bench_plan_contender(plan, planned, &bench_sections[c]->about, bench_sections[c]);
}

static void plan(struct bench_plan *plan, const struct bench_options *options)
{
	static const struct bench_shapes usual = {3, {{1, 0, 1}, {2, 0, 1}, {8, 0, 1}}};
	const struct bench_shapes *shapes = options->threads.count != 0 ? &options->threads : &usual;

	for (unsigned i = 0; i < shapes->count; i++) {
		if (shapes->shape[i].plain)
			plan_one(plan, shapes->shape[i].left);
	}
}

static const char *const explain[][2] = {
	{"N threads", "each thread repeatedly enters, adds 1 to eight words of plain memory, and "
                  "leaves. The figure is millions of executions per second; at the end each word "
                  "must be the number of executions."},
	{NULL, NULL},
};

const struct bench_suite bench_section_suite = {"section", "section", plan, explain};
