/*
 * suite_data.c - elements that are computed as they are taken, by datasets and by hand.
 */
#include <stdatomic.h>
#include <stdio.h>

#include "crew.h"
#include "suite.h"

struct taking {
	const struct data_contender *contender;
	void *self;
	_Atomic(uint64_t) rows, elements, sum;
};

static void work(struct bench_crew *crew, unsigned index)
{
	struct taking *taking = crew->context;
	uint64_t rows = 0, elements = 0, sum = 0;

	(void)index;
	do {
		rows += taking->contender->take(taking->self, &sum);
		elements++;
	} while (!bench_stopped(crew));
	atomic_fetch_add_explicit(&taking->rows, rows, memory_order_relaxed);
	atomic_fetch_add_explicit(&taking->elements, elements, memory_order_relaxed);
	atomic_fetch_add_explicit(&taking->sum, sum, memory_order_relaxed);
}

/* Numbers are taken in order, each once: 0 to count - 1. */
static void check(enum data_job job, uint64_t count, uint64_t sum, struct bench_sample *sample)
{
	uint64_t expected = count % 2 == 0 ? count / 2 * (count - 1) : count * ((count - 1) / 2);

	if (job != DATA_DIGITS && job != DATA_ROWS && sum != expected)
		(void)snprintf(sample->wrong, sizeof(sample->wrong), "%llu numbers add up to %llu, expected %llu",
		               (unsigned long long)count, (unsigned long long)sum, (unsigned long long)expected);
}

static void measure(const struct bench_workload *workload, const void *contender, struct bench_sample *sample)
{
	const struct data_contender *data = contender;
	enum data_job job = (enum data_job)workload->batch;
	struct taking taking = {.contender = data};
	struct bench_crew crew = {.workload = workload, .about = &data->about, .work = work, .threads = workload->left};
	double rows;

	taking.self = data->create(job);
	crew.context = &taking;
	crew.self = taking.self;
	bench_crew_run(&crew, sample);
	data->destroy(taking.self);
	rows = (double)atomic_load_explicit(&taking.rows, memory_order_relaxed);
	check(job, atomic_load_explicit(&taking.elements, memory_order_relaxed),
	      atomic_load_explicit(&taking.sum, memory_order_relaxed), sample);
	sample->operations = rows;
	sample->value = rows * 1e6 / (double)sample->window_ns;
	sample->beside = rows > 0 ? (double)sample->processor_ns / rows : 0;
}

static void plan_one(struct bench_plan *plan, enum data_job job, unsigned takers, const char *name)
{
	struct bench_workload w = {.suite = "data",
	                           .unit = "krows/s",
	                           .beside = "processor ns a row",
	                           .left = takers,
	                           .batch = (size_t)job,
	                           .measure = measure};
	struct bench_workload *planned;

	(void)snprintf(w.name, sizeof(w.name), "%s", name);
	planned = bench_plan_workload(plan, &w);
	for (size_t i = 0; planned != NULL && bench_data[i] != NULL; i++) {
		if ((bench_data[i]->jobs >> job & 1) != 0)
			bench_plan_contender(plan, planned, &bench_data[i]->about, bench_data[i]);
	}
}

static void plan(struct bench_plan *plan, const struct bench_options *options)
{
	(void)options;
	plan_one(plan, DATA_RANGE, 1, "numbers, 1 taker");
	plan_one(plan, DATA_RANGE, 8, "numbers, 8 takers");
	plan_one(plan, DATA_AHEAD, 1, "numbers, 64 ahead");
	plan_one(plan, DATA_STEPS, 1, "numbers by steps, 64 ahead");
	plan_one(plan, DATA_NOTHING, 1, "map of nothing, 4 at once");
	plan_one(plan, DATA_WORK, 1, "map of 10 us, 2 at once");
	plan_one(plan, DATA_DIGITS, 1, "digits in batches");
	plan_one(plan, DATA_ROWS, 1, "batches of 32 rows of 3 KiB");
}

static const char *const explain[][2] = {
	{"numbers, N takers", "N threads take the numbers 0, 1, 2, ... from one iterator. The figure is thousands of "
                          "elements per second; beside it stands the processor time of the whole program for each."},
	{"numbers, 64 ahead", "the same, by one thread, with 64 numbers computed ahead of their taking."},
	{"numbers by steps, 64 ahead",
     "the same, each number by a step of a graph with a deadline. The numbers are a range, "
     "or come from a reader that is declared short, or from one that is not: it may not run in "
     "the step."},
	{"map of nothing, 4 at once", "each number goes through a function that returns it; up to 4 calls run at a time."},
	{"map of 10 us, 2 at once", "each number goes through a function that multiplies for 10 us; 2 calls run at a "
                                "time, and the numbers come in order."},
	{"digits in batches", "rows of 28 x 28 f32 are scaled by a function, shuffled through a buffer of 1,024, and "
                          "stacked to batches of 32, of which 4 are computed ahead. The figure counts rows."},
	{"batches of 32 rows of 3 KiB", "rows of a tensor are stacked to batches. The figure counts rows."},
	{NULL, NULL},
};

const struct bench_suite bench_data_suite = {"data", "data", plan, explain};
