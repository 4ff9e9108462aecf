/*
 * suite_queue.c - queues whose threads sleep when they can do nothing, in FIFO order and shuffled.
 */
#include <sched.h>
#include <stdio.h>

#include "traffic.h"

enum { DEFAULT_CAPACITY = 1024, RATE = 20000 };

#define OUT_PATIENCE_NS UINT64_C(2000000000)

static const struct queue_contender *queue_of(const struct bench_traffic *t)
{
	return t->contender;
}

/* Waits until all items are out, or gives up because one is lost. */
static void wait_until_out(const struct bench_traffic *t)
{
	uint64_t end = bench_now_ns() + OUT_PATIENCE_NS;

	while (!bench_traffic_is_out(t) && bench_now_ns() < end)
		(void)sched_yield();
}

/*
 * The last producer to end releases the consumers: it closes the queue, or sends each consumer a 0.
 * An unbounded queue may have no order between producers, so a 0 could overtake an item of another
 * producer. The call therefore waits until all items are out.
 */
static void end_of_producers(struct bench_traffic *t)
{
	if (queue_of(t)->close != NULL) {
		queue_of(t)->close(t->queue);
		return;
	}
	if (queue_of(t)->unbounded)
		wait_until_out(t);
	for (unsigned i = 0; i < t->workload->right; i++)
		queue_of(t)->enqueue(t->queue, 0);
}

static void put_freely(struct bench_crew *crew, unsigned index, struct bench_tally *tally)
{
	struct bench_traffic *t = crew->context;
	const struct queue_contender *queue = queue_of(t);

	do {
		queue->enqueue(t->queue, tally->count + 1);
		tally->sum += ++tally->count;
		if (!queue->unbounded || tally->count % 64 != 0)
			continue; /* goes to the condition below */
		bench_traffic_say(t, index, tally);
		while (bench_traffic_inside(t) >= t->workload->capacity && !bench_stopped(crew))
			(void)sched_yield();
	} while (!bench_stopped(crew));
}

static void put_one(struct bench_traffic *t, uint64_t value)
{
	queue_of(t)->enqueue(t->queue, value);
}

static void produce(struct bench_crew *crew, unsigned index)
{
	struct bench_traffic *t = crew->context;
	struct bench_tally tally = {0, 0};

	if (t->workload->rate != 0) {
		bench_put_paced(crew, index, &tally, put_one);
	} else {
		put_freely(crew, index, &tally);
	}
	if (bench_traffic_put(t, &tally))
		end_of_producers(t);
}

static void consume(struct bench_crew *crew, unsigned index)
{
	struct bench_traffic *t = crew->context;
	struct bench_tally tally = {0, 0};
	uint64_t value;

	while (queue_of(t)->dequeue(t->queue, &value) && value != 0) {
		if (t->ticks[index] != NULL)
			bench_histogram_add(t->ticks[index], bench_paced_age(value));
		tally.sum += value;
		tally.count++;
		/* It reports after each item, because it may sleep next and cannot report then. */
		if (queue_of(t)->unbounded)
			bench_traffic_say(t, index, &tally);
	}
	bench_traffic_got(t, &tally);
}

static void work(struct bench_crew *crew, unsigned index)
{
	if (index < crew->workload->left) {
		produce(crew, index);
	} else {
		consume(crew, index);
	}
}

static void measure_apart(const struct bench_workload *w, const struct queue_contender *queue,
                          struct bench_sample *sample)
{
	struct bench_totals totals = {0};

	if (!queue->run_apart(w->left, w->right, w->capacity, w->duration_ms, &totals)) {
		(void)snprintf(sample->wrong, sizeof(sample->wrong), "its process failed");
		return;
	}
	bench_traffic_judge(&totals, w, sample);
}

static void measure(const struct bench_workload *workload, const void *contender, struct bench_sample *sample)
{
	const struct queue_contender *queue = contender;
	struct bench_traffic traffic;
	struct bench_crew crew = {.workload = workload, .about = &queue->about, .work = work, .context = &traffic};

	if (queue->run_apart != NULL) {
		measure_apart(workload, queue, sample);
		return;
	}
	bench_traffic_init(&traffic, workload, contender, queue->create(workload->capacity));
	crew.threads = workload->left + workload->right;
	crew.self = traffic.queue;
	crew.begin = queue->thread_begin;
	crew.end = queue->thread_end;
	bench_crew_run(&crew, sample);
	bench_traffic_finish(&traffic, sample);
	queue->destroy(traffic.queue);
}

/* -- workloads --------------------------------------------------------------------------------- */

static int can(const struct queue_contender *queue, const struct bench_workload *w)
{
	return (queue->producers == 0 || w->left <= queue->producers) &&
	       (queue->consumers == 0 || w->right <= queue->consumers) && (queue->run_apart == NULL || !w->latency);
}

static void plan_one(struct bench_plan *plan, const struct queue_contender *const contenders[],
                     struct bench_workload workload)
{
	struct bench_workload *planned;

	workload.measure = measure;
	planned = bench_plan_workload(plan, &workload);
	for (size_t i = 0; planned != NULL && contenders[i] != NULL; i++) {
		if (can(contenders[i], planned))
			bench_plan_contender(plan, planned, &contenders[i]->about, contenders[i]);
	}
}

static void plan_throughput(struct bench_plan *plan, const char *suite,
                            const struct queue_contender *const contenders[], struct bench_shape shape, size_t capacity)
{
	struct bench_workload w = {.suite = suite, .unit = "Mitems/s", .left = shape.left, .capacity = capacity};

	w.right = shape.plain ? shape.left : shape.right;
	if (capacity == DEFAULT_CAPACITY) {
		(void)snprintf(w.name, sizeof(w.name), "%u/%u", w.left, w.right);
	} else {
		(void)snprintf(w.name, sizeof(w.name), "%u/%u, capacity %zu", w.left, w.right, capacity);
	}
	if (w.right != 0)
		plan_one(plan, contenders, w);
}

static void plan_latency(struct bench_plan *plan, const struct queue_contender *const contenders[], unsigned hogs)
{
	struct bench_workload w = {.suite = "queue",
	                           .unit = "ns",
	                           .lower_is_better = 1,
	                           .latency = 1,
	                           .left = 1,
	                           .right = 1,
	                           .hogs = hogs,
	                           .capacity = DEFAULT_CAPACITY,
	                           .rate = RATE};

	(void)snprintf(w.name, sizeof(w.name), "latency at a fixed rate, 1/1%s", hogs != 0 ? ", cores stolen" : "");
	plan_one(plan, contenders, w);
}

static void plan_suite(struct bench_plan *plan, const struct bench_options *options, const char *suite,
                       const struct queue_contender *const contenders[])
{
	struct bench_shapes shapes = options->threads.count != 0 ? options->threads : bench_square_shapes();
	struct bench_sizes capacities =
		options->capacities.count != 0 ? options->capacities : (struct bench_sizes){1, {DEFAULT_CAPACITY}};

	for (unsigned c = 0; c < capacities.count; c++) {
		for (unsigned i = 0; i < shapes.count; i++)
			plan_throughput(plan, suite, contenders, shapes.shape[i], capacities.size[c]);
	}
}

static void plan_queue(struct bench_plan *plan, const struct bench_options *options)
{
	plan_suite(plan, options, "queue", bench_queues);
	plan_latency(plan, bench_queues, 0);
	plan_latency(plan, bench_queues, bench_processors());
}

static void plan_shuffle(struct bench_plan *plan, const struct bench_options *options)
{
	plan_suite(plan, options, "shuffle", bench_shuffles);
	bench_plan_call_latency(plan, "shuffle", bench_shuffle_tries, 1, DEFAULT_CAPACITY);
	bench_plan_call_latency(plan, "shuffle", bench_shuffle_tries, 4, DEFAULT_CAPACITY);
}

static const char *const explain_queue[][2] = {
	{"P/C", "P producers and C consumers work on one queue of capacity 1024 for the duration. A "
            "thread that finds the queue full or empty sleeps until that changes. The figure is "
            "millions of items dequeued per second."},
	{"latency at a fixed rate, 1/1",
     "the producer enqueues an item every 50 us; the consumer sleeps in between. The latency is "
     "the time from the intended time of the enqueue until the consumer has the item."},
	{"cores stolen", "the same beside one spinning thread for each processor."},
	{NULL, NULL},
};

static const char *const explain_shuffle[][2] = {
	{"P/C", "as in suite queue, with a queue that returns its items in random order."},
	{"latency of a call, P/C", "as in suite ring: calls that do not wait."},
	{NULL, NULL},
};

const struct bench_suite bench_queue_suite = {"queue", "queues", plan_queue, explain_queue};
const struct bench_suite bench_shuffle_suite = {"shuffle", "queues", plan_shuffle, explain_shuffle};
