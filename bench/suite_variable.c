/*
 * suite_variable.c - reads of a shared value that other threads replace.
 */
#include <stdatomic.h>
#include <stdio.h>

#include "crew.h"
#include "suite.h"

enum { READS = 1024, SCANS = 64, SMALL_BYTES = 64, LARGE_BYTES = 4096 };

/* Writes a second at which each contender's writer can be held, so that each reader meets as many new values. */
#define RATE UINT64_C(200000)

struct readers {
	const struct read_contender *contender;
	void *self;
	int scans; /* reads look at all words of the value */
	_Atomic(uint64_t) reads, busy_ns, writes, torn;
	_Atomic(uint64_t) keep; /* the sum of what was read, so that the compiler keeps every read */
};

static void read_on(struct bench_crew *crew)
{
	struct readers *r = crew->context;
	uint64_t reads = 0, sum = 0, torn = 0, start = bench_now_ns();

	do {
		if (r->scans) {
			torn += r->contender->scan_many(r->self, SCANS);
			reads += SCANS;
		} else {
			sum += r->contender->read_many(r->self, READS);
			reads += READS;
		}
	} while (!bench_stopped(crew));
	atomic_fetch_add_explicit(&r->busy_ns, bench_now_ns() - start, memory_order_relaxed);
	atomic_fetch_add_explicit(&r->reads, reads, memory_order_relaxed);
	atomic_fetch_add_explicit(&r->torn, torn, memory_order_relaxed);
	atomic_fetch_add_explicit(&r->keep, sum, memory_order_relaxed);
}

static void write_on(struct bench_crew *crew)
{
	struct readers *r = crew->context;
	uint64_t interval = crew->workload->rate != 0 ? UINT64_C(1000000000) / crew->workload->rate : 0;
	uint64_t writes = 0, next = bench_now_ns();

	while (!bench_stopped(crew)) {
		/* A writer that falls behind catches up. */
		if (interval != 0 && bench_now_ns() < next)
			continue;
		next += interval;
		r->contender->write(r->self, ++writes);
	}
	atomic_fetch_add_explicit(&r->writes, writes, memory_order_relaxed);
}

static void work(struct bench_crew *crew, unsigned index)
{
	if (index < crew->workload->left) {
		read_on(crew);
	} else {
		write_on(crew);
	}
}

/*
 * Checks that a read after the run returns what was written last, and that no read returned parts
 * of two values.
 */
static void judge(struct readers *r, const struct bench_workload *workload, struct bench_sample *sample)
{
	uint64_t writes = atomic_load_explicit(&r->writes, memory_order_relaxed);
	uint64_t torn = atomic_load_explicit(&r->torn, memory_order_relaxed), last;

	if (r->contender->thread_begin != NULL)
		r->contender->thread_begin(r->self);
	last = r->contender->read_many(r->self, 1);
	if (r->contender->thread_end != NULL)
		r->contender->thread_end(r->self);
	if (torn != 0) {
		(void)snprintf(sample->wrong, sizeof(sample->wrong), "%llu values were read torn", (unsigned long long)torn);
	} else if (workload->right <= 1 && last != writes) {
		(void)snprintf(sample->wrong, sizeof(sample->wrong), "%llu was written last, but %llu is read",
		               (unsigned long long)writes, (unsigned long long)last);
	}
}

static void measure(const struct bench_workload *workload, const void *contender, struct bench_sample *sample)
{
	const struct read_contender *reader = contender;
	unsigned all = workload->left + workload->right, processors = bench_processors();
	struct readers r = {.contender = reader, .self = reader->create(workload->bytes)};
	struct bench_crew crew = {.workload = workload, .about = &reader->about, .work = work, .threads = all};

	r.scans = workload->batch != 0;
	crew.context = &r;
	crew.self = r.self;
	crew.begin = reader->thread_begin;
	crew.end = reader->thread_end;
	bench_crew_run(&crew, sample);
	judge(&r, workload, sample);
	reader->destroy(r.self);
	/* Threads that share a processor are charged only their share of its time. */
	sample->value = (double)atomic_load_explicit(&r.busy_ns, memory_order_relaxed) /
	                (double)atomic_load_explicit(&r.reads, memory_order_relaxed);
	if (all > processors)
		sample->value = sample->value * processors / all;
	sample->operations = (double)atomic_load_explicit(&r.reads, memory_order_relaxed);
	sample->beside = (double)atomic_load_explicit(&r.writes, memory_order_relaxed) * 1e6 / (double)sample->window_ns;
}

static void plan_one(struct bench_plan *plan, struct bench_shape shape, size_t bytes, int scans, uint64_t rate)
{
	struct bench_workload w = {.suite = "variable",
	                           .unit = "ns a read",
	                           .lower_is_better = 1,
	                           .never_sleeps = 1,
	                           .left = shape.left,
	                           .right = shape.right,
	                           .bytes = bytes,
	                           .batch = (size_t)scans,
	                           .rate = rate,
	                           .measure = measure};
	struct bench_workload *planned;
	char beside[40] = "";

	if (shape.right != 0) {
		w.beside = "kwrites/s";
		(void)snprintf(beside, sizeof(beside), " beside %u writer%s", shape.right, shape.right == 1 ? "" : "s");
	}
	if (scans) {
		(void)snprintf(w.name, sizeof(w.name), "%u reader%s%s, all of %zu bytes%s", shape.left,
		               shape.left == 1 ? "" : "s", beside, bytes, rate != 0 ? ", at a fixed rate" : "");
	} else {
		(void)snprintf(w.name, sizeof(w.name), "%u reader%s%s", shape.left, shape.left == 1 ? "" : "s", beside);
	}
	planned = bench_plan_workload(plan, &w);
	for (size_t i = 0; planned != NULL && bench_readers[i] != NULL; i++) {
		const struct read_contender *reader = bench_readers[i];

		if ((!scans || reader->scan_many != NULL) && (reader->most_bytes == 0 || bytes <= reader->most_bytes))
			bench_plan_contender(plan, planned, &reader->about, reader);
	}
}

static void plan(struct bench_plan *plan, const struct bench_options *options)
{
	static const struct bench_shapes usual = {5, {{1, 0, 1}, {2, 0, 1}, {4, 0, 1}, {8, 0, 1}, {1, 1, 0}}};
	const struct bench_shapes *shapes = options->threads.count != 0 ? &options->threads : &usual;

	for (unsigned i = 0; i < shapes->count; i++)
		plan_one(plan, shapes->shape[i], SMALL_BYTES, 0, 0);
	plan_one(plan, (struct bench_shape){1, 1, 0}, SMALL_BYTES, 1, 0);
	plan_one(plan, (struct bench_shape){1, 1, 0}, LARGE_BYTES, 1, 0);
	plan_one(plan, (struct bench_shape){1, 1, 0}, SMALL_BYTES, 1, RATE);
	plan_one(plan, (struct bench_shape){1, 1, 0}, LARGE_BYTES, 1, RATE);
}

static const char *const explain[][2] = {
	{"N readers", "each reader repeatedly takes the current value of 64 bytes, adds a word of it "
                  "to a sum, and releases it. The figure is nanoseconds of processor time per "
                  "read. Weir's handle is taken and released by calls of the library, which is inside the program, "
                  "except \"shared library\"; \"+ "
                  "data\" also asks the library for the address of the value, and the handle of an inline variable "
                  "shows it. \"weir section of 16\" takes "
                  "no handles: it reads 16 times in each read section."},
	{"N readers beside W writers",
     "the same while W threads replace the value as fast as they can. Writes are counted, too, "
     "because a reader is fast while it keeps writers out."},
	{"all of B bytes", "the reader looks at every word of the value, which must all be equal."},
	{"at a fixed rate", "the writer replaces the value 200,000 times per second. Without this, a slow writer makes "
                        "a fast reader: most of a reader's time goes to values that are new to it."},
	{NULL, NULL},
};

const struct bench_suite bench_variable_suite = {"variable", "variables", plan, explain};
