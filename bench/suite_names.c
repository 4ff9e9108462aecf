/*
 * suite_names.c - threads that look up objects by name, while another thread removes names and adds
 * them again.
 */
#include <stdatomic.h>
#include <stdio.h>

#include "crew.h"
#include "suite.h"

/* Steps of PRIME visit all names in a scattered order. */
enum { NAMES = 1024, FINDS = 64, PRIME = 389 };

struct look_ups {
	const struct names_contender *contender;
	void *self;
	const char *names[NAMES];
	char texts[NAMES][16];
	unsigned finders;
	_Atomic(uint64_t) done, wrong, changes;
};

static void find_names(struct bench_crew *crew, unsigned index)
{
	struct look_ups *l = crew->context;
	uint64_t done = 0, wrong = 0, next = index * 7;
	const char *names[FINDS];
	uint64_t numbers[FINDS];

	do {
		for (unsigned i = 0; i < FINDS; i++, next++)
			names[i] = l->names[next * PRIME % NAMES];
		l->contender->find_many(l->self, names, numbers, FINDS);
		for (unsigned i = 0; i < FINDS; i++) {
			uint64_t expected = (next - FINDS + i) * PRIME % NAMES + 1;

			/* A name with an odd number may be missing for a moment. */
			wrong += numbers[i] != expected && (numbers[i] != 0 || expected % 2 == 0);
		}
		done += FINDS;
	} while (!bench_stopped(crew));
	atomic_fetch_add_explicit(&l->done, done, memory_order_relaxed);
	atomic_fetch_add_explicit(&l->wrong, wrong, memory_order_relaxed);
}

static void change_names(struct bench_crew *crew)
{
	struct look_ups *l = crew->context;
	uint64_t changes = 0;

	do {
		size_t index = (size_t)(changes * 2 % NAMES); /* even, so the number is odd */

		l->contender->renew(l->self, l->names[index], index + 1);
		changes++;
	} while (!bench_stopped(crew));
	atomic_fetch_add_explicit(&l->changes, changes, memory_order_relaxed);
}

static void work(struct bench_crew *crew, unsigned index)
{
	const struct look_ups *l = crew->context;

	if (index < l->finders)
		find_names(crew, index);
	else
		change_names(crew);
}

static void measure(const struct bench_workload *workload, const void *contender, struct bench_sample *sample)
{
	const struct names_contender *names = contender;
	static struct look_ups l;
	struct bench_crew crew = {.workload = workload, .about = &names->about, .work = work};
	uint64_t done, wrong;

	l = (struct look_ups){.contender = names, .self = names->create(), .finders = workload->left};
	for (size_t i = 0; i < NAMES; i++) {
		(void)snprintf(l.texts[i], sizeof(l.texts[i]), "variable/%zu", i);
		l.names[i] = l.texts[i];
		names->add(l.self, l.names[i], i + 1);
	}
	crew.threads = workload->left + workload->right;
	crew.context = &l;
	crew.self = l.self;
	bench_crew_run(&crew, sample);
	names->destroy(l.self);
	done = atomic_load_explicit(&l.done, memory_order_relaxed);
	wrong = atomic_load_explicit(&l.wrong, memory_order_relaxed);
	if (wrong != 0)
		(void)snprintf(sample->wrong, sizeof(sample->wrong),
		               "%llu of %llu look-ups gave another name's object, or none", (unsigned long long)wrong,
		               (unsigned long long)done);
	sample->operations = (double)done;
	sample->value = (double)done * 1e3 / (double)sample->window_ns;
	sample->beside = (double)atomic_load_explicit(&l.changes, memory_order_relaxed) * 1e3 / (double)sample->window_ns;
}

static void plan_one(struct bench_plan *plan, unsigned finders, unsigned changers)
{
	struct bench_workload w = {.suite = "names",
	                           .unit = "Mfinds/s",
	                           .beside = changers != 0 ? "Mchanges/s" : NULL,
	                           .never_sleeps = 1,
	                           .left = finders,
	                           .right = changers,
	                           .measure = measure};
	struct bench_workload *planned;

	(void)snprintf(w.name, sizeof(w.name), "%u finder%s%s", finders, finders == 1 ? "" : "s",
	               changers != 0 ? " beside a changer" : "");
	planned = bench_plan_workload(plan, &w);
	for (size_t c = 0; planned != NULL && bench_names[c] != NULL; c++)
		bench_plan_contender(plan, planned, &bench_names[c]->about, bench_names[c]);
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
	{"N finders", "each finder looks up the 1,024 names of a store in turn, takes a reference to "
                  "the object, reads its number, and releases the reference. The figure is "
                  "millions of look-ups per second; each must give the number of its name."},
	{"N finders beside a changer",
     "the same while another thread removes every second name, one after the other, and adds it "
     "again with a new object. Such a name may be missing for a moment."},
	{NULL, NULL},
};

const struct bench_suite bench_names_suite = {"names", "variables", plan, explain};
