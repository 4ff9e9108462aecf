/*
 * suite_wake.c - puts a thread to sleep and wakes it.
 */
#include <stdatomic.h>
#include <stdio.h>

#include "crew.h"
#include "suite.h"

enum { RATE = 2000, BATCH = 64 };

struct scene {
	const struct wake_contender *contender;
	void *there, *back;
	_Atomic(uint64_t) intended; /* the intended time of the wake that is under way */
	_Atomic(uint64_t) waits, wakes;
	_Atomic(int) over;
	_Atomic(uint64_t) elapsed_ns;
	struct bench_histogram *ticks;
};

static void set_elapsed(struct scene *s, uint64_t start)
{
	atomic_store_explicit(&s->elapsed_ns, bench_now_ns() - start, memory_order_relaxed);
}

/* -- no thread sleeps -------------------------------------------------------------------------- */

static void wake_then_wait(struct bench_crew *crew, unsigned index)
{
	struct scene *s = crew->context;
	uint64_t start = bench_now_ns(), pairs = 0;

	(void)index;
	do {
		for (int i = 0; i < BATCH; i++) {
			s->contender->wake(s->there);
			s->contender->wait(s->there);
		}
		pairs += BATCH;
	} while (!bench_stopped(crew));
	set_elapsed(s, start);
	atomic_store_explicit(&s->wakes, pairs, memory_order_relaxed);
	atomic_store_explicit(&s->waits, pairs, memory_order_relaxed);
}

/* -- ping and pong ----------------------------------------------------------------------------- */

static void ping_pong(struct bench_crew *crew, unsigned index)
{
	struct scene *s = crew->context;
	uint64_t start = bench_now_ns(), rounds = 0;
	int over = 0;

	while (!over) {
		if (index != 0) {
			s->contender->wait(s->there);
			over = atomic_load_explicit(&s->over, memory_order_acquire);
			s->contender->wake(s->back);
		} else {
			over = bench_stopped(crew);
			atomic_store_explicit(&s->over, over, memory_order_release);
			s->contender->wake(s->there);
			s->contender->wait(s->back);
		}
		rounds++;
	}
	if (index == 0)
		set_elapsed(s, start);
	atomic_store_explicit(index == 0 ? &s->wakes : &s->waits, rounds, memory_order_relaxed);
}

/* -- one thread sleeps, and is woken at a fixed rate ------------------------------------------- */

static void wake_at_rate(struct bench_crew *crew, struct scene *s)
{
	uint64_t interval = UINT64_C(1000000000) / crew->workload->rate;
	uint64_t next = atomic_load_explicit(&crew->start_ns, memory_order_acquire), wakes = 0;
	int over = 0;

	while (!over) {
		over = bench_stopped(crew);
		next += interval;
		while (bench_now_ns() < next)
			;
		atomic_store_explicit(&s->over, over, memory_order_relaxed);
		atomic_store_explicit(&s->intended, next, memory_order_release);
		s->contender->wake(s->there);
		wakes++;
		/* Waits until this wake has arrived, so that the next one is a separate wake. */
		s->contender->wait(s->back);
	}
	atomic_store_explicit(&s->wakes, wakes, memory_order_relaxed);
}

static void be_woken(struct scene *s)
{
	uint64_t waits = 0;
	int over = 0;

	while (!over) {
		s->contender->wait(s->there);
		bench_histogram_add(s->ticks, bench_now_ns() - atomic_load_explicit(&s->intended, memory_order_acquire));
		over = atomic_load_explicit(&s->over, memory_order_relaxed);
		waits++;
		s->contender->wake(s->back);
	}
	atomic_store_explicit(&s->waits, waits, memory_order_relaxed);
}

static void sleep_and_wake(struct bench_crew *crew, unsigned index)
{
	if (index == 0) {
		wake_at_rate(crew, crew->context);
	} else {
		be_woken(crew->context);
	}
}

/* -- runs -------------------------------------------------------------------------------------- */

static void run(const struct bench_workload *workload, const struct wake_contender *contender, bench_work_fn *work,
                struct bench_sample *sample)
{
	struct scene s = {.contender = contender, .there = contender->create(), .back = contender->create()};
	struct bench_crew crew = {.workload = workload, .about = &contender->about, .work = work, .context = &s};
	uint64_t waits, wakes;

	s.ticks = sample->ticks;
	crew.threads = workload->left + workload->right;
	crew.self = s.there;
	crew.begin = contender->thread_begin;
	crew.end = contender->thread_end;
	bench_crew_run(&crew, sample);
	contender->destroy(s.there);
	contender->destroy(s.back);
	waits = atomic_load_explicit(&s.waits, memory_order_relaxed);
	wakes = atomic_load_explicit(&s.wakes, memory_order_relaxed);
	if (waits != wakes || wakes == 0)
		(void)snprintf(sample->wrong, sizeof(sample->wrong), "%llu wakes, but %llu waits that ended",
		               (unsigned long long)wakes, (unsigned long long)waits);
	sample->value = (double)atomic_load_explicit(&s.elapsed_ns, memory_order_relaxed) / (double)wakes;
	sample->operations = (double)wakes;
}

static void measure_pairs(const struct bench_workload *workload, const void *contender, struct bench_sample *sample)
{
	run(workload, contender, wake_then_wait, sample);
}

static void measure_ping_pong(const struct bench_workload *workload, const void *contender, struct bench_sample *sample)
{
	run(workload, contender, ping_pong, sample);
}

static void measure_sleeper(const struct bench_workload *workload, const void *contender, struct bench_sample *sample)
{
	run(workload, contender, sleep_and_wake, sample);
}

static void plan_one(struct bench_plan *plan, struct bench_workload workload)
{
	struct bench_workload *planned;

	workload.suite = "wake";
	workload.lower_is_better = 1;
	planned = bench_plan_workload(plan, &workload);
	for (size_t c = 0; planned != NULL && bench_wakes[c] != NULL; c++)
		bench_plan_contender(plan, planned, &bench_wakes[c]->about, bench_wakes[c]);
}

static void plan(struct bench_plan *plan, const struct bench_options *options)
{
	struct bench_workload sleeper = {.name = "latency of a sleeper",
	                                 .unit = "ns",
	                                 .latency = 1,
	                                 .left = 1,
	                                 .right = 1,
	                                 .rate = RATE,
	                                 .measure = measure_sleeper};

	(void)options;
	plan_one(plan,
	         (struct bench_workload){
				 .name = "nobody sleeps", .unit = "ns a pair", .left = 1, .never_sleeps = 1, .measure = measure_pairs});
	plan_one(plan, (struct bench_workload){
					   .name = "ping-pong", .unit = "ns a round", .left = 1, .right = 1, .measure = measure_ping_pong});
	plan_one(plan, sleeper);
	sleeper.hogs = bench_processors();
	(void)snprintf(sleeper.name, sizeof(sleeper.name), "latency of a sleeper, cores stolen");
	plan_one(plan, sleeper);
}

static const char *const explain[][2] = {
	{"nobody sleeps", "one thread wakes itself and then waits, so that it never sleeps. The figure is "
                      "nanoseconds per pair: the cost of a wake when no thread sleeps."},
	{"ping-pong", "two threads wake each other in turn. The figure is nanoseconds per round, which "
                  "is two wakes and two sleeps."},
	{"latency of a sleeper",
     "a thread sleeps and is woken every 500 us. The latency is the time from the intended time of "
     "the wake until the thread runs."},
	{"cores stolen", "the same beside one spinning thread for each processor."},
	{NULL, NULL},
};

const struct bench_suite bench_wake_suite = {"wake", "wake", plan, explain};
