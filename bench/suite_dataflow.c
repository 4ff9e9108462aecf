/*
 * suite_dataflow.c - graphs of small nodes: what a node, a step, a call and a build cost.
 */
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>

#include "crew.h"
#include "suite.h"

static const struct {
	const char *name, *unit;
	unsigned nodes;
	double per_ns; /* of processor time: what the unit is of it */
	const char *beside;
} kinds[] = {
	[BENCH_CHAIN] = {"1,000 nodes in a chain", "ns/node", 1000, 1, NULL},
	[BENCH_WIDE] = {"1,000 nodes without edges", "ns/node", 1000, 1, NULL},
	[BENCH_ONE] = {"one node that does nothing", "ns/run", 1, 1, NULL},
	[BENCH_KERNEL] = {"one short function", "ns/run", 1, 1, NULL},
	[BENCH_ADDS] = {"1,000 additions of a float", "ns/node", 1000, 1, NULL},
	[BENCH_QUEUE] = {"enqueue, dequeue", "ns/pair", 100, 1, NULL},
	[BENCH_BUFFERS] = {"1,000 additions of 1 MiB", "us/node", 1000, 1e-3, "MiB at most"},
	[BENCH_BUILD] = {"graph of 100,000 nodes built", "ns/node", 100000, 1, NULL},
	[BENCH_GROUP] = {"node after 10,000 others built", "ns/edge", 10000, 1, NULL},
	[BENCH_CALLS] = {"1,000 calls in a chain", "ns/call", 1000, 1, NULL},
	[BENCH_LOOP] = {"loop of 1,000 iterations", "ns/iteration", 1000, 1, NULL},
	[BENCH_ROWS] = {"map of 1,000 rows", "ns/row", 1000, 1, NULL},
	[BENCH_STEPS] = {"runs of 8 additions", "ns/run", 1, 1, NULL},
};
enum { KINDS = sizeof(kinds) / sizeof(kinds[0]) };

struct flow {
	const struct dataflow_contender *contender;
	void *self;
	_Atomic(uint64_t) runs;
};

static void work(struct bench_crew *crew, unsigned index)
{
	struct flow *flow = crew->context;
	uint64_t runs = 0;

	(void)index;
	do {
		flow->contender->run(flow->self);
		runs++;
	} while (!bench_stopped(crew));
	atomic_fetch_add_explicit(&flow->runs, runs, memory_order_relaxed);
}

static void measure(const struct bench_workload *workload, const void *contender, struct bench_sample *sample)
{
	const struct dataflow_contender *dataflow = contender;
	static struct flow flow;
	struct bench_crew crew = {
		.workload = workload, .about = &dataflow->about, .work = work, .threads = workload->left, .context = &flow};
	unsigned nodes = kinds[dataflow->kind].nodes;
	uint64_t used, ran, expected;

	flow = (struct flow){.contender = dataflow, .self = dataflow->create(dataflow->kind, nodes, bench_processors())};
	crew.self = flow.self;
	/* Not that of the window: the last runs end after it. */
	used = bench_processor_ns();
	bench_crew_run(&crew, sample);
	used = bench_processor_ns() - used;
	expected = atomic_load_explicit(&flow.runs, memory_order_relaxed) * nodes;
	ran = dataflow->ran != NULL ? dataflow->ran(flow.self) : expected;
	if (dataflow->most_bytes != NULL)
		sample->beside = (double)dataflow->most_bytes(flow.self) / (1 << 20);
	dataflow->destroy(flow.self);
	if (ran != expected)
		(void)snprintf(sample->wrong, sizeof(sample->wrong), "%" PRIu64 " of %" PRIu64 " nodes ran", ran, expected);
	sample->operations = (double)expected;
	sample->value = (double)used * kinds[dataflow->kind].per_ns / (double)expected;
}

static void plan_one(struct bench_plan *plan, enum bench_dataflow kind, unsigned threads)
{
	struct bench_workload w = {.suite = "dataflow",
	                           .unit = kinds[kind].unit,
	                           .beside = kinds[kind].beside,
	                           .lower_is_better = 1,
	                           .left = threads,
	                           .measure = measure};
	struct bench_workload *planned;

	if (kind == BENCH_STEPS)
		(void)snprintf(w.name, sizeof(w.name), "%s, %u threads", kinds[kind].name, threads);
	else
		(void)snprintf(w.name, sizeof(w.name), "%s", kinds[kind].name);
	planned = bench_plan_workload(plan, &w);
	for (size_t i = 0; planned != NULL && bench_dataflows[i] != NULL; i++) {
		if (bench_dataflows[i]->kind == kind)
			bench_plan_contender(plan, planned, &bench_dataflows[i]->about, bench_dataflows[i]);
	}
}

static int has_contenders(enum bench_dataflow kind)
{
	size_t i = 0;

	while (bench_dataflows[i] != NULL && bench_dataflows[i]->kind != kind)
		i++;
	return bench_dataflows[i] != NULL;
}

static void plan(struct bench_plan *plan, const struct bench_options *options)
{
	static const struct bench_shapes usual = {2, {{2, 0, 1}, {8, 0, 1}}};
	const struct bench_shapes *shapes = options->threads.count != 0 ? &options->threads : &usual;

	for (unsigned kind = 0; kind < KINDS; kind++) {
		if (kind != BENCH_STEPS && has_contenders((enum bench_dataflow)kind))
			plan_one(plan, (enum bench_dataflow)kind, 1);
	}
	for (unsigned i = 0; i < shapes->count && has_contenders(BENCH_STEPS); i++) {
		if (shapes->shape[i].plain)
			plan_one(plan, BENCH_STEPS, shapes->shape[i].left);
	}
}

static const char *const explain[][2] = {
	{"1,000 nodes in a chain; without edges",
     "one thread repeatedly runs a graph of 1,000 nodes and waits for its end. The graph is built before. The "
     "contender has as many threads of its own as there are processors, if it has any. A node does nothing, or "
     "calls a function that notes that it ran. The figure of this suite is processor time of the whole program, "
     "divided by the number of nodes (or runs, calls, and so on); at the end, each node must have run once in each "
     "run."},
	{"one node that does nothing; one short function", "the same with one node: the cost of a run."},
	{"1,000 additions of a float", "1 is added to a value 1,000 times, each time by a node."},
	{"enqueue, dequeue",
     "a value goes into a queue and comes out of it again, 100 times: by nodes of one run, or by calls."},
	{"1,000 additions of 1 MiB", "the same as with a float, with arrays of 1 MiB. The memory that values had in "
                                 "use at most stands beside the time."},
	{"graph of 100,000 nodes built", "a chain is built, made ready to run, and freed again."},
	{"node after 10,000 others built", "a graph of 10,000 nodes without edges, and one that runs after all of them."},
	{"1,000 calls in a chain; loop of 1,000 iterations; map of 1,000 rows",
     "the body of a function that returns its argument is run by a node that calls it, by a loop, or for each row "
     "of a tensor. The condition of the loop is a kernel that counts."},
	{"runs of 8 additions, N threads",
     "N threads run one graph, each for itself: 1 is added to a float 8 times. The loops have no graph: they show "
     "what N threads cost on this machine by themselves, and what they cost when each run also counts who is inside "
     "and takes and gives back spare memory, which all share."},
	{NULL, NULL},
};

const struct bench_suite bench_dataflow_suite = {"dataflow", "dataflow", plan, explain};
