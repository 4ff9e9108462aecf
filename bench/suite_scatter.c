/*
 * suite_scatter.c - updates of 100 rows of a large table, and reads of all rows.
 */
#include <stdatomic.h>
#include <stdio.h>

#include "crew.h"
#include "suite.h"

enum { TOUCHED = 100, ROW_BYTES = 256, SPREAD = 512 };

struct scattering {
	const struct scatter_contender *contender;
	void *self;
	unsigned writers;
	uint64_t rows;
	_Atomic(uint64_t) done, wrong;
};

/*
 * Chooses the rows of update number n with the finalizer of SplitMix64. They are among 512 rows
 * that are spread evenly over the table, so that all memory that they need is soon allocated,
 * whatever the size of the table.
 */
static void choose(uint64_t n, uint64_t count, int64_t rows[TOUCHED])
{
	for (uint64_t i = 0; i < TOUCHED; i++) {
		uint64_t mixed = (n * TOUCHED + i + 1) * UINT64_C(0x9E3779B97F4A7C15);

		mixed = (mixed ^ mixed >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
		rows[i] = (int64_t)((mixed ^ mixed >> 31) % SPREAD * (count / SPREAD));
	}
}

static void work(struct bench_crew *crew, unsigned index)
{
	struct scattering *s = crew->context;
	uint64_t done = 0;
	int64_t rows[TOUCHED];

	do {
		choose(done * s->writers + index, s->rows, rows);
		s->contender->add_one(s->self, rows, TOUCHED);
		done++;
	} while (!bench_stopped(crew));
	atomic_fetch_add_explicit(&s->done, done, memory_order_relaxed);
}

static void measure(const struct bench_workload *workload, const void *contender, struct bench_sample *sample)
{
	const struct scatter_contender *scatter = contender;
	struct scattering s = {.contender = scatter, .writers = workload->left, .rows = workload->bytes / ROW_BYTES};
	struct bench_crew crew = {.workload = workload, .about = &scatter->about, .work = work, .threads = workload->left};
	uint64_t done, sum;

	s.self = scatter->create(s.rows, ROW_BYTES);
	crew.context = &s;
	crew.self = s.self;
	bench_crew_run(&crew, sample);
	sum = scatter->sum(s.self);
	scatter->destroy(s.self);
	done = atomic_load_explicit(&s.done, memory_order_relaxed);
	/*
	 * Each update adds 1 to each element of 100 rows; `sum` adds up the first elements of all rows.
	 */
	if (sum != done * TOUCHED)
		(void)snprintf(sample->wrong, sizeof(sample->wrong), "%llu updates of 100 rows, but the rows add up to %llu",
		               (unsigned long long)done, (unsigned long long)sum);
	sample->operations = (double)done;
	sample->value = (double)done * 1e6 / (double)sample->window_ns;
}

/* -- reading all rows -------------------------------------------------------------------------- */

struct scan {
	const struct scatter_contender *contender;
	void *self;
	uint64_t expected;
	_Atomic(uint64_t) done, wrong;
};

static void scan_all(struct bench_crew *crew, unsigned index)
{
	struct scan *scan = crew->context;
	uint64_t done = 0, wrong = 0;

	(void)index;
	do {
		wrong += scan->contender->sum_all(scan->self) != scan->expected;
		done++;
	} while (!bench_stopped(crew));
	atomic_fetch_add_explicit(&scan->done, done, memory_order_relaxed);
	atomic_fetch_add_explicit(&scan->wrong, wrong, memory_order_relaxed);
}

static void measure_scan(const struct bench_workload *workload, const void *contender, struct bench_sample *sample)
{
	const struct scatter_contender *scatter = contender;
	struct scan scan = {.contender = scatter};
	struct bench_crew crew = {.workload = workload, .about = &scatter->about, .work = scan_all, .threads = 1};
	uint64_t rows = workload->bytes / ROW_BYTES, wrong;
	int64_t one[SPREAD];

	scan.self = scatter->create(rows, ROW_BYTES);
	/* Each row is written once, so that each has memory of its own. */
	for (uint64_t first = 0; first < rows; first += SPREAD) {
		for (uint64_t i = 0; i < SPREAD; i++)
			one[i] = (int64_t)(first + i);
		scatter->add_one(scan.self, one, SPREAD);
	}
	scan.expected = workload->bytes / sizeof(uint64_t);
	crew.context = &scan;
	crew.self = scan.self;
	bench_crew_run(&crew, sample);
	scatter->destroy(scan.self);
	wrong = atomic_load_explicit(&scan.wrong, memory_order_relaxed);
	if (wrong != 0)
		(void)snprintf(sample->wrong, sizeof(sample->wrong), "%llu of %llu sums of all rows are wrong",
		               (unsigned long long)wrong, (unsigned long long)scan.done);
	sample->operations = (double)scan.done;
	sample->value = (double)scan.done * (double)workload->bytes / (double)sample->window_ns;
}

static void plan_scan(struct bench_plan *plan, size_t bytes, const char *size)
{
	struct bench_workload w = {
		.suite = "scatter", .unit = "GB/s", .never_sleeps = 1, .left = 1, .bytes = bytes, .measure = measure_scan};
	struct bench_workload *planned;

	(void)snprintf(w.name, sizeof(w.name), "read all rows of %s", size);
	planned = bench_plan_workload(plan, &w);
	for (size_t i = 0; planned != NULL && bench_scatters[i] != NULL; i++) {
		if (bytes <= bench_scatters[i]->most_bytes && bench_scatters[i]->sum_all != NULL)
			bench_plan_contender(plan, planned, &bench_scatters[i]->about, bench_scatters[i]);
	}
}

static void plan_one(struct bench_plan *plan, unsigned writers, size_t bytes, const char *size)
{
	struct bench_workload w = {.suite = "scatter",
	                           .unit = "kupdates/s",
	                           .never_sleeps = 1,
	                           .left = writers,
	                           .bytes = bytes,
	                           .measure = measure};
	struct bench_workload *planned;

	(void)snprintf(w.name, sizeof(w.name), "%u writer%s, table of %s", writers, writers == 1 ? "" : "s", size);
	planned = bench_plan_workload(plan, &w);
	for (size_t i = 0; planned != NULL && bench_scatters[i] != NULL; i++) {
		/*
		 * A contender that copies the whole value needs a second for one update of 1 GiB, so it has
		 * no figure in the given time.
		 */
		if (bytes <= bench_scatters[i]->most_bytes)
			bench_plan_contender(plan, planned, &bench_scatters[i]->about, bench_scatters[i]);
	}
}

static void plan(struct bench_plan *plan, const struct bench_options *options)
{
	static const struct bench_shapes usual = {2, {{1, 0, 1}, {2, 0, 1}}};
	const struct bench_shapes *shapes = options->threads.count != 0 ? &options->threads : &usual;

	for (unsigned i = 0; i < shapes->count; i++) {
		if (!shapes->shape[i].plain)
			continue;
		plan_one(plan, shapes->shape[i].left, (size_t)1 << 20, "1 MiB");
		plan_one(plan, shapes->shape[i].left, (size_t)32 << 20, "32 MiB");
		plan_one(plan, shapes->shape[i].left, (size_t)1 << 30, "1 GiB");
	}
	plan_scan(plan, (size_t)1 << 20, "1 MiB");
	plan_scan(plan, (size_t)32 << 20, "32 MiB");
}

static const char *const explain[][2] = {
	{"N writers, table of SIZE",
     "in one update, each writer adds 1 to each element of 100 rows of 256 bytes. The rows are "
     "among 512 that are spread evenly over the table. Writers repeat this. The figure is "
     "thousands of updates per second; at the end the rows must add up."},
	{"read all rows of SIZE",
     "one thread repeatedly adds up all words of a table of rows of 256 bytes, each of which was "
     "written once. The figure is gigabytes per second; the sum must be right."},
	{NULL, NULL},
};

const struct bench_suite bench_scatter_suite = {"scatter", "variables", plan, explain};
