/*
 * suite_ring.c - queues of 64-bit values that never wait, in FIFO order and by priority: throughput
 * by number of threads, and the duration of single calls.
 */
#include <sched.h>
#include <stdio.h>

#include "traffic.h"

enum {
	PAIRS = 4096,
	TRIES_BEFORE_YIELD = 16,
	EMPTY_AT_THE_END = 16,    /* dequeues that find nothing after all items came out */
	EMPTY_WITH_A_LOSS = 1000, /* dequeues that find nothing while items are missing */
	/* items after which a thread reports its count, for an unbounded queue */
	SAY_EVERY = 64,
	RATE = 100000
};

static const struct ring_contender *ring_of(const struct bench_traffic *t)
{
	return t->contender;
}

static void pause_after(unsigned *failures)
{
	if (++*failures % TRIES_BEFORE_YIELD == 0)
		(void)sched_yield();
}

/* -- producers --------------------------------------------------------------------------------- */

/*
 * Keeps the backlog of an unbounded queue near the capacity of a bounded one. It is exact except
 * for what threads have not reported yet.
 */
static void wait_for_room(struct bench_crew *crew, unsigned index, const struct bench_tally *tally)
{
	struct bench_traffic *t = crew->context;
	unsigned failures = 0;

	bench_traffic_say(t, index, tally);
	while (bench_traffic_inside(t) >= t->workload->capacity && !bench_stopped(crew))
		pause_after(&failures);
}

static void put_freely(struct bench_crew *crew, unsigned index, struct bench_tally *tally)
{
	struct bench_traffic *t = crew->context;
	const struct ring_contender *ring = ring_of(t);
	unsigned failures = 0;

	do {
		if (!ring->enqueue(t->queue, tally->count + 1)) {
			pause_after(&failures);
			continue;
		}
		tally->sum += ++tally->count;
		if (ring->unbounded && tally->count % SAY_EVERY == 0)
			wait_for_room(crew, index, tally);
	} while (!bench_stopped(crew));
}

/* Enqueues a batch, by a call of the contender or by a loop. */
static size_t put_some(const struct ring_contender *ring, void *queue, const uint64_t *values, size_t count)
{
	size_t done = 0;

	if (ring->enqueue_many != NULL)
		return ring->enqueue_many(queue, values, count);
	while (done < count && ring->enqueue(queue, values[done]))
		done++;
	return done;
}

static void put_batches(struct bench_crew *crew, unsigned index, struct bench_tally *tally)
{
	struct bench_traffic *t = crew->context;
	uint64_t values[1024];
	unsigned failures = 0;
	size_t batch = t->workload->batch;

	do {
		size_t done;

		for (size_t i = 0; i < batch; i++)
			values[i] = tally->count + 1 + i;
		done = put_some(ring_of(t), t->queue, values, batch);
		for (size_t i = 0; i < done; i++)
			tally->sum += ++tally->count;
		if (done == 0)
			pause_after(&failures);
		if (ring_of(t)->unbounded)
			wait_for_room(crew, index, tally);
	} while (!bench_stopped(crew));
}

/* Times each call that enqueued something. */
static void put_timed(struct bench_crew *crew, unsigned index, struct bench_tally *tally)
{
	struct bench_traffic *t = crew->context;
	unsigned failures = 0;

	do {
		uint64_t start = bench_now_ns();

		if (!ring_of(t)->enqueue(t->queue, tally->count + 1)) {
			pause_after(&failures);
			continue;
		}
		bench_histogram_add(t->ticks[index], bench_now_ns() - start);
		tally->sum += ++tally->count;
		if (ring_of(t)->unbounded && tally->count % SAY_EVERY == 0)
			wait_for_room(crew, index, tally);
	} while (!bench_stopped(crew));
}

static void put_one(struct bench_traffic *t, uint64_t value)
{
	unsigned failures = 0;

	while (!ring_of(t)->enqueue(t->queue, value))
		pause_after(&failures);
}

static void produce(struct bench_crew *crew, unsigned index)
{
	struct bench_traffic *t = crew->context;
	struct bench_tally tally = {0, 0};

	if (t->workload->rate != 0) {
		bench_put_paced(crew, index, &tally, put_one);
	} else if (t->workload->latency) {
		put_timed(crew, index, &tally);
	} else if (t->workload->batch > 1) {
		put_batches(crew, index, &tally);
	} else {
		put_freely(crew, index, &tally);
	}
	(void)bench_traffic_put(t, &tally);
}

/* -- consumers --------------------------------------------------------------------------------- */

static size_t take_some(const struct ring_contender *ring, void *queue, uint64_t *values, size_t count)
{
	size_t done = 0;

	if (ring->dequeue_many != NULL)
		return ring->dequeue_many(queue, values, count);
	while (done < count && ring->dequeue(queue, &values[done]))
		done++;
	return done;
}

/* Makes one attempt of the workload's kind, and returns how many items came out. */
static size_t take(struct bench_traffic *t, unsigned index, uint64_t *values)
{
	const struct ring_contender *ring = ring_of(t);
	uint64_t start;

	if (t->workload->batch > 1)
		return take_some(ring, t->queue, values, t->workload->batch);
	if (!t->workload->latency)
		return (size_t)ring->dequeue(t->queue, values);
	start = t->workload->rate == 0 ? bench_now_ns() : 0;
	if (!ring->dequeue(t->queue, values))
		return 0;
	bench_histogram_add(t->ticks[index], t->workload->rate == 0 ? bench_now_ns() - start : bench_paced_age(values[0]));
	return 1;
}

/*
 * An attempt dequeued nothing. Returns 1 when no item will come any more: the producers have ended,
 * and one of two conditions holds. Either all items came out, and a few more attempts find no
 * duplicate; or many attempts find nothing, so an item is lost.
 */
static int take_is_over(struct bench_crew *crew, unsigned index, const struct bench_tally *tally, unsigned *failures,
                        int *last_round)
{
	struct bench_traffic *t = crew->context;
	int ended = atomic_load_explicit(&t->producers_left, memory_order_acquire) == 0;

	if (ended || ring_of(t)->unbounded)
		bench_traffic_say(t, index, tally);
	pause_after(failures);
	if (!ended) {
		*last_round = 0;
		return 0;
	}
	return ++*last_round > (bench_traffic_is_out(t) ? EMPTY_AT_THE_END : EMPTY_WITH_A_LOSS);
}

/*
 * Only the first consumer dequeues what is inside at the end. If threads wait for each other, as in
 * most rivals, many threads on few processors could take minutes for it.
 */
static int leaves_the_rest(const struct bench_crew *crew, unsigned index)
{
	return bench_stopped(crew) && index != crew->workload->left && crew->workload->rate == 0;
}

static void consume(struct bench_crew *crew, unsigned index)
{
	struct bench_traffic *t = crew->context;
	struct bench_tally tally = {0, 0};
	uint64_t values[1024];
	unsigned failures = 0;
	int last_round = 0;

	while (!leaves_the_rest(crew, index)) {
		size_t done = take(t, index, values);

		if (done == 0 && take_is_over(crew, index, &tally, &failures, &last_round))
			break;
		if (done == 0)
			continue;
		last_round = 0;
		for (size_t i = 0; i < done; i++)
			tally.sum += values[i];
		tally.count += done;
		if (ring_of(t)->unbounded && tally.count % SAY_EVERY < done)
			bench_traffic_say(t, index, &tally);
	}
	bench_traffic_say(t, index, &tally);
	bench_traffic_got(t, &tally);
}

/* -- runs -------------------------------------------------------------------------------------- */

static void work(struct bench_crew *crew, unsigned index)
{
	if (index < crew->workload->left) {
		produce(crew, index);
	} else {
		consume(crew, index);
	}
}

static void measure_traffic(const struct bench_workload *workload, const void *contender, struct bench_sample *sample)
{
	const struct ring_contender *ring = contender;
	struct bench_traffic traffic;
	struct bench_crew crew = {.workload = workload, .about = &ring->about, .work = work, .context = &traffic};

	bench_traffic_init(&traffic, workload, contender, ring->create(workload->capacity));
	crew.threads = workload->left + workload->right;
	crew.self = traffic.queue;
	crew.begin = ring->thread_begin;
	crew.end = ring->thread_end;
	bench_crew_run(&crew, sample);
	bench_traffic_finish(&traffic, sample);
	ring->destroy(traffic.queue);
}

struct pairing {
	const struct ring_contender *ring;
	void *queue;
	uint64_t pairs, elapsed_ns;
	int wrong;
};

static void pair_up(struct bench_crew *crew, unsigned index)
{
	struct pairing *p = crew->context;
	uint64_t start = bench_now_ns();

	(void)index;
	do {
		p->wrong |= p->ring->pairs(p->queue, PAIRS) != (uint64_t)PAIRS * (PAIRS + 1) / 2;
		p->pairs += PAIRS;
	} while (!bench_stopped(crew));
	p->elapsed_ns = bench_now_ns() - start;
}

static void measure_pairs(const struct bench_workload *workload, const void *contender, struct bench_sample *sample)
{
	const struct ring_contender *ring = contender;
	struct pairing p = {.ring = ring, .queue = ring->create(workload->capacity)};
	struct bench_crew crew = {.workload = workload, .about = &ring->about, .work = pair_up, .threads = 1};

	crew.context = &p;
	crew.self = p.queue;
	crew.begin = ring->thread_begin;
	crew.end = ring->thread_end;
	bench_crew_run(&crew, sample);
	ring->destroy(p.queue);
	if (p.wrong)
		(void)snprintf(sample->wrong, sizeof(sample->wrong), "an enqueue or dequeue failed, or another value came out");
	sample->value = (double)p.elapsed_ns / (double)p.pairs;
	sample->operations = (double)p.pairs;
}

/* -- workloads --------------------------------------------------------------------------------- */

enum { DEFAULT_CAPACITY = 1024, DEFAULT_BATCH = 32 };

static int can(const struct ring_contender *ring, const struct bench_workload *w)
{
	return (ring->producers == 0 || w->left <= ring->producers) &&
	       (ring->consumers == 0 || w->right <= ring->consumers) && (w->right != 0 || ring->pairs != NULL);
}

/* The plan to fill, the suite, and its contenders. */
struct filling {
	struct bench_plan *plan;
	const char *suite;
	const struct ring_contender *const *contenders;
};

static void plan_one(const struct filling *filling, struct bench_workload workload)
{
	struct bench_workload *planned;

	workload.suite = filling->suite;
	workload.never_sleeps = 1;
	if (workload.capacity != DEFAULT_CAPACITY) {
		size_t length = 0;

		while (workload.name[length] != '\0')
			length++;
		(void)snprintf(workload.name + length, sizeof(workload.name) - length, ", capacity %zu", workload.capacity);
	}
	planned = bench_plan_workload(filling->plan, &workload);
	for (size_t i = 0; planned != NULL && filling->contenders[i] != NULL; i++) {
		const struct ring_contender *ring = filling->contenders[i];

		if (can(ring, planned))
			bench_plan_contender(filling->plan, planned, &ring->about, ring);
	}
}

static void plan_throughput(const struct filling *filling, struct bench_shape shape, size_t capacity, size_t batch)
{
	struct bench_workload w = {.unit = "Mitems/s",
	                           .left = shape.left,
	                           .right = shape.plain ? shape.left : shape.right,
	                           .capacity = capacity,
	                           .batch = batch,
	                           .measure = measure_traffic};

	if (batch > 1) {
		(void)snprintf(w.name, sizeof(w.name), "%u/%u, batches of %zu", w.left, w.right, batch);
	} else {
		(void)snprintf(w.name, sizeof(w.name), "%u/%u", w.left, w.right);
	}
	plan_one(filling, w);
}

static void plan_latency(const struct filling *filling, unsigned side, size_t capacity, uint64_t rate, unsigned hogs)
{
	struct bench_workload w = {.unit = "ns",
	                           .lower_is_better = 1,
	                           .latency = 1,
	                           .left = side,
	                           .right = side,
	                           .hogs = hogs,
	                           .capacity = capacity,
	                           .rate = rate,
	                           .measure = measure_traffic};

	(void)snprintf(w.name, sizeof(w.name), "latency %s, %u/%u%s", rate != 0 ? "at a fixed rate" : "of a call", side,
	               side, hogs != 0 ? ", cores stolen" : "");
	plan_one(filling, w);
}

void bench_plan_call_latency(struct bench_plan *plan, const char *suite,
                             const struct ring_contender *const contenders[], unsigned side, size_t capacity)
{
	plan_latency(&(struct filling){plan, suite, contenders}, side, capacity, 0, 0);
}

static void plan_uncontended(const struct filling *filling, size_t capacity)
{
	plan_one(filling, (struct bench_workload){.name = "uncontended",
	                                          .unit = "ns a pair",
	                                          .lower_is_better = 1,
	                                          .left = 1,
	                                          .capacity = capacity,
	                                          .measure = measure_pairs});
}

static void plan_shapes(const struct filling *filling, const struct bench_options *options, size_t capacity)
{
	struct bench_shapes shapes = options->threads.count != 0 ? options->threads : bench_square_shapes();

	for (unsigned i = 0; i < shapes.count; i++) {
		if (!shapes.shape[i].plain && shapes.shape[i].right == 0)
			continue; /* a shape without consumers does not suit a queue */
		plan_throughput(filling, shapes.shape[i], capacity, 1);
	}
	if (options->threads.count == 0) {
		plan_throughput(filling, (struct bench_shape){1, 4, 0}, capacity, 1);
		plan_throughput(filling, (struct bench_shape){4, 1, 0}, capacity, 1);
	}
}

static void plan_rings(const struct filling *filling, const struct bench_options *options, size_t capacity)
{
	struct bench_sizes batches =
		options->batches.count != 0 ? options->batches : (struct bench_sizes){1, {DEFAULT_BATCH}};

	plan_uncontended(filling, capacity);
	plan_shapes(filling, options, capacity);
	for (unsigned i = 0; i < batches.count; i++) {
		plan_throughput(filling, (struct bench_shape){1, 1, 0}, capacity, batches.size[i]);
		plan_throughput(filling, (struct bench_shape){4, 4, 0}, capacity, batches.size[i]);
	}
	plan_latency(filling, 1, capacity, 0, 0);
	plan_latency(filling, 4, capacity, 0, 0);
	plan_latency(filling, 1, capacity, RATE, 0);
	plan_latency(filling, 1, capacity, RATE, bench_processors());
}

static void plan_priorities(const struct filling *filling, const struct bench_options *options, size_t capacity)
{
	plan_uncontended(filling, capacity);
	plan_shapes(filling, options, capacity);
	plan_latency(filling, 1, capacity, 0, 0);
	plan_latency(filling, 4, capacity, 0, 0);
}

static struct bench_sizes capacities_of(const struct bench_options *options)
{
	return options->capacities.count != 0 ? options->capacities : (struct bench_sizes){1, {DEFAULT_CAPACITY}};
}

static void plan_ring(struct bench_plan *plan, const struct bench_options *options)
{
	const struct filling filling = {plan, "ring", bench_rings};
	struct bench_sizes capacities = capacities_of(options);

	for (unsigned i = 0; i < capacities.count; i++)
		plan_rings(&filling, options, capacities.size[i]);
}

static void plan_priority(struct bench_plan *plan, const struct bench_options *options)
{
	const struct filling filling = {plan, "priority", bench_priorities};
	struct bench_sizes capacities = capacities_of(options);

	for (unsigned i = 0; i < capacities.count; i++)
		plan_priorities(&filling, options, capacities.size[i]);
}

static const char *const explain_ring[][2] = {
	{"uncontended", "one thread repeatedly enqueues a value and dequeues it. The figure is "
                    "nanoseconds per pair. The loop is compiled into the contender's adapter."},
	{"P/C", "P producers and C consumers work on one queue of capacity 1024 for the duration. A "
            "thread that fails 16 times yields the processor. The figure is millions of items "
            "dequeued per second. The harness keeps the backlog of an unbounded queue near the "
            "same capacity."},
	{"P/C, batches of N", "the same with up to N items per call. If a contender has no such call, "
                          "the harness calls it in a loop."},
	{"latency of a call, P/C",
     "the same, and each call that succeeds is timed by itself, both enqueues and dequeues. The "
     "time includes one reading of the clock, whose cost the description of the machine states."},
	{"latency at a fixed rate, P/C",
     "each producer is to enqueue an item every 10 us, whether or not the previous one is inside. "
     "The latency is the time from the intended time until a consumer has the item, so a contender "
     "that falls behind is charged for it (no coordinated omission)."},
	{"cores stolen", "the same beside one spinning thread for each processor."},
	{NULL, NULL},
};

static const char *const explain_priority[][2] = {
	{"uncontended", "as in suite ring, with a queue that returns the smallest key first. Keys are "
                    "random. The queue is empty before each pair."},
	{"P/C", "as in suite ring. The table says so if a contender promises less: equal keys in any "
            "order, or only roughly the smallest key first."},
	{"latency of a call, P/C", "as in suite ring."},
	{NULL, NULL},
};

const struct bench_suite bench_ring_suite = {"ring", "queues", plan_ring, explain_ring};
const struct bench_suite bench_priority_suite = {"priority", "queues", plan_priority, explain_priority};
