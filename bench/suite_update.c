/*
 * suite_update.c - threads that replace a shared value by one computed from it.
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
		(void)snprintf(sample->wrong, sizeof(sample->wrong), "%llu updates made, but the value is %llu",
		               (unsigned long long)done, (unsigned long long)value);
	sample->operations = (double)done;
	sample->value = (double)done * 1e3 / (double)sample->window_ns;
}

/* -- beside a reader that keeps old values ------------------------------------------------------- */

enum { KEPT = 8 };

struct keeping {
	const struct update_contender *contender;
	void *self;
	_Atomic(uint64_t) done, reads, changed;
};

static void update_on(struct keeping *k, struct bench_crew *crew)
{
	uint64_t done = 0;

	do {
		k->contender->update_many(k->self, UPDATES);
		done += UPDATES;
	} while (!bench_stopped(crew));
	atomic_fetch_add_explicit(&k->done, done, memory_order_relaxed);
}

/* Keeps the last values that it has read. Each must be the same when it is given up. */
static void keep_on(struct keeping *k, struct bench_crew *crew)
{
	struct bench_kept kept[KEPT];
	const uint64_t *words[KEPT] = {NULL};
	uint64_t first[KEPT], reads = 0, changed = 0;
	size_t at = 0;

	do {
		if (words[at] != NULL) {
			changed += words[at][0] != first[at] || bench_torn(words[at], 8 * sizeof(uint64_t));
			k->contender->drop(&kept[at]);
		}
		words[at] = k->contender->keep(k->self, &kept[at]);
		first[at] = words[at][0];
		at = (at + 1) % KEPT;
		reads++;
	} while (!bench_stopped(crew));
	for (at = 0; at < KEPT; at++) {
		if (words[at] != NULL)
			k->contender->drop(&kept[at]);
	}
	atomic_store_explicit(&k->reads, reads, memory_order_relaxed);
	atomic_store_explicit(&k->changed, changed, memory_order_relaxed);
}

static void update_or_keep(struct bench_crew *crew, unsigned index)
{
	if (index == 0)
		keep_on(crew->context, crew);
	else
		update_on(crew->context, crew);
}

static void measure_beside_keeper(const struct bench_workload *workload, const void *contender,
                                  struct bench_sample *sample)
{
	const struct update_contender *update = contender;
	struct keeping k = {.contender = update, .self = update->create()};
	struct bench_crew crew = {
		.workload = workload, .about = &update->about, .work = update_or_keep, .threads = 1 + workload->left};
	uint64_t done, value;

	crew.context = &k;
	crew.self = k.self;
	crew.begin = update->thread_begin;
	crew.end = update->thread_end;
	bench_crew_run(&crew, sample);
	value = update->value(k.self);
	update->destroy(k.self);
	done = atomic_load_explicit(&k.done, memory_order_relaxed);
	if (value != done)
		(void)snprintf(sample->wrong, sizeof(sample->wrong), "%llu updates made, but the value is %llu",
		               (unsigned long long)done, (unsigned long long)value);
	if (k.changed != 0)
		(void)snprintf(sample->wrong, sizeof(sample->wrong), "%llu kept values were read torn or have changed",
		               (unsigned long long)k.changed);
	sample->operations = (double)done;
	sample->value = (double)done * 1e3 / (double)sample->window_ns;
	sample->beside = (double)k.reads * 1e3 / (double)sample->window_ns;
}

static void plan_beside_keeper(struct bench_plan *plan)
{
	struct bench_workload w = {.suite = "update",
	                           .unit = "Mupdates/s",
	                           .beside = "Mreads/s",
	                           .never_sleeps = 1,
	                           .left = 1,
	                           .right = 1,
	                           .measure = measure_beside_keeper};
	struct bench_workload *planned;

	(void)snprintf(w.name, sizeof(w.name), "1 writer beside a reader that keeps 8 values");
	planned = bench_plan_workload(plan, &w);
	for (size_t c = 0; planned != NULL && bench_updates[c] != NULL; c++) {
		if (bench_updates[c]->keep != NULL)
			bench_plan_contender(plan, planned, &bench_updates[c]->about, bench_updates[c]);
	}
}

/* -- large values ------------------------------------------------------------------------------ */

enum { LARGE_BYTES = 1 << 20 };

struct additions {
	const struct addition_contender *contender;
	void *self;
	_Atomic(uint64_t) done;
};

static void add_on(struct bench_crew *crew, unsigned index)
{
	struct additions *a = crew->context;
	uint64_t done = 0;

	do {
		a->contender->add_one(a->self, index);
		done++;
	} while (!bench_stopped(crew));
	atomic_fetch_add_explicit(&a->done, done, memory_order_relaxed);
}

/* Returns the number of additions; *wasted is the number of copies that were discarded. */
static uint64_t add(const struct bench_workload *workload, const struct addition_contender *addition,
                    struct bench_sample *sample, uint64_t *wasted)
{
	struct additions a = {.contender = addition, .self = addition->create(workload->bytes, workload->left)};
	struct bench_crew crew = {
		.workload = workload, .about = &addition->about, .work = add_on, .threads = workload->left};
	uint64_t done, value;

	crew.context = &a;
	crew.self = a.self;
	crew.begin = addition->thread_begin;
	crew.end = addition->thread_end;
	bench_crew_run(&crew, sample);
	value = addition->value(a.self);
	*wasted = addition->wasted != NULL ? addition->wasted(a.self) : 0;
	addition->destroy(a.self);
	done = atomic_load_explicit(&a.done, memory_order_relaxed);
	if (value != done)
		(void)snprintf(sample->wrong, sizeof(sample->wrong), "%llu updates made, but the elements are %lld",
		               (unsigned long long)done, (long long)value);
	sample->operations = (double)done;
	return done;
}

static void measure_additions(const struct bench_workload *workload, const void *contender, struct bench_sample *sample)
{
	uint64_t wasted, done = add(workload, contender, sample, &wasted);

	sample->value = (double)done * 1e6 / (double)sample->window_ns;
	sample->beside = (double)wasted / (double)done;
}

static void measure_cost(const struct bench_workload *workload, const void *contender, struct bench_sample *sample)
{
	uint64_t wasted, done = add(workload, contender, sample, &wasted);

	sample->value = (double)sample->processor_ns / 1e3 / (double)done;
}

static void plan_additions(struct bench_plan *plan, struct bench_workload *w)
{
	struct bench_workload *planned;

	w->suite = "update";
	w->never_sleeps = 1;
	w->bytes = LARGE_BYTES;
	planned = bench_plan_workload(plan, w);
	for (size_t c = 0; planned != NULL && bench_additions[c] != NULL; c++)
		bench_plan_contender(plan, planned, &bench_additions[c]->about, bench_additions[c]);
}

static void plan_large(struct bench_plan *plan, unsigned writers)
{
	struct bench_workload rate = {
		.unit = "kupdates/s", .beside = "wasted copies an update", .measure = measure_additions};
	struct bench_workload cost = {.unit = "cpu-us an update", .lower_is_better = 1, .measure = measure_cost};

	rate.left = cost.left = writers;
	(void)snprintf(rate.name, sizeof(rate.name), "%u writer%s of 1 MiB", writers, writers == 1 ? "" : "s");
	(void)snprintf(cost.name, sizeof(cost.name), "%u writer%s of 1 MiB, processor time", writers,
	               writers == 1 ? "" : "s");
	plan_additions(plan, &rate);
	plan_additions(plan, &cost);
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
	plan_beside_keeper(plan);
	for (unsigned i = 0; i < shapes->count; i++) {
		unsigned writers = shapes->shape[i].left;

		/* The smallest and the largest number of writers suffice. */
		if (shapes->shape[i].plain && (options->threads.count != 0 || writers == 1 || writers == 8))
			plan_large(plan, writers);
	}
}

static const char *const explain[][2] = {
	{"N writers", "each writer repeatedly replaces a value of 64 bytes by one whose eight words "
                  "are 1 higher. The figure is millions of updates per second; at the end the "
                  "value must be the number of updates."},
	{"1 writer beside a reader that keeps 8 values",
     "the same for one writer, while another thread repeatedly reads the value and keeps the last 8 "
     "that it has read. A mutex copies each value out. A kept value must not change."},
	{"N writers of 1 MiB",
     "each writer repeatedly adds 1 to every element of a value of 1 MiB. The ones come from a "
     "value of its own that is as large. The figures are thousands of updates per second, and the "
     "copies that were made and discarded per update. At the end each element must be the number "
     "of updates."},
	{"N writers of 1 MiB, processor time",
     "the same. The figure is microseconds of processor time per update, of all threads together."},
	{NULL, NULL},
};

const struct bench_suite bench_update_suite = {"update", "variables", plan, explain};
